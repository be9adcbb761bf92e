"""RSR against CVXPY's solutions, closed forms and its own certificate, computed anew."""

import numpy as np
import pytest

from keepers.exceptions import ConvergenceWarning, DataWarning
from keepers.methods.rivals import rsr
from keepers.methods.rivals.rsr import RSR, pulls_of_zero, solve_rsr
from shared_material import fixture

PROBLEMS = [
    *((name, i) for name in ("mix", "digits", "blobs") for i in range(4)),
    *(("wide", i) for i in range(3)),
]
EVERY_PROBLEM = pytest.mark.parametrize(("name", "i"), PROBLEMS)


def largest_penalty(X):
    return float(pulls_of_zero(X).max())


def table(shape=(30, 12), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    X[:, : shape[1] // 2] += (
        2 * rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1] // 2))
    )
    return X - X.mean(axis=0)


def objective(X, W, penalty):
    return np.linalg.norm(X - X @ W, axis=1).sum() + penalty * np.linalg.norm(W, axis=1).sum()


def solution(X, penalty, found):
    """W of the weights, by its definition."""
    K = (X * found.r) @ X.T + penalty * np.diag(found.e)
    return found.r[:, np.newaxis] * (X.T @ np.linalg.solve(K, X))


@pytest.fixture(params=["by the smaller side", "by samples"])
def form(request, monkeypatch):
    """The matrix of a step is d x d for d <= n, n x n otherwise; n x n is always right."""
    if request.param == "by samples":
        monkeypatch.setattr(rsr, "_by_features", rsr._by_samples)


@EVERY_PROBLEM
@pytest.mark.usefixtures("form")
def test_the_gap_is_closed_and_objective_and_scores_are_those_of_cvxpy(name, i):
    reference = fixture(f"rsr_cvxpy_{name}")
    found = solve_rsr(reference["X"], float(reference[f"lambda_{i}"]))
    assert found.converged
    assert found.gap <= 1e-6
    best = float(reference[f"objective_{i}"])
    assert found.value == pytest.approx(best, rel=2.2e-6)
    assert found.bound <= best * (1 + 1e-7)
    np.testing.assert_allclose(found.row_norms, reference[f"score_{i}"], rtol=0, atol=1e-4)


@EVERY_PROBLEM
def test_how_near_rows_are_to_entering_is_that_of_cvxpys_dual(name, i):
    reference = fixture(f"rsr_cvxpy_{name}")
    X, penalty = reference["X"], float(reference[f"lambda_{i}"])
    found = solve_rsr(X, penalty)
    expected = np.linalg.norm(X.T @ reference[f"Lambda_{i}"], axis=1) / penalty
    np.testing.assert_allclose(found.pulls, expected, atol=2e-3)
    assert found.pulls.max() <= 1.0 + 1e-12


@EVERY_PROBLEM
def test_the_largest_lambda_is_that_stored(name, i):
    reference = fixture(f"rsr_cvxpy_{name}")
    assert largest_penalty(reference["X"]) == pytest.approx(
        float(reference["lambda_max"]), rel=1e-12
    )


@pytest.mark.parametrize("shape", [(30, 12), (12, 30), (60, 5)])
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_value_and_bound_hold_for_the_matrix_that_the_weights_define(shape, share):
    X = table(shape)
    penalty = share * largest_penalty(X)
    found = solve_rsr(X, penalty)
    W = solution(X, penalty, found)
    assert objective(X, W, penalty) == pytest.approx(found.value, rel=1e-6)
    np.testing.assert_allclose(np.linalg.norm(W, axis=1), found.row_norms, atol=1e-5)
    dual = (X - X @ W) / found.e[:, np.newaxis]
    longest = max(
        1.0,
        np.linalg.norm(dual, axis=1).max(),
        np.linalg.norm(X.T @ dual, axis=1).max() / penalty,
    )
    assert np.vdot(X, dual) / longest <= found.value * (1 + 1e-9)
    assert np.vdot(X, dual) / longest >= found.value * (1 - 1e-4)


