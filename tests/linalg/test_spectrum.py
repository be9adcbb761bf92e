"""The leading spectrum against LAPACK, and the edge of the null spectrum against closed forms."""

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles

from keepers.linalg import spectrum
from keepers.linalg.scatter import DenseScatter, FactoredScatter, column_moments
from keepers.linalg.spectrum import (
    leading_pairs,
    leading_spectrum,
    null_edge,
    pairs_above,
    principal_subspace,
)

ROUTES = pytest.mark.parametrize("exact", [True, False], ids=["small side", "krylov"])


def spectrum_of(S, n_components, n_samples=1000, **options):
    return leading_spectrum(
        DenseScatter(S),
        n_components,
        n_samples=n_samples,
        sum_of_squares=S.diagonal(),
        rng=np.random.default_rng(0),
        **options,
    )


def scatter(seed, n=50, d=30):
    X = np.random.default_rng(seed).standard_normal((n, d)) @ np.diag(np.linspace(3, 0.5, d))
    centred = X - X.mean(axis=0)
    return centred.T @ centred


@pytest.mark.parametrize(("n", "d"), [(100, 20), (100, 100), (50, 2000)])
@pytest.mark.parametrize("variance", [1.0, 1e-8, 1e8])
def test_equal_variances_give_the_marchenko_pastur_edge(n, d, variance):
    expected = variance * (1 + np.sqrt(d / n)) ** 2
    assert null_edge(np.full(d, variance), n) == pytest.approx(expected, rel=1e-9)


@ROUTES
def test_principal_subspace_agrees_with_lapack(exact, monkeypatch):
    if not exact:
        monkeypatch.setattr("keepers.linalg.scatter.SMALL_SIDE", 0)
        monkeypatch.setattr(spectrum, "_KRYLOV_ROOM", 5)  # so that it has to begin again
    S = scatter(3, n=400, d=120)
    values, vectors = np.linalg.eigh(S)
    found = principal_subspace(DenseScatter(S), 4, np.random.default_rng(0), tol=1e-8)
    np.testing.assert_allclose(found.values, values[::-1][:4], rtol=1e-10 if exact else 1e-7)
    leading = vectors[:, ::-1][:, :4]
    np.testing.assert_allclose(
        found.vectors @ found.vectors.T, leading @ leading.T, atol=1e-6 if exact else 1e-3
    )


def test_the_first_of_the_vectors_are_a_subspace_too():
    S = scatter(0)
    values, vectors = (each[..., ::-1][..., :3] for each in np.linalg.eigh(S))
    found = principal_subspace(DenseScatter(S), 5, np.random.default_rng(0)).first(3)
    np.testing.assert_allclose(found.values, values, rtol=1e-9)
    np.testing.assert_allclose(np.abs(vectors.T @ found.vectors), np.eye(3), atol=1e-6)
    np.testing.assert_allclose(found.images, S @ found.vectors, atol=1e-6 * values[0])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("d", "rank"), [(12, 12), (31, 14), (54, 54)])
def test_a_krylov_space_that_fills_the_whole_space_is_exact_whatever_the_start(
    d, rank, seed, monkeypatch
):
    monkeypatch.setattr(spectrum, "_KRYLOV_BLOCKS", 5)
    monkeypatch.setattr("keepers.linalg.scatter.SMALL_SIDE", 0)
    rng = np.random.default_rng(d + rank)
    A = rng.standard_normal((d, rank))
    S = A @ A.T
    found = principal_subspace(DenseScatter(S), 3, np.random.default_rng(seed), tol=np.inf)
    expected = np.linalg.eigvalsh(S)[::-1]
    np.testing.assert_allclose(found.values, expected[:3], rtol=1e-11)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(3), atol=1e-11)


@ROUTES
@pytest.mark.parametrize("share", [0.2, 0.5, 0.75])
def test_a_share_takes_the_fewest_eigenvalues_that_sum_to_it(share, exact, monkeypatch):
    if not exact:
        monkeypatch.setattr("keepers.linalg.scatter.SMALL_SIDE", 0)
    variances = np.linspace(100, 1, 100)
    expected = int(np.argmax(np.cumsum(variances) >= share * variances.sum())) + 1
    found = spectrum_of(np.diag(variances), share)
    assert abs(len(found.values) - expected) <= (0 if exact else 1)
    np.testing.assert_allclose(found.values[:3], variances[:3], rtol=1e-10 if exact else 1e-2)


