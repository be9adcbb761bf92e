"""The report of a study: its tables, its figures, and one HTML file that works offline."""

import base64
from pathlib import Path
from typing import Any, get_args

import jinja2
import pandas as pd
from markupsafe import Markup

from keepers_studies.figures import Pictures, draw_study
from keepers_studies.formatting import seconds, short, table_html
from keepers_studies.paper_claims import best_reading, claims_by_reading, judge_claims
from keepers_studies.paper_claims.claim import Verdict
from keepers_studies.scores import MEASURES, RANDOM, Comparison, StudyResults
from keepers_studies.store import write_text
from keepers_studies.tables import data_sets, reduced_grids, write_tables


def write_study(study: StudyResults, folder: Path) -> Path:
    """Write tables, ``figures/`` and ``index.html`` into a results folder; returns the page.

    Files of an earlier report are replaced. What has not run yet is shown as missing.
    """
    claims, readings = judge_claims(study), claims_by_reading(study)
    write_tables(study, claims, readings, folder)
    pictures = draw_study(study, folder / "figures")
    marked = marked_rows(study)
    page = render(
        "study.html.jinja",
        study,
        pictures,
        sentences=headline(study),
        claims=claims,
        verdicts={v: sum(claim.verdict == v for claim in claims) for v in get_args(Verdict)},
        readings=_readings_table(readings, {claim.id: claim.claim for claim in claims}),
        best_reading=best_reading(readings),
        data=table_html(data_sets(study)),
        overview={
            f"{measure.upper()}, {tuning}": table_html(
                comparison.means(measure).rename_axis("method").reset_index(), None, marked
            )
            for measure in MEASURES
            for tuning, comparison in study.by_tuning.items()
            if comparison.methods
        },
        tests={f"{m.upper()}, {tuning}": test for (tuning, m), test in study.ranks.items()},
        sweeps={
            f"sweep-{place}": f"{sweep.method}: {sweep.name}"
            for place, sweep in enumerate(study.spec.sweeps, start=1)
        },
        timing=table_html(study.timing, {"fit_seconds": seconds, "kmeans_seconds": seconds}),
    )
    write_text(folder / "index.html", page)
    return folder / "index.html"


def render(template: str, study: StudyResults, pictures: Pictures, **content: Any) -> str:
    """A page from a template: names are escaped, nothing may be undefined."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.PackageLoader("keepers_studies", "templates"),
    )
    environment.filters.update(short=short, seconds=seconds)
    encoded = {name: base64.b64encode(svg).decode() for name, svg in pictures.items()}
    n_missing, n_tasks = study.unfinished
    reduced = reduced_grids(study)
    shared = {
        "spec": study.spec,
        "runs": study.run.runs,
        "n_missing": n_missing,
        "n_tasks": n_tasks,
        "pictures": encoded,
        "reduced": table_html(reduced) if len(reduced) else "",
        "failures": table_html(study.failures) if len(study.failures) else "",
    }
    return str(environment.get_template(template).render(**shared, **content))


def marked_rows(study: StudyResults) -> dict[str, str]:
    """Classes of the style sheet for the rows of baselines and of the highlighted method."""
    leading = study.title_of(study.spec.highlight)
    marked = dict.fromkeys(study.baselines, "baseline")
    return marked | ({leading: "leading"} if leading else {})


def _readings_table(readings: pd.DataFrame, claims: dict[str, str]) -> Markup | str:
    """Claims x readings; the deciding number stands where a verdict depends on the reading."""
    if readings.empty:
        return ""
    table = readings.pivot(index="id", columns="reading", values="verdict")
    table = table.loc[list(claims), list(dict.fromkeys(readings.reading))]
    depends = table.eq("holds").any(axis=1) & table.eq("does not hold here").any(axis=1)
    count = table.eq("holds").sum().astype(str).to_frame("claims that hold").T
    marked = {claims[id]: "leading" for id in table.index[depends]}
    table = pd.concat([table.rename(index=claims), count])
    return table_html(table.rename_axis("claim").reset_index(), None, marked)


def count(amount: int, word: str) -> str:
    """A number and its noun."""
    return f"{amount} {word}" if amount == 1 else f"{amount} {word}s"


def headline(study: StudyResults) -> list[str]:
    """The protocol and the main results, in plain sentences."""
    ks = sorted(study.spec.ks)
    range_of_k = f"{ks[0]} to {ks[-1]}" if len(ks) > 1 else ks[0] if ks else "some"
    methods = [title for title in study.spec.methods_by_title if title not in study.baselines]
    sentences = [
        f"{count(len(methods), 'method')} and the baselines chose {range_of_k} features of "
        f"{count(len(study.run.tables), 'data set')}; k-means then clustered the samples by the "
        f"chosen features alone, {count(study.spec.repeats, 'time')}, into as many clusters as "
        "there are classes, and the clusters were compared with the classes (ACC, NMI)."
    ]
    names = {"tuned": "Tuned", "default": "With default settings"}
    for tuning, comparison in study.by_tuning.items():
        sentences += _leaders(names[tuning], comparison)
        gains = comparison.gains(study.title_of(RANDOM), "acc").reindex(methods)
        if n_cases := int(gains.notna().sum().sum()):
            lost = int((gains <= 0).sum().sum())
            sentences.append(
                f"Random selection does as well or better in {lost} of {n_cases} cases."
            )
    return sentences


def _leaders(tuning: str, comparison: Comparison) -> list[str]:
    """The methods with the highest mean ACC, and on how many data sets, baselines included."""
    means = comparison.means("acc").round(6)
    means = means.loc[:, means.notna().sum() >= 2]
    wins = means.eq(means.max()).sum(axis=1).sort_values(ascending=False, kind="stable")
    listed = ", ".join(f"{short(method)} on {n}" for method, n in wins[wins > 0].items())
    if not listed:
        return []
    n_data = count(means.shape[1], "data set")
    return [f"{tuning}, the highest ACC (mean over k) is that of {listed} of {n_data}."]
