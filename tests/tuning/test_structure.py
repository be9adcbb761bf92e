"""Which features carry structure: against SciPy, scikit-learn and tables with a known answer."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kstest
from sklearn.decomposition import PCA

from keepers.linalg.moments import column_moments
from keepers.linalg.ordering import knee_of
from keepers.tuning import structure as structure_module
from keepers.tuning.structure import find_structure


def planted(seed, strength, n_samples=100, n_features=2000, n_informative=50):
    """Four clusters that differ in the means of the first features only."""
    rng = np.random.default_rng(seed)
    means = strength * rng.standard_normal((4, n_informative))
    X = rng.standard_normal((n_samples, n_features))
    X[:, :n_informative] += means[rng.integers(4, size=n_samples)]
    return X


NOISE = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "of very different variances": lambda rng, shape: (
        rng.standard_normal(shape) * np.exp(1.5 * rng.standard_normal(shape[1]))
    ),
    "with heavy tails": lambda rng, shape: rng.standard_t(3, shape),
    "of counts": lambda rng, shape: rng.poisson(0.7, shape).astype(float),
}


@pytest.mark.parametrize("kind", NOISE)
def test_nothing_is_found_in_noise(kind):
    found = [
        find_structure(
            NOISE[kind](np.random.default_rng(seed), (60, 300)), np.random.default_rng(0)
        )
        for seed in range(40)
    ]
    assert sum(structure.found for structure in found) <= 2  # expected: 0.4 of 40


def test_p_values_of_unrelated_features_are_uniform_whatever_their_variance():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((150, 1500)) * np.exp(rng.standard_normal(1500))
    features = structure_module._Features(X, column_moments(X), np.ones(1500))
    p_values = structure_module._p_values(features, rng.permutation(1500) % 10)
    assert kstest(p_values, "uniform").pvalue > 0.01
    # The smaller of two, doubled: never more often small than that.
    both = find_structure(X, rng).p_values
    assert all(np.mean(both <= level) <= 1.3 * level for level in (0.05, 0.1, 0.2))


def test_one_feature_of_large_variance_does_not_hide_the_structure_of_the_others():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 11))
    X[:, :5] += 3 * rng.standard_normal((3, 5))[np.arange(60) % 3]
    X[:, 10] *= 30.0
    structure = find_structure(X, np.random.default_rng(0))
    assert structure.carries[:5].sum() >= 3
    assert not structure.carries[5:].any()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n_samples", "strength"), [(100, 2.5), (200, 1.5)])
def test_the_number_of_informative_features_is_found_within_a_fifth(seed, n_samples, strength):
    structure = find_structure(planted(seed, strength, n_samples), np.random.default_rng(seed))
    assert 40 <= structure.n_features_to_select <= 60
    # The false discovery rate is held at 1 %: rarely one of fifty, never three.
    assert structure.carries[50:].sum() <= 2


def test_a_weak_signal_gives_fewer_features_not_false_ones():
    structure = find_structure(planted(0, 1.0), np.random.default_rng(0))
    assert 0 < structure.n_carrying < 50
    assert structure.carries[50:].sum() <= 1


def test_leverages_are_those_of_the_components_of_scikit_learn():
    X = planted(1, 2.5, n_features=300)
    structure = find_structure(X, np.random.default_rng(0))
    components = PCA(structure.n_components, svd_solver="full").fit(X).components_
    np.testing.assert_allclose(structure.leverages, (components**2).sum(axis=0), atol=1e-8)


def test_a_sparse_table_gives_the_same_answer():
    X = planted(2, 2.5, n_features=300)
    X[np.abs(X) < 0.5] = 0.0
    dense = find_structure(X, np.random.default_rng(0))
    for storage in (sp.csr_matrix, sp.csc_matrix):
        found = find_structure(storage(X), np.random.default_rng(0))
        np.testing.assert_allclose(found.p_values, dense.p_values, atol=1e-9)
        np.testing.assert_allclose(found.leverages, dense.leverages, atol=1e-9)


def test_many_samples_are_drawn_from(monkeypatch):
    monkeypatch.setattr(structure_module, "MOST_SAMPLES", 100)
    structure = find_structure(planted(3, 2.5, 2000), np.random.default_rng(0))
    assert 40 <= structure.n_features_to_select <= 60


@pytest.mark.parametrize("shape", [(2, 3), (3, 1), (4, 2), (10, 1)])
def test_tables_too_small_to_say_anything_say_nothing(shape):
    structure = find_structure(
        np.random.default_rng(0).standard_normal(shape), np.random.default_rng(0)
    )
    assert not structure.found
    assert structure.n_features_to_select == 0


@pytest.mark.parametrize("seed", range(12))
def test_two_related_columns_among_a_few_are_found_whatever_the_folds(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 8))
    X[:, :2] += np.repeat([0.0, 9.0], 20)[:, np.newaxis]
    structure = find_structure(X, np.random.default_rng(seed))
    assert structure.carries[:2].all()
    assert structure.carries.sum() <= 3  # a false discovery now and then is what the rate allows


def test_the_knee_limits_the_number():
    curve = np.concatenate([np.linspace(10, 9, 20), np.linspace(1, 0.9, 80)])
    assert knee_of(curve) == 21
    assert knee_of(np.ones(50)) is None
