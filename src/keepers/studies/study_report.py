"""The report of a study on disk: its tables, its figures, and one HTML file that works offline."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from keepers._packages import optional
from keepers.studies import formatting
from keepers.studies.csv_tables import write_tables
from keepers.studies.drawing import Picture, looks_of, our_style, save, style_variables
from keepers.studies.latex_tables import write_latex
from keepers.studies.paper_claims import ClaimReadings, claims_by_reading, judge_claims
from keepers.studies.paper_claims.claim import Claim
from keepers.studies.report_content import report_content
from keepers.studies.results import StudyResults
from keepers.studies.scores import MEASURES
from keepers.studies.store import write_text
from keepers.studies.study_figures import draw_figures

_FILTERS = ("number", "points", "probability", "seconds", "settings", "short", "slug", "value")


def write_study(study: StudyResults, folder: Path) -> Path:
    """Write tables, ``figures/`` and ``index.html`` into a folder.

    Parameters
    ----------
    study : StudyResults
        What has not run yet is shown as missing.
    folder : Path
        New, empty, or the folder of an earlier report, whose files are replaced.

    Returns
    -------
    Path
        ``folder/index.html``, which needs no other file.
    """
    for package in ("matplotlib", "jinja2"):
        optional(package, "Reports")
    claims, readings = judge_claims(study), claims_by_reading(study)
    write_tables(study, claims, folder, readings)
    write_latex(study, readings, folder / "latex")
    with our_style():
        pictures = draw_figures(study)
        for picture in pictures.values():
            save(picture, folder / "figures")
    page = folder / "index.html"
    write_text(page, _render_html(study, claims, readings, pictures))
    return page


def _render_html(
    study: StudyResults,
    claims: Sequence[Claim],
    readings: Sequence[ClaimReadings],
    pictures: Mapping[str, Picture],
) -> str:
    """The report as HTML; the same for the same study."""
    environment = page_environment()
    html: str = environment.get_template("study.html.jinja").render(
        **report_content(study, claims, readings),
        measures=MEASURES,
        baselines=study.baselines,
        leading={t for t, look in looks_of(study.run.spec).items() if look.on_top},
        pictures=pictures,
        style=page_style(),
    )
    return html


def page_environment() -> Any:
    """Where the templates of studies are rendered: names are escaped, nothing may be undefined."""
    jinja2 = optional("jinja2", "Reports")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(read_template),
    )
    environment.filters.update({name: getattr(formatting, name) for name in _FILTERS})
    return environment


def page_style() -> str:
    """The style sheet of studies, with the colours of figures in both themes."""
    return read_template("study.css") + _colours()


def _colours() -> str:
    light, dark = (
        " ".join(f"{name}: {colour};" for name, colour in variables.items())
        for variables in style_variables()
    )
    return (
        f":root {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
    )


def read_template(name: str) -> str:
    """A file of the folder templates."""
    folder = files("keepers.studies") / "templates"
    return (folder / name).read_text(encoding="utf-8").replace("\r\n", "\n")
