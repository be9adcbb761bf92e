"""The leaderboard of a study on disk: tables, a first page to sort, a page for each data set."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from keepers._packages import optional
from keepers.reporting.report_parts import script_hash, script_safe_json
from keepers.studies.csv_tables import as_csv, write_tables
from keepers.studies.drawing import Look, Picture, looks_of, our_style, save
from keepers.studies.leaderboard import Leaderboard, board_rows, leaderboards, set_rows
from keepers.studies.leaderboard_content import TITLES, index_content, script_data, set_views
from keepers.studies.paper_claims import judge_claims
from keepers.studies.results import StudyResults
from keepers.studies.scores import Comparison
from keepers.studies.store import make_folder, write_text
from keepers.studies.study_figures import against_k, critical_differences
from keepers.studies.study_report import page_environment, page_style, read_template

MOST_NAMED = 5  # curves in a figure beside the baselines and the highlighted one


def write_leaderboard(study: StudyResults, folder: Path) -> Path:
    """Write tables, ``figures/``, ``index.html`` and ``sets/`` into a folder.

    Parameters
    ----------
    study : StudyResults
        What has not run yet is shown as missing.
    folder : Path
        New, empty, or the folder of an earlier report, whose files are replaced.

    Returns
    -------
    Path
        ``folder/index.html``, which links to the pages in ``sets`` and needs no other file.
    """
    for package in ("matplotlib", "jinja2"):
        optional(package, "Reports")
    boards = leaderboards(study)
    write_tables(study, judge_claims(study), folder)
    for name, rows in (("leaderboard.csv", board_rows(boards)), ("sets.csv", set_rows(boards))):
        if rows:
            write_text(folder / name, as_csv(rows))
    pages = _Pages(study)
    with our_style():
        pictures = _rank_figures(boards, pages.looks)
        for picture in pictures.values():
            save(picture, folder / "figures")
        write_text(folder / "index.html", pages.index(boards, pictures))
        _write_sets(pages, boards, folder / "sets")
    return folder / "index.html"


class _Pages:
    """The templates, and what all pages of a study share."""

    def __init__(self, study: StudyResults) -> None:
        self.study = study
        self.looks = looks_of(study.run.spec)
        self._environment = page_environment()
        self._shared = {
            "baselines": study.baselines,
            "leading": {title for title, look in self.looks.items() if look.on_top},
            "style": page_style() + read_template("leaderboard.css"),
        }

    def index(self, boards: Sequence[Leaderboard], pictures: dict[str, Picture]) -> str:
        """The first page, the same for the same study."""
        content = index_content(self.study, boards)
        script = read_template("leaderboard.js")
        return self._render(
            "leaderboard.html.jinja",
            **content,
            pictures=pictures,
            tests={TITLES[board.tuning]: board.ranks() for board in boards},
            script=script,
            script_hash=script_hash(script),
            data=script_safe_json(script_data(content["boards"])),
        )

    def of_set(self, **content: Any) -> str:
        """The page of a data set."""
        return self._render("leaderboard_set.html.jinja", spec=self.study.run.spec, **content)

    def _render(self, name: str, **content: Any) -> str:
        html: str = self._environment.get_template(name).render(**self._shared, **content)
        return html


def _write_sets(pages: _Pages, boards: Sequence[Leaderboard], folder: Path) -> None:
    """A page for each data set; those of data sets that left the study are removed."""
    make_folder(folder)
    views = set_views(pages.study, boards)
    for view in views:
        pictures = _curves(boards[0].comparison, view.name, pages.looks, pages.study.baselines)
        write_text(folder / view.file, pages.of_set(view=view, pictures=pictures))
    for old in folder.glob("*.html"):
        if old.name not in {view.file for view in views}:
            old.unlink()


def _rank_figures(boards: Sequence[Leaderboard], looks: dict[str, Look]) -> dict[str, Picture]:
    tests = {f"ACC, {TITLES[board.tuning].lower()}": board.ranks() for board in boards}
    tested = {title: test for title, test in tests.items() if not test.not_tested}
    picture = critical_differences(tested, looks) if tested else None
    return {} if picture is None else {picture.name: picture}


def _curves(
    comparison: Comparison, data: str, looks: dict[str, Look], baselines: Collection[str]
) -> dict[str, Picture]:
    """ACC against k on one data set: of many methods, the best are named."""
    alone = replace(comparison, data=(data,))
    curves = {method: alone.curve(data, method, "acc") for method in alone.methods}
    means = {method: fmean(curve.values()) for method, curve in curves.items() if curve}
    if not means:
        return {}
    always = {method for method in means if method in baselines or looks[method].on_top}
    others = sorted((m for m in means if m not in always), key=lambda m: means[m], reverse=True)
    faint = others[MOST_NAMED:] if len(others) > MOST_NAMED + 1 else []
    label = "ACC against the number of features, default settings"
    return {"against-k": against_k(alone, "acc", looks, "against-k", label, faint)}
