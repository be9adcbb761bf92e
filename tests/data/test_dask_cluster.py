"""Clusters are found, started and lost: within a time, in a sentence, and for this machine only."""

import logging
import os
import socket
import struct
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from keepers._protocols import RowBlock
from keepers.data import dask_cluster
from keepers.data.blocks.local import LocalBlocks
from keepers.data.dask_blocks import DaskBlocks
from keepers.data.dask_cluster import compute, dask_client, delayed
from keepers.exceptions import ClusterError, DataError, MissingDependencyError, ParameterError

dask = pytest.importorskip("dask", reason='Dask is not installed: pip install "keepers[dask]"')
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def processes():
    """Two processes of this machine, and their client."""
    with dask_client(workers=2) as client:
        yield client


@pytest.fixture
def threads(monkeypatch):
    """A cluster of one thread of this process; waiting for workers or answers is short."""
    monkeypatch.setattr(dask_cluster, "SECONDS_BETWEEN_LOOKS", 0.02)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster


@pytest.fixture
def silent_server():
    """Address of a server that accepts connections and never answers."""
    accepted = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept():
            try:
                while True:
                    accepted.append(server.accept()[0])
            except OSError:
                return  # the server was closed

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    for connection in accepted:
        connection.close()


class Held:
    """A computation that goes on until it is released."""

    def __init__(self):
        self.began, self.released = threading.Event(), threading.Event()

    def __reduce__(self):
        return current, ()

    def __call__(self):
        self.began.set()
        self.released.wait(60)
        return 7


HELD = []


def current():
    return HELD[-1]


@pytest.fixture
def held():
    HELD.append(Held())
    yield HELD[-1]
    HELD.pop().released.set()


@pytest.fixture(autouse=True)
def _importable_by_workers():
    """Dask refers to the functions of this file by its name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[__name__.count(".")])
        yield


def once(began, action):
    """Do something in a thread of its own, after an event."""

    def wait():
        began.wait(60)
        action()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_workers_of_a_local_cluster_are_processes_with_one_thread_each(processes):
    assert os.getpid() not in processes.run(os.getpid).values()
    assert list(processes.nthreads().values()) == [1, 1]
    threads = processes.run(partial(os.environ.get, "OMP_NUM_THREADS"))
    assert set(threads.values()) == {os.environ.get("OMP_NUM_THREADS", "1")}


def test_so_many_workers_are_started_as_were_asked_for(processes):
    """The first argument of Dask's LocalCluster is its name."""
    with dask_client(workers=1) as client:
        assert len(client.run(os.getpid)) == 1
    assert len(processes.run(os.getpid)) == 2


def test_workers_share_the_memory_of_the_machine(processes):
    limits = [worker["memory_limit"] for worker in processes.scheduler_info()["workers"].values()]
    np.testing.assert_allclose(limits, distributed.system.MEMORY_LIMIT / 2, rtol=0.01)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="sockets are listed by Linux only")
def test_no_port_of_a_local_cluster_is_open_to_other_machines(processes):
    everywhere = [listening_addresses(), *processes.run(listening_addresses).values()]
    loopback = f"{struct.unpack('=I', bytes([127, 0, 0, 1]))[0]:08X}"
    assert everywhere == [{loopback}] * 3


def listening_addresses():
    """Local addresses, in hexadecimal, that the sockets of this process listen on."""
    import os
    from pathlib import Path

    own = set()
    for entry in os.listdir("/proc/self/fd"):
        try:
            own.add(os.readlink(f"/proc/self/fd/{entry}"))
        except OSError:  # the listing itself, closed by now
            continue
    found = set()
    for table in ("tcp", "tcp6"):
        path = Path("/proc/net", table)
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            _, local, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in own:
                found.add(local.split(":")[0])
    return found


def test_a_local_cluster_has_no_dashboard(processes):
    cluster = processes.cluster
    assert cluster.scheduler.services["dashboard"].address == "127.0.0.1"
    routes = str(cluster.scheduler.http_application.applications)
    assert "bokeh" not in routes.lower()


