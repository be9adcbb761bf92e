"""Orders of values that differ by rounding."""

import numpy as np
import pytest

from keepers.linalg.ordering import (
    best_first,
    first_largest,
    first_smallest,
    levels,
    nearest_first,
    share_of_nearest,
    tilt_ties,
)


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
