"""Features that stay and features that go, as a user meets them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from keepers import SPCAFS
from keepers.exceptions import ParameterError


def fit(X, *args, **options):
    return SPCAFS(*args, n_components=3, **options).fit(X)


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


def test_names_indices_and_masks_say_the_same(planted, frame):
    mask = np.zeros(40, dtype=bool)
    mask[[5, 30]] = True
    expected = fit(frame, must_keep=["feature 5", "feature 30"], never_keep=["feature 2"])
    for X, settings_ in (
        (planted, {"must_keep": [30, 5], "never_keep": (2,)}),
        (planted, {"must_keep": mask, "never_keep": np.array([2])}),
        (planted, {"must_keep": mask.tolist(), "never_keep": [2]}),
        (frame, {"must_keep": pd.Series(mask, frame.columns)[::-1], "never_keep": {"feature 2"}}),
        (frame, {"must_keep": frame.columns[mask], "never_keep": [2]}),
        (pl.DataFrame(frame.to_dict("list")), {"must_keep": ["feature 5", 30], "never_keep": [2]}),
    ):
        selector = fit(X, **settings_)
        np.testing.assert_array_equal(selector.ranking_, expected.ranking_)
        np.testing.assert_allclose(selector.scores_, expected.scores_, atol=1e-12)


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


@pytest.mark.parametrize("solver", ["dense", "block"])
def test_keeping_everything_is_pca(planted, solver):
    selector = fit(planted, must_keep=np.ones(40, dtype=bool), tol=1e-12, solver=solver)
    _, _, rotation = np.linalg.svd(planted - planted.mean(axis=0))
    expected = np.linalg.norm(rotation[:3], axis=0)
    np.testing.assert_allclose(selector.scores_, expected, atol=1e-4)
    assert selector.support_.all()
    assert selector.n_active_ == 40


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
        ({"must_keep": [1, 2], "never_keep": ["feature 2"]}, r"in both: 'feature 2'\. Remove them"),
        ({"never_keep": range(40)}, r"At least one column that varies .*all 40\."),
        (
            {"never_keep": range(10), "n_features_to_select": 31},
            r"n_features_to_select must be at most 30, .*10 of 40\).*got 31",
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