@ROUTES
@pytest.mark.parametrize("n_factors", [0, 1, 7])
def test_auto_counts_the_factors_of_a_table_and_takes_at_least_one(n_factors, exact, monkeypatch):
    if not exact:
        monkeypatch.setattr("keepers.linalg.scatter.SMALL_SIDE", 0)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 80))
    X += 2.0 * rng.standard_normal((400, n_factors)) @ rng.standard_normal((n_factors, 80))
    X -= X.mean(axis=0)
    found = spectrum_of(X.T @ X, "auto", n_samples=400, tol=1e-8)
    assert len(found.values) == max(n_factors, 1)
    values, vectors = np.linalg.eigh(X.T @ X)
    np.testing.assert_allclose(found.values, values[::-1][: len(found.values)], rtol=1e-7)
    leading = vectors[:, ::-1][:, : len(found.values)]
    ours = found.vectors
    np.testing.assert_allclose(ours @ ours.T, leading @ leading.T, atol=1e-6 if exact else 1e-2)


@pytest.mark.parametrize(("n_factors", "above", "below"), [(2, 1.03, 0.97), (7, 1.06, 0.97)])
def test_factors_little_above_the_edge_are_counted(n_factors, above, below, monkeypatch):
    monkeypatch.setattr("keepers.linalg.scatter.SMALL_SIDE", 0)
    edge = (1 + np.sqrt(400 / 800)) ** 2  # of equal variances
    rest = np.linspace(below, 0, 400 - n_factors)
    values = edge * np.concatenate([[20.0], np.full(n_factors - 1, above), rest])
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((400, 400)))[0]
    found = leading_spectrum(
        DenseScatter(matrix_with(800 * values, Q)),
        "auto",
        n_samples=800,
        sum_of_squares=np.full(400, 800.0),
        rng=np.random.default_rng(0),
    )
    assert len(found.values) == n_factors


@pytest.mark.parametrize("size", [1, 2, 3, 33, 150])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_leading_pairs_are_those_of_lapack_whatever_the_size_and_the_scale(size, scale):
    S = scatter(4, n=2 * size + 3, d=size) * scale
    for width in {1, (size + 1) // 2, size}:
        values, vectors = leading_pairs(S, width)
        exact, exact_vectors = (part[..., ::-1][..., :width] for part in np.linalg.eigh(S / scale))
        np.testing.assert_allclose(values / scale, exact, rtol=1e-10, atol=1e-12 * exact[0])
        agreement = np.abs(np.einsum("ij,ij->j", vectors, exact_vectors))
        np.testing.assert_allclose(agreement, 1.0, rtol=1e-8)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(width), atol=1e-11)


