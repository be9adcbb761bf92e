"""Small studies that run in seconds."""

from pathlib import Path

import numpy as np
import pytest

from cli.conftest import keepers, quick_keepers, table  # noqa: F401
from keepers.studies.specification import StudySpec


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
