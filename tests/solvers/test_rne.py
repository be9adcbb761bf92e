import numpy as np
import pytest

from keepers.solvers.rne import gram_count, solve_rne
from shared_material import fixture

DATA = ["mix", "digits", "blobs", "wide"]
EPS = np.finfo(float).eps


def _solve(A, H0, *, max_iter=50, alpha=1e3, tol=0.0):
    return solve_rne(A, [H0], alpha=alpha, max_iter=max_iter, tol=tol)


def _random_problem(n_samples, n_features, width, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_samples, n_features)), rng.random((n_features, width))


def _as_written(A, H, alpha, max_iter):
    """The specification with the positive and the negative part of A'A in memory."""
    G = A.T @ A
    M, Y, g = A @ H, np.zeros((A.shape[0], H.shape[1])), 10.0

    def above(P):
        return (np.abs(P) + P) / 2

    for _ in range(max_iter):
        B, C = A.T @ M, A.T @ Y
        for _ in range(30):
            H = H / np.sqrt((H**2).sum(axis=0) + EPS)
            upper = alpha * H + g * above(B) + g * above(-G) @ H + above(C)
            lower = alpha * H @ H.T @ H + g * above(-B) + g * above(G) @ H + above(-C) + EPS
            H = H * np.sqrt(upper / lower)
        AH = A @ H
        M = np.sign(AH - Y / g) * np.maximum(np.abs(AH - Y / g) - 1 / g, 0)
        Y = Y + g * (M - AH)
        g = min(1.1 * g, 1e10)
    return H


@pytest.mark.parametrize(
    ("n_samples", "n_features"), [(30, 12), (10, 20), (9, 20), (5, 60)], ids=str
)
def test_two_products_take_the_place_of_the_signed_parts(n_samples, n_features):
    A, H0 = _random_problem(n_samples, n_features, 4)
    expected = _as_written(A, H0, 1e3, 5)
    np.testing.assert_allclose(_solve(A, H0, max_iter=5).H, expected, rtol=0, atol=1e-10)


def test_one_square_array_is_held_where_samples_are_few_and_two_elsewhere():
    assert gram_count(10, 21) == 1
    assert gram_count(10, 20) == 2


def test_the_recorded_objective_is_that_of_the_returned_h():
    A, H0 = _random_problem(20, 15, 4)
    result = _solve(A, H0, max_iter=7, alpha=50.0)
    gap = np.linalg.norm(result.H.T @ result.H - np.eye(4))
    expected = np.abs(A @ result.H).sum() + 50.0 / 4 * gap**2
    np.testing.assert_allclose(result.objective[-1], expected, rtol=1e-12)
    np.testing.assert_allclose(result.orthogonality_gap, gap, rtol=1e-9)
    np.testing.assert_allclose(result.squared_row_norms, (result.H**2).sum(axis=1), rtol=1e-14)
    assert result.objective.shape == (result.n_iter,) == (7,)


def test_a_run_is_decided_by_its_start_and_leaves_it_as_it_is():
    A, H0 = _random_problem(25, 15, 4)
    kept = H0.copy()
    first, second = _solve(A, H0), _solve(A, H0)
    # Exactly: the same computation twice; and H0 is not touched.
    np.testing.assert_array_equal(first.H, second.H)
    np.testing.assert_array_equal(H0, kept)


def test_permuting_features_and_start_permutes_the_scores():
    A, H0 = _random_problem(25, 15, 4)
    order = np.random.default_rng(1).permutation(15)
    np.testing.assert_allclose(
        _solve(A[:, order], H0[order], max_iter=10).squared_row_norms,
        _solve(A, H0, max_iter=10).squared_row_norms[order],
        rtol=0,
        atol=1e-9,
    )


def test_orthogonal_columns_of_very_different_length_end_in_the_shortest_ones():
    lengths = np.array([9.0, 0.1, 8.0, 0.2, 7.0, 6.0])
    A = np.linalg.qr(np.random.default_rng(2).normal(size=(10, 6)))[0] * lengths
    result = _solve(A, np.random.default_rng(3).random((6, 2)))
    assert set(np.argsort(-result.squared_row_norms)[:2]) == {1, 3}


def test_of_several_starts_the_smallest_final_objective_is_kept():
    A, _ = _random_problem(25, 15, 4)
    starts = [np.random.default_rng(seed).random((15, 4)) for seed in range(4)]
    alone = [_solve(A, start, max_iter=8) for start in starts]
    best = min(alone, key=lambda run: run.objective[-1])
    together = solve_rne(A, iter(starts), alpha=1e3, max_iter=8, tol=0.0)
    # Exactly: the same computation twice.
    np.testing.assert_array_equal(together.H, best.H)


def test_the_iteration_ends_after_two_calm_steps_in_a_row():
    A, H0 = _random_problem(25, 15, 4)
    tol = 1e-3
    full = _solve(A, H0).objective
    calm = np.abs(np.diff(full)) < tol * np.abs(full[1:])
    expected = int(np.flatnonzero(calm[1:] & calm[:-1])[0]) + 3
    result = _solve(A, H0, tol=tol)
    assert result.n_iter == expected < 50
    assert result.converged
    assert not _solve(A, H0).converged


def test_a_feature_that_leaves_no_residual_comes_first():
    A, H0 = _random_problem(25, 15, 3)
    A[:, 6] = 0.0
    assert _solve(A, H0).squared_row_norms.argmax() == 6


def test_a_residual_of_zeros_gives_finite_numbers():
    result = _solve(np.zeros((6, 5)), np.random.default_rng(0).random((5, 2)), max_iter=5)
    assert np.isfinite(result.H).all()
    assert np.isfinite(result.objective).all()


@pytest.mark.parametrize("name", DATA)
def test_h_stays_non_negative_and_nearly_orthonormal_while_the_objective_falls(name):
    stored = fixture(f"rne_authors_{name}")
    result = _solve(stored["A_authors"], stored["H0"])
    assert (result.H >= 0).all()
    assert result.orthogonality_gap < 0.1
    assert result.split_gap < 1e-2
    assert result.objective[-1] < result.objective[0]


@pytest.mark.parametrize("steps", [1, 5, 50])
@pytest.mark.parametrize("name", DATA)
def test_h_objective_and_selection_are_those_of_the_authors_program(name, steps):
    stored = fixture(f"rne_authors_{name}")
    result = _solve(stored["A_authors"], stored["H0"], max_iter=steps)
    np.testing.assert_allclose(result.H, stored[f"H_it{steps}"], rtol=0, atol=7e-13)
    np.testing.assert_allclose(result.objective, stored[f"obj_it{steps}"], rtol=0, atol=2e-11)
    _assert_selected(result, stored, f"sel_it{steps}")


@pytest.mark.parametrize("name", ["mix", "digits", "blobs"])
def test_the_untouched_file_of_the_authors_gives_the_same_run(name):
    stored = fixture(f"rne_authors_{name}")
    result = _solve(stored["A_authors"], stored["H0_unmodified"])
    np.testing.assert_allclose(result.objective, stored["obj_unmodified"], rtol=0, atol=2e-11)
    _assert_selected(result, stored, "sel_unmodified")


def _assert_selected(result, stored, key):
    order = np.argsort(-result.squared_row_norms, kind="stable")
    np.testing.assert_array_equal(order[: int(stored["m"])], stored[key])
