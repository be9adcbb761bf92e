"""U2FS against least squares, a fresh factorisation at every step, and the authors' program."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from keepers import U2FS
from keepers.exceptions import DataWarning
from keepers.linalg.graph import leading_eigenvectors
from keepers.methods.rivals import u2fs
from keepers.methods.rivals.u2fs import choose_ridge, remove_by_utility
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


def utilities(X, E, delta):
    """Of every column of X beside all the others, from the equations of the paper."""
    n, d = X.shape
    units = 1.0 / np.sqrt(np.sum(X**2, axis=0) / n + delta)  # so that K has a unit diagonal
    K = units[:, np.newaxis] * (X.T @ X / n + delta * np.eye(d)) * units
    inverse = np.linalg.inv(K)
    w = inverse @ (units[:, np.newaxis] * (X.T @ E / n))
    return np.sum(w**2, axis=1) / np.diag(inverse)


def least_squares_error(X, E):
    fitted = X @ np.linalg.lstsq(X, E, rcond=None)[0] if X.shape[1] else 0.0
    return np.sum((E - fitted) ** 2) / len(X)


def assert_removes_the_least_at_every_step(X, E, result, rtol):
    """Each removal against all utilities of the features left, factorised afresh."""
    left = list(range(X.shape[1]))
    for feature in result.removed:
        fresh = utilities(X[:, left], E, result.delta)
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


@pytest.mark.parametrize("shape", [(120, 100), (30, 90), (12, 200), (50, 51)])
def test_every_removal_is_that_of_a_fresh_factorisation(shape):
    X, E = example(*shape)
    assert_removes_the_least_at_every_step(X, E, remove_by_utility(X, E), 1e-6)


def test_both_ways_of_removing_agree(monkeypatch):
    X, E = example(25, 80)
    by_samples = remove_by_utility(X, E)

    def by_features(Z, T, delta):
        return u2fs._by_features(Z.T @ Z + delta * np.eye(Z.shape[1]), Z.T @ T)

    monkeypatch.setattr(u2fs, "_by_samples", by_features)
    by_inverse = remove_by_utility(X, E)
    np.testing.assert_array_equal(by_inverse.removed, by_samples.removed)
    np.testing.assert_allclose(by_inverse.utilities, by_samples.utilities, rtol=1e-6)


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
    assert choose_ridge(np.array(spectrum), n_features) == (pytest.approx(delta, rel=1e-12), rank)


@pytest.mark.parametrize("name", TABLES)
def test_the_embedding_is_that_of_the_definition_and_adds_up_to_zero(name):
    stored = fixture(f"u2fs_authors_{name}")
    found = leading_eigenvectors(stored["S"], int(stored["n_clusters"]), rng())
    E = found.root_degrees[:, np.newaxis] * found.vectors
    assert found.converged
    np.testing.assert_allclose(E.sum(axis=0), 0.0, atol=1e-11)
    signs = np.sign(np.sum(E * stored["E"], axis=0))
    np.testing.assert_allclose(E * signs, stored["E"], atol=1e-9)


@pytest.mark.parametrize("name", TABLES)
def test_the_order_of_removal_is_that_of_the_authors_program(name):
    stored = fixture(f"u2fs_authors_{name}")
    result = remove_by_utility(stored["X"], stored["E"])
    np.testing.assert_array_equal(result.removed[:-1], stored["removed"])
    assert result.removed[-1] == stored["last_kept"].item()
    assert result.delta == pytest.approx(float(stored["delta"]), rel=2e-13)
    assert result.rank == int(stored["rank"])
    for m in (3, 8):
        chosen = np.sort(result.removed[-m:])
        for key in (f"selected_{m}", f"selected_end_to_end_{m}", f"selected_{m}_multi"):
            np.testing.assert_array_equal(chosen, np.sort(stored[key].ravel()))


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


def table(seed=0, n=60, d=12):
    """Three overlapping clusters that columns 0 to 2 tell apart; the rest is noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, :3] += 3 * rng.standard_normal((3, 3))[rng.integers(0, 3, n)]
    return X


@pytest.mark.parametrize("name", ["mix", "digits", "blobs", "wide"])
def test_of_columns_of_mean_zero_the_selection_is_that_of_the_authors_program(name):
    """Theirs does not centre: given centred columns, both do the same."""
    stored = fixture(f"u2fs_authors_{name}")
    X = stored["X"] - stored["X"].mean(axis=0)
    E = stored["E"]
    n, d = X.shape
    selector = U2FS(n_clusters=int(stored["n_clusters"])).fit(stored["X"])
    ridge, _ = choose_ridge(np.linalg.eigvalsh(X.T @ X / n), d)
    left = list(range(d))
    for _ in range(d - 5):
        K = X[:, left].T @ X[:, left] / n + ridge * np.eye(len(left))
        Kinv = np.linalg.inv(K)
        w = Kinv @ (X[:, left].T @ E / n)
        del left[int(np.argmin(np.sum(w**2, axis=1) / np.diag(Kinv)))]
    assert set(selector.top(5).indices) == set(left)


def test_samples_far_from_all_others_are_told():
    X = np.vstack([table(n=120), np.full((1, 12), 1e6)])
    with pytest.warns(DataWarning, match="1 of 121 samples have no neighbour"):
        selector = U2FS(3).fit(X)
    np.testing.assert_allclose(selector.embedding_[-1], 0.0, atol=1e-12)
