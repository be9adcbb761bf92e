"""The features that a fitted selector kept, and why, in numbers and in words.

The terminal, ``--json``, the recipe and the report all read one `Selection` and its `Words`, so
they cannot disagree.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_array, check_is_fitted

from keepers._packages import package_versions
from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers._tables import AsTable
from keepers._wording import first_line, some_of
from keepers.exceptions import DataError, ParameterError
from keepers.linalg.correlation import (
    ROUNDING,
    ColumnCorrelations,
    Correlations,
    PairwiseCorrelations,
)
from keepers.linalg.scatter import ColumnMoments, column_moments
from keepers.methods.auto import AutoSelector
from keepers.methods.auto_steps import FEWEST_OBSERVED, SAME
from keepers.methods.base import FitNotes, RankingSelector
from keepers.methods.parameters import FeatureControl, control_of
from keepers.methods.reading import fill_gaps, named_table, table_of_moments, table_values
from keepers.methods.spcafs import InactiveRows, find_inactive_rows
from keepers.prepare.preparer import TablePreparer
from keepers.proofs.certify import Certificate
from keepers.tables.objects import flat_name, numeric_input, table_of_object

__all__ = ["Feature", "Selection", "describe_fit", "describe_selection"]

FEWEST_COMPARED, MOST_COMPARED = 200, 500
"""How far down the ranking features are compared with the kept ones: all kept ones and at least
the first 200, but never more than 500."""
_AT_ONCE = 256
_TIE = 1e-7

# Overrides and isolates can turn the text around them; marks (200E, 200F) only serve their own.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_NOT_MEASURED = (
    "We did not measure whether other samples would give the same features. StabilitySelector, in "
    "Python, measures it."
)

IN_WORDS = {
    "ranked below k": "ranked lower",
    "max_correlation": "too similar to a kept one (max_correlation)",
    "redundant": "same as a kept one",
    "no structure": "no structure beyond chance",
    "few values": "unusable (too few values)",
    "constant": "constant",
    "never_keep": "excluded",
}
REASONS = tuple(IN_WORDS)
_BEFORE_THE_NEIGHBOUR = {
    None: "closest kept:",
    "ranked below k": "ranked lower; closest kept:",
    "max_correlation": "too similar to",
    "redundant": "same as",
}


def r_text(r: float, signed: bool = True) -> str:
    """A correlation; that of a category, whose values have no order, without a sign."""
    return f"{r:+.2f}" if signed else f"{abs(r):.2f}"


@dataclass(frozen=True)
class Feature:
    """One feature of a selection."""

    column: int
    """Its place in the table."""
    name: str
    score: float
    variance: float
    """Population variance (divided by n)."""
    reason: str | None
    """Why it was dropped, one of REASONS; None if it is kept."""
    neighbour: str | None
    """The other kept feature with the largest absolute correlation; None if unknown."""
    correlation: float
    """Its correlation with that neighbour; NaN if unknown."""
    signed: bool = True
    """False with categories: the sign of their correlations means nothing."""
    n_observed: int | None = None
    """How many values the fit looked at, where it leaves out gaps."""
    share_of_halves: float | None = None
    """Share of the half-samples that keep it too; None if not measured."""
    stand_in: str | None = None
    """The feature that other half-samples keep instead; None if all keep it, or unknown."""
    stand_in_correlation: float = float("nan")

    @property
    def why(self) -> str:
        """The evidence for it, or why it was dropped."""
        if self.reason == "few values" and self.n_observed is not None:
            return f"too few values: {self.n_observed} observed"
        before = _BEFORE_THE_NEIGHBOUR.get(self.reason)
        if self.reason is not None and (self.neighbour is None or before is None):
            return IN_WORDS[self.reason]
        words = []
        if self.neighbour is not None:
            words.append(f"{before} {self.neighbour}, r = {r_text(self.correlation, self.signed)}")
        if self.share_of_halves is not None and self.stand_in is not None:
            r = r_text(self.stand_in_correlation, signed=False)
            share = f"{100 * self.share_of_halves:.0f} % of half-samples"
            words.append(f"in {share}, otherwise {self.stand_in} (r = {r})")
        return "; ".join(words)


@dataclass(frozen=True, eq=False, repr=False)
class Selection(AsTable):
    """A fitted selection. Unless noted otherwise, arrays have one entry per column of the table."""

    method: str
    """Name of the selector's class."""
    settings: Mapping[str, Any]
    """Parameters of the selector that the result depends on."""
    k: int
    """Number of kept features."""
    n_samples: int
    """Rows of the table."""
    feature_names: np.ndarray
    scores: FloatArray
    order: IndexArray
    """All columns, best first."""
    moments: ColumnMoments
    """Mean and centred sum of squares: of X, or as the fit measured them."""
    control: FeatureControl
    """Features that the settings keep, and those that they rule out."""
    source: str | None
    """Name of the table."""
    scaling: str
    """Changes of the values before the fit."""
    seconds: float | None
    """Time of the fit."""
    versions: Mapping[str, str]
    notes: FitNotes
    """The report of the method about its fit."""
    selector: Any = field(repr=False)
    X: Any = field(repr=False)
    """The values of the fit; gaps are NaN. None if they were read in blocks."""
    how_many: Literal["asked", "chosen", "half"] = "asked"
    """The origin of the number of features: the user, the method, or a default."""
    preparer: TablePreparer | None = field(default=None, repr=False)
    """The transformer that turned the columns of the table into numbers."""
    n_filled: IndexArray | None = None
    """Missing values that the selector filled; None if there were none."""

    def __repr__(self) -> str:
        held = (
            "" if self.counts_columns_alike else f", with {self.variance_share:.1%} of the variance"
        )
        return f"<Selection: {self.k} of {self.n_features} features by {self.method}{held}>"

    def rows(self) -> list[dict[str, Any]]:
        """The kept features, best first, one dict each: rank, feature, score, neighbour, ..."""
        return [
            {"rank": rank, "feature": kept.name, **vars(kept)}
            for rank, kept in enumerate(self.kept, 1)
        ]

    def _caption(self) -> str:
        return repr(self).strip("<>")

    @property
    def n_rows_used(self) -> int:
        """Number of rows that the fit used."""
        return self.notes.n_rows_used or self.n_samples

    @property
    def n_features(self) -> int:
        """Columns of the table."""
        return len(self.scores)

    @cached_property
    def variances(self) -> FloatArray:
        """Population variances; 0 for columns that are constant up to rounding.

        The fit may have measured them over more rows than are in X.
        """
        fitted = self.notes.moments
        if fitted is None or self.moments.n_samples >= min(fitted.n_samples, self.n_samples):
            fitted = self.moments
        return np.where(fitted.constant, 0.0, fitted.variance)

    @cached_property
    def categories(self) -> frozenset[str]:
        """Features that are categories: their correlations have no sign."""
        return frozenset() if self.preparer is None else self.preparer.categories()

    @property
    def columns(self) -> IndexArray:
        """The kept columns, in the order of the table."""
        return np.sort(self.order[: self.k])

    @cached_property
    def variance_share(self) -> float:
        """Variance of the kept features over that of all, as the method weighs columns."""
        varies = self.variances[self.variances > 0.0]
        weighed = np.zeros(self.n_features)
        weighed[self.variances > 0.0] = varies ** (1.0 - self.selector.column_power)
        return float(weighed[self.order[: self.k]].sum() / (weighed.sum() or 1.0))

    @property
    def counts_columns_alike(self) -> bool:
        """True if the method divides columns by their standard deviation, or X has been.

        A share of the variance is then no more than a share of the columns.
        """
        return self.selector.column_power == 1.0 or self.scaling == "standardize-features"

    @cached_property
    def nearest(self) -> tuple[IndexArray, FloatArray]:
        """For each column the other kept one with the largest |r|, and r; -1 and NaN if unknown.

        Known for the first 200 to 500 features of the ranking and those that may repeat a kept one.
        """
        near, r = np.full(self.n_features, -1), np.full(self.n_features, np.nan)
        kept, may_repeat = self.order[: self.k], np.flatnonzero(self._may_repeat)
        if self.notes.nearest_better is not None:  # what decided, over the rows of the fit
            known = may_repeat[np.isin(self.notes.nearest_better[0][may_repeat], kept)]
            near[known], r[known] = (part[known] for part in self.notes.nearest_better)
        if self.X is None:
            return near, r
        first = self.order[: min(max(self.k, FEWEST_COMPARED), MOST_COMPARED)]
        columns = np.union1d(first, may_repeat)
        columns = columns[near[columns] < 0]
        # In a table read in blocks only some rows are here: more columns may be constant in them.
        kept, columns = (part[~self.moments.constant[part]] for part in (kept, columns))
        for start in range(0, len(columns) if len(kept) else 0, _AT_ONCE):
            block = columns[start : start + _AT_ONCE]
            found = correlations_between(self.X, self.moments, block, kept)
            # Among equals the better-ranked one: rounding must not decide between exact copies.
            size = np.round(np.abs(found), 12)
            size[block[:, None] == kept] = -1.0
            at = np.argmax(size, axis=1)
            known = size[np.arange(len(block)), at] >= 0.0
            near[block] = np.where(known, kept[at], -1)
            r[block] = np.where(known, found[np.arange(len(block)), at], np.nan)
        return near, r

    @cached_property
    def _may_repeat(self) -> BoolArray:
        """Dropped columns that repeat a better one, or that score as high as a kept one."""
        notes, kept = self.notes, self.order[: self.k]
        if notes.nearest_better is not None:
            limit = SAME if notes.max_correlation is None else notes.max_correlation
            may = np.abs(np.nan_to_num(notes.nearest_better[1])) >= limit
        elif notes.max_correlation is None:
            return np.zeros(self.n_features, dtype=bool)
        else:
            earned = self.scores[kept[~self.control.must[kept]]].min(initial=np.inf)
            may = self.scores >= earned - _TIE * abs(earned)
        if notes.carries_structure is not None:
            may &= notes.carries_structure
        may[kept] = False
        return may & ~self.control.never & (self.variances > 0.0)

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """All features, best first: the kept ones, then the others."""
        names = [str(name) for name in self.feature_names]
        near, r, observed = *self.nearest, self.notes.n_observed
        found = []
        for rank, column in enumerate(self.order.tolist()):
            neighbour = None if near[column] < 0 else names[near[column]]
            found.append(
                Feature(
                    column=column,
                    name=names[column],
                    score=float(self.scores[column]),
                    variance=float(self.variances[column]),
                    reason=None if rank < self.k else self._reasons[rank - self.k],
                    neighbour=neighbour,
                    correlation=float(r[column]),
                    signed=self.categories.isdisjoint((neighbour, names[column])),
                    n_observed=None if observed is None else int(observed[column]),
                )
            )
        halves = self.notes.halves
        if halves is not None and self.k == self.selector.n_features_to_select_:
            rank_of = np.argsort(self.order)
            rows = (halves.features, halves.shares, halves.stand_ins, halves.correlations)
            for column, share, other, r_other in zip(*rows, strict=True):
                found[rank_of[column]] = replace(
                    found[rank_of[column]],
                    share_of_halves=float(share),
                    stand_in=None if other < 0 else names[other],
                    stand_in_correlation=float(r_other),
                )
        return tuple(found)

    @property
    def kept(self) -> tuple[Feature, ...]:
        """The kept features, best first."""
        return self.features[: self.k]

    @property
    def dropped(self) -> tuple[Feature, ...]:
        """The other features, best first, each with the reason."""
        return self.features[self.k :]

    def count_dropped(self) -> dict[str, int]:
        """How many features were dropped for each reason that occurs."""
        counts = Counter(self._reasons)
        return {reason: counts[reason] for reason in REASONS if counts[reason]}

    @cached_property
    def _reasons(self) -> list[str]:
        notes, size = self.notes, np.abs(self.nearest[1])
        found = np.full(self.n_features, "ranked below k", dtype=object)
        if notes.carries_structure is not None:
            found[~notes.carries_structure] = "no structure"
        if notes.max_correlation is None:
            found[self._may_repeat & (size >= SAME)] = "redundant"
        else:  # in blocks, the neighbour is not known
            below = size <= notes.max_correlation + ROUNDING
            found[self._may_repeat & ~below] = "max_correlation"
        if notes.alone is not None:  # NaN: the fit did not use the column
            found[np.isnan(notes.alone)] = "few values"
        found[self.variances == 0.0] = "constant"
        found[self.control.never] = "never_keep"
        return found[self.order[self.k :]].tolist()

    @cached_property
    def certificate(self) -> Certificate | None:
        """How near the kept features are to those that hold the most variance, with proof.

        None if the table was read in blocks.
        """
        if self.X is None or self.X.shape[0] != self.n_samples:
            return None
        # The same for the same selection, as the rest of a report is.
        seed = self.settings.get("random_state")
        read = vars(self.selector).get("_read_")  # with its scatter (``keeps_scatter``)
        found = self.selector.certificate(
            read or table_of_moments(fill_gaps(self.X, "mean"), self.moments),
            self.k,
            random_state=seed if isinstance(seed, int) else 0,
        )
        return replace(found, feature_names=np.asarray(self.feature_names, dtype=object))

    @cached_property
    def inactive(self) -> InactiveRows | None:
        """Features kept beyond the active rows of W (SPCAFS); None if there are none."""
        return find_inactive_rows(self.selector, self.order[: self.k])


