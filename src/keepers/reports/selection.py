"""What a fitted selector kept, of what, and why: measured once, read by everything that tells it.

The terminal, ``--json``, the recipe and the report all read one `Selection`, so that they cannot
disagree.
"""

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
from keepers._wording import first_line
from keepers.exceptions import DataError, ParameterError
from keepers.linalg.correlation import (
    ROUNDING,
    ColumnCorrelations,
    Correlations,
    PairwiseCorrelations,
)
from keepers.linalg.moments import ColumnMoments, column_moments
from keepers.methods.auto import FEWEST_OBSERVED
from keepers.methods.base import FitNotes, RankingSelector
from keepers.methods.control import read_control
from keepers.methods.narrow import SAME
from keepers.methods.reading import fill_gaps, named_table, table_of_moments, table_values
from keepers.methods.spcafs import InactiveRows, find_inactive_rows
from keepers.prepare.preparer import TablePreparer
from keepers.proofs.certify import Certificate
from keepers.tables.objects import flat_name, numeric_input, table_of_object

__all__ = ["DroppedFeature", "KeptFeature", "Selection", "describe_fit", "describe_selection"]

FEWEST_COMPARED, MOST_COMPARED = 200, 500
"""How far down the ranking features are compared with the kept ones: all kept ones and at least
the first 200, but never more than 500."""
NOT_OF_THE_RESULT = ("callback",)
"""Parameters of selectors that the result does not depend on."""
_AT_ONCE = 256
_TIE = 1e-7

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


def r_text(r: float, signed: bool = True) -> str:
    """A correlation; that of a category, whose values have no order, without a sign."""
    return f"{r:+.2f}" if signed else f"{abs(r):.2f}"


@dataclass(frozen=True)
class KeptFeature:
    """One kept feature."""

    column: int
    """Its place in the table."""
    name: str
    score: float
    variance: float
    """Population variance (divided by n)."""
    neighbour: str | None
    """The other kept feature with the largest absolute correlation; None if unknown."""
    correlation: float
    """Its correlation with that neighbour; NaN if unknown."""
    signed: bool = True
    """Whether the sign of the correlation means anything: not with categories."""
    share_of_halves: float | None = None
    """Share of the half-samples that keep it too; None if not measured."""
    stand_in: str | None = None
    """What the other half-samples keep in its place; None if all keep it, or unknown."""
    stand_in_correlation: float = float("nan")

    @property
    def why(self) -> str:
        """What speaks for it, in words."""
        words = []
        if self.neighbour is not None:
            r = r_text(self.correlation, self.signed)
            words.append(f"closest kept: {self.neighbour}, r = {r}")
        if self.share_of_halves is not None and self.stand_in is not None:
            r = r_text(self.stand_in_correlation, signed=False)
            share = f"{100 * self.share_of_halves:.0f} % of half-samples"
            words.append(f"in {share}, else {self.stand_in} (r = {r})")
        return "; ".join(words)


@dataclass(frozen=True)
class DroppedFeature:
    """One feature that was not kept, and why."""

    column: int
    name: str
    score: float
    reason: str
    """One of REASONS."""
    neighbour: str | None = None
    """The kept feature that it resembles most, where that was measured."""
    correlation: float = float("nan")
    signed: bool = True
    n_observed: int | None = None
    """For "few values": how many were observed."""

    @property
    def why(self) -> str:
        """The reason in words."""
        if self.n_observed is not None:
            return f"unusable: {self.n_observed} values observed"
        if self.neighbour is None:
            return IN_WORDS[self.reason]
        of = {"redundant": "same as", "max_correlation": "too similar to"}
        before = of.get(self.reason, f"{IN_WORDS[self.reason]}; closest kept:")
        return f"{before} {self.neighbour}, r = {r_text(self.correlation, self.signed)}"


