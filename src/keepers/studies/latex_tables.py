"""The main tables of a study for a paper: LaTeX with the rules of the package booktabs.

Input them in a document that uses that package.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from keepers.studies.paper_claims import ClaimReadings
from keepers.studies.results import StudyResults
from keepers.studies.scores import MEASURES
from keepers.studies.store import make_folder, write_text

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: "\\" + character for character in "&%$#_{}"},
}
_MARKS = {"holds": "yes", "does not hold here": "no", "cannot be tested": "--"}


def write_latex(study: StudyResults, readings: Sequence[ClaimReadings], folder: Path) -> None:
    """Write a .tex file for each tuning and measure, and one of the claims under every reading."""
    make_folder(folder)
    for tuning, comparison in study.by_tuning:
        for measure in MEASURES:
            text = score_table(comparison.table(measure, "mean"), list(comparison.data))
            write_text(folder / f"{measure}-{tuning}.tex", text)
    if readings:
        write_text(folder / "claims.tex", _claims_table(readings))


def score_table(cells: Mapping[str, Mapping[str, float | None]], data: Sequence[str]) -> str:
    r"""Method x data set, the best of each column in bold; no number where there is none.

    Examples
    --------
    >>> print(score_table({"A_1": {"x": 0.5}, "B": {"x": None}}, ["x"]), end="")
    \begin{tabular}{lr}
    \toprule
    method & x \\
    \midrule
    A\_1 & \textbf{0.500} \\
    B & -- \\
    \bottomrule
    \end{tabular}
    """
    best = {
        name: max((v for row in cells.values() if (v := row[name]) is not None), default=None)
        for name in data
    }
    rows = [
        [escape(method), *(_number(row[name], best[name]) for name in data)]
        for method, row in cells.items()
    ]
    return _tabular("l" + "r" * len(data), ["method", *map(escape, data)], rows)


def escape(text: str) -> str:
    """Text as LaTeX shows it, whatever characters it has."""
    return re.sub(r"[\\~^&%$#_{}]", lambda found: _SPECIAL[found[0]], text)


def _number(value: float | None, best: float | None) -> str:
    if value is None:
        return "--"
    return rf"\textbf{{{value:.3f}}}" if value == best else f"{value:.3f}"


def _claims_table(readings: Sequence[ClaimReadings]) -> str:
    names = list(readings[0].by_reading)
    rows = [
        [escape(claim.id), *(_MARKS[claim.verdicts[name]] for name in names)] for claim in readings
    ]
    return _tabular("l" + "c" * len(names), ["claim", *map(escape, names)], rows)


def _tabular(columns: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"
