"""The numbers of the report, as data."""

import json
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from keepers import (
    SPCAFS,
    AllFeatures,
    VarianceScore,
    all_selectors,
    datasets,
)
from keepers.exceptions import DataError, ParameterError
from keepers.linalg.moments import column_moments
from keepers.reports import summary as selection_summary
from keepers.reports.html import draw, page_data
from keepers.reports.selection import correlation_matrix, describe_selection
from keepers.reports.summary import classes_of, closest_so_far, map_order, plane_of


def summarise(selector, X, *, feature_names=None, k=None, source=None, seconds=None, **shown):
    described = {"feature_names": feature_names, "k": k, "source": source, "seconds": seconds}
    return selection_summary.summarise(describe_selection(selector, X, **described), **shown)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return rng.standard_normal((50, 14)) * np.linspace(4, 1, 14) + 10


def test_the_share_of_variance_is_that_of_the_kept_columns(table):
    selector = SPCAFS(6).fit(table)
    expected = table[:, selector.support_].var(axis=0).sum() / table.var(axis=0).sum()
    assert summarise(selector, table).selection.variance_share == pytest.approx(expected)


def test_k_can_be_asked_for_afterwards(table):
    selector = VarianceScore(6).fit(table)
    assert summarise(selector, table).selection.k == 6
    assert summarise(selector, table, k=3).selection.k == 3
    assert summarise(selector, table, k=0.5).selection.k == 7


def test_storages_give_the_same_numbers(table):
    table[table < 9] = 0
    selector = VarianceScore(6).fit(table)
    dense = summarise(selector, table)
    sparse = summarise(selector, sp.csr_matrix(table))
    assert dense.selection.variance_share == pytest.approx(sparse.selection.variance_share)
    for one, other in zip(dense.closest, sparse.closest, strict=True):
        np.testing.assert_allclose(one, other)
    assert dense.histograms == sparse.histograms  # of the same values
    np.testing.assert_allclose(dense.planes.after.points, sparse.planes.after.points, atol=1e-8)


def test_names_come_from_the_argument_then_the_fit_then_the_frame(table):
    frame = pd.DataFrame(table, columns=[f"gene {j}" for j in range(14)])
    fitted_on_frame = VarianceScore(6).fit(frame)
    fitted_on_array = VarianceScore(6).fit(table)
    letters = list("abcdefghijklmn")
    named = summarise(fitted_on_frame, frame, feature_names=letters).selection
    assert list(named.feature_names) == letters
    for selector, X in ((fitted_on_frame, table), (fitted_on_array, frame)):
        assert list(summarise(selector, X).selection.feature_names) == list(frame.columns)


@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_method_and_versions_are_told(table):
    summary = summarise(SPCAFS(6, p=0.5, callback=print).fit(table), table, seconds=2.0)
    assert summary.selection.method == "SPCAFS"
    assert dict(summary.settings)["p"] == "0.5"
    assert dict(summary.settings)["callback"] == "<print>"
    assert dict(summary.defaults)["scaling"] == "0.0"
    assert not dict(summary.defaults).keys() & dict(summary.settings).keys()
    assert dict(summary.settings)["converged_"] == "True"
    for package in ("numpy", "scipy", "scikit-learn", "keepers"):
        assert summary.selection.versions[package] == version(package)


def test_the_python_that_repeats_it_does(tmp_path, monkeypatch):
    X, _, _ = datasets.load("digits")
    with pytest.warns(match="do not vary"):
        selector = SPCAFS(9, n_components=4).fit(X)
    recipe = summarise(selector, X, source="digits").python
    scope = {}
    monkeypatch.chdir(tmp_path)
    with pytest.warns(match="do not vary"):
        exec(recipe, scope)
    assert (tmp_path / "report.html").exists()
    np.testing.assert_array_equal(scope["selector"].ranking_, selector.ranking_)


