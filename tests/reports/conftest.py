"""Selections to report on, and a browser to look at the reports."""

import os
import shutil
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp

from keepers import (
    SPCAFS,
    AutoSelector,
    StabilitySelector,
    VarianceScore,
    datasets,
)
from keepers import report as make_report
from keepers.exceptions import InactiveRowsWarning

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>window.hacked = 1</script>",
    '"><svg onload=alert(2)>',
    "'; alert(3); '",
    "{{ 7 * 7 }}{% raw %}",
    "<!-- --><b>bold</b>",
    "x" * 10_000,
    "right \u202e to left \u2069 over",
    "null\x00bell\x07escape\x1b",
    "line\u2028paragraph\u2029",
    "$\\frac{1$ & _under",
    "שלום عالم",
    "日本語の特徴",
    "lone \ud800 surrogate",
    "=HYPERLINK(1)",
    "",
]


class Outline(HTMLParser):
    """Tags and attributes as a parser sees them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *attribute) for attribute in attrs]

    def handle_data(self, data):
        self.texts.append(data)


def _fitted(X):
    """50 features, 49 of them with active rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InactiveRowsWarning)
        return SPCAFS(50, n_components=3).fit(X)


@pytest.fixture(scope="session")
def srbct_report():
    X, names, labels = datasets.load("srbct")
    selector = _fitted(X)
    report = make_report(selector, X, feature_names=names, labels=labels, source="srbct")
    timed = replace(report.selection, seconds=1.5)
    return replace(report, selection=timed, command="keepers select srbct -k 50")


@pytest.fixture(scope="session")
def hostile_report():
    X = np.random.default_rng(0).standard_normal((30, len(HOSTILE)))
    X *= np.linspace(2, 1, len(HOSTILE))
    report = make_report(
        VarianceScore(8).fit(X),
        X,
        feature_names=HOSTILE,
        labels=(HOSTILE * 2)[:30],
        title=HOSTILE[1],
        source=HOSTILE[0],
    )
    return replace(report, command=HOSTILE[2])


@pytest.fixture(scope="session")
def hostile_names():
    return HOSTILE


@pytest.fixture(scope="session")
def long_report():
    """20,000 features with names as long as those of genes, 2,100 samples in 25 classes."""
    rng = np.random.default_rng(0)
    X = sp.random(2100, 20_000, density=0.01, format="csr", random_state=0)
    names = [f"ENSG{number:011d}" for number in range(20_000)]
    labels = rng.integers(0, 25, 2100)
    return make_report(VarianceScore(100).fit(X), X, feature_names=names, labels=labels)


@pytest.fixture(scope="session")
def stable_selector():
    X = datasets.load("srbct").X
    return StabilitySelector(VarianceScore(20), n_resamples=20, random_state=0).fit(X)


@pytest.fixture(scope="session")
def stability_report(stable_selector):
    X, names, _ = datasets.load("srbct")
    return make_report(stable_selector, X, feature_names=names, source="srbct")


@pytest.fixture(scope="session")
def auto_report():
    X, names, labels = datasets.load("srbct")
    return make_report(AutoSelector().fit(X), X, feature_names=names, labels=labels, source="srbct")


@pytest.fixture(scope="module")
def browser():
    """Debian's chromium, driven by playwright, where both are installed."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    known = ["chromium", "chromium-browser", "chrome"]
    chromium = next(filter(None, map(shutil.which, known)), None)
    if chromium is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    # Chromium refuses to run its own sandbox as root, which is what containers are.
    arguments = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, tmp_path):
    """Open a report; afterwards no console error, dialog or request may have been seen."""
    seen = []
    contexts = []

    def open_report(report, **options):
        target = report.save(tmp_path / "report.html", force=True)
        context = browser.new_context(**options)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        page = context.new_page()
        own = target.as_uri()
        page.on("console", lambda m: m.type == "error" and seen.append(f"console: {m.text}"))
        page.on("pageerror", lambda error: seen.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (seen.append("dialog"), dialog.dismiss()))
        page.on("popup", lambda popup: seen.append("popup"))
        page.on(
            "request",
            lambda request: (
                request.url == own
                or request.url.startswith("data:")
                or seen.append(f"request: {request.url[:80]}")
            ),
        )
        page.goto(own)
        return page

    yield open_report
    for context in contexts:
        context.close()
    assert seen == []


@pytest.fixture(scope="session")
def skipping_report():
    """Ten columns, each but the first three a copy of one of these, which max_correlation skips."""
    rng = np.random.default_rng(0)
    causes = np.linalg.qr(rng.standard_normal((60, 5)))[0] * [9.0, 8.0, 7.0, 2.0, 1.0]
    X = causes[:, [0, 1, 2, 3, 4, 0, 1, 2, 0, 1]] + 1e-4 * rng.standard_normal((60, 10))
    X[:, 5:] *= 0.99
    names = [f"cause {j}" for j in range(5)] + [f"<i>copy</i> {j}" for j in range(5)]
    return make_report(VarianceScore(3, max_correlation=0.9).fit(X), X, feature_names=names)


@pytest.fixture(scope="session")
def wine():
    """178 wines x 13 columns in different units: the variance is that of one of them."""
    from sklearn.datasets import load_wine

    return load_wine(as_frame=True).data
