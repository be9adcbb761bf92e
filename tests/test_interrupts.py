"""Ctrl-C while processes start: theirs to ignore, ours to see."""

import signal
import subprocess
import sys
import threading

import pytest

from keepers._interrupts import interrupts_kept_from_children
from keepers.cli import choose

pytestmark = pytest.mark.posix

BLOCKED = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"


def is_blocked():
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_threads_and_processes_started_inside_do_not_see_it():
    seen = []
    with interrupts_kept_from_children():
        thread = threading.Thread(target=lambda: seen.append(is_blocked()))
        thread.start()
        thread.join()
        child = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True)
    assert seen == [True]
    assert child.stdout == "True\n"
    assert not is_blocked()


def test_one_that_comes_inside_is_not_lost():
    with pytest.raises(KeyboardInterrupt), interrupts_kept_from_children():
        # To this thread: of a process with several, another one might take it, and later.
        signal.raise_signal(signal.SIGINT)
    assert not is_blocked()


def test_one_that_comes_while_the_command_starts_its_processes_is_not_lost(monkeypatch):
    class Interrupted:
        def __init__(self, **_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def __call__(self, tasks):
            signal.raise_signal(signal.SIGINT)
            return tasks

    monkeypatch.setattr(choose.joblib, "Parallel", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        choose._start_workers(2)
    assert not is_blocked()
