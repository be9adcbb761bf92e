"""The figures of a report, and what belongs to some methods only."""

import io
import json
import re

import numpy as np
import pytest

from keepers import AutoSelector, StabilitySelector, VarianceScore
from keepers import report as make_report
from keepers.reports.html import COLOURS, as_png, draw_agreement, draw_heat, draw_map
from reports.conftest import Outline


def text_of(report):
    return " ".join("".join(Outline(report.html).texts).replace("\xa0", " ").split())


def data_of(report):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', report.html)
    return json.loads(found.group(1))


def test_a_picture_is_a_png_that_others_can_read():
    image = pytest.importorskip("matplotlib.image")
    rgba = np.random.default_rng(0).integers(0, 256, (7, 11, 4)) / 255
    np.testing.assert_allclose(image.imread(io.BytesIO(as_png(rgba))), rgba, atol=1e-6)


def test_a_curve_goes_through_its_points():
    counts, agreement = np.array([5, 10, 20, 50]), np.array([0.1, 0.25, 0.3, 0.4])
    svg = draw_agreement(counts, agreement, 20, np.array([0.05, 0.15]))
    drawn = re.search(r'class="curve" d="M([^"]+)"', svg).group(1)
    x, y = np.array([[float(n) for n in pair.split()] for pair in drawn.split("L")]).T
    left, right = (float(n) for n in re.search(r'"grid" d="M(\S+) \S+H(\S+)"', svg).groups())
    np.testing.assert_allclose(x, left + counts / 50 * (right - left), atol=0.06)
    lines = re.findall(r'class="(grid|level)" d="M\S+ (\S+)H', svg)
    heights = [float(at) for _, at in lines]  # of 0, 10, 20, 30 and 40 %, and of random sets
    np.testing.assert_allclose(
        y, np.interp(100 * agreement, [0, 40], [heights[0], heights[4]]), atol=0.06
    )
    assert heights[5] == heights[1]
    mark = re.search(r'class="mark" cx="(\S+)" cy="(\S+)"', svg).groups()
    np.testing.assert_allclose([float(n) for n in mark], [x[2], y[2]], atol=0.06)


@pytest.mark.parametrize("value", [0.0, 0.003, 1.0])
def test_any_agreement_can_be_drawn(value):
    svg = draw_agreement(np.array([1, 2]), np.array([value, value]), 7, None)
    assert "nan" not in svg
    assert "kept: 7" in svg


def test_long_names_are_cut_in_the_middle():
    """Questions of a survey often differ at the end only."""
    names = [f"What do you add to your coffee?: {what}" for what in ("Milk", "Sugar")]
    svg = draw_map(np.eye(2), names)[0]
    assert "What do you a…ffee?: Sugar" in svg
    assert "What do you a…offee?: Milk" in svg


def test_names_in_figures_are_escaped(hostile_names):
    r = np.corrcoef(np.random.default_rng(0).standard_normal((len(hostile_names), 30)))
    z = r[:3]
    for svg in (draw_map(r, hostile_names)[0], draw_heat(z, hostile_names[:3])):
        assert not {"img", "b", "script"} & set(Outline(svg).tags)


def test_classes_have_their_colours_above_the_heat_map():
    svg = draw_heat(np.zeros((2, 10)), ["a", "b"], np.repeat([0, 2], [4, 6]))
    assert re.findall(r'<rect [^>]*fill="([^"]+)"', svg) == [COLOURS[0], COLOURS[2]]
    widths = [float(width) for width in re.findall(r'<rect [^>]*width="([^"]+)"', svg)]
    assert (widths[1] + 1) / (widths[0] + 1) == pytest.approx(6 / 4, abs=0.01)


def test_without_stability_nothing_of_it_is_shown(srbct_report):
    assert "stability" not in text_of(srbct_report).lower().replace("stabilityselector", "")
    assert data_of(srbct_report)["halves"] == [[]] * 50


def test_the_stability_of_a_selection_is_put_into_words(stability_report, stable_selector):
    text = text_of(stability_report)
    index = stable_selector.stability_
    assert f"agree with a stability of {index.index:.2f}" in text
    assert index.verdict in text
    n_stable = int((stable_selector.scores_ >= 0.75).sum())
    assert f"{n_stable} features are selected in at least 75% of the halves" in text
    worst = 20**2 / (2308 * (2 * 0.75 - 1))  # Meinshausen and Buhlmann's number
    assert f"at most {worst:.3g} of these" in text


def test_an_undefined_index_is_given_with_its_reason():
    X = np.random.default_rng(1).standard_normal((40, 5)) * np.linspace(2, 1, 5)
    selector = StabilitySelector(VarianceScore(5), n_resamples=4, random_state=0).fit(X)
    assert "Stability is not defined:" in text_of(make_report(selector, X))


def test_the_python_that_repeats_it_has_the_inner_selector(stability_report):
    text = text_of(stability_report)
    assert "from keepers import StabilitySelector from keepers import VarianceScore X" in text
    assert "n_resamples=20, random_state=0, selector=VarianceScore(n_features_to_select=20)" in text


def test_the_answer_of_the_default_selector_comes_first(auto_report):
    selector = auto_report.selection.selector
    text = text_of(auto_report)
    kept = selector.n_features_to_select_
    assert f"Keep {kept} of 2,308 features." in text
    assert text.count(str(selector.stability_)) == 1
    for sentence in selector.doubts_:
        assert sentence in text
    assert "asked for" not in text
    dropped = auto_report.selection.count_dropped()
    assert f"{dropped['no structure']:,} no structure beyond chance" in text


def test_how_many_are_enough_is_drawn_with_the_level_of_random_sets(auto_report):
    kept = auto_report.selection.k
    figure = re.search(r'<figure id="agreement">.*?</figure>', auto_report.html, re.S).group()
    assert f"kept: {kept}" in figure
    assert 'class="level"' in figure
    assert "10 random sets" in figure


def test_other_selectors_have_no_such_figure(srbct_report):
    assert "How many are enough" not in text_of(srbct_report)


def test_each_kept_feature_has_its_share_of_halves_and_its_stand_in(auto_report):
    selection = auto_report.selection
    halves = selection.selector.stability_
    data = data_of(auto_report)
    names = data["names"]
    for column, share, other, r in zip(
        halves.features, halves.shares, halves.stand_ins, halves.correlations, strict=True
    ):
        at = names.index(selection.feature_names[column])
        expected = [round(100 * share)]
        if other >= 0:
            expected += [names.index(selection.feature_names[other]), round(100 * abs(r))]
        assert data["halves"][at] == pytest.approx(expected, abs=1)


def test_hostile_names_stay_text_beside_the_answer(hostile_names):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, len(hostile_names)))
    X[:, :8] += 5 * rng.standard_normal((3, 8))[np.arange(60) % 3]
    X[:, 8] = X[:, 0] + 0.01 * rng.standard_normal(60)
    report = make_report(AutoSelector(3).fit(X), X, feature_names=hostile_names)
    assert data_of(report)["near"]
    assert not {"img", "b", "iframe", "object", "a"} & set(Outline(report.html).tags)
