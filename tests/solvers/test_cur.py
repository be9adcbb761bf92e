"""CUR against skmatter, singular value decompositions, and SPCAFS without its penalty."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers import SPCAFS
from keepers.linalg.moments import ColumnMoments, column_moments
from keepers.linalg.scatter import as_short_factor
from keepers.solvers import cur as module
from keepers.solvers.cur import leverage_scores, solve_cur
from keepers.solvers.picked_columns import best_shares
from shared_material import fixture

STORAGES = {"array": np.asarray, "csr": sp.csr_array, "csc": sp.csc_array}
SETS = ["mix", "digits", "blobs", "wide"]


def columns(X, storage="array"):
    values = STORAGES[storage](X)
    return as_short_factor(values, column_moments(values))


def uncentred(X):
    X = np.asarray(X, dtype=float)
    return as_short_factor(X, ColumnMoments(len(X), np.zeros(X.shape[1]), np.sum(X**2, axis=0)))


def by_svd(X, k, n_picks, every=1):
    """The recursion with a singular value decomposition of the residual matrix at every step."""
    A = X - X.mean(axis=0)
    order, seen = [], []
    for step in range(n_picks):
        if step % every == 0:
            pi = np.sum(np.linalg.svd(A, full_matrices=False)[2][:k] ** 2, axis=0)
        pi[order] = 0.0
        order.append(int(np.argmax(pi)))
        seen.append(pi[order[-1]])
        q = A[:, order[-1]] / np.linalg.norm(A[:, order[-1]])
        A = A - np.outer(q, q @ A)
    return order, seen


@pytest.fixture(params=["decomposed", "iterated", "by products"])
def way(request, monkeypatch):
    """All eigenvectors of AA'; some of them; without forming it."""
    if request.param != "decomposed":
        monkeypatch.setattr(module, "_DECOMPOSED", 1)
    if request.param == "by products":
        monkeypatch.setattr(module, "SMALL_SIDE", 1)
    return request.param


# 100 times what another implementation reached; iterations end at residuals of 1e-12.
LEVERAGE_TOL = {"decomposed": 4.2e-13, "iterated": 1e-10, "by products": 1e-10}


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", SETS)
def test_orders_and_leverages_are_those_of_skmatter(name, k, storage, way):
    stored, tol = fixture(f"cur_css_{name}"), LEVERAGE_TOL[way]
    found = solve_cur(columns(stored["X"], storage), k, 12)
    np.testing.assert_array_equal(found.order, stored[f"cur_selected_k{k}_every1"])
    path = stored[f"cur_pi_path_k{k}_every1"]
    at_selection = path[np.arange(12), found.order]
    np.testing.assert_allclose(found.values[found.order], at_selection, rtol=0, atol=tol)
    final = np.where(np.isin(np.arange(len(found.values)), found.order), 0.0, found.values)
    np.testing.assert_allclose(final, stored[f"cur_pi_final_k{k}_every1"], rtol=0, atol=tol)
    assert found.converged


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", SETS)
def test_leverages_of_the_whole_table_are_those_of_skmatter(name, k, way):
    stored, tol = fixture(f"cur_css_{name}"), LEVERAGE_TOL[way]
    found = leverage_scores(columns(stored["X"]), k, 12)
    np.testing.assert_array_equal(found.order, stored[f"cur_selected_k{k}_every0"])
    np.testing.assert_allclose(found.values, stored[f"cur_pi_first_k{k}_every0"], rtol=0, atol=tol)
    assert found.values.sum() == pytest.approx(k, abs=1e-12)


@pytest.mark.parametrize("name", SETS)
def test_residuals_are_those_of_the_recorded_picks(name):
    stored = fixture(f"cur_css_{name}")
    X = columns(stored["X"])
    found = solve_cur(X, 1, 12)
    residuals = found.left[1:] * stored["css_total"]
    np.testing.assert_allclose(residuals, stored["cur_residuals_k1_every1"], rtol=2.1e-13)
    assert np.all(np.diff(found.left) < 0)
    assert np.all(found.explained <= best_shares(X, 12) + 1e-12)


def test_picks_explain_the_shares_that_the_page_tells():
    for name, share in zip(SETS, (0.715, 0.832, 0.928, 0.725), strict=True):
        found = solve_cur(columns(fixture(f"cur_css_{name}")["X"]), 1, 12)
        assert found.explained[-1] == pytest.approx(share, abs=5e-4)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_leverage_is_the_squared_row_norm_of_spcafs_without_penalty(k):
    X = fixture("cur_css_mix")["X"]
    W = SPCAFS(n_components=k, gamma=1e-12, random_state=0).fit(X).components_.T
    found = leverage_scores(columns(X), k, 5).values
    np.testing.assert_allclose(found, np.sum(W**2, axis=1), atol=1e-6)


