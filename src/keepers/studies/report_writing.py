"""A study on disk: its tables, its figures, its page."""

from pathlib import Path

from keepers._optional import optional
from keepers.studies.atomic import write_text
from keepers.studies.csv_tables import write_tables
from keepers.studies.drawing import save
from keepers.studies.paper_claims.judging import Evidence, judge_claims
from keepers.studies.pictures import draw_all
from keepers.studies.runner import StudyRun
from keepers.studies.study_report import render

__all__ = ["write_study"]


def write_study(run: StudyRun, folder: Path) -> Path:
    """Write tables, ``figures/`` and ``index.html`` into a folder; where the page is.

    Parameters
    ----------
    run : StudyRun
        What `run_study` returned. What has not run yet is shown as missing.
    folder : Path
        New, empty, or the folder of an earlier report, whose files are replaced, each at once.

    Returns
    -------
    Path
        ``folder/index.html``, which needs nothing but itself.
    """
    optional("matplotlib", "Reports")
    optional("jinja2", "Reports")
    evidence = Evidence(run)
    claims = judge_claims(evidence)
    write_tables(evidence, claims, folder)
    pictures = draw_all(evidence)
    for picture in pictures.values():
        save(picture, folder / "figures")
    page = folder / "index.html"
    write_text(page, render(evidence, claims, pictures))
    return page