@dataclass(frozen=True, eq=False, repr=False)
class Selection(AsTable):
    """A fitted selection.

    Arrays have one entry per column of the table, unless they say otherwise.
    """

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
    """Mean and centred sum of squares, as the fit measured them where it did: over all rows, or
    over those it drew from a table that was read in blocks."""
    always: BoolArray
    """Features that the settings keep."""
    never: BoolArray
    """Features that the settings rule out."""
    source: str | None
    """Name of the table."""
    scaling: str
    """What was done to the values before the fit."""
    seconds: float | None
    """Time of the fit."""
    versions: Mapping[str, str]
    selector: Any = field(repr=False)
    X: Any = field(repr=False)
    """The values of the fit; gaps are NaN. None if they were read in blocks."""
    how_many: Literal["asked", "chosen", "half"] = "asked"
    """Where the number of features comes from: the user, the method, or a default."""
    categories: frozenset[str] = frozenset()
    """Features that are categories: their correlations have no sign."""

    def __repr__(self) -> str:
        held = (
            "" if self.counts_columns_alike else f", with {self.variance_share:.1%} of the variance"
        )
        return f"<Selection: {self.k} of {self.n_features} features by {self.method}{held}>"

    def rows(self) -> list[dict[str, Any]]:
        """The kept features, best first, a dict each: rank, feature, score, neighbour, ..."""
        return [
            {"rank": rank, "feature": kept.name, **vars(kept)}
            for rank, kept in enumerate(self.kept, 1)
        ]

    def _caption(self) -> str:
        return repr(self).strip("<>")

    @cached_property
    def notes(self) -> FitNotes:
        """What the method reports about its fit."""
        found: FitNotes = self.selector.fit_notes()
        return found

    @property
    def n_rows_used(self) -> int:
        """Rows that the fit looked at, where it draws some of them; else all."""
        return self.notes.n_rows_used or self.n_samples

    @property
    def summary(self) -> str | None:
        """What the method found, in sentences; None if it reports nothing."""
        return self.notes.summary

    @property
    def doubts(self) -> tuple[str, ...]:
        """What the method is unsure of, a sentence each."""
        return self.notes.doubts

    @property
    def structure_found(self) -> bool | None:
        """Whether any feature carries structure; None for methods that do not test it."""
        return self.notes.structure_found

    @property
    def n_features(self) -> int:
        """Columns of the table."""
        return len(self.scores)

    @cached_property
    def variances(self) -> FloatArray:
        """Population variances; 0 for columns that are constant up to rounding.

        Over all rows, also of a table that was read in blocks; over the rows drawn if the fit
        looked at those only (`AutoSelector`).
        """
        if self.moments.n_samples < self.n_samples == self.n_rows_used:
            # Of a selector that chose its settings, the winner ranked the features.
            ranked = getattr(self.selector, "best_estimator_", self.selector)
            summed = vars(ranked).get("var_")
            if summed is not None:
                return np.asarray(summed, dtype=np.float64)
        return np.where(self.moments.constant, 0.0, self.moments.variance)

    @property
    def columns(self) -> IndexArray:
        """The kept columns, in the order of the table."""
        return np.sort(self.order[: self.k])

    @property
    def column_power(self) -> float:
        """Power of the standard deviation that the method divides columns by.

        0: columns are taken as they are; 1: all of them count the same.
        """
        return float(self.selector.column_power)

    @cached_property
    def column_factors(self) -> FloatArray:
        """What the method multiplies columns by; 1 for constant ones."""
        varies = self.variances > 0.0
        scale = np.where(varies, self.variances, 1.0)
        return np.asarray(scale ** (-self.column_power / 2))

    @cached_property
    def weighed_variances(self) -> FloatArray:
        """Variances of the columns as the method weighs them; 0 for constant ones."""
        return self.variances * self.column_factors**2

    @cached_property
    def variance_share(self) -> float:
        """Variance of the kept features over that of all, as the method weighs columns."""
        total = float(self.weighed_variances.sum())
        kept = float(self.weighed_variances[self.order[: self.k]].sum())
        return kept / total if total > 0 else 0.0

    @property
    def counts_columns_alike(self) -> bool:
        """Whether the method divides columns by their standard deviation, or X has been.

        A share of the variance is then no more than a share of the columns.
        """
        return self.column_power == 1.0 or self.scaling == "standardize-features"

    @cached_property
    def n_by_score(self) -> int:
        """How far down the ranking follows the scores; what was set back stands behind."""
        scores, last = self.scores[self.order], (self.never | (self.variances == 0.0))[self.order]
        last[1:] |= scores[1:] > scores[:-1] + _TIE * np.abs(scores[:-1])
        behind = np.flatnonzero(last[self.k :])
        return self.k + int(behind[0]) if len(behind) else self.n_features

    @cached_property
    def correlation(self) -> FloatArray:
        """Correlations of the first features of the ranking, best first; NaN for constant ones.

        As many as `compared`; none if the table was read in blocks.
        """
        if self.X is None:
            return np.empty((0, 0))
        columns = self.order[: min(max(self.k, FEWEST_COMPARED), MOST_COMPARED)]
        return correlation_matrix(self.X, self.moments, columns)

    @cached_property
    def filled(self) -> Any:
        """The values with column means in the gaps, for pictures; None in blocks."""
        return self.X if self.X is None else fill_gaps(self.X, "mean")

    @cached_property
    def nearest(self) -> tuple[IndexArray, FloatArray]:
        """For each of the features in `correlation` the most correlated other kept one.

        As its place in the ranking, from 0, and its correlation; -1 and NaN where there is none.
        """
        return nearest_kept(self.correlation, self.k)

    @cached_property
    def kept(self) -> tuple[KeptFeature, ...]:
        """The kept features, best first."""
        place, correlation = self.nearest
        found = []
        for rank, column in enumerate(self.order[: self.k].tolist()):
            near, r = -1, float("nan")
            if rank < len(place):
                near, r = int(place[rank]), float(correlation[rank])
            name = str(self.feature_names[column])
            neighbour = None if near < 0 else str(self.feature_names[self.order[near]])
            found.append(
                KeptFeature(
                    column=column,
                    name=name,
                    score=float(self.scores[column]),
                    variance=float(self.variances[column]),
                    neighbour=neighbour,
                    correlation=r,
                    signed=self.is_signed(name, neighbour),
                    **self._in_halves.get(column, {}),
                )
            )
        return tuple(found)

    def is_signed(self, *names: str | None) -> bool:
        """Whether correlations between these features have a sign that means something."""
        return self.categories.isdisjoint(names)

    @cached_property
    def _in_halves(self) -> dict[int, dict[str, Any]]:
        """For each kept feature, its share of the half-samples and its stand-in."""
        halves = self.notes.halves
        if halves is None or self.k != self.selector.n_features_to_select_:
            return {}
        rows = (halves.features, halves.shares, halves.stand_ins, halves.correlations)
        return {
            int(column): {
                "share_of_halves": float(share),
                "stand_in": None if other < 0 else str(self.feature_names[other]),
                "stand_in_correlation": float(r),
            }
            for column, share, other, r in zip(*rows, strict=True)
        }

    @cached_property
    def dropped(self) -> tuple[DroppedFeature, ...]:
        """The other features, best first, each with the reason."""
        columns, reasons = self.order[self.k :].tolist(), self._reasons.tolist()
        found = []
        for column, reason in zip(columns, reasons, strict=True):
            name = str(self.feature_names[column])
            near, r = self._alike.get(column, (None, float("nan")))
            signed, score = self.is_signed(name, near), float(self.scores[column])
            observed = None
            if REASONS[reason] == "few values":
                observed = self.n_rows_used - int(self.selector.n_missing_[column])
            found.append(
                DroppedFeature(column, name, score, REASONS[reason], near, r, signed, observed)
            )
        return tuple(found)

    def count_dropped(self) -> dict[str, int]:
        """How many features were dropped for each reason that occurs."""
        counts = np.bincount(self._reasons, minlength=len(REASONS)).tolist()
        return {reason: n for reason, n in zip(REASONS, counts, strict=True) if n}

    @cached_property
    def _reasons(self) -> IndexArray:
        """For each of the other features, best first, the place of its reason in REASONS."""
        others = self.order[self.k :]
        reasons = np.full(len(others), REASONS.index("ranked below k"))
        if self.notes.carries_structure is not None:
            reasons[~self.notes.carries_structure[others]] = REASONS.index("no structure")
        alike = np.array([self._is_alike(column) for column in others.tolist()], dtype=bool)
        limit = self.notes.max_correlation
        reasons[alike] = REASONS.index("redundant" if limit is None else "max_correlation")
        if self.notes.alone is not None:  # NaN: the fit did not use the column
            reasons[np.isnan(self.notes.alone[others])] = REASONS.index("few values")
        reasons[self.variances[others] == 0.0] = REASONS.index("constant")
        reasons[self.never[others]] = REASONS.index("never_keep")
        return reasons

    def _is_alike(self, column: int) -> bool:
        """Whether a kept feature stands for a column that was not kept."""
        if column not in self._alike:
            return False
        limit, (name, r) = self.notes.max_correlation, self._alike[column]
        return name is None or (abs(r) >= SAME if limit is None else abs(r) > limit + ROUNDING)

    @cached_property
    def _alike(self) -> dict[int, tuple[str | None, float]]:
        """Columns that may be left out for resembling a kept one: which, None if unknown; and r.

        By themselves they score as high as some kept feature, or the fit found them to repeat one.
        In blocks, a column that only ``max_correlation`` can have set back has no known neighbour.
        """
        notes, others = self.notes, self.order[self.k :]
        limit, usable = notes.max_correlation, ~self.never & (self.variances > 0.0)
        alone = self.scores if notes.alone is None else notes.alone
        if limit is None and notes.alone is None:
            return {}
        if notes.carries_structure is not None:
            usable = usable & notes.carries_structure
        as_good = alone >= self._lowest_kept
        if self.settings.get("groups") is not None:  # groups are ranked as a whole
            as_good = usable
        if notes.nearest_better is not None:
            as_good = as_good | (np.abs(np.nan_to_num(notes.nearest_better[1])) >= SAME)
        columns = others[(usable & as_good)[others]]
        if self.X is not None:
            return self._most_similar_kept(columns)
        if notes.nearest_better is None:
            known = self.settings.get("groups") is None
            return {int(column): (None, float("nan")) for column in columns} if known else {}
        near, r = notes.nearest_better
        kept = set(self.order[: self.k].tolist())
        return {
            int(column): (str(self.feature_names[near[column]]), float(r[column]))
            for column in columns
            if near[column] in kept
        }

    @cached_property
    def _lowest_kept(self) -> float:
        """The lowest score of a kept feature that had to earn its place."""
        kept = self.order[: self.k]
        lowest = float(self.scores[kept[~self.always[kept]]].min(initial=np.inf))
        return lowest - _TIE * abs(lowest)

    def _most_similar_kept(self, columns: IndexArray) -> dict[int, tuple[str | None, float]]:
        """The kept feature with the largest absolute correlation with each column, and r."""
        # In a table read in blocks only some rows are here: more columns may be constant in them.
        varies = ~self.moments.constant
        kept, columns = (part[varies[part]] for part in (self.order[: self.k], columns))
        found: dict[int, tuple[str | None, float]] = {}
        for start in range(0, len(columns), _AT_ONCE):
            block = columns[start : start + _AT_ONCE]
            both = np.concatenate([block, kept])
            among = correlations_of(self.X[:, both].astype(float), self.moments.subset(both))
            r = among.between(np.arange(len(block)), np.arange(len(block), len(both)))
            nearest = np.argmax(np.round(np.abs(r), 12), axis=1)
            for column, at, its_r in zip(block.tolist(), nearest, r, strict=True):
                found[column] = (str(self.feature_names[kept[at]]), float(its_r[at]))
        return found

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
            read or table_of_moments(self.filled, self.moments),
            self.k,
            random_state=seed if isinstance(seed, int) else 0,
        )
        return replace(found, feature_names=np.asarray(self.feature_names, dtype=object))

    @property
    def seeks_variance(self) -> bool:
        """Whether the method looks for variance, so that ``certificate`` tells how well it did."""
        return bool(self.selector.seeks_variance)

    @cached_property
    def inactive(self) -> InactiveRows | None:
        """What is kept past the active rows of W (SPCAFS); None if nothing is."""
        return find_inactive_rows(self.selector, self.order[: self.k])


