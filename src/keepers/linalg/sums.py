"""What is summed over the blocks of a table: a sketch, the scatter, products with it, the rows.

A sum takes blocks in (`add`) and other sums in (`merge`), in any grouping. Two sums about different
means are brought together by the rule of Chan, Golub and LeVeque: with d the difference of means,

    S = S_a + S_b + (n_a n_b / n) d d',

which needs no mean beforehand and, other than E[xx'] - E[x]E[x]', squares no offset. Each block is
taken about a point near its own mean, and what the columns then still sum to is kept.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers._protocols import BlockSum, FloatArray, IndexArray, ResumableSum, RowBlock
from keepers.exceptions import DataError, shorten
from keepers.linalg import storage
from keepers.linalg.moments import LARGEST_SINGLE, SMALLEST_SINGLE, ColumnMoments, row_blocks
from keepers.linalg.sketch import TableSketch, sketch_vectors

# Blocks after which outer products that were put off are made.
_PUT_OFF = 64
# Into which a block is cut where its rows have to be copied in double precision.
_PIECES = 4
# Columns that a message names.
_NAMED = 5

State = Mapping[str, NDArray[Any]]
"""What was summed so far, as arrays for a file."""


Resumable = TypeVar("Resumable", bound=ResumableSum)


class NotFiniteError(DataError):
    """A block holds NaN or infinity."""

    def __init__(self, origin: str, counts: dict[int, int]) -> None:
        super().__init__(origin, counts)
        self.origin = origin
        self.counts = counts

    def __str__(self) -> str:
        return self.with_names(None)

    def with_names(self, names: Any) -> str:
        """The message, with names of columns instead of their numbers if there are names."""
        labels = [
            f"{shorten(column if names is None else str(names[column]))} ({count})"
            for column, count in self.counts.items()
        ]
        shown = ", ".join(labels[:_NAMED])
        if len(labels) > _NAMED:
            shown += f" and {len(labels) - _NAMED} more"
        return (
            f"Values must be finite numbers; {self.origin} holds NaN or infinity in these columns "
            f"(how many): {shown}. Leave out the columns or the rows, or fill the gaps first."
        )


@dataclass(frozen=True)
class ShiftedRows:
    """Rows less ``shift``."""

    values: Any
    """Array or CSR matrix, in the precision of the data."""
    shift: FloatArray
    """float64; the same for all rows."""
    sums: FloatArray
    """What the columns of ``values`` sum to, float64."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def mean_left(self) -> FloatArray:
        """The mean of ``values``: small for dense rows."""
        return self.sums / self.n_rows

    @property
    def squares(self) -> FloatArray:
        """Sums of squares of the columns about the mean of the rows."""
        return np.maximum(self._squares() - self.sums * self.mean_left, 0.0)

    def _squares(self) -> FloatArray:
        return np.asarray(np.einsum("ij,ij->j", self.values, self.values, dtype=np.float64))

    def gram(self) -> FloatArray:
        """Z'Z in the precision of Z, or in float64 where its squares overflow or vanish in it."""
        Z = self.values
        with np.errstate(over="ignore", invalid="ignore"):
            product = Z.T @ Z
        if Z.dtype == np.float64:
            return product
        squares = product.diagonal()
        vanished = np.flatnonzero(squares < SMALLEST_SINGLE)
        if np.all(squares < LARGEST_SINGLE) and not Z[:, vanished].any():
            return product
        double = Z.astype(np.float64)
        return double.T @ double


class SparseShiftedRows(ShiftedRows):
    """Rows of a CSR matrix less ``shift``, which is 0 in columns with implicit zeros."""

    def _squares(self) -> FloatArray:
        data = self.values.data.astype(np.float64, copy=False)
        squares = np.bincount(self.values.indices, data * data, minlength=len(self.sums))
        return np.asarray(squares, dtype=np.float64)

    def gram(self) -> FloatArray:
        """Z'Z in float64."""
        return storage.gram(self.values)


def shift_to_mean(block: RowBlock) -> ShiftedRows:
    """The rows of a block less (roughly) their mean; of a CSR block, only columns without zeros.

    In a column that has implicit zeros the squared mean is at most f / (1 - f) times the variance,
    f being the share of stored entries, so leaving its mean in costs few digits.
    """
    return _sparse_near_mean(block) if sp.issparse(block.values) else _dense_near_mean(block)


