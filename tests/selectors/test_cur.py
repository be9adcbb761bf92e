"""What the selector adds to CUR."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers import CUR, SPCAFS, datasets
from keepers.exceptions import ConvergenceWarning, DataWarning, ParameterError
from keepers.linalg import leading_vectors
from keepers.solvers import cur as solver
from shared_material import fixture

SETS = ["mix", "digits", "blobs", "wide"]


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("every", [0, 1])
@pytest.mark.parametrize("name", SETS)
def test_a_fit_has_the_order_of_skmatter(name, every, k):
    stored = fixture(f"cur_css_{name}")
    key = f"k{k}_every{every}"
    selector = CUR(12, n_components=k, recompute_every=every).fit(stored["X"])
    np.testing.assert_array_equal(selector.top().indices, stored[f"cur_selected_{key}"])
    path = stored[f"cur_pi_path_{key}"]
    picks = selector.top().indices
    np.testing.assert_allclose(selector.leverage_[picks], path[np.arange(12), picks], atol=1e-10)


@pytest.mark.parametrize("name", SETS)
def test_without_centring_it_is_skmatter_on_the_table_as_it_is(name):
    stored = fixture(f"cur_css_{name}")
    selector = CUR(12, center=False).fit(stored["X_centred"])
    np.testing.assert_array_equal(selector.top().indices, stored["cur_selected_k1_every1"])


def test_the_explained_share_is_that_of_the_picks_and_never_above_the_best():
    for name in SETS:
        stored = fixture(f"cur_css_{name}")
        selector = CUR(12).fit(stored["X"])
        explained = 1.0 - stored["cur_residuals_k1_every1"] / stored["css_total"]
        np.testing.assert_allclose(selector.explained_share_, explained, rtol=1e-10)
        best = 1.0 - stored["css_pca_residuals"] / stored["css_total"]
        np.testing.assert_allclose(selector.best_share_, best, rtol=1e-10)
        assert np.all(selector.explained_share_ <= selector.best_share_)


def test_leverages_of_the_whole_table_rank_alike_for_every_k_and_picks_do_not():
    X = fixture("cur_css_digits")["X"]
    once = [CUR(k, recompute_every=0).fit(X) for k in (3, 9)]
    np.testing.assert_array_equal(once[0].ranking_, once[1].ranking_)
    assert not once[0].depends_on_k
    assert CUR().depends_on_k
    assert once[1].leverage_.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(once[0].scores_, once[0].leverage_)


def test_leverages_are_the_limit_of_spcafs_without_penalty():
    X = datasets.load("srbct").X
    found = CUR(50, n_components=3, recompute_every=0).fit(X)
    limit = SPCAFS(50, n_components=3, gamma=1e-12, random_state=0).fit(X)
    norms = np.sum(limit.components_**2, axis=0)
    np.testing.assert_allclose(found.leverage_, norms, atol=1e-5 * norms.max())


@pytest.mark.parametrize("every", [0, 1])
def test_sparse_and_dense_tables_give_the_same_picks(every):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 70)) * (rng.random((50, 70)) < 0.2) + 0.0
    expected = CUR(10, recompute_every=every).fit(X)
    for storage in (sp.csr_array, sp.csc_array):
        found = CUR(10, recompute_every=every).fit(storage(X))
        np.testing.assert_array_equal(found.ranking_, expected.ranking_)
        np.testing.assert_allclose(found.leverage_, expected.leverage_, atol=1e-11)


def test_picks_end_with_a_warning_where_nothing_is_left():
    X = np.random.default_rng(0).standard_normal((30, 3))
    X = np.column_stack([X, 0.1 * X[:, 0], 0.2 * X[:, 1]])
    with pytest.warns(DataWarning, match="5 features are wanted, but 3 explain all others"):
        selector = CUR(5).fit(X)
    assert selector.n_picked_ == 3
    assert selector.top(5).indices[3:].tolist() == [4, 3]


def test_vectors_that_do_not_converge_are_said_to_be_so(monkeypatch):
    monkeypatch.setattr(leading_vectors, "_MOST_PRODUCTS", 1)
    monkeypatch.setattr(solver, "_DECOMPOSED", 1)
    X = np.random.default_rng(0).standard_normal((200, 90))
    with pytest.warns(ConvergenceWarning, match="singular vectors did not converge"):
        selector = CUR(3).fit(X)
    assert not selector.converged_


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer >= 1; got 0"),
        ({"n_components": 9}, "n_components must be an integer from 1 to 3; got 9"),
        ({"recompute_every": -1}, "recompute_every must be an integer >= 0; got -1"),
        ({"center": 1}, "center must be True or False; got 1"),
    ],
)
def test_a_bad_setting_is_refused_in_one_sentence(settings, message):
    with pytest.raises(ParameterError, match=message):
        CUR(2, **settings).fit(np.random.default_rng(0).standard_normal((4, 6)))
