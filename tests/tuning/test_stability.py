"""Stability selection around every selector, Nogueira's index, bounds on false selections."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.utils.estimator_checks import parametrize_with_checks

from keepers import (
    MCFS,
    SPCAFS,
    AutoSelector,
    RandomScore,
    VarianceScore,
    all_selectors,
)
from keepers.exceptions import DataError, DataWarning, KeepersWarning, ParameterError
from keepers.tuning.stability import (
    StabilitySelector,
    bound_false_selections,
    draw_halves,
    halves_needed,
    measure_stability,
)

SELECTORS = all_selectors()
EVERY = pytest.mark.parametrize("name", SELECTORS)


def quietly(selector, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        return selector.fit(X)


@pytest.fixture(scope="module")
def table():
    """40 x 12: four groups of samples in the first four features, noise in the rest."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 12))
    X[:, :4] += 3 * rng.standard_normal((4, 4))[rng.integers(0, 4, 40)]
    return X


@parametrize_with_checks(
    [
        StabilitySelector(n_resamples=2),
        StabilitySelector(MCFS(), n_resamples=2),
    ]
)
def test_scikit_learn_accepts_it(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        warnings.filterwarnings("ignore", message=".*(Casting complex|overflow|invalid value).*")
        check(estimator)


@EVERY
def test_works_with_every_selector(name, table):
    stable = quietly(StabilitySelector(SELECTORS[name](4), 6, random_state=0), table)
    kept = 12 if name == "AllFeatures" else 4
    assert stable.selections_.shape == (6, 12)
    assert np.all(stable.selections_.sum(axis=1) == kept)
    # Exactly: counts over a count.
    np.testing.assert_array_equal(stable.scores_, stable.selections_.mean(axis=0))
    assert sorted(stable.ranking_) == list(range(1, 13))
    assert np.all(np.diff(stable.scores_[np.argsort(stable.ranking_)]) <= 0)
    np.testing.assert_array_equal(stable.transform(table), table[:, stable.support_])
    assert len(stable.top()) == kept
    assert stable.expected_false_selections_ == pytest.approx(min(kept**2 / 12 / (4 / 6), 12))
    again = quietly(StabilitySelector(SELECTORS[name](4), 6, random_state=0), table)
    np.testing.assert_array_equal(again.selections_, stable.selections_)


def test_each_half_is_what_the_selector_gives_on_those_rows(table):
    stable = StabilitySelector(VarianceScore(4), 8, random_state=3).fit(table)
    seed = np.random.RandomState(3).randint(2**31 - 1)
    rng = np.random.default_rng(seed)
    rng.integers(2**31 - 1)  # the seed of the fit to all samples
    for row, (rows, _) in zip(stable.selections_, draw_halves(40, 8, rng), strict=True):
        expected = np.argsort(-table[rows].var(axis=0))[:4]
        assert set(np.flatnonzero(row)) == set(expected)


@pytest.mark.parametrize("n_samples", [4, 9, 40])
def test_pairs_share_no_sample_and_hold_half_of_them_each(n_samples):
    halves = draw_halves(n_samples, 20, np.random.default_rng(0))
    assert len(halves) == 20
    assert len({seed for _, seed in halves}) == 20
    for (first, _), (second, _) in zip(halves[::2], halves[1::2], strict=True):
        assert len(first) == len(second) == n_samples // 2
        assert not set(first) & set(second)


def test_planted_features_are_selected_more_often_than_all_others():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((80, 60))
    X[:, :5] += 3 * rng.choice([-1.0, 1.0], (80, 1))
    for base in (SPCAFS(5, n_components=1, tol=1e-5), VarianceScore(5)):
        stable = quietly(StabilitySelector(base, 20, random_state=0), X)
        assert stable.scores_[:5].min() > stable.scores_[5:].max()
        np.testing.assert_array_equal(np.flatnonzero(stable.stable_), np.arange(5))
        assert set(stable.top(5).indices) == set(range(5))
        assert stable.stability_.verdict == "excellent"


def test_the_bound_counts_only_columns_that_vary(table):
    X = np.column_stack([table, np.ones((40, 3))])
    with pytest.warns(DataWarning, match="ranked last: 12, 13, 14") as caught:
        stable = StabilitySelector(VarianceScore(4), 10, threshold=0.9, random_state=0).fit(X)
    assert len(caught) == 1
    assert stable.expected_false_selections_ == pytest.approx(16 / (0.8 * 12))
    assert sorted(stable.ranking_[12:]) == [13, 14, 15]
    without = StabilitySelector(VarianceScore(4), 10, random_state=0).fit(table)
    assert stable.stability_ == without.stability_


def test_equal_frequencies_are_ranked_by_mean_rank():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4)) * [1, 100, 10, 1000]
    stable = StabilitySelector(VarianceScore(3), 10, random_state=0).fit(X)
    np.testing.assert_array_equal(stable.scores_, [0, 1, 1, 1])
    np.testing.assert_array_equal(stable.mean_ranks_, [4, 2, 3, 1])
    np.testing.assert_array_equal(stable.ranking_, [4, 2, 3, 1])


