"""Which sets of features may be kept."""

import itertools

import numpy as np
import pytest

from keepers.solvers.set_limit import SetLimit


def test_without_groups_and_costs_the_largest_values_are_chosen_ties_by_index():
    limit = SetLimit.of_count(6, 3)
    assert limit.choose(np.array([1.0, 5.0, 2.0, 5.0, 2.0, 2.0 + 1e-14])).tolist() == [1, 2, 3]


def test_features_that_must_be_kept_take_a_place():
    must = np.array([False, False, True, False])
    limit = SetLimit(4, 2.0, must)
    assert limit.choose(np.array([3.0, 4.0, 0.0, 1.0])).tolist() == [1, 2]
    full = SetLimit(4, 1.0, must)
    assert full.choose(np.array([3.0, 4.0, 0.0, 1.0])).tolist() == [2]


def test_more_places_than_features_keep_all():
    assert SetLimit.of_count(3, 7).choose(np.array([0.0, 1.0, 2.0])).tolist() == [0, 1, 2]


def test_groups_are_chosen_as_a_whole():
    units = np.array([0, 0, 0, 1, 1, 2])
    limit = SetLimit(6, 4.0, np.zeros(6, dtype=bool), units)
    # Group 0 is worth 6 in 3 places; with feature 5 that fills all 4.
    assert limit.choose(np.array([2.0, 2.0, 2.0, 2.5, 0.1, 1.0])).tolist() == [0, 1, 2, 5]
    # Groups 1 and 2 are worth most for their size; then nothing else fits.
    assert limit.choose(np.array([2.0, 1.0, 1.0, 3.0, 3.0, 4.0])).tolist() == [3, 4, 5]


@pytest.mark.parametrize("seed", range(20))
def test_choices_within_a_budget_are_allowed_and_near_the_best(seed):
    rng = np.random.default_rng(seed)
    values, costs = rng.exponential(size=(2, 10)) + 0.05
    limit = SetLimit(10, 3.0, np.zeros(10, dtype=bool), None, costs)
    chosen = limit.choose(values)
    assert costs[chosen].sum() <= 3.0 * (1 + 1e-9)
    sets = itertools.chain.from_iterable(itertools.combinations(range(10), r) for r in range(11))
    best = max(values[list(s)].sum() for s in sets if costs[list(s)].sum() <= 3.0)
    assert 0.5 * best <= values[chosen].sum() <= best * (1 + 1e-12)


def test_a_restriction_to_whole_groups_keeps_what_is_known_of_them():
    units, costs = np.array([0, 1, 0, 2]), np.array([1.0, 2.0, 3.0, 4.0])
    limit = SetLimit(4, 5.0, np.array([False, False, False, True]), units, costs)
    part = limit.restrict(np.array([0, 2, 3]))
    assert part.units is not None
    assert part.units.tolist() == [0, 0, 1]
    assert part.unit_costs.tolist() == [4.0, 4.0]
    assert part.unit_must.tolist() == [False, True]
    assert part.room_in(np.array([2])) == pytest.approx(1.0)
