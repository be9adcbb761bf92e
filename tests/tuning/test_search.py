"""Settings chosen without labels."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from keepers import SPCAFS, SPCAFSCV, select_settings
from keepers.exceptions import DataWarning, InactiveRowsWarning, KeepersWarning, ParameterError

QUICK = {"n_components": [2, 5], "gamma_shares": [1e-5, 1.0]}


@pytest.fixture(scope="module")
def planted():
    """Five clusters in 12 of 60 features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 60))
    signs = rng.choice([-1.0, 1.0], (5, 12))
    X[:, :12] += 2.5 * signs[rng.integers(5, size=90)]
    return X


@pytest.fixture(scope="module")
def choice(planted):
    return select_settings(planted, random_state=0, **QUICK)


def test_the_number_of_features_is_that_of_the_structure(choice):
    assert choice.structure_found
    assert 3 <= choice.n_features_to_select <= 14  # 12 carry it; fewer may be enough


def test_where_all_structure_is_kept_no_feature_is_passed_over_for_noise(planted):
    for k, limits in ((30, {None}), (5, {0.8, 0.6})):
        rows = select_settings(planted, k, random_state=0, **QUICK).rows()
        assert {row["max_correlation"] for row in rows} == limits
        assert len(rows) == 2 * 2 * 3 * len(limits)  # components, gammas, scalings


def test_everything_tried_is_there_best_first(choice):
    rows = choice.rows()
    k = choice.n_features_to_select
    lacks = [row["n_active_kept"] < k for row in rows]
    assert lacks == sorted(lacks)  # what keeps inactive features comes last
    for lacking in (False, True):
        part = [row["score"] for row in rows if (row["n_active_kept"] < k) == lacking]
        assert part == sorted(part, reverse=True)
    assert len(pd.DataFrame(rows).drop_duplicates(["n_components", "gamma", "scaling"])) == 12
    for row in rows:
        expected = row["fidelity"] * np.sqrt(max(row["clumpiness"], 0.01))
        assert row["score"] == pytest.approx(expected)


def test_the_params_repeat_the_choice(planted, choice):
    again = SPCAFS(**choice.params).fit(planted)
    assert set(again.top().indices) == set(choice.best.columns)
    leading = np.linalg.eigvalsh(np.cov(planted, rowvar=False))[-1] * 89
    for trial in choice.trials:
        if trial.params["scaling"] == 0.5:
            continue
        if trial.params["scaling"] == 0.0:
            assert trial.params["gamma"] == pytest.approx(trial.gamma_share * leading)
        else:  # features of variance 1 (divided by n)
            correlation = np.linalg.eigvalsh(np.corrcoef(planted, rowvar=False))[-1] * 90
            assert trial.params["gamma"] == pytest.approx(trial.gamma_share * correlation)


@pytest.mark.slow  # processes are started
def test_the_choice_does_not_depend_on_the_number_of_processes(planted, choice):
    parallel = select_settings(planted, random_state=0, n_jobs=2, **QUICK)
    assert parallel.rows() == choice.rows()


def test_a_single_value_is_taken_as_given(planted):
    rows = select_settings(
        planted, 3, n_components=3, gamma_shares=1.0, scaling=0.0, max_correlation=None
    ).rows()
    assert [(row["n_components"], row["max_correlation"]) for row in rows] == [(3, None)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": "many"}, "n_components must be an integer"),
        ({"gamma_shares": []}, "gamma_shares must be a value or a sequence"),
        ({"max_correlation": [2.0]}, "max_correlation must be None or a number"),
        ({"scaling": {}}, "scaling must be a value or a sequence"),
        ({"scaling": ["x"]}, "scaling must .*; got 'x'"),
    ],
)
def test_settings_that_cannot_be_tried_are_refused_before_the_table_is_read(settings, message):
    not_a_table = object()
    with pytest.raises(ParameterError, match=message):
        select_settings(not_a_table, 5, **settings)
    with pytest.raises(ParameterError, match=message):
        SPCAFSCV(5, **settings).fit(not_a_table)


# The estimator


def test_the_estimator_keeps_what_its_winner_keeps(planted):
    selector = SPCAFSCV(random_state=0, **QUICK).fit(planted)
    winner = SPCAFS(**selector.best_params_).fit(planted)
    assert np.array_equal(selector.support_, winner.support_)
    assert np.array_equal(selector.ranking_, winner.ranking_)
    assert selector.structure_found_
    assert selector.transform(planted).shape == (90, selector.n_features_to_select_)


def test_noise_is_said_to_be_noise():
    X = np.random.default_rng(1).standard_normal((50, 80))
    with pytest.warns(DataWarning, match="No structure found"):
        selector = SPCAFSCV(random_state=0, **QUICK).fit(X)
    assert not selector.structure_found_
    assert selector.support_.all()
    kept = SPCAFSCV(5, random_state=0, **QUICK).fit(X)  # asked for, so done
    assert kept.support_.sum() == 5


@pytest.mark.slow
@parametrize_with_checks([SPCAFSCV(n_components=(1, 2), random_state=0)])
def test_scikit_learn_accepts_it(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        warnings.filterwarnings("ignore", message=".*(Casting complex|overflow|invalid value).*")
        check(estimator)


def test_no_number_of_components_above_a_third_of_the_columns_is_tried():
    X = np.random.default_rng(0).standard_normal((60, 12))
    X[:, :4] += X[:, :1] * 3
    choice = select_settings(X, 3, random_state=0)
    assert {trial.params["n_components"] for trial in choice.trials} == {1, 4}
    # One number is the user's wish, not a candidate.
    choice = select_settings(X, 3, n_components=10, random_state=0)
    assert {trial.params["n_components"] for trial in choice.trials} == {10}


@pytest.mark.parametrize(("k", "lacking"), [(2, set()), (5, {2}), (20, {2, 5})])
def test_no_setting_is_proposed_that_leaves_fewer_rows_active_than_are_kept(planted, k, lacking):
    """At a share of 1 hardly more than n_components rows are active."""
    found = select_settings(planted, k, random_state=0, **QUICK)
    candidates = [trial for trial in found.trials if trial.keeps_active_only]
    assert candidates == list(found.trials[: len(candidates)])
    assert all(trial.n_active >= k == trial.n_active_kept for trial in candidates)
    left_out = found.trials[len(candidates) :]
    assert {trial.params["n_components"] for trial in left_out} >= lacking
    assert all(trial.gamma_share == 1.0 for trial in left_out)
    winner = SPCAFS(**found.params).fit(planted)  # without a warning
    assert np.linalg.norm(winner.components_[:, winner.support_], axis=0).min() > 2e-6


def test_it_is_said_if_no_combination_leaves_enough_rows_active(planted):
    settings = {"n_components": [2, 5], "gamma_shares": [1.0], "random_state": 0}
    rule = r"None of the 12 combinations .* 10 features active.* \d active .* smaller gamma_shares"
    with pytest.warns(InactiveRowsWarning, match=rule):
        choice = select_settings(planted, 10, **settings)
    assert not any(trial.keeps_active_only for trial in choice.trials)
    with pytest.warns(InactiveRowsWarning, match="of the 10 kept features") as caught:
        selector = SPCAFSCV(10, **settings).fit(planted)
    assert len(caught) == 1
    assert selector.n_active_ == selector.active_.sum() == selector.best_estimator_.n_active_