def describe_selection(
    selector: Any,
    X: Any,
    *,
    feature_names: Sequence[str] | None = None,
    k: int | float | None = None,
    source: str | None = None,
) -> Selection:
    """Describe what a fitted selector keeps: which features, how redundant, and why not others.

    Parameters
    ----------
    selector : fitted selector or pipeline
        Any selector of keepers after ``fit``, or a pipeline that ends with one.
    X : table of shape (n_samples, n_features)
        The table it was fitted on: an array, data frame, sparse matrix, Table or AnnData
        object. Prepared columns (text, dates) are described by the numbers of the fit.
    feature_names : sequence of str, optional
        Names of the features; by default those the selector saw, else x0, x1, ...
    k : int, float in (0, 1] or None
        How many features, or which share, count as kept; None: the number that the selector keeps.
    source : str, optional
        Where the table came from.

    Returns
    -------
    Selection
        ``kept`` and ``dropped`` list the features, each with the reason.

    Examples
    --------
    >>> from keepers import SPCAFS, datasets, describe_selection
    >>> X, names, y = datasets.load("srbct")
    >>> selector = SPCAFS(40, n_components=3, max_correlation=0.8).fit(X)
    >>> selection = describe_selection(selector, X, feature_names=names)
    >>> selection
    <Selection: 40 of 2308 features by SPCAFS, with 21.2% of the variance>
    >>> selection.count_dropped()
    {'ranked below k': 2263, 'max_correlation': 5}
    """
    selector, X, names, preparer = fitted_to(selector, X)
    X = named_table(X)
    values, n_filled = as_matrix(table_values(X), selector.missing)
    if values.shape[1] != len(selector.scores_):
        raise DataError(
            f"X must have the {len(selector.scores_)} columns that the selector was fitted on; got "
            f"{values.shape[1]}. Pass the table of the fit."
        )
    names = names if feature_names is None else feature_names
    names = _names_of(names, selector, X, values.shape[1])
    found = describe_fit(selector, values, names, k=k, source=source, preparer=preparer)
    return replace(found, n_filled=n_filled)


