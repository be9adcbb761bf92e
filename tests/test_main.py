"""``python -m keepers`` is the command, for those whose PATH does not have it."""

import subprocess
import sys

import pytest

from keepers import __version__

pytest.importorskip("typer")


def run_module(*words):
    command = [sys.executable, "-m", "keepers", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_python_dash_m_keepers_is_the_command():
    done = run_module("--version")
    assert (done.returncode, done.stdout) == (0, f"keepers {__version__}\n")


def test_the_help_of_the_module_names_the_command():
    """The parser would show a path of the package, or "python -m keepers": both end as typed."""
    done = run_module("select", "--help")
    assert done.returncode == 0
    assert "keepers select" in done.stdout


def test_misuse_ends_with_2_as_it_does_for_the_command():
    assert run_module("select", "--no-such-option").returncode == 2
