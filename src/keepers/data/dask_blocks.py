"""Dask collections as tables in blocks, and files read by the workers of a Dask cluster.

A pass is one graph: a task per chunk makes a sum, a tree of tasks merges the sums in the order of
the rows, and the result alone travels to the caller. The grouping does not depend on the scheduler,
so threads and a cluster give the same digits. A worker that dies costs time only: its tasks, and
whatever the graph needs for them, run again elsewhere.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers._protocols import BlockSum, IndexArray, RowBlock, Sum
from keepers.data.blocks.local import LocalBlocks, refuse_misshapen
from keepers.data.limits import refuse_columns
from keepers.data.values import LARGEST_EXACT_INTEGER
from keepers.data.wording import first_line, listed
from keepers.exceptions import DataError, MissingDependencyError, ParameterError, shortened

__all__ = ["DaskBlocks", "connected", "is_dask", "selected_columns"]

# Sums of d x d entries make a merge of many expensive to hold, one of few a long chain.
FAN_IN = 8
SECONDS_TO_ANSWER = 10
REAL = "biuf"


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; Dask is not imported to tell."""
    # Objects of xarray have the method too, and may hold a plain array.
    from_dask = any(kind.__module__.startswith("dask") for kind in type(X).__mro__)
    return from_dask and hasattr(type(X), "__dask_graph__")