@pytest.mark.skipif(sys.platform != "linux", reason="the mask of signals is read from /proc")
def test_an_interrupt_from_the_keyboard_is_left_to_this_process(processes):
    def blocks_interrupts():
        from pathlib import Path

        lines = Path("/proc/self/status").read_text().splitlines()
        (mask,) = (line.split()[1] for line in lines if line.startswith("SigBlk"))
        return bool(int(mask, 16) & 2)  # SIGINT is signal 2

    assert set(processes.run(blocks_interrupts).values()) == {True}
    assert not blocks_interrupts()


def test_a_running_scheduler_is_used_and_left_running(threads):
    with dask_client(scheduler=threads.scheduler_address) as client:
        assert client.scheduler.address == threads.scheduler_address
        assert compute(delayed(sum)([1, 2])) == 3
    with distributed.Client(threads, set_as_default=False) as client:
        assert client.submit(sum, [1, 2]).result() == 3


def test_where_no_scheduler_answers_an_error_says_so(monkeypatch):
    monkeypatch.setattr(dask_cluster, "SECONDS_TO_ANSWER", 0.2)
    with (
        pytest.raises(ParameterError, match=r"'tcp://127.0.0.1:9' does not within 0.2 s"),
        dask_client(scheduler="tcp://127.0.0.1:9"),
    ):
        pass


def test_a_server_that_accepts_and_never_answers_is_not_waited_for(monkeypatch, silent_server):
    monkeypatch.setattr(dask_cluster, "SECONDS_TO_ANSWER", 0.2)
    with (
        pytest.raises(ParameterError, match=rf"'{silent_server}' does not within 0.2 s.*dask sch"),
        dask_client(scheduler=silent_server),
    ):
        pass


@pytest.mark.parametrize("address", ["nonsense://127.0.0.1:9", "127.0.0.1:port"])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(ParameterError, match="must be the address"), dask_client(address):
        pass


def test_a_scheduler_without_workers_is_refused(monkeypatch, threads):
    monkeypatch.setattr(dask_cluster, "SECONDS_TO_ANSWER", 1)
    threads.scale(0)
    with (
        pytest.raises(ParameterError, match=r"all of which have keepers; .* within 1"),
        dask_client(threads.scheduler_address),
    ):
        pass


@pytest.mark.parametrize(("scheduler", "workers"), [("tcp://127.0.0.1:9", 2), (None, 0)])
def test_workers_are_counted_without_a_scheduler_and_from_one(scheduler, workers):
    with (
        pytest.raises(ParameterError, match="at least 1, and goes without a scheduler"),
        dask_client(scheduler, workers),
    ):
        pass


def test_a_cluster_without_workers_is_not_waited_for(monkeypatch, threads, held):
    monkeypatch.setattr(dask_cluster, "SECONDS_WITHOUT_WORKERS", 0.1)
    with dask_client(threads.scheduler_address):
        gone = once(held.began, partial(threads.scale, 0))
        with pytest.raises(ClusterError, match=r"has had none for 0.1 s.*adapt\(minimum=1\)"):
            compute(delayed(held)())
        gone.join()


def test_how_long_workers_are_waited_for_is_a_setting_of_dask(threads, held):
    key = "keepers.seconds-without-workers"
    with dask_client(threads.scheduler_address):
        gone = once(held.began, partial(threads.scale, 0))
        with (
            dask.config.set({key: "0.15"}),
            pytest.raises(ClusterError, match=r"has had none for 0.15 s.*SECONDS_WITHOUT_WORKERS"),
        ):
            compute(delayed(held)())
        gone.join()
        with (
            dask.config.set({key: "long"}),
            pytest.raises(ParameterError, match="must be a number of seconds; got 'long'"),
        ):
            compute(delayed(held)())


def test_workers_that_come_back_in_time_finish_the_work(threads, held):
    def replace():
        threads.scale(0)
        held.released.set()
        threads.scale(1)

    with dask_client(threads.scheduler_address):
        replaced = once(held.began, replace)
        assert compute(delayed(held)()) == 7
        replaced.join()


