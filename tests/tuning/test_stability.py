"""Stability selection around every selector: what it promises, and that it keeps it."""

import doctest
import warnings
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from keepers import (
    MCFS,
    SPCAFS,
    AllFeatures,
    LaplacianScore,
    RandomScore,
    VarianceScore,
    all_selectors,
)
from keepers.exceptions import DataError, DataWarning, KeepersWarning, ParameterError
from keepers.tuning.stability import StabilitySelector, draw_halves

SELECTORS = all_selectors()
PAGE = Path(__file__).parents[2] / "docs" / "stability.md"
EVERY = pytest.mark.parametrize("name", SELECTORS)


class CountedVariance(VarianceScore):
    """VarianceScore that counts its fits."""

    fits = 0

    def fit(self, X, y=None):
        type(self).fits += 1
        return super().fit(X, y)


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
    np.testing.assert_array_equal(stable.frequencies_, stable.selections_.mean(axis=0))
    assert sorted(stable.ranking_) == list(range(1, 13))
    assert np.all(np.diff(stable.scores_[np.argsort(stable.ranking_)]) <= 0)
    np.testing.assert_array_equal(stable.transform(table), table[:, stable.support_])
    assert len(stable.top()) == kept
    assert stable.expected_false_selections_.q == kept
    again = quietly(StabilitySelector(SELECTORS[name](4), 6, random_state=0), table)
    np.testing.assert_array_equal(again.selections_, stable.selections_)


@EVERY
def test_sparse_tables_are_taken_where_the_selector_takes_them(name, table):
    X = sp.csr_array(table * (np.abs(table) > 0.3))
    stable = StabilitySelector(SELECTORS[name](4), 4, random_state=0)
    if SELECTORS[name].why_not_sparse is not None:
        with pytest.raises(DataError, match=r"does not accept a sparse matrix: .*toarray"):
            quietly(stable, X)
        return
    dense = quietly(clone(stable), X.toarray())
    np.testing.assert_allclose(quietly(stable, X).frequencies_, dense.frequencies_, atol=0)


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


def test_more_resamples_begin_with_the_same_ones(table):
    few, many = (StabilitySelector(VarianceScore(4), n, random_state=1) for n in (6, 10))
    np.testing.assert_array_equal(few.fit(table).selections_, many.fit(table).selections_[:6])


def test_planted_features_are_selected_more_often_than_all_others():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((80, 60))
    X[:, :5] += 3 * rng.choice([-1.0, 1.0], (80, 1))
    for base in (SPCAFS(5, n_components=1, tol=1e-5), VarianceScore(5)):
        stable = quietly(StabilitySelector(base, 20, random_state=0), X)
        assert stable.frequencies_[:5].min() > stable.frequencies_[5:].max()
        np.testing.assert_array_equal(np.flatnonzero(stable.stable_), np.arange(5))
        assert set(stable.top(5).indices) == set(range(5))
        assert stable.stability_.verdict == "excellent"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "n_draws"),
    [
        (VarianceScore(20), 12),
        (LaplacianScore(20), 6),
        (SPCAFS(20, n_components=1, tol=1e-4), 4),
        (RandomScore(20), 4),
    ],
    ids=lambda value: type(value).__name__,
)
def test_on_pure_noise_no_more_features_pass_than_the_bound_expects(base, n_draws):
    """Exchangeable columns: each is selected with probability q / d, so all count as false."""
    passed = {0.6: 0.0, 0.75: 0.0, 0.9: 0.0}
    for draw in range(n_draws):
        X = np.random.default_rng(draw).standard_normal((60, 200))
        stable = quietly(StabilitySelector(base, 40, random_state=draw), X)
        for threshold in passed:
            passed[threshold] += np.sum(stable.frequencies_ >= threshold - 1e-9) / n_draws
    for threshold, mean_passed in passed.items():
        assert mean_passed <= 20**2 / ((2 * threshold - 1) * 200)


def test_the_r_concave_bound_is_no_promise():
    """The largest variances of pure noise: above what r-concavity allows, below what one peak does.

    In the limit of many halves a column's frequency is Phi(x - sqrt(2) z) with x standard normal
    and z the 90 % point, so P(frequency >= 0.6) = P(x >= 1.812 + 0.253) = 0.0195, 3.9 of 200.
    """
    passed = []
    for draw in range(10):
        X = np.random.default_rng(draw).standard_normal((60, 200))
        stable = StabilitySelector(VarianceScore(20), 100, threshold=0.6, random_state=draw).fit(X)
        passed.append(stable.stable_.sum())
    bound = stable.expected_false_selections_
    assert bound.r_concave < np.mean(passed) < bound.unimodal


