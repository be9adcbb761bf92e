"""The few types that cross rooms."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]
IndexArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

__all__ = ["BoolArray", "FloatArray", "IndexArray", "SmallSide", "SymmetricOperator"]


@dataclass(frozen=True)
class SmallSide:
    """A small matrix with the non-zero eigenvalues of a large one, and the way back to it."""

    matrix: FloatArray
    lift: Callable[[FloatArray, FloatArray], FloatArray]
    """(eigenvectors, eigenvalues) of ``matrix`` -> unit eigenvectors of the large one."""


class SymmetricOperator(Protocol):
    """A symmetric positive semi-definite d x d matrix known by its products."""

    @property
    def size(self) -> int:
        """Number of rows and columns, d."""

    def matmat(self, V: FloatArray) -> FloatArray:
        """Return the product with the d x m block ``V``."""

    def diagonal(self) -> FloatArray:
        """Return the d diagonal entries."""

    def restrict(self, rows: IndexArray) -> "SymmetricOperator":
        """Return the principal submatrix on ``rows``."""

    def dense(self) -> FloatArray:
        """Return the matrix itself (d x d); only for d that fits in memory."""

    def small_side(self) -> SmallSide | None:
        """Return the smaller of the two Gram matrices, or None if both are too large."""
