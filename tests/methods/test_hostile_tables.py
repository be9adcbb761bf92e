"""Tables at the edge of what floating point holds: finite scores, or a sentence of keepers' own."""

import warnings

import numpy as np
import pytest

from keepers import all_selectors
from keepers.exceptions import KeepersError, KeepersWarning

SELECTORS = all_selectors()
BASE = np.random.default_rng(0).standard_normal((30, 8))
LADDER = np.linspace(-60, 60, 8)


def with_columns(columns, factor, base=BASE):
    X = base.copy()
    X[:, columns] *= factor
    return X


def with_value(value):
    X = BASE.copy()
    X[2, 1] = value
    return X


TABLES = {
    "one column of 1e-120": with_columns([0], 1e-120),
    "one column of 1e120": with_columns([0], 1e120),
    "one column of denormals": with_columns([0], 1e-310),
    "columns of 1e-120 and 1e120": with_columns([1], 1e120, with_columns([0], 1e-120)),
    "half of the columns of 1e-120": with_columns([0, 1, 2, 3], 1e-120),
    "columns 17 decades apart each": BASE * 10.0**LADDER,
    "columns down to 1e-300": BASE * 10.0 ** np.linspace(-300, 0, 8),
    "all of 1e-120": BASE * 1e-120,
    "all of 1e120": BASE * 1e120,
    "all denormal": BASE * 1e-310,
    "the largest of float32": (BASE * 1e37).astype(np.float32),
    "denormals of float32": (BASE * 1e-42).astype(np.float32),
    "all of float32": (BASE * 10.0 ** (LADDER * 37 / 60)).astype(np.float32),
    "an outlier of 1e8": with_value(1e8),
    "an outlier of 1e60": with_value(1e60),
    "2 samples": BASE[:2],
    "3 samples": BASE[:3],
    "1 feature": BASE[:, :1],
    "2 samples, 1 feature": BASE[:2, :1],
    "all rows equal": np.repeat(BASE[:1], 30, axis=0),
    "2 kinds of rows": np.repeat(BASE[:2], 15, axis=0),
    "one row unlike the others": np.vstack([np.repeat(BASE[:1], 29, axis=0), BASE[1:2]]),
    "every row twice": np.vstack([BASE, BASE]),
    "every column twice": np.hstack([BASE, BASE]),
    "one column 8 times": np.repeat(BASE[:, :1], 8, axis=1),
    "a mean of 1e9": 1e9 + BASE / 100,
    "5 samples, 60 features": np.random.default_rng(1).standard_normal((5, 60)),
}


ALL_KEPT = ["an outlier of 1e8", "1 feature", "2 samples, 1 feature", "5 samples, 60 features"]


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize(
    ("kind", "share"), [*((kind, None) for kind in TABLES), *((kind, 1.0) for kind in ALL_KEPT)]
)
def test_a_hostile_table_gives_finite_scores_or_an_error_of_keepers(name, kind, share):
    """Neither LinAlgError, FloatingPointError nor a RuntimeWarning, which is an error here."""
    settings = {"random_state": 0} if "random_state" in SELECTORS[name]().get_params() else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        try:
            selector = SELECTORS[name](share, **settings).fit(TABLES[kind].copy())
        except KeepersError:
            return
    assert np.all(np.isfinite(selector.scores_))
    assert sorted(selector.ranking_) == list(range(1, TABLES[kind].shape[1] + 1))
