"""Histograms and the heat map, as numbers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers import AutoSelector, TablePreparer, VarianceScore, describe_selection, report
from keepers.reports.html import FARTHEST, N_BARS, draw, heat_map
from keepers.reports.html import histograms as histograms_of
from keepers.tables.objects import table_of_object


def histograms(X, columns):
    return histograms_of(X, columns, {})


def test_a_histogram_is_that_of_numpy():
    X = np.random.default_rng(0).standard_normal((300, 4)) * [1.0, 1e-30, 1e30, 5.0]
    for values, found in zip(X.T, histograms(X, np.arange(4)), strict=True):
        bars, low, high = found
        counts, _ = np.histogram(values, N_BARS)
        assert [int(bar) for bar in bars] == np.ceil(9 * counts / counts.max()).tolist()
        assert float(low.replace(",", "")) == pytest.approx(values.min(), rel=0.005)
        assert float(high.replace(",", "")) == pytest.approx(values.max(), rel=0.005)


def test_a_bar_that_holds_anything_can_be_seen():
    X = np.append(np.zeros(10_000), 1.0)[:4900].reshape(-1, 1)
    X[-1] = 1.0
    assert histograms(X, np.array([0]))[0][0] == "9" + "0" * (N_BARS - 2) + "1"


def test_constants_and_extremes_have_a_histogram():
    X = np.array([[3.0, -1e308], [3.0, 1e308]])
    constant, extreme = histograms(X, np.array([0, 1]))
    assert constant[0] == "9"
    assert extreme[0] == "9" + "0" * (N_BARS - 2) + "9"


def test_ends_that_are_close_have_the_digits_that_part_them():
    X = np.array([[2387.9, 1234.0, 5e8], [2388.3, 56789.0, 6e8]])
    found = [ends for _, *ends in histograms(X, np.arange(3))]
    assert found == [["2,387.9", "2,388.3"], ["1,234", "56,789"], ["5e+08", "6e+08"]]


def test_sparse_tables_give_the_same():
    X = np.random.default_rng(0).random((40, 6)) * (np.random.default_rng(1).random((40, 6)) < 0.3)
    columns = np.array([4, 1])
    assert histograms(sp.csr_matrix(X), columns) == histograms(X, columns)  # the same computation
    dense, sparse = (heat_map(each, columns, None)[0] for each in (X, sp.csr_matrix(X)))
    np.testing.assert_allclose(dense, sparse)


def test_without_a_table_there_is_nothing_to_show():
    X = np.random.default_rng(0).standard_normal((40, 6))
    selection = describe_selection(VarianceScore(2).fit(X), X)
    drawn = draw(replace(selection, X=None), None, None)
    assert (drawn["histograms"], drawn["heat"], drawn["map"]) == ([], None, None)


def test_the_heat_map_holds_standard_deviations_of_samples_grouped_by_class():
    X = np.random.default_rng(0).standard_normal((30, 5))
    X[3, 1] = 100.0
    classes = np.arange(30) % 3
    found, samples = heat_map(X, np.array([2, 1]), classes)
    np.testing.assert_array_equal(classes[samples], np.repeat([0, 1, 2], 10))
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(found, np.clip(z[samples][:, [2, 1]].T, -FARTHEST, FARTHEST))


def test_without_classes_samples_are_in_the_order_of_their_first_component():
    X = np.random.default_rng(0).standard_normal((30, 5))
    _, samples = heat_map(X, np.array([3]), None)
    steps = np.diff(X[samples, 3])
    assert np.all(steps >= 0) or np.all(steps <= 0)


@pytest.mark.parametrize("n_samples", [400, 401, 5000])
def test_at_most_four_hundred_samples_are_shown(n_samples):
    X = np.random.default_rng(0).standard_normal((n_samples, 5))
    z, samples = heat_map(X, np.arange(5), None)
    assert z.shape == (5, 400)
    assert len(set(samples.tolist())) == 400


def test_values_are_shown_as_people_wrote_them():
    words = ["low", "high", "medium", "low"] * 10
    dates = pd.date_range("2020-01-01", periods=40)
    frame = pd.DataFrame({"level": words, "day": dates, "size": np.arange(40.0) % 7})
    frame.loc[3, "level"] = None
    table = table_of_object(frame)
    preparer = TablePreparer(kinds={"day": "number"}, missing="keep").fit(table)
    X = preparer.prepare(table).values
    columns = {column: table.frame[name] for column, name in enumerate(("level", "day"))}
    level, day, size = histograms_of(X, np.arange(3), columns)
    numbers = pd.Series(X[:, 0]).groupby(frame["level"]).mean().sort_values()
    assert level[1:] == (numbers.index[0], numbers.index[-1])
    counts = frame["level"].value_counts()[numbers.index]
    assert [int(bar) for bar in level[0]] == np.ceil(9 * counts / counts.max()).tolist()
    assert day[1:] == ("2020-01-01", "2020-02-09")
    assert size[1:] == ("0", "6")


def test_a_report_on_a_frame_shows_its_words_and_both_sides_of_a_tick_box():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 80)
    frame = pd.DataFrame(rng.standard_normal((80, 3)) + 3 * group[:, None], columns=list("abc"))
    frame["size"] = np.where(group, "large", "small")
    frame["sugar"] = np.where(rng.random(80) < 0.3 + 0.4 * group, "yes", None)
    page = report(AutoSelector().fit(frame), frame)
    drawn = draw(page.selection, None, page.table)["histograms"]
    ranked = [feature.name for feature in page.selection.features]
    assert {*drawn[ranked.index("size")][1:]} == {"large", "small"}
    assert drawn[ranked.index("sugar")][1:] == ("0", "1")


def test_gaps_are_not_drawn():
    X = np.random.default_rng(0).standard_normal((30, 2))
    X[::3, 0] = np.nan
    z, _ = heat_map(X, np.array([0, 1]), None)
    assert np.isnan(z[0]).sum() == 10
    np.testing.assert_allclose(np.nanmean(z[0]), 0.0, atol=0.2)
    observed = X[~np.isnan(X[:, 0]), 0]
    counts, _ = np.histogram(observed, N_BARS)
    bars = histograms(X, np.array([0, 1]))[0][0]
    assert [int(bar) for bar in bars] == np.ceil(9 * counts / counts.max()).tolist()