@pytest.mark.parametrize("name", all_selectors())
def test_every_selector_can_be_reported(name, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector = all_selectors()[name](5).fit(table)
    summary = summarise(selector, table)
    assert summary.selection.k == (14 if name == "AllFeatures" else 5)
    json.dumps(page_data(summary, draw(summary)), allow_nan=False)


def test_extremes_of_shape_can_be_reported():
    X = np.random.default_rng(0).standard_normal((3, 1))
    for selector in (VarianceScore(1), AllFeatures()):
        summary = summarise(selector.fit(X), X)
        assert summary.selection.variance_share == pytest.approx(1.0)
        assert draw(summary)["map"] is None


@pytest.mark.parametrize("scale", [1e-40, 1e-3, 1.0, 1e40])
def test_five_digits_are_kept_of_scores(table, scale):
    table = scale * table
    summary = summarise(SPCAFS(6).fit(table), table)
    data = page_data(summary, draw(summary))
    stored = np.array(data["scores"]["values"]) * 10.0 ** data["scores"]["exponent"]
    ranked = np.sort(summary.selection.scores)[::-1]
    np.testing.assert_allclose(stored, ranked, rtol=5e-5)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"feature_names": ["a"]}, DataError, "feature_names must have one entry per feature, 14"),
        ({"labels": [1, 2]}, DataError, "labels must have one entry per sample, 50"),
        ({"sample_names": ["a"]}, DataError, "sample_names must have one entry per sample, 50"),
        ({"k": 15}, ParameterError, "k must be at most the number of features"),
    ],
)
def test_what_does_not_fit_is_refused(table, settings, error, message):
    with pytest.raises(error, match=message):
        summarise(VarianceScore(6).fit(table), table, **settings)


def test_another_table_is_refused(table):
    selector = VarianceScore(6).fit(table)
    with pytest.raises(DataError, match="14 columns that the selector was fitted on; got 13"):
        summarise(selector, table[:, 1:])
    with pytest.raises(DataError, match="finite"):
        summarise(selector, np.where(table > 10, np.nan, table))
    with pytest.raises(DataError, match="numeric"):
        summarise(selector, np.full((50, 14), "a"))
    with pytest.raises(DataError, match="samples x features"):
        summarise(selector, table[0])


def test_an_unfitted_selector_is_refused(table):
    with pytest.raises(NotFittedError):
        summarise(VarianceScore(6), table)


def correlations_of(X):
    return correlation_matrix(X, column_moments(X), np.arange(X.shape[1]))


@pytest.fixture
def redundant():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 12))
    X[:, 3] = X[:, 0] + 0.3 * rng.standard_normal(40)
    X[:, 7] = -2 * X[:, 5] + 0.1 * rng.standard_normal(40)
    return X


def test_similar_features_stand_side_by_side():
    rng = np.random.default_rng(0)
    causes = rng.standard_normal((60, 3))
    group = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2])
    X = causes[:, group] + 0.1 * rng.standard_normal((60, 9))
    assert np.count_nonzero(np.diff(group[map_order(correlations_of(X))])) == 2


def test_one_varying_feature_has_no_redundancy(redundant):
    redundant[:, 1:] = 0
    assert not len(map_order(correlations_of(redundant)))


def test_the_map_stops_at_sixty():
    X = np.random.default_rng(0).standard_normal((30, 90))
    assert sorted(map_order(correlations_of(X))) == list(range(60))


def test_settings_are_never_shown_by_address():
    assert selection_summary.readable(np.random.RandomState(0)) == "<RandomState>"
    assert selection_summary.readable(np.float64(0.5)) == "0.5"
    assert selection_summary.readable(("a", 1)) == "('a', 1)"


@pytest.mark.parametrize("shape", [(60, 8), (20, 90)])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_the_plane_is_that_of_scikit_learn(shape, storage):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape) * np.linspace(3, 0.5, shape[1]) * (rng.random(shape) < 0.7)
    found = plane_of(storage(X))
    model = PCA(2, svd_solver="full").fit(X)
    np.testing.assert_allclose(np.abs(found.points), np.abs(model.transform(X)), atol=1e-8)
    np.testing.assert_allclose(found.shares, model.explained_variance_ratio_, atol=1e-10)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_the_plane_of_a_large_table_is_right_to_drawing_accuracy(storage):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 600))
    X[:, :9] += rng.standard_normal((700, 1)) * 8
    X[:, 20:25] += rng.standard_normal((700, 1)) * 6
    found = plane_of(storage(X))
    expected = PCA(2, svd_solver="full").fit_transform(X)
    error = np.abs(np.abs(found.points) - np.abs(expected)).max()
    assert error < 1e-3 * np.abs(expected).max()


def test_a_large_table_without_structure_has_a_plane_all_the_same():
    X = np.random.default_rng(0).standard_normal((600, 700))
    found = plane_of(X)
    expected = PCA(2, svd_solver="full").fit(X).explained_variance_ratio_
    np.testing.assert_allclose(found.shares, expected, rtol=0.02)