def _dense_near_mean(block: RowBlock) -> ShiftedRows:
    values = block.values
    ones = np.ones(len(values), dtype=values.dtype)
    with np.errstate(all="ignore"):
        point = (ones @ values) / values.dtype.type(len(values))
        if not np.isfinite(point).all():
            point = _careful_mean(block)
    shifted = values - point
    sums = (ones @ shifted).astype(np.float64, copy=False)
    return ShiftedRows(shifted, point.astype(np.float64, copy=False), sums)


def _careful_mean(block: RowBlock) -> FloatArray:
    """The mean where summing in the precision of the data gave no number."""
    finite = np.isfinite(block.values)
    if not finite.all():
        raise NotFiniteError(block.origin, _counts((~finite).sum(axis=0)))
    return np.asarray((block.values / len(block.values)).sum(axis=0))


def _sparse_near_mean(block: RowBlock) -> SparseShiftedRows:
    X = block.values
    n_rows, n_columns = X.shape
    data = X.data.astype(np.float64, copy=False)
    sums = np.bincount(X.indices, weights=data, minlength=n_columns)
    if not np.isfinite(sums).all():
        bad = ~np.isfinite(data)
        if bad.any():
            counts = np.bincount(X.indices[bad], minlength=n_columns)
            raise NotFiniteError(block.origin, _counts(counts))
    return centre_full_columns(X, sums / n_rows)


def centre_full_columns(X: Any, mean: FloatArray) -> SparseShiftedRows:
    """A CSR matrix with ``mean`` taken off the stored values of the columns that have no zero."""
    n_rows, n_columns = X.shape
    full = np.bincount(X.indices, minlength=n_columns) == n_rows
    shift = np.where(full, mean, 0.0)
    if full.any():
        data = (X.data - shift[X.indices]).astype(X.dtype, copy=False)
        X = type(X)((data, X.indices, X.indptr), shape=X.shape)
    sums = np.bincount(X.indices, weights=X.data, minlength=n_columns).astype(np.float64)
    return SparseShiftedRows(X, shift, sums)


def refuse_not_finite(block: RowBlock, *, allow_nan: bool = False) -> None:
    """Raise `NotFiniteError` if a value of the block is NaN (unless allowed) or infinite.

    Column sums tell, at the price of one product with a vector; only where they are not finite,
    which large finite values can do as well, are the values looked at one by one.
    """
    values = block.values
    if allow_nan:
        infinite = np.isinf(values.data if sp.issparse(values) else values)
        columns = values.indices[infinite] if sp.issparse(values) else np.nonzero(infinite)[1]
        if len(columns):
            raise NotFiniteError(block.origin, _counts(np.bincount(columns)))
        return
    with np.errstate(all="ignore"):
        if sp.issparse(values):
            sums = values.data.sum(dtype=np.float64)
        else:
            sums = np.ones(len(values), dtype=values.dtype) @ values
    if not np.isfinite(sums).all():
        shift_to_mean(block)


def _counts(by_column: Any) -> dict[int, int]:
    return {int(column): int(by_column[column]) for column in np.flatnonzero(by_column)}


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

    def state(self) -> dict[str, NDArray[Any]]:
        """Count, point and rest."""
        return {"n_samples": np.array(self.n_samples), "point": self.point, "rest": self.rest}

    def restored(self, state: State) -> "RunningMean":
        """The one that had this state."""
        twin = RunningMean(0)
        twin.n_samples = _count_in(state)
        twin.point, twin.rest = (_floats_in(state, name, self.point.shape) for name in _OF_MEAN)
        return twin


_OF_MEAN = ("point", "rest")


def _count_in(state: State) -> int:
    """The number of rows in a state from a file."""
    count = state.get("n_samples")
    if count is None or count.dtype.kind != "i" or count.shape != () or not 0 < count < 2**62:
        raise ValueError("n_samples")
    return int(count)


def _floats_in(state: State, name: str, shape: tuple[int | None, ...]) -> FloatArray:
    """An array of a state from a file; a length of None may be any."""
    found = state.get(name)
    if found is None or found.dtype != np.float64 or found.ndim != len(shape):
        raise ValueError(name)
    if any(there not in (None, here) for here, there in zip(found.shape, shape, strict=True)):
        raise ValueError(name)
    return found


