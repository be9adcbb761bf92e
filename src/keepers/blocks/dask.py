"""Dask collections as tables in blocks, files read by workers, and the cluster to run on.

Only this file imports Dask, when it is called. A pass is one graph: a task per chunk makes a sum, a
tree of tasks merges the sums in the order of the rows, and only the result travels to the caller.
The grouping does not depend on the scheduler, so threads and a cluster give the same digits. A
worker that dies costs time only: its tasks, and whatever they need, run again elsewhere.
"""

import asyncio
import concurrent.futures
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers._packages import optional
from keepers._protocols import BlockSum, IndexArray, RowBlock, Sum
from keepers._wording import first_line
from keepers.exceptions import ClusterError, DataError, ParameterError, shorten
from keepers.tables.objects import block_values, in_order, numeric_input
from keepers.tables.scans import LocalBlocks, known_sum, refuse_misshapen
from keepers.tables.table import as_floats, canonical_sparse, refuse_repeated

# Sums of d x d entries make a merge of many expensive to hold, one of few a long chain.
FAN_IN = 8
REAL = "biuf"
SECONDS_TO_ANSWER = 10


@dataclass(frozen=True)
class DaskBlocks:
    """A `BlockTable` whose sums are made by Dask, on whatever scheduler is set.

    Nothing is kept between passes: each pass computes, or reads, data that are not persisted again.
    ``X = X.persist()`` before the fit pays where the memory of the cluster holds the table.
    """

    name: str
    n_features: int
    dtype: np.dtype[Any]
    read: Callable[..., Iterator[RowBlock]]
    """On a worker, ``read(number, columns, *values of chunks[number])`` gives blocks of rows."""
    chunks: Sequence[Sequence[Any]]
    """For every part of the table, in order, nodes of a graph that hold it."""
    n_rows: Sequence[float | None]
    """Number of rows of each part; None or nan where it is not known."""
    n_stored: int | None = None
    is_sparse: bool = False
    feature_names: NDArray[np.object_] | None = None
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
        raise DataError(f"A table is a Dask array or dataframe; got {type(X).__name__}.")

    @classmethod
    def of_parts(cls, parts: Sequence[LocalBlocks], name: str) -> "DaskBlocks":
        """A table in parts, such as ``LocalBlocks.parts`` gives; a free worker reads the next."""
        first = parts[0]
        return cls(
            name=name,
            n_features=first.n_features,
            dtype=first.dtype,
            read=lambda at, columns, part: part.blocks(columns),
            chunks=[[part] for part in parts],
            n_rows=[part.n_samples for part in parts],
            n_stored=known_sum(part.n_stored for part in parts),
            is_sparse=first.is_sparse,
            feature_names=first.feature_names,
        )

    @property
    def n_samples(self) -> int | None:
        return known_sum(self.n_rows)

    def total(self, begin: Callable[[], Sum], columns: IndexArray | None = None) -> Sum:
        # Nodes of their own: named by every task, stored once. Scattered instead, they would be
        # lost for good with the worker that holds them.
        shared, chosen = delayed(begin), None if columns is None else delayed(columns)
        starts: list[int | None] = [None] * len(self.chunks)
        if self.n_samples is not None:
            starts = np.cumsum([0, *self.n_rows])[:-1].tolist()
        sums = [
            delayed(partial(_sum_of, self.read, at, starts[at]))(shared, chosen, *values)
            for at, values in enumerate(self.chunks)
        ]
        merge = delayed(_merge)
        while len(sums) > 1:
            groups = [sums[at : at + FAN_IN] for at in range(0, len(sums), FAN_IN)]
            sums = [group[0] if len(group) == 1 else merge(shared, *group) for group in groups]
        result: Sum | None = compute(sums[0])
        if result is None:
            raise DataError(f"A table needs at least one row; {self.name} has none. Check filters.")
        return result

    def count_rows(self) -> "DaskBlocks":
        """The same table with the number of rows of every part, counted in a pass if necessary."""
        if self.n_samples is not None:
            return self
        count = delayed(_count)
        counts = [count(self.read, at, *values) for at, values in enumerate(self.chunks)]
        return replace(self, n_rows=compute(delayed(lambda *counts: counts)(*counts)))


