"""Settings of SPCAFS, chosen from X alone: one search, and `SPCAFSCV` on top of it.

Every combination of settings is fitted, and the one whose kept features have the largest fidelity
times the square root of clumpiness wins (docs/without-labels.md).

* Fidelity: the share of a sample's nearest neighbours in the whole table (every feature brought to
  the same variance) that are among its nearest neighbours in the kept columns. Samples at the same
  distance share a place among the nearest.
* Clumpiness: how much nearer the nearest neighbours are, in the kept columns, than in Gaussian data
  with the same covariance: the ratio of the two mean distances, each relative to the mean distance
  of all pairs, minus 1. Columns of few values make samples coincide, without clusters:
  values that coincide are spread over the part of a Gaussian that falls on them, as in randomised
  quantile residuals (Dunn and Smyth 1996).
"""

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any

import joblib
import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from keepers._protocols import FloatArray, IndexArray
from keepers._tables import AsTable
from keepers.exceptions import (
    DataWarning,
    InactiveRowsWarning,
    KeepersWarning,
    ParameterError,
    UnitsWarning,
    shorten,
    warn_caller,
)
from keepers.linalg.correlation import walk_ranking
from keepers.linalg.ordering import COINCIDENT, levels, share_of_nearest, squared_distances
from keepers.linalg.scatter import as_array, as_scatter, by_columns
from keepers.linalg.spectrum import principal_subspace
from keepers.methods.auto import AutoSelector
from keepers.methods.base import FEWEST_COMPARED, FitNotes, RankingSelector
from keepers.methods.parameters import (
    FEATURE_COUNT,
    SEED,
    FeatureCount,
    Seed,
    check_value,
    count_features,
    is_real,
    one_of,
    positive,
)
from keepers.methods.reading import MemoryTable, read_table, refuse_dask
from keepers.methods.spcafs import SPCAFS

# Chosen by the study in docs/without-labels.md.
GAMMA_SHARES = (1e-5, 1.0)
COMPONENTS = (1, 10, 30, 100)
SCALINGS = (0.0, 0.5, 1.0)
MAX_CORRELATIONS = (0.8, 0.6)
TRIED = ("n_components", "gamma_shares", "scaling", "max_correlation")

N_NEIGHBORS = 5
MOST_SAMPLES = 1000
N_DRAWS = 3


@dataclass(frozen=True)
class Trial:
    """One combination that was tried."""

    params: dict[str, Any]
    """Settings of `SPCAFS`; ``gamma`` is on the scale of the scatter."""
    gamma_share: float
    """``gamma`` as a share of the leading eigenvalue."""
    n_active: int
    """Number of features with active rows."""
    n_active_kept: int
    """Number of kept features with active rows."""
    fidelity: float
    """Share of nearest neighbours in the whole table that are also nearest in the kept columns."""
    clumpiness: float
    """How much closer neighbours are than in Gaussian data: 0 if equally close, at most 2."""
    columns: IndexArray = field(repr=False)
    """The kept features, best first."""

    @property
    def score(self) -> float:
        """Fidelity times the square root of clumpiness; higher is better."""
        # Clumpiness below 0.01 is noise, and may be negative.
        return float(self.fidelity * np.sqrt(max(self.clumpiness, 0.01)))

    @property
    def keeps_active_only(self) -> bool:
        """True if every kept feature has an active row."""
        return self.n_active_kept == len(self.columns)


@dataclass(frozen=True)
class SettingsChoice(AsTable):
    """The settings that `select_settings` recommends, with the evidence."""

    n_features_to_select: int
    """Number of features to keep; 0 if no structure was found and no number was given."""
    trials: tuple[Trial, ...] = field(repr=False)
    """All combinations, best first; those that keep only active features precede the others."""
    structure_found: bool
    """False if no feature is related to the others beyond chance."""

    @property
    def best(self) -> Trial:
        """The recommendation."""
        return self.trials[0]

    @property
    def params(self) -> dict[str, Any]:
        """Settings for `SPCAFS`: ``SPCAFS(**choice.params)``."""
        return {"n_features_to_select": self.n_features_to_select, **self.best.params}

    def rows(self) -> list[dict[str, Any]]:
        """All combinations, one dict each, ready for a data frame."""
        shown = ("gamma_share", "n_active", "n_active_kept", "fidelity", "clumpiness", "score")
        return [
            {**trial.params, **{name: getattr(trial, name) for name in shown}}
            for trial in self.trials
        ]


