"""Stability selection around any selector: which features come back on other samples."""

import os
import sys
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, check_memory
from threadpoolctl import ThreadpoolController

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers._tables import as_frame
from keepers.exceptions import (
    DataError,
    DataWarning,
    KeepersError,
    KeepersWarning,
    ParameterError,
    shorten,
)
from keepers.linalg.moments import column_moments
from keepers.linalg.storage import by_rows
from keepers.selectors.fitted_table import Table, read_table
from keepers.selectors.parameters import (
    FeatureCount,
    Seed,
    check_callback,
    check_count,
    check_positive,
    count_features,
)
from keepers.selectors.ranking import RankingSelector
from keepers.selectors.spcafs import SPCAFS
from keepers.tuning.false_selections import bound_false_selections
from keepers.tuning.stability_index import measure_stability

DEFAULT_SELECTOR: type[Any] = SPCAFS
FEWEST_SAMPLES = 4
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
        How many features to keep in the end, or which share of them; None keeps as many as
        ``selector`` does. It does not influence the scores.
    threshold : float in (0.5, 1], default=0.75
        Frequency from which a feature is called stable.
    random_state : int, RandomState or None, default=None
        Seeds the halves, and ``selector`` on each of them. Resuming needs an int.
    n_jobs : int or None, default=None
        Processes, as in joblib; the result does not depend on it. Each computes with one thread.
    memory : str, path, joblib.Memory or None, default=None
        A folder in which each half's ranking is kept once it is there, so that a run that was
        stopped, or is repeated with more resamples, only computes what is missing. Entries
        belong to one selector with its settings, one table and one version of the library. As
        with every joblib cache, use a folder nobody else can write to.
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
        ``worst_case`` without assumptions, ``unimodal`` and ``r_concave`` with the one they name.
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

    selector: RankingSelector | None = None
    n_resamples: int = 100
    _: KW_ONLY
    n_features_to_select: FeatureCount = None
    threshold: float = 0.75
    random_state: Seed = None
    n_jobs: int | None = None
    memory: Any = None
    callback: Callable[[int, int], object] | None = None

    why_not_dask = "it fits many halves of the rows, in memory."

    @property
    def why_not_sparse(self) -> str | None:  # type: ignore[override]
        """The base selector's reason, if it cannot take a sparse matrix."""
        return getattr(self.selector, "why_not_sparse", None)

    def _fit(self, X: Any) -> None:
        base = DEFAULT_SELECTOR() if self.selector is None else self.selector
        table = read_table(self, X)
        n_samples, n_usable = table.X.shape
        if n_samples < FEWEST_SAMPLES:
            raise DataError(
                f"Stability needs at least {FEWEST_SAMPLES} samples, two in each half; X has "
                f"{n_samples}."
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
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        if self.selector is not None and not isinstance(self.selector, RankingSelector):
            raise ParameterError(
                "selector must be a selector of this library, such as SPCAFS(50), or None; got "
                f"{shorten(self.selector)}."
            )
        if self.selector is not None:
            self.selector.check_parameters()
        hint = "Halves come in complementary pairs."
        if check_count("n_resamples", self.n_resamples, at_least=2, hint=hint) % 2:
            raise ParameterError(
                f"n_resamples must be even; got {shorten(self.n_resamples)}. {hint}"
            )
        if check_positive("threshold", self.threshold, at_most=1.0) <= 0.5:
            raise ParameterError(
                f"threshold must lie in (0.5, 1]; got {shorten(self.threshold)}. Up to one half "
                "nothing can be said about features selected by chance."
            )
        check_callback(self.callback)
        _memory(self.memory)

    def _select_from_halves(
        self, selector: Any, table: Table, halves: list[tuple[IndexArray, int]]
    ) -> tuple[BoolArray, FloatArray]:
        """What each half selects, and the sum of its ranks, over the usable columns."""
        X = by_rows(table.X)
        ranked = _memory(self.memory).cache(rank_half, ignore=["X"])
        # Looked up, not imported: the package stands above its parts.
        key = (fingerprint(X), str(sys.modules["keepers"].__version__))
        parallel = joblib.Parallel(n_jobs=self.n_jobs, return_as="generator")
        results: Any = parallel(
            joblib.delayed(ranked)(selector, key, rows, seed, X) for rows, seed in halves
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

    def _store(self, table: Table, selections: BoolArray, rank_sum: FloatArray) -> None:
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


def rank_half(
    selector: Any, key: tuple[str, str], rows: IndexArray, seed: int, X: Any
) -> tuple[IndexArray, BoolArray]:
    """Ranking and selection from some rows of X. ``key`` stands for X in the cache."""
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


def fingerprint(X: Any) -> str:
    """The same text for the same numbers in the same storage."""
    parts = (X.shape, X.data, X.indices, X.indptr) if sp.issparse(X) else np.asarray(X)
    return str(joblib.hash(parts))


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
    """The selector for the halves: a set number of features, and nobody told about its steps.

    What only listens must not decide whether two cached fits are the same either.
    """
    silent = {"callback": None, "verbose": 0, "random_state": None}
    found = base.get_params(deep=False)
    settings = {name: value for name, value in silent.items() if name in found}
    return clone(base).set_params(n_features_to_select=n_features_to_select, **settings)


def _memory(location: Any) -> Any:
    try:
        return check_memory(os.fspath(location) if isinstance(location, os.PathLike) else location)
    except ValueError as error:
        raise ParameterError(
            "memory must be a folder, a joblib.Memory or None (nothing is kept); got "
            f"{shorten(location)}."
        ) from error