def test_the_bound_counts_only_columns_that_vary(table):
    X = np.column_stack([table, np.ones((40, 3))])
    with pytest.warns(DataWarning, match="ranked last: 12, 13, 14") as caught:
        stable = StabilitySelector(VarianceScore(4), 10, threshold=0.9, random_state=0).fit(X)
    assert len(caught) == 1
    bound = stable.expected_false_selections_
    assert bound.worst_case == pytest.approx(16 / (0.8 * 12))
    assert sorted(stable.ranking_[12:]) == [13, 14, 15]
    without = StabilitySelector(VarianceScore(4), 10, random_state=0).fit(table)
    assert stable.stability_ == without.stability_


def test_a_column_constant_in_a_half_is_not_selected_from_it():
    X = np.zeros((8, 3))
    X[:, 0] = np.arange(8)
    X[0, 1:] = 1.0  # varies in halves with the first sample only
    stable = StabilitySelector(AllFeatures(), 20, random_state=0).fit(X)
    np.testing.assert_array_equal(stable.selections_[:, 0], True)
    np.testing.assert_array_equal(stable.frequencies_[1:], 0.5)
    assert stable.expected_false_selections_.q == 2


def test_equal_frequencies_are_ranked_by_mean_rank():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4)) * [1, 100, 10, 1000]
    stable = StabilitySelector(VarianceScore(3), 10, random_state=0).fit(X)
    np.testing.assert_array_equal(stable.frequencies_, [0, 1, 1, 1])
    np.testing.assert_array_equal(stable.mean_ranks_, [4, 2, 3, 1])
    np.testing.assert_array_equal(stable.ranking_, [4, 2, 3, 1])


def test_a_random_selector_is_as_unstable_as_chance_even_with_a_seed(table):
    stable = StabilitySelector(RandomScore(3, random_state=0), 60, random_state=0).fit(table)
    low, high = stable.stability_.interval
    assert low <= 0 <= high
    np.testing.assert_array_equal(
        stable.selector_.scores_, RandomScore(random_state=0).fit(table).scores_
    )


def test_all_features_have_no_stability_and_say_why(table):
    stable = StabilitySelector(AllFeatures(), 4, random_state=0).fit(table)
    assert np.isnan(stable.stability_.index)
    assert "every feature was selected" in str(stable.stability_)
    assert stable.expected_false_selections_.worst_case == 12  # of 12: no promise at all
    assert stable.stable_.all()


def test_intervals_are_wilsons(table):
    stable = StabilitySelector(VarianceScore(4), 30, random_state=0).fit(table)
    for count, interval in zip(
        stable.selections_.sum(axis=0), stable.frequency_intervals_, strict=True
    ):
        expected = binomtest(int(count), 30).proportion_ci(0.95, method="wilson")
        assert interval == pytest.approx((expected.low, expected.high))


def test_how_many_are_kept_is_the_selectors_number_unless_told(table):
    assert StabilitySelector(VarianceScore(0.5), 4).fit(table).n_features_to_select_ == 6
    told = StabilitySelector(VarianceScore(4), 4, n_features_to_select=2).fit(table)
    assert told.transform(table).shape == (40, 2)
    assert told.expected_false_selections_.q == 4


def test_two_processes_give_what_one_gives(table):
    for base in (SPCAFS(4), RandomScore(4)):
        one, two = (
            quietly(StabilitySelector(base, 8, random_state=0, n_jobs=n), table) for n in (1, 2)
        )
        np.testing.assert_array_equal(one.selections_, two.selections_)
        np.testing.assert_array_equal(one.mean_ranks_, two.mean_ranks_)


