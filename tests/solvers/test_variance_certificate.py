"""Values and bounds of given sets, against every set of small problems."""

import numpy as np
import pytest

from brute_force_sets import case_of, scatter_of, small_cases
from keepers.linalg.scatter import DenseScatter
from keepers.solvers.variance_certificate import certify_value


def certify(case, features, **settings):
    settings = {"tight": True, "rng": np.random.default_rng(0), **settings}
    return certify_value(DenseScatter(case.S), features, case.k, case.m, **settings)


def test_the_optimum_lies_between_what_is_known_and_the_bound():
    rng = np.random.default_rng(51)
    n_proved = 0
    for case in small_cases(150, seed=52):
        at = int(rng.integers(len(case.sets)))
        found = certify(case, case.sets[at])
        assert found.value == pytest.approx(case.values[at], rel=1e-9, abs=1e-12 * case.best)
        assert found.value <= found.best_known * (1 + 1e-12)
        assert found.best_known <= case.best * (1 + 1e-12)
        assert found.upper_bound >= case.best * (1 - 1e-13), case
        d = len(case.S)
        proofs = found.proofs(np.arange(d), d, case.k)
        share = case.share_of_best_sets()
        assert np.all(share[proofs.inside] == 1.0)
        assert np.all(share[proofs.outside] == 0.0)
        n_proved += int(proofs.inside.sum() + proofs.outside.sum())
    assert n_proved > 150


def test_the_name_is_that_of_the_least_bound():
    S = scatter_of("flat", 10, np.random.default_rng(53))
    as_many = case_of(S, 3, 3)
    assert certify(as_many, as_many.sets[0], tight=False).bound == "variances"
    everything = case_of(S, 10, 2)
    assert certify(everything, everything.sets[0], tight=False).bound == "spectrum"
    chain = 2.0 * np.eye(8) + np.eye(8, k=1) + np.eye(8, k=-1)
    one = case_of(chain, 2, 1)
    found = certify(one, one.sets[0], tight=False)
    assert found.bound == "row sums"
    assert found.upper_bound == pytest.approx(3.0)


def test_constant_columns_of_the_table_can_be_in_a_best_set_only_if_there_are_too_few_others():
    S = np.diag([3.0, 2.0, 1.0])
    case = case_of(S, 2, 2)
    found = certify(case, np.array([0, 1]))
    proofs = found.proofs(np.array([0, 1, 3]), 4, 2)  # column 2 is constant
    np.testing.assert_array_equal(proofs.inside, [True, True, False, False])
    np.testing.assert_array_equal(proofs.outside, [False, False, True, True])
    everything = certify_value(
        DenseScatter(S), np.arange(3), 4, 2, tight=False, rng=np.random.default_rng(0)
    )
    assert everything.proofs(np.array([0, 1, 3]), 4, 4).inside.all()
