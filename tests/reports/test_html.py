"""The page as text: inert, self-contained, small, and the same every time."""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from html import unescape

import numpy as np
import pytest
import scipy.sparse as sp

from keepers import SPCAFS, LaplacianScore, VarianceScore, datasets
from keepers import report as make_report
from keepers.exceptions import KeepersError, MissingDependencyError, ParameterError
from keepers.reports.html import script_safe_json
from reports.conftest import Outline

HOSTILE_TAGS = {"img", "b", "iframe", "object", "embed", "link", "a", "form"}


def names_in(html):
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    data = json.loads(block.group(1))
    return data["names"]


def test_hostile_names_add_no_element_and_no_handler(hostile_report):
    outline = Outline(hostile_report.html)
    assert not HOSTILE_TAGS & set(outline.tags)
    assert outline.tags.count("script") == 2
    assert not [attribute for attribute in outline.attributes if attribute[1].startswith("on")]


def test_hostile_names_arrive_as_they_were(hostile_report, hostile_names):
    expected = {name.replace("\ud800", "\ufffd") for name in hostile_names}
    assert set(names_in(hostile_report.html)) == expected


def test_data_cannot_end_their_script_block():
    nasty = "</script><!--&\u2028\u2029"
    text = script_safe_json([nasty])
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == [nasty]


