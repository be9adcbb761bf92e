"""The leading spectrum against LAPACK, and the edge of the null spectrum against closed forms."""

import numpy as np
import pytest
from scipy.linalg import eigh

from keepers.linalg import spectrum
from keepers.linalg.moments import column_moments
from keepers.linalg.scatter import DenseScatter, as_scatter
from keepers.linalg.spectrum import leading_spectrum, null_edge, pairs_above, principal_subspace

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


def test_unequal_variances_agree_with_shuffled_data():
    rng = np.random.default_rng(0)
    n, d = 400, 300
    variances = rng.uniform(0.2, 5.0, d)
    largest = [
        np.linalg.eigvalsh(np.cov((rng.standard_normal((n, d)) * np.sqrt(variances)).T))[-1]
        for _ in range(20)
    ]
    # Finite samples stay a little below the limit (the Tracy-Widom mean is negative).
    assert null_edge(variances, n - 1) == pytest.approx(np.mean(largest), rel=0.04)


@ROUTES
def test_principal_subspace_agrees_with_lapack(exact, monkeypatch):
    if not exact:
        monkeypatch.setattr("keepers.linalg.scatter.SMALL_SIDE", 0)
    S = scatter(3, n=400, d=120)
    values, vectors = np.linalg.eigh(S)
    found = principal_subspace(DenseScatter(S), 4, np.random.default_rng(0), tol=1e-8)
    np.testing.assert_allclose(found.values, values[::-1][:4], rtol=1e-10 if exact else 1e-7)
    leading = vectors[:, ::-1][:, :4]
    np.testing.assert_allclose(
        found.vectors @ found.vectors.T, leading @ leading.T, atol=1e-6 if exact else 1e-3
    )


@ROUTES
@pytest.mark.parametrize("share", [0.2, 0.5, 0.75])
def test_a_share_takes_the_fewest_eigenvalues_that_sum_to_it(share, exact, monkeypatch):
    if not exact:
        monkeypatch.setattr("keepers.linalg.scatter.SMALL_SIDE", 0)
    variances = np.linspace(100, 1, 100)
    expected = int(np.argmax(np.cumsum(variances) >= share * variances.sum())) + 1
    found = spectrum_of(np.diag(variances), share)
    assert abs(found.width - expected) <= (0 if exact else 1)
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
    assert found.width == max(n_factors, 1)
    values, vectors = np.linalg.eigh(X.T @ X)
    np.testing.assert_allclose(found.values, values[::-1][: found.width], rtol=1e-7)
    leading = vectors[:, ::-1][:, : found.width]
    ours = found.subspace.vectors
    np.testing.assert_allclose(ours @ ours.T, leading @ leading.T, atol=1e-6 if exact else 1e-2)


@ROUTES
@pytest.mark.parametrize(("n_pairs", "expected"), [(24, 24), (150, 100)])
def test_auto_counts_pairs_of_equal_columns_up_to_a_hundred(n_pairs, expected, exact, monkeypatch):
    if not exact:
        monkeypatch.setattr("keepers.linalg.scatter.SMALL_SIDE", 0)
    S = np.eye(300)
    S[: 2 * n_pairs, : 2 * n_pairs] = np.kron(np.eye(n_pairs), np.ones((2, 2)))
    assert spectrum_of(S, "auto", n_samples=100_000).width == expected


def test_a_counted_number_and_the_same_number_given_start_alike():
    rng = np.random.default_rng(3)
    for shape in ((300, 60), (60, 300)):
        X = rng.standard_normal(shape) + 3 * np.outer(*(rng.standard_normal(k) for k in shape))
        moments = column_moments(X)
        operator = as_scatter(X, moments, 10)
        found = [
            leading_spectrum(
                operator, m, n_samples=shape[0], sum_of_squares=moments.sum_of_squares, rng=rng
            ).subspace
            for m in ("auto", 1)
        ]
        np.testing.assert_array_equal(found[0].vectors, found[1].vectors)


@pytest.mark.parametrize("size", [1, 2, 3, 33, 150])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_leading_pairs_are_those_of_lapack_whatever_the_size_and_the_scale(size, scale):
    S = scatter(4, n=2 * size + 3, d=size) * scale
    for width in {1, (size + 1) // 2, size}:
        values, vectors = spectrum._TridiagonalForm(S).leading_pairs(width)
        exact, exact_vectors = eigh(S / scale, subset_by_index=[size - width, size - 1])
        np.testing.assert_allclose(values / scale, exact, rtol=1e-10, atol=1e-12 * exact[-1])
        agreement = np.abs(np.einsum("ij,ij->j", vectors, exact_vectors))
        np.testing.assert_allclose(agreement, 1.0, rtol=1e-8)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(width), atol=1e-11)


@pytest.mark.parametrize("size", [1, 2, 150])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_eigenvalues_are_counted_as_lapack_lists_them(size, scale):
    S = scatter(6, n=2 * size + 3, d=size)
    values = np.linalg.eigvalsh(S)[::-1]
    form = spectrum._TridiagonalForm(S * scale)
    np.testing.assert_allclose(form.values() / scale, values, rtol=1e-10)
    for count in {0, 1, size // 2, size}:
        between = np.append(values, 0.0)[count] if count else 1.1 * values[0]
        edge = 0.5 * (between + values[count - 1]) if count else between
        assert form.count_above(edge * scale) == count


def test_a_small_side_is_formed_and_reduced_once(monkeypatch):
    calls = []
    reduce = spectrum.lapack.dsytrd
    monkeypatch.setattr(
        spectrum.lapack, "dsytrd", lambda *a, **k: calls.append("reduced") or reduce(*a, **k)
    )
    formed = DenseScatter.small_side
    monkeypatch.setattr(
        DenseScatter, "small_side", lambda self: calls.append("formed") or formed(self)
    )
    for n_components in ("auto", 0.5, 3):
        calls.clear()
        spectrum_of(scatter(5, n=200, d=60), n_components, n_samples=200)
        assert calls == ["formed", "reduced"]


@pytest.mark.parametrize("rank", [10, 40, 90])
def test_pairs_above_an_edge_are_those_of_numpy(rank):
    rng = np.random.default_rng(rank)
    factors = rng.standard_normal((rank, 150)) * np.geomspace(1.0, 20.0, rank)[:, np.newaxis]
    matrix = factors.T @ factors
    expected, directions = np.linalg.eigh(matrix)
    edge = float((expected[-6] + expected[-5]) / 2)
    values, vectors = pairs_above(matrix, edge, rank=rank, at_least=2, at_most=100)
    np.testing.assert_allclose(values, expected[:-6:-1], rtol=1e-10)
    overlaps = np.abs(np.einsum("ij,ij->j", vectors, directions[:, :-6:-1]))
    np.testing.assert_allclose(overlaps, 1.0, atol=1e-8)


def test_pairs_above_an_edge_leave_rounding_out():
    matrix = np.outer(np.arange(50.0), np.arange(50.0))
    values, _ = pairs_above(matrix, 1e-9, rank=1, at_least=2, at_most=100)
    np.testing.assert_allclose(values, [np.sum(np.arange(50.0) ** 2)])
