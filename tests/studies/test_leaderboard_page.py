"""The pages of a leaderboard: what they say, that names are only text, offline, without script."""

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from keepers.studies.leaderboard import leaderboards
from keepers.studies.leaderboard_page import write_leaderboard
from keepers.studies.results import StudyResults
from studies.hostile_leaderboard import (
    CONTENT,
    METHOD,
    NAMES,
    SCRIPT,
    SIZES,
    hostile_results,
    judge,
)
from studies.made_up_study import study

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


class Reader(HTMLParser):
    """Tags, attributes, text outside scripts and styles, and the cells of every table."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.tables: list[list[list[str]]] = []
        self._inside = ""
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag in ("script", "style"):
            self._inside = tag
        elif tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""
        elif tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            return
        self.text += data
        if self._in_cell:
            self.tables[-1][-1][-1] += data


def read(page: Path) -> Reader:
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    reader.tables = [[[" ".join(c.split()) for c in row] for row in t] for t in reader.tables]
    return reader


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("leaderboard")
    assert write_leaderboard(hostile_results(), where) == where / "index.html"
    return where


@pytest.fixture(scope="module")
def index(folder: Path) -> Reader:
    return read(folder / "index.html")


def pages(folder: Path) -> list[Path]:
    return [folder / "index.html", *sorted((folder / "sets").glob("*.html"))]


def test_the_tables_are_files_too(folder: Path) -> None:
    board = leaderboards(hostile_results())[0]
    with (folder / "leaderboard.csv").open(newline="", encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["tuning"] == "default"]
    expected = [row.method for row in board.rows()]
    assert [row["method"] for row in rows if row["kind"] == "all"] == expected
    assert (folder / "sets.csv").read_text(encoding="utf-8").count("\n") > len(NAMES)
    for name in ("results.csv", "default.csv", "timing.csv", "environment.json"):
        assert (folder / name).is_file()
    for suffix in ("svg", "png"):
        assert (folder / "figures" / f"critical-differences.{suffix}").is_file()


def test_the_first_paragraph_says_who_leads_how_often_and_where_it_fails(index: Reader) -> None:
    text = " ".join(index.text.split())
    assert "3 methods and 2 baselines ranked the features of 4 data sets" in text
    # On the scale of each set: 0.16/0.30, 1, 0.05/0.10 and 0.02/0.20.
    assert f"At default settings, {METHOD[:25]}… leads: its mean scaled score is 0.53" in text
    assert "ahead of random columns on 4 of 4 data sets (ACC)" in text
    assert "is 2.0 points above random columns" in text
    # 1, 0.8, -0.9 and 0.5.
    assert "SPCAFS is in place 3: its mean scaled score is 0.35" in text
    assert "where it is 9.0 points below random columns" in text


def test_the_table_can_be_read_without_a_script(index: Reader) -> None:
    heading, *rows = index.tables[0]
    assert heading[:4] == ["Place", "Method", "Mean scaled score", "Sets above random, ACC"]
    assert heading[-3:] == [
        "Worst set, points to random",
        "Median time of a fit",
        "Needs to be told",
    ]
    by_method = {row[1]: row for row in rows}
    assert by_method["SPCAFS"][:1] + by_method["SPCAFS"][2:4] == ["3", "0.35", "3 of 4"]
    assert by_method["SPCAFS"][-1] == "nothing"
    assert by_method["MCFS"][-1] == "the number of classes"
    assert "Random baseline" in by_method
    assert by_method["Random baseline"][3] == "–"
    assert len(rows) == 5


def test_tuned_is_said_to_have_looked_at_the_labels(index: Reader) -> None:
    assert "“Tuned” has looked at the labels." in index.text
    rows = index.tables[1][1:]
    own = next(row for row in rows if row[1] == "SPCAFS")
    assert own[-1] == "the classes, to tune it"


def test_what_is_missing_is_listed_with_its_reason(index: Reader) -> None:
    assert "needs <days>" in index.text
    assert "DataError: made to fail" in index.text


def test_sets_without_scale_are_told_and_a_loss_ends_at_minus_one(tmp_path: Path) -> None:
    def poor(entry, k):
        gain = {"SPCAFS": 0.02, METHOD: -0.2}.get(entry.method, 0.0)
        return (0.5, 0.5) if entry.data == "plain" else (0.5 + gain, 0.5)

    run = study({**CONTENT, "data": CONTENT["data"][::2]}, poor, sizes=SIZES)
    text = " ".join(read(write_leaderboard(StudyResults(run), tmp_path)).text.split())
    assert "left out of the scaled score: plain." in text
    assert "−1.00" in text
    assert "−10.00" not in text


def test_no_page_asks_anybody_for_anything_and_every_link_is_there(folder: Path) -> None:
    for page in pages(folder):
        html, reader = page.read_text(encoding="utf-8"), read(page)
        assert "default-src 'none'" in html
        assert not {"link", "iframe", "img", "object", "form", "base"} & set(reader.tags)
        assert not re.search(r"https?://|@import|url\((?!#)", html)
        ids = [value for name, value in reader.attributes if name == "id"]
        assert len(ids) == len(set(ids))
        for name, value in reader.attributes:
            if name in ("href", "xlink:href", "src") and value:
                target = urlsplit(value)
                assert (page.parent / target.path).exists(), value
                assert target.path or target.fragment in ids, value


def test_hostile_names_are_text_everywhere(folder: Path) -> None:
    for page in pages(folder):
        html, reader = page.read_text(encoding="utf-8"), read(page)
        assert reader.tags.count("script") == (2 if page.name == "index.html" else 0)
        assert not {"b", "i", "img"} & set(reader.tags)
        assert "\u202e" not in html
        assert not [name for name, _ in reader.attributes if name.startswith("on")]
    index = (folder / "index.html").read_text(encoding="utf-8")
    assert SCRIPT[:20] not in index
    assert re.search(r"script-src 'sha256-[\w+/]{43}='", index)


def test_what_the_script_works_on_is_what_the_page_shows(folder: Path, index: Reader) -> None:
    html = (folder / "index.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', html, flags=re.S)[1])
    for tuning, table in zip(("default", "tuned"), index.tables, strict=False):
        of_all = data[tuning][0]
        assert len(data[tuning]) == 3  # all, and two kinds
        for shown, cells in zip(table[1:], of_all, strict=True):
            texts = [f"{c['name']} {c['text']}".strip() for c in cells]
            assert shown[1].startswith(texts[1])
            assert shown[0] == texts[0]
            assert shown[2:] == [" ".join(text.split()) for text in texts[2:]]


def test_every_data_set_has_a_page_that_leads_to_its_neighbours(folder: Path) -> None:
    files = [page.name for page in pages(folder)[1:]]
    assert len(files) == len(NAMES)
    assert all(len(name) < 100 for name in files)
    plain = read(folder / "sets" / "plain.html")
    text = " ".join(plain.text.split())
    assert "SPCAFS gains most: 30.0 points of ACC above columns drawn at random" in text
    assert "2 of 3 methods are ahead of them" in text
    heading, *rows = plain.tables[0]
    assert heading == [
        "Place", "Method", "ACC", "NMI", "Points to random", "Scaled score", "Time of a fit",
        "Remark",
    ]  # fmt: skip
    assert rows[0][:7] == ["1", "SPCAFS", "0.800", "0.400", "+30.0", "1.00", "0.2 s"]
    assert rows[-1][0] == "–"
    assert [row[-1] for row in rows if row[1] == "MCFS"] == ["needs <days>"]
    assert "svg" in plain.tags
    links = [value for name, value in plain.attributes if name == "href"]
    assert "../index.html" in links
    assert sum(link in files for link in links) == 2  # the following one, above and below


def test_pages_of_data_sets_that_left_the_study_are_removed(tmp_path: Path) -> None:
    write_leaderboard(hostile_results(), tmp_path)
    methods = [{k: v for k, v in m.items() if k != "reduced"} for m in CONTENT["methods"]]
    write_leaderboard(hostile_results(data=CONTENT["data"][:1], methods=methods), tmp_path)
    assert [page.name for page in pages(tmp_path)] == ["index.html", "plain.html"]


def test_the_same_study_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    write_leaderboard(hostile_results(), tmp_path)
    for page in pages(folder):
        assert (tmp_path / page.relative_to(folder)).read_bytes() == page.read_bytes()


@pytest.mark.parametrize("finished", ["nothing", "one set"])
def test_a_study_that_has_not_finished_has_its_pages(tmp_path: Path, finished: str) -> None:
    done = {"nothing": lambda entry: False, "one set": lambda entry: entry.data == "plain"}
    run = study(CONTENT, judge, sizes=SIZES, done=done[finished])
    index = read(write_leaderboard(StudyResults(run), tmp_path))
    assert "This study is not finished:" in index.text
    assert "There is no result yet." in read(pages(tmp_path)[-1]).text


def test_a_figure_of_many_methods_names_the_best(tmp_path: Path) -> None:
    further = [
        {"name": "SPCAFS", "default": {"n_components": i + 1}, "label": f"Mine {i}"}
        for i in range(9)
    ]
    gains = {f"Mine {i}": i / 100 for i in range(9)}

    def score(entry: Any, k: int) -> tuple[float, float] | None:
        return judge(entry, k) if entry.method not in gains else (0.4 + gains[entry.method], 0.2)

    content = {**CONTENT, "methods": [*CONTENT["methods"], *further]}
    write_leaderboard(StudyResults(study(content, score, sizes=SIZES)), tmp_path)
    page = next((tmp_path / "sets").glob("plain*.html")).read_text(encoding="utf-8")
    named = re.findall(r"<text[^>]*>([^<]*)</text>", page)
    # MCFS is not run on this set; METHOD (0.66) and Mine 8, 7, 6, 5 are the best five.
    assert {"SPCAFS", "Random", "All features", "Mine 8", "Mine 5", "the others"} <= set(named)
    assert not {f"Mine {i}" for i in range(5)} & set(named)
