"""Columns about their means: moments, and the total scatter S = (X - 1 mean')' (X - 1 mean').

The textbook E[x^2] - E[x]^2 has no correct digit once the mean is 1e8 times the standard deviation.
Here values are centred before they are squared, and the mean that rounding leaves is removed.

`as_scatter` looks at the data once and returns S as the operator whose products are cheapest:
`DenseScatter` where forming S pays for itself, with one product S V; otherwise `FactoredScatter`,
with the two thin products Xc'(Xc V), which never make a sparse X dense.
"""

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BoolArray, FloatArray, IndexArray, SmallSide, SymmetricOperator

CONSTANT_RATIO = 1e-12
# Sums of squares that float32 holds, with room for what is made of them.
SMALLEST_SINGLE, LARGEST_SINGLE = 1e-28, 1e28
BLOCK_BYTES = 1 << 22
# From this share of stored entries on a product of dense rows is faster than one of sparse rows.
DENSE_SHARE = 0.04
_DENSE_ENTRIES = 1 << 22
# Above this ratio of mean to deviation, taking the mean off the product instead of off X would cost
# more than two of the digits of X: such data are centred in a copy.
HARMLESS_MEAN = 100.0
# A fit takes a few dozen products; forming S must be earned back by that many.
EXPECTED_PRODUCTS = 40
_GRAM_BYTES = 1 << 25
# S of a sparse X is formed if it has at most this number of entries for each one stored. With 1 to
# 3 it was earned back after 5 to 30 products, with 3 to 4 after 80 to 180, with more never.
_DENSE_PER_STORED = 2
# Up to this size a full eigendecomposition takes seconds, and is exact.
SMALL_SIDE = 3000
# The number of components where it is not known; it shifts the balance only a little.
_TYPICAL_WIDTH = 10


def by_rows(X: Any) -> Any:
    """X in the storage in which rows are cheap to take: CSR, if it is sparse."""
    return X.tocsr() if sp.issparse(X) else X


def by_columns(X: Any) -> Any:
    """X in the storage in which columns are cheap to take: CSC, if it is sparse."""
    return X.tocsc() if sp.issparse(X) else X


def as_array(X: Any) -> FloatArray:
    return np.asarray(X.toarray() if sp.issparse(X) else X)


def row_sums(X: Any) -> FloatArray:
    return np.asarray(X.sum(axis=1)).ravel()


def scale_columns(X: Any, factors: FloatArray) -> Any:
    """Every column of X times its factor, in the precision of X."""
    cast = factors.astype(X.dtype, copy=False)
    return (X @ sp.diags(cast)).asformat(X.format) if sp.issparse(X) else X * cast


def stack_rows(pieces: list[Any]) -> Any:
    """One matrix of all pieces, which are given up.

    Sparse (CSR) if one piece is, in double precision if one piece is.
    """
    is_sparse = any(sp.issparse(piece) for piece in pieces)
    whole = sp.vstack(pieces, format="csr") if is_sparse else np.concatenate(pieces)
    pieces.clear()
    return whole


def stored_columns(X: Any) -> IndexArray:
    """The column of every stored value of a CSR or CSC matrix."""
    if X.format == "csr":
        return np.asarray(X.indices)
    return np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))