def test_a_random_selector_is_as_unstable_as_chance_even_with_a_seed(table):
    stable = StabilitySelector(RandomScore(3, random_state=0), 60, random_state=0).fit(table)
    low, high = stable.stability_.interval
    assert low <= 0 <= high
    np.testing.assert_array_equal(
        stable.selector_.scores_, RandomScore(random_state=0).fit(table).scores_
    )


@pytest.mark.slow
def test_two_processes_give_what_one_gives(table):
    for base in (SPCAFS(4), RandomScore(4)):
        one, two = (
            quietly(StabilitySelector(base, 8, random_state=0, n_jobs=n), table) for n in (1, 2)
        )
        np.testing.assert_array_equal(one.selections_, two.selections_)
        np.testing.assert_array_equal(one.mean_ranks_, two.mean_ranks_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"selector": "SPCAFS"}, "selector must be a selector of this library"),
        ({"selector": SPCAFS(p=2.0)}, "p must .*; got 2.0"),
        ({"n_resamples": 7}, "n_resamples must be an even number >= 2; got 7"),
        ({"threshold": 0.5}, "threshold must .*; got 0.5"),
        ({"n_features_to_select": 0}, "n_features_to_select"),
        ({"n_features_to_select": 13}, "n_features_to_select must be at most"),
    ],
)
def test_a_bad_setting_is_refused_and_nothing_stays_behind(settings, message, table):
    stable = StabilitySelector(**({"selector": VarianceScore(4), "n_resamples": 4} | settings))
    with pytest.raises(ParameterError, match=message):
        stable.fit(table)
    assert not [name for name in vars(stable) if name.endswith("_")]
    if settings != {"n_features_to_select": 13}:  # the one rule that needs the size of the table
        with pytest.raises(ParameterError, match=message):
            stable.fit(object())


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


@pytest.mark.parametrize("bad", [[[1, 0]], [1, 0], [[0.5, 1], [1, 0]], np.zeros((3, 0))])
def test_what_is_no_table_of_sets_is_refused(bad):
    with pytest.raises(DataError, match=r"Stability compares|A selection is"):
        measure_stability(bad)


@pytest.mark.parametrize("q", range(1, 11))
def test_the_bound_is_meinshausen_and_buhlmanns_closed_form(q):
    assert bound_false_selections(q, 100, 0.6) == pytest.approx(q**2 / 0.2 / 100)


@given(st.integers(1, 300), st.integers(1, 300), st.floats(0.501, 1.0))
@settings(max_examples=60, deadline=None)
def test_no_bound_exceeds_the_features(q, d, threshold):
    assert 0 <= bound_false_selections(min(q, d), d, threshold) <= d


@given(st.floats(0.501, 1.0), st.integers(1, 60))
def test_a_threshold_between_two_frequencies_means_the_next_one_up(threshold, n_pairs):
    share = halves_needed(threshold, 2 * n_pairs) / (2 * n_pairs)
    assert threshold - 1e-9 <= share <= threshold + 0.5 / n_pairs
    assert halves_needed(0.701, 20) == 15
    assert halves_needed(0.7, 100) == 70  # 0.7 * 100 is above 70


@pytest.mark.parametrize("n_features", [60, 400])
def test_halves_of_an_autoselector_keep_as_many_as_the_fit_to_all_samples(n_features):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, n_features))
    X[:, :12] += 3 * rng.standard_normal((3, 12))[rng.integers(0, 3, 120)]
    stable = quietly(StabilitySelector(AutoSelector(), n_resamples=6, random_state=0), X)
    kept = AutoSelector(n_halves=0).fit(X).n_features_to_select_
    assert stable.n_features_to_select_ == kept
    assert set(stable.selections_.sum(axis=1)) == {kept}
    assert stable.stability_.index > 0.6
    assert set(np.flatnonzero(stable.stable_)) <= set(range(12))  # those with structure


def test_a_fit_to_half_ranks_planted_features_first_as_a_fit_does():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 300))
    X[:, :20] += 3 * rng.standard_normal((4, 20))[rng.integers(0, 4, 200)]
    whole = AutoSelector(20, n_halves=0).fit(X)
    half = AutoSelector(20).fit_half(X[::2], whole)
    fitted = AutoSelector(20, n_halves=0).fit(X[::2])
    assert (
        set(np.flatnonzero(half.support_)) == set(np.flatnonzero(fitted.support_)) == {*range(20)}
    )
    assert sorted(half.ranking_) == list(range(1, 301))
