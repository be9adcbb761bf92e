"""How many columns of a narrow table are kept."""

import itertools

import numpy as np
import pytest

from keepers import AutoSelector
from keepers.methods.auto_steps import SAME, WIDEST, split_copies


def test_what_is_kept_is_what_a_walk_down_the_ranking_keeps():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 12))
    X[:, 6:] = X[:, :6] + rng.uniform(0.01, 0.6, 6) * rng.standard_normal((50, 6))
    r = np.corrcoef(X, rowvar=False)
    ranked = rng.permutation(12)
    kept, copies = split_copies(ranked, r, np.zeros(12, dtype=bool))
    assert sorted([*kept, *copies]) == list(range(12))
    for one, other in itertools.combinations(kept, 2):
        assert abs(r[one, other]) < SAME
    place = {column: at for at, column in enumerate(ranked)}
    for copy in copies:
        assert any(abs(r[copy, k]) >= SAME and place[k] < place[copy] for k in kept)
    always = np.ones(12, dtype=bool)
    assert split_copies(ranked, r, always)[0].tolist() == ranked.tolist()


@pytest.fixture
def sensors():
    """Four signals, two sensors of each, an exact copy, another unit, and two columns of noise."""
    rng = np.random.default_rng(1)
    signals = 4 * rng.standard_normal((5, 4))[rng.integers(0, 5, 200)]
    signals += rng.standard_normal((200, 4))
    X = np.repeat(signals, 2, axis=1) + 1.5 * rng.standard_normal((200, 8))
    return np.column_stack([X, X[:, 3], 1.8 * X[:, 4] + 32.0, rng.standard_normal((200, 2))])


def test_of_two_identical_columns_one_is_kept_and_noise_is_not(sensors):
    selector = AutoSelector().fit(sensors)
    kept = set(np.flatnonzero(selector.support_).tolist())
    assert kept & {10, 11} == set()
    assert len(kept & {3, 8}) == len(kept & {4, 9}) == 1
    assert kept | {3, 8, 4, 9} == set(range(10))
    (copy,) = {3, 8} - kept
    assert selector.represented_by_[copy] in kept
    assert selector.representation_[copy] == pytest.approx(1.0)


def test_the_ranking_does_not_depend_on_the_number_asked_for(sensors):
    np.testing.assert_array_equal(
        AutoSelector().fit(sensors).ranking_, AutoSelector(3).fit(sensors).ranking_
    )


def test_the_limit_is_the_largest_correlation_that_was_asked_for(sensors):
    r = np.abs(np.corrcoef(sensors, rowvar=False))
    kept = np.flatnonzero(AutoSelector(max_correlation=0.8).fit(sensors).support_)
    among = r[np.ix_(kept, kept)] - np.eye(len(kept))
    assert among.max() <= 0.8 + 1e-9
    assert len(kept) < AutoSelector().fit(sensors).n_features_to_select_


def test_wide_tables_are_not_decided_by_copies_alone():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, WIDEST + 60))
    X += 3 * rng.standard_normal((3, X.shape[1]))[np.arange(60) % 3]
    selector = AutoSelector(n_halves=0).fit(X)
    assert selector.n_features_to_select_ < selector.carries_structure_.sum()
    assert selector.n_enough_ in selector.counts_


def test_the_summary_counts_the_copies(sensors):
    selector = AutoSelector().fit(sensors)
    assert "10 features show structure beyond chance; 2 of them repeat a kept one" in (
        selector.summary_
    )
    assert "repeat" not in AutoSelector(3).fit(sensors).summary_
