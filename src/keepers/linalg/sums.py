"""What is summed over the blocks of a table: a sketch, the scatter, products with it, the rows.

A sum takes blocks in (`add`) and other sums in (`merge`), in any grouping. Two sums about different
means are brought together by the rule of Chan, Golub and LeVeque: with d the difference of means,

    S = S_a + S_b + (n_a n_b / n) d d',

which needs no mean beforehand and, other than E[xx'] - E[x]E[x]', squares no offset.
"""

from collections.abc import Callable, Iterator
from typing import Any, Generic, Self

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray, IndexArray, RowBlock, Sum
from keepers.linalg import sparse_products
from keepers.linalg.moments import LARGEST_SINGLE, SMALLEST_SINGLE, ColumnMoments, row_blocks
from keepers.linalg.shifted import NotFiniteError, ShiftedRows, less_full_columns, near_own_mean
from keepers.linalg.sketch import TableSketch, sketch_vectors

__all__ = [
    "ProductSum",
    "RowCollection",
    "ScatterSum",
    "SketchSum",
    "SumWithSketch",
    "sketch_of_rows",
]

# Blocks after which outer products that were put off are made.
_PUT_OFF = 64
# Into which a block is cut where its rows have to be copied in double precision.
_PIECES = 4


class RunningMean:
    """Rows counted, and their mean as a fixed point plus a small rest.

    As one number, a mean of 1e8 would be rounded at 1e-8, and differences between means with it.
    """

    def __init__(self, n_features: int) -> None:
        self.n_samples = 0
        self.point: FloatArray = np.zeros(n_features)
        self.rest: FloatArray = np.zeros(n_features)

    def take(self, n_rows: int, point: FloatArray, rest: FloatArray) -> FloatArray:
        """Take in rows with mean point + rest; returns sqrt(n_a n_b / n) times the difference."""
        if self.n_samples == 0:
            self.n_samples, self.point, self.rest = n_rows, point, rest
            return np.zeros_like(rest)
        total = self.n_samples + n_rows
        between = (point - self.point) + (rest - self.rest)
        scaled = np.sqrt(self.n_samples * (n_rows / total)) * between
        self.rest = self.rest + n_rows / total * between
        self.n_samples = total
        return scaled

    @property
    def mean(self) -> FloatArray:
        """The mean of all rows so far."""
        return self.point + self.rest