@pytest.mark.parametrize(("size", "n_above"), [(150, 5), (150, 0), (900, 5), (900, 30), (900, 0)])
@pytest.mark.parametrize("rank", [10, 40, 90, 400])
def test_pairs_above_an_edge_are_those_of_numpy(size, n_above, rank):
    rng = np.random.default_rng(rank)
    factors = rng.standard_normal((rank, size)) * np.geomspace(1.0, 20.0, rank)[:, np.newaxis]
    matrix = factors.T @ factors
    expected, directions = np.linalg.eigh(matrix)
    n_above = min(n_above, rank // 2)
    next_to_last = expected[-n_above - 1 :][:2]
    edge = float(next_to_last.mean()) if n_above else 2.0 * float(expected[-1])
    values, vectors = pairs_above(matrix, edge, rank=rank, at_least=2, at_most=100)
    count = n_above or 2
    np.testing.assert_allclose(values, expected[: -count - 1 : -1], rtol=1e-10)
    overlaps = np.abs(np.einsum("ij,ij->j", vectors, directions[:, : -count - 1 : -1]))
    np.testing.assert_allclose(overlaps, 1.0, atol=1e-8)


# The Krylov space of a Gram matrix


@pytest.fixture(scope="module")
def directions():
    """An orthonormal basis of 1000 dimensions."""
    return np.linalg.qr(np.random.default_rng(0).standard_normal((1000, 1000)))[0]


def matrix_with(values, directions):
    matrix = (directions * values) @ directions.T
    return (matrix + matrix.T) / 2


def no_reduction(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the matrix was reduced as a whole")

    monkeypatch.setattr(spectrum, "eigh", refuse)


def largest_angle(one, other):
    return float(subspace_angles(one, other).max())


@pytest.mark.parametrize("width", [3, 24])
@pytest.mark.parametrize("decay", ["polynomial", "geometric"])
def test_pairs_of_a_krylov_space_are_those_of_lapack(width, decay, directions, monkeypatch):
    values = 1.0 / np.arange(1, 1001) if decay == "polynomial" else 0.98 ** np.arange(1000)
    matrix = matrix_with(1e3 * values, directions)
    exact, vectors = eigh(matrix, subset_by_index=[1000 - width, 999])
    no_reduction(monkeypatch)
    found, own_vectors = spectrum._krylov_pairs(matrix, width)
    np.testing.assert_allclose(found, exact[::-1], rtol=0, atol=1e-10 * exact[-1])
    assert largest_angle(own_vectors, vectors) < 1e-4  # residual over gap
    np.testing.assert_allclose(own_vectors.T @ own_vectors, np.eye(width), atol=1e-10)
    space = principal_subspace(DenseScatter(matrix), width, np.random.default_rng(0))
    np.testing.assert_allclose(space.values, exact[::-1], rtol=0, atol=1e-10 * exact[-1])
    assert largest_angle(space.vectors, vectors) < 1e-4


TAILS = {
    "slow": 0.9 * 0.97 ** np.arange(970),
    "fast": 0.9 * 0.9 ** np.arange(970),
    "none": np.zeros(970),
    "short": np.append(np.linspace(0.9, 0.1, 20), np.zeros(950)),
}


@pytest.mark.parametrize("tail", TAILS)
def test_no_copy_of_an_eigenvalue_is_missed_where_there_are_more_than_a_block_holds(
    tail, directions
):
    values = np.append(np.ones(30), TAILS[tail])
    matrix = matrix_with(values, directions)
    for width in (10, 30, 40):
        space = principal_subspace(DenseScatter(matrix), width, np.random.default_rng(0))
        np.testing.assert_allclose(space.values, values[:width], rtol=0, atol=1e-10)
        W = space.vectors
        np.testing.assert_allclose(W.T @ W, np.eye(width), atol=1e-10)
        np.testing.assert_allclose(matrix @ W, W * space.values, rtol=0, atol=1e-6)


# Images without a product


def low_rank_table(shape, singular_values, dtype=np.float64):
    """A centred table with these singular values."""
    rng = np.random.default_rng(1)
    left = rng.standard_normal((shape[0], len(singular_values)))
    left = np.linalg.qr(left - left.mean(axis=0))[0]
    right = np.linalg.qr(rng.standard_normal((shape[1], len(singular_values))))[0]
    return ((left * singular_values) @ right.T).astype(dtype)


@pytest.mark.parametrize("shape", [(60, 900), (900, 60)])
@pytest.mark.parametrize("share", [1e-9, 1e-13, 0.0])
def test_a_start_is_orthonormal_also_where_the_last_eigenvalue_is_tiny(shape, share):
    values = np.array([1.0, 0.8, 0.5, share])
    X = low_rank_table(shape, 10 * np.sqrt(values))
    operator = FactoredScatter(X, column_moments(X))
    space = principal_subspace(operator, 4, np.random.default_rng(0))
    assert space.n_products == 1
    W = space.vectors
    np.testing.assert_allclose(W.T @ W, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(space.values, 100 * values, rtol=0, atol=1e-10)
    np.testing.assert_allclose(space.images, X.T @ (X @ W), rtol=0, atol=1e-10)
