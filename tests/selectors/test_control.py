"""Features that stay, features that go, costs and groups, as a user meets them."""

import doctest
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from keepers import SPCAFS, datasets
from keepers.exceptions import DataWarning, ParameterError
from keepers.selectors.control import read_control

PAGE = Path(__file__).parents[2] / "docs" / "control.md"


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
@pytest.mark.parametrize("n_components", ["auto", 3, 0.5])
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


@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_top_never_returns_what_was_ruled_out(planted):
    selector = fit(planted, 5, never_keep=[0, 1], must_keep=[39])
    assert selector.top(1).indices.tolist() == [39]
    assert set(selector.top(38).indices) == set(range(2, 40))
    assert set(selector.top(1.0).indices) == set(range(2, 40))
    assert set(selector.top().indices) == set(np.flatnonzero(selector.support_))
    with pytest.raises(ParameterError, match=r"k must be at most 38, .*\(2 of 40 .*got 39"):
        selector.top(39)
    with pytest.raises(ParameterError, match="at most the number of features, 40; got 41"):
        selector.top(41)
    with pytest.raises(ParameterError, match="k must be an integer >= 1"):
        selector.top(0)


def test_constant_columns_come_after_the_others_but_a_kept_one_stays(frame):
    table = frame.assign(**{"feature 4": 1.0, "feature 9": 2.0, "feature 12": 3.0})
    with pytest.warns(DataWarning, match="'feature 4', 'feature 9', 'feature 12'"):
        selector = fit(table, 5, must_keep=["feature 9", "feature 33"], never_keep=["feature 4", 7])
    assert selector.top(2).names.tolist() == ["feature 33", "feature 9"]
    assert selector.ranking_[12] == 38
    assert selector.ranking_[[7, 4]].tolist() == [39, 40]
    assert selector.scores_[9] == selector.scores_[12] == 0


def test_keeping_everything_is_pca(planted):
    selector = fit(planted, must_keep=np.ones(40, dtype=bool), tol=1e-12)
    _, _, rotation = np.linalg.svd(planted - planted.mean(axis=0))
    expected = np.linalg.norm(rotation[:3], axis=0)
    np.testing.assert_allclose(selector.scores_, expected, atol=1e-4)
    assert selector.support_.all()
    assert selector.n_active_ == 40


def test_a_feature_that_costs_nothing_lives_where_it_would_have_died(planted):
    gamma = 300.0
    free = fit(planted, gamma=gamma, must_keep=[35])
    paid = fit(planted, gamma=gamma)
    assert paid.scores_[35] < 1e-5
    assert free.scores_[35] > 1e-3


# Costs


def test_equal_weights_are_a_larger_gamma(planted):
    expected = fit(planted, gamma=60.0)
    for weights in (np.full(40, 3.0), [3] * 40, dict.fromkeys(range(40), 3.0)):
        selector = fit(planted, gamma=20.0, penalty_weights=weights)
        np.testing.assert_allclose(selector.scores_, expected.scores_, atol=1e-5)
    plain = fit(planted, gamma=60.0, penalty_weights=np.ones(40), groups=range(40))
    np.testing.assert_allclose(plain.scores_, expected.scores_, atol=1e-9)


def test_of_two_equal_features_the_cheaper_one_is_kept():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 12))
    X[:, 0] *= 3
    X[:, 11] = X[:, 0]
    for cheap, dear in ((0, 11), (11, 0)):
        selector = fit(X, 5, penalty_weights={dear: 1.3})
        assert selector.ranking_[cheap] < selector.ranking_[dear]


def test_a_feature_that_costs_more_and_more_disappears(planted):
    scores = [fit(planted, penalty_weights={0: cost}).scores_[0] for cost in (0.0, 1, 10, 1e6)]
    assert scores[0] >= scores[1] >= scores[2] >= scores[3]
    assert scores[3] < 1e-6


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


def test_one_group_of_everything_is_pca(planted):
    selector = fit(planted, groups=np.zeros(40), tol=1e-12)
    _, _, rotation = np.linalg.svd(planted - planted.mean(axis=0))
    np.testing.assert_allclose(selector.scores_, np.linalg.norm(rotation[:3], axis=0), atol=1e-4)


