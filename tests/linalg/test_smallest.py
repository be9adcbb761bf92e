import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import eigh, null_space

from keepers.linalg import smallest
from keepers.linalg.quadratic_form import DenseForm, LaplacianForms, LowRankForm, SparseForm
from keepers.linalg.smallest import smallest_eigenvectors

WIDE, TALL = (40, 300), (900, 200)


def table(shape, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape) * rng.uniform(0.3, 3.0, shape[1])
    return X - X.mean(axis=0)


def form_of(X):
    return LaplacianForms.of(X).form(sp.eye_array(len(X), format="csr"))


def distance(first, second):
    """Sine of the largest angle between two subspaces."""
    return np.linalg.norm(first - second @ (second.T @ first), 2)


def reweighted(vectors, gamma):
    return gamma / (2 * np.sqrt((vectors**2).sum(axis=1) + 2.2e-16))


@pytest.mark.parametrize(("shape", "kind"), [(WIDE, LowRankForm), (TALL, DenseForm)])
def test_both_storages_hold_the_same_matrix(shape, kind):
    X = table(shape)
    form = form_of(X)
    assert isinstance(form, kind)
    W = np.random.default_rng(1).standard_normal((shape[1], 3))
    np.testing.assert_allclose(form.images(W), X.T @ (X @ W), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(form.diagonal(), (X**2).sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("shape", [WIDE, TALL])
def test_the_inverse_undoes_the_sum(shape):
    X = table(shape)
    b = np.random.default_rng(1).uniform(0.5, 5.0, shape[1])
    V = np.random.default_rng(2).standard_normal((shape[1], 4))
    U = form_of(X).inverse(b)(V)
    np.testing.assert_allclose(X.T @ (X @ U) + b[:, np.newaxis] * U, V, atol=1e-9)


@pytest.mark.parametrize("shape", [WIDE, TALL, (60, 90), (300, 60)])
@pytest.mark.parametrize("width", [3, 20])
def test_matches_the_dense_solver_where_that_is_accurate(shape, width):
    X = table(shape)
    diagonal = np.random.default_rng(1).uniform(1.0, 50.0, shape[1])
    found = smallest_eigenvectors(form_of(X), diagonal, width, np.random.default_rng(2))
    values, vectors = eigh(X.T @ X + np.diag(diagonal), subset_by_index=[0, width - 1])
    assert found.converged
    np.testing.assert_allclose(found.values, values, rtol=1e-9)
    assert distance(found.vectors, vectors) <= 1e-9


@pytest.mark.parametrize("shape", [WIDE, TALL, (40, 100)])
@pytest.mark.parametrize("gamma", [1e-3, 1.0, 1e3])
def test_heavy_diagonals_are_solved_beyond_the_accuracy_of_the_dense_solver(shape, gamma):
    """The eigen-equation, in extended precision, weighted as the diagonal weights its rows."""
    X = table(shape)
    form = form_of(X)
    extended = X.astype(np.longdouble)
    block = None
    diagonal = gamma * (1.0 + np.linspace(0.0, 1.0, shape[1]))
    rng = np.random.default_rng(1)
    for _ in range(25):
        block = smallest_eigenvectors(form, diagonal, 4, rng, block)
        W = block.vectors.astype(np.longdouble)
        image = extended.T @ (extended @ W) + diagonal[:, np.newaxis] * W
        residual = (image - W @ (W.T @ image)) / np.sqrt(diagonal)[:, np.newaxis]
        assert block.converged
        assert np.abs(residual).max() <= 1e-8 * np.sqrt(gamma + (X**2).sum(axis=0).max())
        diagonal = reweighted(block.vectors, gamma)
    assert diagonal.max() / diagonal.min() > 1e3 or gamma < 1e3


def test_a_nearly_constant_diagonal_is_resolved_inside_the_null_space():
    """Without the null space, the eigenvalues 1 + 1e-6 t are lost in the rounding of M."""
    X = 1e3 * table(WIDE)
    tilt = np.random.default_rng(1).uniform(0.3, 3.0, WIDE[1])
    found = smallest_eigenvectors(form_of(X), 1.0 + 1e-6 * tilt, 5, np.random.default_rng(2))
    N = null_space(X)
    _, inside = eigh(N.T @ (tilt[:, np.newaxis] * N), subset_by_index=[0, 4])
    assert distance(found.vectors, N @ inside) <= 1e-8


def test_a_start_that_is_invariant_but_not_smallest_is_left():
    X = table(TALL)
    form = form_of(X)
    diagonal = np.ones(TALL[1])
    rng = np.random.default_rng(1)
    far = smallest_eigenvectors(form, diagonal, 30, rng)
    misleading = type(far)(far.block[:, 15:24], 5, far.values[15:20], 1, True)
    found = smallest_eigenvectors(form, diagonal, 5, rng, misleading)
    np.testing.assert_allclose(found.values, far.values[:5], rtol=1e-9)


@pytest.mark.parametrize("shape", [WIDE, TALL])
def test_equal_eigenvalues_are_all_found(shape):
    X = table(shape)
    X[:, shape[1] // 2 :] = X[:, : shape[1] // 2]
    form = form_of(X)
    diagonal = np.full(shape[1], 2.0)
    diagonal[:60] = 1.0
    diagonal[shape[1] // 2 : shape[1] // 2 + 60] = 1.0
    found = smallest_eigenvectors(form, diagonal, 6, np.random.default_rng(0))
    # The difference of two equal columns costs nothing but the diagonal.
    np.testing.assert_allclose(found.values, 1.0, rtol=1e-9)


def test_a_matrix_that_is_zero_leaves_the_lightest_coordinates():
    form = LowRankForm(np.zeros((200, 0)), np.zeros(0))
    diagonal = np.random.default_rng(0).permutation(np.arange(1.0, 201.0))
    found = smallest_eigenvectors(form, diagonal, 3, np.random.default_rng(1))
    expected = np.eye(200)[:, np.argsort(diagonal)[:3]]
    assert distance(found.vectors, expected) <= 1e-9


def test_sparse_laplacian_has_one_zero_for_each_component():
    sizes = [150, 120, 200]
    blocks = []
    for size in sizes:
        ring = sp.diags_array([1.0, 1.0], offsets=[1, size - 1], shape=(size, size))
        blocks.append(ring + ring.T)
    graph = sp.csr_array(sp.block_diag(blocks))
    L = sp.csr_array(sp.diags_array(graph.sum(axis=1)) - graph)
    ones = np.ones(sum(sizes))
    found = smallest_eigenvectors(SparseForm(L), ones, 4, np.random.default_rng(0))
    # The next eigenvalue is that of the longest ring, twice: 2 - 2 cos(2 pi / 200).
    expected = [0.0, 0.0, 0.0, 2.0 - 2.0 * np.cos(2.0 * np.pi / 200)]
    np.testing.assert_allclose(found.values - 1.0, expected, atol=1e-9)
    indicator = np.repeat(np.eye(3), sizes, axis=0) / np.sqrt(sizes)
    assert distance(indicator, found.vectors) <= 1e-7


def test_the_generator_does_not_decide_the_result():
    form = form_of(table(WIDE))
    diagonal = np.random.default_rng(1).uniform(1.0, 9.0, WIDE[1])
    first = smallest_eigenvectors(form, diagonal, 4, np.random.default_rng(2)).vectors
    second = smallest_eigenvectors(form, diagonal, 4, np.random.default_rng(3)).vectors
    assert distance(first, second) <= 1e-9


def by_the_inverse(X, diagonal, width):
    """Eigenvectors that a dense solver finds to full accuracy, whatever the diagonal."""
    C = np.linalg.inv(X.T @ X + np.diag(diagonal))
    return eigh((C + C.T) / 2)[1][:, ::-1][:, :width]


def steps(monkeypatch, heavy):
    """Sizes of the problems solved, with ``heavy`` in place of the usual ratio."""
    sizes = []
    solve = smallest._solve

    def record(problem, *arguments):
        sizes.append(problem.form.size)
        return solve(problem, *arguments)

    monkeypatch.setattr(smallest, "HEAVY", heavy)
    monkeypatch.setattr(smallest, "_solve", record)
    return sizes


def spread_diagonal(n_light, size, ratio, scale, seed=1):
    rng = np.random.default_rng(seed)
    diagonal = ratio * scale * rng.uniform(1.0, 9.0, size)
    diagonal[rng.permutation(size)[:n_light]] = scale * rng.uniform(0.01, 1.0, n_light)
    return diagonal


@pytest.mark.parametrize(("shape", "n_light"), [(WIDE, 50), (WIDE, 150), (TALL, 50)])
@pytest.mark.parametrize("ratio", [1e4, 1e7])
def test_without_heavy_rows_the_solution_is_that_of_all_rows(monkeypatch, shape, n_light, ratio):
    X = table(shape)
    diagonal = spread_diagonal(n_light, shape[1], ratio, np.linalg.norm(X.T @ X))
    sizes = steps(monkeypatch, 100.0)
    found = smallest_eigenvectors(form_of(X), diagonal, 4, np.random.default_rng(2))
    assert set(sizes) == {n_light}
    expected = by_the_inverse(X, diagonal, 4)
    assert distance(found.vectors, expected) <= 1e-9
    # Row by row, and not only as a whole: the next weights come from the norms of small rows.
    norms = np.sqrt((expected**2).sum(axis=1))
    np.testing.assert_allclose(
        np.sqrt((found.vectors**2).sum(axis=1)), norms, rtol=1e-6, atol=1e-14
    )
    np.testing.assert_allclose(found.block.T @ found.block, np.eye(8), atol=1e-12)
    inside = found.block.T @ (X.T @ (X @ found.block))
    np.testing.assert_allclose(found.projected, inside, atol=1e-9 * np.abs(inside).max())


def test_rows_that_are_less_heavy_are_corrected_for(monkeypatch):
    X = table(TALL)
    diagonal = spread_diagonal(60, TALL[1], 10.0, np.linalg.norm(X.T @ X))
    sizes = steps(monkeypatch, 5.0)
    found = smallest_eigenvectors(form_of(X), diagonal, 4, np.random.default_rng(2))
    assert sizes[:2] == [60, 60]
    assert distance(found.vectors, by_the_inverse(X, diagonal, 4)) <= 1e-6


def test_rows_that_cannot_be_left_out_are_not(monkeypatch):
    X = table(TALL)
    diagonal = np.random.default_rng(1).uniform(1.0, 50.0, TALL[1])
    sizes = steps(monkeypatch, 100.0)
    smallest_eigenvectors(form_of(X), diagonal, 4, np.random.default_rng(2))
    assert set(sizes) == {TALL[1]}


@pytest.mark.parametrize("copies", [5, 30])
def test_more_copies_of_an_eigenvalue_than_a_block_has_columns_are_found(copies):
    """A diagonal matrix, turned: its eigenvalues are known."""
    rng = np.random.default_rng(3)
    size, width = 300, 40
    values = np.concatenate([np.full(copies, 2.0), np.arange(3.0, 3.0 + size - copies)])
    turn = np.linalg.qr(rng.standard_normal((size, size)))[0]
    form = DenseForm(turn @ np.diag(values) @ turn.T)
    start = smallest_eigenvectors(form, np.full(size, 1.5), width, rng)
    found = smallest_eigenvectors(form, np.ones(size), width, rng, start)
    assert found.converged
    np.testing.assert_allclose(found.values, 1.0 + values[:width], rtol=1e-9)
    assert distance(found.vectors, turn[:, :width]) <= 1e-7