class Task(NamedTuple):
    """Some rows: on a worker, ``read(columns, *values of sources)`` gives their blocks."""

    read: Callable[..., Iterator[RowBlock]]
    sources: Sequence[Any] = ()


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
    tasks: Callable[[IndexArray | None], list[Task]]
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
        rows they have need not be known, and those without any are passed over. Where the array
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
            name=name or listed([part.name for part in parts], shown=1),
            n_features=first.n_features,
            dtype=kind.dtype,
            tasks=lambda columns: [Task(partial(_read_part, kind, part)) for part in parts],
            n_samples=_known_sum(part.n_samples for part in parts),
            n_stored=_known_sum(part.n_stored for part in parts),
            is_sparse=kind.is_sparse,
            feature_names=first.feature_names,
            rereadable=all(part.rereadable for part in parts),
        )

    def total(self, begin: Callable[[], Sum], columns: IndexArray | None = None) -> Sum:
        """Sum over all blocks: one graph, computed at once."""
        # Nodes of their own: named by every task, stored once. Scattered instead, they would be
        # lost for good with the worker that holds them.
        shared, chosen = _delayed(begin), None if columns is None else _delayed(columns)
        sums = [
            _delayed(partial(_sum_of, task.read))(shared, chosen, *task.sources)
            for task in self.tasks(columns)
        ]
        result: Sum | None = _computed(_merged(shared, sums))
        if result is None:
            raise DataError(f"A table needs at least one row; {self.name} has none. Check filters.")
        return result


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
        """The same values as an array, or as a CSR matrix in which no entry stands twice."""
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
    n_samples, n_features = (_known_sum(sizes) for sizes in X.chunks)
    if not n_features:
        raise DataError(
            "A table needs at least one column, and the number of columns must be known; the Dask "
            f"array has shape {X.shape}. X.compute_chunk_sizes() finds it out."
        )
    refuse_columns(n_features, "the Dask array")
    grid = X.to_delayed()
    is_sparse = sp.issparse(X._meta) or _computed(_delayed(sp.issparse)(grid[0, 0]))
    kind = _Kind(n_features, _float_type([X.dtype]), is_sparse)
    tasks = [Task(partial(_read_chunk, kind, f"chunk {at}"), row) for at, row in enumerate(grid)]
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
    others = [repr(names[at]) for at, dtype in enumerate(types) if dtype.kind not in REAL]
    if others or not names:
        raise DataError(
            f"Every column must be numeric; these are not: {listed(others) or 'there is none'}. "
            "Drop them, or encode them (for example with dask.dataframe.get_dummies)."
        )
    twice = [repr(name) for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            f"Column names must differ; these stand twice: {listed(twice)}. Rename one."
        )
    kind = _Kind(len(names), _float_type(types), is_sparse=False)

    def tasks(columns: IndexArray | None) -> list[Task]:
        # Columns are chosen before the graph is made: a reader of Parquet then reads no others.
        frame = X if columns is None else selected_columns(X, columns)
        return [
            Task(partial(_read_partition, kind, f"partition {at}"), [partition])
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


def _known_sum(numbers: Iterable[float | None]) -> int | None:
    """The sum, or None if one of the numbers is not known (None, or nan in Dask)."""
    total = sum(np.nan if number is None else number for number in numbers)
    return None if np.isnan(total) else int(total)


def _sum_of(read: Any, begin: Callable[[], Sum], columns: Any, *values: Any) -> Sum | None:
    """What a worker does: the sum over the blocks of one task, or None if there are none."""
    result: Sum | None = None
    for block in read(columns, *values):
        result = begin() if result is None else result
        result.add(block)
    return result


def _read_chunk(
    kind: _Kind, origin: str, columns: IndexArray | None, *pieces: Any
) -> Iterator[RowBlock]:
    """A row of chunks, which hold some columns each."""
    matrices = [_as_matrix(piece, origin) for piece in pieces]
    if matrices[0].shape[0] == 0:
        return
    side_by_side = sp.hstack if any(map(sp.issparse, matrices)) else np.hstack
    values = matrices[0] if len(matrices) == 1 else side_by_side(matrices)
    refuse_misshapen(RowBlock(values, origin), kind.n_features)
    block = RowBlock(kind.of(values if columns is None else _columns_of(values, columns)), origin)
    _refuse_inexact(block.values, [values.dtype], origin)
    yield block


def _as_matrix(piece: Any, origin: str) -> Any:
    """An array or a sparse matrix; a masked value is a missing one."""
    if not (isinstance(piece, np.ndarray) or sp.issparse(piece)) or piece.ndim != 2:
        raise DataError(
            "Every chunk must be a NumPy array or a SciPy sparse matrix with two dimensions; "
            f"{origin} is a {type(piece).__name__} of shape {getattr(piece, 'shape', 'unknown')}. "
            "Convert the chunks with X.map_blocks."
        )
    return np.ma.filled(piece.astype(np.float64), np.nan) if np.ma.isMA(piece) else piece


def _read_partition(
    kind: _Kind, origin: str, columns: IndexArray | None, frame: Any
) -> Iterator[RowBlock]:
    """A data frame that holds the wanted columns only."""
    if len(frame) == 0:
        return
    try:
        numbers = frame.to_numpy(dtype=kind.dtype, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"Every column must be numeric; {origin} is not ({first_line(error)}). Encode it first."
        ) from error
    refuse_misshapen(RowBlock(numbers, origin), kind.width(columns))
    _refuse_inexact(numbers, frame.dtypes, origin)
    yield RowBlock(numbers, origin)


def _refuse_inexact(numbers: Any, types: Iterable[Any], origin: str) -> None:
    """Raise for integers that float64 cannot hold; ``types`` are of each column, or of all."""
    whole = [dtype.kind in "iu" and dtype.itemsize > 4 for dtype in types]
    suspects = numbers if all(whole) else numbers[:, np.flatnonzero(whole)]
    if any(whole) and max(suspects.max(), -suspects.min()) > LARGEST_EXACT_INTEGER:
        raise DataError(
            f"Whole numbers must be at most 2**53 in size to be exact in float64; {origin} holds "
            "larger ones. Drop the column if it is an identifier, or subtract an offset from it."
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


def _delayed(thing: Any) -> Any:
    """A node of the graph, or a function whose calls are; never compared by content."""
    return _imported("dask").delayed(thing, pure=False, traverse=False)


def _merged(begin: Any, sums: list[Any]) -> Any:
    merge = _delayed(_merge)
    while len(sums) > 1:
        groups = [sums[at : at + FAN_IN] for at in range(0, len(sums), FAN_IN)]
        sums = [group[0] if len(group) == 1 else merge(begin, *group) for group in groups]
    return sums[0]


def _computed(node: Any) -> Any:
    dask = _imported("dask")
    # Its defaults have to be there before one of them is overridden: it sets them on import.
    with suppress(ImportError):
        import_module("distributed")
    # What begins a sum is as large as it must be, and is not to be scattered (see above).
    quiet = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
    try:
        with dask.config.set(quiet):
            return dask.compute(node, traverse=False)[0]
    except Exception as error:
        if type(error).__name__ != "KilledWorker":
            raise
        raise DataError(
            "A chunk, and what is made of it, must fit into the memory of a worker; workers died "
            f"one after the other over the same task ({first_line(error)}). Use smaller chunks "
            "(X.rechunk), or workers with more memory."
        ) from error


def _imported(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingDependencyError(
            f'Dask collections and clusters need {package}: pip install "keepers[dask]".'
        ) from error


def selected_columns(X: Any, columns: IndexArray) -> Any:
    """Some columns of a Dask array or dataframe, lazily: the same kind of collection."""
    if hasattr(X, "columns"):
        return X[[X.columns[at] for at in columns]]
    if X.numblocks[1] > 1:
        return X[:, columns]
    # Not by indexing the collection: chunks may be of a sparse format that has no indexing.
    chunks = (X.chunks[0], (len(columns),))
    return X.map_blocks(_columns_of, columns, chunks=chunks, dtype=X.dtype, meta=X._meta)


def _columns_of(chunk: Any, columns: IndexArray) -> Any:
    lacks_indexing = sp.issparse(chunk) and chunk.format not in ("csr", "csc")
    return (chunk.tocsr() if lacks_indexing else chunk)[:, columns]


@contextmanager
def connected(scheduler: str | None = None, workers: int | None = None) -> Iterator[Any]:
    """Let all Dask work inside the block go to a cluster; yields its client.

    One that runs ("tcp://10.0.0.1:8786"), on which keepers has to be installed as well, or so many
    processes of this machine (None: one for each processor), which end with the block. These have
    one thread each, in NumPy too unless OMP_NUM_THREADS or the like is set.
    """
    if workers is not None and (workers < 1 or scheduler is not None):
        raise ParameterError(
            f"workers must be at least 1, and goes without a scheduler; got {shortened(workers)} "
            f"and {shortened(scheduler)}. A cluster that runs has the workers it has."
        )
    distributed = _imported("distributed")
    here = {"host": "127.0.0.1", "dashboard_address": ":0", "silence_logs": logging.ERROR}
    with ExitStack() as stack:
        address = scheduler or stack.enter_context(
            distributed.LocalCluster(workers, threads_per_worker=1, processes=True, **here)
        )
        try:
            client = stack.enter_context(distributed.Client(address, timeout=SECONDS_TO_ANSWER))
            client.wait_for_workers(1, timeout=SECONDS_TO_ANSWER)
            client.run(exec, "import keepers")  # or a fit would wait for ever
        except (OSError, ValueError, ImportError) as error:
            raise ParameterError(
                "scheduler must be the address of a Dask scheduler that answers, with workers that "
                f"have keepers; {shortened(scheduler)} does not within {SECONDS_TO_ANSWER} s "
                f"({first_line(error)}). Start one with 'dask scheduler' and 'dask worker'."
            ) from error
        yield client
