"""What a report shows, as data."""

import json
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from keepers import SPCAFS, AllFeatures, StabilitySelector, VarianceScore, all_selectors, datasets
from keepers import report as make_report
from keepers.exceptions import DataError, ParameterError
from keepers.linalg.scatter import column_moments
from keepers.reports.html import classes_of, draw, map_order, page_data, python_recipe, readable
from keepers.reports.selection import correlation_matrix


def data_of(report):
    return page_data(report.selection, draw(report.selection, report.labels, report.table))


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return rng.standard_normal((50, 14)) * np.linspace(4, 1, 14) + 10


def test_k_can_be_asked_for_afterwards(table):
    selector = VarianceScore(6).fit(table)
    assert make_report(selector, table).selection.k == 6
    assert make_report(selector, table, k=3).selection.k == 3
    assert make_report(selector, table, k=0.5).selection.k == 7


def test_storages_give_the_same_numbers(table):
    table[table < 9] = 0
    selector = VarianceScore(6).fit(table)
    dense, sparse = (make_report(selector, X) for X in (table, sp.csr_matrix(table)))
    assert dense.selection.variance_share == pytest.approx(sparse.selection.variance_share)
    assert data_of(dense) == data_of(sparse)  # rounded, of the same values


def test_names_come_from_the_argument_then_the_fit_then_the_frame(table):
    frame = pd.DataFrame(table, columns=[f"gene {j}" for j in range(14)])
    fitted_on_frame = VarianceScore(6).fit(frame)
    fitted_on_array = VarianceScore(6).fit(table)
    letters = list("abcdefghijklmn")
    named = make_report(fitted_on_frame, frame, feature_names=letters).selection
    assert list(named.feature_names) == letters
    for selector, X in ((fitted_on_frame, table), (fitted_on_array, frame)):
        assert list(make_report(selector, X).selection.feature_names) == list(frame.columns)


@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_method_settings_and_versions_are_shown(table):
    report = make_report(SPCAFS(6, p=0.5, callback=print).fit(table), table)
    html = report.html
    assert "SPCAFS(callback=&lt;built-in function print&gt;, n_features_to_select=6, p=0.5)" in html
    assert "<div><dt>scaling</dt><dd><bdi>0.0</bdi></dd></div>" in html
    for package in ("numpy", "scipy", "scikit-learn", "keepers"):
        assert report.selection.versions[package] == version(package)
        assert f"<dt>{package}</dt>" in html


@pytest.mark.parametrize(
    "selector",
    [
        SPCAFS(9, n_components=4),
        StabilitySelector(VarianceScore(5), n_resamples=4, random_state=0),
    ],
)
def test_the_python_that_repeats_it_does(tmp_path, monkeypatch, selector):
    X, _, _ = datasets.load("digits")
    scope = {}
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = make_report(selector.fit(X), X, source="digits")
        exec(python_recipe(report.selection), scope)
    assert (tmp_path / "report.html").exists()
    np.testing.assert_array_equal(scope["selector"].ranking_, selector.ranking_)


@pytest.mark.parametrize("name", all_selectors())
def test_every_selector_can_be_reported(name, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector = all_selectors()[name](5).fit(table)
    report = make_report(selector, table)
    assert report.selection.k == (14 if name == "AllFeatures" else 5)
    json.dumps(data_of(report), allow_nan=False)
    assert report.html


def test_extremes_of_shape_can_be_reported():
    X = np.random.default_rng(0).standard_normal((3, 1))
    for selector in (VarianceScore(1), AllFeatures()):
        report = make_report(selector.fit(X), X)
        assert report.selection.variance_share == pytest.approx(1.0)
        assert "map" not in data_of(report)
        assert report.html


@pytest.mark.parametrize("scale", [1e-40, 1e-3, 1.0, 1e40])
def test_five_digits_are_kept_of_scores(table, scale):
    table = scale * table
    report = make_report(SPCAFS(6).fit(table), table)
    ranked = np.sort(report.selection.scores)[::-1]
    np.testing.assert_allclose(data_of(report)["scores"], ranked, rtol=5e-5)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"feature_names": ["a"]}, DataError, "feature_names must have one entry per feature, 14"),
        ({"labels": [1, 2]}, DataError, "labels must have one entry per sample, 50"),
        ({"k": 15}, ParameterError, "k must be at most the number of features"),
    ],
)
def test_what_does_not_fit_is_refused(table, settings, error, message):
    with pytest.raises(error, match=message):
        make_report(VarianceScore(6).fit(table), table, **settings)


def test_another_table_is_refused(table):
    selector = VarianceScore(6).fit(table)
    with pytest.raises(DataError, match="14 columns that the selector was fitted on; got 13"):
        make_report(selector, table[:, 1:])
    with pytest.raises(DataError, match="finite"):
        make_report(selector, np.where(table > 10, np.nan, table))
    with pytest.raises(DataError, match="numeric"):
        make_report(selector, np.full((50, 14), "a"))
    with pytest.raises(DataError, match="samples x features"):
        make_report(selector, table[0])


def test_an_unfitted_selector_is_refused(table):
    with pytest.raises(NotFittedError):
        make_report(VarianceScore(6), table)


def correlations_of(X):
    return correlation_matrix(X, column_moments(X), np.arange(X.shape[1]))


def test_similar_features_stand_side_by_side():
    rng = np.random.default_rng(0)
    causes = rng.standard_normal((60, 3))
    group = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2])
    X = causes[:, group] + 0.1 * rng.standard_normal((60, 9))
    assert np.count_nonzero(np.diff(group[map_order(correlations_of(X))])) == 2


def test_one_varying_feature_has_no_redundancy():
    X = np.zeros((40, 12))
    X[:, 0] = np.random.default_rng(1).standard_normal(40)
    assert not len(map_order(correlations_of(X)))


def test_the_map_stops_at_sixty():
    X = np.random.default_rng(0).standard_normal((30, 90))
    assert sorted(map_order(correlations_of(X))) == list(range(60))


def test_settings_are_never_shown_by_address():
    assert readable(np.random.RandomState(0)) == "RandomState(MT19937)"
    assert readable(SPCAFS(callback=data_of)) == "SPCAFS(callback=<function data_of>)"
    assert readable(("a", 1)) == "('a', 1)"


def test_up_to_ten_classes_have_a_colour_each_the_largest_first():
    legend, colours = classes_of(["10", "9", "2", "10", "1"])
    assert legend == [("10", 2), ("1", 1), ("2", 1), ("9", 1)]
    assert colours.tolist() == [0, 3, 2, 0, 1]


def test_beyond_ten_classes_the_small_ones_share_a_colour():
    labels = [f"c{size:02d}" for size in range(1, 15) for _ in range(size)]
    legend, colours = classes_of(labels)
    assert legend[0] == ("c14", 14)
    assert legend[9] == ("5 other classes", 1 + 2 + 3 + 4 + 5)
    assert len(legend) == 10
    assert set(colours[: 1 + 2 + 3 + 4 + 5]) == {9}


def test_the_date_can_be_held_fixed(table, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert 'datetime="1970-01-02"' in make_report(VarianceScore(6).fit(table), table).html
