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
from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from keepers._protocols import FloatArray
from keepers.linalg import storage
from keepers.linalg.moments import ColumnMoments, row_blocks
from keepers.linalg.scatter import without_offsets

EPS = float(np.finfo(np.float64).eps)
# Columns of X are weighted in blocks of so many bytes, so that no second X is held.
_BLOCK_BYTES = 1 << 25


@dataclass(frozen=True)
class Fit:
    """The solution of one regression."""

    W: FloatArray
    residual: FloatArray
    """Y - X W."""


class RidgeFactor(Protocol):
    """Regressions on one table with one choice of weights."""

    def fit(self, Y: FloatArray) -> Fit:
        """The regression of a block of n rows."""

    def residual(self, Y: FloatArray) -> FloatArray:
        """What it leaves of the block, without W where that saves work."""


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
        """X W."""
        product = storage.times(self.X, W) if sp.issparse(self.X) else self.X @ W
        return np.asarray(product if self.mean is None else product - self.mean @ W)

    def transposed_times(self, Y: FloatArray) -> FloatArray:
        """X'Y."""
        product = storage.transposed_times(self.X, Y) if sp.issparse(self.X) else self.X.T @ Y
        if self.mean is None:
            return np.asarray(product)
        return np.asarray(product - np.outer(self.mean, Y.sum(axis=0)))

    def at(self, q: FloatArray) -> RidgeFactor:
        """The regressions with weights ``q``."""
        if self._gram is not None:
            return _ByFeatures(self, np.sqrt(q), _factor_above_one(self._weighted_gram(q)))
        return _BySamples(self, q, _factor_above_one(self._kernel(q)))

    def _form_gram(self) -> FloatArray:
        """X'X."""
        if not sp.issparse(self.X):
            return np.asarray(self.X.T @ self.X)
        gram = storage.gram(self.X)
        if self.mean is not None:
            gram -= self.n_samples * np.outer(self.mean, self.mean)
        return gram

    def _weighted_gram(self, q: FloatArray) -> FloatArray:
        """X'X with rows and columns times sqrt(q)."""
        root = np.sqrt(q)
        weighted: FloatArray = self._gram * root
        weighted *= root[:, np.newaxis]
        return weighted

    def _kernel(self, q: FloatArray) -> FloatArray:
        """X diag(q) X'."""
        root = np.sqrt(q)
        if sp.issparse(self.X):
            weighted = storage.scale_columns(self.X, root)
            kernel = np.asarray((weighted @ weighted.T).toarray())
        else:
            kernel = np.zeros((self.n_samples, self.n_samples))
            for columns in row_blocks(self.n_features, self.n_samples, _BLOCK_BYTES):
                block = self.X[:, columns] * root[columns]
                kernel += block @ block.T
        if self.mean is not None:
            # Centring the rows and columns of the kernel centres the features.
            kernel -= kernel.mean(axis=0)
            kernel -= kernel.mean(axis=1, keepdims=True)
        return kernel


@dataclass(frozen=True)
class _ByFeatures:
    """The regressions for d <= n, with a factor of I + s X'X s."""

    table: WeightedRidge
    root: FloatArray
    factor: tuple[FloatArray, bool]

    def fit(self, Y: FloatArray) -> Fit:
        root = self.root[:, np.newaxis]
        pulled = root * self.table.transposed_times(Y)
        W = root * cho_solve(self.factor, pulled, overwrite_b=True, check_finite=False)
        return Fit(W, Y - self.table.times(W))

    def residual(self, Y: FloatArray) -> FloatArray:
        return self.fit(Y).residual


@dataclass(frozen=True)
class _BySamples:
    """The regressions for d > n, with a factor of I + X diag(q) X'."""

    table: WeightedRidge
    q: FloatArray
    factor: tuple[FloatArray, bool]

    def fit(self, Y: FloatArray) -> Fit:
        residual = self.residual(Y)
        return Fit(self.q[:, np.newaxis] * self.table.transposed_times(residual), residual)

    def residual(self, Y: FloatArray) -> FloatArray:
        return np.asarray(cho_solve(self.factor, Y, check_finite=False))


def _factor_above_one(matrix: FloatArray) -> tuple[FloatArray, bool]:
    """The Cholesky factor of I + matrix, for one that is positive semi-definite up to rounding.

    The 1 is raised where the rounding of the matrix would exceed it.
    """
    diagonal = np.diag_indices(len(matrix))
    rounding = len(matrix) * EPS * float(matrix[diagonal].max(initial=0.0))
    matrix[diagonal] += max(1.0, rounding)
    factor, lower = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    return factor, lower
