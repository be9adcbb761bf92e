"""Results as data frames and as HTML in notebooks."""

import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from keepers import (
    SPCAFS,
    StabilitySelector,
    VarianceScore,
    describe_selection,
    select_method,
    select_settings,
    spcafs_path,
)
from keepers import _tables as tables
from keepers.exceptions import MissingDependencyError


class Cells(HTMLParser):
    """What a browser would show, and every tag."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert not attrs

    def handle_data(self, data):
        self.texts.append(data)


def frame():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    X[:, :3] += 4.0 * rng.standard_normal((2, 3))[rng.integers(0, 2, 40)]
    names = ["<script>alert(1)</script>", "a&b", "'c'", '"d"', "</td><td>e", "f"]
    return pd.DataFrame(X, columns=names)


RESULTS = {
    "top": lambda X: VarianceScore(6).fit(X).top(),
    "selection": lambda X: describe_selection(VarianceScore(6).fit(X), X),
    "settings": lambda X: select_settings(X, 3, random_state=0),
    "method": lambda X: select_method(X, 3, random_state=0),
    "path": lambda X: spcafs_path(X, n_components=2, n_gammas=3),
    "stability": lambda X: (
        StabilitySelector(VarianceScore(2), 10, random_state=0).fit(X).stability_
    ),
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.filterwarnings("ignore::keepers.exceptions.KeepersWarning")
def test_a_result_is_a_table_in_both_forms(name):
    result = RESULTS[name](frame())
    rows, found = result.rows(), result.to_frame()
    assert len(found) == len(rows) > 0
    assert set(found.columns) == set(rows[0])
    shown = Cells(result._repr_html_())
    assert set(shown.tags) <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    assert shown.tags.count("tr") == 1 + min(len(rows), tables.MOST_SHOWN)
    assert shown.tags.count("td") == len(rows[0]) * min(len(rows), tables.MOST_SHOWN)


@pytest.mark.parametrize("name", ["top", "selection"])
def test_names_of_features_cannot_run(name):
    html = RESULTS[name](frame())._repr_html_()
    assert "<script" not in html
    assert set(frame().columns) <= set(Cells(html).texts)


def test_the_best_features_have_ranks_names_and_scores():
    X = frame()
    top = VarianceScore().fit(X).top(2)
    expected = X.var(ddof=0).sort_values(ascending=False)[:2]
    table = top.to_frame()
    assert table["rank"].tolist() == [1, 2]
    assert table["feature"].tolist() == expected.index.tolist()
    np.testing.assert_allclose(table["score"], expected)


def test_frequencies_are_a_table():
    X = frame()
    selector = StabilitySelector(VarianceScore(2), 10, random_state=0).fit(X)
    table = selector.to_frame().set_index("feature")
    assert table.index.tolist() == selector.top(6).names.tolist()
    np.testing.assert_array_equal(table.loc[X.columns, "frequency"], selector.frequencies_)
    np.testing.assert_array_equal(table.loc[X.columns, "stable"], selector.stable_)


def test_long_tables_are_cut_in_notebooks_only():
    rows = [{"n": n} for n in range(100)]
    html = tables.as_html(rows)
    assert "and 70 more rows" in html
    assert Cells(html).tags.count("td") == 30
    assert len(tables.as_frame(rows)) == 100


def test_cells_are_written_for_people():
    rows = [{"a": 0.123456, "b": None, "c": {"gamma": 1e-9}, "d": True}, {"a": np.float64(2)}]
    assert Cells(tables.as_html(rows, "Title")).texts == [
        "Title", "a", "b", "c", "d", "0.1235", "gamma=1e-09", "True", "2",
    ]  # fmt: skip
    assert "<tr></tr>" in tables.as_html([])


def test_a_missing_pandas_is_said_with_the_way_out(monkeypatch):
    top = SPCAFS(2, n_components=1).fit(frame().to_numpy()).top()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"keepers\[frames\]"):
        top.to_frame()
    assert top._repr_html_().startswith("<table>")


def test_a_result_without_rows_of_its_own_says_so():
    with pytest.raises(NotImplementedError):
        tables.AsTable().rows()