def _with_prefix(prefix: str, state: State) -> dict[str, NDArray[Any]]:
    return {prefix + name: array for name, array in state.items()}


def _without_prefix(prefix: str, state: State) -> dict[str, NDArray[Any]]:
    return {name[len(prefix) :]: state[name] for name in state if name.startswith(prefix)}


class SketchSum(BlockSum):
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
        try:
            for values in _double_pieces(block.values):
                self._take(shift_to_mean(RowBlock(values, block.origin)))
        except NotFiniteError:
            shift_to_mean(block)  # counts the gaps of the whole block
            raise

    def _take(self, rows: ShiftedRows) -> None:
        between = self.centre.take(rows.n_rows, rows.shift, rows.mean_left)
        self.sum_of_squares += rows.squares + between**2
        with np.errstate(over="ignore", invalid="ignore"):
            self.products += rows.values.T @ (rows.values @ self._vectors)
            self.products -= np.outer(rows.mean_left, rows.sums @ self._vectors)
            self._add_between(between)

    def _add_between(self, between: FloatArray) -> None:
        self.products += np.outer(between, between @ self._vectors)

    def merge(self, other: Self) -> None:
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
    def n_samples(self) -> int:
        """Rows so far."""
        return self.centre.n_samples

    def parameters(self) -> tuple[Any, ...]:
        """The columns."""
        return (self.columns,)

    def state(self) -> dict[str, NDArray[Any]]:
        """Means, squares and products."""
        sums = {"sum_of_squares": self.sum_of_squares, "products": self.products}
        return self.centre.state() | sums

    def restore(self, state: State) -> None:
        """Continue from a state."""
        centre = self.centre.restored(state)
        squares = _floats_in(state, "sum_of_squares", self.sum_of_squares.shape)
        products = _floats_in(state, "products", self.products.shape)
        self.centre, self.sum_of_squares, self.products = centre, squares, products

    @property
    def sketch(self) -> TableSketch:
        """What was summed so far."""
        moments = ColumnMoments(self.centre.n_samples, self.centre.mean, self.sum_of_squares)
        return TableSketch(moments, self.columns, self.products)


