"""What a fitted selector kept, of what, and why: measured once, read by everything that tells it.

The terminal, ``--json``, the recipe and the report all read one `Selection`, so that they cannot
disagree.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from keepers._packages import package_versions
from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers._tables import AsTable
from keepers.data.in_memory import flat_name, numeric_input
from keepers.data.wording import first_line
from keepers.exceptions import DataError
from keepers.linalg.correlation import ROUNDING, ColumnCorrelations
from keepers.linalg.moments import ColumnMoments, column_moments
from keepers.linalg.scatter import as_scatter
from keepers.selectors import AllFeatures, AutoSelector, DenoisedLaplacian
from keepers.selectors.certificate import Certificate
from keepers.selectors.control import read_control
from keepers.selectors.fitted_table import (
    fill_gaps,
    named_table,
    table_of_moments,
    table_values,
)
from keepers.selectors.parameters import is_real
from keepers.solvers.penalty import InactiveRows, find_inactive_rows

__all__ = ["DroppedFeature", "KeptFeature", "Selection", "describe_fit", "describe_selection"]

FEWEST_COMPARED, MOST_COMPARED = 200, 500
"""How far down the ranking features are compared with the kept ones: all kept ones and at least
the first 200, but never more than 500."""
NOT_OF_THE_RESULT = ("callback", "checkpoint")
"""Parameters of selectors that the result does not depend on."""
_AT_ONCE = 256
_TIE = 1e-7

HowMany = Literal["asked", "chosen", "half", "all"]
"""Where the number of features comes from: the user, the table, or a default."""
Reason = Literal[
    "ranked below k", "max_correlation", "redundant", "no structure", "constant", "never_keep"
]
REASONS: tuple[Reason, ...] = get_args(Reason)
COPY = 0.9
"""From this correlation on, in size, one feature is called a copy of another."""
SIMILAR: tuple[Reason, ...] = ("max_correlation", "redundant")
"""Reasons that a kept feature stands for the dropped one."""


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


@dataclass(frozen=True)
class DroppedFeature:
    """One feature that was not kept, and why."""

    column: int
    name: str
    score: float
    reason: Reason
    neighbour: str | None = None
    """For "max_correlation" and "redundant": the kept feature that it is too much like; None if
    unknown."""
    correlation: float = float("nan")

    @property
    def why(self) -> str:
        """The reason in words."""
        if self.neighbour is not None:
            return f"{self.why_of} {self.neighbour}, r = {self.correlation:+.2f}"
        return {"redundant": "redundant", "max_correlation": "too similar to a kept one"}.get(
            self.reason, self.reason
        )

    @property
    def why_of(self) -> str:
        """How it relates to the kept feature that follows, in words."""
        if abs(self.correlation) >= COPY:
            return "copy of"
        if self.reason == "max_correlation":
            return "too similar to"
        return "adds little to better features; nearest is"


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
    n_active: int | None
    """Active rows of W, for the methods that have them."""
    source: str | None
    """Name of the table."""
    scaling: str
    """What was done to the values before the fit."""
    seconds: float | None
    """Time of the fit and of the choice of its settings."""
    seconds_choosing: float
    """The part of it that the choice of settings took."""
    versions: Mapping[str, str]
    selector: Any = field(repr=False)
    X: Any = field(repr=False)
    """The values of the fit; None if they were read in blocks."""
    how_many: HowMany = "asked"
    chosen: str = ""
    """Why this number of features, and these settings, were chosen: a sentence, if they were."""
    trials: tuple[Mapping[str, Any], ...] = ()
    """The settings that were tried for it, best first, with their evidence."""

    def __repr__(self) -> str:
        held = (
            "" if self.counts_columns_alike else f", with {self.variance_share:.1%} of the variance"
        )
        return f"<Selection: {self.k} of {self.n_features} features by {self.method}{held}>"

    def rows(self) -> list[dict[str, Any]]:
        """The kept features, best first, a dict each; ``dropped`` has the others.

        Returns
        -------
        list of dict
            ``rank``, ``feature``, ``score``, ``variance``, ``neighbour`` and ``correlation``: those
            of `KeptFeature`.
        """
        return [
            {
                "rank": rank,
                "feature": kept.name,
                "score": kept.score,
                "variance": kept.variance,
                "neighbour": kept.neighbour,
                "correlation": kept.correlation,
            }
            for rank, kept in enumerate(self.kept, 1)
        ]

    def _caption(self) -> str:
        return repr(self).strip("<>")

    @property
    def n_rows_used(self) -> int:
        """Rows that the fit looked at, where it draws some of them; else all."""
        return int(getattr(self.selector, "n_rows_used_", self.n_samples))

    @property
    def summary(self) -> str | None:
        """What the selector says it found (`AutoSelector`); None for others."""
        return getattr(self.selector, "summary_", None)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What the selector is unsure of (`AutoSelector`), a sentence each."""
        return tuple(getattr(self.selector, "doubts_", ()))

    @property
    def structure_found(self) -> bool | None:
        """Whether any feature carries structure; None for methods that do not ask."""
        return getattr(self.selector, "structure_found_", None)

    @property
    def n_carrying_structure(self) -> int | None:
        """How many features carry structure; None for methods that do not ask."""
        carries = getattr(self.selector, "carries_structure_", None)
        return None if carries is None else int(np.sum(carries))

    @property
    def n_features(self) -> int:
        """Columns of the table."""
        return len(self.scores)

    @cached_property
    def variances(self) -> FloatArray:
        """Population variances; 0 for columns that are constant up to rounding."""
        return np.where(self.moments.constant, 0.0, self.moments.variance)

    @property
    def columns(self) -> IndexArray:
        """The kept columns, in the order of the table."""
        return np.sort(self.order[: self.k])

    @cached_property
    def column_power(self) -> float:
        """Power of the standard deviation that the method divides columns by.

        0: columns are taken as they are; 1: all of them count the same.
        """
        return column_power(self.selector)

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
        """How far down the ranking follows the scores.

        Behind are features that were skipped for being too similar to a better one, ruled out, or
        constant.
        """
        scores = self.scores[self.order]
        set_last = (self.never | (self.variances == 0.0))[self.order]
        if getattr(fitted_selector(self.selector), "max_correlation", None) is not None:
            rises = scores[1:] > scores[:-1] + _TIE * np.abs(scores[:-1])
            set_last[1:] |= rises
        behind = np.flatnonzero(set_last[self.k :])
        return self.k + int(behind[0]) if len(behind) else self.n_features

    @cached_property
    def active(self) -> BoolArray | None:
        """Which features have active rows of W; None for methods without them."""
        return getattr(fitted_selector(self.selector), "active_", None)

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
    def nearest(self) -> tuple[IndexArray, FloatArray]:
        """For each of the features in `correlation` the most correlated other kept one.

        As its place in the ranking, from 0, and its correlation; -1 and NaN where there is none.
        """
        return nearest_kept(self.correlation, self.k)

    @cached_property
    def kept(self) -> tuple[KeptFeature, ...]:
        """The kept features, best first."""
        place, correlation = self.nearest
        return tuple(
            KeptFeature(
                column=int(column),
                name=str(self.feature_names[column]),
                score=float(self.scores[column]),
                variance=float(self.variances[column]),
                neighbour=self._name_at(place[rank]) if rank < len(place) else None,
                correlation=float(correlation[rank]) if rank < len(place) else float("nan"),
            )
            for rank, column in enumerate(self.order[: self.k])
        )

    @cached_property
    def dropped(self) -> tuple[DroppedFeature, ...]:
        """The other features, best first, each with the reason."""
        alike = {**self._too_similar, **self._compare_redundant()}
        unknown = (None, float("nan"))
        return tuple(
            DroppedFeature(
                column,
                str(self.feature_names[column]),
                float(self.scores[column]),
                REASONS[reason],
                *(alike[column] if REASONS[reason] in SIMILAR else unknown),
            )
            for column, reason in zip(
                self.order[self.k :].tolist(), self._reasons.tolist(), strict=True
            )
        )

    def count_dropped(self) -> dict[Reason, int]:
        """How many features were dropped for each reason that occurs."""
        counts = np.bincount(self._reasons, minlength=len(REASONS)).tolist()
        return {reason: n for reason, n in zip(REASONS, counts, strict=True) if n}

    @cached_property
    def _reasons(self) -> IndexArray:
        """For each of the other features, best first, the place of its reason in REASONS."""
        others = self.order[self.k :]
        carries = getattr(self.selector, "carries_structure_", np.ones(self.n_features, dtype=bool))
        too_similar = np.array(list(self._too_similar), dtype=np.intp)
        reasons = np.full(len(others), REASONS.index("ranked below k"))
        reasons[~carries[others]] = REASONS.index("no structure")
        reasons[np.isin(others, self._redundant)] = REASONS.index("redundant")
        reasons[np.isin(others, too_similar)] = REASONS.index("max_correlation")
        reasons[self.variances[others] == 0.0] = REASONS.index("constant")
        reasons[self.never[others]] = REASONS.index("never_keep")
        return reasons

    @cached_property
    def _too_similar(self) -> dict[int, tuple[str | None, float]]:
        """Columns skipped for max_correlation, with the kept feature they are too much like.

        They score as high as some kept feature, so nothing else can have left them out. In blocks
        the neighbour is unknown, and with groups so is the reason.
        """
        limit = getattr(fitted_selector(self.selector), "max_correlation", None)
        if limit is None:
            return {}
        others = self.order[self.k :]
        skipped = others[~self.never[others] & (self.variances[others] > 0.0)]
        if self.settings.get("groups") is None:  # groups are ranked as a whole
            skipped = skipped[self.scores[skipped] >= self._lowest_kept]
        if self.X is None:
            known = self.settings.get("groups") is None
            return {int(column): (None, float("nan")) for column in skipped} if known else {}
        nearest = self._most_similar_kept(skipped)
        return {column: (name, r) for column, name, r in nearest if abs(r) > limit + ROUNDING}

    @cached_property
    def _lowest_kept(self) -> float:
        """The lowest score of a kept feature that had to earn its place."""
        kept = self.order[: self.k]
        lowest = float(self.scores[kept[~self.always[kept]]].min(initial=np.inf))
        return lowest - _TIE * abs(lowest)

    @cached_property
    def _redundant(self) -> IndexArray:
        """Columns that only the discount for what better features say left out.

        They carry structure, and are by themselves as good as some kept feature is after its own
        discount (`DenoisedLaplacian`, `AutoSelector`).
        """
        others = self.order[self.k :]
        if not hasattr(self.selector, "smoothness_"):
            return others[:0]
        carrying = others[self.selector.carries_structure_[others]]
        return carrying[self.selector.smoothness_[carrying] >= self._lowest_kept]

    def _compare_redundant(self) -> dict[int, tuple[str | None, float]]:
        """The redundant columns, with the kept feature they resemble most.

        In blocks it is the better feature that the fit compared them with, if that one is kept.
        """
        if self.X is not None:
            nearest = self._most_similar_kept(self._redundant)
            return {column: (name, r) for column, name, r in nearest}
        kept = set(self.order[: self.k].tolist())
        found: dict[int, tuple[str | None, float]] = {}
        for column in self._redundant.tolist():
            at, r = self.selector.represented_by_[column], self.selector.representation_[column]
            known = at in kept
            found[column] = (
                str(self.feature_names[at]) if known else None,
                float(r) if known else float("nan"),
            )
        return found

    def _most_similar_kept(self, columns: IndexArray) -> Iterator[tuple[int, str, float]]:
        """Each of the columns with the kept feature of the largest absolute correlation, and r."""
        kept = self.order[: self.k]
        kept = kept[self.variances[kept] > 0.0]
        correlations = ColumnCorrelations(self.X, self.moments)
        for start in range(0, len(columns), _AT_ONCE):
            block = columns[start : start + _AT_ONCE]
            r = correlations.between(block, kept)
            nearest = np.argmax(np.abs(r), axis=1)
            for column, at, its_r in zip(block, nearest, r, strict=True):
                yield int(column), str(self.feature_names[kept[at]]), float(its_r[at])

    @cached_property
    def certificate(self) -> Certificate | None:
        """How near the kept features are to those that hold the most variance, with proof.

        None if the table was read in blocks.
        """
        if self.X is None or self.X.shape[0] != self.n_samples:
            return None
        # The same for the same selection, as the rest of a report is.
        seed = getattr(self.selector, "random_state", None)
        found = self.selector.certificate(
            table_of_moments(self.X, self.moments),
            self.k,
            random_state=seed if isinstance(seed, int) else 0,
        )
        return replace(found, feature_names=np.asarray(self.feature_names, dtype=object))

    @property
    def seeks_variance(self) -> bool:
        """Whether the method looks for variance, so that ``certificate`` tells how well it did."""
        return bool(getattr(self.selector, "seeks_variance", False))

    @cached_property
    def inactive(self) -> InactiveRows | None:
        """What is kept past the active rows of W (SPCAFS); None if nothing is."""
        return find_inactive_rows(self.selector, self.order[: self.k])

    def _name_at(self, place: int) -> str | None:
        return None if place < 0 else str(self.feature_names[self.order[place]])


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
    selector : fitted selector
        Any selector of keepers after ``fit``.
    X : table of shape (n_samples, n_features)
        The table it was fitted on: an array, data frame, sparse matrix, LabelledTable or AnnData
        object.
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
    check_is_fitted(selector)
    missing = getattr(selector, "missing", "error")
    X = named_table(X)
    values = as_matrix(table_values(X), missing)
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
    seconds_choosing: float = 0.0,
    n_samples: int | None = None,
    chosen: str = "",
    trials: Sequence[Mapping[str, Any]] = (),
) -> Selection:
    """The same for values that the fit has just checked.

    If it read them in blocks, X is None, or some of the rows; ``n_samples`` is then the number of
    all. ``chosen`` says why the settings of the selector were chosen, from ``trials``.
    """
    names = np.array([str(name) for name in feature_names], dtype=object)
    weights = _control_weights(selector)
    active = getattr(selector, "n_active_", None)
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
        n_active=None if active is None else int(active),
        source=source,
        scaling=scaling,
        seconds=seconds,
        seconds_choosing=seconds_choosing,
        versions=package_versions(),
        selector=selector,
        X=X,
        how_many=_how_many(selector, k, chosen),
        chosen=chosen,
        trials=tuple(trials),
    )


