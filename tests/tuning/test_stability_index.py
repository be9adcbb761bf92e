"""Nogueira's index: closed forms, properties, and whether its interval covers."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from keepers.exceptions import DataError
from keepers.tuning.stability_index import measure_stability

SELECTIONS = st.tuples(st.integers(2, 8), st.integers(2, 9)).flatmap(
    lambda shape: arrays(np.bool_, shape)
)


def by_definition(Z):
    """1 - mean of the unbiased variances over their value for random sets of that size."""
    share = Z.mean()
    return 1 - np.var(Z, axis=0, ddof=1).mean() / (share * (1 - share))


def test_identical_sets_have_stability_one_and_no_variance():
    found = measure_stability(np.tile([1, 0, 1, 0, 0], (7, 1)))
    assert found.index == 1.0
    assert found.variance == pytest.approx(0, abs=1e-30)
    assert found.interval == pytest.approx((1.0, 1.0))
    assert found.verdict == "excellent"


def test_two_disjoint_halves_have_stability_minus_one():
    """s_f^2 = 1/2 for each feature, k/d = 1/2: 1 - (1/2) / (1/4)."""
    found = measure_stability([[1, 1, 0, 0], [0, 0, 1, 1]])
    assert found.index == pytest.approx(-1)
    assert found.verdict == "poor"


def test_all_sets_of_one_size_together_have_the_lowest_stability_there_is():
    """p_f = k/d for all, so s_f^2 = M/(M-1) k/d (1 - k/d): the index is -1/(M-1)."""
    sets = np.zeros((10, 5), dtype=bool)
    for row, members in zip(sets, itertools.combinations(range(5), 2), strict=True):
        row[list(members)] = True
    assert measure_stability(sets).index == pytest.approx(-1 / 9)


def test_index_and_variance_by_hand():
    """Three sets of two out of four; every number below is worked out on paper.

    p = (1, 2/3, 1/3, 0), s^2 = 3/2 (0, 2/9, 2/9, 0), mean 1/6; k/d = 1/2: 1 - (1/6) / (1/4) = 1/3.
    Sizes are equal, so a set's contribution varies by (1/4) sum_f z_f p_f / (1/4) = 5/3, 5/3, 4/3:
    population variance 2/81, times 4/3: 8/243.
    """
    found = measure_stability([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]])
    assert found.index == pytest.approx(1 / 3)
    assert found.variance == pytest.approx(8 / 243)
    reach = 1.959963984540054 * np.sqrt(8 / 243)
    assert found.interval == pytest.approx((1 / 3 - reach, 1 / 3 + reach))


def test_sets_of_different_sizes_as_the_authors_program_has_them():
    """What getVarianceofStability of nogueirs/JMLR2018 (python/stability) returns."""
    found = measure_stability([[1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 1, 1, 0, 0], [0, 1, 0, 0, 1]])
    assert found.index == pytest.approx(0.12457912457912468)
    assert found.variance == pytest.approx(0.0309725243740429)


def test_random_sets_have_stability_zero_on_average():
    rng = np.random.default_rng(0)
    indices = []
    for _ in range(300):
        order = np.argsort(rng.random((10, 40)), axis=1)
        indices.append(measure_stability(order < 8).index)
    assert np.mean(indices) == pytest.approx(0, abs=4 * np.std(indices) / np.sqrt(300))


@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.6, 0.4), (0.97, 0.3)])
def test_the_interval_covers_the_index_of_infinitely_many_sets(shares):
    """Independent features; 400 intervals of 95 %: 380 expected, standard deviation 4.4."""
    rng = np.random.default_rng(1)
    p = np.repeat(shares, (6, 24))
    truth = 1 - np.mean(p * (1 - p)) / (p.mean() * (1 - p.mean()))
    inside = 0
    for _ in range(400):
        low, high = measure_stability(rng.random((100, 30)) < p).interval
        inside += low <= truth <= high
    assert 0.91 <= inside / 400 <= 0.985


def test_the_variance_is_that_of_the_index_over_repetitions():
    rng = np.random.default_rng(2)
    p = np.repeat((0.9, 0.1), (6, 24))
    found = [measure_stability(rng.random((80, 30)) < p) for _ in range(400)]
    observed = np.var([f.index for f in found], ddof=1)
    assert np.mean([f.variance for f in found]) == pytest.approx(observed, rel=0.2)


@given(SELECTIONS)
def test_the_index_is_its_definition_and_within_its_bounds(Z):
    found = measure_stability(Z)
    if Z.all() or not Z.any():
        assert np.isnan(found.index)
        return
    assert found.index == pytest.approx(by_definition(Z))
    assert -1 / (len(Z) - 1) - 1e-12 <= found.index <= 1 + 1e-12
    assert found.variance >= 0
    assert found.interval[0] <= found.index <= found.interval[1]


@given(SELECTIONS, st.randoms(use_true_random=False))
def test_the_order_of_sets_and_features_does_not_matter_nor_taking_the_complements(Z, random):
    if Z.all() or not Z.any():
        return
    rows, columns = list(range(Z.shape[0])), list(range(Z.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    index = measure_stability(Z).index
    assert measure_stability(Z[np.ix_(rows, columns)]).index == pytest.approx(index)
    assert measure_stability(~Z).index == pytest.approx(index)


@pytest.mark.parametrize(("value", "word"), [(True, "every feature"), (False, "no feature")])
def test_where_no_disagreement_is_possible_the_index_is_nan_and_says_why(value, word):
    found = measure_stability(np.full((5, 3), value))
    assert np.isnan(found.index)
    assert np.isnan(float(found))
    assert found.verdict == "undefined"
    assert str(found) == f"stability is not defined: {word} was selected every time."


def test_the_verdict_follows_the_benchmark():
    rng = np.random.default_rng(3)
    p = np.repeat((0.8, 0.05), (10, 30))
    found = measure_stability(rng.random((200, 40)) < p)
    assert 0.4 < found.index < 0.75
    assert found.verdict == "intermediate to good"
    assert str(found).endswith("200 sets): intermediate to good")


@pytest.mark.parametrize("bad", [[[1, 0]], [1, 0], [[0.5, 1], [1, 0]], np.zeros((3, 0))])
def test_what_is_no_table_of_sets_is_refused(bad):
    with pytest.raises(DataError, match=r"Stability compares|A selection is"):
        measure_stability(bad)
