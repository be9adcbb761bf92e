"""Methods compared without labels."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers import MCFS, AutoSelector, LaplacianScore, datasets, select_method
from keepers.exceptions import DataError, DataWarning, ParameterError
from keepers.tuning import MethodChoice, MethodTrial, method_choice, select_settings
from keepers.tuning.evidence import NeighbourEvidence


@pytest.fixture(scope="module")
def planted():
    """Five clusters in 12 of 60 features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 60))
    X[:, :12] += 2.5 * rng.choice([-1.0, 1.0], (5, 12))[rng.integers(5, size=90)]
    return X


@pytest.fixture(scope="module")
def choice(planted):
    return select_method(planted, 10)


def test_the_methods_keep_what_they_keep_by_themselves(planted, choice):
    limit, clusters = {"max_correlation": 0.8}, {"n_clusters": 10}
    for method, params, selector in (
        ("auto", {}, AutoSelector(10)),
        ("lapscore", limit, LaplacianScore(10, **limit)),
        ("mcfs", clusters, MCFS(10, **clusters, random_state=0)),
        ("mcfs", clusters | limit, MCFS(10, **clusters, **limit, random_state=0)),
    ):
        (found,) = (
            trial for trial in choice.trials if (trial.method, trial.params) == (method, params)
        )
        assert np.array_equal(found.columns, selector.fit(planted).top().indices), method
    settings = select_settings(planted, 10, random_state=0)
    spcafs = [trial for trial in choice.trials if trial.method == "spcafs"]
    assert [trial.params for trial in spcafs] == [trial.params for trial in settings.candidates]
    assert [trial.evidence for trial in spcafs] == [t.evidence for t in settings.candidates]


def test_the_recommendation_finds_the_clusters_and_is_ahead_of_chance(choice):
    assert np.all(choice.best.columns < 12)
    assert not choice.interchangeable
    assert "ahead of all 20 random sets" in choice.why


def test_the_selector_repeats_the_recommendation(planted, choice):
    assert set(choice.selector().fit(planted).top().indices) == set(choice.best.columns)


def test_rows_hold_everything_strongest_first_and_random_sets_last(choice):
    rows = choice.rows()
    assert len(rows) == len(choice.trials) + 20
    scores = [row["score"] for row in rows[: len(choice.trials)]]
    np.testing.assert_allclose(scores, sorted(scores, reverse=True))
    assert {row["method"] for row in rows[len(choice.trials) :]} == {"random"}
    for row in rows:
        expected = row["fidelity"] * np.sqrt(max(row["clumpiness"], 0.01))
        assert row["score"] == pytest.approx(expected)


def test_without_a_number_auto_selector_gives_it(planted):
    found = select_method(planted)
    assert found.n_features_to_select == AutoSelector().fit(planted).n_enough_
    assert all(len(trial.columns) == found.n_features_to_select for trial in found.trials)


def test_noise_has_nothing_to_keep_unless_a_number_is_given():
    X = np.random.default_rng(1).standard_normal((60, 30))
    with pytest.warns(DataWarning, match="No structure found"):
        found = select_method(X)
    assert (found.n_features_to_select, found.trials, found.rows()) == (0, (), [])
    assert not found.structure_found
    assert found.why.startswith("No structure found")
    with pytest.warns(DataWarning, match="No structure found"):
        asked = select_method(X, 5)
    assert len(asked.best.columns) == 5


def test_features_that_all_say_the_same_are_interchangeable():
    """One hidden quantity, measured 40 times: any 20 are as good as any other 20.

    Chance puts one selection in 21 ahead of 20 random sets, so that 3 of 10 are rare (1 %).
    """
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        found.append(
            select_method(rng.standard_normal((120, 1)) + rng.standard_normal((120, 40)), 20)
        )
    alike = [choice for choice in found if choice.interchangeable]
    assert len(alike) >= 8
    assert all(choice.best.method == "auto" for choice in alike)
    assert all("Any 20 features do about as well." in choice.why for choice in alike)


def test_all_features_are_interchangeable_with_themselves(planted):
    assert select_method(planted[:, :8], 8).interchangeable


def make(scores, random, error):
    """A choice with these scores: method -> score."""
    trials = tuple(
        MethodTrial(method, {}, NeighbourEvidence(score, 1.0), np.arange(3))
        for method, score in sorted(scores.items(), key=lambda pair: -pair[1])
    )
    chance = tuple(NeighbourEvidence(score, 1.0) for score in random)
    return MethodChoice(3, trials, chance, error, {}, AutoSelector(), 0, 1.0)