def _double_pieces(values: Any) -> Iterator[Any]:
    """The rows in float64; those of another kind in pieces, so that the copies stay small."""
    if values.dtype == np.float64:
        yield values
        return
    n_rows = values.shape[0]
    step = -(-n_rows // _PIECES)
    for start in range(0, n_rows, step):
        yield values[start : start + step].astype(np.float64)


def sketch_of_rows(X: Any, columns: IndexArray) -> TableSketch:
    """The sketch of a table in memory, whose columns stand at ``columns`` of the user's."""
    total = SketchSum(columns)
    X = storage.by_rows(X)
    for rows in row_blocks(*X.shape):
        total.add(RowBlock(X[rows], "X"))
    return total.sketch


class SumWithSketch(BlockSum, Generic[Resumable]):
    """A sum, and beside it the sketch of the same rows."""

    def __init__(self, begin: Callable[[], Resumable], n_features: int) -> None:
        self.sum = begin()
        self._sketch_sum = SketchSum(np.arange(n_features))

    @property
    def n_bytes(self) -> float:
        """Memory of both."""
        return self.sum.n_bytes + self._sketch_sum.n_bytes

    def add(self, block: RowBlock) -> None:
        self.sum.add(block)
        self._sketch_sum.add(block)

    def merge(self, other: Self) -> None:
        self.sum.merge(other.sum)
        self._sketch_sum.merge(other._sketch_sum)

    @property
    def n_samples(self) -> int:
        """Rows so far."""
        return self._sketch_sum.n_samples

    def parameters(self) -> tuple[Any, ...]:
        """Those of both."""
        inner = (type(self.sum).__name__, *self.sum.parameters())
        return (*inner, *self._sketch_sum.parameters())

    def state(self) -> dict[str, NDArray[Any]]:
        """Those of both."""
        inner = _with_prefix("sum_", self.sum.state())
        return inner | _with_prefix("sketch_", self._sketch_sum.state())

    def restore(self, state: State) -> None:
        """Continue from a state."""
        inner, beside = (_without_prefix(prefix, state) for prefix in ("sum_", "sketch_"))
        if _count_in(inner) != _count_in(beside):
            raise ValueError("n_samples")
        before = self._sketch_sum
        sketch = SketchSum(before.columns)
        sketch.restore(beside)
        self.sum.restore(inner)
        self._sketch_sum = sketch

    @property
    def sketch(self) -> TableSketch:
        """Of all rows so far."""
        return self._sketch_sum.sketch


class ScatterSum(BlockSum):
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
        rows = shift_to_mean(block)
        self._summed += rows.gram()
        self._to_subtract.append(rows.sums / np.sqrt(rows.n_rows))
        self._to_add.append(self.centre.take(rows.n_rows, rows.shift, rows.mean_left))
        if len(self._to_add) >= _PUT_OFF:
            _ = self.scatter

    def merge(self, other: Self) -> None:
        centre = other.centre
        if centre.n_samples:
            self._summed += other.scatter
            self._to_add.append(self.centre.take(centre.n_samples, centre.point, centre.rest))

    def parameters(self) -> tuple[Any, ...]:
        """The number of columns."""
        return (len(self._summed),)

    def state(self) -> dict[str, NDArray[Any]]:
        """The sum, and what was put off, which is not made now: that would change last digits."""
        width = len(self._summed)
        return self.centre.state() | {
            "summed": self._summed,
            "to_add": np.array(self._to_add).reshape(-1, width),
            "to_subtract": np.array(self._to_subtract).reshape(-1, width),
        }

    def restore(self, state: State) -> None:
        """Continue from a state."""
        centre = self.centre.restored(state)
        summed = _floats_in(state, "summed", self._summed.shape)
        put_off = [
            _floats_in(state, name, (None, len(summed))) for name in ("to_add", "to_subtract")
        ]
        self.centre, self._summed = centre, summed
        self._to_add, self._to_subtract = (list(outer) for outer in put_off)

    @property
    def moments(self) -> ColumnMoments:
        """Moments of all rows so far."""
        squares = np.maximum(self.scatter.diagonal(), 0.0)
        return ColumnMoments(self.centre.n_samples, self.centre.mean, squares)


class ProductSum(BlockSum):
    """Xc'(Xc V), where the mean of the table is known."""

    def __init__(self, mean: FloatArray, V: FloatArray, offset: bool, dtype: Any) -> None:
        """``offset``: whether some mean is large beside the deviation of its column; ``dtype``:
        the precision of the products.
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
        X, left = self._subtract_mean(block.values.astype(self.dtype, copy=False))
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

    def _subtract_mean(self, X: Any) -> tuple[Any, FloatArray]:
        """The rows less most of the mean, and what is left of the mean in them."""
        if not sp.issparse(X):
            point = self.mean.astype(X.dtype)
            return X - point, self.mean - point
        if not self.offset:
            return X, self.mean
        rows = centre_full_columns(X, self.mean)
        return rows.values, self.mean - rows.shift

    def merge(self, other: Self) -> None:
        self.product += other.product
        self.n_samples += other.n_samples
        self.sums += other.sums

    def parameters(self) -> tuple[Any, ...]:
        """The mean, the block, and how they are multiplied."""
        return (self.mean, self.V, self.offset, str(self.dtype))

    def state(self) -> dict[str, NDArray[Any]]:
        """What was summed."""
        count = {"n_samples": np.array(self.n_samples)}
        return count | {"product": self.product, "sums": self.sums}

    def restore(self, state: State) -> None:
        """Continue from a state."""
        n_samples = _count_in(state)
        product = _floats_in(state, "product", self.product.shape)
        sums = _floats_in(state, "sums", self.sums.shape)
        self.n_samples, self.product, self.sums = n_samples, product, sums


class RowCollection(BlockSum):
    """The rows themselves, to be held in memory."""

    n_bytes = float("inf")  # rows have an order

    def __init__(self) -> None:
        self.pieces: list[Any] = []

    def add(self, block: RowBlock) -> None:
        self.pieces.append(block.values)

    def merge(self, other: Self) -> None:
        """Take in the rows that follow."""
        self.pieces += other.pieces

    @property
    def n_samples(self) -> int:
        """Rows so far."""
        return sum(piece.shape[0] for piece in self.pieces)

    def stack(self) -> Any:
        """One matrix of all rows, which are given up here."""
        return storage.stack_rows(self.pieces)
