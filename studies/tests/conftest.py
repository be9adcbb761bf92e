"""Small studies that run in seconds, and the command as a user runs it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))  # the made-up studies beside the tests

from keepers_studies.commands import app
from keepers_studies.specification import StudySpec

COMMAND = Path(sys.executable).with_name("keepers-studies")
QUICK = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100"}


@pytest.fixture
def studies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run ``keepers-studies ...`` in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        words = list(map(str, arguments))
        done = CliRunner().invoke(app, words)
        return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)

    return run


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """Start ``keepers-studies ...`` as a process of its own; errors go to errors.txt."""

    def run(*arguments: object) -> subprocess.Popen[bytes]:
        command = [str(COMMAND), *map(str, arguments)]
        environment = {**os.environ, **QUICK}
        with (tmp_path / "errors.txt").open("wb") as errors:
            return subprocess.Popen(
                command,
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=environment,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )

    return run


@pytest.fixture
def clusters(tmp_path: Path) -> Path:
    """Three clusters that the first two of twelve columns tell apart; the rest is noise."""
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 12)
    X = random.standard_normal((36, 12))
    X[:, :2] += 12 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    path = tmp_path / "clusters.npz"
    np.savez(path, X=X, y=y)
    return path


@pytest.fixture
def small_study(clusters: Path) -> StudySpec:
    """Four methods, three numbers of features, three repeats."""
    return StudySpec.model_validate(
        {
            "title": "small",
            "ks": [2, 4, 12],
            "repeats": 3,
            "time_limit": 60,
            "data": [{"source": str(clusters), "name": "clusters"}],
            "methods": [
                {
                    "name": "SPCAFS",
                    "fixed": {"n_components": "classes - 1"},
                    "grid": {"gamma": [1e-2, 1e2]},
                    "default": {"gamma": "scale"},
                },
                {"name": "MCFS", "fixed": {"n_clusters": "classes"}, "default": {}},
                {"name": "RandomScore", "label": "Random", "draws": 4},
                {"name": "AllFeatures", "label": "All features", "default": {}},
            ],
        }
    )
