"""Results as data frames and as HTML in notebooks."""

import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from keepers import (
    SPCAFS,
    VarianceScore,
    describe_selection,
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
    "path": lambda X: spcafs_path(X, n_components=2, n_gammas=3),
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


def test_a_missing_pandas_is_said_with_the_way_out(monkeypatch):
    top = SPCAFS(2, n_components=1).fit(frame().to_numpy()).top()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"keepers\[frames\]"):
        top.to_frame()
    assert top._repr_html_().startswith("<table>")
