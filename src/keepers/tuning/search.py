"""Settings of SPCAFS, chosen from X alone: one search, and `SPCAFSCV` on top of it.

How many features to keep is `AutoSelector`'s answer. Then every combination of settings is fitted,
and the one whose kept features have the strongest evidence wins (`keepers.tuning.evidence`).
"""

import itertools
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from keepers._protocols import BoolArray, IndexArray
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
from keepers.linalg.ordering import levels
from keepers.linalg.scatter import as_scatter
from keepers.linalg.spectrum import principal_subspace
from keepers.methods.auto import AutoSelector
from keepers.methods.base import FEWEST_COMPARED, FitNotes, RankingSelector
from keepers.methods.parameters import (
    FEATURE_COUNT,
    FUNCTION,
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
from keepers.tuning.evidence import Judge, NeighbourEvidence

# Chosen by the study in docs/without-labels.md.
GAMMA_SHARES = (1e-5, 1.0)
COMPONENTS = (1, 10, 30, 100)
SCALINGS = (0.0, 0.5, 1.0)
EXPONENTS = (1.0,)
MAX_CORRELATIONS = (0.8, 0.6)
TRIED = ("n_components", "gamma_shares", "p", "scaling", "max_correlation")


@dataclass(frozen=True)
class Trial:
    """One combination that was tried."""

    params: dict[str, Any]
    """Settings of `SPCAFS`, ``gamma`` on the scale of the scatter."""
    gamma_share: float
    """``gamma`` over the leading eigenvalue."""
    n_active: int
    """Active rows: features that the penalty has not sent to zero."""
    n_active_kept: int
    """Kept features with active rows; the others are ranked by how near they are to it."""
    evidence: NeighbourEvidence
    """Fidelity, clumpiness and the score made of them."""
    columns: IndexArray = field(repr=False)
    """The features it keeps, best first."""

    @property
    def keeps_active_only(self) -> bool:
        """True if every kept feature has an active row."""
        return self.n_active_kept == len(self.columns)


@dataclass(frozen=True)
class SettingsChoice(AsTable):
    """The settings that `select_settings` recommends, with the evidence."""

    n_features_to_select: int
    """How many features to keep; 0 if no structure was found and no number was given."""
    trials: tuple[Trial, ...] = field(repr=False)
    """Everything tried: first what keeps active features only, then the rest; each best first."""
    structure_found: bool
    """False if no feature has more to do with the others than chance."""
    seconds: float
    """How long the search took."""

    @property
    def best(self) -> Trial:
        """The recommendation."""
        return self.trials[0]

    @property
    def candidates(self) -> tuple[Trial, ...]:
        """Trials that keep active features only, best first; all of them if none does."""
        return tuple(trial for trial in self.trials if trial.keeps_active_only) or self.trials

    @property
    def params(self) -> dict[str, Any]:
        """Settings for `SPCAFS`: ``SPCAFS(**choice.params)``."""
        return {"n_features_to_select": self.n_features_to_select, **self.best.params}

    def rows(self) -> list[dict[str, Any]]:
        """The table of everything tried, a dict a row, as in ``trials``: ready for a data frame."""
        return [
            {
                **trial.params,
                "gamma_share": trial.gamma_share,
                "n_active": trial.n_active,
                "n_active_kept": trial.n_active_kept,
                "fidelity": trial.evidence.fidelity,
                "clumpiness": trial.evidence.clumpiness,
                "score": trial.evidence.score,
            }
            for trial in self.trials
        ]


def select_settings(
    X: Any,
    n_features_to_select: FeatureCount = None,
    *,
    n_components: Any = COMPONENTS,
    gamma_shares: Any = GAMMA_SHARES,
    p: Any = EXPONENTS,
    scaling: Any = SCALINGS,
    max_correlation: Any = MAX_CORRELATIONS,
    random_state: Any = None,
    n_jobs: int | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> SettingsChoice:
    """Choose the settings of `SPCAFS`, and how many features to keep, without labels.

    The number of features is that of `AutoSelector`. Then every combination of the settings below
    is fitted, and the one whose kept features have the strongest evidence wins: the share of
    nearest neighbours that are those of the whole table (fidelity), times the root of how much
    nearer they are than in Gaussian data of the same covariance (clumpiness). Combinations that
    keep features with inactive rows are recommended only if there are no others, with a warning.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The table.
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None finds the number.
    n_components : value or sequence, default=(1, 10, 30, 100)
        As in `SPCAFS`. Of several numbers, those above a third of the columns are left out: with
        nearly as many components as columns every feature scores the same.
    gamma_shares : float or sequence of float, default=(1e-5, 1.0)
        Penalty weights, as shares of the leading eigenvalue: next to none, and one that leaves
        ``n_components`` rows.
    p : float or sequence of float, default=(1.0,)
        Exponents of the penalty.
    scaling : float or sequence of float, default=(0.0, 0.5, 1.0)
        As in `SPCAFS`.
    max_correlation : float, None or sequence of them, default=(0.8, 0.6)
        As in `SPCAFS`. Not used, and None in the result, where the number to keep is at least that
        of the features that carry structure.
    random_state : int, RandomState or None, default=None
        Seeds the draws. The choice is the same for the same int.
    n_jobs : int or None, default=None
        Processes, as in joblib; the result does not depend on it.
    callback : callable or None, default=None
        Called after each fit with the number done and the number of all.

    Returns
    -------
    SettingsChoice
        ``params`` goes into `SPCAFS`; ``best``, ``trials`` and ``rows()`` are the evidence.

    Examples
    --------
    >>> from keepers import SPCAFS, datasets, select_settings
    >>> X, names, y = datasets.load("srbct")
    >>> choice = select_settings(X, 50, n_components=[3, 10], random_state=0)
    >>> SPCAFS(**choice.params).fit_transform(X).shape
    (83, 50)
    """
    began = time.perf_counter()
    check_value("n_features_to_select", n_features_to_select, FEATURE_COUNT)
    check_value("callback", callback, FUNCTION)
    tried = _as_choices(n_components, gamma_shares, p, scaling, max_correlation)
    reader = SPCAFS(random_state=random_state)
    reader.check_parameters()
    refuse_dask(X, "Choosing settings", "every choice is weighed by neighbours in the whole table.")
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
    limits = tried["max_correlation"] if n_kept < n_carrying or not n_carrying else (None,)
    # Compares as many features as `SPCAFS` does: the features weighed are those it keeps.
    fitted = _fit_all(table, tried, limits, max(wanted, FEWEST_COMPARED), seed, n_jobs, callback)
    judge = Judge(table.X, rng)
    trials = [_weigh(each, n_kept, table, judge) for each in fitted]
    # Evidence that differs by rounding is level: then the setting tried first wins.
    strength = levels(np.array([trial.evidence.score for trial in trials]))
    lacking = np.array([not trial.keeps_active_only for trial in trials])
    ordered = tuple(trials[at] for at in np.lexsort((-strength, lacking)))
    seconds = time.perf_counter() - began
    choice = SettingsChoice(wanted, ordered, bool(front.structure_found_), seconds)
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
    for m, p, scaling in itertools.product(*(tried[n] for n in ("n_components", "p", "scaling"))):
        SPCAFS(n_components=m, p=p, scaling=scaling).check_parameters()
    return tried


def _widths_for(n_components: tuple[Any, ...], n_samples: int, n_usable: int) -> Sequence[Any]:
    """Numbers of components that a table has, and that leave something to rank.

    With nearly as many components as columns, all rows of W have the same norm.
    """
    limit = max(1, min(n_samples - 1, n_usable // 3))
    if len(n_components) == 1:
        return n_components  # the user's choice, not a candidate of ours
    widths = [m for m in n_components if not is_real(m) or m <= limit]
    if not widths or (widths == [1] and limit > 1):
        widths.append(limit)  # a table too small for more than one of the numbers
    return widths


@dataclass(frozen=True)
class _Fitted:
    params: dict[str, Any]
    gamma_share: float
    active: BoolArray
    """Usable columns with active rows."""
    order: IndexArray
    """Usable columns, best first, those skipped last."""


def _fit_all(
    table: MemoryTable,
    tried: dict[str, tuple[Any, ...]],
    limits: tuple[float | None, ...],
    compared: int,
    seed: int,
    n_jobs: int | None,
    callback: Callable[[int, int], object] | None,
) -> list[_Fitted]:
    """Fit every setting with one thread each: the numbers do not depend on ``n_jobs``."""
    widths = _widths_for(tried["n_components"], *table.X.shape)
    grid = list(itertools.product(tried["scaling"], widths, tried["p"], tried["gamma_shares"]))
    leading = {scaling: _leading_eigenvalue(table, scaling, seed) for scaling in tried["scaling"]}
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
    jobs = (
        joblib.delayed(_fit_one)(table, settings, leading[settings[0]], limits, compared, seed)
        for settings in grid
    )
    fitted: list[_Fitted] = []
    for done, found in enumerate(parallel(jobs), 1):
        fitted.extend(found)
        if callback is not None:
            callback(done, len(grid))
    return fitted


def _leading_eigenvalue(table: MemoryTable, scaling: float, seed: int) -> float:
    """The largest eigenvalue of the scatter of the scaled columns."""
    with threadpool_limits(1):
        scaled = table.scale(float(scaling))
        scatter = as_scatter(scaled.X, scaled.moments, 1)
        return float(principal_subspace(scatter, 1, np.random.default_rng(seed)).values[0])


def _fit_one(
    table: MemoryTable,
    settings: tuple[float, Any, float, float],
    leading: float,
    limits: tuple[float | None, ...],
    compared: int,
    seed: int,
) -> list[_Fitted]:
    """One fit: its ranking, and what each limit on correlation makes of it."""
    scaling, n_components, p, share = settings
    params = {"n_components": n_components, "p": p, "scaling": scaling, "gamma": share * leading}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        # As exact as the fit of the winner: at 1e-6, rows on their way to zero counted as active.
        selector = SPCAFS(**params, random_state=seed).fit(table.X)
        order = np.argsort(selector.ranking_)
        found = []
        for limit in limits:
            ranked = order
            if limit is not None:
                walk = walk_ranking(table.correlations(order), order, limit, most=compared)
                ranked = np.concatenate([order[walk.keeps], order[~walk.keeps]])
            found.append(
                _Fitted({**params, "max_correlation": limit}, share, selector.active_, ranked)
            )
        return found


def _weigh(fitted: _Fitted, n_kept: int, table: MemoryTable, judge: Judge) -> Trial:
    columns = fitted.order[:n_kept]
    with threadpool_limits(1):
        evidence = judge.weigh(columns)
    return Trial(
        fitted.params,
        fitted.gamma_share,
        int(np.count_nonzero(fitted.active)),
        int(np.count_nonzero(fitted.active[columns])),
        evidence,
        table.usable[columns],
    )


@dataclass(eq=False, repr=False)
class SPCAFSCV(RankingSelector):
    """SPCAFS that chooses its settings, and how many features to keep, without labels.

    Like scikit-learn's ``LassoCV``, but without labels: `select_settings` compares every
    combination of settings by the neighbours of the samples in the features it keeps, and the
    winner is fitted.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them. None takes the number that
        `AutoSelector` finds. The settings are chosen for this number.
    n_components, gamma_shares, p, scaling, max_correlation : value or sequence
        What to try, as in `select_settings`.
    random_state : int, RandomState or None, default=None
        Seeds the draws.
    n_jobs : int or None, default=None
        Processes, as in joblib; the result does not depend on it.
    callback : callable or None, default=None
        Called after each fit with the number done and the number of all.

    Attributes
    ----------
    best_params_ : dict
        Settings of the winner: ``SPCAFS(**best_params_)`` repeats it.
    best_estimator_ : SPCAFS
        The winner, fitted to all samples.
    choice_ : SettingsChoice
        The evidence: everything tried, best first.
    structure_found_ : bool
        False if no feature has more to do with the others than chance. Then all features are kept,
        with a warning, unless a number was given.
    scores_ : array of shape (n_features,)
        Scores of the winner; higher is better. Features skipped for being too much like a better
        one are ranked later than their scores say.
    n_active_ : int
        Active rows of W: features that the penalty of the winner has not sent to zero.
    active_ : boolean array of shape (n_features,)
        Those features.
    {fitted}

    Examples
    --------
    >>> from keepers import SPCAFSCV, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = SPCAFSCV(50, n_components=[3, 10], random_state=0).fit(X)
    >>> selector.transform(X).shape
    (83, 50)
    """

    looks_for = "features that together hold as much of the variance of the table as so few can"

    depends_on_k = True
    seeks_variance = True

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_components: Any = COMPONENTS
    gamma_shares: Any = GAMMA_SHARES
    p: Any = EXPONENTS
    scaling: Any = SCALINGS
    max_correlation: Any = MAX_CORRELATIONS
    random_state: Seed = None
    n_jobs: int | None = None
    callback: Callable[[int, int], object] | None = None

    def check_parameters(self) -> None:
        """Raise for settings outside their rules, without looking at data."""
        check_value("n_features_to_select", self.n_features_to_select, FEATURE_COUNT)
        check_value("random_state", self.random_state, SEED)
        check_value("callback", self.callback, FUNCTION)
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
                "No structure found: no feature has more to do with the others than chance. All "
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
        self.best_params_ = params
        self.best_estimator_ = winner
        self.choice_ = choice
        self.structure_found_ = choice.structure_found
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(winner, name):
                setattr(self, name, getattr(winner, name))
        self.active_, self.n_active_ = winner.active_, winner.n_active_
        self.scores_ = winner.scores_
        self.n_features_to_select_ = winner.n_features_to_select_
        self.support_ = winner.support_
        self.ranking_ = winner.ranking_

    @property
    def column_power(self) -> float:
        """That of the winner; 0 before the fit."""
        return self.best_estimator_.column_power if hasattr(self, "best_estimator_") else 0.0

    def fit_notes(self) -> FitNotes:
        """What the winner has to report, and how the settings were chosen."""
        notes = replace(self.best_estimator_.fit_notes(), structure_found=self.structure_found_)
        if self.n_features_to_select is not None:
            return replace(notes, how_many="asked")
        tried = f"from {len(self.choice_.trials)} combinations"
        summary = f"The number and the settings were chosen without labels, {tried}."
        return replace(notes, how_many="chosen", summary=summary)