def select_settings(
    X: Any,
    n_features_to_select: FeatureCount = None,
    *,
    n_components: Any = COMPONENTS,
    gamma_shares: Any = GAMMA_SHARES,
    scaling: Any = SCALINGS,
    max_correlation: Any = MAX_CORRELATIONS,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> SettingsChoice:
    """Choose the settings of `SPCAFS`, and how many features to keep, without labels.

    The number of features is the one that `AutoSelector` finds. Every combination of the settings
    below is fitted. The score of a combination is its fidelity times the square root of its
    clumpiness. Fidelity is the share of nearest neighbours in the whole table that are also nearest
    in the kept features; clumpiness is how much closer they are than in Gaussian data of the same
    covariance. Combinations that keep features with inactive rows come last.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The table.
    n_features_to_select : int, float in (0, 1] or None, default=None
        Number or share of features to keep; None finds the number.
    n_components : value or sequence, default=(1, 10, 30, 100)
        As in `SPCAFS`. If several numbers are given, those above a third of the columns are left
        out, because with nearly as many components as columns all features score the same.
    gamma_shares : float or sequence of float, default=(1e-5, 1.0)
        Penalty weights as shares of the leading eigenvalue. The defaults are almost no penalty, and
        one that leaves ``n_components`` active rows.
    scaling : float or sequence of float, default=(0.0, 0.5, 1.0)
        As in `SPCAFS`.
    max_correlation : float, None or sequence of them, default=(0.8, 0.6)
        As in `SPCAFS`. It is not used, and None in the result, if the number to keep is at least
        the number of features that carry structure.
    random_state : int, RandomState or None, default=None
        Seeds the random draws; the same int gives the same choice.
    n_jobs : int or None, default=None
        Number of processes, as in joblib; the result does not depend on it.

    Returns
    -------
    SettingsChoice
        ``params`` are the settings for `SPCAFS`; ``best``, ``trials`` and ``rows()`` show the
        evidence.

    Examples
    --------
    >>> from keepers import SPCAFS, datasets, select_settings
    >>> X, names, y = datasets.load("srbct")
    >>> choice = select_settings(X, 50, n_components=[3, 10], random_state=0)
    >>> SPCAFS(**choice.params).fit_transform(X).shape
    (83, 50)
    """
    check_value("n_features_to_select", n_features_to_select, FEATURE_COUNT)
    tried = _as_choices(n_components, gamma_shares, scaling, max_correlation)
    reader = SPCAFS(random_state=random_state)
    reader.check_parameters()
    refuse_dask(X, "Choosing settings", "every combination needs the whole table.")
    table = read_table(reader, X)
    rng = reader.random_generator()
    seed = int(rng.integers(2**31 - 1))
    n_usable = len(table.usable)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        front = AutoSelector(n_halves=0, random_state=seed).fit(table.X)
    wanted = front.n_features_to_select_ if front.structure_found_ else 0
    if n_features_to_select is not None:
        wanted = count_features(n_features_to_select, table.n_features)
    n_kept = max(1, min(wanted or 10, n_usable))  # with nothing to keep, ten features are weighed
    # Skipping some of the features that carry structure would let noise in if all are wanted.
    n_carrying = int(front.carries_structure_.sum())
    if 0 < n_carrying <= n_kept:
        tried["max_correlation"] = (None,)
    # Compares as many features as `SPCAFS` does: the features weighed are those it keeps.
    widths = _widths_for(tried["n_components"], *table.X.shape)
    leading = {scaling: _leading_eigenvalue(table, scaling, seed) for scaling in tried["scaling"]}
    compared = max(wanted, FEWEST_COMPARED)
    fit = partial(_fit_one, table, tried["max_correlation"], n_kept, compared, seed)
    settings = itertools.product(tried["scaling"], widths, tried["gamma_shares"])
    jobs = (joblib.delayed(fit)(each, leading[each[0]]) for each in settings)
    fitted = itertools.chain.from_iterable(joblib.Parallel(n_jobs=n_jobs)(jobs))
    judge = Judge(table.X, rng)
    with threadpool_limits(1):
        trials = [
            Trial(params, share, n_active, n_active_kept, *judge.weigh(kept), table.usable[kept])
            for params, share, n_active, n_active_kept, kept in fitted
        ]
    # Evidence that differs by rounding is level: then the setting tried first wins.
    strength = levels(np.array([trial.score for trial in trials]))
    lacking = np.array([not trial.keeps_active_only for trial in trials])
    ordered = tuple(trials[at] for at in np.lexsort((-strength, lacking)))
    choice = SettingsChoice(wanted, ordered, bool(front.structure_found_))
    if wanted and not choice.best.keeps_active_only:
        warn_caller(
            f"None of the {len(trials)} combinations tried leaves {wanted} features active. The "
            f"best one has {choice.best.n_active_kept} active features; the rest are ranked by how "
            "close they are to becoming active. Try smaller gamma_shares, or keep fewer.",
            InactiveRowsWarning,
        )
    return choice


def _as_choices(*settings: Any) -> dict[str, tuple[Any, ...]]:
    """The values to try of every setting of `TRIED`; raise if one cannot be tried."""
    tried = {}
    for name, values in zip(TRIED, settings, strict=True):
        if values is None or isinstance(values, str) or is_real(values):
            values = (values,)
        if not isinstance(values, (Sequence, np.ndarray)) or not len(values):
            raise ParameterError(
                f"{name} must be a value or a sequence of values; got {shorten(values)}."
            )
        tried[name] = tuple(values)
    for share in tried["gamma_shares"]:
        check_value("gamma_shares", share, positive())
    for limit in tried["max_correlation"]:
        check_value("max_correlation", limit, one_of(None) | positive(at_most=1.0))
    for m, scaling in itertools.product(tried["n_components"], tried["scaling"]):
        SPCAFS(n_components=m, scaling=scaling).check_parameters()
    return tried


def _widths_for(n_components: tuple[Any, ...], n_samples: int, n_usable: int) -> Sequence[Any]:
    """Numbers of components that a table has, and that leave something to rank."""
    limit = max(1, min(n_samples - 1, n_usable // 3))
    if len(n_components) == 1:
        return n_components  # the user's choice, not a candidate of ours
    widths = [m for m in n_components if not is_real(m) or m <= limit]
    if not widths or (widths == [1] and limit > 1):
        widths.append(limit)  # a table too small for more than one of the numbers
    return widths


def _leading_eigenvalue(table: MemoryTable, scaling: float, seed: int) -> float:
    """The largest eigenvalue of the scatter of the scaled columns."""
    with threadpool_limits(1):
        scaled = table.scale(float(scaling))
        scatter = as_scatter(scaled.X, scaled.moments, 1)
        return float(principal_subspace(scatter, 1, np.random.default_rng(seed)).values[0])


def _fit_one(
    table: MemoryTable,
    limits: tuple[float | None, ...],
    n_kept: int,
    compared: int,
    seed: int,
    settings: tuple[float, Any, float],
    leading: float,
) -> list[tuple[Any, ...]]:
    """One fit, with one thread: what `Trial` begins with, and what is kept, for each limit."""
    scaling, n_components, share = settings
    params = {"n_components": n_components, "scaling": scaling, "gamma": share * leading}
    found = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        # As exact as the fit of the winner: at 1e-6, rows on their way to zero counted as active.
        selector = SPCAFS(**params, random_state=seed).fit(table.X)
        order = np.argsort(selector.ranking_)
        for limit in limits:
            ranked = order
            if limit is not None:
                keeps = walk_ranking(table.correlations(order), order, limit, most=compared).keeps
                ranked = np.concatenate([order[keeps], order[~keeps]])
            kept, active = ranked[:n_kept], selector.active_
            limited = {**params, "max_correlation": limit}
            found.append((limited, share, int(active.sum()), int(active[kept].sum()), kept))
    return found


class Judge:
    """Weighs sets of columns of one table, always on the same samples and draws."""

    def __init__(self, X: Any, rng: np.random.Generator) -> None:
        n_samples = X.shape[0]
        if n_samples > MOST_SAMPLES:
            X = X[np.sort(rng.choice(n_samples, MOST_SAMPLES, replace=False))]
        self._X = by_columns(X)
        standardised = StandardScaler().fit_transform(as_array(self._X).astype(np.float64))
        self._near = _nearest(squared_distances(standardised))
        self._seed = int(rng.integers(2**31 - 1))

    def weigh(self, columns: IndexArray) -> tuple[float, float]:
        """Fidelity and clumpiness of these columns."""
        kept = as_array(self._X[:, np.sort(columns)]).astype(np.float64)
        kept -= kept.mean(axis=0)
        shared = float((_nearest(squared_distances(kept)) * self._near).sum())
        clumpiness = _clumpiness(kept, np.random.default_rng(self._seed))
        return shared / float(self._near.sum()), clumpiness


def _clumpiness(kept: FloatArray, rng: np.random.Generator) -> float:
    kept = spread_ties(kept, rng)
    lengths = np.linalg.svd(kept, compute_uv=False)
    if not lengths[0] > 0.0:
        return 0.0
    shape = (len(kept), len(lengths))
    draws = [_nearness(rng.standard_normal(shape) * lengths) for _ in range(N_DRAWS)]
    ratio = float(np.mean(draws)) / max(_nearness(kept), np.finfo(float).tiny)
    # Identical samples have neighbours at distance 0: three times as near is enough.
    return min(ratio - 1.0, 2.0)


def _nearness(points: FloatArray) -> float:
    """Mean distance to the nearest neighbours over the mean distance of all pairs."""
    lengths = np.sqrt(squared_distances(points))
    n_samples = len(lengths)
    n_neighbors = min(N_NEIGHBORS, n_samples - 1)
    typical = float(lengths.sum()) / (n_samples * (n_samples - 1))
    np.fill_diagonal(lengths, np.inf)
    nearest = np.partition(lengths, n_neighbors - 1, axis=1)[:, :n_neighbors]
    return float(nearest.mean()) / typical if typical > 0.0 else 0.0


def _nearest(distances: FloatArray) -> FloatArray:
    """1 where sample j is among the nearest of sample i; a share where others tie with it."""
    others = np.where(distances <= COINCIDENT * distances.max(), 0.0, distances)
    np.fill_diagonal(others, np.inf)
    return share_of_nearest(others, min(N_NEIGHBORS, len(others) - 1))


def spread_ties(columns: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Values that coincide, moved apart as a Gaussian of the column's deviation would lie there."""
    n_samples = len(columns)
    # Values that differ by rounding coincide.
    largest = np.abs(columns).max(axis=0)
    rounded = np.round(columns / np.where(largest > 0.0, largest, 1.0), 9)
    below = (rankdata(rounded, method="min", axis=0) - 1.0) / n_samples
    above = rankdata(rounded, method="max", axis=0) / n_samples
    tied = above - below > 1.5 / n_samples
    if not tied.any():
        return columns
    at = ndtri(below + (above - below) * rng.uniform(size=columns.shape))
    low, high = (np.exp(-0.5 * ndtri(edge) ** 2) for edge in (below, above))
    centre = (low - high) / (np.sqrt(2.0 * np.pi) * (above - below))
    moved = np.where(tied, columns + columns.std(axis=0) * (at - centre), columns)
    return np.asarray(moved - moved.mean(axis=0))


@dataclass(eq=False, repr=False)
class SPCAFSCV(RankingSelector):
    """SPCAFS with settings, and a number of features, chosen by `select_settings`.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        Number or share of features to keep. None takes the number that `AutoSelector` finds. The
        settings are chosen for this number.
    n_components, gamma_shares, scaling, max_correlation : value or sequence
        Values to try, as in `select_settings`.
    random_state : int, RandomState or None, default=None
        Seeds the random draws.
    n_jobs : int or None, default=None
        Number of processes, as in joblib; the result does not depend on it.

    Attributes
    ----------
    best_params_ : dict
        The chosen settings: ``SPCAFS(**best_params_)`` repeats the fit.
    best_estimator_ : SPCAFS
        The SPCAFS with these settings, fitted to all samples.
    choice_ : SettingsChoice
        All combinations tried, best first.
    structure_found_ : bool
        False if no feature is related to the others beyond chance. Then all features are kept, with
        a warning, unless a number was given.
    scores_ : array of shape (n_features,)
        Scores of ``best_estimator_``; higher is better.
    active_ : boolean array of shape (n_features,)
        The features whose rows are active; ``n_active_`` of them.
    {fitted}

    Examples
    --------
    >>> from keepers import SPCAFSCV, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = SPCAFSCV(50, n_components=[3, 10], random_state=0).fit(X)
    >>> selector.transform(X).shape
    (83, 50)
    """

    looks_for = "features that together hold as much of the variance of the table as possible"

    depends_on_k = True
    seeks_variance = True

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_components: Any = COMPONENTS
    gamma_shares: Any = GAMMA_SHARES
    scaling: Any = SCALINGS
    max_correlation: Any = MAX_CORRELATIONS
    random_state: Seed = None
    n_jobs: int | None = None

    def check_parameters(self) -> None:
        """Raise for settings outside their rules, without looking at data."""
        check_value("n_features_to_select", self.n_features_to_select, FEATURE_COUNT)
        check_value("random_state", self.random_state, SEED)
        _as_choices(*(getattr(self, name) for name in TRIED))

    def _fit(self, X: Any) -> None:
        with warnings.catch_warnings():
            # The fit of the winner warns again.
            warnings.simplefilter("ignore", InactiveRowsWarning)
            warnings.simplefilter("ignore", UnitsWarning)
            choice = select_settings(X, **self.get_params(deep=False))
        params = choice.params
        keeps_all = choice.n_features_to_select == 0
        if keeps_all:
            warn_caller(
                "No structure found: no feature is related to the others beyond chance. All "
                "features are kept; give n_features_to_select to keep fewer.",
                DataWarning,
            )
            params = {**params, "n_features_to_select": 1.0, "max_correlation": None}
        seed = self.random_state if isinstance(self.random_state, (int, np.integer)) else 0
        winner = SPCAFS(**params, random_state=seed)
        with warnings.catch_warnings():
            # Reading the table has already named the constant columns.
            warnings.filterwarnings("ignore", ".*do not vary.*", DataWarning)
            if keeps_all:  # the warning above is enough
                warnings.simplefilter("ignore", InactiveRowsWarning)
                warnings.simplefilter("ignore", UnitsWarning)
            winner.fit(X)
        self.best_params_, self.best_estimator_, self.choice_ = params, winner, choice
        self.structure_found_ = choice.structure_found
        of_winner = ("scores_", "ranking_", "support_", "n_features_to_select_", "active_")
        for name in (*of_winner, "n_active_", "n_features_in_", "feature_names_in_"):
            if hasattr(winner, name):
                setattr(self, name, getattr(winner, name))

    @property
    def column_power(self) -> float:
        """The power used by ``best_estimator_``; 0 before the fit."""
        return self.best_estimator_.column_power if hasattr(self, "best_estimator_") else 0.0

    def fit_notes(self) -> FitNotes:
        """The notes of ``best_estimator_``, and how the settings were chosen."""
        notes = replace(self.best_estimator_.fit_notes(), structure_found=self.structure_found_)
        if self.n_features_to_select is not None:
            return replace(notes, how_many="asked")
        tried = f"from {len(self.choice_.trials)} combinations"
        summary = f"The number and the settings were chosen without labels, {tried}."
        return replace(notes, how_many="chosen", summary=summary)