def describe_fit(
    selector: Any,
    X: Any,
    feature_names: Iterable[str],
    *,
    k: int | float | None = None,
    source: str | None = None,
    scaling: str = "raw",
    seconds: float | None = None,
    n_samples: int | None = None,
    preparer: TablePreparer | None = None,
) -> Selection:
    """Describe a fit to values that have been checked.

    If it read them in blocks, X is None, or some of the rows; ``n_samples`` is then the number of
    all. The preparer is the one that made the values.
    """
    notes = selector.fit_notes()
    moments = notes.moments
    exact = moments is not None and moments.mean.dtype == np.float64
    if X is not None and not (exact and moments.n_samples == X.shape[0]):
        moments = column_moments(fill_gaps(X, "mean"))
    return Selection(
        method=type(selector).__name__,
        settings={
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in selector.get_params(deep=False).items()
            if name != "callback"
        },
        k=len(selector.top(k)),
        n_samples=n_samples or int(selector.n_samples_seen_ if X is None else X.shape[0]),
        feature_names=np.array([str(name) for name in feature_names], dtype=object),
        scores=np.asarray(selector.scores_, dtype=np.float64),
        order=np.argsort(selector.ranking_),  # all: `top` raises for features never to be kept
        moments=moments,
        control=control_of(selector, len(selector.scores_)),
        source=source,
        scaling=scaling,
        seconds=seconds,
        versions=package_versions(),
        notes=notes,
        selector=selector,
        X=X,
        how_many=notes.how_many if k is None else "asked",
        preparer=preparer,
    )