def test_a_scheduler_that_is_lost_is_a_sentence(threads, held):
    def hang_up():
        for connection in threads.scheduler.client_comms.values():
            connection.comm.abort()

    with dask_client(threads.scheduler_address):
        once(held.began, partial(threads.loop.add_callback, hang_up))
        with pytest.raises(ClusterError, match=r"was lost .*start it again.*checkpoint resumes"):
            compute(delayed(held)())


def test_after_its_scheduler_was_lost_nothing_is_computed_in_this_process(monkeypatch, threads):
    monkeypatch.setattr(dask_cluster, "SECONDS_TO_ANSWER", 0.3)
    with dask_client(threads.scheduler_address) as client:
        threads.close()
        client.close()
        with pytest.raises(ClusterError, match="was lost"):
            compute(delayed(sum)([1, 2]))


def test_a_scheduler_that_stops_answering_is_not_waited_for(monkeypatch, threads, held):
    monkeypatch.setattr(dask_cluster, "SECONDS_WITHOUT_SCHEDULER", 0.2)
    answered = threading.Event()

    async def never():
        import asyncio

        while not answered.is_set():
            await asyncio.sleep(0.01)
        return {}

    with dask_client(threads.scheduler_address) as client:
        monkeypatch.setattr(client.scheduler, "ncores", never, raising=False)
        with pytest.raises(ClusterError, match=r"was lost .*it has not answered for 0\.2 s"):
            compute(delayed(held)())
        answered.set()


def test_an_error_in_a_task_arrives_as_it_was_raised(threads):
    def fail():
        raise DataError("Values must be finite numbers; chunk 3 holds NaN.")

    with (
        dask_client(threads.scheduler_address),
        pytest.raises(DataError, match=r"^Values must be finite numbers; chunk 3 holds NaN\.$"),
    ):
        compute(delayed(fail)())


def test_a_sum_inside_of_a_task_does_not_wait_for_its_own_thread(threads):
    with distributed.Client(threads) as client:
        future = client.submit(lambda: compute(delayed(sum)([1, 2])))
        assert future.result(timeout=60) == 3


@pytest.mark.parametrize("show_log", [False, True])
def test_the_log_of_dask_is_shown_only_if_asked_for(threads, show_log):
    names = ["distributed", "distributed.client", "distributed.worker", "tornado", "asyncio"]
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.INFO)
        with dask_client(threads.scheduler_address, show_log=show_log):
            shown = [logger.isEnabledFor(logging.CRITICAL) for logger in loggers]
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
    assert shown == [show_log] * len(names)


def test_a_client_is_closed_with_its_block_whatever_happened(threads):
    class Interrupted(BaseException):
        pass

    before = dask.config.get("scheduler", None)
    with pytest.raises(Interrupted), dask_client(threads.scheduler_address) as client:  # noqa: PT012
        assert client.status == "running"
        raise Interrupted
    assert client.status == "closed"
    assert dask.config.get("scheduler", None) == before


def test_an_error_is_not_hidden_by_a_client_that_cannot_be_closed(threads, monkeypatch):
    def fail(*_):
        raise RuntimeError("ConnectionPool is closed")

    clients = []

    def work():
        with dask_client(threads.scheduler_address) as client:
            clients.append(client)
            # Of this client only: others may be collected, and closed, meanwhile.
            monkeypatch.setattr(client, "close", fail)
            raise DataError("what happened")

    with pytest.raises(DataError, match=r"^what happened$"):
        work()
    monkeypatch.undo()
    clients[0].close()


class OneRow(LocalBlocks):
    """A table of one number."""

    name, n_features, dtype = "one row", 1, np.dtype(float)

    def blocks(self, columns=None):
        yield RowBlock(np.ones((1, 1)), self.name)


def test_without_dask_an_error_names_the_command(monkeypatch):
    command = r'pip install "keepers\[dask\]"'
    for package in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=command):
        DaskBlocks.of_parts([OneRow()]).total(list)
    with pytest.raises(MissingDependencyError, match=command), dask_client(workers=1):
        pass
