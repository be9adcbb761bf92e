"""Stability: which features come back on other samples, how far selections agree, and by chance.

`StabilitySelector` selects from halves of the samples, in complementary pairs. `measure_stability`
is the index of Nogueira, Sechidis and Brown, "On the stability of feature selection algorithms",
JMLR 18 (2018): with M sets out of d features, p_f the share of sets that hold feature f and k the
mean size::

    stability = 1 - mean_f s_f^2 / ((k / d)(1 - k / d)),   s_f^2 = M / (M - 1) p_f (1 - p_f).

It is 1 when all sets are the same and 0 on average when sets are drawn at random.

`bound_false_selections` is Shah and Samworth, "Variable selection with error control: another look
at stability selection", J. R. Statist. Soc. B 75 (2013). With B complementary pairs of halves, let
a feature's frequency be the share of the 2B halves in which it was selected, and its joint
frequency the share of the B pairs in which *both* halves selected it. A frequency of at least tau
forces a joint frequency of at least 2 tau - 1. The halves of a pair share no sample, so for a
feature selected with probability p_k the joint frequency has mean p_k^2. What follows is how much
probability a distribution with that mean can have beyond 2 tau - 1, for the features with
p_k <= theta = q / d.
"""

import sys
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar

import joblib
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers._tables import AsTable, as_frame
from keepers.exceptions import (
    DataError,
    DataWarning,
    KeepersError,
    KeepersWarning,
)
from keepers.linalg.moments import column_moments
from keepers.linalg.storage import by_rows
from keepers.methods.base import FitNotes, RankingSelector
from keepers.methods.parameters import (
    FUNCTION,
    FeatureCount,
    Rule,
    Seed,
    count_features,
    positive,
    whole,
)
from keepers.methods.reading import MemoryTable, read_table
from keepers.methods.spcafs import SPCAFS

CONFIDENCE = 0.95


