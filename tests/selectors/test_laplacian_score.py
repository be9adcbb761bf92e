"""What the selector adds to the Laplacian score."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.exceptions import DataWarning, ParameterError
from keepers.selectors.laplacian_score import LaplacianScore
from shared_material import fixture


def table(seed=0, n=60, d=8):
    """Three clusters that columns 0 to 2 tell apart; the rest is noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, :3] += 8 * rng.standard_normal((3, 3))[rng.integers(0, 3, n)]
    return X


@pytest.mark.parametrize("name", ["mix", "digits", "blobs", "wide"])
@pytest.mark.parametrize(
    ("mode", "parameters"),
    [
        ("heat", {}),
        ("heat_t1", {"bandwidth": 1.0}),
        ("binary", {"weights": "binary"}),
        ("binary_self", {"weights": "binary", "self_loops": True}),
    ],
)
def test_the_whole_fit_is_cais_program(name, mode, parameters):
    stored = fixture(f"lapscore_cai_{name}")
    selector = LaplacianScore(n_neighbors=int(stored["k"]), **parameters).fit(stored["X"])
    expected = stored[f"score_{mode}"].ravel()
    np.testing.assert_allclose(selector.laplacian_scores_, expected, atol=4e-9)


def test_the_whole_fit_with_self_loops_is_scikit_feature():
    stored = fixture("lapscore_skfeature_mix")
    selector = LaplacianScore(bandwidth=float(stored["t"]), self_loops=True).fit(stored["X"])
    np.testing.assert_allclose(selector.laplacian_scores_, stored["score_heat"], atol=4e-9)
    np.testing.assert_array_equal(np.argsort(selector.ranking_), stored["ranking_heat"])


def test_scores_are_negated_so_that_higher_is_better():
    selector = LaplacianScore(3).fit(table())
    np.testing.assert_array_equal(selector.scores_, -selector.laplacian_scores_)
    np.testing.assert_array_equal(np.flatnonzero(selector.support_), [0, 1, 2])


def test_constant_columns_hold_the_worst_score_there_is():
    X = table()
    X[:, 4] = 7.0
    with pytest.warns(DataWarning, match="do not vary"):
        selector = LaplacianScore(3).fit(X)
    assert selector.scores_[4] == -2.0
    assert selector.ranking_[4] == 8
    assert np.isfinite(selector.scores_).all()


def test_a_bandwidth_far_below_the_distances_warns_and_ranks_nothing():
    with pytest.warns(DataWarning, match="underflow"):
        selector = LaplacianScore(3, bandwidth=1e-3).fit(table())
    np.testing.assert_array_equal(selector.scores_, -2.0)


def test_few_samples_use_all_the_neighbours_there_are_and_say_so():
    X = table(n=4)
    with pytest.warns(DataWarning, match="n_neighbors=5 needs at least 6 samples; X has 4, so 3"):
        capped = LaplacianScore().fit(X)
    # Exactly: the same computation twice.
    np.testing.assert_array_equal(capped.scores_, LaplacianScore(n_neighbors=3).fit(X).scores_)


@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("weights", ["heat", "binary"])
def test_sparse_storage_changes_nothing(storage, weights):
    X = table() * (np.random.default_rng(1).uniform(size=(60, 8)) < 0.5)
    np.testing.assert_allclose(
        LaplacianScore(weights=weights).fit(storage(X)).scores_,
        LaplacianScore(weights=weights).fit(X).scores_,
        rtol=1e-10,
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be an integer >= 1; got 0"),
        ({"weights": "cosine"}, "weights must be one of 'heat', 'binary'; got 'cosine'"),
        ({"bandwidth": 0.0}, "bandwidth must be a finite number > 0; got 0.0"),
        ({"self_loops": 1}, "self_loops must be True or False; got 1"),
    ],
)
def test_a_setting_outside_its_rule_is_refused_with_the_rule(parameters, message):
    with pytest.raises(ParameterError, match=message):
        LaplacianScore(**parameters).fit(table())
