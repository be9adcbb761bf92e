"""RSR against CVXPY's solutions, closed forms and its own certificate, computed anew."""

import numpy as np
import pytest

from keepers.solvers import rsr
from keepers.solvers.rsr import identity_penalty, largest_penalty, solve_rsr
from shared_material import fixture

PROBLEMS = [
    *((name, i) for name in ("mix", "digits", "blobs") for i in range(4)),
    *(("wide", i) for i in range(3)),
]
FORMS = [rsr._ByFeatures, rsr._BySamples]
EVERY_PROBLEM = pytest.mark.parametrize(("name", "i"), PROBLEMS)


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


def reweighted(X, penalty, update, n_steps=2000):
    """The usual iteration, with a step of somebody's own: (X' G_L X, 1 / G_R) -> W."""
    left, right = np.ones(len(X)), np.ones(X.shape[1])
    for _ in range(n_steps):
        W = update(X.T @ (left[:, np.newaxis] * X), 1.0 / right)
        left = 0.5 / np.maximum(np.linalg.norm(X - X @ W, axis=1), 1e-9)
        right = 0.5 / np.maximum(np.linalg.norm(W, axis=1), 1e-9)
    return W


@EVERY_PROBLEM
@pytest.mark.parametrize("form", FORMS)
def test_the_gap_is_closed_and_objective_and_scores_are_those_of_cvxpy(name, i, form):
    reference = fixture(f"rsr_cvxpy_{name}")
    found = solve_rsr(reference["X"], float(reference[f"lambda_{i}"]), _form=form)
    assert found.converged
    assert found.gap <= 1e-6
    best = float(reference[f"objective_{i}"])
    assert found.value == pytest.approx(best, rel=2.2e-6)
    assert found.bound <= best * (1 + 1e-7)
    np.testing.assert_allclose(found.row_norms, reference[f"score_{i}"], rtol=0, atol=1e-4)


@EVERY_PROBLEM
def test_a_tight_tolerance_gives_the_objective_to_1e_7(name, i):
    reference = fixture(f"rsr_cvxpy_{name}")
    found = solve_rsr(reference["X"], float(reference[f"lambda_{i}"]), tol=1e-8)
    assert found.value == pytest.approx(float(reference[f"objective_{i}"]), rel=1e-7)


@EVERY_PROBLEM
def test_how_near_rows_are_to_entering_is_that_of_cvxpys_dual(name, i):
    reference = fixture(f"rsr_cvxpy_{name}")
    X, penalty = reference["X"], float(reference[f"lambda_{i}"])
    found = solve_rsr(X, penalty)
    expected = np.linalg.norm(X.T @ reference[f"Lambda_{i}"], axis=1) / penalty
    np.testing.assert_allclose(found.pulls, expected, atol=2e-3)
    assert found.pulls.max() <= 1.0 + 1e-12


@EVERY_PROBLEM
def test_the_ends_of_lambda_are_those_stored(name, i):
    reference = fixture(f"rsr_cvxpy_{name}")
    assert largest_penalty(reference["X"]) == pytest.approx(
        float(reference["lambda_max"]), rel=1e-12
    )
    if name != "wide":
        expected = float(reference["lambda_identity"])
        assert identity_penalty(reference["X"]) == pytest.approx(expected, rel=1e-10)


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


@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
def test_no_matrix_nearby_or_at_random_is_better(shape):
    X = table(shape)
    penalty = 0.3 * largest_penalty(X)
    found = solve_rsr(X, penalty)
    W = solution(X, penalty, found)
    rng = np.random.default_rng(1)
    for size in (1e-6, 1e-4, 1e-2, 1.0):
        for _ in range(20):
            other = W + size * rng.standard_normal(W.shape)
            assert objective(X, other, penalty) >= found.bound
    usual = reweighted(
        X,
        penalty,
        lambda A, g: np.linalg.solve(g[:, None] * A + penalty * np.eye(len(g)), g[:, None] * A),
    )
    assert objective(X, usual, penalty) >= found.bound


