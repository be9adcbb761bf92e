"""Features that stay, features that go, costs and groups, as a user meets them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from keepers import SPCAFS
from keepers.exceptions import ParameterError


@pytest.fixture(scope="module")
def planted():
    """60 x 40, the first eight features move together in four groups of samples."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 40))
    X[:, :8] += 3 * rng.standard_normal((4, 8))[rng.integers(0, 4, 60)]
    return X


@pytest.fixture(scope="module")
def frame(planted):
    return pd.DataFrame(planted, columns=[f"feature {j}" for j in range(40)])


def fit(X, *args, **options):
    return SPCAFS(*args, n_components=3, **options).fit(X)


# Features that stay, features that go


def test_must_keep_comes_first_and_never_keep_is_left_out(frame):
    selector = fit(
        frame, 6, must_keep=["feature 30", "feature 20"], never_keep=["feature 0", "feature 25"]
    )
    assert set(selector.top(2).names) == {"feature 20", "feature 30"}
    assert selector.support_.sum() == 6
    assert selector.support_[[20, 30]].all()
    assert not selector.support_[[0, 25]].any()
    assert set(selector.ranking_[[0, 25]]) == {39, 40}
    assert selector.scores_[0] == selector.scores_[25] == 0
    assert np.all(selector.scores_[[20, 30]] > 0)
    rest = selector.top(38).scores[2:]
    assert np.all(np.diff(rest) <= 0)
    expected = np.ones(40)
    expected[[20, 30]], expected[[0, 25]] = 0, np.inf
    np.testing.assert_array_equal(selector.penalty_weights_, expected)


@pytest.mark.parametrize("solver", ["dense", "block"])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("n_components", ["auto", 3])
def test_never_keep_is_a_fit_without_these_columns(planted, solver, store, n_components):
    gone = [0, 3, 17, 39]
    kept = np.setdiff1d(np.arange(40), gone)
    options = {"n_components": n_components, "solver": solver}
    without = SPCAFS(**options).fit(store(planted)[:, kept])
    selector = SPCAFS(**options, never_keep=gone).fit(store(planted))
    np.testing.assert_allclose(selector.scores_[kept], without.scores_, atol=1e-12)
    np.testing.assert_array_equal(selector.ranking_[kept], without.ranking_)
    np.testing.assert_array_equal(selector.support_[kept], without.support_)
    np.testing.assert_allclose(selector.components_[:, kept], without.components_, atol=1e-12)
    assert not selector.scores_[gone].any()
    assert selector.gamma_ == pytest.approx(without.gamma_, rel=1e-14)
    assert selector.n_components_ == without.n_components_
    np.testing.assert_allclose(selector.mean_, planted.mean(axis=0), atol=1e-14)


def test_names_indices_masks_and_weights_say_the_same(planted, frame):
    mask = np.zeros(40, dtype=bool)
    mask[[5, 30]] = True
    weights = np.ones(40)
    weights[[5, 30]], weights[2] = 0.0, np.inf
    expected = fit(frame, must_keep=["feature 5", "feature 30"], never_keep=["feature 2"])
    for X, settings_ in (
        (planted, {"must_keep": [30, 5], "never_keep": (2,)}),
        (planted, {"must_keep": mask, "never_keep": np.array([2])}),
        (planted, {"must_keep": mask.tolist(), "penalty_weights": {2: np.inf}}),
        (planted, {"penalty_weights": weights}),
        (frame, {"penalty_weights": {"feature 5": 0, 30: 0.0, "feature 2": np.inf}}),
        (frame, {"penalty_weights": pd.Series(weights, frame.columns).sample(frac=1.0)}),
        (frame, {"must_keep": pd.Series(mask, frame.columns)[::-1], "never_keep": {"feature 2"}}),
        (frame, {"must_keep": frame.columns[mask], "never_keep": [2]}),
        (pl.DataFrame(frame.to_dict("list")), {"must_keep": ["feature 5", 30], "never_keep": [2]}),
        (planted, {"must_keep": [5, 30], "never_keep": [2], "penalty_weights": weights}),
    ):
        selector = fit(X, **settings_)
        np.testing.assert_array_equal(selector.ranking_, expected.ranking_)
        np.testing.assert_allclose(selector.scores_, expected.scores_, atol=1e-12)
        np.testing.assert_array_equal(selector.penalty_weights_, expected.penalty_weights_)


