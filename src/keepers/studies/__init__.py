"""Studies: many methods on many tables, scored by clustering, with a report.

`specification` (what to run) -> `plan` (tasks) -> `runner` and `worker` (outcomes, kept in `store`)
-> `scores`, `rank_tests` and `cost`, gathered in `results` -> `csv_tables`, `latex_tables`,
`study_figures`, `study_report` and `leaderboard`. `commands` are the commands; `paper_claims`
checks what the SPCAFS paper claims. `run` is all of it from Python.
"""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keepers.studies.results import StudyResults
    from keepers.studies.specification import StudySpec

__all__ = ["run"]


def run(
    spec: "StudySpec | Mapping[str, Any] | str | PathLike[str]",
    folder: str | PathLike[str],
    *,
    n_jobs: int = 1,
    on_progress: Callable[[int, int, str], None] | None = None,
    report: bool = True,
    earlier: str | PathLike[str] | None = None,
) -> "StudyResults":
    """Run or resume a study, and write its tables, figures and report.

    Parameters
    ----------
    spec : str, path, mapping or StudySpec
        A study that comes with keepers ("paper", "quick", "suite"), the path of a TOML file, or the
        content of one as a mapping.
    folder : str or path
        New, empty, or one in which a study has run before: finished fits are not run again.
    n_jobs : int, default=1
        Processes, with one BLAS thread each.
    on_progress : callable or None, default=None
        Called with the number of finished tasks, the number of all, and the last one in words.
    report : bool, default=True
        Whether tables, figures and the page are written.
    earlier : str, path or None, default=None
        The folder of an earlier run, its ``results.sqlite`` or the ``results.jsonl.xz`` that
        somebody gave you: its results are taken over, so that
        only what is new is run.

    Returns
    -------
    StudyResults
        ``tuned`` and ``default`` hold the scores by data set, method and k, ``rows`` every fit at
        every k, ``ranks`` the tests over data sets, ``timing`` the seconds.

    Examples
    --------
    >>> from keepers.studies import run
    >>> study = {
    ...     "title": "Two methods on digits",
    ...     "ks": [5, 10],
    ...     "repeats": 3,
    ...     "data": [{"source": "digits"}],
    ...     "methods": [{"name": "variance", "default": {}}, {"name": "lapscore", "default": {}}],
    ... }
    >>> results = run(study, "digits-study", report=False)  # doctest: +SKIP
    >>> results.default.curve("digits", "LaplacianScore", "acc")  # doctest: +SKIP
    {5: 0.26..., 10: 0.33...}
    """
    from keepers.studies.study_run import run_whole_study

    return run_whole_study(
        spec, folder, n_jobs=n_jobs, on_progress=on_progress, report=report, earlier=earlier
    )
