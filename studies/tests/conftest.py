"""Small studies that run in seconds, and the command as a user runs it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))  # the made-up studies beside the tests

from keepers_studies.commands import app

COMMAND = Path(sys.executable).with_name("keepers-studies")
QUICK = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100"}


@pytest.fixture
def studies(tmp_path, monkeypatch):
    """Run ``keepers-studies ...`` in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        return CliRunner().invoke(app, list(map(str, arguments)))

    return run


@pytest.fixture
def start(tmp_path):
    """Start ``keepers-studies ...`` as a process of its own; errors go to errors.txt."""

    def run(*arguments):
        with (tmp_path / "errors.txt").open("wb") as errors:
            return subprocess.Popen(
                [str(COMMAND), *map(str, arguments)],
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, **QUICK},
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )

    return run


@pytest.fixture
def clusters(tmp_path):
    """Three clusters that the first two of twelve columns tell apart; the rest is noise."""
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 12)
    X = random.standard_normal((36, 12))
    X[:, :2] += 12 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    path = tmp_path / "clusters.npz"
    np.savez(path, X=X, y=y)
    return path
