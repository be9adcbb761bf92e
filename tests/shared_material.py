"""Reference outputs and data sets that we may not redistribute; absent, tests skip and say so."""

import os
from pathlib import Path

import numpy as np
import pytest

_BESIDE = Path(__file__).resolve().parents[2] / "shared"
FIXTURES = Path(os.environ.get("KEEPERS_FIXTURES", _BESIDE / "fixtures"))
DATA = Path(os.environ.get("KEEPERS_DATA", _BESIDE / "data"))


def _archive(folder: Path, name: str, variable: str) -> dict[str, np.ndarray]:
    path = folder / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{name}.npz is not there; set {variable} to the folder that holds it")
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def fixture(name: str) -> dict[str, np.ndarray]:
    """Outputs of a method's own program."""
    return _archive(FIXTURES, name, "KEEPERS_FIXTURES")


def benchmark_data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """X and y of one of the benchmark data sets."""
    archive = _archive(DATA, name, "KEEPERS_DATA")
    return archive["X"].astype(np.float64), archive["y"]
