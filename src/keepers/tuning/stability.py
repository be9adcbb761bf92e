"""Stability: the features that are selected again from other samples.

`measure_stability` is the index of Nogueira, Sechidis and Brown, "On the stability of feature
selection algorithms", JMLR 18 (2018): with M sets out of d features, p_f the share of sets that
hold feature f and k the mean size::

    stability = 1 - mean_f s_f^2 / ((k / d)(1 - k / d)),   s_f^2 = M / (M - 1) p_f (1 - p_f).

The bound on false selections is that of Shah and Samworth, "Variable selection with error control:
another look at stability selection", J. R. Statist. Soc. B 75 (2013). A feature that is selected in
a share tau of the halves is selected in both halves of at least a share 2 tau - 1 of the pairs. The
halves of a pair have no sample in common, so the mean of the latter share is p^2 for a feature
selected with probability p, and Markov's inequality bounds how often it reaches 2 tau - 1.
"""

import sys
import warnings
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar

import joblib
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from threadpoolctl import ThreadpoolController

from keepers._blas_threads import one_blas_thread
from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.exceptions import DataError, DataWarning, KeepersError, KeepersWarning
from keepers.linalg.scatter import by_rows, column_moments
from keepers.methods.auto import AutoSelector
from keepers.methods.base import FitNotes, RankingSelector
from keepers.methods.parameters import (
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
    """Rank features by how often a selector picks them from halves of the samples.

    The samples are split at random into two halves, many times, and the selector is fitted to each
    half. A feature's score is the share of halves in which it was selected. This is stability
    selection (Meinshausen and Buhlmann 2010) with complementary pairs (Shah and Samworth 2013).
    The index of Nogueira, Sechidis and Brown (2018) measures how well the selections agree.

    Parameters
    ----------
    selector : selector or None, default=None
        Any selector of keepers; None means ``SPCAFS()``. Its ``n_features_to_select`` is the number
        of features selected from each half, q. A smaller q gives a sharper bound on false
        selections. A selector that uses random numbers gets its own seed for every half.
    n_resamples : int, default=100
        Number of halves, even: 100 halves are 50 pairs.
    n_features_to_select : int, float in (0, 1] or None, default=None
        Number or share of features to keep in the end; None takes the number of ``selector``. It
        does not influence the scores.
    threshold : float in (0.5, 1], default=0.75
        Share of halves from which a feature counts as stable.
    random_state : int, RandomState or None, default=None
        Seeds the halves, and ``selector`` on each of them.
    n_jobs : int or None, default=None
        Processes, as in joblib; the result does not depend on it. Each computes with one thread.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Share of halves that select each feature; higher is better. ``mean_ranks_`` breaks ties.
    {fitted}
    stable_ : boolean array of shape (n_features,)
        The features whose score reaches ``threshold``; more or fewer may be kept.
    mean_ranks_ : array of shape (n_features,)
        Mean rank of each feature over the halves.
    expected_false_selections_ : float
        Upper bound on the mean number of features that count as stable although their selection
        probability is at most q / d, as in a random draw: q^2 / ((2 threshold - 1) d).
    stability_ : Stability
        ``index`` (1: always the same features, 0: chance), ``variance``, ``interval``,
        ``verdict``. The index is NaN, with the reason, if every feature was always selected.
    selections_ : boolean array of shape (n_resamples, n_features)
        The features selected from each half; rows 2j and 2j + 1 are a pair. A column that is
        constant in a half does not count as selected.
    selector_ : selector
        ``selector`` fitted to all samples (with ``n_halves=0`` if it has this parameter).

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
        seeded = {"random_state": int(rng.integers(2**31 - 1))}
        has_seed = getattr(base, "random_state", None) is not None
        whole = _adapted(base, n_halves=0, **({} if has_seed else seeded))
        with warnings.catch_warnings():
            # Reading the table has already named the constant columns.
            warnings.filterwarnings("ignore", ".*do not vary.*", DataWarning)
            whole.fit(X)
        kept = min(whole.n_features_to_select_, n_usable)
        selector = _adapted(base, n_features_to_select=kept, n_halves=0, callback=None)
        X = by_rows(table.X)
        found = joblib.Parallel(n_jobs=self.n_jobs)(
            joblib.delayed(rank_half)(selector, rows, seed, X, whole)
            for rows, seed in draw_halves(n_samples, self.n_resamples, rng)
        )
        rankings, selections = (np.array(part) for part in zip(*found, strict=True))
        self.selector_ = whole
        self._store(table, selections, rankings.mean(axis=0))

    def check_parameters(self) -> None:
        """Raise for settings outside their rules, without looking at data."""
        super().check_parameters()
        if self.selector is not None:
            self.selector.check_parameters()

    def _store(self, table: MemoryTable, selections: BoolArray, mean_ranks: FloatArray) -> None:
        n_halves, n_features = len(selections), table.n_features
        self.selections_ = table.to_all_columns(selections, fill=False)
        self.mean_ranks_ = table.to_all_columns(mean_ranks, fill=n_features)
        self.scores_ = self.selections_.mean(axis=0)
        needed = halves_needed(self.threshold, n_halves)
        self.stable_ = self.selections_.sum(axis=0) >= needed
        q, share = float(selections.sum(axis=1).mean()), needed / n_halves
        self.expected_false_selections_ = bound_false_selections(q, len(table.usable), share)
        self.stability_ = measure_stability(selections)
        self.n_features_to_select_ = (
            self.selector_.n_features_to_select_
            if self.n_features_to_select is None
            else count_features(self.n_features_to_select, n_features)
        )
        order = np.lexsort((self.mean_ranks_, -self.scores_, table.unusable))
        self.ranking_ = np.empty(n_features, dtype=np.intp)
        self.ranking_[order] = np.arange(1, n_features + 1)
        self.support_ = self.ranking_ <= self.n_features_to_select_

    @property
    def column_power(self) -> float:
        """The power used by the selector that is fitted to the halves."""
        base: Any = vars(self).get("selector_", self.selector)
        return float((SPCAFS() if base is None else base).column_power)

    def fit_notes(self) -> FitNotes:
        """The agreement of the halves, and the stable features."""
        notes, index = super().fit_notes(), self.stability_
        if self.n_features_to_select is None:
            notes = replace(notes, how_many=self.selector_.fit_notes().how_many)
        if index.why_undefined is not None:
            return replace(notes, how_sure=(f"Stability is not defined: {index.why_undefined}",))
        n_stable = int(self.stable_.sum())
        agree = (
            f"Selections from {len(self.selections_)} halves of the samples agree with a stability "
            f"of {index.index:.2f} (1: always the same features, 0: chance): {index.verdict}."
        )
        stable = (
            f"{n_stable:,} {'feature is' if n_stable == 1 else 'features are'} selected in at "
            f"least {self.threshold:.0%} of the halves; at most "
            f"{self.expected_false_selections_:.3g} of these are expected by chance."
        )
        return replace(notes, how_sure=(agree, stable))


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


def halves_needed(threshold: float, n_halves: int) -> int:
    """The smallest number of halves whose share reaches the threshold."""
    # 0.7 * 100 is 70.00000000000001 in binary: without the rounding it would need 71 halves.
    return int(np.ceil(round(threshold * n_halves, 9)))


def bound_false_selections(q: float, n_features: int, threshold: float) -> float:
    """Expected number, at most, of features with p <= q / d that are selected that often."""
    return min(float(n_features), q * q / n_features / (2 * threshold - 1))


def rank_half(
    selector: Any, rows: IndexArray, seed: int, X: Any, whole: RankingSelector
) -> tuple[IndexArray, BoolArray]:
    """Ranking and selection from some rows of X."""
    half = X[rows]
    fitted = _adapted(selector, random_state=seed)
    # One thread everywhere: sums depend on how many threads share them. The second says so to what
    # would limit the threads of every small decomposition.
    pools = _thread_pools(len(sys.modules))
    with pools.limit(limits=1), one_blas_thread(), warnings.catch_warnings():
        # The fit to all samples warns; a hundred halves repeating it would only hide that.
        warnings.simplefilter("ignore", KeepersWarning)
        try:
            if isinstance(fitted, AutoSelector):
                fitted.fit_half(half, whole)
            else:
                fitted.fit(half)
        except KeepersError as error:
            message = f"On a half of the samples, {len(rows)} of {X.shape[0]}: {error}"
            raise type(error)(message) from error
    selected = fitted.support_ & ~column_moments(half).constant
    return fitted.ranking_.astype(np.int32), selected


@lru_cache(maxsize=1)
def _thread_pools(_n_modules: int) -> Any:
    """The thread pools of this process, searched (10 ms) only after new imports."""
    return ThreadpoolController()


def _adapted(selector: Any, **settings: Any) -> Any:
    """A copy with those of the settings that the selector has."""
    known = selector.get_params(deep=False)
    return clone(selector).set_params(
        **{name: settings[name] for name in settings if name in known}
    )


@dataclass(frozen=True)
class Stability:
    """Nogueira's index of some selections, with its 95 % interval; ``float(...)`` is the index."""

    index: float
    """1: always the same features. 0: the agreement expected by chance. NaN: not defined."""
    variance: float
    """Estimated variance of the index."""
    interval: tuple[float, float]
    """The 95 % confidence interval of the index of infinitely many sets, if the sets are
    independent draws (normal approximation; it may exceed 1)."""
    n_sets: int
    """Number of sets compared, M."""
    why_undefined: str | None = None
    """The reason if the index is NaN."""

    @property
    def verdict(self) -> str:
        """The index in words, by the benchmark of Fleiss that the authors propose."""
        if self.why_undefined is not None:
            return "undefined"
        if self.index > 0.75:
            return "excellent"
        return "poor" if self.index < 0.4 else "intermediate to good"

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
        One row per set: True for the features in it. Sets may differ in size.

    Returns
    -------
    Stability
        ``index``, ``variance``, ``interval``, ``verdict``; the index is NaN, with the reason in
        ``why_undefined``, if all sets hold every feature, or none.

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
            "Stability compares at least two sets: a table with one row per set and one column per "
            f"feature; got an array of shape {Z.shape}."
        )
    if not np.isin(Z, (0, 1)).all():
        raise DataError(
            "A selection is True or False (or 1 or 0) for each feature; other values were found. "
            "Pass support masks, not scores or rankings."
        )
    return Z.astype(bool)
