"""Dask collections as tables in blocks, and files read by the workers of a Dask cluster.

A pass is one graph: a task per chunk makes a sum, a tree of tasks merges the sums in the order of
the rows, and only the result travels to the caller. The grouping does not depend on the scheduler,
so threads and a cluster give the same digits. A worker that dies costs time only: its tasks, and
whatever they need, run again elsewhere.
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
from keepers._wording import duplicates, some_of
from keepers.blocks.dask_cluster import compute, delayed
from keepers.exceptions import DataError, shorten
from keepers.tables.objects import canonical_sparse
from keepers.tables.scans import LocalBlocks, known_sum, refuse_misshapen
from keepers.tables.table import LARGEST_EXACT_INTEGER, largest_inexact, refuse_columns

# Sums of d x d entries make a merge of many expensive to hold, one of few a long chain.
FAN_IN = 8
REAL = "biuf"


class ReadTask(NamedTuple):
    """Some rows: on a worker, ``read(columns, *values of sources)`` gives their blocks."""

    read: Callable[..., Iterator[RowBlock]]
    sources: Sequence[Any] = ()


@dataclass(frozen=True)
class DaskBlocks:
    """A `BlockTable` whose sums are made by Dask, on whatever scheduler is set.

    Nothing is kept between passes: each pass computes, or reads, data that are not persisted again.
    ``X = X.persist()`` before the fit pays where the memory of the cluster holds the table.
    """

    name: str
    n_features: int
    dtype: np.dtype[Any]
    tasks: Callable[[IndexArray | None], list[ReadTask]]
    """For the columns that are wanted, all rows in order."""
    n_rows: Sequence[float | None] = (None,)
    """Number of rows of each task; None or nan where it is not known."""
    n_stored: int | None = None
    is_sparse: bool = False
    feature_names: NDArray[np.object_] | None = None
    rereadable: bool = True
    is_local: bool = False

    @classmethod
    def of(cls, X: Any) -> "DaskBlocks":
        """The table in a Dask array or dataframe.

        Chunks may be NumPy arrays or SciPy sparse matrices, and may split columns as well; those
        without rows are skipped. The first one is computed to see its type, unless the array
        declares sparse chunks: arrays made from delayed values often declare the wrong type.
        """
        if hasattr(type(X), "numblocks"):
            return _of_array(X)
        if hasattr(type(X), "columns") and X.ndim == 2:
            return _of_dataframe(X)
        raise DataError(
            f"A table is a Dask array or a Dask dataframe; got {type(X).__name__}. Convert it, for "
            "example with dask.array.from_delayed."
        )

    @classmethod
    def of_parts(cls, parts: Sequence[LocalBlocks], name: str) -> "DaskBlocks":
        """A table in parts, such as ``LocalBlocks.parts`` gives; a free worker reads the next."""
        tasks = [ReadTask(partial(_read_part, part)) for part in parts]
        first = parts[0]
        return cls(
            name=name,
            n_features=first.n_features,
            dtype=first.dtype,
            tasks=lambda columns: tasks,
            n_rows=[part.n_samples for part in parts],
            n_stored=known_sum(part.n_stored for part in parts),
            is_sparse=first.is_sparse,
            feature_names=first.feature_names,
            rereadable=first.rereadable,
        )

    @property
    def n_samples(self) -> int | None:
        return known_sum(self.n_rows)

    def total(self, begin: Callable[[], Sum], columns: IndexArray | None = None) -> Sum:
        # Nodes of their own: named by every task, stored once. Scattered instead, they would be
        # lost for good with the worker that holds them.
        shared, chosen = delayed(begin), None if columns is None else delayed(columns)
        tasks = self.tasks(columns)
        sums = [
            delayed(partial(_sum_of, task.read, start))(shared, chosen, *task.sources)
            for task, start in zip(tasks, self._starts(len(tasks)), strict=True)
        ]
        result: Sum | None = compute(_merge_all(shared, sums))
        if result is None:
            raise DataError(f"A table needs at least one row; {self.name} has none. Check filters.")
        return result

    def _starts(self, n_tasks: int) -> list[int | None]:
        """Numbers of the first rows of the tasks; None where they are not known."""
        if len(self.n_rows) != n_tasks:  # not counted yet, or Dask reads several partitions as one
            return [None] * n_tasks
        starts = np.cumsum([0.0, *np.array(self.n_rows, dtype=np.float64)])[:-1]
        return [known_sum([start]) for start in starts]

    def count_rows(self) -> "DaskBlocks":
        """The same table with the number of rows of every task, counted in a pass if necessary."""
        if not self.rereadable or self.n_samples is not None:
            return self
        # The first column alone is cheap to read, but Dask may then read several files as one.
        first = np.zeros(1, dtype=np.intp)
        tasks, narrow = self.tasks(None), self.tasks(first)
        chosen, tasks = (first, narrow) if len(narrow) == len(tasks) else (None, tasks)
        counts = [delayed(partial(_count, task.read))(chosen, *task.sources) for task in tasks]
        return replace(self, n_rows=compute(delayed(lambda *counts: counts)(*counts)))


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
    dtype = _float_type([X.dtype])
    read = partial(_read_chunks, X.chunks[1], dtype, is_sparse)
    tasks = [ReadTask(partial(read, f"chunk {at}"), row) for at, row in enumerate(grid)]
    return DaskBlocks(
        name="the Dask array",
        n_features=n_features,
        dtype=dtype,
        tasks=lambda columns: tasks,
        n_rows=X.chunks[0],
        n_stored=None if is_sparse or n_samples is None else n_samples * n_features,
        is_sparse=is_sparse,
    )


def _of_dataframe(X: Any) -> DaskBlocks:
    names = list(X.columns)
    refuse_columns(len(names), "the Dask dataframe")
    others = _described(X, lambda dtype: dtype.kind not in REAL)
    if others or not names:
        raise DataError(
            f"Every column must be numeric; these are not: {others or 'there is none'}. Drop them, "
            "or encode them (for example with dask.dataframe.get_dummies)."
        )
    if len(set(names)) < len(names):
        raise DataError(
            f"Column names must differ; there are duplicates: {some_of(duplicates(names))}. Rename "
            "all but one of each."
        )
    dtype = _float_type(X.dtypes)

    def tasks(columns: IndexArray | None) -> list[ReadTask]:
        # Columns are chosen before the graph is made: a reader of Parquet then reads no others.
        frame = X if columns is None else selected_columns(X, columns)
        wanted = delayed(frame.columns)  # a node of its own: many names, stored once
        return [
            ReadTask(partial(_read_partition, dtype, f"partition {at}"), [partition, wanted])
            for at, partition in enumerate(frame.to_delayed())
        ]

    return DaskBlocks(
        name="the Dask dataframe",
        n_features=len(names),
        dtype=dtype,
        tasks=tasks,
        feature_names=np.array(names, dtype=object) if {*map(type, names)} == {str} else None,
    )


def _described(frame: Any, is_meant: Callable[[Any], bool]) -> str:
    """Some columns of a frame with their types, for a message."""
    columns = zip(frame.columns, frame.dtypes, strict=True)
    return some_of([f"{shorten(name)} ({dtype})" for name, dtype in columns if is_meant(dtype)])


def _float_type(types: Iterable[Any]) -> np.dtype[Any]:
    single = all(dtype == np.float32 for dtype in types)
    return np.dtype(np.float32 if single else np.float64)


def as_declared(values: Any, dtype: np.dtype[Any], is_sparse: bool) -> Any:
    """Values as an array, or as a CSR matrix without duplicate entries, of a given type."""
    if is_sparse:
        return canonical_sparse(sp.csr_matrix(values, dtype=dtype))
    return np.asarray(values.toarray() if sp.issparse(values) else values, dtype=dtype)


def _sum_of(
    read: Any, start: int | None, begin: Callable[[], Sum], columns: Any, *values: Any
) -> Sum | None:
    """On a worker: the sum over the blocks of one task, from row ``start`` on; None without any."""
    result: Sum | None = None
    for block in read(columns, *values):
        result = begin() if result is None else result
        result.add(replace(block, start=start))
        if start is not None:
            start += block.values.shape[0]
    return result


def _count(read: Any, columns: IndexArray | None, *values: Any) -> int:
    return sum(block.values.shape[0] for block in read(columns, *values))


def _merge(begin: Callable[[], BlockSum], *sums: BlockSum | None) -> BlockSum | None:
    """The sum of sums, which stay as they are: a task may run again on the same inputs."""
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


def _read_part(part: LocalBlocks, columns: IndexArray | None) -> Iterator[RowBlock]:
    for block in part.blocks(columns):
        refuse_misshapen(block, part.n_features if columns is None else len(columns))
        yield block


def _read_chunks(
    widths: Any, dtype: Any, is_sparse: bool, origin: str, columns: IndexArray | None, *chunks: Any
) -> Iterator[RowBlock]:
    """Chunks side by side, which hold some columns each."""
    matrices = [_as_matrix(chunk, dtype, origin) for chunk in chunks]
    n_rows = matrices[0].shape[0]
    for at, (matrix, width) in enumerate(zip(matrices, widths, strict=True)):
        if matrix.shape != (n_rows, width):
            place = origin if len(widths) == 1 else f"{origin}, column chunk {at},"
            found = " rows x ".join(map(str, matrix.shape))
            raise DataError(
                f"Every chunk must have the columns that the array declares; {place} has {found} "
                f"columns instead of {n_rows} x {width}. Make it again like the others, or leave "
                "it out."
            )
    if n_rows == 0:
        return
    side_by_side = sp.hstack if any(map(sp.issparse, matrices)) else np.hstack
    values: Any = matrices[0] if len(matrices) == 1 else side_by_side(matrices)
    chosen = values if columns is None else _columns_of(values, columns)
    _refuse_inexact(chosen.tocsr().data if sp.issparse(chosen) else chosen, origin)
    yield RowBlock(as_declared(chosen, dtype, is_sparse), origin)


def _as_matrix(chunk: Any, dtype: np.dtype[Any], origin: str) -> Any:
    """An array or a sparse matrix of real numbers; a masked value is a missing one."""
    is_array = isinstance(chunk, np.ndarray) or sp.issparse(chunk)
    if not is_array or chunk.ndim != 2 or not _is_exact(chunk.dtype, dtype):
        held = f" of shape {chunk.shape} that holds {chunk.dtype}" if is_array else ""
        raise DataError(
            "Every chunk must be a NumPy array or a SciPy sparse matrix of two dimensions, with "
            f"real numbers that {dtype} represents, as the array declares; {origin} is a "
            f"{type(chunk).__name__}{held}. Convert the chunks with X.map_blocks, or declare their "
            "type (dtype=)."
        )
    return np.ma.filled(chunk.astype(np.float64), np.nan) if np.ma.isMA(chunk) else chunk


def _read_partition(
    dtype: np.dtype[Any], origin: str, columns: IndexArray | None, frame: Any, wanted: Any
) -> Iterator[RowBlock]:
    """A data frame that holds the ``wanted`` columns only, in whatever order."""
    if len(frame) == 0:
        return
    if not frame.columns.equals(wanted):
        found, declared = Counter(frame.columns), Counter(wanted)
        if found != declared:
            missing = some_of([repr(name) for name in declared - found]) or "nothing"
            added = some_of([repr(name) for name in found - declared]) or "nothing"
            raise DataError(
                f"Every partition must have the columns that the dataframe declares; {origin} "
                f"lacks {missing} and adds {added}. Leave it out, or make it again with the "
                "columns of the others."
            )
        frame = frame[list(wanted)]
    if not all(_is_exact(found, dtype) for found in set(frame.dtypes)):
        others = _described(frame, lambda found: not _is_exact(found, dtype))
        raise DataError(
            f"Every column must hold real numbers that {dtype} represents, as the dataframe "
            f"declares; in {origin} these do not: {others}. Convert the partitions with "
            "X.map_partitions, or declare their types (meta=)."
        )
    values = frame.to_numpy(dtype=dtype, na_value=np.nan)
    if max(values.max(), -values.min()) >= LARGEST_EXACT_INTEGER:
        for at in range(frame.shape[1]):
            _refuse_inexact(frame.iloc[:, at].dropna(), origin)
    yield RowBlock(values, origin)


def _is_exact(dtype: Any, target: np.dtype[Any]) -> bool:
    """Check that values of ``dtype`` are numbers that ``target`` holds without loss."""
    if dtype.kind not in REAL:
        return False
    return target == np.float64 or (isinstance(dtype, np.dtype) and np.can_cast(dtype, target))


def _refuse_inexact(values: Any, origin: str) -> None:
    if largest_inexact(values) is not None:
        raise DataError(
            f"Integers must be at most 2**53 in size to be exact in float64; {origin} holds larger "
            "ones. Drop the column if it is an identifier, or subtract an offset from it."
        )


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

    def rows_of(chunk: Any, block_id: Any) -> Any:
        at = block_id[0]
        return _indexable(chunk)[rows[bounds[at] : bounds[at + 1]]]

    # Not by indexing the collection: that joins chunks, which NumPy cannot do to sparse ones.
    return X.map_blocks(rows_of, chunks=(counts, X.chunks[1]), dtype=X.dtype, meta=X._meta)


def _columns_of(chunk: Any, columns: IndexArray) -> Any:
    return _indexable(chunk)[:, columns]


def _indexable(chunk: Any) -> Any:
    lacks_indexing = sp.issparse(chunk) and chunk.format not in ("csr", "csc")
    return chunk.tocsr() if lacks_indexing else chunk
