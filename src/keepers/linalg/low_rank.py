"""A matrix B B' of low rank, as an operator."""

from dataclasses import dataclass

import numpy as np

from keepers._protocols import FloatArray, IndexArray, SmallSide
from keepers.linalg.scatter import SMALL_SIDE


@dataclass(frozen=True)
class LowRankScatter:
    """B B' for a d x r factor B, such as eigenvectors times the roots of their eigenvalues."""

    factor: FloatArray

    @property
    def size(self) -> int:
        """Number of features, d."""
        return len(self.factor)

    def matmat(self, V: FloatArray) -> FloatArray:
        """B (B'V)."""
        return np.asarray(self.factor @ (self.factor.T @ V))

    def diagonal(self) -> FloatArray:
        """Squared lengths of the rows of B."""
        return np.asarray(np.einsum("ij,ij->i", self.factor, self.factor))

    def restrict(self, rows: IndexArray) -> "LowRankScatter":
        """The same on some of the features."""
        return LowRankScatter(self.factor[rows])

    def dense(self) -> FloatArray:
        """The matrix itself."""
        return np.asarray(self.factor @ self.factor.T)

    def small_side(self) -> SmallSide | None:
        """B'B or B B', whichever is smaller."""
        n_features, rank = self.factor.shape
        if min(n_features, rank) > SMALL_SIDE:
            return None
        if n_features <= rank:
            return SmallSide(self.dense(), lambda vectors, _: vectors)
        return SmallSide(
            self.factor.T @ self.factor,
            lambda vectors, values: self.factor @ (vectors / np.sqrt(values)),
        )
