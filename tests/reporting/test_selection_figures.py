"""Optional panels: the path of SPCAFS, how stable a selection is, how many features are enough."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from keepers import (
    SPCAFS,
    AutoSelector,
    StabilitySelector,
    VarianceScore,
    datasets,
    spcafs_path,
)
from keepers.exceptions import DataError
from keepers.reporting.selection_report import make_report


class Texts(HTMLParser):
    """Tags, and the text between them."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(html)

    def handle_starttag(self, tag, _):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


def text_of(report):
    return " ".join("".join(Texts(report.html).texts).replace("\xa0", " ").split())


def data_of(report):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', report.html)
    return json.loads(found.group(1))


def small(seed=0, d=12):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((40, d)) * np.linspace(2, 1, d)


def test_the_path_is_a_panel_with_its_ends_in_words(path_report):
    path = path_report.summary.path.path
    text = text_of(path_report)
    assert "From PCA to sparse" in text
    first, last = 100 * path.explained_variance[0], 100 * path.explained_variance[-1]
    assert (
        "SPCAFS with 3 components at 20 strengths of its penalty. At the weakest shown, "
        f"{path.n_active[0]:,} features are active and the components explain {first:.1f} % of the "
        f"variance; at the strongest, 3 and {last:.1f} %."
    ) in text
    assert "keepers.spcafs_path(X, n_components=3)" in text


def test_the_selection_s_own_strength_is_marked_only_on_its_own_path(path_report):
    assert "The dotted line is the strength used for this selection." in text_of(path_report)
    X = small()
    other = make_report(VarianceScore(3).fit(X), X, path=spcafs_path(X, n_components=2))
    assert "dotted line" not in text_of(other)
    wider = make_report(SPCAFS(3, n_components=3).fit(X), X, path=spcafs_path(X, n_components=2))
    assert "dotted line" not in text_of(wider)


def test_names_along_the_path_are_the_report_s(path_report):
    names = datasets.load("srbct").feature_names
    path = path_report.summary.path.path
    assert path_report.summary.path.names == tuple(names[path.entry[:8]])
    key = re.search(r'<ul class="key".*?</ul>', path_report.html, re.S).group()
    assert re.findall(r"<bdi>([^<]*)</bdi>", key) == list(names[path.entry[:8]])


def test_hostile_names_stay_text_in_the_path(hostile_names):
    X = small(d=len(hostile_names))
    report = make_report(
        VarianceScore(4).fit(X), X, feature_names=hostile_names, path=spcafs_path(X)
    )
    tags = Texts(report.html).tags
    assert not {"img", "b", "iframe", "object", "a"} & set(tags)
    assert tags.count("script") == 2


def test_a_path_of_another_table_is_refused():
    X = small()
    selector = VarianceScore(3).fit(X)
    with pytest.raises(DataError, match="same table as the selection, with 12 features"):
        make_report(selector, X, path=spcafs_path(X[:, :7], n_components=2))
    with pytest.raises(DataError, match=r"keepers\.spcafs_path\(X\) returns"):
        make_report(selector, X, path=[1, 2, 3])


def test_without_a_path_or_stability_nothing_of_them_is_shown(srbct_report):
    text = text_of(srbct_report)
    assert "From PCA to sparse" not in text
    assert "stability" not in text.lower()
    assert "intervals" not in data_of(srbct_report)


def test_frequencies_stand_beside_their_intervals(stability_report, stable_selector):
    data = data_of(stability_report)
    scale = 10.0 ** data["scores"]["exponent"]
    frequencies = np.array(data["scores"]["values"]) * scale
    order = stable_selector.top(2308).indices
    assert np.allclose(frequencies, stable_selector.frequencies_[order], atol=1e-4)
    ends = np.array(data["intervals"]["ends"])
    counts = np.round(frequencies * data["intervals"]["halves"]).astype(int)
    assert np.allclose(ends[counts], stable_selector.frequency_intervals_[order], atol=6e-4)


def test_the_intervals_are_wilson_s(stability_report):
    """18 of 20: 0.699 to 0.972, from the closed form with z = 1.959964."""
    low, high = data_of(stability_report)["intervals"]["ends"][18]
    z2, n, p = 1.959964**2, 20, 0.9
    centre, reach = p + z2 / (2 * n), np.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n)))
    assert low == pytest.approx((centre - reach) / (1 + z2 / n), abs=6e-4)
    assert high == pytest.approx((centre + reach) / (1 + z2 / n), abs=6e-4)


