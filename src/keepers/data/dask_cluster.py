"""Where Dask computes: connecting to a cluster, and waiting for it no longer than is reasonable.

The only file that imports Dask; it does so when a function is called.
"""

import asyncio
import concurrent.futures
import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Any

from keepers._interrupts import interrupts_kept_from_children
from keepers._packages import optional
from keepers.data.wording import first_line
from keepers.exceptions import (
    ClusterError,
    DataError,
    MissingDependencyError,
    ParameterError,
    shorten,
)

SECONDS_TO_ANSWER = 10
SECONDS_TO_START = 60
SECONDS_WITHOUT_WORKERS = 30
"""Unless Dask's configuration has another number under `PATIENCE`."""
PATIENCE = "keepers.seconds-without-workers"
# Long: a scheduler that takes in a large graph answers nothing else meanwhile.
SECONDS_WITHOUT_SCHEDULER = 300
SECONDS_BETWEEN_LOOKS = 2
NOTHING = logging.CRITICAL + 1
_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)


def delayed(thing: Any) -> Any:
    """A node of a graph, or a function whose calls are; never compared by content."""
    return _dask().delayed(thing, pure=False, traverse=False)


def compute(node: Any) -> Any:
    """The value of a node, from whatever scheduler is set; an error if a cluster is lost."""
    dask = _dask()
    client = _client()
    # What begins a sum is as large as it must be: a scattered one is lost with its worker.
    quiet = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
    try:
        with dask.config.set(quiet):
            if client is None:
                return dask.compute(node, traverse=False)[0]
            future = client.compute(node, traverse=False)
        return _result(future, client)
    except _CANCELLED as error:
        raise _lost(client, first_line(error)) from error
    except Exception as error:
        if type(error).__name__ != "KilledWorker":
            raise
        raise DataError(
            "A chunk, and what is made of it, must fit into the memory of a worker; workers died "
            f"one after the other over the same task ({first_line(error)}). Use smaller chunks "
            "(X.rechunk), or workers with more memory."
        ) from error


def _client() -> Any:
    """The client that would compute; None if no cluster does, or from inside one of its tasks."""
    dask = _dask()
    # Its defaults have to be there before one of them is overridden: it sets them on import.
    with suppress(MissingDependencyError):
        _distributed()
    try:
        get = dask.base.get_scheduler()
    except (RuntimeError, ValueError) as error:
        if dask.config.get("scheduler", None) not in ("dask.distributed", "distributed"):
            raise
        raise _lost(None, first_line(error)) from error
    client: Any = getattr(get, "__self__", None)
    if not hasattr(client, "wait_for_workers"):
        return None
    if client.status in ("closing", "closed"):
        raise _lost(client, "the client was closed")
    with suppress(ValueError):
        _distributed().get_worker()
        return None  # Dask itself then lends the thread of the task to others
    return client


def _result(future: Any, client: Any) -> Any:
    """Wait for a future, and raise if the cluster has no workers, or does not answer any more."""
    loop = client.loop.asyncio_loop
    patience = _patience()

    async def result() -> Any:
        return await future

    async def n_workers() -> int:
        return len(await client.scheduler.ncores())

    awaited = asyncio.run_coroutine_threadsafe(result(), loop)
    last_seen = time.monotonic()
    try:
        while not _any_done(SECONDS_BETWEEN_LOOKS, awaited):
            asked = asyncio.run_coroutine_threadsafe(n_workers(), loop)
            if not _any_done(SECONDS_WITHOUT_SCHEDULER, awaited, asked):
                asked.cancel()
                raise _lost(client, f"it has not answered for {SECONDS_WITHOUT_SCHEDULER:g} s")
            if awaited.done():
                break
            failure = asked.exception()
            if failure is None and asked.result() > 0:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > patience:
                raise _lost(client, first_line(failure)) if failure else _idle(client, patience)
        return awaited.result()
    finally:
        awaited.cancel()
        future.release()


def _any_done(seconds: float, *futures: concurrent.futures.Future[Any]) -> bool:
    first = concurrent.futures.FIRST_COMPLETED
    return bool(concurrent.futures.wait(futures, seconds, return_when=first).done)


def _patience() -> float:
    found = _dask().config.get(PATIENCE, SECONDS_WITHOUT_WORKERS)
    try:
        return float(found)
    except (TypeError, ValueError):
        raise ParameterError(
            f"{PATIENCE} in Dask's configuration must be a number of seconds; got {shorten(found)}."
        ) from None


_PURPOSE = "Dask collections and clusters"
_RESUMING = "A fit with a checkpoint resumes."


def _idle(client: Any, seconds: float) -> ClusterError:
    return ClusterError(
        f"A Dask cluster needs at least one worker; {_address(client)} has had none for "
        f"{seconds:g} s. Start workers ('dask worker'), or let an adaptive cluster keep one "
        "(cluster.adapt(minimum=1)); to wait longer, set DASK_KEEPERS__SECONDS_WITHOUT_WORKERS, or "
        f"{PATIENCE} in Dask's configuration. {_RESUMING}"
    )