@dataclass(eq=False, repr=False)
class StabilitySelector(RankingSelector):
    """Features by how often a selector picks them from halves of the samples.

    The samples are split at random into two halves, again and again; the selector is fitted to
    each half, and a feature's score is the share of halves in which it was selected: stability
    selection (Meinshausen and Buhlmann 2010) with complementary pairs (Shah and Samworth 2013).
    How far all these selections agree is measured by the index of Nogueira, Sechidis and Brown
    (2018).

    Parameters
    ----------
    selector : selector or None, default=None
        Any selector of this library; None means ``SPCAFS()``. How many features are selected from
        each half, q, is *its* ``n_features_to_select``: the fewer, the sharper the bound on false
        selections. A selector that draws random numbers gets a seed of its own for every half, so
        that its own chance counts as instability too.
    n_resamples : int, default=100
        Halves, an even number: 100 are 50 pairs. The first halves are the same for every
        ``n_resamples`` and the same ``random_state``.
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep in the end, or which share of them; None takes the number of
        ``selector``. It does not influence the scores.
    threshold : float in (0.5, 1], default=0.75
        Frequency from which a feature is called stable.
    random_state : int, RandomState or None, default=None
        Seeds the halves, and ``selector`` on each of them.
    n_jobs : int or None, default=None
        Processes, as in joblib; the result does not depend on it. Each computes with one thread.
    callback : callable or None, default=None
        Called after each half with the number done and the number of all.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Selection frequencies; higher is better.
    ranking_ : array of shape (n_features,)
        1 is the best feature: by frequency, and among equals by ``mean_ranks_``. Constant columns
        come last.
    support_ : boolean array of shape (n_features,)
        The features kept: the first ``n_features_to_select`` of the ranking.
    stable_ : boolean array of shape (n_features,)
        The features whose frequency reaches ``threshold``; there may be more or fewer of them.
    frequencies_ : array of shape (n_features,)
        The scores under their own name.
    frequency_intervals_ : array of shape (n_features, 2)
        Wilson's 95 % intervals of the frequencies, as if the halves were independent draws: how
        far the frequencies have converged after ``n_resamples`` halves of *this* table. They say
        nothing about another table.
    mean_ranks_ : array of shape (n_features,)
        Mean of the features' ranks over the halves.
    expected_false_selections_ : FalseSelections
        Upper bounds on how many features of low selection probability are called stable:
        ``worst_case`` without assumptions, ``unimodal`` with the one it names.
    stability_ : Stability
        ``index`` (1: always the same features, 0: chance), ``variance``, ``interval``,
        ``verdict``. The index is NaN, with the reason, if every feature was always selected.
    selections_ : boolean array of shape (n_resamples, n_features)
        What was selected from each half; rows 2j and 2j + 1 are a pair. A column that is constant
        in a half does not count as selected.
    selector_ : selector
        ``selector`` fitted to all samples.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    Examples
    --------
    >>> from keepers import StabilitySelector, VarianceScore, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> stable = StabilitySelector(VarianceScore(50), n_resamples=20, random_state=0).fit(X)
    >>> stable.transform(X).shape
    (83, 50)
    >>> stable.stability_.verdict
    'intermediate to good'
    """

    looks_for = "features that are selected again from other samples"
    score_means = "the share of the halves of the samples in which the feature was selected"

    selector: RankingSelector | None = None
    n_resamples: int = 100
    _: KW_ONLY
    n_features_to_select: FeatureCount = None
    threshold: float = 0.75
    random_state: Seed = None
    n_jobs: int | None = None
    callback: Callable[[int, int], object] | None = None

    parameter_rules: ClassVar = {
        "selector": Rule(
            "a selector of this library, such as SPCAFS(50), or None",
            lambda value: value is None or isinstance(value, RankingSelector),
        ),
        "n_resamples": Rule(
            "an even number >= 2",
            lambda value: whole(2).accepts(value) and value % 2 == 0,
            "Halves come in complementary pairs.",
        ),
        "threshold": Rule(
            "a number in (0.5, 1]",
            lambda value: positive(at_most=1.0).accepts(value) and value > 0.5,
            "At one half or below there is no bound on features selected by chance.",
        ),
        "callback": FUNCTION,
    }
    why_not_dask = "it fits many halves of the rows, in memory."

    @property
    def why_not_sparse(self) -> str | None:  # type: ignore[override]
        """The base selector's reason, if it cannot take a sparse matrix."""
        return getattr(self.selector, "why_not_sparse", None)

    def _fit(self, X: Any) -> None:
        base = SPCAFS() if self.selector is None else self.selector
        table = read_table(self, X)
        n_samples, n_usable = table.X.shape
        if n_samples < 4:
            raise DataError(
                f"Stability needs at least 4 samples, two in each half; X has {n_samples}."
            )
        rng = self.random_generator()
        whole = _fit_to_all(base, X, int(rng.integers(2**31 - 1)))
        kept = min(whole.n_features_to_select_, n_usable)
        selections, rank_sum = self._select_from_halves(
            _without_listeners(base, kept), table, draw_halves(n_samples, self.n_resamples, rng)
        )
        self.selector_ = whole
        self._store(table, selections, rank_sum)

    def check_parameters(self) -> None:
        """Raise for settings outside their rules, without looking at data."""
        super().check_parameters()
        if self.selector is not None:
            self.selector.check_parameters()

    def _select_from_halves(
        self, selector: Any, table: MemoryTable, halves: list[tuple[IndexArray, int]]
    ) -> tuple[BoolArray, FloatArray]:
        """The selection from each half, and the sum of the ranks, over the usable columns."""
        X = by_rows(table.X)
        parallel = joblib.Parallel(n_jobs=self.n_jobs, return_as="generator")
        results: Any = parallel(
            joblib.delayed(rank_half)(selector, rows, seed, X) for rows, seed in halves
        )
        selections = np.zeros((len(halves), X.shape[1]), dtype=bool)
        rank_sum = np.zeros(X.shape[1])
        with closing(results):
            for i, (ranking, selected) in enumerate(results):
                selections[i] = selected
                rank_sum += ranking
                if self.callback is not None:
                    self.callback(i + 1, len(halves))
        return selections, rank_sum

    def _store(self, table: MemoryTable, selections: BoolArray, rank_sum: FloatArray) -> None:
        n_halves, n_features, unusable = len(selections), table.n_features, table.unusable
        self.selections_ = table.to_all_columns(selections, fill=False)
        self.mean_ranks_ = table.to_all_columns(rank_sum / n_halves, fill=n_features)
        counts = self.selections_.sum(axis=0)
        self.frequencies_ = counts / n_halves
        self.frequency_intervals_ = wilson_intervals(counts, n_halves)
        q = float(selections.sum(axis=1).mean())
        bound = bound_false_selections(q, len(table.usable), self.threshold, n_halves // 2)
        self.expected_false_selections_ = bound
        self.stable_ = self.frequencies_ >= bound.threshold - 0.5 / n_halves
        self.stability_ = measure_stability(selections)
        self.n_features_to_select_ = (
            self.selector_.n_features_to_select_
            if self.n_features_to_select is None
            else count_features(self.n_features_to_select, n_features)
        )
        order = np.lexsort((self.mean_ranks_, -self.frequencies_, unusable))
        ranking = np.empty(n_features, dtype=np.intp)
        ranking[order] = np.arange(1, n_features + 1)
        self.scores_ = self.frequencies_
        self.support_ = ranking <= self.n_features_to_select_
        self.ranking_ = ranking

    @property
    def column_power(self) -> float:
        """That of the selector that is fitted to the halves."""
        base: Any = vars(self).get("selector_", self.selector)
        return float((SPCAFS() if base is None else base).column_power)

    def fit_notes(self) -> FitNotes:
        """What the fit has to report: how well the halves agree, and which features are stable."""
        notes, index = super().fit_notes(), self.stability_
        if self.n_features_to_select is None:
            notes = replace(notes, how_many=self.selector_.fit_notes().how_many)
        if index.why_undefined is not None:
            return replace(notes, how_sure=(f"Stability is not known: {index.why_undefined}",))
        bound, n_stable = self.expected_false_selections_, int(self.stable_.sum())
        agree = (
            f"Selections from {len(self.selections_)} halves of the samples agree with a stability "
            f"of {index.index:.2f} (1: always the same features, 0: chance): {index.verdict}."
        )
        stable = (
            f"{n_stable:,} {'feature is' if n_stable == 1 else 'features are'} selected in at "
            f"least {bound.threshold:.0%} of the halves; at most {bound.worst_case:.3g} of these "
            "are expected by chance."
        )
        return replace(notes, how_sure=(agree, stable))

    def to_frame(self) -> Any:
        """The features as a pandas data frame, best first.

        Returns
        -------
        pandas.DataFrame
            ``feature``, ``frequency``, ``lower`` and ``upper`` of its interval, ``mean_rank`` and
            ``stable``; one row a feature.
        """
        check_is_fitted(self)
        order = np.argsort(self.ranking_)
        return as_frame(
            [
                {
                    "feature": str(name),
                    "frequency": float(self.frequencies_[column]),
                    "lower": float(self.frequency_intervals_[column, 0]),
                    "upper": float(self.frequency_intervals_[column, 1]),
                    "mean_rank": float(self.mean_ranks_[column]),
                    "stable": bool(self.stable_[column]),
                }
                for column, name in zip(order, self._names_of_columns()[order], strict=True)
            ]
        )


def draw_halves(
    n_samples: int, n_resamples: int, rng: np.random.Generator
) -> list[tuple[IndexArray, int]]:
    """Complementary pairs of halves, one after the other: rows, and a seed for the selector."""
    half = n_samples // 2
    halves = []
    for _ in range(n_resamples // 2):
        order = rng.permutation(n_samples)
        halves += [
            (np.sort(rows), int(rng.integers(2**31 - 1)))
            for rows in (order[:half], order[half : 2 * half])
        ]
    return halves


def rank_half(selector: Any, rows: IndexArray, seed: int, X: Any) -> tuple[IndexArray, BoolArray]:
    """Ranking and selection from some rows of X."""
    half = X[rows]
    fitted = clone(selector)
    if "random_state" in fitted.get_params(deep=False):
        fitted.set_params(random_state=seed)
    # One thread everywhere: sums depend on how many threads share them.
    with _thread_pools(len(sys.modules)).limit(limits=1), warnings.catch_warnings():
        # The fit to all samples warns; a hundred halves repeating it would only hide that.
        warnings.simplefilter("ignore", KeepersWarning)
        try:
            fitted.fit(half)
        except KeepersError as error:
            message = f"On a half of the samples, {len(rows)} of {X.shape[0]}: {error}"
            raise type(error)(message) from error
    selected = fitted.support_ & ~column_moments(half).constant
    return fitted.ranking_.astype(np.int32), selected


@lru_cache(maxsize=1)
def _thread_pools(_n_modules: int) -> Any:
    """The thread pools of this process; finding them takes 10 ms, so only after new imports."""
    return ThreadpoolController()


def wilson_intervals(counts: IndexArray, n_draws: int) -> FloatArray:
    """Wilson's 95 % intervals for shares counted in ``n_draws`` independent draws."""
    z2 = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) ** 2
    shares = counts / n_draws
    centre = (shares + z2 / (2 * n_draws)) / (1 + z2 / n_draws)
    inner = z2 * (shares * (1 - shares) / n_draws + z2 / (4 * n_draws**2))
    reach = np.sqrt(inner) / (1 + z2 / n_draws)
    intervals = np.stack([centre - reach, centre + reach], axis=1)
    return np.clip(intervals, 0.0, 1.0)


def _fit_to_all(base: Any, X: Any, seed: int) -> Any:
    """The base selector on all samples; one without a seed gets this one."""
    whole = clone(base)
    if whole.get_params(deep=False).get("random_state", seed) is None:
        whole.set_params(random_state=seed)
    with warnings.catch_warnings():
        # Reading the table has already named the constant columns.
        warnings.filterwarnings("ignore", ".*do not vary.*", DataWarning)
        whole.fit(X)
    return whole


def _without_listeners(base: Any, n_features_to_select: int) -> Any:
    """The selector for the halves: a fixed number of features, without progress reports."""
    silent = {"callback": None, "verbose": 0, "random_state": None}
    found = base.get_params(deep=False)
    settings = {name: value for name, value in silent.items() if name in found}
    return clone(base).set_params(n_features_to_select=n_features_to_select, **settings)


@dataclass(frozen=True)
class Stability(AsTable):
    """Nogueira's index of some selections, with its 95 % interval; ``float(...)`` is the index."""

    index: float
    """1: always the same features. 0: as much agreement as chance gives. NaN: not defined."""
    variance: float
    """Estimated variance of the index."""
    interval: tuple[float, float]
    """Where the index of infinitely many sets lies with 95 % confidence, if the sets are
    independent draws (the normal approximation; not cut off at 1)."""
    n_sets: int
    """Sets of features compared, M."""
    why_undefined: str | None = None
    """The reason, where the index is NaN."""

    @property
    def verdict(self) -> str:
        """A word after the benchmark of Fleiss, as the authors propose."""
        if self.why_undefined is not None:
            return "undefined"
        if self.index > 0.75:
            return "excellent"
        return "poor" if self.index < 0.4 else "intermediate to good"

    def rows(self) -> list[dict[str, Any]]:
        """The table: one row, a dict.

        Returns
        -------
        list of dict
            ``index``, ``lower`` and ``upper`` of its interval, ``n_sets`` and ``verdict``.
        """
        lower, upper = self.interval
        return [
            {
                "index": self.index,
                "lower": lower,
                "upper": upper,
                "n_sets": self.n_sets,
                "verdict": self.verdict,
            }
        ]

    def __float__(self) -> float:
        return self.index

    def __str__(self) -> str:
        if self.why_undefined is not None:
            return f"stability is not defined: {self.why_undefined}"
        low, high = self.interval
        return (
            f"stability {self.index:.3f} ({CONFIDENCE:.0%} interval {low:.3f} to {high:.3f}, "
            f"{self.n_sets} sets): {self.verdict}"
        )


def measure_stability(selections: ArrayLike) -> Stability:
    """Agreement of selected sets, corrected for chance, with a 95 % interval.

    Parameters
    ----------
    selections : boolean array of shape (n_sets, n_features)
        One row a set: which features it holds. Sets may differ in size.

    Returns
    -------
    Stability
        ``index``, ``variance``, ``interval``, ``verdict``; the index is NaN, with the reason in
        ``why_undefined``, when no set could have disagreed with another.

    Examples
    --------
    >>> from keepers.tuning.stability import measure_stability
    >>> print(measure_stability([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]]))
    stability 0.333 (95% interval -0.022 to 0.689, 3 sets): poor
    """
    Z = _check_selections(selections)
    n_sets, n_features = Z.shape
    shares = Z.mean(axis=0, dtype=np.float64)
    mean_share = float(shares.mean())
    if Z.all() or not Z.any():
        which = "every feature" if Z.any() else "no feature"
        return Stability(
            np.nan, np.nan, (np.nan, np.nan), n_sets, f"{which} was selected every time."
        )
    chance = mean_share * (1 - mean_share)
    observed = float(np.mean(shares * (1 - shares))) * n_sets / (n_sets - 1)
    index = 1 - observed / chance
    # The part of each set in the index (phi_i in their variance): its agreement with the shares
    # beyond that of its size. Twice its deviation is the derivative by the weight of that set.
    sizes = Z.mean(axis=1, dtype=np.float64)
    agreement = Z @ shares / n_features - sizes * mean_share
    by_size = sizes * mean_share - (sizes + mean_share) / 2 + 0.5
    contributions = (agreement + index * by_size) / chance
    variance = 4 * float(np.var(contributions)) / n_sets
    reach = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * np.sqrt(variance)
    return Stability(index, variance, (float(index - reach), float(index + reach)), n_sets)


def _check_selections(selections: ArrayLike) -> BoolArray:
    Z = np.asarray(selections)
    if Z.ndim != 2 or Z.shape[0] < 2 or Z.shape[1] < 1:
        raise DataError(
            "Stability compares at least two sets, the rows of a table with a column for each "
            f"feature; got an array of shape {Z.shape}."
        )
    if not np.isin(Z, (0, 1)).all():
        raise DataError(
            "A selection is True or False (or 1 or 0) for each feature; other values were found. "
            "Pass support masks, not scores or rankings."
        )
    return Z.astype(bool)


@dataclass(frozen=True)
class FalseSelections:
    """Upper bounds on how many features of low selection probability reach the threshold.

    "Low" means at most q / d: no more often than a draw of q features out of d would. As a number
    (``float(...)``) this is the bound that assumes nothing.
    """

    worst_case: float
    """q^2 / ((2 threshold - 1) d), Meinshausen and Buhlmann's number. Needs no assumption on the
    selector or the data beyond samples drawn independently from one distribution."""
    unimodal: float
    """Holds if every such feature's joint frequency has a distribution with a single peak."""
    q: float
    """Features selected in a half, on average."""
    n_features: int
    """d, the features there were to choose from (constant columns are none)."""
    threshold: float
    """The smallest frequency that counts as reaching the threshold: a whole number of halves."""
    n_pairs: int
    """Complementary pairs of halves, B."""

    def __float__(self) -> float:
        return self.worst_case

    def __str__(self) -> str:
        return (
            f"at most {self.worst_case:.3g} of {self.n_features} features by chance at threshold "
            f"{self.threshold:g} with {self.q:g} selected in each half; {self.unimodal:.3g} if "
            "their joint frequencies are unimodal"
        )


def bound_false_selections(
    q: float, n_features: int, threshold: float, n_pairs: int
) -> FalseSelections:
    """Bound the expected number of features of low selection probability that are called stable.

    Parameters
    ----------
    q : float
        Features selected in a half, on average.
    n_features : int
        Features there were to choose from.
    threshold : float in (0.5, 1]
        Frequency from which a feature is called stable.
    n_pairs : int
        Complementary pairs of halves.

    Returns
    -------
    FalseSelections
        The bound that assumes nothing, and a tighter one.

    Examples
    --------
    >>> from keepers.tuning.stability import bound_false_selections
    >>> bound = bound_false_selections(q=10, n_features=100, threshold=0.6, n_pairs=50)
    >>> round(bound.worst_case, 3), round(bound.unimodal, 3)
    (5.0, 2.632)
    """
    # 0.7 * 100 is 70.00000000000001 in binary: without the rounding it would need 71 halves.
    n_halves = int(np.ceil(round(threshold * 2 * n_pairs, 9)))
    reached = n_halves / (2 * n_pairs)
    theta = q / n_features
    worst_case = min(float(n_features), q * theta / (2 * reached - 1))
    unimodal = min(worst_case, q * theta * _unimodal_factor(reached, n_pairs, theta))
    return FalseSelections(worst_case, unimodal, q, n_features, reached, n_pairs)


def _unimodal_factor(threshold: float, n_pairs: int, theta: float) -> float:
    """C(tau, B) of Shah and Samworth's Theorem 2; infinite where it does not apply."""
    step = 1 / (2 * n_pairs)
    lowest = 0.5 + min(theta**2, step + 0.75 * theta**2)
    if theta > 1 / np.sqrt(3) or threshold <= lowest or threshold < 0.5 + 2 * step:
        return np.inf
    if threshold <= 0.75:
        return 1 / (2 * (2 * threshold - 1 - step))
    return 4 * (1 - threshold + step) / (1 + 2 * step)
