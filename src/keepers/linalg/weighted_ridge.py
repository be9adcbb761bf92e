"""Ridge regressions on one table in which every feature has a weight of its own, again and again.

    W = argmin |X W - Y|^2 + sum_j |w_j|^2 / q_j,      R = Y - X W

for one X and many weights q > 0: what reweighting makes of a row-sparse regression. Two forms give
the same numbers, and the one with the smaller matrix is taken:

* d <= n: W = s (I + s X'X s)^-1 s X'Y with s = diag(sqrt(q)), X'X being formed once;
* d > n:  R = (I + X diag(q) X')^-1 Y and W = diag(q) X'R.

Neither matrix has an eigenvalue below 1, so weights near zero, which a row on its way to zero has,
do no harm. X is an array or a CSR/CSC matrix, which is never made dense; its columns can be centred
without touching its zeros.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from keepers._protocols import FloatArray
from keepers.linalg.moments import ColumnMoments
from keepers.linalg.scatter import without_offsets
from keepers.linalg.storage import gram, scale_columns


class WeightedRidge:
    """The table of the regressions: `at` factorises them for one choice of weights."""

    def __init__(self, X: Any, mean: FloatArray | None = None) -> None:
        """X, less its ``mean`` if that is given."""
        self.X = X
        self.mean = mean
        self.n_samples, self.n_features = X.shape
        self.by_features = self.n_features <= self.n_samples
        self._gram = self._form_gram() if self.by_features else None

    @classmethod
    def centred(cls, X: Any, moments: ColumnMoments) -> Self:
        """On X less its column means: of an array in a copy, of a sparse matrix by products."""
        if sp.issparse(X):
            X, moments = without_offsets(X, moments)
            return cls(X, moments.mean)
        return cls(X - moments.mean)

    def times(self, W: FloatArray) -> FloatArray:
        product = self.X @ W
        return np.asarray(product if self.mean is None else product - self.mean @ W)

    def transposed_times(self, Y: FloatArray) -> FloatArray:
        product = self.X.T @ Y
        if self.mean is None:
            return np.asarray(product)
        return np.asarray(product - np.outer(self.mean, Y.sum(axis=0)))

    def at(self, q: FloatArray) -> "RidgeFactor":
        """The regressions with weights ``q``."""
        root = np.sqrt(q)
        if self._gram is not None:
            matrix = root[:, np.newaxis] * self._gram * root
        else:
            weighted = scale_columns(self.X, root)
            matrix = weighted @ weighted.T
            matrix = matrix.toarray() if sp.issparse(matrix) else matrix
            if self.mean is not None:
                # Centring the rows and columns of the kernel centres the features.
                matrix -= matrix.mean(axis=0)
                matrix -= matrix.mean(axis=1, keepdims=True)
        # The 1 is raised where the rounding of the matrix would exceed it.
        diagonal = np.diag_indices(len(matrix))
        rounding = len(matrix) * np.finfo(np.float64).eps * float(matrix[diagonal].max(initial=0.0))
        matrix[diagonal] += max(1.0, rounding)
        cholesky = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
        return RidgeFactor(self, q[:, np.newaxis], cholesky)

    def _form_gram(self) -> FloatArray:
        if not sp.issparse(self.X):
            return np.asarray(self.X.T @ self.X)
        product = gram(self.X)
        if self.mean is not None:
            product -= self.n_samples * np.outer(self.mean, self.mean)
        return product


@dataclass(frozen=True)
class RidgeFit:
    """The solution of one regression."""

    W: FloatArray
    residual: FloatArray


@dataclass(frozen=True)
class RidgeFactor:
    """Regressions on one table with one choice of weights."""

    table: WeightedRidge
    q: FloatArray
    cholesky: tuple[FloatArray, bool]
    """The factor of I + s X'X s for d <= n, of I + X diag(q) X' for d > n."""

    def fit(self, Y: FloatArray) -> RidgeFit:
        """The regression of a block of n rows."""
        if self.table.by_features:
            root = np.sqrt(self.q)
            W = root * self._solve(root * self.table.transposed_times(Y))
            return RidgeFit(W, Y - self.table.times(W))
        residual = self._solve(Y)
        return RidgeFit(self.q * self.table.transposed_times(residual), residual)

    def residual(self, Y: FloatArray) -> FloatArray:
        """Y - X W, without W where that saves work."""
        return self.fit(Y).residual if self.table.by_features else self._solve(Y)

    def _solve(self, B: FloatArray) -> FloatArray:
        return np.asarray(cho_solve(self.cholesky, B, check_finite=False))
