"""The installed command, run as a user runs it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from keepers.app import app

COMMAND = Path(sys.executable).with_name("keepers")
QUICK = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100"}


@pytest.fixture
def keepers(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run ``keepers ...`` in an empty folder; standard output and error as text."""

    def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(COMMAND), *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, **QUICK, **environment},
        )

    return run


@pytest.fixture
def quick_keepers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The same in this process, which saves the start."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        words = list(map(str, arguments))
        done = CliRunner().invoke(app, words)
        return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)

    return run


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """40 samples x 8 numbers, an identifier and a class; the first two columns tell the classes."""
    random = np.random.default_rng(0)
    classes = np.repeat(["ill", "well"], 20)
    X = random.standard_normal((40, 8))
    X[:, :2] += np.where(classes == "ill", 9.0, 0.0)[:, None]
    lines = ["sample,class," + ",".join(f"g{j}" for j in range(8))]
    lines += [
        f"s{i},{classes[i]}," + ",".join(f"{value:.17g}" for value in X[i]) for i in range(40)
    ]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path