@pytest.mark.usefixtures("way")
def test_a_diagonal_is_picked_by_the_size_of_its_entries():
    X = np.zeros((8, 3))
    X[:3] = np.diag([3.0, 2.0, 1.0])
    assert solve_cur(uncentred(X), 1, 3).order.tolist() == [0, 1, 2]
    assert solve_cur(uncentred(X[:, ::-1]), 1, 3).order.tolist() == [2, 1, 0]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("every", [2, 5])
def test_leverages_are_kept_between_recomputations(every):
    X = fixture("cur_css_digits")["X"]
    found = solve_cur(columns(X), 3, 12, every)
    order, seen = by_svd(X, 3, 12, every)
    assert found.order.tolist() == order
    np.testing.assert_allclose(found.values[found.order], seen, atol=1e-10)


@pytest.mark.parametrize("shape", [(300, 400), (400, 200)])
@pytest.mark.parametrize("k", [1, 4])
def test_a_larger_table_has_the_order_of_decompositions_of_the_residual(shape, k):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((shape[0], 8)) @ rng.standard_normal((8, shape[1]))
    X += 0.5 * rng.standard_normal(shape)
    found = solve_cur(columns(X), k, 15)
    order, seen = by_svd(X, k, 15)
    assert found.order.tolist() == order
    np.testing.assert_allclose(found.values[found.order], seen, atol=1e-9)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("factor", [1.0, -2.0, 1e-30])
def test_a_copy_of_a_pick_is_never_picked(factor):
    X = np.random.default_rng(0).standard_normal((40, 9))
    found = solve_cur(columns(np.hstack([X, factor * X])), 1, 18)
    assert len(found.order) == 9
    assert len(set(found.order % 9)) == 9
    assert found.left[-1] == 0.0


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("k", [1, 2])
def test_equal_singular_values_share_their_vectors_so_that_rounding_does_not_choose(k):
    """Indicators of six groups of five: all leverages are equal, and the first columns win."""
    X = np.kron(np.eye(6), np.ones((5, 1)))
    found = solve_cur(uncentred(X), k, 6)
    assert found.order.tolist() == [0, 1, 2, 3, 4, 5]
    np.testing.assert_allclose(leverage_scores(uncentred(X), k, 6).values, k / 6, atol=1e-12)


def low_rank():
    """Integers of rank 3 in eight columns."""
    rng = np.random.default_rng(0)
    base = rng.integers(-3, 4, (12, 3)).astype(float)
    return np.hstack([base, base @ rng.integers(-2, 3, (3, 5))])


def test_skmatter_continues_with_rounding_where_nothing_is_left():
    """Its steps in NumPy: three picks leave nothing, and the next ones still have leverages."""
    X = low_rank()
    A = X - X.mean(axis=0)
    for column in by_svd(X, 1, 3)[0]:
        q = A[:, column] / np.linalg.norm(A[:, column])
        A = A - np.outer(q, q @ A)
    assert np.linalg.norm(A) < 1e-12 * np.linalg.norm(X)
    noise = np.linalg.svd(A)[2][0] ** 2
    assert noise.sum() == pytest.approx(1.0)
    assert noise.max() > 0.1


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("k", [1, 3, 8])
def test_picks_end_where_nothing_is_left(k):
    found = solve_cur(columns(low_rank()), k, 8)
    assert len(found.order) == 3
    assert found.left[-1] == 0.0
    rest = np.setdiff1d(np.arange(8), found.order)
    # Nothing was computed for them: exactly 0.
    np.testing.assert_array_equal(found.scores[rest], 0.0)


@pytest.mark.usefixtures("way")
def test_columns_far_smaller_than_rounding_of_the_largest_are_picked_in_their_turn():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6)) * 10.0 ** np.array([0, -9, -18, -27, -36, -45])
    found = solve_cur(columns(X), 1, 6)
    assert found.order.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.left[-2] == pytest.approx(1e-90, rel=10)


def test_scores_fall_along_the_order_and_the_others_follow():
    found = solve_cur(columns(fixture("cur_css_wide")["X"]), 1, 12)
    assert np.all(np.diff(found.scores[found.order]) < 0)
    rest = np.setdiff1d(np.arange(80), found.order)
    assert found.scores[rest].max() < found.scores[found.order].min()
    more = solve_cur(columns(fixture("cur_css_wide")["X"]), 1, 13)
    assert more.order[12] == rest[np.argmax(found.scores[rest])]


def test_picks_reconstruct_and_leverages_of_the_whole_table_find_clusters():
    picks, once = {}, {}
    for name, k, n_components in (("mix", 8, 3), ("blobs", 6, 2), ("wide", 10, 3)):
        stored = fixture(f"data_{name}")
        X, informative = columns(stored["X"]), set(stored["informative"])
        picks[name] = len(informative & set(solve_cur(X, 1, k).order))
        once[name] = len(informative & set(leverage_scores(X, n_components, k).order))
    assert picks == {"mix": 4, "blobs": 2, "wide": 4}
    assert once == {"mix": 7, "blobs": 6, "wide": 10}
