"""Two selections side by side: the numbers and the text."""

import re

import numpy as np
import pytest

import keepers
from keepers import SPCAFS, VarianceScore, describe_selection
from keepers.exceptions import DataError, ParameterError
from keepers.reporting.comparison import compare
from keepers.reporting.selection_report import make_report


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 8)) * np.linspace(8, 1, 8)
    X[:, 7] = X[:, 0] / 5 + 0.01 * rng.standard_normal(40)
    return X


@pytest.fixture
def pair(X):
    """The first keeps 0, 1, 2, the second 7, 1, 2: columns 0 and 7 are copies."""
    best = VarianceScore(3).fit(X)
    weighted = VarianceScore(3).fit(X * [0.01, 1, 1, 1, 1, 1, 1, 10.0])
    return [best, weighted]


def test_what_both_keep_and_what_only_one_does(X, pair):
    found = compare([describe_selection(each, X) for each in pair])
    assert {feature.name for feature in found.both} == {"x1", "x2"}
    (only_first,), (only_second,) = found.only
    assert (only_first.name, only_second.name) == ("x0", "x7")
    assert only_first.nearest == "x7"
    assert only_first.correlation == pytest.approx(np.corrcoef(X[:, 0], X[:, 7])[0, 1])
    assert only_first.ranks == (pair[0].ranking_[0], pair[1].ranking_[0])
    assert found.n_copies == (1, 1)
    assert found.n_by_chance == pytest.approx(9 / 8)


def test_selections_are_told_apart_by_method_or_by_settings(X):
    def called(*selectors):
        return compare([describe_selection(each.fit(X), X) for each in selectors]).called

    assert called(SPCAFS(3), VarianceScore(3)) == ("SPCAFS", "VarianceScore")
    several = called(SPCAFS(3, p=0.5), SPCAFS(3))
    assert several == ("SPCAFS (p=0.5)", "SPCAFS (p=1.0)")
    assert called(SPCAFS(3), SPCAFS(3)) == ("SPCAFS (first)", "SPCAFS (second)")


def test_one_call_makes_the_page(X, pair, tmp_path):
    report = keepers.report(pair, X, labels=np.arange(40) % 2, title="A and B", source="made up")
    assert repr(report).startswith("<ComparisonReport: VarianceScore (first) and")
    text = report.save(tmp_path / "two.html").read_text(encoding="utf-8")
    assert "<strong>2 features are kept by both</strong>; by chance it would be 1.1" in text
    assert "made up</bdi> · 40 samples × 8 features" in text
    assert "http://" not in text
    assert "<script" not in text


def test_selections_without_a_common_feature_have_no_such_list(X, pair):
    assert 'id="both"' in make_report(pair, X).html
    smallest = VarianceScore(3).fit(X / X.var(axis=0))
    html = make_report([pair[0], smallest], X).html
    assert "<strong>0 features are kept by both</strong>" in html
    assert 'id="both"' not in html


def test_hostile_names_stay_text(hostile_names):
    X = np.random.default_rng(0).standard_normal((30, len(hostile_names)))
    pair = [VarianceScore(9).fit(X), SPCAFS(9, n_components=9, gamma=1e-3).fit(X)]
    html = make_report(
        pair,
        X,
        feature_names=hostile_names,
        labels=(hostile_names * 2)[:30],
        title=hostile_names[1],
        source=hostile_names[0],
    ).html
    assert not re.search(r"<(script|img|b|iframe|a)[ >]", html)
    assert "&lt;img src=x onerror=alert(1)&gt;" in html


def test_what_cannot_be_compared_is_refused(X, pair):
    with pytest.raises(ParameterError, match="two fitted selectors"):
        make_report([*pair, pair[0]], X)
    with pytest.raises(ParameterError, match="does not show path, certify"):
        make_report(pair, X, path=object(), certify=True)
    with pytest.raises(DataError, match="8 columns that the selector was fitted on"):
        make_report(pair, X[:, :5])
    with pytest.raises(DataError, match="labels must have one entry per sample, 40"):
        make_report(pair, X, labels=[1, 2])
