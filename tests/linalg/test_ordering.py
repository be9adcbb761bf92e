"""Orders of values that differ by rounding, and of rows by their values."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.linalg.ordering import (
    best_first,
    distinct_rows,
    first_largest,
    first_smallest,
    levels,
    nearest_first,
    share_of_nearest,
    tilt_ties,
)
from keepers.linalg.scatter import column_moments


def test_scores_that_agree_to_rounding_go_by_variance_then_by_index():
    scores = np.array([1.0, 1.0 + 3e-16, 1.0 - 2e-16, 2.0, 1.0])
    variances = np.array([1.0, 2.0, 3.0, 0.1, 2.0 + 1e-15])
    assert best_first(scores, variances).tolist() == [3, 2, 1, 4, 0]


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_the_tolerance_is_relative(scale):
    values = scale * np.array([3.0, 1.0, 1.0 + 1e-12, 2.0])
    assert levels(values).tolist() == [2, 0, 0, 1]


def test_small_values_keep_their_order():
    # Methods tell features they gave up apart by scores of 1e-12 of the largest and less.
    values = np.array([1.0, 2e-15, 1e-15, 3e-15])
    assert levels(values).tolist() == [3, 1, 0, 2]


def test_single_precision_is_coarser():
    values = np.array([1.0, 1.0 + 1e-6])
    assert levels(values).tolist() == [0, 1]
    assert levels(values.astype(np.float32)).tolist() == [0, 0]


def test_the_first_of_equal_extremes_is_taken_whatever_rounding_says():
    values = np.array([0.5, 0.3 + 1e-16, 0.3, 0.3 - 1e-16])
    assert first_smallest(values) == 1
    assert first_largest(-values) == 1
    assert first_smallest(np.array([1e-12, 0.0]), scale=1.0) == 0
    assert first_smallest(np.array([np.inf, np.inf])) == 0
    assert first_smallest(np.array([2e-20, 1e-20])) == 1  # what is small is not therefore equal


def test_neighbours_at_the_same_distance_go_by_index():
    third = 1.0 / 3.0
    distances = np.array([[third + 6e-17, 5.0, third, third - 6e-17, 0.1]])
    assert sorted(nearest_first(distances, 3)[0].tolist()) == [0, 2, 4]


def test_only_rows_of_equal_values_are_tilt_ties():
    weights = np.array([2.0, 1.0, 2.0, 3.0])
    found = tilt_ties(weights, weights)
    np.testing.assert_allclose(found, weights, rtol=2e-9)
    assert found[2] > found[0]
    assert found[0] == 2.0  # the first of its kind is left as it is: multiplied by exactly 1
    assert found[1] == 1.0
    assert found[3] == 3.0


def test_entries_that_tie_at_the_edge_share_what_is_left():
    distances = np.array([[0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 1.0, 1.0 + 1e-14], [2.0, 2.0, 2.0, 9.0]])
    expected = [[1, 1, 0, 0], [1, 1 / 3, 1 / 3, 1 / 3], [2 / 3, 2 / 3, 2 / 3, 0]]
    np.testing.assert_allclose(share_of_nearest(distances, 2), expected)


def in_order(X, **more):
    return X[distinct_rows(X, column_moments(X), **more)]


def tables():
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((60, 25))
    yes_or_no = (rng.random((60, 25)) < np.linspace(0.1, 0.6, 25)).astype(float)
    return {"normal": normal, "yes or no": yes_or_no, "ranks": np.argsort(normal, axis=0) * 1.0}


@pytest.mark.parametrize("name", tables())
def test_the_order_does_not_depend_on_rows_signs_units_or_the_order_of_columns(name):
    X, rng = tables()[name], np.random.default_rng(1)
    expected = in_order(X)
    assert sorted(expected.tolist()) == sorted(X.tolist())
    np.testing.assert_array_equal(in_order(X[rng.permutation(60)]), expected)
    flipped = X * np.where(np.arange(25) % 2, -1.0, 1.0)
    np.testing.assert_array_equal(np.abs(in_order(flipped)), np.abs(expected))
    units = 2.0 ** rng.integers(-9, 9, 25)
    np.testing.assert_array_equal(in_order(X * units), expected * units)
    columns = rng.permutation(25)
    np.testing.assert_array_equal(in_order(X[:, columns]), expected[:, columns])


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_copies_of_rows_are_left_out(storage):
    X = np.random.default_rng(2).poisson(0.5, (40, 30)).astype(float)
    copied = np.concatenate([X, X[5:17], -0.0 * X[:1] + X[:1]])
    rows = distinct_rows(storage(copied), column_moments(storage(copied)))
    expected = np.unique(copied, axis=0)
    np.testing.assert_array_equal(np.unique(copied[rows], axis=0), expected)
    assert len(rows) == len(expected)


def test_rows_that_are_equal_by_chance_stay():
    X = np.random.default_rng(3).integers(0, 2, (200, 4)).astype(float)  # 16 different rows
    assert len(distinct_rows(X, column_moments(X))) == 200


def test_filled_values_do_not_count():
    X = np.random.default_rng(4).standard_normal((30, 8))
    observed = np.ones((30, 8), dtype=bool)
    observed[[3, 11], 2] = False
    X[11] = X[3]
    X[11, 2] += 1e-3  # filled with another value
    rows = distinct_rows(X, column_moments(X), observed)
    assert len(rows) == 29
    assert 11 not in rows
