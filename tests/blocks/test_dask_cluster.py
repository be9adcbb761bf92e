"""Clusters are found, started and lost: within a time, in a sentence, and for this machine only."""

import os
import socket
import struct
import sys
import threading
from functools import partial
from pathlib import Path

import distributed
import pytest

from keepers.blocks import dask as dask_cluster
from keepers.blocks.dask import compute, dask_client, delayed
from keepers.exceptions import ClusterError, MissingDependencyError, ParameterError


@pytest.fixture
def threads(monkeypatch):
    """A cluster of one thread of this process; waiting for workers or answers is short."""
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster


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


def once(began, action):
    """Do something in a thread of its own, after an event."""

    def wait():
        began.wait(60)
        action()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@pytest.mark.skipif(sys.platform != "linux", reason="sockets and signals are read from /proc")
def test_a_local_cluster_is_one_of_processes_and_of_this_machine_only():
    assert not blocks_interrupts()
    with dask_client(workers=1) as client:
        (worker,) = client.run(os.getpid).values()
        assert worker != os.getpid()
        assert list(client.nthreads().values()) == [1]
        (n_threads,) = client.run(partial(os.environ.get, "OMP_NUM_THREADS")).values()
        assert n_threads == os.environ.get("OMP_NUM_THREADS", "1")
        (about,) = client.scheduler_info()["workers"].values()
        assert about["memory_limit"] == pytest.approx(distributed.system.MEMORY_LIMIT, rel=0.01)
        everywhere = [listening_addresses(), *client.run(listening_addresses).values()]
        loopback = f"{struct.unpack('=I', bytes([127, 0, 0, 1]))[0]:08X}"
        assert everywhere == [{loopback}] * 2, "no port is open to other machines"
        routes = str(client.cluster.scheduler.http_application.applications)
        assert "bokeh" not in routes.lower(), "there is no dashboard"
        assert set(client.run(blocks_interrupts).values()) == {True}, "the keyboard's are for us"


def blocks_interrupts():

    lines = Path("/proc/self/status").read_text().splitlines()
    (mask,) = (line.split()[1] for line in lines if line.startswith("SigBlk"))
    return bool(int(mask, 16) & 2)  # SIGINT is signal 2


def listening_addresses():
    """Local addresses, in hexadecimal, that the sockets of this process listen on."""
    import os

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


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "silent", "nonsense://127.0.0.1:9"])
def test_an_address_where_no_scheduler_answers_is_not_waited_for(monkeypatch, address):
    monkeypatch.setattr(dask_cluster, "SECONDS_TO_ANSWER", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:  # the system accepts for it
        silent = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        address = silent if address == "silent" else address
        with (
            pytest.raises(ParameterError, match=rf"'{address}' did not answer within 0.2 s"),
            dask_client(scheduler=address),
        ):
            pass


@pytest.mark.parametrize(("scheduler", "workers"), [("tcp://127.0.0.1:9", 2), (None, 0)])
def test_workers_are_counted_without_a_scheduler_and_from_one(scheduler, workers):
    with (
        pytest.raises(ParameterError, match="at least 1, and goes without a scheduler"),
        dask_client(scheduler, workers),
    ):
        pass


def test_a_scheduler_that_is_lost_is_a_sentence(threads, held):
    def hang_up():
        for connection in threads.scheduler.client_comms.values():
            connection.comm.abort()

    with dask_client(threads.scheduler_address):
        once(held.began, partial(threads.loop.add_callback, hang_up))
        with pytest.raises(ClusterError, match=r"was lost .*start it again, and repeat the fit"):
            compute(delayed(held)())


def test_without_dask_an_error_names_the_command(monkeypatch):
    command = r'pip install "keepers\[dask\]"'
    for package in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=command), dask_client(workers=1):
        pass
