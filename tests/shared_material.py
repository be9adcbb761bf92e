"""Outputs of published programs (tests/fixtures), and data sets that we may not redistribute."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

FIXTURES = Path(__file__).resolve().parent / "fixtures"
DATA = Path(os.environ.get("KEEPERS_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def fixture(name: str) -> dict[str, np.ndarray]:
    """Outputs of a method's own program; tests/fixtures/README.md says which."""
    return _arrays(FIXTURES / f"{name}.npz")


def benchmark_data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """X and y of one of the benchmark data sets; where they are absent the test skips."""
    path = DATA / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{name}.npz is not there; set KEEPERS_DATA to the folder that holds it")
    archive = _arrays(path)
    if "X" not in archive:  # the parts of a sparse matrix
        rows = csr_array(
            tuple(archive[part] for part in ("data", "indices", "indptr")),
            shape=tuple(archive["shape"]),
        )
        return rows.toarray().astype(np.float64), archive["y"]
    return archive["X"].astype(np.float64), archive["y"]