def describe_selection(
    selector: Any,
    X: Any,
    *,
    feature_names: Sequence[str] | None = None,
    k: int | float | None = None,
    source: str | None = None,
    seconds: float | None = None,
) -> Selection:
    """Describe what a fitted selector keeps: which features, how redundant, and why not others.

    Parameters
    ----------
    selector : fitted selector or pipeline
        Any selector of keepers after ``fit``, or a pipeline that ends with one.
    X : table of shape (n_samples, n_features)
        The table it was fitted on: an array, data frame, sparse matrix, Table or AnnData
        object. Of columns that were prepared (text, dates), the numbers of the fit are described.
    feature_names : sequence of str, optional
        Names of the features; by default those the selector saw, else x0, x1, ...
    k : int, float in (0, 1] or None
        How many features, or which share, count as kept; None: as many as the selector keeps.
    source : str, optional
        Where the table came from.
    seconds : float, optional
        How long the selection took.

    Returns
    -------
    Selection
        ``kept`` and ``dropped`` list the features; the rest are measurements of the table and the
        fit.

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
    selector, X, names = fitted_to(selector, X)
    feature_names = names if feature_names is None else feature_names
    X = named_table(X)
    values = as_matrix(table_values(X), selector.missing)
    if values.shape[1] != len(selector.scores_):
        raise DataError(
            f"X must have the {len(selector.scores_)} columns that the selector was fitted on; got "
            f"{values.shape[1]}. Pass the table of the fit."
        )
    names = _names_of(feature_names, selector, X, values.shape[1])
    return describe_fit(selector, values, names, k=k, source=source, seconds=seconds)


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
    categories: frozenset[str] = frozenset(),
) -> Selection:
    """The same for values that the fit has just checked.

    If it read them in blocks, X is None, or some of the rows; ``n_samples`` is then the number of
    all.
    """
    names = np.array([str(name) for name in feature_names], dtype=object)
    weights = _control_weights(selector)
    how_many: Any = "asked" if k is not None else selector.fit_notes().how_many
    return Selection(
        method=type(selector).__name__,
        settings={
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in selector.get_params(deep=False).items()
            if name not in NOT_OF_THE_RESULT
        },
        k=len(selector.top(k)),
        n_samples=n_samples or int(selector.n_samples_seen_ if X is None else X.shape[0]),
        feature_names=names,
        scores=np.asarray(selector.scores_, dtype=np.float64),
        order=np.argsort(selector.ranking_),  # all: `top` refuses features never to be kept
        moments=_moments_of(selector, X),
        always=weights == 0.0,
        never=np.isinf(weights),
        source=source,
        scaling=scaling,
        seconds=seconds,
        versions=package_versions(),
        selector=selector,
        X=X,
        how_many=how_many,
        categories=categories,
    )


def fitted_to(selector: Any, X: Any) -> tuple[Any, Any, Any]:
    """The selector and the numbers it was fitted to, after a pipeline or a preparer; their names.

    The names are None if the numbers have names of their own, or none are known.
    """
    check_is_fitted(selector)
    names = None
    if isinstance(selector, Pipeline):
        if not isinstance(selector[-1], RankingSelector):
            raise ParameterError(
                f"The last step of a pipeline must be a selector of keepers; got a "
                f"{type(selector[-1]).__name__}. Pass the steps up to the selector: pipeline[:2]."
            )
        steps = [step for _, step in selector.steps[:-1] if step not in (None, "passthrough")]
        for step in steps:
            X = step._transform(X, 0) if isinstance(step, TablePreparer) else step.transform(X)
        if all(hasattr(step, "get_feature_names_out") for step in steps):
            names = selector[:-1].get_feature_names_out() if steps else None
        selector = selector[-1]
    if getattr(selector, "preparer_", None) is not None:
        X = selector.preparer_.prepare(table_of_object(X), first_row=0)
        selector, names = selector.on_features_, None
    return selector, X, names


def preparer_of(selector: Any) -> TablePreparer | None:
    """What prepared the table of the fit: a step of the pipeline, or the selector's own."""
    steps = [step for _, step in selector.steps] if isinstance(selector, Pipeline) else [selector]
    found = [s for s in steps if isinstance(s, TablePreparer)]
    return found[0] if found else getattr(steps[-1], "preparer_", None)