def fitted_to(selector: Any, X: Any) -> tuple[Any, Any, Any, TablePreparer | None]:
    """The selector, the numbers that it was fitted to, their names, and what prepared them.

    The names are None if the numbers have names of their own, or none are known.
    """
    check_is_fitted(selector)
    names, preparer = None, None
    if isinstance(selector, Pipeline):
        if not isinstance(selector[-1], RankingSelector):
            raise ParameterError(
                f"The last step of a pipeline must be a selector of keepers; got a "
                f"{type(selector[-1]).__name__}. Pass the steps up to the selector: pipeline[:2]."
            )
        steps = [step for _, step in selector.steps[:-1] if step not in (None, "passthrough")]
        for step in steps:
            if isinstance(step, TablePreparer):
                preparer, X = step, step._transform(X, 0)
            else:
                X = step.transform(X)
        if steps and all(hasattr(step, "get_feature_names_out") for step in steps):
            names = selector[:-1].get_feature_names_out()
        selector = selector[-1]
    if isinstance(selector, AutoSelector) and selector.preparer_ is not None:
        preparer = selector.preparer_
        X = preparer.prepare(table_of_object(X), first_row=0)
        selector, names = selector.on_features_, None
    return selector, X, names, preparer


def correlations_between(
    X: Any, moments: ColumnMoments, mine: IndexArray, theirs: IndexArray
) -> FloatArray:
    """Pearson correlations of columns that vary; over rows observed in both if X has gaps."""
    both = np.concatenate([mine, theirs])
    values = X[:, both].astype(np.float64)
    among: Correlations = ColumnCorrelations(values, moments.subset(both))
    if not sp.issparse(X) and np.isnan(values).any():
        among = PairwiseCorrelations.of(values, min(FEWEST_OBSERVED, len(X) // 2))
    at = np.arange(len(both))
    return np.clip(among.between(at[: len(mine)], at[len(mine) :]), -1.0, 1.0)


def correlation_matrix(X: Any, moments: ColumnMoments, columns: IndexArray) -> FloatArray:
    """Pearson correlations of some columns; NaN for those that do not vary."""
    found = np.full((len(columns), len(columns)), np.nan)
    varies = np.flatnonzero(~moments.constant[columns])
    if len(varies):
        r = correlations_between(X, moments, columns[varies], columns[varies])
        found[np.ix_(varies, varies)] = (r + r.T) / 2
        found[varies, varies] = 1.0
    return found


def as_matrix(X: Any, missing: str = "error") -> tuple[Any, IndexArray | None]:
    """X as a float array or CSR matrix, and how many gaps of each column were filled, if any.

    A sparse matrix stays sparse. Gaps raise, are filled in the way of the selector, or stay NaN
    where it scores observed values.
    """
    finite = True if missing == "error" else "allow-nan"
    rules: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}
    try:
        values = check_array(numeric_input(X), ensure_all_finite=finite, **rules)
    except (TypeError, ValueError) as error:
        raise DataError(
            "X must be the table of the fit, samples x features of finite, numeric values; "
            f"{first_line(error).rstrip('.:')}."
        ) from error
    if missing in ("error", "observed"):
        return values, None
    filled = fill_gaps(values, missing)
    return filled, None if filled is values else np.isnan(values).sum(axis=0)


def _names_of(feature_names: Any, selector: Any, X: Any, n_features: int) -> list[str]:
    """The features' names: as given, as the selector saw them, as X has them, or x0..."""
    for candidate in (
        feature_names,
        vars(selector).get("feature_names_in_"),
        getattr(X, "names", getattr(X, "columns", None)),
    ):
        if candidate is not None:
            flat = [flat_name(name) for name in candidate]
            return as_texts("feature_names", flat, n_features, "feature")
    return [f"x{column}" for column in range(n_features)]


def as_texts(name: str, values: Any, expected: int, what: str) -> list[str]:
    """One string per feature or sample; unpaired surrogates, which no file can hold, replaced."""
    listed = [str(value) for value in values]
    if len(listed) != expected:
        raise DataError(
            f"{name} must have one entry per {what}, {expected} in all; got {len(listed)}. Leave "
            "it out to go without."
        )
    return [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in listed]


def display_name(text: str, longest: int = 60) -> str:
    """A name as shown: control and direction-changing characters replaced, long ones shortened."""
    if not text.strip():
        return "(unnamed)"
    shown = _UNSEEN.sub("\ufffd", text[: longest + 1])
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def count(number: int) -> str:
    return f"{number:,}"


@dataclass(frozen=True)
class Words:
    """The most important facts, one sentence each."""

    answer: str
    why: tuple[str, ...]
    how_sure: tuple[str, ...]
    watch: tuple[str, ...]
    """Reasons to doubt it."""
    table: tuple[str, ...]
    """How the columns were read."""


def put_into_words(
    selection: Selection, certificate: Certificate | None = None, notes: Sequence[str] = ()
) -> Words:
    """Describe a selection; ``notes`` are what was found in the table and done to it."""
    answer, found, sure = answer_of(selection), [], selection.notes.how_sure
    if selection.k == selection.selector.n_features_to_select_:  # what the method speaks of
        found = [line for line in as_sentences(selection.notes.summary or "") if line not in sure]
    if found and found[0].startswith("Keep "):
        answer = found[0] if selection.how_many == "chosen" else answer
        found = found[1:]
    proof = () if certificate is None else (f"Proved: {certificate}",)
    read = [] if selection.preparer is None else selection.preparer.notes_
    aside = [note for note in read if not note.startswith("Missing values filled")]
    notes = list(dict.fromkeys([*notes, *read, *_filled(selection)]))
    if selection.notes.nearest_better is not None:  # it keeps one of such columns
        notes = [note for note in notes if not note.startswith("Nearly duplicated columns")]
    return Words(
        answer=answer,
        why=(*found, *_share_of_variance(selection)),
        how_sure=(*proof, *sure) or (_NOT_MEASURED,),
        watch=(*_watch(selection), *(note for note in notes if note not in aside)),
        table=tuple(aside),
    )


def as_sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=\.) (?=[A-Z0-9])", text) if part]


