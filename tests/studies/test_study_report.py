"""The report of a study: what it says, that names are only text, offline, the same every time."""

import re
import struct
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from keepers.studies import results, study_report
from keepers.studies.paper_claims import judge_claims
from keepers.studies.results import StudyResults
from keepers.studies.runner import StudyRun
from studies.made_up_study import study

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

HOSTILE = '<script>alert("x")</script>$y_1$ \u202e #c8341b id="a" & 日本'
PAPER = tomllib.loads(
    (Path(__file__).parents[2] / "experiments" / "paper.toml").read_text(encoding="utf-8")
)
METHODS: list[dict[str, Any]] = [
    {"name": "SPCAFS", "grid": {"gamma": [1.0, 100.0]}, "default": {"gamma": "scale"}},
    {"name": "MCFS", "default": {}},
    {
        "name": "RNE",
        "grid": {"alpha": [1.0]},
        "reduced": [{"data": [HOSTILE], "skip": True, "reason": "needs <days>"}],
    },
    {"name": "RandomScore", "label": "Random", "draws": 2},
    {"name": "VarianceScore", "label": "Variance <b>", "default": {}},
    {"name": "AllFeatures", "label": "All features", "default": {}},
]
SMALL = {
    "ks": [10, 20],
    "data": [{"source": "plain"}, {"source": "x", "name": HOSTILE}],
    "methods": METHODS,
}
TINY = {"ks": [10], "data": [{"source": "plain"}], "methods": METHODS[:1]}
SIZES = {"plain": (50, 100, 3), HOSTILE: (60, 200, 2), "third": (40, 90, 2)}


def write_study(run: StudyRun, folder: Path) -> Path:
    return study_report.write_study(StudyResults(run), folder)


def judge(entry: Any, k: int) -> tuple[float, float] | None:
    if entry.method == "MCFS" and entry.data == "plain":
        return None
    return 0.3 + k / 100 + 0.01 * len(entry.method), 0.2 + k / 100


def paper_study() -> StudyRun:
    """The paper's own study without two data sets, with two k and made-up outcomes.

    Four data sets are enough for panels in two rows, for all sweeps and for the rank tests.
    """
    names = [c["source"] for c in PAPER["data"] if c["source"] not in ("PIE", "AR")]
    kept = [c for c in PAPER["data"] if c["source"] in names]
    methods = [{**m, "reduced": _only(names, m.get("reduced", ()))} for m in PAPER["methods"]]
    readings = [{**r, "reduced": _only(names, r.get("reduced", ()))} for r in PAPER["readings"]]
    smaller = {"repeats": 2, "ks": [50, 100], "data": kept, "methods": methods}
    return study(
        {**PAPER, **smaller, "readings": readings},
        lambda e, k: (0.4 + k / 500 + 0.01 * len(e.method), 0.5 + k / 500),
        objective=lambda e: (10.0, 5.0, 4.0, 4.0) if e.section == "convergence" else (),
        grown=lambda t: None if t.method == "RNE" else 1e-5 * t.n_samples * t.n_features,
    )