def _control_weights(selector: Any) -> FloatArray:
    """0 for features that are always kept, infinite for those that never are, else above 0."""
    given, stored = selector.get_params(deep=False), vars(selector)
    if "penalty_weights_" in stored:
        return np.asarray(stored["penalty_weights_"])
    chosen = {name: given[name] for name in ("must_keep", "never_keep") if name in given}
    names = stored.get("feature_names_in_")
    return read_control(len(selector.scores_), names, **chosen).weights


def _moments_of(selector: Any, X: Any) -> ColumnMoments:
    """As the fit stored them; measured here for methods that do not, or in single precision, or
    that drew some of the rows.
    """
    stored = vars(selector)
    n_rows: Any = stored.get("n_rows_used_", stored.get("n_samples_seen_"))
    exact = {"mean_", "var_"} <= stored.keys() and stored["mean_"].dtype == np.float64
    if X is None or (exact and n_rows == X.shape[0]):
        return ColumnMoments(n_rows, stored["mean_"], n_rows * stored["var_"])
    return column_moments(fill_gaps(X, "mean"))


def correlations_of(X: Any, moments: ColumnMoments) -> Correlations:
    """Correlations of the columns of X that vary; over rows observed in both if it has gaps."""
    if sp.issparse(X) or not np.isnan(X).any():
        return ColumnCorrelations(X, moments)
    return PairwiseCorrelations.of(X, min(FEWEST_OBSERVED, len(X) // 2))


def correlation_matrix(X: Any, moments: ColumnMoments, columns: IndexArray) -> FloatArray:
    """Pearson correlations of some columns; NaN for those that do not vary."""
    found = np.full((len(columns), len(columns)), np.nan)
    varies = np.flatnonzero(~moments.constant[columns])
    if len(varies):
        chosen = columns[varies]
        values = X[:, chosen].astype(np.float64)
        every = np.arange(len(chosen))
        r = correlations_of(values, moments.subset(chosen)).between(every, every)
        found[np.ix_(varies, varies)] = np.clip((r + r.T) / 2, -1.0, 1.0)
        found[varies, varies] = 1.0
    return found


def nearest_kept(correlation: FloatArray, n_kept: int) -> tuple[IndexArray, FloatArray]:
    """Per row the kept feature (one of the first) with the largest |r|, itself aside; -1 if none.

    Among equals the better-ranked one: rounding must not decide between exact copies.
    """
    n_rows = len(correlation)
    n_kept = min(n_kept, n_rows)
    if n_kept == 0:
        return np.full(n_rows, -1, dtype=np.intp), np.full(n_rows, np.nan)
    strength = np.where(np.isnan(correlation), -1.0, np.abs(correlation))[:, :n_kept]
    np.fill_diagonal(strength, -1.0)
    place = np.argmax(np.round(strength, 12), axis=1)
    rows = np.arange(n_rows)
    none = strength[rows, place] < 0
    return np.where(none, -1, place), np.where(none, np.nan, correlation[rows, place])


def as_matrix(X: Any, missing: str = "error") -> Any:
    """X as a float array or CSR matrix of finite numbers; a sparse one is never densified.

    Gaps raise, are filled in the way of the selector, or stay NaN where it scores observed values.
    """
    X = numeric_input(X)
    finite = True if missing == "error" else "allow-nan"
    rules: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}
    try:
        values = check_array(X, ensure_all_finite=finite, **rules)
    except (TypeError, ValueError) as error:
        raise DataError(
            "X must be the table of the fit, samples x features of finite, numeric values; "
            f"{first_line(error).rstrip('.:')}."
        ) from error
    return values if missing in ("error", "observed") else fill_gaps(values, missing)


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
