"""U2FS against least squares, a fresh factorisation at every step, and the authors' program."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from keepers.solvers import u2fs
from keepers.solvers.u2fs import (
    choose_ridge,
    embed_for_utility,
    remove_by_utility,
    utilities,
)
from shared_material import fixture

TABLES = ["mix", "digits", "blobs", "wide"]
# Relative differences that were reported when the fixtures were made, a hundred times.
UTILITY_TOL = {"mix": 1.5e-11, "digits": 1.5e-11, "blobs": 1.5e-11, "wide": 1.7e-8}


def rng():
    return np.random.default_rng(0)


def example(n, d, c=3, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, d)) @ (np.eye(d) + 0.2 * generator.standard_normal((d, d)))
    return X - X.mean(axis=0), generator.standard_normal((n, c))


def least_squares_error(X, E):
    fitted = X @ np.linalg.lstsq(X, E, rcond=None)[0] if X.shape[1] else 0.0
    return np.sum((E - fitted) ** 2) / len(X)


def assert_removes_the_least_at_every_step(X, E, result, rtol):
    """Each removal against all utilities of the features left, factorised afresh."""
    left = list(range(X.shape[1]))
    for feature in result.removed:
        fresh = utilities(X[:, left], E, result.ridge.delta)
        place = left.index(feature)
        assert fresh[place] <= fresh.min() * (1 + rtol)
        assert result.utilities[feature] == pytest.approx(fresh[place], rel=rtol)
        left.remove(feature)


def test_utilities_are_the_rises_of_the_least_squares_error():
    X, E = example(40, 9)
    every = np.arange(9)
    without = [least_squares_error(X[:, every != j], E) for j in every]
    expected = np.array(without) - least_squares_error(X, E)
    np.testing.assert_allclose(utilities(X, E, 0.0), expected, rtol=1e-10)
    result = remove_by_utility(X, E)
    error = least_squares_error(X, E)
    for step, feature in enumerate(result.removed):
        after = least_squares_error(X[:, result.removed[step + 1 :]], E)
        assert result.utilities[feature] == pytest.approx(after - error, rel=1e-9)
        error = after


def test_orthonormal_features_are_removed_by_their_own_covariance_with_the_embedding():
    generator = rng()
    n = 30
    X = np.sqrt(n) * np.linalg.qr(generator.standard_normal((n, 8)))[0]
    E = generator.standard_normal((n, 2))
    expected = np.sum((X.T @ E) ** 2, axis=1) / n**2
    np.testing.assert_allclose(utilities(X, E, 0.0), expected, rtol=1e-12)
    result = remove_by_utility(X, E)
    np.testing.assert_array_equal(result.removed, np.argsort(expected))
    np.testing.assert_allclose(result.utilities, expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(60, 25), (20, 70)])
def test_rotations_signs_and_the_unit_of_the_embedding_do_not_matter(shape):
    X, E = example(*shape)
    rotation = np.linalg.qr(rng().standard_normal((3, 3)))[0]
    plain = remove_by_utility(X, E)
    turned = remove_by_utility(X, -7.0 * E @ rotation)
    np.testing.assert_array_equal(turned.removed, plain.removed)
    np.testing.assert_allclose(turned.utilities, 49 * plain.utilities, rtol=1e-6)


@pytest.mark.parametrize("shape", [(120, 100), (30, 90), (12, 200), (50, 51)])
def test_every_removal_is_that_of_a_fresh_factorisation(shape):
    X, E = example(*shape)
    assert_removes_the_least_at_every_step(X, E, remove_by_utility(X, E), 1e-6)


def test_collinear_columns_leave_no_rounding_behind_once_they_are_gone():
    X, noise = example(120, 40)
    E = X @ rng().standard_normal((40, 3)) + 1e-3 * noise
    near = X[:, :5] + 1e-5 * rng().standard_normal((120, 5))
    X = np.hstack([X, near])  # variance inflation of 1e10 until one of each pair is gone
    result = remove_by_utility(X, E)
    assert result.ridge.delta == 0.0
    # What a pair has beside its common part is of little use, so one of each goes first.
    assert {feature % 40 for feature in result.removed[:5]} == set(range(5))
    left = np.sort(result.removed[5:]).tolist()
    for feature in result.removed[5:]:
        fresh = utilities(X[:, left], E, 0.0)
        assert result.utilities[feature] == pytest.approx(fresh.min(), rel=1e-9)
        left.remove(feature)


def test_both_ways_of_removing_agree(monkeypatch):
    X, E = example(25, 80)
    by_samples = remove_by_utility(X, E)
    monkeypatch.setattr(u2fs, "_remove_by_samples", lambda Z, *_: np.arange(Z.shape[1]))
    by_inverse = remove_by_utility(X, E)
    np.testing.assert_array_equal(by_inverse.removed, by_samples.removed)
    np.testing.assert_allclose(by_inverse.utilities, by_samples.utilities, rtol=1e-6)


@pytest.mark.parametrize("shape", [(60, 12), (10, 30)])
def test_of_identical_columns_the_first_is_kept_longest(shape):
    X, E = example(*shape)
    d = shape[1]
    doubled = np.hstack([X, X, -X])
    place = np.empty(3 * d)
    place[remove_by_utility(doubled, E).removed] = np.arange(3 * d)
    if d < shape[0]:  # copies are of no use at all beside the first, and go before any of these
        assert set(np.flatnonzero(place >= 2 * d)) == set(range(d))
    assert np.all(place[:d] > place[d : 2 * d])
    assert np.all(place[d : 2 * d] > place[2 * d :])


@pytest.mark.parametrize(
    ("spectrum", "n_features", "delta", "rank"),
    [
        ([1.0, 2, 3], 3, 0.0, 3),
        ([9.0, 8, 7, 6, 5, 4, 3], 8, 4e-5, 7),
        ([5.0, 1e-17, 3.0], 3, 3e-5, 2),
        ([1.0, -1e-18], 5, 1e-5, 1),
        ([1e9, 1e-5], 4, 4 * 2.0**-52 * 1e9, 2),  # 1e-5 of the last would be below rounding
        ([0.0, 0.0], 3, 1.0, 0),
    ],
)
def test_the_ridge_is_a_share_of_the_sixth_eigenvalue_above_rounding(
    spectrum, n_features, delta, rank
):
    found = choose_ridge(np.array(spectrum), n_features)
    assert found.delta == pytest.approx(delta, rel=1e-12)
    assert found.rank == rank


@pytest.mark.parametrize("name", TABLES)
def test_the_embedding_is_that_of_the_definition_and_adds_up_to_zero(name):
    stored = fixture(f"u2fs_authors_{name}")
    found = embed_for_utility(stored["S"], int(stored["n_clusters"]), rng())
    assert found.converged
    np.testing.assert_allclose(found.E.sum(axis=0), 0.0, atol=1e-11)
    signs = np.sign(np.sum(found.E * stored["E"], axis=0))
    np.testing.assert_allclose(found.E * signs, stored["E"], atol=1e-9)


@pytest.mark.parametrize("name", TABLES)
def test_the_order_of_removal_is_that_of_the_authors_program(name):
    stored = fixture(f"u2fs_authors_{name}")
    result = remove_by_utility(stored["X"], stored["E"])
    np.testing.assert_array_equal(result.removed[:-1], stored["removed"])
    assert result.removed[-1] == stored["last_kept"].item()
    assert result.ridge.delta == pytest.approx(float(stored["delta"]), rel=2e-13)
    assert result.ridge.rank == int(stored["rank"])
    for m in (3, 8):
        chosen = np.sort(result.removed[-m:])
        for key in (f"selected_{m}", f"selected_end_to_end_{m}", f"selected_{m}_multi"):
            np.testing.assert_array_equal(chosen, np.sort(stored[key].ravel()))


@pytest.mark.parametrize("name", TABLES)
def test_utilities_are_those_of_the_authors_program(name):
    stored = fixture(f"u2fs_authors_{name}")
    X, E, delta = stored["X"], stored["E"], float(stored["delta"])
    removed = remove_by_utility(X, E).removed
    d, tol = X.shape[1], UTILITY_TOL[name]

    def before(step):
        return utilities(X[:, np.sort(removed[step:])], E, delta)

    np.testing.assert_allclose(before(0), stored["utilities_first"], rtol=tol)
    np.testing.assert_allclose(before(4), stored["utilities_step5"], rtol=tol)
    for row, step in zip(stored["utilities_last10"], range(d - 11, d - 1), strict=True):
        np.testing.assert_allclose(before(step), row[: d - step], rtol=tol)


@pytest.mark.parametrize("name", TABLES)
def test_the_rise_of_the_error_at_each_removal_is_that_of_the_authors_program(name):
    stored = fixture(f"u2fs_authors_{name}")
    result = remove_by_utility(stored["X"], stored["E"])
    last = stored["removed"][-10:]
    smallest = [row[: 11 - i].min() for i, row in enumerate(stored["utilities_last10"])]
    np.testing.assert_allclose(result.utilities[last], smallest, rtol=UTILITY_TOL[name])


def solve_exactly(A, B):
    """A^-1 B by elimination on arrays of Decimal; A is positive definite."""
    A, B = A.copy(), B.copy()
    for i in range(len(A)):
        for row in range(len(A)):
            if row != i:
                share = A[row, i] / A[i, i]
                A[row] -= share * A[i]
                B[row] -= share * B[i]
    return B / A.diagonal()[:, np.newaxis]


def exact_utilities(X, E, delta):
    """With 40 digits, from K^-1 = (I - X'(n delta I + XX')^-1 X) / delta."""
    with localcontext(prec=40):
        to_decimals = np.vectorize(Decimal, otypes=[object])
        X, E, ridge = to_decimals(X), to_decimals(E), len(X) * Decimal(delta)
        G = X @ X.T
        G[np.diag_indices(len(G))] += ridge
        solved = solve_exactly(G, np.hstack([E, X]))
        w, leverage = X.T @ solved[:, : E.shape[1]], (X * solved[:, E.shape[1] :]).sum(axis=0)
        found = Decimal(delta) * (w**2).sum(axis=1) / (1 - leverage)
    return found.astype(np.float64)


@pytest.mark.parametrize("step", [0, 20, 39])
def test_utilities_of_more_features_than_samples_keep_their_digits(step):
    stored = fixture("u2fs_authors_wide")
    X, E, delta = stored["X"], stored["E"], float(stored["delta"])
    result = remove_by_utility(X, E)
    left = np.sort(result.removed[step:])
    exact = exact_utilities(X[:, left], E, delta)
    found = result.utilities[result.removed[step]]
    assert found == pytest.approx(exact.min(), rel=1e-12)
    if step == 0:
        lost = np.abs(stored["utilities_first"] / exact - 1).max()
        assert lost > 1e-9  # by the inverse of K, in the authors' program