def _of_array(X: Any) -> DaskBlocks:
    if X.ndim != 2 or X.dtype.kind not in REAL:
        raise DataError(
            "A table has two dimensions and holds real numbers; the Dask array has "
            f"{X.ndim} and holds {X.dtype}. Reshape it, or convert it with X.astype(float)."
        )
    n_samples, n_features = (known_sum(sizes) for sizes in X.chunks)
    if not n_features:
        raise DataError(
            "The number of columns must be known, and at least one column is needed; the Dask "
            f"array has shape {X.shape}. X.compute_chunk_sizes() finds it out."
        )
    chunks, dtype = X.to_delayed(), _float_type([X.dtype])
    is_sparse = sp.issparse(X._meta) or compute(delayed(sp.issparse)(chunks[0, 0]))
    return DaskBlocks(
        name="the Dask array",
        n_features=n_features,
        dtype=dtype,
        read=partial(_read_chunks, n_features, dtype, is_sparse),
        chunks=chunks,
        n_rows=X.chunks[0],
        n_stored=None if is_sparse or n_samples is None else n_samples * n_features,
        is_sparse=is_sparse,
    )


def _of_dataframe(X: Any) -> DaskBlocks:
    names, dtype = list(X.columns), _float_type(X.dtypes)
    refuse_repeated(names)
    numeric_input(X._meta)
    wanted = delayed(X.columns)  # a node of its own: many names, stored once
    partitions = [[partition, wanted] for partition in X.to_delayed()]
    return DaskBlocks(
        name="the Dask dataframe",
        n_features=len(names),
        dtype=dtype,
        read=partial(_read_partition, dtype),
        chunks=partitions,
        n_rows=[None] * len(partitions),
        feature_names=np.array(names, dtype=object) if {*map(type, names)} == {str} else None,
    )


def _float_type(types: Iterable[Any]) -> np.dtype[Any]:
    single = all(dtype == np.float32 for dtype in types)
    return np.dtype(np.float32 if single else np.float64)


def _sum_of(
    read: Any, at: int, start: int | None, begin: Callable[[], Sum], columns: Any, *values: Any
) -> Sum | None:
    """On a worker: the sum over the blocks of one part, from row ``start`` on; None without any."""
    result: Sum | None = None
    for block in read(at, columns, *values):
        result = begin() if result is None else result
        result.add(replace(block, start=start))
        if start is not None:
            start += block.values.shape[0]
    return result


def _count(read: Any, at: int, *values: Any) -> int:
    return sum(block.values.shape[0] for block in read(at, None, *values))


def _merge(begin: Callable[[], BlockSum], *sums: BlockSum | None) -> BlockSum | None:
    """The sum of sums, which stay as they are: a task may run again on the same inputs."""
    result: BlockSum | None = None
    for found in sums:
        if found is not None:
            result = begin() if result is None else result
            result.merge(found)
    return result


def _read_chunks(
    width: int,
    dtype: np.dtype[Any],
    is_sparse: bool,
    at: int,
    columns: IndexArray | None,
    *chunks: Any,
) -> Iterator[RowBlock]:
    """Chunks side by side, which hold some columns each; a masked value is a missing one."""
    origin = f"chunk {at}"
    for chunk in chunks:
        is_array = isinstance(chunk, np.ndarray) or sp.issparse(chunk)
        if not is_array or chunk.ndim != 2 or chunk.dtype.kind not in REAL:
            held = f" of shape {chunk.shape} that holds {chunk.dtype}" if is_array else ""
            raise DataError(
                f"Every chunk must be an array or a sparse matrix of numbers; {origin} is a "
                f"{type(chunk).__name__}{held}."
            )
    if any(map(sp.issparse, chunks)):
        values = sp.hstack(chunks, format="csr")
    else:
        values = np.hstack([np.ma.filled(c, np.nan) if np.ma.isMA(c) else c for c in chunks])
    if values.shape[0] == 0:
        return
    refuse_misshapen(RowBlock(values, origin), width)
    values = _exact(values if columns is None else values[:, columns], dtype, origin)
    if is_sparse:
        values = canonical_sparse(sp.csr_matrix(values))
    yield RowBlock(values.toarray() if sp.issparse(values) and not is_sparse else values, origin)