class SketchSum:
    """Number of rows, means, centred sums of squares and a few products of the scatter.

    All in float64, also for float32 rows: then the sums do not depend on how rows were grouped,
    and a table can be recognised by them (`keepers.linalg.sketch`).
    """

    def __init__(self, columns: IndexArray) -> None:
        """``columns``: where the columns stand in the table."""
        self.columns = columns
        self.centre = RunningMean(len(columns))
        self.sum_of_squares: FloatArray = np.zeros(len(columns))
        self._vectors = sketch_vectors(columns)
        self.products: FloatArray = np.zeros(self._vectors.shape)

    @property
    def n_bytes(self) -> float:
        """Memory it takes."""
        return 4.0 * self.sum_of_squares.nbytes + 3.0 * self.products.nbytes

    def add(self, block: RowBlock) -> None:
        """Take a block in."""
        try:
            for values in _in_double(block.values):
                self._take(near_own_mean(RowBlock(values, block.origin)))
        except NotFiniteError:
            near_own_mean(block)  # counts the gaps of the whole block
            raise

    def _take(self, rows: ShiftedRows) -> None:
        between = self.centre.take(rows.n_rows, rows.shift, rows.mean_left)
        self.sum_of_squares += _column_squares(rows) + between**2
        with np.errstate(over="ignore", invalid="ignore"):
            self.products += rows.values.T @ (rows.values @ self._vectors)
            self.products -= np.outer(rows.mean_left, rows.sums @ self._vectors)
            self._add_between(between)

    def _add_between(self, between: FloatArray) -> None:
        self.products += np.outer(between, between @ self._vectors)

    def merge(self, other: Self) -> None:
        """Take in what was summed over other blocks."""
        centre = other.centre
        if centre.n_samples:
            between = self.centre.take(centre.n_samples, centre.point, centre.rest)
            self.sum_of_squares += other.sum_of_squares + between**2
            self.products += other.products
            self._add_between(between)

    def __getstate__(self) -> dict[str, Any]:
        """What travels: all but the vectors, which follow from the columns."""
        return {name: value for name, value in vars(self).items() if name != "_vectors"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the vectors again."""
        vars(self).update(state)
        self._vectors = sketch_vectors(self.columns)

    @property
    def sketch(self) -> TableSketch:
        """What was summed so far."""
        moments = ColumnMoments(self.centre.n_samples, self.centre.mean, self.sum_of_squares)
        return TableSketch(moments, self.columns, self.products)


def _in_double(values: Any) -> Iterator[Any]:
    """The rows in float64; those of another kind in pieces, so that the copies stay small."""
    if values.dtype == np.float64 or sp.issparse(values):
        yield values.astype(np.float64, copy=False)
        return
    step = -(-len(values) // _PIECES)
    for start in range(0, len(values), step):
        yield values[start : start + step].astype(np.float64)


def sketch_of_rows(X: Any, columns: IndexArray) -> TableSketch:
    """The sketch of a table in memory, whose columns stand at ``columns`` of the user's."""
    total = SketchSum(columns)
    X = X.tocsr() if sp.issparse(X) else X
    for rows in row_blocks(*X.shape):
        total.add(RowBlock(X[rows], "X"))
    return total.sketch


class SumWithSketch(Generic[Sum]):
    """A sum, and beside it the sketch of the same rows."""

    def __init__(self, begin: Callable[[], Sum], n_features: int) -> None:
        self.sum = begin()
        self._sketch_sum = SketchSum(np.arange(n_features))

    @property
    def n_bytes(self) -> float:
        """Memory of both."""
        return self.sum.n_bytes + self._sketch_sum.n_bytes

    def add(self, block: RowBlock) -> None:
        """Take a block in."""
        self.sum.add(block)
        self._sketch_sum.add(block)

    def merge(self, other: Self) -> None:
        """Take in what was summed over other blocks."""
        self.sum.merge(other.sum)
        self._sketch_sum.merge(other._sketch_sum)

    @property
    def sketch(self) -> TableSketch:
        """Of all rows so far."""
        return self._sketch_sum.sketch


def _column_squares(rows: ShiftedRows) -> FloatArray:
    """Sums of squares about the mean of the rows."""
    if sp.issparse(rows.values):
        data = rows.values.data.astype(np.float64, copy=False)
        squares = np.bincount(rows.values.indices, data * data, minlength=len(rows.sums))
    else:
        squares = np.einsum("ij,ij->j", rows.values, rows.values, dtype=np.float64)
    return np.maximum(squares - rows.sums * rows.mean_left, 0.0)


class ScatterSum:
    """Number of rows, mean and scatter, all in float64; products in the precision of the data.

    What a block adds beside its own product are two outer products. They are put off, and made of
    many blocks at once: one by one they took a tenth of the time.
    """

    def __init__(self, n_features: int) -> None:
        self.centre = RunningMean(n_features)
        self._summed: FloatArray = np.zeros((n_features, n_features))
        self._to_add: list[FloatArray] = []
        self._to_subtract: list[FloatArray] = []

    @property
    def n_bytes(self) -> float:
        """Memory it takes: the sum, and the product of a block."""
        return 2.0 * self._summed.nbytes

    @property
    def n_samples(self) -> int:
        """Rows so far."""
        return self.centre.n_samples

    @property
    def scatter(self) -> FloatArray:
        """The scatter of all rows so far."""
        if self._to_add:
            outer = np.array(self._to_add)
            self._summed += outer.T @ outer
            self._to_add.clear()
        if self._to_subtract:
            outer = np.array(self._to_subtract)
            self._summed -= outer.T @ outer
            self._to_subtract.clear()
        return self._summed

    def add(self, block: RowBlock) -> None:
        """Take a block in."""
        rows = near_own_mean(block)
        if sp.issparse(rows.values):
            self._summed += sparse_products.gram(rows.values)
        else:
            self._summed += _gram(rows.values)
        self._to_subtract.append(rows.sums / np.sqrt(rows.n_rows))
        self._to_add.append(self.centre.take(rows.n_rows, rows.shift, rows.mean_left))
        if len(self._to_add) >= _PUT_OFF:
            _ = self.scatter

    def merge(self, other: Self) -> None:
        """Take in what was summed over other blocks."""
        centre = other.centre
        if centre.n_samples:
            self._summed += other.scatter
            self._to_add.append(self.centre.take(centre.n_samples, centre.point, centre.rest))

    @property
    def moments(self) -> ColumnMoments:
        """Moments of all rows so far."""
        squares = np.maximum(self.scatter.diagonal(), 0.0)
        return ColumnMoments(self.centre.n_samples, self.centre.mean, squares)


def _gram(values: FloatArray) -> FloatArray:
    """Z'Z in the precision of Z, or in float64 where its squares overflow or vanish in its own."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = values.T @ values
    if values.dtype == np.float64:
        return product
    squares = product.diagonal()
    vanished = np.flatnonzero(squares < SMALLEST_SINGLE)
    if np.all(squares < LARGEST_SINGLE) and not values[:, vanished].any():
        return product
    double = values.astype(np.float64)
    return double.T @ double


class ProductSum:
    """Xc'(Xc V), where the mean of the table is known."""

    def __init__(self, mean: FloatArray, V: FloatArray, offset: bool, dtype: Any) -> None:
        """``offset``: whether some mean is large beside the spread of its column; ``dtype``: the
        precision of the products.
        """
        self.dtype = np.dtype(dtype)
        self.mean = mean
        self.V = V
        self.offset = offset
        self.product: FloatArray = np.zeros(V.shape)
        self.n_samples = 0
        self.sums: FloatArray = np.zeros(len(mean))
        """Of the rows less the mean: zero up to rounding, if they are those of the mean."""

    @property
    def n_bytes(self) -> float:
        """Memory it takes: the sum, and the product of a block."""
        return 2.0 * (self.product.nbytes + self.sums.nbytes)

    def add(self, block: RowBlock) -> None:
        """Take a block in."""
        X, left = self._less_mean(block.values.astype(self.dtype, copy=False))
        projected = (X @ self.V.astype(X.dtype, copy=False)).astype(np.float64, copy=False)
        projected -= left @ self.V
        n_rows = len(projected)
        with_sums = np.column_stack([projected, np.ones(n_rows)])
        found = X.T @ with_sums.astype(X.dtype, copy=False)
        self.product += found[:, :-1]
        self.product -= np.outer(left, projected.sum(axis=0))
        self.sums += found[:, -1] - n_rows * left
        self.n_samples += n_rows

    def __getstate__(self) -> dict[str, Any]:
        """What a worker sends back: the sums alone, which are all that can be merged."""
        return {name: getattr(self, name) for name in ("product", "n_samples", "sums")}

    def _less_mean(self, X: Any) -> tuple[Any, FloatArray]:
        """The rows less most of the mean, and what is left of the mean in them."""
        if not sp.issparse(X):
            point = self.mean.astype(X.dtype)
            return X - point, self.mean - point
        if not self.offset:
            return X, self.mean
        rows = less_full_columns(X, self.mean)
        return rows.values, self.mean - rows.shift

    def merge(self, other: Self) -> None:
        """Take in what was summed over other blocks."""
        self.product += other.product
        self.n_samples += other.n_samples
        self.sums += other.sums


class RowCollection:
    """The rows themselves, to be held in memory."""

    n_bytes = float("inf")  # rows have an order

    def __init__(self) -> None:
        self.pieces: list[Any] = []

    def add(self, block: RowBlock) -> None:
        """Take a block in."""
        self.pieces.append(block.values)

    def merge(self, other: Self) -> None:
        """Take in the rows that follow."""
        self.pieces += other.pieces

    @property
    def n_samples(self) -> int:
        """Rows so far."""
        return sum(piece.shape[0] for piece in self.pieces)

    def stacked(self) -> Any:
        """One matrix; the pieces are given up on the way, so that memory holds one copy."""
        if sp.issparse(self.pieces[0]):
            whole = sp.vstack(self.pieces, format="csr")
            self.pieces.clear()
            return whole
        whole = np.empty((self.n_samples, self.pieces[0].shape[1]), dtype=self.pieces[0].dtype)
        self.pieces.reverse()
        end = 0
        while self.pieces:
            piece = self.pieces.pop()
            whole[end : end + len(piece)] = piece
            end += len(piece)
        return whole
