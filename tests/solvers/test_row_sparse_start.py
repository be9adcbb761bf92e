"""Steps of projection, against the authors' program and the optimum."""

from pathlib import Path

import numpy as np
import pytest

from brute_force_sets import random_restriction, small_cases
from keepers.linalg.held_variance import variance_held
from keepers.linalg.scatter import DenseScatter
from keepers.solvers.row_sparse_start import best_features, improve_by_projection

FIXTURES = Path(__file__).parent.parent / "fixtures"


@pytest.mark.parametrize("name", ["mix", "blobs", "digits", "wide"])
def test_steps_lead_where_the_authors_program_leads(name):
    stored = np.load(FIXTURES / f"fspca_authors_{name}.npz")
    operator = DenseScatter(stored["S"])
    for m, k in stored["cases"]:
        found = improve_by_projection(operator, stored[f"go_support_m{m}_k{k}"], int(m), 20)
        np.testing.assert_array_equal(found, stored[f"ipu_support_m{m}_k{k}"])


def test_the_value_never_falls_and_what_is_forced_stays():
    rng = np.random.default_rng(31)
    for case in small_cases(60, seed=32):
        operator = DenseScatter(case.S)
        allowed, forced = random_restriction(case, rng)
        start = best_features(rng.random(len(case.S)), np.arange(case.k), allowed, forced)
        found = improve_by_projection(operator, start, case.m, allowed=allowed, forced=forced)
        assert len(found) == case.k
        assert allowed[found].all()
        assert forced.sum() == forced[found].sum()
        before, after = (variance_held(operator, one, case.m) for one in (start, found))
        assert after >= before * (1 - 1e-10)
        assert after <= case.best * (1 + 1e-10)


def test_features_without_variance_stay_as_they_are():
    operator = DenseScatter(np.diag([0.0, 0.0, 1.0]))
    np.testing.assert_array_equal(improve_by_projection(operator, np.array([0, 1]), 1), [0, 1])
