"""Column means and centred sums of squares, in two passes, for every in-memory storage.

The textbook E[x^2] - E[x]^2 has no correct digit once the mean is 1e8 times the standard deviation,
so everything here centres before it squares, and then removes what rounding left in the mean.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BoolArray, FloatArray, IndexArray

CONSTANT_RATIO = 1e-12
# Sums of squares that float32 holds, with room for what is made of them.
SMALLEST_SINGLE, LARGEST_SINGLE = 1e-28, 1e28
BLOCK_BYTES = 1 << 22
_PIECE = 1 << 22


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
        """Columns whose standard deviation is rounding noise beside their mean."""
        return np.sqrt(self.variance) <= CONSTANT_RATIO * np.abs(self.mean)

    def subset(self, columns: IndexArray) -> "ColumnMoments":
        """Moments of some of the columns."""
        return ColumnMoments(self.n_samples, self.mean[columns], self.sum_of_squares[columns])

    def scaled(self, factors: FloatArray) -> "ColumnMoments":
        """Moments of the columns times ``factors``."""
        return ColumnMoments(self.n_samples, self.mean * factors, self.sum_of_squares * factors**2)

    def precision_for(self, dtype: Any) -> np.dtype[Any]:
        """The precision in which columns of ``dtype`` can be multiplied: their own, if it holds
        their squares; float64 where those of float32 would overflow or vanish.
        """
        squares = self.sum_of_squares[self.sum_of_squares > 0.0]
        held = np.all((squares > SMALLEST_SINGLE) & (squares < LARGEST_SINGLE))
        return np.dtype(dtype) if held else np.dtype(np.float64)


def row_blocks(n_samples: int, n_features: int, n_bytes: int = BLOCK_BYTES) -> list[slice]:
    """Slices over the rows, each of ``n_bytes`` of float64; the default fits in a cache."""
    step = max(1, n_bytes // (8 * max(n_features, 1)))
    return [slice(start, min(start + step, n_samples)) for start in range(0, n_samples, step)]


SPAN_OF_UNITS = 1e4
"""Past this ratio of variances, columns have different units."""


@dataclass(frozen=True)
class VarianceSpan:
    """How far the variances of columns are apart."""

    ratio: float
    """The largest over the lower quartile, so that some quiet columns do not count."""
    low: int
    """The column at the lower quartile."""
    high: int

    @property
    def has_mixed_units(self) -> bool:
        """Whether it is so large that the columns must have different units."""
        return SPAN_OF_UNITS < self.ratio < np.inf


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
    """In pieces, so that nothing as long as the stored values is formed."""
    n_samples, n_features = X.shape
    total = np.zeros(n_features)
    stored = np.zeros(n_features)
    for piece in _pieces(X):
        total[piece.columns] += piece.sums(piece.values)
        stored[piece.columns] += piece.counts()
    mean = total / n_samples
    absent = n_samples - stored
    residue, squares = -absent * mean, absent * mean * mean
    for piece in _pieces(X):
        centred = piece.values - piece.of_entries(mean)
        residue[piece.columns] += piece.sums(centred)
        squares[piece.columns] += piece.sums(np.square(centred, out=centred))
    return _correct_mean(n_samples, mean, residue, squares)


@dataclass(frozen=True)
class _Piece:
    """Some rows of a CSR matrix, or some columns of a CSC matrix.

    Columns are summed by products with ones, four times as fast as `numpy.bincount`.
    """

    columns: slice
    """Which columns of the matrix it has."""
    pattern: Any
    """A matrix of this piece whose values are set before every product."""
    values: FloatArray
    """The stored values."""

    def sums(self, values: FloatArray) -> FloatArray:
        """The sum of such values of the entries, for every column."""
        self.pattern.data = values
        return np.asarray(self.pattern.T @ np.ones(self.pattern.shape[0]))

    def counts(self) -> FloatArray:
        """The number of entries of every column."""
        if self.pattern.format == "csc":
            return np.diff(self.pattern.indptr).astype(np.float64)
        n_columns = self.pattern.shape[1]
        return np.bincount(self.pattern.indices, minlength=n_columns).astype(np.float64)

    def of_entries(self, values: FloatArray) -> FloatArray:
        """The value of the column of every entry."""
        if self.pattern.format == "csc":
            return np.repeat(values[self.columns], np.diff(self.pattern.indptr))
        return np.take(values, self.pattern.indices)


def _pieces(X: Any) -> Iterator[_Piece]:
    """A few million stored entries at a time; nothing but their values is copied."""
    n_major = len(X.indptr) - 1
    start = 0
    while start < n_major:
        # As many rows (or columns) as have so many entries, and one at least.
        stop = int(np.searchsorted(X.indptr, X.indptr[start] + _PIECE, "right")) - 1
        stop = max(stop, start + 1)
        entries = slice(X.indptr[start], X.indptr[stop])
        by_rows = X.format == "csr"
        columns = slice(0, X.shape[1]) if by_rows else slice(start, stop)
        shape = (stop - start, X.shape[1]) if by_rows else (X.shape[0], stop - start)
        values = X.data[entries].astype(np.float64, copy=False)
        pattern = (sp.csr_array if by_rows else sp.csc_array)(shape)
        # Set one by one: handed to the constructor, views of a larger array are copied.
        pattern.indices = X.indices[entries]
        pattern.indptr = X.indptr[start : stop + 1] - X.indptr[start]
        yield _Piece(columns, pattern, values)
        start = stop


def _correct_mean(
    n_samples: int, mean: FloatArray, residue: FloatArray, squares: FloatArray
) -> ColumnMoments:
    """Shift the provisional mean by what the centred columns still sum to."""
    correction = residue / n_samples
    exact = np.maximum(squares - residue * correction, 0.0)
    return ColumnMoments(n_samples, mean + correction, exact)