def test_a_stopped_run_goes_on_with_what_is_missing(table, tmp_path):
    expected = StabilitySelector(VarianceScore(4), 10, random_state=0).fit(table)

    def stop_halfway(done, total):
        if done == 5:
            raise KeyboardInterrupt

    settings = {"n_resamples": 10, "random_state": 0, "memory": tmp_path}
    stopped = StabilitySelector(CountedVariance(4), callback=stop_halfway, **settings)
    CountedVariance.fits = 0
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(table)
    assert CountedVariance.fits == 1 + 5  # all samples, and five halves
    assert not [name for name in vars(stopped) if name.endswith("_")]

    CountedVariance.fits = 0
    resumed = StabilitySelector(CountedVariance(4), **settings).fit(table)
    assert CountedVariance.fits == 1 + 5
    np.testing.assert_array_equal(resumed.selections_, expected.selections_)
    np.testing.assert_array_equal(resumed.ranking_, expected.ranking_)

    CountedVariance.fits = 0
    StabilitySelector(CountedVariance(4), **settings).fit(table)
    assert CountedVariance.fits == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda settings, X: (settings | {"selector": CountedVariance(5)}, X),
        lambda settings, X: (settings | {"random_state": 1}, X),
        lambda settings, X: (settings, X + np.eye(40, 12)),
    ],
    ids=["settings", "seed", "data"],
)
def test_what_is_kept_is_not_taken_for_something_else(change, table, tmp_path):
    settings = {"selector": CountedVariance(4), "n_resamples": 4, "random_state": 0}
    StabilitySelector(memory=str(tmp_path), **settings).fit(table)
    settings, X = change(settings, table)
    CountedVariance.fits = 0
    found = StabilitySelector(memory=str(tmp_path), **settings).fit(X)
    assert CountedVariance.fits == 1 + 4
    fresh = StabilitySelector(**settings).fit(X)
    np.testing.assert_array_equal(found.selections_, fresh.selections_)


def test_listeners_of_the_selector_hear_the_fit_to_all_samples_only(table, tmp_path):
    """And a function that cannot be pickled does not stand in the way of memory."""
    heard = []
    base = SPCAFS(4, callback=lambda step: heard.append(step.n_iter))
    memory = joblib.Memory(tmp_path, verbose=0)
    stable = quietly(StabilitySelector(base, 4, random_state=0, memory=memory), table)
    assert max(heard) == len(heard) <= stable.selector_.n_iter_


def test_progress_is_told_after_each_half(table):
    told = []
    StabilitySelector(
        VarianceScore(4), 6, callback=lambda done, total: told.append((done, total))
    ).fit(table)
    assert told == [(i, 6) for i in range(1, 7)]


def test_names_survive(table):
    frame = pd.DataFrame(table, columns=[f"gene {j}" for j in range(12)])
    stable = StabilitySelector(VarianceScore(3), 4, random_state=0).fit(frame)
    kept = [f"gene {j}" for j in np.flatnonzero(stable.support_)]
    assert list(stable.get_feature_names_out()) == kept
    assert list(stable.selector_.feature_names_in_) == list(frame.columns)


def test_settings_of_the_inner_selector_are_reached_from_outside(table):
    stable = StabilitySelector(SPCAFS(4), 4).set_params(selector__n_components=2)
    assert quietly(clone(stable), table).selector_.n_components_ == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"selector": "SPCAFS"}, "selector must be a selector of this library"),
        ({"selector": SPCAFS}, "selector must be a selector of this library"),
        ({"selector": SPCAFS(p=2.0)}, r"p must lie in \(0, 1\]"),
        ({"n_resamples": 7}, "n_resamples must be even; got 7"),
        ({"n_resamples": 0}, "n_resamples must be an integer >= 2; got 0"),
        ({"threshold": 0.5}, r"threshold must lie in \(0.5, 1\]; got 0.5"),
        ({"threshold": 1.2}, "threshold must lie in"),
        ({"memory": 3}, "memory must be a folder"),
        ({"callback": 3}, "callback must be callable"),
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


def test_three_samples_are_too_few(table):
    with pytest.raises(DataError, match="at least 4 samples, two in each half; X has 3"):
        StabilitySelector(VarianceScore(4)).fit(table[:3])


def test_an_error_on_a_half_says_that_it_was_one(table):
    base = SPCAFS(4, n_components=11)
    with pytest.raises(ParameterError, match=r"On a half of the samples, 10 of 20: n_components"):
        quietly(StabilitySelector(base, 4, random_state=0), table[:20])


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not here")
def test_the_page_about_it_runs_as_printed():
    assert doctest.testfile(str(PAGE), module_relative=False).failed == 0


def test_every_parameter_and_attribute_is_documented(table):
    stable = StabilitySelector(VarianceScore(4), 4).fit(table)
    for name in [*stable.get_params(deep=False), *(a for a in vars(stable) if a.endswith("_"))]:
        if name not in {"n_features_to_select_"}:
            assert f"    {name} : " in StabilitySelector.__doc__, name
