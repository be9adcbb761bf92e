"""What is left of columns, without forming it, against the residual matrix itself."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.linalg.moments import column_moments
from keepers.linalg.residual_columns import ResidualColumns
from keepers.linalg.scatter import as_factored

STORAGES = {"array": np.asarray, "csr": sp.csr_array, "csc": sp.csc_array}
TAKEN = (4, 1, 9)


def table():
    rng = np.random.default_rng(0)
    return rng.standard_normal((15, 12)) * (rng.random((15, 12)) < 0.6) + 0.1


def without(X, taken):
    """The residual matrix of unit sum of squares before anything was taken out."""
    A = X - X.mean(axis=0)
    A /= np.linalg.norm(A)
    if taken:
        A = A - A[:, taken] @ np.linalg.lstsq(A[:, taken], A, rcond=None)[0]
    return A


def take_out(residual, column):
    direction = residual.direction(column)
    residual.remove(column, direction, residual.back(direction[:, np.newaxis])[:, 0])


@pytest.fixture(params=STORAGES)
def residual(request):
    values = STORAGES[request.param](table())
    return ResidualColumns(as_factored(values, column_moments(values)), 5)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_products_and_sums_are_those_of_the_residual_matrix(residual, count):
    A = without(table(), list(TAKEN[:count]))
    for column in TAKEN[:count]:
        take_out(residual, column)
    rng = np.random.default_rng(1)
    V, P = rng.standard_normal((12, 3)), A @ rng.standard_normal((12, 2))
    np.testing.assert_allclose(residual.squares, np.sum(A**2, axis=0), atol=1e-14)
    np.testing.assert_allclose(residual.columns(np.arange(12)), A, atol=1e-14)
    np.testing.assert_allclose(residual.times(V), A @ V, atol=1e-13)
    np.testing.assert_allclose(residual.back(P), A.T @ P, atol=1e-13)
    np.testing.assert_allclose(residual.gram(), A @ A.T, atol=1e-14)
    squared = np.sum((A.T @ A) ** 2, axis=0)
    for gram in (None, A @ A.T):
        np.testing.assert_allclose(residual.squared_images(gram), squared, atol=1e-14)
    assert residual.share == pytest.approx(np.sum(A**2))


def test_measuring_anew_changes_the_unit_and_nothing_else(residual):
    for column in TAKEN:
        take_out(residual, column)
    share, squares = residual.share, residual.squares.copy()
    unit = residual.remeasure()
    assert unit == pytest.approx(share)
    assert residual.left == pytest.approx(1.0)
    assert residual.share == pytest.approx(share)
    np.testing.assert_allclose(unit * residual.squares, squares, rtol=1e-12)
    np.testing.assert_allclose(residual.as_share(residual.squares), squares, rtol=1e-12)


def test_a_combination_of_columns_taken_out_has_nothing_left():
    X = np.random.default_rng(0).standard_normal((20, 3))
    X = np.column_stack([X, X[:, 0] - 3 * X[:, 1]])
    residual = ResidualColumns(as_factored(X, column_moments(X)), 2)
    take_out(residual, 0)
    assert residual.squares[3] > 0.0
    take_out(residual, 1)
    # Set, not computed.
    assert residual.squares[3] == 0.0
    assert residual.squares[2] > 0.0


def test_squares_that_subtraction_has_blurred_are_measured_anew():
    """A column that differs from another by 1e-5 of its length."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 2))
    X = np.column_stack([X[:, 0], X[:, 0] + 1e-5 * X[:, 1]])
    residual = ResidualColumns(as_factored(X, column_moments(X)), 1)
    take_out(residual, 0)
    exact = np.sum(without(X, [0])[:, 1] ** 2)
    residual.remeasure()
    assert residual.as_share(residual.squares[1]) == pytest.approx(exact, rel=1e-9)
    assert residual.doubt[1] < 1e-9


def test_nothing_left_is_said_as_zero():
    X = np.random.default_rng(0).standard_normal((6, 1))
    residual = ResidualColumns(as_factored(X, column_moments(X)), 1)
    take_out(residual, 0)
    assert residual.remeasure() == 0.0
    assert residual.share == 0.0