def fitted_selector(selector: Any) -> Any:
    """The selector that ranked the features: the winner, of one that chose its settings."""
    return getattr(selector, "best_estimator_", selector)


def column_power(selector: Any) -> float:
    """Power of the standard deviation that a fitted selector divides columns by."""
    fitted = fitted_selector(getattr(selector, "selector_", selector))  # of a StabilitySelector
    if isinstance(fitted, DenoisedLaplacian):
        return 1.0
    scaling = getattr(fitted, "scaling", 0.0)
    return float(scaling) if is_real(scaling) else 0.0


def _how_many(selector: Any, k: int | float | None, chosen: str) -> HowMany:
    """Where the number of kept features comes from."""
    if isinstance(selector, AllFeatures):
        return "all"
    if chosen:
        return "chosen"
    asked = getattr(selector, "n_features_to_select", None)
    inner = selector if asked is not None else getattr(selector, "selector_", selector)
    if k is not None or getattr(inner, "n_features_to_select", None) is not None:
        return "asked"
    return "chosen" if isinstance(inner, AutoSelector) or hasattr(inner, "choice_") else "half"


def _control_weights(selector: Any) -> FloatArray:
    """0 for features that are always kept, infinite for those that never are, else above 0."""
    weights = getattr(selector, "penalty_weights_", None)
    if weights is not None:
        return np.asarray(weights)
    given = selector.get_params(deep=False)
    chosen = {name: given[name] for name in ("must_keep", "never_keep") if name in given}
    names = getattr(selector, "feature_names_in_", None)
    return read_control(len(selector.scores_), names, **chosen).weights


