"""The same table is recognised in every storage and grouping; another table is not."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers._protocols import RowBlock
from keepers.linalg.sketch import sketch_vectors
from keepers.linalg.sums import SketchSum, sketch_of_rows

TOLERANCE = 1e-8


def z_scored(seed, shape=(300, 40)):
    X = np.random.default_rng(seed).standard_normal(shape)
    return (X - X.mean(axis=0)) / X.std(axis=0)


def sketch_of(X, step=None):
    columns = np.arange(X.shape[1])
    if step is None:
        return sketch_of_rows(X, columns)
    halves = [SketchSum(columns), SketchSum(columns)]
    for number, start in enumerate(range(0, X.shape[0], step)):
        halves[number % 2].add(RowBlock(X[start : start + step], "rows"))
    halves[0].merge(halves[1])
    return halves[0].sketch


def test_products_are_those_of_the_scatter():
    X = z_scored(0) + 1e6
    expected = (len(X) - 1) * np.cov(X, rowvar=False) @ sketch_vectors(np.arange(40))
    np.testing.assert_allclose(sketch_of(X, 7).products, expected, rtol=1e-8, atol=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "other",
    [
        lambda X: sketch_of(X, 1),
        lambda X: sketch_of(X, 37),
        lambda X: sketch_of(sp.csr_array(X), 50),
        lambda X: sketch_of(sp.csc_array(X)),
        lambda X: sketch_of(np.asfortranarray(X)),
        lambda X: sketch_of(X[np.random.default_rng(1).permutation(len(X))]),
        lambda X: sketch_of(X.astype(np.float64)),
    ],
    ids=["row by row", "blocks", "csr", "csc", "fortran", "rows shuffled", "double"],
)
def test_the_same_table_is_recognised(other, dtype, offset):
    X = ((z_scored(0) + offset) * 3.0).astype(dtype)
    X[:, 0] += np.arange(len(X))  # varies in single precision too
    usable = np.flatnonzero(X.std(axis=0, dtype=np.float64) > 0)
    X = X[:, usable]
    assert sketch_of(X).same_as(other(X), TOLERANCE)


def test_last_digits_do_not_matter():
    X = z_scored(0)
    noise = 1 + 1e-15 * np.random.default_rng(3).standard_normal(X.shape)
    assert sketch_of(X).same_as(sketch_of(X * noise), TOLERANCE)


@pytest.mark.parametrize(
    "other",
    [
        lambda X: z_scored(5),
        lambda X: X[:, ::-1],
        lambda X: X[:, [1, 0, *range(2, X.shape[1])]],
        lambda X: np.column_stack([X[::-1, 0], X[:, 1:]]),
        lambda X: X[:-1],
        lambda X: X[:, :-1],
        lambda X: X + 1e-3 * (np.arange(X.size) == 77).reshape(X.shape),
    ],
    ids=["another", "reversed", "two swapped", "one column shuffled", "row", "column", "value"],
)
def test_another_table_with_the_same_moments_is_not_taken_for_it(other):
    X = z_scored(0)
    assert not sketch_of(X).same_as(sketch_of(np.ascontiguousarray(other(X))), TOLERANCE)


def test_a_column_with_a_huge_variance_does_not_hide_the_others():
    X, Y = z_scored(0), z_scored(5)
    identifiers = 1e12 * np.arange(300.0)
    X[:, 3] = Y[:, 3] = identifiers
    assert not sketch_of(X).same_as(sketch_of(Y), TOLERANCE)


def test_weights_are_the_same_for_ever_and_differ_between_columns():
    vectors = sketch_vectors(np.arange(1000))
    weights = vectors.sum(axis=1)
    assert len(np.unique(weights)) == 1000
    assert np.all((np.abs(weights) >= 0.5) & (np.abs(weights) < 1.5))
    assert np.all(np.count_nonzero(vectors, axis=1) == 1)
    part = np.array([7, 900, 3])
    np.testing.assert_array_equal(sketch_vectors(part), vectors[part])
