"""Column means and centred sums of squares, in two passes, for every in-memory storage.

The textbook E[x^2] - E[x]^2 has no correct digit once the mean is 1e8 times the standard deviation.
Here values are centred before they are squared, and the rounding left in the mean is removed.
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.storage import stored_columns

CONSTANT_RATIO = 1e-12
# Sums of squares that float32 holds, with room for what is made of them.
SMALLEST_SINGLE, LARGEST_SINGLE = 1e-28, 1e28
BLOCK_BYTES = 1 << 22


@dataclass(frozen=True)
class ColumnMoments:
    """Mean and centred sum of squares of every column, in float64."""

    n_samples: int
    mean: FloatArray
    sum_of_squares: FloatArray

    @property
    def variance(self) -> FloatArray:
        """Population variance (divided by n)."""
        return self.sum_of_squares / self.n_samples

    @property
    def constant(self) -> BoolArray:
        """Columns whose standard deviation is rounding noise of the mean."""
        return np.sqrt(self.variance) <= CONSTANT_RATIO * np.abs(self.mean)

    def subset(self, columns: IndexArray) -> "ColumnMoments":
        return ColumnMoments(self.n_samples, self.mean[columns], self.sum_of_squares[columns])

    def scaled(self, factors: FloatArray) -> "ColumnMoments":
        return ColumnMoments(self.n_samples, self.mean * factors, self.sum_of_squares * factors**2)

    def precision_for(self, dtype: Any) -> np.dtype[Any]:
        """``dtype`` if it holds the squares of the columns, else float64."""
        squares = self.sum_of_squares[self.sum_of_squares > 0.0]
        held = np.all((squares > SMALLEST_SINGLE) & (squares < LARGEST_SINGLE))
        return np.dtype(dtype) if held else np.dtype(np.float64)


def row_blocks(n_samples: int, n_features: int, n_bytes: int = BLOCK_BYTES) -> list[slice]:
    """Slices over the rows, each of ``n_bytes`` of float64; the default fits in a cache."""
    step = max(1, n_bytes // (8 * max(n_features, 1)))
    return [slice(start, min(start + step, n_samples)) for start in range(0, n_samples, step)]


@dataclass(frozen=True)
class VarianceSpan:
    """The range of the variances of columns."""

    ratio: float
    """The largest variance over the lower quartile, so that a few quiet columns do not count."""
    low: int
    """The column at the lower quartile."""
    high: int

    @property
    def has_mixed_units(self) -> bool:
        """True if the ratio is so large that the columns must have different units."""
        return 1e4 < self.ratio < np.inf


def variance_span(variances: FloatArray) -> VarianceSpan | None:
    """The span of the variances above 0; None if there are fewer than two."""
    varies = np.flatnonzero(variances > 0.0)
    if len(varies) < 2:
        return None
    order = varies[np.argsort(variances[varies], kind="stable")]
    low, high = int(order[(len(order) - 1) // 4]), int(order[-1])
    return VarianceSpan(float(variances[high] / variances[low]), low, high)


def column_moments(X: Any) -> ColumnMoments:
    """Moments of the columns of an array or a CSR/CSC matrix."""
    return _sparse_moments(X) if sp.issparse(X) else _dense_moments(X)


def _dense_moments(X: FloatArray) -> ColumnMoments:
    n_samples, n_features = X.shape
    mean = X.mean(axis=0, dtype=np.float64)
    residue = np.zeros(n_features)
    squares = np.zeros(n_features)
    for rows in row_blocks(n_samples, n_features):
        centred = X[rows] - mean
        residue += centred.sum(axis=0)
        squares += np.einsum("ij,ij->j", centred, centred)
    return _correct_mean(n_samples, mean, residue, squares)


def _sparse_moments(X: Any) -> ColumnMoments:
    n_samples, n_features = X.shape
    columns = stored_columns(X)
    mean = _column_sums(X, X.data) / n_samples
    absent = n_samples - np.bincount(columns, minlength=n_features)
    centred = X.data - mean[columns]
    residue = _column_sums(X, centred) - absent * mean
    squares = _column_sums(X, np.square(centred, out=centred)) + absent * mean * mean
    return _correct_mean(n_samples, mean, residue, squares)


def _column_sums(X: Any, values: FloatArray) -> FloatArray:
    """Sums of such values of the entries: a product, four times as fast as `numpy.bincount`."""
    filled = copy.copy(X)  # shallow, and its constructor would check every index
    filled.data = values.astype(np.float64, copy=False)
    return np.asarray(filled.T @ np.ones(X.shape[0]))


def _correct_mean(
    n_samples: int, mean: FloatArray, residue: FloatArray, squares: FloatArray
) -> ColumnMoments:
    """Shift the provisional mean by what the centred columns still sum to."""
    correction = residue / n_samples
    with np.errstate(over="ignore", invalid="ignore"):  # such values raise later, in our words
        exact = np.maximum(squares - residue * correction, 0.0)
    return ColumnMoments(n_samples, mean + correction, exact)
