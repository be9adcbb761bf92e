"""Histograms and the heat map, as numbers."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers import TablePreparer
from keepers.reports.summary import FARTHEST, N_BARS, written_values
from keepers.reports.summary import heat_map as draw_heat_map
from keepers.reports.summary import histograms as histograms_of
from keepers.tables.objects import table_of_object


def selected(X, columns):
    """What a selection of these columns has for pictures."""
    width = len(columns) if X is None else X.shape[1]
    names = np.array([f"x{j}" for j in range(width)], dtype=object)
    order, k = np.asarray(columns), len(columns)
    return SimpleNamespace(X=X, feature_names=names, order=order, k=k)


def histograms(X, columns, written=None):
    return histograms_of(selected(X, columns), columns, written or {})


def heat_map(X, columns, *along):
    return draw_heat_map(selected(X, columns), *along)


def test_a_histogram_is_that_of_numpy():
    X = np.random.default_rng(0).standard_normal((300, 4)) * [1.0, 1e-30, 1e30, 5.0]
    for values, found in zip(X.T, histograms(X, np.arange(4)), strict=True):
        counts, _ = np.histogram(values, N_BARS)
        assert [int(height) for height in found.heights] == np.ceil(
            9 * counts / counts.max()
        ).tolist()
        assert float(found.low.replace(",", "")) == pytest.approx(values.min(), rel=0.005)
        assert float(found.high.replace(",", "")) == pytest.approx(values.max(), rel=0.005)


def test_a_bar_that_holds_anything_can_be_seen():
    X = np.append(np.zeros(10_000), 1.0)[:4900].reshape(-1, 1)
    X[-1] = 1.0
    assert histograms(X, np.array([0]))[0].heights == "9" + "0" * (N_BARS - 2) + "1"


def test_constants_and_extremes_have_a_histogram():
    X = np.array([[3.0, -1e308], [3.0, 1e308]])
    constant, extreme = histograms(X, np.array([0, 1]))
    assert constant.heights == "9"
    assert extreme.heights == "9" + "0" * (N_BARS - 2) + "9"


def test_sparse_tables_give_the_same():
    X = np.random.default_rng(0).random((40, 6)) * (np.random.default_rng(1).random((40, 6)) < 0.3)
    columns = np.array([4, 1])
    assert histograms(sp.csr_matrix(X), columns) == histograms(X, columns)  # the same computation
    dense, sparse = (heat_map(each, columns, None, None) for each in (X, sp.csr_matrix(X)))
    np.testing.assert_allclose(dense.z, sparse.z)


def test_without_a_table_there_is_nothing_to_show():
    assert histograms(None, np.array([0])) == ()
    assert heat_map(None, np.array([0]), None, None) is None


def test_the_heat_map_holds_standard_deviations_of_samples_grouped_by_class():
    X = np.random.default_rng(0).standard_normal((30, 5))
    X[3, 1] = 100.0
    classes = np.arange(30) % 3
    found = heat_map(X, np.array([2, 1]), classes, None)
    assert found.classes == ((0, 10), (1, 10), (2, 10))
    np.testing.assert_array_equal(classes[found.samples], np.repeat([0, 1, 2], 10))
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(
        found.z, np.clip(z[found.samples][:, [2, 1]].T, -FARTHEST, FARTHEST), atol=1e-12
    )


def test_without_classes_samples_stand_along_a_component():
    X = np.random.default_rng(0).standard_normal((30, 5))
    found = heat_map(X, np.array([0]), None, X[:, 3])
    assert np.all(np.diff(X[found.samples, 3]) >= 0)
    assert found.classes == ()


@pytest.mark.parametrize("n_samples", [400, 401, 5000])
def test_at_most_four_hundred_samples_and_sixty_features_are_shown(n_samples):
    X = np.random.default_rng(0).standard_normal((n_samples, 70))
    found = heat_map(X, np.arange(70), None, None)
    assert found.z.shape == (60, 400)
    assert found.n_samples == n_samples
    assert len(set(found.samples.tolist())) == 400


def test_values_are_shown_as_people_wrote_them():
    words = ["low", "high", "medium", "low"] * 10
    dates = pd.date_range("2020-01-01", periods=40)
    frame = pd.DataFrame({"level": words, "day": dates, "size": np.arange(40.0) % 7})
    frame.loc[3, "level"] = None
    table = table_of_object(frame)
    preparer = TablePreparer(kinds={"day": "number"}, missing="mean").fit(table)
    X = preparer.encode(table)
    written = written_values(preparer, table, 40)
    assert set(written) == {"level", "day"}
    names = np.array(preparer.get_feature_names_out())
    selection = SimpleNamespace(X=X, feature_names=names, order=np.arange(3), k=3)
    level, day, size = histograms_of(selection, np.arange(3), written)
    numbers = pd.Series(X[:, 0]).groupby(frame["level"]).mean().sort_values()
    assert [level.low, level.high] == [numbers.index[0], numbers.index[-1]]
    counts = frame["level"].value_counts()[numbers.index]
    assert [int(bar) for bar in level.heights] == np.ceil(9 * counts / counts.max()).tolist()
    assert (day.low, day.high) == ("2020-01-01", "2020-02-09")
    assert (size.low, size.high) == ("0", "6")
    assert written_values(preparer, table, 39) == {}  # rows were left out


def test_gaps_are_not_drawn():
    X = np.random.default_rng(0).standard_normal((30, 2))
    X[::3, 0] = np.nan
    found = heat_map(X, np.array([0, 1]), None, None)
    assert np.isnan(found.z[0]).sum() == 10
    np.testing.assert_allclose(np.nanmean(found.z[0]), 0.0, atol=0.2)
    observed = X[~np.isnan(X[:, 0]), 0]
    counts, _ = np.histogram(observed, N_BARS)
    bars = histograms(X, np.array([0, 1]))[0].heights
    assert [int(bar) for bar in bars] == np.ceil(9 * counts / counts.max()).tolist()
