"""A whole study: its fits, once more under each reading of the values, its tables and its page."""

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from keepers.exceptions import ParameterError
from keepers.studies.leaderboard_page import write_leaderboard
from keepers.studies.packed_results import PACKED, write_packed
from keepers.studies.results import StudyResults
from keepers.studies.runner import ReportProgress, run_study
from keepers.studies.specification import StudySpec, describe_faults, find_study, read_spec
from keepers.studies.store import STORE, Store
from keepers.studies.study_report import write_study

AnySpec = StudySpec | Mapping[str, Any] | str | PathLike[str]


def run_whole_study(
    spec: AnySpec,
    folder: str | PathLike[str],
    *,
    n_jobs: int = 1,
    on_progress: Callable[[int, int, str], None] | None = None,
    report: bool = True,
    earlier: str | PathLike[str] | None = None,
) -> StudyResults:
    """Run what is missing, under every reading, and write what `keepers reproduce` writes."""
    place = Path(folder)
    study = run_with_readings(
        as_spec(spec),
        place,
        n_jobs=n_jobs,
        on_progress=on_progress,
        earlier=None if earlier is None else Path(earlier),
    )
    if report:
        write_report(study, place)
    return study


def write_report(study: StudyResults, folder: Path) -> Path:
    """The tables, figures and page of a study, of the kind that its specification names."""
    is_board = study.run.spec.page == "leaderboard"
    return write_leaderboard(study, folder) if is_board else write_study(study, folder)


def run_with_readings(
    spec: StudySpec,
    folder: Path,
    *,
    n_jobs: int = 1,
    on_progress: ReportProgress | None = None,
    retry_unsuccessful: bool = False,
    earlier: Path | None = None,
    run_missing: bool = True,
) -> StudyResults:
    """The study, and the same under each of its readings, in one store: equal fits are shared."""
    show = on_progress or (lambda done, total, last: None)

    def run(part: StudySpec, name: str, **of_the_store: Any) -> Any:
        return run_study(
            part,
            folder,
            n_jobs=n_jobs,
            on_progress=lambda done, total, last: show(done, total, f"{name}{last}"),
            run_missing=run_missing,
            **of_the_store,
        )

    # What concerns the store is done once, for all readings.
    main = run(spec, "", retry_unsuccessful=retry_unsuccessful, earlier=earlier)
    readings = {r.name: StudyResults(run(spec.under(r), f"{r.name}: ")) for r in spec.readings}
    with Store(folder / STORE) as store:
        write_packed(folder / PACKED, store.rows())
    return StudyResults(main, readings=readings)


def as_spec(spec: AnySpec) -> StudySpec:
    """A specification from whatever names or holds it; every fault of a mapping is named."""
    if isinstance(spec, StudySpec):
        return spec
    if not isinstance(spec, Mapping):
        return read_spec(find_study(str(spec)))
    try:
        return StudySpec.model_validate(dict(spec))
    except ValidationError as error:
        raise ParameterError(*describe_faults(error)) from None
