"""Studies: many methods on many tables, scored by clustering, with a report.

`specification` (what to run) -> `plan` (tasks) -> `runner` and `worker` (outcomes, kept in `store`)
-> `scores`, `ranks`, `growth` (data frames) -> `tables`, `figures`, `page`, `leaderboard`.
`commands` are the commands; `paper_claims` checks what the SPCAFS paper claims.
"""

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keepers_studies.scores import StudyResults
    from keepers_studies.specification import StudySpec

__all__ = ["run", "write_report"]


def run(
    spec: "StudySpec | Mapping[str, Any] | str | PathLike[str]",
    folder: str | PathLike[str],
    *,
    n_jobs: int = 1,
    on_progress: Callable[[int, int, str], None] = lambda done, total, last: None,
    report: bool = True,
    earlier: str | PathLike[str] | None = None,
    retry_failed: bool = False,
    run_missing: bool = True,
) -> "StudyResults":
    """Run or resume a study, and write its tables, figures and report.

    ``spec`` is the name of a study ("paper", "quick", "suite", "fseval"), the path of a TOML file,
    or the content of one as a mapping. ``folder`` is new, empty, or one in which a study has run
    before: finished fits are not run again. Results of an ``earlier`` run (its folder,
    ``results.sqlite`` or ``results.jsonl.xz``) are copied. ``on_progress`` is called with the
    number of finished tasks, the number of all, and the last one in words.

    The results are data frames: ``fits`` has a row for every fit and k, ``tuned.scores`` and
    ``default.scores`` the scores by data set, method and k, ``timing`` the seconds.
    """
    from keepers_studies.runner import run_study
    from keepers_studies.scores import StudyResults
    from keepers_studies.specification import as_spec
    from keepers_studies.store import PACKED, STORE, Store

    place, study = Path(folder), as_spec(spec)

    def run_part(part: "StudySpec", name: str, **of_the_store: Any) -> Any:
        def show(done: int, total: int, last: str) -> None:
            on_progress(done, total, f"{name}{last}")

        settings: Any = {"n_jobs": n_jobs, "run_missing": run_missing, **of_the_store}
        return run_study(part, place, on_progress=show, **settings)

    # Equal fits of the readings are shared: all are in one store.
    main = run_part(study, "", retry_unsuccessful=retry_failed, earlier=earlier and Path(earlier))
    readings = {
        r.name: StudyResults(run_part(study.under(r), f"{r.name}: ")) for r in study.readings
    }
    with Store(place / STORE) as store:
        store.write_packed(place / PACKED)
    results = StudyResults(main, readings=readings)
    if report:
        write_report(results, place)
    return results


def write_report(study: "StudyResults", folder: Path) -> Path:
    """Write the tables, figures and page of a study; returns the page."""
    if study.spec.page == "leaderboard":
        from keepers_studies.leaderboard import write_leaderboard

        return write_leaderboard(study, folder)
    from keepers_studies.page import write_study

    return write_study(study, folder)