@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_numbers_and_shares_count_the_features_that_may_be_kept(planted):
    settings_ = {"never_keep": range(30, 40)}
    assert fit(planted, **settings_).support_.sum() == 15
    assert fit(planted, 1.0, **settings_).support_.sum() == 30
    assert fit(planted, 0.2, **settings_).support_.sum() == 6
    assert fit(planted, 30, **settings_).support_.sum() == 30
    assert fit(planted, must_keep=range(10, 35)).support_.sum() == 25
    assert fit(planted, 25, must_keep=range(10, 35)).support_.tolist() == [
        10 <= j < 35 for j in range(40)
    ]


def test_keeping_everything_is_pca(planted):
    selector = fit(planted, must_keep=np.ones(40, dtype=bool), tol=1e-12)
    _, _, rotation = np.linalg.svd(planted - planted.mean(axis=0))
    expected = np.linalg.norm(rotation[:3], axis=0)
    np.testing.assert_allclose(selector.scores_, expected, atol=1e-4)
    assert selector.support_.all()
    assert selector.n_active_ == 40


# Costs


# Groups


def test_groups_live_and_die_together_and_stand_together(planted):
    groups = {"signal": [0, 1, 2], "half": [3, 30, 31], "noise": [32, 33, 34, 35]}
    selector = fit(planted, groups=groups, gamma=300.0)
    live = selector.scores_ > 2e-6
    assert live[groups["signal"]].all()
    assert not live[groups["noise"]].any()
    for members in groups.values():
        places = np.sort(selector.ranking_[members])
        np.testing.assert_array_equal(places, np.arange(places[0], places[0] + len(members)))
        best = selector.scores_[members][np.argsort(selector.ranking_[members])]
        assert np.all(np.diff(best) <= 0)
    assert selector.n_active_ == live.sum()
    # Between groups and single features the root mean square of the scores decides.
    label = np.arange(40)
    for first, *others in groups.values():
        label[others] = first
    typical = pd.Series(selector.scores_**2).groupby(label).transform("mean").to_numpy() ** 0.5
    assert np.all(np.diff(typical[np.argsort(selector.ranking_)]) <= 1e-15)


def test_all_ways_to_write_groups_agree(planted, frame):
    labels = [None] * 40
    for position, label in ((0, "a"), (1, "a"), (30, "b"), (7, "b"), (8, "b")):
        labels[position] = label
    numbers = np.array([{"a": 1.0, "b": 2.0}.get(label, np.nan) for label in labels])
    expected = fit(frame, groups={"a": ["feature 0", "feature 1"], "b": ["feature 30", 7, 8]})
    for X, groups in (
        (planted, [[0, 1], (30, 7, 8)]),
        (planted, [[0, 1], [30, 7, 8], [5], []]),
        (planted, labels),
        (planted, np.array(labels, dtype=object)),
        (planted, numbers),
        (frame, pd.Series(labels, frame.columns)[::-1]),
        (frame, pd.array([None if label is None else label for label in labels], dtype="string")),
    ):
        selector = fit(X, groups=groups)
        np.testing.assert_array_equal(selector.ranking_, expected.ranking_)
        np.testing.assert_allclose(selector.scores_, expected.scores_, atol=1e-12)


# Descent and agreement of the solvers, through the estimator


# Living in scikit-learn