def _only(names: list[str], reductions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    cut = [{**r, "data": [n for n in r.get("data", names) if n in names]} for r in reductions]
    return [reduction for reduction in cut if reduction["data"]]


class Reader(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(page: Path) -> tuple[str, Reader]:
    html = page.read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(html)
    return html, reader


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(study(SMALL, judge, sizes=SIZES), tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(paper_study(), tmp_path_factory.mktemp("whole"))


@pytest.fixture(params=["small", "whole"])
def page(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


def test_the_page_says_that_tuned_has_looked_at_the_labels(page: Path) -> None:
    assert "“Tuned” has looked at the labels." in page.read_text(encoding="utf-8")


def test_the_page_asks_nobody_for_anything(page: Path) -> None:
    html, reader = read(page)
    assert "default-src 'none'" in html
    assert not {"script", "link", "iframe", "img", "object", "form"} & set(reader.tags)
    links = [
        value or "" for name, value in reader.attributes if name in ("href", "src", "xlink:href")
    ]
    assert links
    assert all(link.startswith("#") for link in links)
    assert not re.search(r"https?://|@import|url\((?!#)", html)


def test_ids_are_unique_and_every_inner_link_has_its_target(page: Path) -> None:
    _, reader = read(page)
    ids = [value for name, value in reader.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    targets = {v[1:] for n, v in reader.attributes if n in ("href", "xlink:href") and v}
    assert targets <= set(ids)


def test_hostile_names_are_text_everywhere(small: Path) -> None:
    html, reader = read(small)
    assert "script" not in reader.tags
    assert "b" not in reader.tags
    assert "\u202e" not in html
    text = "".join(reader.text)
    assert '<script>alert("x")</script>' in text
    assert "Variance <b>" in text
    assert "needs <days>" in text
    svg = (small.parent / "figures" / "acc-tuned.svg").read_text(encoding="utf-8")
    assert "<script" not in svg


def test_every_claim_stands_in_the_page_with_verdict_rule_and_numbers(whole: Path) -> None:
    text = " ".join("".join(read(whole)[1].text).split())
    for claim in judge_claims(StudyResults(paper_study())):
        for part in (claim.claim, claim.rule, claim.verdict, *claim.numbers):
            assert part in text, part


def test_the_whole_study_has_all_figures(whole: Path) -> None:
    names = {path.stem for path in (whole.parent / "figures").glob("*.svg")}
    assert names == {
        "acc-tuned", "nmi-tuned", "acc-default", "nmi-default", "critical-differences",
        "sweep-gamma", "sweep-components", "sweep-components-at-the-default-gamma", "sweep-power",
        "convergence", "growth", "time-split",
    }  # fmt: skip
    assert names == {path.stem for path in (whole.parent / "figures").glob("*.png")}
    assert whole.read_text(encoding="utf-8").count("<svg") == len(names)
    header = (whole.parent / "figures" / "acc-tuned.png").read_bytes()[:24]
    assert struct.unpack(">I", header[16:20])[0] >= 2000  # pixels across


def test_figures_inside_the_page_follow_its_colours(whole: Path) -> None:
    html = whole.read_text(encoding="utf-8")
    figures = "".join(re.findall(r"<svg.*?</svg>", html, flags=re.S))
    assert set(re.findall(r"#[0-9a-f]{6}", figures)) <= {"#000000"}
    for name in set(re.findall(r"var\((--[\w-]+)\)", figures)):
        assert html.count(f"{name}:") >= 2, name  # light and dark


def test_reduced_grids_and_failures_are_listed_with_their_reasons(small: Path) -> None:
    text = "".join(read(small)[1].text)
    assert "needs <days>" in text
    assert "DataError: made to fail" in text


def test_the_environment_is_told(small: Path) -> None:
    text = "".join(read(small)[1].text)
    for fact in ("A processor", "0123456789ab", "numpy 2.0.0", "seeds 0 to 1"):
        assert fact in text


def test_two_data_sets_are_too_few_for_a_test_and_the_page_says_so(small: Path) -> None:
    html, _ = read(small)
    assert "There is no test here." in html
    assert "needs at least 3" in html
    assert not (small.parent / "figures" / "critical-differences.svg").exists()


def test_a_study_without_claims_sweeps_or_growth_has_no_empty_sections(small: Path) -> None:
    headings = re.findall(r'<h2 id="([^"]+)"', small.read_text(encoding="utf-8"))
    assert headings == [
        "overview",
        "curves",
        "tables",
        "baselines",
        "test",
        "time",
        "gaps",
        "environment",
    ]


def test_the_same_study_gives_the_same_bytes(small: Path, tmp_path: Path) -> None:
    again = write_study(study(SMALL, judge, sizes=SIZES), tmp_path)
    assert again.read_bytes() == small.read_bytes()
    for picture in (small.parent / "figures").iterdir():
        assert (tmp_path / "figures" / picture.name).read_bytes() == picture.read_bytes()


def test_scores_rank_tests_and_style_are_made_once_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()
    made = ("tuned_scores", "default_scores", "tidy_rows", "timing_rows", "growth_rows")
    made += ("compare_ranks",)
    for module, name in [(results, name) for name in made] + [(matplotlib, "rcdefaults")]:
        monkeypatch.setattr(module, name, _counted(getattr(module, name), calls))
    write_study(study(TINY, judge, sizes=SIZES), tmp_path)
    assert calls == {**dict.fromkeys((*made, "rcdefaults"), 1), "compare_ranks": 4}


def _counted(function: Callable[..., Any], calls: Counter[str]) -> Callable[..., Any]:
    def counting(*args: Any, **options: Any) -> Any:
        calls[function.__name__] += 1
        return function(*args, **options)

    return counting


def test_one_data_set_of_ones_own_has_its_page(tmp_path: Path) -> None:
    content = {"ks": [5], "data": [{"source": "third"}], "methods": METHODS[:2] + METHODS[3:]}
    html = write_study(study(content, judge, sizes=SIZES), tmp_path).read_text(encoding="utf-8")
    assert "this study has 1" in html
    assert "1 data set;" in html


def test_an_unfinished_study_says_what_is_missing(tmp_path: Path) -> None:
    run = study(TINY, judge, sizes=SIZES, done=lambda entry: entry.role == "grid")
    html = write_study(run, tmp_path).read_text(encoding="utf-8")
    assert "This study is not finished:" in html


def test_a_study_of_which_nothing_has_run_still_has_a_page(tmp_path: Path) -> None:
    run = study(SMALL, judge, sizes=SIZES, done=lambda entry: False)
    html = write_study(run, tmp_path).read_text(encoding="utf-8")
    assert "This study is not finished:" in html
    assert "<svg" not in html


def test_sweeps_whose_names_differ_in_signs_only_have_figures_of_their_own(tmp_path: Path) -> None:
    names = ["gamma", "Gamma?"]
    common = {"method": "SPCAFS", "data": ["plain"], "vary": "gamma", "values": [1.0, 2.0]}
    content = {**TINY, "sweeps": [{"name": name, **common} for name in names]}
    page = write_study(study(content, judge, sizes=SIZES), tmp_path)
    assert len(list((tmp_path / "figures").glob("sweep-*.svg"))) == len(names)
    ids = [value for name, value in read(page)[1].attributes if name == "id"]
    assert len(ids) == len(set(ids))
