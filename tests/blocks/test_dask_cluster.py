"""Clusters are found and lost: within a time, in a sentence."""

import socket
import sys
import threading
from functools import partial

import distributed
import pytest

from keepers.blocks import dask as dask_cluster
from keepers.blocks.dask import compute, dask_client, delayed
from keepers.exceptions import ClusterError, MissingDependencyError, ParameterError


@pytest.fixture
def threads():
    """A cluster of one thread of this process."""
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
    with pytest.raises(MissingDependencyError, match=command), dask_client("tcp://127.0.0.1:9"):
        pass