def test_the_columns_of_one_category_enter_together():
    rng = np.random.default_rng(2)
    kind = rng.integers(0, 3, 200)
    colour = rng.integers(0, 4, 200)
    encoder = OneHotEncoder(sparse_output=False).fit(np.column_stack([kind, colour]))
    dummies = encoder.transform(np.column_stack([kind, colour]))
    measured = np.eye(3)[kind] @ rng.standard_normal((3, 5)) + 0.3 * rng.standard_normal((200, 5))
    X = np.hstack([measured, 2 * dummies])
    names = [*(f"measured {j}" for j in range(5)), *encoder.get_feature_names_out(["kind", "hue"])]
    groups = {"kind": names[5:8], "hue": names[8:]}
    selector = SPCAFS(n_components=2, groups=groups).fit(pd.DataFrame(X, columns=names))
    for members in groups.values():
        places = np.sort(selector.ranking_[[names.index(name) for name in members]])
        assert places[-1] - places[0] == len(members) - 1
    assert selector.ranking_[5:8].max() < selector.ranking_[8:].min()


def test_members_that_are_never_kept_leave_their_group(planted):
    groups = [[0, 1, 30, 31], [5, 33]]
    kept = np.setdiff1d(np.arange(40), [30, 33])
    without = fit(planted[:, kept], groups=[[0, 1, 30]])
    selector = fit(planted, groups=groups, never_keep=[30, 33])
    np.testing.assert_allclose(selector.scores_[kept], without.scores_, atol=1e-10)


def test_a_whole_group_can_be_kept(planted):
    selector = fit(planted, 3, groups=[[20, 21, 22]], must_keep=[20, 21, 22])
    assert np.flatnonzero(selector.support_).tolist() == [20, 21, 22]


# Descent and agreement of the solvers, through the estimator


@given(seed=st.integers(0, 1000), p=st.sampled_from([1.0, 0.5]), loaded=st.booleans())
@settings(max_examples=20, deadline=None)
@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_f_falls_from_step_to_step_whatever_is_decided(planted, seed, p, loaded):
    rng = np.random.default_rng(seed)
    weights = 10.0 ** rng.uniform(-1, 1, 40)
    labels = rng.integers(0, 25, 40)
    weights[labels == 3], weights[labels == 7] = 0.0, np.inf
    gamma = 20.0
    kept = np.flatnonzero(np.isfinite(weights))
    centred = planted[:, kept] - planted[:, kept].mean(axis=0)
    ends = []
    for solver in ("dense", "block"):
        seen = []
        selector = fit(
            planted,
            1.0,
            gamma=gamma,
            p=p,
            solver=solver,
            penalty_weights=weights,
            groups=labels if loaded else None,
            callback=seen.append,
        )
        assert np.all(np.diff([step.objective for step in seen]) <= 0)
        W = selector.components_[:, kept].T
        f = -np.trace(W.T @ centred.T @ centred @ W)
        for label in np.unique(labels[kept]) if loaded else range(40):
            members = labels[kept] == label if loaded else kept == label
            if members.any():
                factor = members.sum() ** (1 - p / 2) * weights[kept][members].mean()
                f += gamma * factor * (np.sum(W[members] ** 2) + 1e-12) ** (p / 2)
        assert selector.objective_[-1] == pytest.approx(f, rel=1e-9)
        ends.append(selector.objective_[-1])
    if p == 1.0:
        assert ends[1] <= ends[0] + 1e-6 * abs(ends[0])


def test_both_solvers_rank_alike(planted):
    settings_ = {
        "must_keep": [20],
        "never_keep": [1],
        "groups": [[2, 3], [4, 35]],
        "penalty_weights": {0: 2.0, 6: 0.5},
        "tol": 1e-11,
    }
    dense, block = (fit(planted, solver=solver, **settings_) for solver in ("dense", "block"))
    np.testing.assert_allclose(block.scores_, dense.scores_, atol=1e-4)
    np.testing.assert_array_equal(block.top(10).indices, dense.top(10).indices)
    assert block.objective_[-1] == pytest.approx(dense.objective_[-1], rel=1e-6)


@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_wide_data_with_rows_set_aside_keep_what_must_be_kept():
    X = datasets.load("srbct").X
    labels = np.arange(2308) // 4
    rows = []
    selector = fit(
        X,
        40,
        gamma="scale",
        must_keep=range(8),
        never_keep=range(100, 200),
        groups=labels,
        penalty_weights=np.where(np.arange(2308) < 1200, 1.0, 4.0),
        callback=lambda step: rows.append(step.n_rows),
    )
    assert selector.converged_
    assert min(rows) < 2208 // 2
    assert set(selector.top(8).indices) == set(range(8))
    assert not selector.scores_[100:200].any()
    together = pd.Series(selector.scores_**2).groupby(labels).transform("sum")
    assert selector.n_active_ == (together > 4e-12).sum()