# Errors


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"must_keep": ["feture 3"]}, r"must_keep must name .*'feture 3'.*mean 'feature 3'\?"),
        (
            {"never_keep": ["zebra"]},
            r"never_keep must name columns of X; 'zebra' is not one of its 40",
        ),
        ({"must_keep": "feature 3"}, r"must be a sequence .*got 'feature 3'\. Write a list"),
        ({"must_keep": [40]}, r"must_keep must hold .* indices from 0 to 39; got 40"),
        ({"never_keep": [True, 3]}, r"never_keep must hold names .*got True"),
        ({"must_keep": [True] * 39}, r"must_keep must have one entry per feature, 40; got 39"),
        ({"must_keep": [1, 2], "never_keep": ["feature 2"]}, r"in both: 'feature 2'\. Take them"),
        (
            {"must_keep": [1], "penalty_weights": {1: 3}},
            r"must_keep means a penalty weight of 0; penalty_weights gives 3 to 'feature 1'",
        ),
        (
            {"never_keep": [1], "penalty_weights": {1: 0}},
            r"never_keep means a penalty weight of inf; penalty_weights gives 0 to 'feature 1'",
        ),
        ({"penalty_weights": [1.0] * 41}, r"penalty_weights must have one entry .* 40; got 41"),
        ({"penalty_weights": 2.0}, r"penalty_weights must be an array .* or a dict .*got 2.0"),
        ({"penalty_weights": {3: -1}}, r"from 0 to 1e\+06, or infinity .*got -1"),
        ({"penalty_weights": {3: 1e7}}, r"penalty_weights must be a number .*got 10000000.0"),
        ({"groups": [[1, 2], [2, 3]]}, r"Groups must not overlap; 2 is in more than"),
        ({"groups": [1, 1, 2]}, r"groups must have one entry per feature, 40; got 3"),
        ({"groups": 3}, r"groups must be an array .*got 3"),
        ({"groups": [[1, 2]], "must_keep": [2]}, r"kept together.*'feature 2'\. Add the others"),
        ({"never_keep": range(40)}, r"At least one column that varies .*all 40 of them"),
        (
            {"never_keep": range(10), "n_features_to_select": 31},
            r"n_features_to_select must be at most 30, .*\(10 of 40 .*got 31",
        ),
        (
            {"must_keep": range(10), "n_features_to_select": 9},
            r"n_features_to_select must be at least 10, .*got 9",
        ),
        ({"n_features_to_select": 41, "never_keep": [1]}, r"number of features, 40; got 41"),
    ],
)
def test_a_bad_setting_gets_the_rule_the_value_and_the_way_out(frame, settings_, message):
    selector = SPCAFS(**settings_)
    with pytest.raises(ParameterError, match=message):
        selector.fit(frame)
    assert not hasattr(selector, "n_features_in_")


def test_names_need_a_table_with_names(planted):
    with pytest.raises(ParameterError, match=r"need an X with column names.*indices from 0 to 39"):
        fit(planted, must_keep=["feature 3"])
    with pytest.raises(ParameterError, match=r"these are in both: 3\."):
        fit(planted, must_keep=[3], never_keep=[3])


@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
@pytest.mark.parametrize("solver", ["dense", "block"])
@pytest.mark.parametrize("p", [1.0, 0.5])
def test_a_group_costs_its_size_to_the_power_of_one_less_half_p_times_its_mean_cost(
    planted, solver, p
):
    rng = np.random.default_rng(0)
    costs, labels = 10.0 ** rng.uniform(-1, 1, 40), rng.integers(0, 25, 40)
    options = {"gamma": 20.0, "p": p, "solver": solver, "penalty_weights": costs, "groups": labels}
    selector = fit(planted, 1.0, **options)
    W, centred = selector.components_.T, planted - planted.mean(axis=0)
    f = -np.sum((centred @ W) ** 2)
    for label in np.unique(labels):
        of = labels == label
        factor = of.sum() ** (1 - p / 2) * costs[of].mean()
        f += 20.0 * factor * (np.sum(W[of] ** 2) + 1e-12) ** (p / 2)
    assert selector.objective_[-1] == pytest.approx(f, rel=1e-9)
