"""Dask collections as tables in blocks, and files read by the workers of a Dask cluster.

A pass is one graph: a task per chunk makes a sum, a tree of tasks merges the sums in the order of
the rows, and the result alone travels to the caller. The grouping does not depend on the scheduler,
so threads and a cluster give the same digits. A worker that dies costs time only: its tasks, and
whatever the graph needs for them, run again elsewhere.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers._protocols import BlockSum, BoolArray, IndexArray, RowBlock, Sum
from keepers.data.blocks.local import LocalBlocks, known_sum, refuse_misshapen
from keepers.data.dask_cluster import compute, delayed
from keepers.data.limits import LARGEST_EXACT_INTEGER, largest_inexact, refuse_columns
from keepers.data.wording import duplicates, some_of
from keepers.exceptions import DataError, shorten

# Sums of d x d entries make a merge of many expensive to hold, one of few a long chain.
FAN_IN = 8
REAL = "biuf"


class ReadTask(NamedTuple):
    """Some rows: on a worker, ``read(columns, *values of sources)`` gives their blocks."""

    read: Callable[..., Iterator[RowBlock]]
    sources: Sequence[Any] = ()
    n_rows: int | None = None
    """Where it is known without reading them."""


@dataclass(frozen=True)
class DaskBlocks:
    """A `BlockTable` whose sums are made by Dask, on whatever scheduler is set.

    Nothing is kept between passes: data that are not persisted are computed, or read, again by
    every one of them. ``X = X.persist()`` before the fit pays where the memory of the cluster holds
    the table.
    """

    name: str
    n_features: int
    dtype: np.dtype[Any]
    tasks: Callable[[IndexArray | None], list[ReadTask]]
    """For the columns that are wanted, all rows in order."""
    n_samples: int | None = None
    n_stored: int | None = None
    is_sparse: bool = False
    feature_names: NDArray[np.object_] | None = None
    rereadable: bool = True
    is_local: bool = False

    @classmethod
    def of(cls, X: Any) -> "DaskBlocks":
        """The table that a Dask array or dataframe is.

        Chunks may be NumPy arrays or SciPy sparse matrices, and may split columns as well; how many
        rows they have need not be known, and those without any are skipped. Where the array
        says that its chunks are dense, the type of the first is looked at nevertheless, which costs
        that chunk: arrays made from delayed values often do not know better.
        """
        if hasattr(type(X), "numblocks"):
            return _of_array(X)
        if hasattr(type(X), "columns") and X.ndim == 2:
            return _of_dataframe(X)
        raise DataError(
            "Of the Dask collections, an array or a dataframe can be a table; got "
            f"{type(X).__name__}. Convert it, for example with dask.array.from_delayed."
        )

    @classmethod
    def of_parts(cls, parts: Sequence[LocalBlocks], name: str | None = None) -> "DaskBlocks":
        """The rows of several tables, one after the other, each read where a worker is free."""
        if not parts:
            raise DataError("A table needs at least one part; none was given.")
        first = parts[0]
        names: list[Any] = [part.feature_names for part in parts]
        for at, part in enumerate(parts):
            if part.n_features != first.n_features or not np.array_equal(names[at], names[0]):
                raise DataError(
                    f"All parts must have the same columns in the same order; {part.name} "
                    f"({part.n_features} columns) differs from {first.name} ({first.n_features}). "
                    "Leave it out, or write it again."
                )
        kind = _Kind(
            first.n_features,
            np.result_type(*(part.dtype for part in parts)),
            is_sparse=any(part.is_sparse for part in parts),
        )
        return cls(
            name=name or some_of([part.name for part in parts], shown=1),
            n_features=first.n_features,
            dtype=kind.dtype,
            tasks=lambda columns: [
                ReadTask(partial(_read_part, kind, part), n_rows=part.n_samples) for part in parts
            ],
            n_samples=known_sum(part.n_samples for part in parts),
            n_stored=known_sum(part.n_stored for part in parts),
            is_sparse=kind.is_sparse,
            feature_names=first.feature_names,
            rereadable=all(part.rereadable for part in parts),
        )

    def total(self, begin: Callable[[], Sum], columns: IndexArray | None = None) -> Sum:
        """Sum over all blocks: one graph, computed at once."""
        # Nodes of their own: named by every task, stored once. Scattered instead, they would be
        # lost for good with the worker that holds them.
        shared, chosen = delayed(begin), None if columns is None else delayed(columns)
        tasks = self.tasks(columns)
        sums = [
            delayed(partial(_sum_of, task.read, start))(shared, chosen, *task.sources)
            for task, start in zip(tasks, _starts(tasks), strict=True)
        ]
        result: Sum | None = compute(_merge_all(shared, sums))
        if result is None:
            raise DataError(f"A table needs at least one row; {self.name} has none. Check filters.")
        return result

    def count_rows(self) -> "DaskBlocks":
        """The same table with the number of rows of every task known, as far as it can be.

        Where one is not, a pass counts them: over the first column alone, which lets a reader of
        Parquet read no other, unless Dask then reads several partitions as one.
        """
        tasks = self.tasks(None)
        if not self.rereadable or all(task.n_rows is not None for task in tasks):
            return self
        first = np.zeros(1, dtype=np.intp)
        narrow = self.tasks(first)
        chosen, tasks = (first, narrow) if len(narrow) == len(tasks) else (None, tasks)
        counts = [delayed(partial(_count, task.read))(chosen, *task.sources) for task in tasks]
        known: list[int] = compute(delayed(_as_list)(*counts))
        return replace(
            self,
            tasks=lambda columns: _with_counts(self.tasks(columns), known),
            n_samples=sum(known),
        )


@dataclass(frozen=True)
class _Kind:
    """What all blocks of a table are, before columns are chosen."""

    n_features: int
    dtype: np.dtype[Any]
    is_sparse: bool

    def width(self, columns: IndexArray | None) -> int:
        """Number of columns of a block."""
        return self.n_features if columns is None else len(columns)

    def of(self, values: Any) -> Any:
        """The same values as an array, or as a CSR matrix without duplicate entries."""
        if not self.is_sparse:
            dense = values.toarray() if sp.issparse(values) else values
            return np.asarray(dense, dtype=self.dtype)
        rows = sp.csr_matrix(values, dtype=self.dtype)
        if not rows.has_canonical_format:
            rows = rows.copy()  # the chunk belongs to Dask, and may be in use elsewhere
            rows.sum_duplicates()
        return rows


def _of_array(X: Any) -> DaskBlocks:
    if X.ndim != 2 or X.dtype.kind not in REAL:
        raise DataError(
            "A table has two dimensions (samples, features) and holds real numbers; the Dask array "
            f"has {X.ndim} and holds {X.dtype}. Reshape it, or convert it with X.astype(float)."
        )
    n_samples, n_features = (known_sum(sizes) for sizes in X.chunks)
    if not n_features:
        raise DataError(
            "A table needs at least one column, and the number of columns must be known; the Dask "
            f"array has shape {X.shape}. X.compute_chunk_sizes() finds it out."
        )
    refuse_columns(n_features, "the Dask array")
    grid = X.to_delayed()
    is_sparse = sp.issparse(X._meta) or compute(delayed(sp.issparse)(grid[0, 0]))
    kind = _Kind(n_features, _float_type([X.dtype]), is_sparse)
    read = partial(_read_chunk, kind, X.chunks[1])
    tasks = [
        ReadTask(partial(read, f"chunk {at}"), row, known_sum([n_rows]))
        for at, (row, n_rows) in enumerate(zip(grid, X.chunks[0], strict=True))
    ]
    return DaskBlocks(
        name="the Dask array",
        n_features=n_features,
        dtype=kind.dtype,
        tasks=lambda columns: tasks,
        n_samples=n_samples,
        n_stored=None if is_sparse or n_samples is None else n_samples * n_features,
        is_sparse=is_sparse,
    )


def _of_dataframe(X: Any) -> DaskBlocks:
    names, types = list(X.columns), list(X.dtypes)
    refuse_columns(len(names), "the Dask dataframe")
    others = [
        f"{shorten(name)} ({dtype})"
        for name, dtype in zip(names, types, strict=True)
        if dtype.kind not in REAL
    ]
    if others or not names:
        raise DataError(
            f"Every column must be numeric; these are not: {some_of(others) or 'there is none'}. "
            "Drop them, or encode them (for example with dask.dataframe.get_dummies)."
        )
    if len(set(names)) < len(names):
        raise DataError(
            f"Column names must differ; there are duplicates: {some_of(duplicates(names))}. Rename "
            "all but one of each."
        )
    kind = _Kind(len(names), _float_type(types), is_sparse=False)

    def tasks(columns: IndexArray | None) -> list[ReadTask]:
        # Columns are chosen before the graph is made: a reader of Parquet then reads no others.
        frame = X if columns is None else selected_columns(X, columns)
        wanted = delayed(frame.columns)  # a node of its own: many names, stored once
        return [
            ReadTask(partial(_read_partition, kind, f"partition {at}"), [partition, wanted])
            for at, partition in enumerate(frame.to_delayed())
        ]

    return DaskBlocks(
        name="the Dask dataframe",
        n_features=len(names),
        dtype=kind.dtype,
        tasks=tasks,
        feature_names=np.array(names, dtype=object) if {*map(type, names)} == {str} else None,
    )


def _float_type(types: Iterable[Any]) -> np.dtype[Any]:
    """float32 if all are, otherwise float64."""
    single = all(dtype == np.float32 for dtype in types)
    return np.dtype(np.float32 if single else np.float64)


def _sum_of(
    read: Any, start: int | None, begin: Callable[[], Sum], columns: Any, *values: Any
) -> Sum | None:
    """What a worker does: the sum over the blocks of one task, or None if there are none.

    ``start`` is the number of the first row in the table, where it is known.
    """
    result: Sum | None = None
    for block in read(columns, *values):
        result = begin() if result is None else result
        result.add(replace(block, start=start))
        if start is not None:
            start += block.values.shape[0]
    return result


def _starts(tasks: Sequence[ReadTask]) -> list[int | None]:
    """The numbers of the first rows of tasks; None from the first unknown number of rows on."""
    starts: list[int | None] = []
    start: int | None = 0
    for task in tasks:
        starts.append(start)
        start = None if start is None or task.n_rows is None else start + task.n_rows
    return starts


def _with_counts(tasks: list[ReadTask], counts: list[int]) -> list[ReadTask]:
    """Tasks with their numbers of rows, unless partitions were read as one."""
    if len(tasks) != len(counts):
        return tasks
    return [task._replace(n_rows=count) for task, count in zip(tasks, counts, strict=True)]


def _count(read: Any, columns: IndexArray | None, *values: Any) -> int:
    """The number of rows of one task."""
    return sum(block.values.shape[0] for block in read(columns, *values))


def _as_list(*numbers: int) -> list[int]:
    return list(numbers)


def _read_chunk(
    kind: _Kind, widths: tuple[int, ...], origin: str, columns: IndexArray | None, *pieces: Any
) -> Iterator[RowBlock]:
    """A row of chunks, which hold some columns each."""
    matrices = [_as_matrix(kind, piece, origin) for piece in pieces]
    found = [matrix.shape for matrix in matrices]
    expected = [(found[0][0], width) for width in widths]
    if found != expected:
        at = next(at for at, shape in enumerate(found) if shape != expected[at])
        place = origin if len(widths) == 1 else f"{origin}, column chunk {at},"
        raise DataError(
            f"Every chunk must have the columns that the array declares; {place} has "
            f"{found[at][0]} rows x {found[at][1]} columns instead of {expected[at][0]} x "
            f"{expected[at][1]}. Make it again like the others, or leave it out."
        )
    if found[0][0] == 0:
        return
    side_by_side = sp.hstack if any(map(sp.issparse, matrices)) else np.hstack
    values: Any = matrices[0] if len(matrices) == 1 else side_by_side(matrices)
    chosen = values if columns is None else _columns_of(values, columns)
    _refuse_inexact([chosen.tocsr().data if sp.issparse(chosen) else chosen], origin)
    yield RowBlock(kind.of(chosen), origin)


def _as_matrix(kind: _Kind, piece: Any, origin: str) -> Any:
    """An array or a sparse matrix of real numbers; a masked value is a missing one."""
    if not (isinstance(piece, np.ndarray) or sp.issparse(piece)) or piece.ndim != 2:
        raise DataError(
            "Every chunk must be a NumPy array or a SciPy sparse matrix with two dimensions; "
            f"{origin} is a {type(piece).__name__} of shape {getattr(piece, 'shape', 'unknown')}. "
            "Convert the chunks with X.map_blocks."
        )
    if not _is_exact(piece.dtype, kind.dtype):
        raise DataError(
            f"Every chunk must hold real numbers that {kind.dtype} represents, as the array "
            f"declares; {origin} holds {piece.dtype}. Convert the chunks with X.map_blocks, or "
            "declare their type (dtype=)."
        )
    return np.ma.filled(piece.astype(np.float64), np.nan) if np.ma.isMA(piece) else piece


def _read_partition(
    kind: _Kind, origin: str, columns: IndexArray | None, frame: Any, wanted: Any
) -> Iterator[RowBlock]:
    """A data frame that holds the ``wanted`` columns only, in whatever order."""
    if len(frame) == 0:
        return
    if not frame.columns.equals(wanted):
        _refuse_other_columns(list(frame.columns), list(wanted), origin)
        frame = frame[list(wanted)]
    if not all(_is_exact(dtype, kind.dtype) for dtype in set(frame.dtypes)):
        others = [
            f"{shorten(name)} ({dtype})"
            for name, dtype in zip(frame.columns, frame.dtypes, strict=True)
            if not _is_exact(dtype, kind.dtype)
        ]
        raise DataError(
            f"Every column must hold real numbers that {kind.dtype} represents, as the dataframe "
            f"declares; in {origin} these do not: {some_of(others)}. Convert the partitions with "
            "X.map_partitions, or declare their types (meta=)."
        )
    numbers = frame.to_numpy(dtype=kind.dtype, na_value=np.nan)
    if max(numbers.max(), -numbers.min()) >= LARGEST_EXACT_INTEGER:
        _refuse_inexact((column.dropna() for _, column in frame.items()), origin)
    yield RowBlock(numbers, origin)


def _refuse_other_columns(found: list[Any], wanted: list[Any], origin: str) -> None:
    surplus = Counter(found)
    surplus.subtract(wanted)
    missing = [repr(name) for name, count in surplus.items() if count < 0]
    extra = [repr(name) for name, count in surplus.items() if count > 0]
    faults = [f"lacks {some_of(missing)}"] if missing else []
    faults += [f"also has {some_of(extra)}"] if extra else []
    if faults:
        raise DataError(
            f"Every partition must have the columns that the dataframe declares; {origin} "
            f"{' and '.join(faults)}. Leave it out, or make it again with the columns of the "
            "others."
        )


def _is_exact(dtype: Any, target: np.dtype[Any]) -> bool:
    """Whether values are numbers, and not made coarser by ``target``, float32 or float64."""
    if dtype.kind not in REAL:
        return False
    return target == np.float64 or (isinstance(dtype, np.dtype) and np.can_cast(dtype, target))


def _refuse_inexact(parts: Iterable[Any], origin: str) -> None:
    """Raise for integers that float64 cannot hold."""
    for values in parts:
        if largest_inexact(values) is not None:
            raise DataError(
                f"Integers must be at most 2**53 in size to be exact in float64; {origin} "
                "holds larger ones. Drop the column if it is an identifier, or subtract an offset "
                "from it."
            )


def _read_part(kind: _Kind, part: LocalBlocks, columns: IndexArray | None) -> Iterator[RowBlock]:
    for block in part.blocks(columns):
        refuse_misshapen(block, kind.width(columns))
        yield RowBlock(kind.of(block.values), block.origin)


def _merge(begin: Callable[[], BlockSum], *sums: BlockSum | None) -> BlockSum | None:
    """The sum of sums, none of which is changed: a task may be run again on the same inputs."""
    result: BlockSum | None = None
    for found in sums:
        if found is not None:
            result = begin() if result is None else result
            result.merge(found)
    return result


def _merge_all(begin: Any, sums: list[Any]) -> Any:
    merge = delayed(_merge)
    while len(sums) > 1:
        groups = [sums[at : at + FAN_IN] for at in range(0, len(sums), FAN_IN)]
        sums = [group[0] if len(group) == 1 else merge(begin, *group) for group in groups]
    return sums[0]


def selected_columns(X: Any, columns: IndexArray) -> Any:
    """Some columns of a Dask array or dataframe, lazily: the same kind of collection."""
    if hasattr(X, "columns"):
        return X[[X.columns[at] for at in columns]]
    if X.numblocks[1] > 1:
        return X[:, columns]
    # Not by indexing the collection: chunks may be of a sparse format that has no indexing.
    chunks = (X.chunks[0], (len(columns),))
    return X.map_blocks(_columns_of, columns, chunks=chunks, dtype=X.dtype, meta=X._meta)


def selected_rows(X: Any, rows: BoolArray) -> Any:
    """Some rows of a Dask array whose chunks are of known length, lazily, in the same chunks."""
    bounds = np.cumsum((0, *X.chunks[0]))
    counts = tuple(int(rows[start:stop].sum()) for start, stop in pairwise(bounds))
    # Not by indexing the collection: that joins chunks, which NumPy cannot do to sparse ones.
    return X.map_blocks(
        _rows_of, rows, bounds, chunks=(counts, X.chunks[1]), dtype=X.dtype, meta=X._meta
    )


def _rows_of(chunk: Any, rows: BoolArray, bounds: Any, block_id: Any = None) -> Any:
    at = block_id[0]
    return _indexable(chunk)[rows[bounds[at] : bounds[at + 1]]]


def _columns_of(chunk: Any, columns: IndexArray) -> Any:
    return _indexable(chunk)[:, columns]


def _indexable(chunk: Any) -> Any:
    lacks_indexing = sp.issparse(chunk) and chunk.format not in ("csr", "csc")
    return chunk.tocsr() if lacks_indexing else chunk