def test_index_verdict_and_bound_are_told_in_words(stability_report, stable_selector):
    text = text_of(stability_report)
    index = stable_selector.stability_
    assert (
        f"The selections agree with a stability of {index.index:.2f} (95 % interval "
        f"{index.interval[0]:.2f} to {index.interval[1]:.2f}; 1 is always the same features, 0 is "
        f"chance): {index.verdict}."
    ) in text
    assert "VarianceScore was fitted to 20 random halves of the samples" in text
    n_stable = int((stable_selector.frequencies_ >= 0.75).sum())
    assert f"{n_stable} features were selected in at least 75 % of the halves" in text
    worst = 20**2 / (2308 * (2 * 0.75 - 1))  # Meinshausen and Buhlmann's number
    assert f"at most {worst:.3g} are to be expected among them" in text


def test_an_undefined_index_is_given_with_its_reason():
    X = small(1, d=5)
    selector = StabilitySelector(VarianceScore(5), n_resamples=4, random_state=0).fit(X)
    text = text_of(make_report(selector, X))
    assert "How far the selections agree cannot be said:" in text
    assert "nan" not in text.lower().replace("why nan", "")


def test_error_bars_and_threshold_are_in_the_score_figure(stability_report):
    figure = re.search(r'<figure id="curve">.*?</figure>', stability_report.html, re.S).group()
    assert "stable from 0.75" in figure
    assert "selection frequency" in figure
    assert "Bars are the 95" in figure


def test_the_recipe_spells_the_inner_selector(stability_report):
    code = stability_report.summary.method.python
    assert (
        "keepers.StabilitySelector(selector=keepers.VarianceScore(n_features_to_select=20), "
        "n_resamples=20, random_state=0).fit(X)"
    ) in code


def test_the_page_stays_small_and_asks_nobody(path_report, stability_report):
    for report in (path_report, stability_report):
        assert len(report.html.encode()) < 300_000
        assert "http://" not in report.html
        assert "https://" not in report.html


def test_the_front_door_speaks_in_the_first_paragraph(auto_report):
    selector = auto_report.summary.selection.selector
    text = text_of(auto_report)
    kept = selector.n_features_to_select_
    assert f"AutoSelector chose {kept} of the 2,308 features: " in text
    assert f"{selector.summary_} How sure:" in text
    assert "What to watch: " + " ".join(selector.doubts_) in text
    assert "asked for" not in text
    dropped = auto_report.summary.selection.count_dropped()
    assert f"{dropped['redundant']:,} redundant with a kept one" in text
    assert f"{dropped['no structure']:,} without structure" in text


def test_a_number_that_was_asked_for_is_said_to_be():
    X = datasets.load("srbct").X
    text = text_of(make_report(AutoSelector(10).fit(X), X))
    assert "AutoSelector keeps the 10 features asked for, of 2,308: " in text
    assert "are enough" in text


def test_how_many_are_enough_is_drawn_with_the_level_of_random_sets(auto_report):
    selector = auto_report.summary.selection.selector
    found = auto_report.summary.agreement
    np.testing.assert_array_equal(found.counts, selector.counts_)
    np.testing.assert_array_equal(found.agreement, selector.agreement_)  # copied
    figure = re.search(r'<figure id="agreement">.*?</figure>', auto_report.html, re.S).group()
    assert f"enough: {selector.n_enough_}" in figure
    assert f"random sets of {selector.n_features_to_select_} features" in figure


def test_other_selectors_have_no_such_figure(srbct_report):
    assert srbct_report.summary.agreement is None
    assert "How many are enough" not in text_of(srbct_report)


def test_hostile_names_stay_text_beside_the_front_door(hostile_names):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, len(hostile_names)))
    X[:, :8] += 5 * rng.standard_normal((3, 8))[np.arange(60) % 3]
    X[:, 8] = X[:, 0] + 0.01 * rng.standard_normal(60)
    report = make_report(AutoSelector(3).fit(X), X, feature_names=hostile_names)
    assert data_of(report)["alike"]
    assert not {"img", "b", "iframe", "object", "a"} & set(Texts(report.html).tags)