def _moments_of(selector: Any, X: Any) -> ColumnMoments:
    """As the fit stored them; measured here for methods that do not, or in single precision, or
    that drew some of the rows.
    """
    stored = all(hasattr(selector, name) for name in ("mean_", "var_", "n_samples_seen_"))
    exact = stored and selector.mean_.dtype == np.float64
    n_rows: Any = getattr(selector, "n_rows_used_", getattr(selector, "n_samples_seen_", None))
    if X is None or (exact and n_rows == X.shape[0]):
        return ColumnMoments(n_rows, selector.mean_, n_rows * selector.var_)
    return column_moments(X)


def correlation_matrix(X: Any, moments: ColumnMoments, columns: IndexArray) -> FloatArray:
    """Pearson correlations of some columns; NaN for those that do not vary."""
    chosen = moments.subset(columns)
    values = X[:, columns].astype(np.float64)
    scatter = as_scatter(values, chosen, len(columns)).dense()
    norms = np.sqrt(np.where(chosen.constant, np.nan, chosen.sum_of_squares))
    return np.clip(scatter / norms[:, None] / norms, -1.0, 1.0)


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

    Gaps are refused, or filled in the way of the selector.
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
    return values if missing == "error" else fill_gaps(values, missing)


def _names_of(feature_names: Any, selector: Any, X: Any, n_features: int) -> list[str]:
    """The features' names: as given, as the selector saw them, as X has them, or x0..."""
    for candidate in (
        feature_names,
        getattr(selector, "feature_names_in_", None),
        getattr(X, "feature_names", getattr(X, "columns", None)),
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