@pytest.mark.parametrize("form", FORMS)
def test_a_diagonal_table_keeps_the_entries_above_lambda(form):
    x = np.array([0.2, 0.7, 1.3, 2.0, 5.0, 0.9])
    found = solve_rsr(np.diag(x), 1.0, tol=1e-9, _form=form)
    np.testing.assert_allclose(found.row_norms, x > 1.0, atol=1e-8)


@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
def test_from_lambda_max_on_nothing_is_left(shape):
    X = table(shape)
    largest = largest_penalty(X)
    assert solve_rsr(X, 1.001 * largest).row_norms.max() < 1e-6
    assert solve_rsr(X, 0.99 * largest).row_norms.max() > 1e-4


@pytest.mark.parametrize("form", FORMS)
def test_up_to_lambda_identity_the_identity_is_optimal(form, monkeypatch):
    X = table((40, 8))
    penalty = 0.9 * identity_penalty(X)
    known = solve_rsr(X, penalty)
    assert known.n_iter == 0
    np.testing.assert_array_equal(known.row_norms, 1.0)
    monkeypatch.setattr(rsr, "identity_penalty", lambda X: 0.0)  # found, not known
    found = solve_rsr(X, penalty, _form=form)
    np.testing.assert_allclose(found.row_norms, 1.0, atol=1e-6)
    assert found.value == pytest.approx(known.value, rel=1e-6)


def test_dependent_features_have_no_identity_end():
    X = table((20, 5))
    assert identity_penalty(np.column_stack([X, X[:, 0] - X[:, 1]])) == 0.0
    assert identity_penalty(table((5, 20))) == 0.0


@pytest.mark.parametrize("share", [0.1, 0.3, 0.7])
@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
def test_both_forms_give_the_same(shape, share):
    X = table(shape)
    penalty = share * largest_penalty(X)
    by_features, by_samples = (solve_rsr(X, penalty, _form=form) for form in FORMS)
    np.testing.assert_allclose(by_features.row_norms, by_samples.row_norms, atol=1e-6)
    assert by_features.value == pytest.approx(by_samples.value, rel=1e-9)


def test_the_derivatives_are_those_of_differences():
    """Gradient and curvature of J, by both forms."""
    X = table((9, 7)) / 3
    weights = np.random.default_rng(2).uniform(0.5, 1.5, 16)
    for form in FORMS:
        descent = rsr._Descent(form(X, 0.4), 1e-9)
        point = descent._evaluate(weights)
        gradient = 0.5 * descent.prices * (1 - point.ratios**2)
        curvature = descent.form.curvature(point.parts, np.arange(7), np.arange(9))
        steps = 1e-5 * np.eye(16)
        ahead = [descent._evaluate(weights + step) for step in steps]
        behind = [descent._evaluate(weights - step) for step in steps]
        differences = [(a.J - b.J) / 2e-5 for a, b in zip(ahead, behind, strict=True)]
        np.testing.assert_allclose(gradient, differences, atol=1e-8)
        slopes = [
            0.5 * descent.prices * (b.ratios**2 - a.ratios**2) / 2e-5
            for a, b in zip(ahead, behind, strict=True)
        ]
        np.testing.assert_allclose(curvature, slopes, atol=1e-8)
        diagonal = descent.form.curvature_diagonal(point.parts, point.ratios)
        np.testing.assert_allclose(diagonal, curvature.diagonal(), rtol=1e-9)


@pytest.mark.parametrize("name", ["mix", "wide"])
def test_the_upper_bound_never_rises_and_ends_at_the_objective(name):
    reference = fixture(f"rsr_cvxpy_{name}")
    found = solve_rsr(reference["X"], float(reference["lambda_1"]))
    assert np.all(np.diff(found.objective) < 0)
    assert found.objective[-1] == pytest.approx(found.value, rel=1e-6)


def test_features_past_the_size_of_a_newton_step_are_reweighted(monkeypatch):
    X = table((15, 60))
    penalty = 0.2 * largest_penalty(X)
    whole = solve_rsr(X, penalty)
    monkeypatch.setattr(rsr, "_MOST_FEATURES", 10)
    monkeypatch.setattr(rsr, "_MOST_SAMPLES", 10)
    parts = solve_rsr(X, penalty, max_iter=500)
    assert parts.converged
    np.testing.assert_allclose(parts.row_norms, whole.row_norms, atol=1e-4)