def test_the_policy_allows_our_script_only(srbct_report):
    html = srbct_report.html
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html).group(1)
    policy = unescape(policy)
    assert "default-src 'none'" in policy
    script = re.search(r"<script>(.*?)</script>", html, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert "unsafe-eval" not in policy


@pytest.mark.parametrize("kind", ["srbct_report", "stability_report"])
def test_the_page_is_small_and_refers_to_nothing_outside(request, kind):
    html = request.getfixturevalue(kind).html
    assert len(html.encode()) < 300_000
    assert "http://" not in html
    assert "https://" not in html
    references = [
        value
        for _, name, value in Outline(html).attributes
        if name in ("src", "href", "xlink:href", "action", "data")
    ]
    assert all(value.startswith(("#", "data:image/png;base64,")) for value in references)


@pytest.mark.slow
def test_twenty_thousand_features_stay_under_a_megabyte(long_report):
    html = long_report.html
    assert set(names_in(html)) == {f"ENSG{number:011d}" for number in range(20_000)}
    assert len(html.encode()) < 1_000_000


@pytest.mark.slow
def test_the_page_is_the_same_in_another_process(tmp_path):
    code = (
        "import sys, numpy as np\n"
        "from keepers import SPCAFS\n"
        "from keepers import report\n"
        "X = np.random.default_rng(0).standard_normal((40, 30))\n"
        "selector = SPCAFS(8, callback=lambda progress: None).fit(X)\n"
        "report(selector, X, labels=X[:, 0] > 0).save(sys.argv[1])"
    )
    pages = []
    for seed in ("1", "2"):
        target = tmp_path / f"{seed}.html"
        environment = {**os.environ, "PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": "0"}
        command = [sys.executable, "-c", code, str(target)]
        subprocess.run(command, check=True, env=environment, timeout=60)
        pages.append(target.read_bytes())
    assert pages[0] == pages[1]


@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_the_paragraph_says_what_was_asked_and_found(srbct_report):
    X, names, _ = datasets.load("srbct")
    selector = SPCAFS(50, n_components=3).fit(X)
    share = X[:, selector.support_].var(axis=0).sum() / X.var(axis=0).sum()
    first = ", ".join(names[selector.top(5).indices])
    text = " ".join("".join(Outline(srbct_report.html).texts).replace("\xa0", " ").split())
    assert f"SPCAFS keeps 50 of the 2,308 features, as requested. {first} and 45 more Why " in text
    assert f"The kept features hold {100 * share:.1f} % of the total variance. How sure " in text
    assert "srbct · 83 samples × 2,308 features · " in text
    assert "By SPCAFS, in 1.5 s." in text
    assert "keepers select srbct -k 50" in text


def first_paragraph(report):
    lead = re.search(r'<p class="lead">(.*?)</header>', report.html, re.S).group(1)
    return " ".join("".join(Outline(lead).texts).replace("\xa0", " ").split())


def test_the_first_paragraph_says_if_more_features_are_kept_than_are_active():
    X, names, _ = datasets.load("srbct")
    selector = SPCAFS(n_components=3).fit(X)
    active = np.count_nonzero(np.linalg.norm(selector.components_, axis=0) > 2e-6)
    text = first_paragraph(make_report(selector, X, feature_names=names, k=60))
    assert f"Only {active} of the 60 kept features have active (non-zero) rows of W" in text
    assert "the others are ranked by how close they are to becoming active." in text
    assert f"should be small enough), or keep at most {active} features." in text
    silent = first_paragraph(make_report(selector, X, feature_names=names, k=active))
    assert "active" not in silent


def test_a_saved_page_is_whole_or_absent(srbct_report, tmp_path, monkeypatch):
    target = tmp_path / "report.html"

    def broken(*_):
        raise OSError("disk full")

    monkeypatch.setattr("keepers.tables.atomic.os.replace", broken)
    with pytest.raises(KeepersError, match="disk full"):
        srbct_report.save(target)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    assert srbct_report.save(target) == target
    assert target.read_text(encoding="utf-8") == srbct_report.html
    assert list(tmp_path.iterdir()) == [target]


def test_an_existing_file_is_replaced_only_by_force(srbct_report, tmp_path):
    target = tmp_path / "report.html"
    target.write_text("mine")
    with pytest.raises(ParameterError, match="exists and is not overwritten"):
        srbct_report.save(target)
    assert target.read_text() == "mine"
    srbct_report.save(target, force=True)
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_missing_folder_is_named(srbct_report, tmp_path):
    with pytest.raises(ParameterError, match=r"no folder .*nowhere"):
        srbct_report.save(tmp_path / "nowhere" / "report.html")


def test_a_notebook_shows_the_page_in_a_frame_shut_off_from_it(srbct_report):
    shown = srbct_report._repr_html_()
    outline = Outline(shown)
    assert outline.tags == ["iframe"]
    attributes = {name: value for _, name, value in outline.attributes}
    assert attributes["sandbox"] == "allow-scripts"
    assert attributes["srcdoc"] == srbct_report.html


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    X = np.random.default_rng(0).standard_normal((10, 4))
    with pytest.raises(MissingDependencyError, match=r'pip install "keepers\[plot\]"'):
        make_report(VarianceScore(2).fit(X), X)


def test_a_report_needs_no_plotting_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    X = np.random.default_rng(0).standard_normal((20, 6))
    assert make_report(SPCAFS(3).fit(X), X).html


def test_the_first_lines_have_the_certificate(srbct_report):
    certificate = srbct_report.selection.certificate
    X = datasets.load("srbct").X[:, certificate.features]
    values = np.linalg.eigvalsh(np.cov(X, rowvar=False, bias=True))[::-1]
    assert certificate.value == pytest.approx(values[:3].sum())
    lead = first_paragraph(srbct_report)
    assert str(certificate).replace("\xa0", " ") in lead
    assert re.search(r"hold at least 9\d\.\d % of the variance that any 50 features could", lead)


@pytest.mark.parametrize("certify", [None, True, False])
def test_what_is_certified_can_be_chosen(certify):
    X = np.random.default_rng(0).standard_normal((30, 6)) * np.arange(1, 7)
    by_variance = make_report(VarianceScore(2).fit(X), X, certify=certify)
    by_smoothness = make_report(LaplacianScore(2).fit(X), X, certify=certify)
    assert ("that any 2 features could hold" in by_variance.html) == (certify is not False)
    assert ("Proved:" in by_smoothness.html) == (certify is True)


def test_a_kept_set_without_variance_is_told_as_such():
    X = np.random.default_rng(0).standard_normal((30, 5))
    X[:, 4] = 1.0
    with pytest.warns(match="do not vary"):
        selector = SPCAFS(1, n_components=1, must_keep=[4]).fit(X)
    lead = first_paragraph(make_report(selector, X))
    assert "This feature holds at least 0.0 % of the variance" in lead


def test_gaps_that_the_selector_filled_are_told():
    X = np.random.default_rng(0).standard_normal((30, 5))
    X[[3, 4], 1] = np.nan
    X[7, 4] = np.nan
    lead = first_paragraph(make_report(SPCAFS(2, missing="mean", n_components=2).fit(X), X))
    assert "Gaps filled (mean) in 2 columns: 'x1' (2), 'x4' (1)." in lead
    for whole in (np.nan_to_num(X), sp.csr_matrix(np.nan_to_num(X))):
        selector = SPCAFS(2, missing="mean", n_components=2).fit(whole)
        assert "Gaps" not in first_paragraph(make_report(selector, whole))


def test_features_in_different_units_are_told_unless_the_method_scales_them():
    X = np.random.default_rng(0).standard_normal((30, 5)) * [1.0, 1.0, 1.0, 1.0, 1e4]
    assert "different units" in first_paragraph(make_report(VarianceScore(2).fit(X), X))
    scaled = SPCAFS(2, scaling=1.0, n_components=2, gamma=1e-3).fit(X)
    assert "different units" not in first_paragraph(make_report(scaled, X))