# Living in scikit-learn


def test_settings_survive_cloning_parameters_and_pipelines(frame):
    settings_ = {
        "must_keep": ["feature 3"],
        "never_keep": np.arange(40) == 7,
        "penalty_weights": {"feature 1": 2.0},
        "groups": {"pair": ["feature 10", "feature 11"]},
    }
    selector = SPCAFS(6, n_components=3, **settings_)
    before = repr(selector)
    copied = clone(selector)
    for name, value in settings_.items():
        assert selector.get_params()[name] is value
    np.testing.assert_array_equal(copied.fit(frame).support_, selector.fit(frame).support_)
    assert repr(selector) == before
    pipeline = make_pipeline(SPCAFS(6, n_components=3)).set_output(transform="pandas")
    kept = pipeline.set_params(spcafs__must_keep=["feature 3"]).fit_transform(frame)
    assert "feature 3" in kept.columns
    search = GridSearchCV(
        SPCAFS(6, n_components=2),
        {"must_keep": [None, ["feature 30"]]},
        scoring=lambda selector, X, y=None: float(selector.support_[30]),
        cv=2,
    )
    assert search.fit(frame).best_params_ == {"must_keep": ["feature 30"]}


def test_float32_works(planted):
    single = fit(planted.astype(np.float32), 5, must_keep=[20], groups=[[1, 2]], never_keep=[0])
    double = fit(planted, 5, must_keep=[20], groups=[[1, 2]], never_keep=[0])
    assert single.scores_.dtype == np.float32
    np.testing.assert_array_equal(single.support_, double.support_)


# Errors


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"must_keep": ["feture 3"]}, r"must_keep must name .*'feture 3'.*mean 'feature 3'\?"),
        (
            {"never_keep": ["zebra"]},
            r"never_keep must name columns of X; 'zebra' is none of its 40",
        ),
        ({"groups": {"a": ["Feature 3", 1]}}, r"groups must name .* Did you mean 'feature 3'\?"),
        ({"penalty_weights": {"feature3": 1}}, r"penalty_weights must name .*mean 'feature 3'\?"),
        ({"must_keep": "feature 3"}, r"must be a sequence .* Write \['feature 3'\] for one"),
        ({"must_keep": 3}, r"must_keep must be a sequence of names or indices; got 3"),
        ({"must_keep": [40]}, r"Indices in must_keep must lie between 0 and 39.*got 40"),
        ({"never_keep": [-1]}, r"Indices in never_keep must be >= 0; got -1"),
        ({"never_keep": [1.5]}, r"never_keep must hold names or indices .*got 1.5"),
        ({"never_keep": [True, 3]}, r"never_keep must hold names or indices .*got True"),
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
        ({"penalty_weights": "cost"}, r"penalty_weights must be an array .*got 'cost'"),
        ({"penalty_weights": {3: -1}}, r"from 0 to 1e\+06, or infinity .*got -1"),
        ({"penalty_weights": {3: np.nan}}, r"A penalty weight must be a number .*got nan"),
        ({"penalty_weights": {3: 1e7}}, r"A penalty weight must be a number .*got 10000000.0"),
        ({"penalty_weights": {3: "much"}}, r"A penalty weight must be a number .*got 'much'"),
        ({"penalty_weights": {3: True}}, r"A penalty weight must be a number .*got True"),
        ({"groups": [[1, 2], [2, 3]]}, r"Groups must not overlap; 2 is in more than"),
        ({"groups": [1, 1, 2]}, r"groups must have one entry per feature, 40; got 3"),
        ({"groups": 3}, r"groups must be an array .*got 3"),
        ({"groups": "gene"}, r"groups must be an array .*got 'gene'"),
        ({"groups": {"a": "feature 1"}}, r"groups must be a sequence .* Write \['feature 1'\]"),
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
        ({"must_keep": range(10), "n_features_to_select": 0.1}, r"at least 10, .*got 0.1"),
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


def test_a_name_that_stands_twice_is_refused():
    with pytest.raises(ParameterError, match=r"2 columns of X are called 'a'\. Give the index"):
        read_control(3, ["a", "b", "a"], must_keep=["a"])
    assert read_control(3, ["a", "b", "a"], must_keep=["b", 2]).must.tolist() == [0, 1, 1]


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not part of this copy")
def test_the_examples_of_the_page_give_what_it_says():
    failures, examples = doctest.testfile(str(PAGE), module_relative=False)
    assert examples > 5
    assert failures == 0