def test_unit_and_lambda_together_change_nothing():
    X = table((20, 15))
    penalty = 0.3 * largest_penalty(X)
    first, second = solve_rsr(X, penalty), solve_rsr(1e3 * X, 1e3 * penalty)
    np.testing.assert_allclose(first.row_norms, second.row_norms, atol=1e-9)
    assert second.value == pytest.approx(1e3 * first.value, rel=1e-9)


@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
def test_permuted_features_get_permuted_scores(shape):
    X = table(shape)
    order = np.random.default_rng(2).permutation(shape[1])
    penalty = 0.3 * largest_penalty(X)
    plain, permuted = solve_rsr(X, penalty), solve_rsr(X[:, order], penalty)
    np.testing.assert_allclose(permuted.row_norms, plain.row_norms[order], atol=1e-8)


def test_zero_samples_cost_nothing_and_zero_features_score_nothing():
    X = table((20, 6))
    penalty = 0.3 * largest_penalty(X)
    padded = np.zeros((23, 7))
    padded[:20, :6] = X
    plain, found = solve_rsr(X, penalty), solve_rsr(padded, penalty)
    np.testing.assert_allclose(found.row_norms[:6], plain.row_norms, atol=1e-6)
    assert found.row_norms[6] == 0.0
    assert found.value == pytest.approx(plain.value, rel=1e-6)
    np.testing.assert_array_equal(found.e[20:], 0.0)


def test_copies_share_what_one_of_them_would_have():
    X = table((40, 5))
    penalty = 0.4 * largest_penalty(X)
    found = solve_rsr(np.column_stack([X, X[:, 0]]), penalty)
    assert found.row_norms[5] == pytest.approx(found.row_norms[0], rel=1e-8)


def test_a_run_cut_short_says_so():
    X = table()
    found = solve_rsr(X, 0.3 * largest_penalty(X), max_iter=2)
    assert not found.converged
    assert found.n_iter == 2
    assert found.gap > 1e-6


def test_multiplying_by_lambda_in_place_of_adding_it_gives_the_identity_on_any_table():
    """The step of CAU-AIR-Lab's program: (B lambda I)^-1 B, which is I / lambda."""
    reference = fixture("rsr_cvxpy_blobs")
    penalty = float(reference["lambda_1"])

    def step(A, g):
        B = g[:, np.newaxis] * A
        return np.linalg.solve(B * penalty, B)

    W = reweighted(reference["X"], penalty, step, n_steps=10)
    np.testing.assert_allclose(penalty * W, np.eye(20), atol=1e-10)
    assert np.ptp(reference["score_1"]) > 1


def test_a_right_hand_side_without_the_weights_of_rows_misses_the_optimum():
    """The slip of Rdimtools, with the weights of the left-hand side on either side of X'GX."""
    reference = fixture("rsr_cvxpy_blobs")
    X, penalty = reference["X"], float(reference["lambda_1"])
    eye = penalty * np.eye(20)
    before = reweighted(X, penalty, lambda A, g: np.linalg.solve(g[:, None] * A + eye, A))
    behind = reweighted(X, penalty, lambda A, g: np.linalg.solve(g * A + eye, A))
    best = float(reference["objective_1"])
    assert best == pytest.approx(315.19, abs=0.01)
    assert objective(X, np.zeros((20, 20)), penalty) == pytest.approx(510.85, abs=0.01)
    # Before it, the steps do not even end; behind it they do.
    assert objective(X, before, penalty) > 1.2 * best
    assert objective(X, behind, penalty) == pytest.approx(382.13, abs=0.01)
    further = reweighted(X, penalty, lambda A, g: np.linalg.solve(g * A + eye, A), n_steps=500)
    np.testing.assert_allclose(further, behind, atol=1e-6)
    assert solve_rsr(X, penalty).value <= best * (1 + 1e-7)
