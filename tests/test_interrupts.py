"""Ctrl-C while processes start: theirs to ignore, ours to see."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from keepers._interrupts import interrupts_kept_from_children
from keepers.app import main

pytestmark = pytest.mark.posix

BLOCKED = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"


@pytest.fixture(autouse=True)
def default_handler():
    """Python's own handler: a job in the background of a shell ignores the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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


def test_ctrl_c_during_imports_ends_without_a_traceback(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-c", "from keepers.app import main; main()"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_ctrl_c_before_a_command_begins_ends_without_a_traceback(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("keepers.app.app", interrupted)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert capsys.readouterr().err == ""