def gram(X: Any) -> FloatArray:
    """X'X of a CSR or CSC matrix, as an array of float64."""
    n_rows, n_columns = X.shape
    total = np.zeros((n_columns, n_columns))
    step = max(1, _DENSE_ENTRIES // max(n_columns, 1))
    if X.nnz > DENSE_SHARE * n_rows * n_columns:
        for start in range(0, n_rows, step):
            rows = X[start : start + step].toarray()
            total += rows.T @ rows
        return total
    product = (X.T @ X).tocsr()
    for start in range(0, n_columns, step):
        total[start : start + step] = product[start : start + step].toarray()
    return total


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
    """The range of variances, from the lower quartile: a few quiet columns do not count."""

    ratio: float
    low: int
    """The column at the lower quartile."""
    high: int


def mixed_units(variances: FloatArray) -> VarianceSpan | None:
    """The span of the variances above 0 if only different units explain it; else None."""
    varies = np.flatnonzero(variances > 0.0)
    if not len(varies):
        return None
    order = varies[np.argsort(variances[varies], kind="stable")]
    low, high = int(order[(len(order) - 1) // 4]), int(order[-1])
    ratio = float(variances[high] / variances[low])
    return VarianceSpan(ratio, low, high) if 1e4 < ratio < np.inf else None


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
    mean = sum_entries(X, X.data) / n_samples
    absent = n_samples - np.bincount(columns, minlength=n_features)
    centred = X.data - mean[columns]
    residue = sum_entries(X, centred) - absent * mean
    squares = sum_entries(X, np.square(centred, out=centred)) + absent * mean * mean
    return _correct_mean(n_samples, mean, residue, squares)


def sum_entries(X: Any, values: FloatArray) -> FloatArray:
    """Column sums of such entries of X: a product, four times as fast as `numpy.bincount`."""
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


@dataclass(frozen=True)
class DenseScatter:
    """S held as a d x d array."""

    matrix: FloatArray

    @property
    def size(self) -> int:
        return int(self.matrix.shape[0])

    def matmat(self, V: FloatArray) -> FloatArray:
        return (V.T @ self.matrix).T

    def diagonal(self) -> FloatArray:
        return self.matrix.diagonal()

    def restrict(self, rows: IndexArray) -> "DenseScatter":
        return DenseScatter(self.matrix[np.ix_(rows, rows)])

    def dense(self) -> FloatArray:
        return self.matrix

    def small_side(self) -> SmallSide | None:
        side = SmallSide(self.matrix, lambda vectors, _: vectors)
        return side if self.size <= SMALL_SIDE else None


@dataclass(frozen=True)
class FactoredScatter:
    """S known through X and the column means; nothing of size d x d is formed."""

    X: Any
    moments: ColumnMoments

    @property
    def size(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    def matmat(self, V: FloatArray) -> FloatArray:
        """Xc'(Xc V); the means are taken off the two thin products."""
        return self.back(self.times(V))

    def times(self, V: FloatArray) -> FloatArray:
        """Xc V."""
        product = np.asarray(self.X @ V.astype(self.X.dtype, order="C", copy=False))
        projected = product.astype(np.float64, copy=False)
        if np.any(self.moments.mean):
            projected -= self.moments.mean @ V
        return projected

    def back(self, projected: FloatArray) -> FloatArray:
        """Xc' times a block of n rows; if X is to be centred, they sum to zero up to rounding."""
        P = projected.astype(self.X.dtype, copy=False)
        product = np.asarray(self.X.T @ P if sp.issparse(self.X) else (P.T @ self.X).T)
        result = product.astype(np.float64, copy=False)
        mean, leftover = self.moments.mean[:, np.newaxis], projected.sum(axis=0)
        if np.any(mean):
            for rows in row_blocks(*product.shape):
                result[rows] -= mean[rows] * leftover
        return result

    def sample_gram(self) -> FloatArray:
        """Xc Xc'."""
        if sp.issparse(self.X):  # a mean that costs digits was taken off (`as_factored`)
            gram = np.asarray((self.X @ self.X.T).toarray(), dtype=np.float64)
        else:
            gram = np.zeros((self.n_rows, self.n_rows))
            for columns in row_blocks(self.size, self.n_rows):
                mean = self.moments.mean[columns].astype(self.X.dtype, copy=False)
                centred = self.X[:, columns] - mean
                gram += centred @ centred.T
        if np.any(self.moments.mean):  # centring rows and columns about any point centres X
            gram -= gram.mean(axis=0)
            gram -= gram.mean(axis=1, keepdims=True)
        return gram

    def diagonal(self) -> FloatArray:
        return self.moments.sum_of_squares

    def take(self, rows: IndexArray) -> "FactoredScatter":
        """S on some of the features, through their columns."""
        return FactoredScatter(self.X[:, rows], self.moments.subset(rows))

    def restrict(self, rows: IndexArray) -> "FactoredScatter | DenseScatter":
        """The same, but S is formed if few are left."""
        part = self.take(rows)
        return DenseScatter(part.dense()) if forming_pays(part.n_rows, part.size) else part

    def dense(self) -> FloatArray:
        return centred_gram(self.X, self.moments.mean)

    def small_side(self) -> SmallSide | None:
        """S where d is small, Xc Xc' where n is; both have the same non-zero eigenvalues."""
        return self._side if min(self.n_rows, self.size) <= SMALL_SIDE else None

    @cached_property
    def _side(self) -> SmallSide:
        """Computed once: the spectrum, the bounds and the certificate share it."""
        if self.size <= self.n_rows:
            return SmallSide(self.dense(), lambda vectors, _: vectors)
        return SmallSide(
            self.sample_gram(), lambda vectors, values: self.back(vectors) / np.sqrt(values)
        )


def centred_gram(X: Any, mean: FloatArray) -> FloatArray:
    """(X - 1 mean')'(X - 1 mean') without a centred copy of X.

    Blocks of rows are multiplied in the precision of X and added up in float64.
    """
    n_samples, n_features = X.shape
    if sp.issparse(X):
        total = gram(X)
        for rows in row_blocks(*total.shape):
            total[rows] -= np.outer(n_samples * mean[rows], mean)
        return total
    total = np.zeros((n_features, n_features))
    point = mean.astype(X.dtype, copy=False)
    # Blocks no smaller than S itself, or adding them up would cost as much as multiplying.
    for rows in row_blocks(n_samples, n_features, max(_GRAM_BYTES, total.nbytes)):
        centred = X[rows] - point
        total += centred.T @ centred
    left = mean - point  # what rounding the mean to the precision of X has left in
    if left.any():
        total -= n_samples * np.outer(left, left)
    return total


def forming_pays(n_samples: int, n_features: int, block_width: int = _TYPICAL_WIDTH) -> bool:
    """True if S formed once is cheaper than two thin products with X each time.

    Forming takes n d^2 multiplications and additions (S is symmetric), a product with the formed
    S d^2 m, and a product with the factors 2 n d m. Blocks narrower than eight columns cost as much
    as eight, because reading the matrix takes the time.
    """
    width = max(block_width, 8)
    saved_per_product = n_features * width * (2 * n_samples - n_features)
    return n_samples * n_features**2 <= EXPECTED_PRODUCTS * saved_per_product


def as_scatter(
    X: Any, moments: ColumnMoments, block_width: int = _TYPICAL_WIDTH
) -> SymmetricOperator:
    """The scatter of X, in the form whose products with d x ``block_width`` are cheapest."""
    n_samples, n_features = X.shape
    # Up to a small side S is formed for its decomposition anyway.
    is_small = n_features <= min(n_samples, SMALL_SIDE)
    if sp.issparse(X):
        factored = as_factored(X, moments)
        pays = is_small and n_features**2 <= _DENSE_PER_STORED * X.nnz
        return DenseScatter(factored.dense()) if pays else factored
    if is_small or forming_pays(n_samples, n_features, block_width):
        return DenseScatter(centred_gram(X, moments.mean))
    return as_factored(X, moments)


def as_factored(X: Any, moments: ColumnMoments) -> FactoredScatter:
    """The scatter of X through X, which is centred in a copy only where that saves digits.

    With a share f of its entries stored, a column's squared mean is at most f / (1 - f) times its
    variance. So in a sparse X only columns with (almost) no implicit zero have a mean that costs
    digits. Where there is none, the stored values can be centred in the same pattern.
    """
    costly = np.abs(moments.mean) > HARMLESS_MEAN * np.sqrt(moments.variance)
    if not np.any(costly):
        return FactoredScatter(X, moments)
    if sp.issparse(X):
        X, shift = centre_full_columns(X, np.where(costly, moments.mean, 0.0))
    else:
        X, shift = (X - moments.mean).astype(X.dtype, copy=False), moments.mean
    return FactoredScatter(X, replace(moments, mean=moments.mean - shift))


def centre_full_columns(X: Any, mean: FloatArray) -> tuple[Any, FloatArray]:
    """A CSR or CSC matrix less ``mean`` in the columns without an implicit zero, and that shift."""
    columns = stored_columns(X)
    full = np.bincount(columns, minlength=X.shape[1]) == X.shape[0]
    shift = np.where(full, mean, 0.0)
    if np.any(shift):
        data = (X.data - shift[columns]).astype(X.dtype, copy=False)
        X = type(X)((data, X.indices, X.indptr), shape=X.shape)
    return X, shift