def answer_of(selection: Selection) -> str:
    """How many features are kept, and who decided that."""
    method, k, d = selection.method, count(selection.k), count(selection.n_features)
    if selection.k == selection.n_features:
        return f"{method} keeps all {d} features."
    if selection.how_many == "chosen":
        return f"{method} chose {k} of the {d} features."
    if selection.how_many == "half":
        return f"{method} keeps {k} of the {d} features: half of them, as no number was given."
    return f"{method} keeps {k} of the {d} features, as requested."


def _share_of_variance(selection: Selection) -> tuple[str, ...]:
    if selection.counts_columns_alike:  # that would only be the share of columns
        return ()
    what = "The kept feature holds" if selection.k == 1 else "The kept features hold"
    weighed = " as the method weighs the columns" if selection.selector.column_power else ""
    share = f"{100 * selection.variance_share:.1f}\u00a0%"
    return (f"{what} {share} of the total variance{weighed}.",)


def _filled(selection: Selection) -> tuple[str, ...]:
    if selection.n_filled is None:
        return ()
    columns = np.flatnonzero(selection.n_filled)
    listed = [f"{selection.feature_names[at]!r} ({selection.n_filled[at]})" for at in columns]
    where = "1 column" if len(listed) == 1 else f"{len(listed)} columns"
    return (f"Gaps filled ({selection.selector.missing}) in {where}: {some_of(listed)}.",)


def _watch(selection: Selection) -> list[str]:
    watch = list(selection.notes.doubts)
    if selection.notes.structure_found is False:
        watch.append("No structure was found: the ranking is about as good as a random one.")
    if selection.inactive is not None:
        watch.append(f"{selection.inactive} {selection.inactive.way_out()}")
    n_copies = sum(abs(feature.correlation) >= SAME for feature in selection.kept)
    if n_copies:
        watch.append(
            f"{count(n_copies)} of the kept features repeat another kept one (|r| of {SAME} or "
            "more); set max_correlation to leave out such copies."
        )
    n_constant = int((selection.variances[selection.order[: selection.k]] == 0.0).sum())
    if n_constant:
        are = "is" if n_constant == 1 else "are"
        watch.append(f"{count(n_constant)} of the kept features {are} constant.")
    if selection.n_rows_used < selection.n_samples:
        watch.append(
            f"{count(selection.n_rows_used)} of the {count(selection.n_samples)} samples were "
            "used, drawn at random."
        )
    return watch