def planes_of(X, selector):
    return summarise(selector.fit(X), X).planes


def test_a_single_kept_feature_is_drawn_on_a_line():
    X = np.random.default_rng(0).standard_normal((30, 5)) * [1, 1, 1, 4, 1]
    planes = planes_of(X, VarianceScore(1))
    np.testing.assert_allclose(np.abs(planes.after.points[:, 0]), np.abs(X[:, 3] - X[:, 3].mean()))
    assert not planes.after.points[:, 1].any()
    assert planes.after.shares == pytest.approx((1.0, 0.0))


def test_keeping_everything_leaves_the_plane_as_it_was():
    X = np.random.default_rng(0).standard_normal((30, 5)) * [1, 2, 3, 4, 5]
    planes = planes_of(X, AllFeatures())
    np.testing.assert_allclose(planes.after.points, planes.before.points, atol=1e-8)


def test_at_most_two_thousand_samples_are_shown_and_always_the_same():
    X = np.random.default_rng(0).standard_normal((5000, 4))
    first, second = planes_of(X, VarianceScore(2)), planes_of(X, VarianceScore(2))
    assert len(set(first.samples.tolist())) == len(first.after.points) == 2000
    np.testing.assert_array_equal(first.samples, second.samples)  # the same computation
    shown = PCA(2).fit_transform(X[first.samples])
    np.testing.assert_allclose(np.abs(first.before.points), np.abs(shown), atol=1e-8)


def test_there_is_no_plane_of_constants():
    X = np.column_stack([np.ones(10), np.arange(10.0)])
    assert plane_of(X[:, :1]) is None
    assert plane_of(X) is not None


def test_up_to_ten_classes_have_a_colour_each_in_reading_order():
    classes = classes_of(["10", "9", "2", "10", "1"])
    assert classes.legend == ("1", "2", "9", "10")
    assert classes.sizes == (1, 1, 1, 2)
    assert classes.colour_of.tolist() == [3, 2, 1, 3, 0]


def test_past_ten_classes_the_small_ones_share_a_colour():
    labels = [f"c{size:02d}" for size in range(1, 15) for _ in range(size)]
    classes = classes_of(labels)
    assert classes.legend == (*(f"c{size:02d}" for size in range(6, 15)), "5 other classes")
    assert classes.sizes[-1] == 1 + 2 + 3 + 4 + 5
    assert set(classes.colour_of[: classes.sizes[-1]]) == {9}


@pytest.mark.parametrize("k", [1, 2, 5, 12])
def test_the_nearest_of_any_number_is_that_of_a_selection_of_so_many(redundant, k):
    r = np.corrcoef(redundant, rowvar=False)
    np.fill_diagonal(r, 0.0)
    for row, closer in enumerate(closest_so_far(correlations_of(redundant))):
        others = [at for at in range(k) if at != row]
        within = [pair for pair in closer if pair[0] < k]
        assert bool(within) == bool(others)
        if others:
            nearest = max(others, key=lambda at: abs(r[row, at]))
            assert within[-1] == (nearest, pytest.approx(r[row, nearest]))


def test_columns_that_do_not_vary_are_near_nothing(redundant):
    redundant[:, 2] = 1.0
    closest = closest_so_far(correlations_of(redundant))
    assert closest[2] == ()
    assert all(at != 2 for closer in closest for at, _ in closer)


@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_planes_and_shares_are_of_the_values_that_the_method_weighs(table):
    table = table * np.logspace(0, 4, 14)
    summary = summarise(SPCAFS(6, scaling=1.0).fit(table), table)
    standardised = (table - table.mean(axis=0)) / table.std(axis=0)
    model = PCA(2).fit(standardised)
    np.testing.assert_allclose(summary.planes.before.shares, model.explained_variance_ratio_)
    half = summarise(SPCAFS(6, scaling=0.5).fit(table), table)
    weighed = table.std(axis=0)  # the variance of a column divided by the root of its deviation
    share = weighed[half.selection.columns].sum() / weighed.sum()
    assert half.selection.variance_share == pytest.approx(share)


def test_the_date_can_be_held_fixed(table, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert summarise(VarianceScore(6).fit(table), table).made_on.isoformat() == "1970-01-02"
