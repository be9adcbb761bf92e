"""`explain`: every column of a table with a verdict and the reason for it."""

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from keepers._tables import AsTable
from keepers.exceptions import KeepersWarning
from keepers.methods.auto import AutoSelector
from keepers.methods.auto_steps import FEWEST_SAMPLES
from keepers.prepare.check import TableCheck, check_facts
from keepers.prepare.kinds import Kind, TableFacts
from keepers.prepare.preparer import TablePreparer
from keepers.reports.html import draw_map, map_order
from keepers.reports.selection import (
    Feature,
    Selection,
    correlation_matrix,
    describe_fit,
    display_name,
    r_text,
)
from keepers.tables.objects import table_of_object
from keepers.tables.table import Table

__all__ = ["Explanation", "explain"]

UNRELATED, UNUSABLE, LOWER = "unrelated to the rest", "unusable", "not needed"
MOST_SHOWN = 100
_IN_THE_TABLE = (
    *("identifiers", "dates", "empty columns", "free text", "constant columns"),
    *("categories", "duplicates", "near duplicates", "units", "repeated rows"),
)
"""Findings of the check that are left out: verdicts repeat them, or they do not matter here."""
_STYLE = """
.keepers-explain { max-width: 960px; font-size: 14px; line-height: 1.45; overflow-x: auto; }
.keepers-explain .answer { font-size: 18px; font-weight: 600; margin: 4px 0; }
.keepers-explain ul { margin: 4px 0; padding-left: 1.2em; }
.keepers-explain table { border-collapse: collapse; margin: 8px 0; }
.keepers-explain th, .keepers-explain td { padding: 3px 10px 3px 0; border-bottom: 1px solid #8884;
  text-align: left; vertical-align: top; overflow-wrap: anywhere; background: none; }
.keepers-explain td { min-width: 9.5em; }
.keepers-explain td + td { min-width: 5.5em; }
.keepers-explain .keep td:first-child { font-weight: 600; }
.keepers-explain .keep td:nth-child(2) { color: #3b82c4; }
.keepers-explain svg { max-width: none; width: var(--natural); height: auto; display: block; }
.keepers-explain .label { fill: currentColor; font-size: 11px; }
.keepers-explain .cells { image-rendering: pixelated; }
"""


@dataclass(frozen=True)
class ColumnVerdict:
    """The verdict on one column, with its reason."""

    column: str
    verdict: str
    """"keep", "same as ...", "unrelated to the rest", "unusable"; in tables of more than 100
    columns also "not needed"."""
    why: str
    r: float = float("nan")
    """Correlation with ``nearest``; NaN if there is none. That of a category is not negative."""
    nearest: str | None = None
    """The kept column that this one resembles most."""
    share_of_halves: float = float("nan")
    """Share of the half-samples that keep it too; NaN if it is not kept, or was not measured."""


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(AsTable):
    """The result of `explain`; a notebook shows it as a table with a picture."""

    verdicts: tuple[ColumnVerdict, ...]
    """Every column: those to keep best first, then the others."""
    check: TableCheck
    """A summary of the table."""
    selector: AutoSelector
    """The fitted selector."""
    selection: Selection

    @property
    def kept(self) -> list[str]:
        """Names of the columns to keep, best first."""
        return [each.column for each in self.verdicts if each.verdict == "keep"]

    @property
    def table(self) -> Any:
        """The verdicts as a pandas data frame, one row per column."""
        return self.to_frame()

    def rows(self) -> list[dict[str, Any]]:
        """The verdicts, one dict each."""
        return [vars(each) for each in self.verdicts]

    @property
    def summary(self) -> str:
        """The verdicts counted."""
        counts = Counter(each.verdict.split(" as ")[0] for each in self.verdicts)
        words = {"same": "the same as a kept one"}
        others = [f"{n:,} {words.get(what, what)}" for what, n in counts.items() if what != "keep"]
        answer = f"Keep {len(self.kept):,} of {len(self.verdicts):,} columns"
        return f"{answer}. The others: {', '.join(others)}." if others else f"{answer}."

    @property
    def findings(self) -> list[str]:
        """How sure the answer is, and what the check found beyond the verdicts."""
        notes = self.selection.notes
        none = [] if notes.structure_found else [f"{str(notes.summary).partition('; all')[0]}."]
        checked = [each for each in self.check.findings if each.about not in _IN_THE_TABLE]
        return [*none, *notes.how_sure, *notes.doubts, *(each.sentence for each in checked)]

    def __repr__(self) -> str:
        return f"<Explanation: keep {len(self.kept)} of {len(self.verdicts)} columns>"

    def _cells(self) -> list[tuple[str, str, str]]:
        first, rest = self.verdicts[:MOST_SHOWN], len(self.verdicts) - MOST_SHOWN
        cells = [(display_name(v.column), display_name(v.verdict), v.why) for v in first]
        return [*cells, (f"{rest:,} more columns", "", ".table has them")] if rest > 0 else cells

    def __str__(self) -> str:
        cells = [("column", "verdict", "why"), *self._cells()]
        wide = [max(len(row[at]) for row in cells) for at in (0, 1)]
        lines = [f"{row[0]:<{wide[0]}}  {row[1]:<{wide[1]}}  {row[2]}".rstrip() for row in cells]
        findings = [f"- {finding}" for finding in self.findings]
        return "\n".join([self.summary, self.check.summary, *findings, "", *lines])

    def _repr_html_(self) -> str:
        """Answer, check, table and picture; names are escaped, as a notebook runs what it shows."""
        body = ""
        for row in self._cells():
            kind = ' class="keep"' if row[1] == "keep" else ""
            body += f"<tr{kind}>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        parts = [
            f'<p class="answer">{escape(self.summary)}</p><p>{escape(self.check.summary)}</p>',
            f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in self.findings)}</ul>",
            "<table><thead><tr><th>column</th><th>verdict</th><th>why</th></tr></thead>",
            f"<tbody>{body}</tbody></table>",
            self._picture(),
        ]
        return f'<div class="keepers-explain"><style>{_STYLE}</style>{"".join(parts)}</div>'

    def _picture(self) -> str:
        """The correlations of the first columns that vary, similar ones side by side."""
        columns = self.selection.order[:MOST_SHOWN]
        r = correlation_matrix(self.selection.X, self.selection.moments, columns)
        order = map_order(r)
        if not len(order):
            return ""
        names, kept = self.selection.feature_names[columns[order]], set(self.kept)
        labels = [f"{name} ✓" if name in kept else str(name) for name in names]
        note = "Correlations: the stronger the colour, the larger |r|. ✓ marks columns to keep."
        return f"<p>{note}</p>{draw_map(r[np.ix_(order, order)], labels)[0]}"


