"""Settings chosen without labels."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from keepers import SPCAFS, SPCAFSCV, datasets, select_settings
from keepers.exceptions import DataWarning, InactiveRowsWarning, KeepersWarning, ParameterError
from keepers.linalg.moments import column_moments

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
    assert choice.n_features_to_select == choice.structure.n_features_to_select
    assert 9 <= choice.n_features_to_select <= 14


def test_where_all_structure_is_kept_no_feature_is_passed_over_for_noise(choice):
    assert {row["max_correlation"] for row in choice.rows()} == {None}
    assert {row["max_correlation"] for row in choice.at(5).rows()} == {0.8, 0.6}


def test_the_features_kept_are_the_planted_ones(choice):
    assert np.all(choice.best.columns < 12)


def test_everything_tried_is_there_best_first(choice):
    rows = choice.rows()
    assert len(choice.at(5).rows()) == 2 * len(rows)  # two limits on correlation
    assert len(rows) == 2 * 2 * 3  # components, gammas, scalings
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


def test_the_choice_does_not_depend_on_the_number_of_processes(planted, choice):
    parallel = select_settings(planted, random_state=0, n_jobs=2, **QUICK)
    assert parallel.rows() == choice.rows()


def test_another_number_needs_no_new_fit(planted, choice, monkeypatch):
    monkeypatch.setattr(SPCAFS, "fit", None)
    other = choice.at(5)
    assert other.n_features_to_select == 5
    assert all(len(trial.columns) == 5 for trial in other.trials)
    with pytest.raises(ParameterError, match="from 1 to 60; got 61"):
        choice.at(61)


def test_at_is_the_same_as_asking_at_once(planted, choice):
    asked = select_settings(planted, 7, random_state=0, **QUICK)
    assert asked.rows() == choice.at(7).rows()


def test_sparse_and_dense_tables_give_the_same_choice(planted):
    X = np.where(np.abs(planted) < 0.5, 0.0, planted)
    dense = select_settings(X, 10, random_state=0, **QUICK)
    sparse = select_settings(sp.csr_matrix(X), 10, random_state=0, **QUICK)
    assert dense.params == pytest.approx(sparse.params)
    assert np.array_equal(dense.best.columns, sparse.best.columns)


def test_progress_is_told(planted):
    told = []
    select_settings(planted, 5, callback=lambda done, total: told.append((done, total)), **QUICK)
    assert told == [(i, 12) for i in range(1, 13)]


def test_more_components_than_the_table_has_are_left_out():
    X = np.random.default_rng(0).standard_normal((12, 30))
    rows = select_settings(X, 5, n_components=(1, 10, 30, 100), random_state=0).rows()
    assert {row["n_components"] for row in rows} == {1, 10}


def test_a_single_value_is_held_fixed(planted):
    rows = select_settings(
        planted, 3, n_components=3, gamma_shares=1.0, scaling=0.0, max_correlation=None
    ).rows()
    assert [(row["n_components"], row["max_correlation"]) for row in rows] == [(3, None)]


def test_a_table_too_small_for_the_numbers_tries_a_third_of_its_columns():
    X = np.random.default_rng(0).standard_normal((30, 6))
    rows = select_settings(X, 3, random_state=0).rows()
    assert {row["n_components"] for row in rows} == {1, 2}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": "many"}, "n_components must be an integer"),
        ({"gamma_shares": []}, "gamma_shares must be a value or a sequence"),
        ({"gamma_shares": [0.0]}, "gamma_shares must be a finite number > 0"),
        ({"max_correlation": [2.0]}, r"max_correlation must lie in \(0, 1\]"),
        ({"scaling": {}}, "scaling must be a value or a sequence"),
        ({"scaling": ["x"]}, r"scaling must lie in \[0, 1\]; got 'x'"),
        ({"scaling": [3.0]}, r"scaling must lie in \[0, 1\]"),
        ({"p": [2.0]}, r"p must lie in \(0, 1\]"),
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


def test_names_are_kept(planted):
    frame = pd.DataFrame(planted, columns=[f"gene {i}" for i in range(60)])
    selector = SPCAFSCV(4, random_state=0, **QUICK).fit(frame)
    assert all(name.startswith("gene ") for name in selector.get_feature_names_out())


def test_srbct_is_chosen_for_in_a_way_that_beats_keeping_by_variance():
    X, _, y = datasets.load("srbct")
    selector = SPCAFSCV(50, random_state=0).fit(X)
    kept = selector.transform(X)
    classes = np.unique(y, return_inverse=True)[1]

    def explained(values):  # share of the variance between classes, a feature at a time
        means = np.array([values[classes == c].mean(axis=0) for c in range(4)])[classes]
        moments = column_moments(values)
        return float(np.mean(((means - moments.mean) ** 2).sum(axis=0) / moments.sum_of_squares))

    by_variance = X[:, np.argsort(-X.var(axis=0))[:50]]
    assert explained(kept) > explained(by_variance)


@pytest.mark.slow
@parametrize_with_checks([SPCAFSCV(n_components=(1, 2), random_state=0)])
def test_scikit_learn_accepts_it(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        warnings.filterwarnings("ignore", message=".*(Casting complex|overflow|invalid value).*")
        check(estimator)


def test_clones_are_equal(planted):
    selector = SPCAFSCV(5, random_state=0, **QUICK)
    assert clone(selector).get_params() == selector.get_params()


def test_no_number_of_components_above_a_third_of_the_columns_is_tried():
    X = np.random.default_rng(0).standard_normal((60, 12))
    X[:, :4] += X[:, :1] * 3
    choice = select_settings(X, 3, random_state=0)
    assert {trial.params["n_components"] for trial in choice.trials} == {1, 4}
    # One number is the user's wish, not a candidate.
    choice = select_settings(X, 3, n_components=10, random_state=0)
    assert {trial.params["n_components"] for trial in choice.trials} == {10}


@pytest.mark.parametrize(("k", "lacking"), [(2, set()), (5, {2}), (20, {2, 5})])
def test_no_setting_is_proposed_that_leaves_fewer_rows_active_than_are_kept(
    planted, choice, k, lacking
):
    """At a share of 1 hardly more than n_components rows are active."""
    found = choice.at(k)
    n_candidates = len(found.candidates)
    assert found.candidates == found.trials[:n_candidates]
    assert all(trial.n_active >= k == trial.n_active_kept for trial in found.candidates)
    left_out = found.trials[n_candidates:]
    assert {trial.params["n_components"] for trial in left_out} >= lacking
    assert all(trial.gamma_share == 1.0 for trial in left_out)
    winner = SPCAFS(**found.params).fit(planted)  # without a warning
    assert np.linalg.norm(winner.components_[:, winner.support_], axis=0).min() > 2e-6


def test_active_rows_that_are_skipped_as_too_similar_do_not_count(planted):
    X = np.hstack([planted, planted[:, :12] + 0.01 * planted[:, 12:24]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InactiveRowsWarning)
        choice = select_settings(
            X, 16, n_components=[3], gamma_shares=[0.15], max_correlation=[0.9], random_state=0
        )
    for trial in choice.trials:
        params = {**trial.params, "n_features_to_select": 16}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InactiveRowsWarning)
            fitted = SPCAFS(**params).fit(X)
        norms = np.linalg.norm(fitted.components_, axis=0)
        assert trial.n_active_kept == np.sum(norms[trial.columns] > 2e-6)
    assert any(trial.n_active >= 16 > trial.n_active_kept for trial in choice.trials)


def test_it_is_said_if_no_combination_leaves_enough_rows_active(planted):
    settings = {"n_components": [2, 5], "gamma_shares": [1.0], "random_state": 0}
    said = "None of the 12 combinations tried leaves 10 features active; the one chosen keeps "
    with pytest.warns(InactiveRowsWarning, match=said + r"\d with .* smaller gamma_shares"):
        choice = select_settings(planted, 10, **settings)
    assert choice.candidates == choice.trials
    with pytest.warns(InactiveRowsWarning, match="of the 10 kept features") as caught:
        selector = SPCAFSCV(10, **settings).fit(planted)
    assert len(caught) == 1
    assert selector.n_active_ == selector.active_.sum() == selector.best_estimator_.n_active_