@pytest.mark.parametrize(
    ("scores", "error", "best", "level", "said"),
    [
        ({"auto": 0.5, "mcfs": 0.4}, 0.0, "auto", False, "No other method has stronger evidence."),
        ({"auto": 0.4, "mcfs": 0.5}, 0.04, "auto", True, "Between MCFS and AutoSelector the ev"),
        ({"auto": 0.4, "mcfs": 0.5}, 0.03, "mcfs", False, "It is ahead of AutoSelector (0.500"),
        ({"auto": 0.4, "mcfs": 0.5}, np.inf, "auto", True, "too few samples to halve"),
    ],
)
def test_another_method_must_be_ahead_by_three_standard_errors(scores, error, best, level, said):
    found = make(scores, [0.28, 0.3], error)
    assert (found.best.method, found.level, found.interchangeable) == (best, level, False)
    assert said in found.why


def test_what_some_random_set_reaches_is_interchangeable():
    assert make({"auto": 0.5}, [0.2, 0.5], 0.0).interchangeable
    assert make({"auto": 0.5}, [0.2, 0.5], 0.0).why.startswith("The features are interchangeable")
    assert not make({"auto": 0.5}, [0.2, 0.49], 0.0).interchangeable


def test_what_random_sets_reach_is_not_preferred_to_auto_selector():
    found = make({"auto": 0.3, "mcfs": 0.5}, [0.2, 0.6], 0.01)
    assert (found.best.method, found.level, found.interchangeable) == ("auto", True, True)


def test_storage_names_and_constant_columns_make_no_difference(planted):
    X = np.where(np.abs(planted) < 0.5, 0.0, planted)
    X = np.insert(X, 3, 7.0, axis=1)
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(61)])
    found = []
    for table in (X, frame, sp.csr_matrix(X)):
        with pytest.warns(DataWarning, match="do not vary") as caught:
            found.append(select_method(table, 8))
        assert len(caught) == 1
    dense, framed, sparse = found
    for other in (framed, sparse):
        assert other.best.method == dense.best.method
        assert set(other.best.columns) == set(dense.best.columns)
    assert all(3 not in trial.columns for trial in dense.trials)


def test_progress_counts_every_fit(planted):
    told = []
    select_method(planted, 5, callback=lambda done, total: told.append((done, total)))
    last = told[-1][1]
    assert told == [(done, last) for done in range(2, last + 1)]  # AutoSelector came first


def test_the_choice_does_not_depend_on_the_number_of_processes(planted, choice):
    assert select_method(planted, 10, n_jobs=2).rows() == choice.rows()


def test_what_does_not_fit_in_memory_is_left_out_with_the_reason(planted, monkeypatch):
    def refuse(*_):
        raise DataError("MCFS needs about 900 GB")

    monkeypatch.setattr(MCFS, "fit", refuse)
    found = select_method(planted, 5)
    assert found.left_out == {"mcfs": "MCFS needs about 900 GB"}
    assert {trial.method for trial in found.trials} == {"auto", "spcafs", "lapscore"}


def test_methods_that_compare_all_samples_are_left_out_of_long_tables(planted, monkeypatch):
    monkeypatch.setattr(method_choice, "MOST_SAMPLES_FOR_GRAPHS", 89)
    found = select_method(planted, 5)
    assert set(found.left_out) == {"lapscore", "mcfs"}
    assert {trial.method for trial in found.trials} == {"auto", "spcafs"}


@pytest.mark.filterwarnings("ignore::keepers.exceptions.DataWarning")
@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (6, 5), (12, 4)])
def test_tiny_tables_are_chosen_for_too(shape):
    X = np.random.default_rng(0).standard_normal(shape)
    found = select_method(X, 2)
    assert len(found.best.columns) == 2
    assert (found.best.method == "auto") or shape[0] == 12  # fewer cannot be halved


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_features_to_select": 0}, "n_features_to_select"),
        ({"random_state": "x"}, "random_state"),
        ({"callback": 3}, "callback"),
    ],
)
def test_misuse_is_refused_before_the_table_is_read(settings, message):
    with pytest.raises(ParameterError, match=message):
        select_method(object(), **settings)


def test_srbct_keeps_features_that_beat_random_ones():
    X, _, y = datasets.load("srbct")
    found = select_method(X, 50)
    assert not found.interchangeable
    classes = np.unique(y, return_inverse=True)[1]

    def explained(columns):  # share of the variance between classes, a feature at a time
        values = X[:, columns]
        means = np.array([values[classes == c].mean(axis=0) for c in range(4)])[classes]
        return float(np.mean(means.var(axis=0) / values.var(axis=0)))

    chance = [explained(np.random.default_rng(s).permutation(X.shape[1])[:50]) for s in range(10)]
    assert explained(found.best.columns) > max(chance)
