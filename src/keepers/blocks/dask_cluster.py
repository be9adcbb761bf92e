"""Connecting to a Dask cluster, and waiting for it. Only this file imports Dask, when called."""

import asyncio
import concurrent.futures
import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from keepers._interrupts import interrupts_kept_from_children
from keepers._packages import optional
from keepers._wording import first_line
from keepers.exceptions import ClusterError, DataError, ParameterError, shorten

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
    dask, client = _dask(), _client()
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
    with suppress(ImportError):
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
    """Wait for a future; raise if the cluster has no workers, or does not answer any more."""
    patience, last_seen = _patience(), time.monotonic()
    try:
        while not _is_done(future):
            failure, n_workers = None, 0
            try:
                cores = client.scheduler.ncores
                n_workers = len(client.sync(cores, callback_timeout=SECONDS_WITHOUT_SCHEDULER))
            except TimeoutError as error:
                reason = f"it has not answered for {SECONDS_WITHOUT_SCHEDULER:g} s"
                raise _lost(client, reason) from error
            except Exception as error:  # of a connection that is being lost, or made again
                failure = error
            if n_workers > 0:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > patience:
                if failure is not None:
                    raise _lost(client, first_line(failure)) from failure
                raise ClusterError(
                    f"A Dask cluster needs at least one worker; {_address(client)} has had none "
                    f"for {patience:g} s. Start workers ('dask worker'), or let an adaptive "
                    "cluster keep one (cluster.adapt(minimum=1)); to wait longer, set "
                    f"DASK_KEEPERS__SECONDS_WITHOUT_WORKERS, or {PATIENCE} in Dask's configuration."
                )
        return future.result()
    finally:
        future.release()


def _is_done(future: Any) -> bool:
    with suppress(TimeoutError):
        _distributed().wait([future], timeout=SECONDS_BETWEEN_LOOKS)
    return bool(future.done())


def _patience() -> float:
    found = _dask().config.get(PATIENCE, SECONDS_WITHOUT_WORKERS)
    try:
        return float(found)
    except (TypeError, ValueError):
        raise ParameterError(
            f"{PATIENCE} in Dask's configuration must be a number of seconds; got {shorten(found)}."
        ) from None


def _lost(client: Any, reason: str) -> ClusterError:
    return ClusterError(
        "The Dask scheduler must answer, and keep the work, until the fit is done; "
        f"{_address(client)} was lost or cancelled it ({reason}). Check its log, "
        "start it again, and repeat the fit."
    )


def _address(client: Any) -> str:
    return getattr(getattr(client, "scheduler", None), "address", "the scheduler")


@contextmanager
def dask_client(
    scheduler: str | None = None, workers: int | None = None, *, show_log: bool = False
) -> Iterator[Any]:
    """Send all Dask work inside the block to a cluster; yields its client.

    ``scheduler`` is the address of a running one ("tcp://10.0.0.1:8786"), on which keepers has to
    be installed as well. Without it, ``workers`` processes of this machine (None: one for each
    processor) are started, and end with the block. They have one thread each, in NumPy too unless
    OMP_NUM_THREADS or the like is set, and listen on the loopback interface only. Dask's log is
    silenced unless ``show_log``.
    """
    if workers is not None and (workers < 1 or scheduler is not None):
        raise ParameterError(
            f"workers must be at least 1, and goes without a scheduler; got {shorten(workers)} and "
            f"{shorten(scheduler)}. A cluster that runs has the workers it has."
        )
    if not show_log:
        _silence_log()
    connecting = _local(workers, show_log) if scheduler is None else _running(scheduler)
    # A client that loses its scheduler takes itself away. What is set before it stays, and keeps
    # Dask from computing in this process instead.
    with _dask().config.set(scheduler="dask.distributed"), connecting as client:
        yield client


@contextmanager
def _running(scheduler: str) -> Iterator[Any]:
    """A client of a scheduler that runs, with workers."""
    with ExitStack() as stack:
        try:
            asyncio.run(asyncio.wait_for(_shake_hands(scheduler), SECONDS_TO_ANSWER))
            made = _distributed().Client(scheduler, timeout=SECONDS_TO_ANSWER)
            client = stack.enter_context(_closing(made))
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
        yield client


async def _shake_hands(address: str) -> None:
    """Begin a connection, and end it: a client would wait for ever for the first answer."""
    settings = _distributed().Security().get_connection_args("client")
    comm = await _distributed().comm.connect(address, timeout=SECONDS_TO_ANSWER, **settings)
    await comm.close()


@contextmanager
def _closing(client: Any) -> Iterator[Any]:
    """Close a client in the end; an error from closing would hide why the block was left."""
    client.__enter__()
    try:
        yield client
    finally:
        with suppress(Exception):
            client.__exit__(None, None, None)


@contextmanager
def _local(workers: int | None, show_log: bool) -> Iterator[Any]:
    """A client of a new cluster of this machine, which other machines cannot reach."""
    n_workers = workers or _dask().system.CPU_COUNT
    with interrupts_kept_from_children():
        cluster = _distributed().LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            processes=True,
            memory_limit=1.0 / n_workers,  # of the memory of the machine
            host="127.0.0.1",
            # HTTP servers are started in any case; by default some listen on all interfaces.
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=False if show_log else NOTHING,
        )
    cluster.new_spec["options"]["dashboard"] = False
    try:
        with _closing(_distributed().Client(cluster)) as client:
            cluster.scale(n_workers)
            try:
                client.wait_for_workers(n_workers, timeout=SECONDS_TO_START)
            except TimeoutError as error:
                raise ClusterError(
                    f"All {n_workers} local workers must start within {SECONDS_TO_START} s; they "
                    f"did not ({first_line(error)}). Start fewer."
                ) from error
            yield client
    finally:
        cluster.shutdown_on_close = False  # or it is closed once more when Python ends
        with suppress(Exception):  # of workers that had not started when an interrupt came
            cluster.close(timeout=SECONDS_TO_ANSWER)


def _silence_log() -> None:
    """Silence Dask until Python ends: some lines are written long after a connection is closed."""
    _distributed()  # sets levels on import
    known = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    for name in [*known, "distributed", "tornado", "tornado.application", "asyncio"]:
        logging.getLogger(name).setLevel(NOTHING)


def _dask() -> Any:
    optional("dask", "Dask collections")
    import dask

    return dask


def _distributed() -> Any:
    optional("distributed", "Dask clusters")
    import distributed

    return distributed
