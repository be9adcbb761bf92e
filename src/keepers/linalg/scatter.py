"""The total scatter S = (X - 1 mean')' (X - 1 mean') as an operator, for every storage of X.

`as_scatter` looks at the data once and returns the operator whose products are cheapest:

`DenseScatter` where forming S pays for itself, with one product S V; otherwise `FactoredScatter`,
with the two thin products Xc'(Xc V), which never make a sparse X dense.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BoolArray, FloatArray, IndexArray, SmallSide, SymmetricOperator
from keepers.linalg.moments import ColumnMoments, gram, row_blocks, stored_columns

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


@dataclass(frozen=True)
class DenseScatter:
    """S held as a d x d array."""

    matrix: FloatArray

    @property
    def size(self) -> int:
        """Number of features, d."""
        return int(self.matrix.shape[0])

    def matmat(self, V: FloatArray) -> FloatArray:
        """S V."""
        return (V.T @ self.matrix).T

    def diagonal(self) -> FloatArray:
        """Centred sum of squares of every feature."""
        return self.matrix.diagonal()

    def restrict(self, rows: IndexArray) -> "DenseScatter":
        """S on some of the features."""
        return DenseScatter(self.matrix[np.ix_(rows, rows)])

    def dense(self) -> FloatArray:
        """S itself."""
        return self.matrix

    @cached_property
    def _side(self) -> SmallSide:
        return SmallSide(self.matrix, lambda vectors, _: vectors)

    def small_side(self) -> SmallSide | None:
        """S is its own small side, if small enough to decompose."""
        return self._side if self.size <= SMALL_SIDE else None


@dataclass(frozen=True)
class FactoredScatter:
    """S known through X and the column means; nothing of size d x d is formed."""

    X: Any
    moments: ColumnMoments

    @property
    def size(self) -> int:
        """Number of features, d."""
        return int(self.X.shape[1])

    @property
    def n_rows(self) -> int:
        """Number of rows of X."""
        return int(self.X.shape[0])

    def matmat(self, V: FloatArray) -> FloatArray:
        """Xc'(Xc V); the means are taken off the two thin products."""
        return self.back(self.times(V))

    def times(self, V: FloatArray) -> FloatArray:
        """Xc V."""
        product = np.asarray(self.X @ V.astype(self.X.dtype, copy=False))
        projected = product.astype(np.float64, copy=False)
        if np.any(self.moments.mean):
            projected -= self.moments.mean @ V
            projected -= projected.mean(axis=0)  # what rounding left would be multiplied by it
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
        if sp.issparse(self.X):  # a mean that costs digits was taken off (`without_offsets`)
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
        """Centred sum of squares of every feature."""
        return self.moments.sum_of_squares

    def take(self, rows: IndexArray) -> "FactoredScatter":
        """S on some of the features, through X without the other columns."""
        return replace(self, X=self.X[:, rows], moments=self.moments.subset(rows))

    def restrict(self, rows: IndexArray) -> "FactoredScatter | DenseScatter":
        """The same, but S is formed if few are left."""
        part = self.take(rows)
        return DenseScatter(part.dense()) if forming_pays(part.n_rows, part.size) else part

    def dense(self) -> FloatArray:
        """S itself."""
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
    """Whether S formed once is cheaper than two thin products with X each time.

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
    """The scatter of X through X, which is centred in a copy only where that saves digits."""
    if sp.issparse(X):
        return FactoredScatter(*without_offsets(X, moments))
    if np.any(has_offset(moments)):
        centred = (X - moments.mean).astype(X.dtype, copy=False)
        return FactoredScatter(centred, replace(moments, mean=np.zeros_like(moments.mean)))
    return FactoredScatter(X, moments)


def has_offset(moments: ColumnMoments) -> BoolArray:
    """Columns whose mean would cost digits if it were taken off products."""
    return np.asarray(np.abs(moments.mean) > HARMLESS_MEAN * np.sqrt(moments.variance))


def without_offsets(X: Any, moments: ColumnMoments) -> tuple[Any, ColumnMoments]:
    """A CSR or CSC matrix in which columns that have an offset are centred, and its moments.

    With a share f of its entries stored, a column's squared mean is at most f / (1 - f) times its
    variance: only columns with (almost) no implicit zero have an offset that costs digits. Where
    there is none, the stored values can be centred in the same pattern.
    """
    offset = has_offset(moments)
    if not np.any(offset):
        return X, moments
    n_samples, n_features = X.shape
    columns = stored_columns(X)
    full = offset & (np.bincount(columns, minlength=n_features) == n_samples)
    shift = np.where(full, moments.mean, 0.0)
    data = (X.data - shift[columns]).astype(X.dtype, copy=False)
    centred = type(X)((data, X.indices, X.indptr), shape=X.shape)
    return centred, replace(moments, mean=moments.mean - shift)