def _read_partition(
    dtype: np.dtype[Any], at: int, columns: IndexArray | None, frame: Any, wanted: Any
) -> Iterator[RowBlock]:
    """A data frame that holds the ``wanted`` columns only, in whatever order."""
    origin = f"partition {at}"
    if len(frame):
        frame = in_order(frame, list(wanted), origin, "the dataframe")
        refuse_misshapen(RowBlock(frame, origin), len(wanted))
        frame = frame if columns is None else frame.iloc[:, columns]
        yield RowBlock(_exact(block_values(frame, origin), dtype, origin), origin)


def _exact(values: Any, dtype: np.dtype[Any], origin: str) -> Any:
    """Values in the declared type; raise if it would round them."""
    if not (dtype == np.float64 or np.can_cast(values.dtype, dtype)):
        raise DataError(
            f"Values must be of the declared type, {dtype}; {origin} holds {values.dtype}. Convert "
            "them with X.astype."
        )
    return as_floats(values, origin).astype(dtype, copy=False)


def selected_columns(X: Any, columns: IndexArray) -> Any:
    """Some columns of a Dask array or dataframe, lazily: the same kind of collection."""
    if hasattr(X, "columns"):
        return X[[X.columns[at] for at in columns]]
    return X[:, columns]


# Computing


def delayed(thing: Any) -> Any:
    """A node of a graph, or a function whose calls are; never compared by content."""
    return _dask().delayed(thing, pure=False, traverse=False)


def compute(node: Any) -> Any:
    """The value of a node, from whatever scheduler is set; an error if a cluster is lost."""
    with suppress(ImportError):
        _distributed()  # sets the defaults of the setting below on import
    # The start of a sum has its full size: a scattered one is lost with its worker.
    quiet = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
    try:
        with _dask().config.set(quiet):
            return _dask().compute(node, traverse=False)[0]
    except (asyncio.CancelledError, concurrent.futures.CancelledError) as error:
        raise ClusterError(
            f"The Dask scheduler was lost or cancelled the work ({first_line(error)}). Check its "
            "log, start it again, and repeat the fit."
        ) from error


@contextmanager
def dask_client(scheduler: str) -> Iterator[Any]:
    """Send all Dask work inside the block to a cluster that runs; yields its client.

    ``scheduler`` is its address ("tcp://10.0.0.1:8786"); keepers has to be installed there as well.
    Dask's log is silenced.
    """
    distributed = _distributed()  # sets levels of the log on import
    # Until Python ends: some lines are written long after a connection is closed.
    loggers = [name for name in logging.root.manager.loggerDict if "distributed." in name]
    for name in [*loggers, "distributed", "tornado", "tornado.application", "asyncio"]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    # A client that loses its scheduler takes itself away. What is set before it stays, and keeps
    # Dask from computing in this process instead.
    with _dask().config.set(scheduler="dask.distributed"):
        client = _connect(distributed, scheduler)
        try:
            yield client
        finally:
            with suppress(Exception):  # it would hide why the block was left
                client.close()


def _connect(distributed: Any, scheduler: str) -> Any:
    try:
        asyncio.run(asyncio.wait_for(_shake_hands(scheduler), SECONDS_TO_ANSWER))
        client = distributed.Client(scheduler, timeout=SECONDS_TO_ANSWER)
        client.wait_for_workers(1, timeout=SECONDS_TO_ANSWER)
        # Graphs are unpickled by the scheduler as well.
        client.run_on_scheduler(exec, "import keepers")
        client.run(exec, "import keepers")
    except (OSError, ValueError, ImportError) as error:
        raise ParameterError(
            "scheduler must be the address of a running Dask scheduler whose workers have "
            f"keepers; {shorten(scheduler)} did not answer within {SECONDS_TO_ANSWER} s "
            f"({first_line(error)}). Start one with 'dask scheduler' and 'dask worker'."
        ) from error
    return client


async def _shake_hands(address: str) -> None:
    """Begin a connection, and end it: a client would wait for ever for the first answer."""
    settings = _distributed().Security().get_connection_args("client")
    comm = await _distributed().comm.connect(address, timeout=SECONDS_TO_ANSWER, **settings)
    await comm.close()


def _dask() -> Any:
    return optional("dask", "Dask collections")


def _distributed() -> Any:
    return optional("distributed", "Dask clusters")
