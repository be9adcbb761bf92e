"""Two selections from one table, side by side: what both keep, and what only one of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np

from keepers._protocols import IndexArray
from keepers.exceptions import ParameterError
from keepers.linalg.correlation import ColumnCorrelations
from keepers.reporting import report_parts
from keepers.reporting.first_paragraph import answer_of
from keepers.reporting.kept_values import Histogram, histograms
from keepers.reporting.selection_figures import COLOURS, draw_plane
from keepers.reporting.selection_summary import (
    Classes,
    Plane,
    classes_of,
    readable,
    thin_out,
    today,
    weighed_planes,
)
from keepers.selection import COPY, Selection, as_texts

MOST_LISTED = 200
_AT_ONCE = 256


@dataclass(frozen=True)
class ComparedFeature:
    """A feature that one or both selections keep."""

    name: str
    ranks: tuple[int, int]
    """In the first and in the second selection."""
    histogram: Histogram
    nearest: str | None = None
    """What the other selection keeps that is most correlated with it, if it does not keep it."""
    correlation: float = float("nan")


@dataclass(frozen=True)
class Comparison:
    """What two selections share, and what not."""

    selections: tuple[Selection, Selection]
    called: tuple[str, str]
    title: str
    made_on: date
    answers: tuple[str, str]
    both: tuple[ComparedFeature, ...]
    only: tuple[tuple[ComparedFeature, ...], tuple[ComparedFeature, ...]]
    n_by_chance: float
    """Features that two random selections of these sizes would share, on average."""
    planes: tuple[Plane, Plane] | None
    samples: IndexArray
    classes: Classes | None

    @property
    def n_copies(self) -> tuple[int, int]:
        """Of what only one keeps, how many have a copy in the other."""
        first, second = (
            sum(abs(feature.correlation) >= COPY for feature in only) for only in self.only
        )
        return first, second


@dataclass(frozen=True)
class ComparisonReport(report_parts.HtmlReport):
    """A report on two selections from one table: save it, or let a notebook show it."""

    comparison: Comparison

    @cached_property
    def html(self) -> str:
        """The whole report, one HTML file that needs no other."""
        return render(self.comparison)

    def __repr__(self) -> str:
        first, second = self.comparison.called
        return (
            f"<ComparisonReport: {first} and {second}, {len(self.comparison.both)} features in "
            "both; .save('report.html') writes it>"
        )


def compare(
    selections: Sequence[Selection], labels: Any = None, title: str | None = None
) -> Comparison:
    """Compare two selections from the same table."""
    first, second = selections
    kept = [selection.order[: selection.k] for selection in selections]
    shared = np.intersect1d(kept[0], kept[1])
    ranks = np.array([np.argsort(selection.order) + 1 for selection in selections])
    tagged = None
    if labels is not None:
        tagged = as_texts("labels", labels, first.X.shape[0], "sample")
    called = _call(first, second)
    planes = [weighed_planes(selection) for selection in selections]
    thin = [thin_out(each) for each in planes if each is not None]
    return Comparison(
        selections=(first, second),
        called=called,
        title=title or "Two selections compared",
        made_on=today(),
        answers=(answer_of(first, called[0]), answer_of(second, called[1])),
        both=_features(
            first, shared[np.argsort(ranks[:, shared].sum(axis=0), kind="stable")], ranks
        ),
        only=(
            _only(first, np.setdiff1d(kept[0], shared), second, ranks, 0),
            _only(second, np.setdiff1d(kept[1], shared), first, ranks, 1),
        ),
        n_by_chance=first.k * second.k / first.n_features,
        planes=(thin[0].after, thin[1].after) if len(thin) == 2 else None,
        samples=thin[0].samples if thin else np.empty(0, dtype=np.intp),
        classes=None if tagged is None else classes_of(tagged),
    )


def _features(
    selection: Selection,
    columns: IndexArray,
    ranks: IndexArray,
    nearest: Mapping[int, tuple[str, float]] | None = None,
) -> tuple[ComparedFeature, ...]:
    return tuple(
        ComparedFeature(
            str(selection.feature_names[column]),
            (int(ranks[0, column]), int(ranks[1, column])),
            bars,
            *(nearest or {}).get(int(column), ()),
        )
        for column, bars in zip(columns, histograms(selection.X, columns), strict=True)
    )


def _only(
    selection: Selection, columns: IndexArray, other: Selection, ranks: IndexArray, which: int
) -> tuple[ComparedFeature, ...]:
    """What only one selection keeps, best first, with what the other keeps that is most like it."""
    columns = columns[np.argsort(ranks[which, columns], kind="stable")]
    kept = other.order[: other.k]
    kept = kept[other.variances[kept] > 0.0]
    correlations = ColumnCorrelations(selection.X, selection.moments)
    varies = columns[selection.variances[columns] > 0.0]
    nearest: dict[int, tuple[str, float]] = {}
    for start in range(0, len(varies) if len(kept) else 0, _AT_ONCE):
        block = varies[start : start + _AT_ONCE]
        r = correlations.between(block, kept)
        closest = np.argmax(np.round(np.abs(r), 12), axis=1)
        for column, at, its_r in zip(block, closest, r, strict=True):
            nearest[int(column)] = (str(other.feature_names[kept[at]]), float(its_r[at]))
    return _features(selection, columns, ranks, nearest)


def _call(first: Selection, second: Selection) -> tuple[str, str]:
    """Names that tell two selections apart: the methods, else the settings that differ."""
    if first.method != second.method:
        return first.method, second.method
    differ = [
        name
        for name in first.settings
        if readable(first.settings[name]) != readable(second.settings.get(name))
    ]
    if not differ:
        return f"{first.method} (first)", f"{second.method} (second)"
    one, other = (
        ", ".join(f"{name}={readable(selection.settings[name])}" for name in differ[:3])
        for selection in (first, second)
    )
    return f"{first.method} ({one})", f"{second.method} ({other})"


def render(comparison: Comparison) -> str:
    """The report as text."""
    planes: tuple[str, ...] = ()
    if comparison.planes is not None:
        classes, samples = comparison.classes, comparison.samples
        colour_of = np.zeros(len(samples), dtype=np.intp)
        if classes is not None:
            colour_of = classes.colour_of[samples]
        shared = classes is not None and classes.n_sharing > 0
        with report_parts.clean_style():
            planes = tuple(
                draw_plane(name, plane, colour_of, shared).svg
                for name, plane in zip(("first", "second"), comparison.planes, strict=True)
            )
    return report_parts.fill_template(
        "comparison.html.jinja",
        comparison=comparison,
        planes=planes,
        colours=COLOURS,
        most=MOST_LISTED,
        style=report_parts.template("selection.css"),
    )


def refuse_more_than_two(selectors: Sequence[Any], unused: dict[str, Any]) -> None:
    """Raise unless there are two selectors, and nothing was given that only one can have."""
    if len(selectors) != 2:
        raise ParameterError(
            f"A comparison takes two fitted selectors, keepers.report([a, b], X); got "
            f"{len(selectors)}."
        )
    given = [name for name, value in unused.items() if value is not None]
    if given:
        raise ParameterError(
            f"A report on two selections does not show {', '.join(given)}. Leave that out, or "
            "report on each selector."
        )