def explain(
    X: Any,
    *,
    kinds: Mapping[str, Kind] | None = None,
    name: str = "table",
    random_state: int | None = 0,
) -> Explanation:
    """Give every column of a table a verdict: keep, a copy of another, unrelated, or unusable.

    Every column gets one verdict:

    - "keep": it carries structure, and is not a copy of a better column;
    - "same as ...": its absolute correlation with a better column is 0.95 or more;
    - "unrelated to the rest": neighbouring samples agree on it no more than chance;
    - "unusable": identifiers, dates, free text, constants, too few values.

    `AutoSelector` does the work, after `TablePreparer` has turned text into numbers; missing values
    stay missing. In tables of more than 100 columns that vary, `AutoSelector` keeps no more than
    preserve the neighbours of the samples, and the others are "not needed".

    Parameters
    ----------
    X : data frame, array, sparse matrix or Table
        The table, as you have it.
    kinds : dict of str to str or None
        Kinds of columns by name, to override what is found, as in `TablePreparer`.
    name : str
        Name of the table in the text.
    random_state : int or None
        As in `AutoSelector`.

    Returns
    -------
    Explanation
        ``kept`` lists the columns to keep. ``table`` is a data frame with one row per column
        (verdict, why, r, nearest, share_of_halves). ``str()`` shows it as text, and a notebook as
        HTML with a picture.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from keepers import explain
    >>> rng = np.random.default_rng(0)
    >>> state = rng.integers(3, size=300)  # of a pump: off, slow, fast
    >>> sensors = pd.DataFrame({
    ...     "id": range(300),
    ...     "pressure": np.array([0.0, 4.0, 9.0])[state] + rng.standard_normal(300),
    ...     "flow": np.array([0.0, 5.0, 6.0])[state] + rng.standard_normal(300),
    ...     "vibration": np.array([0.0, 1.0, 6.0])[state] + rng.standard_normal(300),
    ...     "noise": rng.standard_normal(300),
    ... })
    >>> sensors["pressure_psi"] = 14.5 * sensors["pressure"]
    >>> found = explain(sensors)
    >>> sorted(found.kept)
    ['flow', 'pressure', 'vibration']
    >>> found.table[["column", "verdict"]].to_numpy().tolist()[3:]
    [['pressure_psi', 'same as pressure'], ['noise', 'unrelated to the rest'], ['id', 'unusable']]
    """
    source = table_of_object(X, name=name)
    facts = TableFacts.of(source)
    preparer = TablePreparer(missing="keep", kinds=kinds).fit_facts(facts)
    values, names = preparer.prepare(source, first_row=0).values, preparer.get_feature_names_out()
    selector = AutoSelector(random_state=random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)  # the verdicts say it
        selector.fit(Table(values, names))
    selection = describe_fit(selector, values, names, source=name, preparer=preparer)
    found = [_judge(feature, selection) for feature in selection.features]
    found += [ColumnVerdict(n, UNUSABLE, why) for n, why in preparer.set_aside_.items()]
    places = {"keep": 0, LOWER: 2, UNRELATED: 3, UNUSABLE: 4}
    found.sort(key=lambda each: places.get(each.verdict, 1))
    return Explanation(tuple(found), check_facts(facts, kinds), selector, selection)


def _judge(feature: Feature, selection: Selection) -> ColumnVerdict:
    """The verdict on a feature; where none carries structure, the selector keeps all of them."""
    name, near = feature.name, feature.neighbour
    r = feature.correlation if feature.signed else abs(feature.correlation)
    selector, column = selection.selector, feature.column
    if feature.variance == 0.0:
        return ColumnVerdict(name, UNUSABLE, "constant")
    if np.isnan(selector.smoothness_[column]):
        return ColumnVerdict(name, UNUSABLE, f"too few values: {feature.n_observed} observed")
    if selector.n_rows_used_ < FEWEST_SAMPLES:
        return ColumnVerdict(name, UNUSABLE, "too few samples to tell", r, near)
    if not selector.carries_structure_[column]:
        closest = "" if near is None else f" (closest: {near}, r = {r_text(r, feature.signed)})"
        why = f"similar samples agree on it no more than by chance{closest}"
        return ColumnVerdict(name, UNRELATED, why, r, near)
    if feature.reason is None:
        share = feature.share_of_halves
        return ColumnVerdict(name, "keep", feature.why, r, near, np.nan if share is None else share)
    if feature.reason == "redundant":
        return ColumnVerdict(name, f"same as {near}", f"r = {r_text(r, feature.signed)}", r, near)
    return ColumnVerdict(name, LOWER, feature.why, r, near)
