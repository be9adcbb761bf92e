"""The report of a study: tables, figures and a page, with names as text, the same every time."""

import re
import tomllib

import pandas as pd
import pytest
from keepers_studies import figures, write_report
from keepers_studies.formatting import table_html
from keepers_studies.scores import StudyResults
from keepers_studies.specification import find_study
from made_up_study import study

HOSTILE = '<script>alert("x")</script>$y_1$ \u202e id="a" & 日本'
PAPER = tomllib.loads(find_study("paper").read_text(encoding="utf-8"))
SKIPPED = {"data": [HOSTILE], "skip": True, "reason": "needs <days>"}
METHODS = [
    {"name": "SPCAFS", "grid": {"gamma": [1.0, 100.0]}, "default": {"gamma": "scale"}},
    {"name": "MCFS", "label": "=cmd()", "default": {}},
    {"name": "RNE", "grid": {"alpha": [1.0]}, "reduced": [SKIPPED]},
    {"name": "RandomScore", "label": "Random", "draws": 2},
    {"name": "AllFeatures", "label": "All <b>", "default": {}},
]
DATA = [{"source": "plain"}, {"source": "x", "name": HOSTILE}]
SMALL = {"ks": [10, 20], "data": DATA, "methods": METHODS}
SIZES = {"plain": (50, 100, 3), HOSTILE: (60, 200, 2)}


def judge(entry, k):
    if entry.method == "=cmd()" and entry.data == "plain":
        return None
    return 0.3 + k / 100 + 0.01 * len(entry.method), 0.2 + k / 100


def write(folder, **changes):
    return write_report(StudyResults(study(SMALL, judge, sizes=SIZES, **changes)), folder)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write(tmp_path_factory.mktemp("small"))


def test_names_are_text_and_the_page_asks_nobody_for_anything(small):
    html = small.read_text(encoding="utf-8")
    assert not re.search("<script|<b>|\u202e", html)
    for text in ("&lt;script&gt;", "needs &lt;days&gt;", "DataError: made to fail"):
        assert text in html
    svg = (small.parent / "figures" / "acc-tuned.svg").read_text(encoding="utf-8")
    assert "<script" not in svg
    assert "&lt;script&gt;" in svg
    links = re.findall(r'(?:href|src)="([^"]*)"', html)
    assert all(link.startswith(("#", "data:image/svg+xml")) for link in links)
    assert {link[1:] for link in links if link[0] == "#"} <= set(re.findall(r'id="([^"]*)"', html))


def test_tables_hold_every_score(small):
    tuned = pd.read_csv(small.parent / "tuned.csv")
    own = tuned[(tuned.data == "plain") & (tuned.method == "SPCAFS")]
    assert list(own.k) == [10, 20]
    assert own.acc_mean.iloc[0] == pytest.approx(0.46)
    fits = pd.read_parquet(small.parent / "results.parquet")
    assert {"section", "data", "method", "role", "params", "k", "acc_mean", "status"} <= set(fits)


def test_two_reports_of_the_same_study_are_the_same_bytes(small, tmp_path):
    again = write(tmp_path / "again").parent
    names = {path.relative_to(again) for path in again.rglob("*") if path.is_file()}
    assert len(names) > 12
    for name in names:
        assert (again / name).read_bytes() == (small.parent / name).read_bytes()


def test_an_unfinished_study_counts_what_is_missing(tmp_path):
    page = write(tmp_path / "part", done=lambda entry: entry.data == "plain")
    assert re.search(r"not finished:</strong> \d+ of \d+ tasks", page.read_text(encoding="utf-8"))
    nothing = write(tmp_path / "none", done=lambda entry: False)
    assert "not finished" in nothing.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_papers_study_has_its_claims_readings_sweeps_and_tests(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "against_k", lambda *_: figures.Figure())  # slow, tested above
    made = study(
        {**PAPER, "repeats": 2, "ks": [50, 100]},
        lambda e, k: (0.4 + k / 500 + 0.01 * len(e.method), 0.5 + k / 500),
        objective=lambda e: (10.0, 5.0, 4.0, 4.0) if e.section == "convergence" else (),
        grown=lambda t: 1e-5 * t.n_samples * t.n_features,
    )
    page = write_report(StudyResults(made, {"other": StudyResults(made)}), tmp_path / "out")
    html = page.read_text(encoding="utf-8")
    assert "Algorithm 1 converges very fast." in html
    assert "Most of the paper holds under" in html
    folder = page.parent
    assert len(pd.read_csv(folder / "readings.csv")) == 2 * len(pd.read_csv(folder / "claims.csv"))
    assert {"exponent_in_samples", "printed"} <= set(pd.read_csv(folder / "table1.csv"))
    assert (folder / "figures" / "sweep-1.svg").is_file()
    assert (folder / "figures" / "critical-differences.svg").is_file()


def test_cells_are_escaped_and_gaps_are_dashes():
    frame = pd.DataFrame({"<a>": ["<b>", None], "n": [-0.5, float("nan")]})
    html = table_html(frame, {"n": "{:.1f}".format}, {"<b>": "leading"})
    assert not re.search("<a>|<b>", html)
    assert 'class="number below" data-key="-0.5">-0.5<' in html
    assert html.count(">–<") == 2
    assert '<tr class="leading">' in html