@pytest.mark.usefixtures("form")
def test_a_diagonal_table_keeps_the_entries_above_lambda():
    x = np.array([0.2, 0.7, 1.3, 2.0, 5.0, 0.9])
    found = solve_rsr(np.diag(x), 1.0, tol=1e-9)
    np.testing.assert_allclose(found.row_norms, x > 1.0, atol=1e-8)


@pytest.mark.usefixtures("form")
def test_below_its_smallest_lambda_the_identity_is_found():
    X = table((40, 8))
    # W = I is optimal up to 1 / max_i |x_i (X'X)^-1|: there Y = X (X'X)^-1 lambda is feasible.
    penalty = 0.9 / np.linalg.norm(X @ np.linalg.inv(X.T @ X), axis=1).max()
    found = solve_rsr(X, penalty)
    np.testing.assert_allclose(found.row_norms, 1.0, atol=1e-6)
    assert found.value == pytest.approx(8 * penalty, rel=1e-6)


@pytest.mark.usefixtures("form")
def test_the_derivatives_are_those_of_differences():
    """The gradient of J, by both forms."""
    X = table((9, 7)) / 3
    weights = np.random.default_rng(2).uniform(0.5, 1.5, 16)
    ahead = [rsr._evaluate(X, 0.4, weights + step).J for step in 1e-5 * np.eye(16)]
    behind = [rsr._evaluate(X, 0.4, weights - step).J for step in 1e-5 * np.eye(16)]
    differences = (np.array(ahead) - behind) / 2e-5
    np.testing.assert_allclose(rsr._evaluate(X, 0.4, weights).gradient, differences, atol=1e-8)


@pytest.mark.parametrize("name", ["mix", "wide"])
def test_the_upper_bound_never_rises_and_ends_at_the_objective(name):
    reference = fixture(f"rsr_cvxpy_{name}")
    found = solve_rsr(reference["X"], float(reference["lambda_1"]))
    assert np.all(np.diff(found.objective) < 0)
    assert found.objective[-1] == pytest.approx(found.value, rel=1e-6)


# The estimator.


def test_rows_at_zero_are_ordered_by_how_near_they_are_to_entering():
    X = table((60, 10))
    with pytest.warns(DataWarning, match=r"8 features should be kept, but only \d rows of W"):
        selector = RSR(8, share=0.8).fit(X)
    inactive = np.argsort(selector.ranking_)[selector.n_active_ :]
    centred = X - X.mean(axis=0)
    with pytest.warns(DataWarning, match="only 0 rows of W are not zero with share=1"):
        every = RSR(8, share=1.0).fit(X)
    # At W = 0 that is the length of sum_i x_ij x_i / |x_i|.
    units = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    lengths = np.linalg.norm(centred.T @ units, axis=1)
    np.testing.assert_allclose(every.scores_, lengths / lengths.max(), rtol=1e-9)
    assert every.n_active_ == 0
    assert np.all(np.diff(selector.scores_[inactive]) <= 0)
    assert np.all(selector.scores_[inactive] > 0)


def test_a_share_below_the_identity_end_is_told_of():
    X = table((200, 5))
    X[:, :4] = np.random.default_rng(1).standard_normal((200, 4))
    with pytest.warns(DataWarning, match=r"W = I is optimal with share=0\.001"):
        selector = RSR(2, share=0.001).fit(X)
    np.testing.assert_array_equal(selector.scores_, 1.0)
    assert set(selector.top(2).indices) == set(np.argsort(-X.std(axis=0))[:2])


def test_a_run_cut_short_warns_with_the_gap_it_proved():
    with pytest.warns(ConvergenceWarning, match="proved to be within"):
        assert not RSR(3, max_iter=1).fit(table()).converged_
    early = solve_rsr(table(), 0.3 * largest_penalty(table()), max_iter=1)
    late = solve_rsr(table(), 0.3 * largest_penalty(table()))
    assert early.gap >= early.value / late.value - 1 > 0