def _lost(client: Any, reason: str) -> ClusterError:
    return ClusterError(
        "The Dask scheduler must answer, and keep the work, until the fit is done; "
        f"{_address(client)} was lost or cancelled it ({reason}). Check its log, "
        f"start it again, and repeat the fit. {_RESUMING}"
    )


def _address(client: Any) -> str:
    # A client that is closed has no scheduler left.
    scheduler = getattr(client, "scheduler", None)
    return getattr(scheduler, "address", "the scheduler")


@contextmanager
def dask_client(
    scheduler: str | None = None, workers: int | None = None, *, show_log: bool = False
) -> Iterator[Any]:
    """Let all Dask work inside the block go to a cluster; yields its client.

    One that runs ("tcp://10.0.0.1:8786"), on which keepers has to be installed as well, or so many
    processes of this machine (None: one for each processor), which end with the block. These have
    one thread each, in NumPy too unless OMP_NUM_THREADS or the like is set, and listen on the
    loopback interface only. Dask's log is silenced unless ``show_log``.
    """
    if workers is not None and (workers < 1 or scheduler is not None):
        raise ParameterError(
            f"workers must be at least 1, and goes without a scheduler; got {shorten(workers)} "
            "and "
            f"{shorten(scheduler)}. A cluster that runs has the workers it has."
        )
    if not show_log:
        _silence_log()
    with ExitStack() as stack:
        n_workers = workers or _dask().system.CPU_COUNT
        local = _local_cluster(n_workers, show_log) if scheduler is None else nullcontext()
        cluster = stack.enter_context(local)
        # A client that loses its scheduler takes itself away. What is set before it stays, and
        # keeps Dask from computing in this process instead.
        stack.enter_context(_dask().config.set(scheduler="dask.distributed"))
        if cluster is None:
            yield _client_of(str(scheduler), stack)
        else:
            client = stack.enter_context(_closing(_distributed().Client(cluster)))
            _start_workers(cluster, client, n_workers)
            yield client


def _client_of(scheduler: str, stack: ExitStack) -> Any:
    try:
        asyncio.run(asyncio.wait_for(_shake_hands(scheduler), SECONDS_TO_ANSWER))
        connecting = _distributed().Client(scheduler, timeout=SECONDS_TO_ANSWER)
        client = stack.enter_context(_closing(connecting))
        client.wait_for_workers(1, timeout=SECONDS_TO_ANSWER)
        # Graphs are unpickled by the scheduler as well.
        client.run_on_scheduler(exec, "import keepers")
        client.run(exec, "import keepers")
    except (OSError, ValueError, ImportError) as error:
        raise ParameterError(
            "scheduler must be the address of a Dask scheduler that answers, with workers, all of "
            f"which have keepers; {shorten(scheduler)} does not within {SECONDS_TO_ANSWER} s "
            f"({first_line(error)}). Start one with 'dask scheduler' and 'dask worker'."
        ) from error
    return client


@contextmanager
def _closing(client: Any) -> Iterator[Any]:
    """Close a client in the end; what goes wrong then would hide why the block was left."""
    client.__enter__()
    try:
        yield client
    finally:
        with suppress(Exception):
            client.__exit__(None, None, None)


async def _shake_hands(address: str) -> None:
    """Begin a connection, and end it: a client would wait for ever for the first answer."""
    settings = _distributed().Security().get_connection_args("client")
    comm = await _distributed().comm.connect(address, timeout=SECONDS_TO_ANSWER, **settings)
    await comm.close()


@contextmanager
def _local_cluster(n_workers: int, show_log: bool) -> Iterator[Any]:
    """A cluster for so many workers, without any yet, that other machines cannot reach."""
    with interrupts_kept_from_children():
        cluster = _distributed().LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            processes=True,
            memory_limit=1.0 / n_workers,  # of the memory of the machine
            host="127.0.0.1",
            # HTTP servers are started in any case; told nothing, some listen on all interfaces.
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=False if show_log else NOTHING,
        )
    cluster.new_spec["options"]["dashboard"] = False
    try:
        yield cluster
    finally:
        cluster.shutdown_on_close = False  # or it is closed once more when Python ends
        with suppress(Exception):  # of workers that had not started when an interrupt came
            cluster.close(timeout=SECONDS_TO_ANSWER)


def _start_workers(cluster: Any, client: Any, n_workers: int) -> None:
    cluster.scale(n_workers)
    try:
        client.wait_for_workers(n_workers, timeout=SECONDS_TO_START)
    except TimeoutError as error:
        raise ClusterError(
            f"All {n_workers} local workers must start within {SECONDS_TO_START} s; they did not "
            f"({first_line(error)}). Ask for fewer."
        ) from error


def _silence_log() -> None:
    """Keep the log of Dask, and of what it is built on, off the error stream, until Python ends.

    Not only for the time of a connection: some lines are written long after it was closed.
    """
    _distributed()  # sets levels on import
    known = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    for name in [*known, "distributed", "tornado", "tornado.application", "asyncio"]:
        logging.getLogger(name).setLevel(NOTHING)


def _dask() -> Any:
    optional("dask", _PURPOSE)
    import dask

    return dask


def _distributed() -> Any:
    optional("distributed", _PURPOSE)
    import distributed

    return distributed
