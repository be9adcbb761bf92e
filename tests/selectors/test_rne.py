import numpy as np
import pytest
import scipy.sparse as sp

from keepers.exceptions import DataError, DataWarning, ParameterError
from keepers.linalg.graph import reconstruction_weights
from keepers.selectors.neighbours import nearest_neighbours
from keepers.selectors.rne import RNE
from keepers.solvers.rne import solve_rne
from shared_material import fixture


def _table(n_samples=40, n_features=15, seed=0):
    return np.random.default_rng(seed).normal(size=(n_samples, n_features)) + 1.0


@pytest.fixture
def starts_seen(monkeypatch):
    """The residual and the starts that the selector hands to the solver."""
    seen = {}

    def spy(A, starts, **settings):
        seen["A"], seen["starts"] = A, list(starts)
        return solve_rne(A, seen["starts"], **settings)

    monkeypatch.setattr("keepers.selectors.rne.solve_rne", spy)
    return seen


@pytest.mark.parametrize("name", ["mix", "digits", "blobs", "wide"])
def test_the_release_orientation_gives_the_residual_of_the_authors(name, starts_seen):
    stored = fixture(f"rne_authors_{name}")
    RNE(8, lle_orientation="release", max_iter=1, random_state=0).fit(3.0 * stored["X"])
    np.testing.assert_allclose(starts_seen["A"], stored["A_authors"], rtol=0, atol=1e-13)


def test_the_default_orientation_is_the_residual_of_unit_samples(starts_seen):
    X = _table()
    RNE(4, max_iter=1, random_state=0).fit(X)
    unit = X / np.sqrt((X**2).sum(axis=1, keepdims=True))
    W = reconstruction_weights(unit, nearest_neighbours(unit, 5))
    np.testing.assert_allclose(starts_seen["A"], unit - W.toarray() @ unit, rtol=0, atol=1e-12)


def test_the_length_of_a_sample_does_not_matter():
    X = _table()
    lengths = np.random.default_rng(1).uniform(0.1, 50.0, size=(40, 1))
    first = RNE(4, max_iter=5, random_state=0).fit(X)
    second = RNE(4, max_iter=5, random_state=0).fit(lengths * X)
    np.testing.assert_allclose(second.scores_, first.scores_, rtol=0, atol=1e-8)


def test_samples_that_are_zero_stay_zero_without_a_division_by_zero(starts_seen):
    X = _table()
    X[[3, 17]] = 0.0
    selector = RNE(4, max_iter=3, random_state=0).fit(X)
    assert np.isfinite(starts_seen["A"]).all()
    assert np.isfinite(selector.scores_).all()


def test_a_sparse_table_gives_the_scores_of_the_same_dense_one():
    X = np.where(_table() > 1.2, _table(), 0.0)
    dense = RNE(4, max_iter=3, random_state=0).fit(X)
    sparse = RNE(4, max_iter=3, random_state=0).fit(sp.csr_matrix(X))
    np.testing.assert_allclose(sparse.scores_, dense.scores_, atol=1e-9)


def test_starts_are_uniform_seeded_and_as_wide_as_the_selection(starts_seen):
    X = _table()
    RNE(0.4, n_init=3, max_iter=1, random_state=5).fit(X)
    first = starts_seen["starts"]
    RNE(0.4, n_init=3, max_iter=1, random_state=5).fit(X)
    assert [start.shape for start in first] == [(15, 6)] * 3
    for start, again in zip(first, starts_seen["starts"], strict=True):
        np.testing.assert_array_equal(start, again)
        assert 0 < start.min() < 0.2
        assert 0.8 < start.max() < 1
    assert not np.array_equal(first[0], first[1])


def test_more_starts_never_end_in_a_larger_objective():
    X = _table()
    one, five = (RNE(4, n_init=n, max_iter=5, random_state=0).fit(X) for n in (1, 5))
    assert five.objective_[-1] <= one.objective_[-1]


def test_no_more_columns_than_varying_features_are_sought(starts_seen):
    X = _table()
    X[:, :10] = 7.0
    with pytest.warns(DataWarning, match="do not vary"):
        selector = RNE(8, max_iter=1, random_state=0).fit(X)
    assert starts_seen["starts"][0].shape == (5, 5)
    assert selector.support_.sum() == 8
    assert selector.support_[10:].all()


def test_too_few_samples_for_the_neighbours_are_said_with_both_numbers():
    with pytest.warns(DataWarning, match=r"n_neighbors=5 .* 3 neighbours"):
        RNE(2, max_iter=1, random_state=0).fit(_table(n_samples=4))


def test_samples_on_one_ray_are_said_to_carry_nothing():
    X = np.outer(np.arange(1.0, 9.0), np.array([1.0, 2.0, 2.0]))
    with pytest.warns(DataWarning, match="random start"):
        RNE(1, max_iter=1, random_state=0).fit(X)


def test_a_table_too_wide_for_memory_is_refused_with_the_number(monkeypatch):
    monkeypatch.setattr("keepers.selectors.memory.physical_memory", lambda: 1000.0)
    with pytest.raises(DataError, match=r"RNE needs about .* GB for the 15 x 15 products"):
        RNE(4).fit(_table())


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("n_neighbors", 0),
        ("alpha", 0.0),
        ("alpha", np.inf),
        ("n_init", 0),
        ("lle_orientation", "transposed"),
        ("max_iter", 0),
        ("tol", -1e-3),
    ],
)
def test_a_setting_outside_its_rule_is_named(setting, value):
    with pytest.raises(ParameterError, match=setting):
        RNE(4, **{setting: value}).fit(_table())
