"""Settings of SPCAFS and the number of features, chosen from X alone."""

import itertools
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from keepers._protocols import BoolArray, FloatArray, IndexArray
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
from keepers.linalg.correlation import unlike_the_better
from keepers.linalg.ordering import levels
from keepers.linalg.scatter import as_scatter
from keepers.linalg.spectrum import principal_subspace
from keepers.selectors.fitted_table import Table, read_table, refuse_dask
from keepers.selectors.parameters import (
    FeatureCount,
    Seed,
    check_callback,
    check_count,
    check_feature_count,
    check_max_correlation,
    check_positive,
    check_seed,
    count_features,
    is_real,
)
from keepers.selectors.ranking import FEWEST_COMPARED, RankingSelector
from keepers.selectors.spcafs import SPCAFS
from keepers.tuning.evidence import Judge, NeighbourEvidence
from keepers.tuning.structure import Structure, find_structure

GAMMA_SHARES = (1e-5, 1.0)
COMPONENTS = (1, 10, 30, 100)
SCALINGS = (0.0, 0.5, 1.0)
EXPONENTS = (1.0,)
MAX_CORRELATIONS = (0.8, 0.6)
FITTED = ("n_components", "p", "scaling")
TRIED = (*FITTED, "gamma_shares", "max_correlation")


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
        """Whether every kept feature has an active row."""
        return self.n_active_kept == len(self.columns)


@dataclass(frozen=True)
class SettingsChoice(AsTable):
    """What `select_settings` recommends, and why."""

    n_features_to_select: int
    """How many features to keep; 0 if no structure was found and no number was given."""
    trials: tuple[Trial, ...] = field(repr=False)
    """Everything tried: first what keeps active features only, then the rest; each best first."""
    structure: Structure = field(repr=False)
    """Which features carry structure: the source of ``n_features_to_select`` if none was given."""
    n_features: int
    """Features of the table."""
    seconds: float
    """How long the search took."""
    _search: Any = field(repr=False, compare=False)

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

    @property
    def structure_found(self) -> bool:
        """False if no feature has more to do with the others than chance."""
        return self.structure.found

    def at(self, n_features_to_select: int) -> "SettingsChoice":
        """The choice for another number of features; nothing is fitted again."""
        check_count("n_features_to_select", n_features_to_select, at_most=self.n_features)
        return self._search.choose(n_features_to_select, self.structure, self.seconds)

    def weigh(self, columns: IndexArray) -> NeighbourEvidence:
        """The evidence for other features of the table, weighed as the trials were."""
        return self._search.judge.weigh(self._search.places_of(columns))

    def scores_on_halves(self, columns: IndexArray) -> FloatArray:
        """The score of some features on halves of the samples; empty if those are too few."""
        return self._search.judge.scores_on_halves(self._search.places_of(columns))

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
    """Choose how many features to keep, and the settings of `SPCAFS`, without labels.

    The number of features is that of those predicted by the others better than chance, up to the
    knee of their leverages. Then every combination of the settings below is fitted, and the one
    whose kept features have the strongest evidence wins: how far nearest neighbours are those of
    the whole table (fidelity), times the root of how much nearer they are than in Gaussian data of
    the same covariance (clumpiness). Combinations that would keep features with inactive rows are
    not recommended, unless there are no others; then a warning says so.

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
        Seeds folds and draws. The choice is the same for the same int.
    n_jobs : int or None, default=None
        Processes, as in joblib; the result does not depend on it.
    callback : callable or None, default=None
        Called after each fit with the number done and the number of all.

    Returns
    -------
    SettingsChoice
        ``params`` goes into `SPCAFS`; ``best``, ``trials`` and ``rows()`` are the evidence,
        ``structure`` is where the number of features comes from, ``at(k)`` is the choice for
        another number.

    Examples
    --------
    >>> from keepers import SPCAFS, datasets, select_settings
    >>> X, names, y = datasets.load("srbct")
    >>> choice = select_settings(X, 50, n_components=[3, 10], random_state=0)
    >>> SPCAFS(**choice.params).fit_transform(X).shape
    (83, 50)
    """
    began = time.perf_counter()
    check_feature_count(n_features_to_select)
    choices = _Choices.check(
        n_components=n_components,
        gamma_shares=gamma_shares,
        p=p,
        scaling=scaling,
        max_correlation=max_correlation,
    )
    check_callback(callback)
    selector = SPCAFS(random_state=random_state)
    selector.check_parameters()
    refuse_dask(X, "Choosing settings", "every choice is weighed by neighbours in the whole table.")
    table = read_table(selector, X)
    rng = selector.random_generator()
    structure = find_structure(table.X, rng)
    if n_features_to_select is None:
        wanted = structure.n_features_to_select
    else:
        wanted = count_features(n_features_to_select, table.n_features)
    # As far down as `SPCAFS` itself compares features, so that what is weighed is what it keeps.
    compared = max(wanted, FEWEST_COMPARED)
    search = _Search(table, Judge(table.X, rng), int(rng.integers(2**31 - 1)), compared)
    grid = choices.grid(choices.widths_for(*table.X.shape))
    search.fit(grid, choices.max_correlation, n_jobs, callback)
    choice = search.choose(wanted, structure, time.perf_counter() - began)
    if wanted and not choice.best.keeps_active_only:
        warn_caller(
            f"None of the {len(choice.trials)} combinations tried leaves {wanted} features active; "
            f"the one chosen keeps {choice.best.n_active_kept} with active rows, and the rest by "
            "how near they are to becoming active. Try smaller gamma_shares, or keep fewer.",
            InactiveRowsWarning,
        )
    return choice


@dataclass(frozen=True)
class _Choices:
    """The values to be tried of every setting, checked before any data are read."""

    n_components: tuple[Any, ...]
    gamma_shares: tuple[float, ...]
    p: tuple[float, ...]
    scaling: tuple[float, ...]
    max_correlation: tuple[float | None, ...]

    @classmethod
    def check(cls, **settings: Any) -> "_Choices":
        """Raise if a value cannot be tried."""
        tried = cls(**{name: as_choices(name, values) for name, values in settings.items()})
        for share in tried.gamma_shares:
            check_positive("gamma_shares", share)
        for most in tried.max_correlation:
            check_max_correlation(most)
        for fitted in tried.grid(tried.n_components):
            SPCAFS(**{name: fitted[name] for name in FITTED}).check_parameters()
        return tried

    def grid(self, widths: Sequence[Any]) -> list[dict[str, Any]]:
        """Settings to be fitted, the cheapest scaling outermost."""
        return [
            {"scaling": a, "n_components": m, "p": exponent, "gamma_share": share}
            for a, m, exponent, share in itertools.product(
                self.scaling, widths, self.p, self.gamma_shares
            )
        ]

    def widths_for(self, n_samples: int, n_usable: int) -> Sequence[Any]:
        """Numbers of components that a table has, and that leave something to rank.

        With nearly as many components as columns, all rows of W have the same norm.
        """
        limit = max(1, min(n_samples - 1, n_usable // 3))
        if len(self.n_components) == 1:
            return self.n_components  # the user's choice, not a candidate of ours
        widths = [m for m in self.n_components if not is_real(m) or m <= limit]
        if not widths or (widths == [1] and limit > 1):
            widths.append(limit)  # a table too small for more than one of the numbers
        return widths


def as_choices(name: str, values: Any) -> tuple[Any, ...]:
    """A value, or a sequence of values to try, as a tuple."""
    if values is None or isinstance(values, str) or is_real(values):
        return (values,)
    if not isinstance(values, (Sequence, np.ndarray)) or not len(values):
        raise ParameterError(
            f"{name} must be a value or a sequence of values; got {shorten(values)}."
        )
    return tuple(values)


@dataclass(frozen=True)
class _Fitted:
    params: dict[str, Any]
    gamma_share: float
    active: BoolArray
    """Of the usable columns, those with active rows."""
    order: IndexArray
    """Usable columns, best first, those skipped left out."""


class _Search:
    """Rankings of every setting, from which a choice is made for any number of features."""

    def __init__(self, table: Table, judge: Judge, seed: int, compared: int) -> None:
        self.table = table
        self.judge = judge
        self.seed = seed
        self.compared = compared
        self.fitted: list[_Fitted] = []
        self.unlimited: list[_Fitted] = []

    def fit(
        self,
        grid: list[dict[str, Any]],
        max_correlations: tuple[float | None, ...],
        n_jobs: int | None,
        callback: Callable[[int, int], object] | None,
    ) -> None:
        """Fit every setting; one thread each, so that the numbers do not depend on ``n_jobs``."""
        scalings = {settings["scaling"] for settings in grid}
        leading = {a: _leading_eigenvalue(self.table, float(a), self.seed) for a in scalings}
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
        jobs = (
            joblib.delayed(_fit_one)(
                self.table,
                settings,
                settings["gamma_share"] * leading[settings["scaling"]],
                max_correlations,
                self.seed,
                self.compared,
            )
            for settings in grid
        )
        for done, found in enumerate(parallel(jobs), 1):
            self.unlimited.append(found[0])
            self.fitted.extend(found[1:])
            if callback is not None:
                callback(done, len(grid))

    def places_of(self, columns: IndexArray) -> IndexArray:
        """Columns that the user gave -> places among the usable ones; constant ones are skipped."""
        return np.flatnonzero(np.isin(self.table.usable, columns))

    def choose(self, wanted: int, structure: Structure, seconds: float) -> SettingsChoice:
        """Weigh what every setting keeps; with nothing to keep, weigh ten features."""
        began = time.perf_counter()
        n_kept = max(1, min(wanted or 10, len(self.table.usable)))
        # Where every feature that carries structure is to be kept, skipping some of them would only
        # let noise in.
        skipping = n_kept < structure.n_carrying or not structure.found
        eligible = self.fitted if skipping else self.unlimited
        trials = []
        for fitted in eligible:
            columns = fitted.order[:n_kept]
            with threadpool_limits(1):
                evidence = self.judge.weigh(columns)
            trials.append(
                Trial(
                    fitted.params,
                    fitted.gamma_share,
                    int(np.count_nonzero(fitted.active)),
                    int(np.count_nonzero(fitted.active[columns])),
                    evidence,
                    self.table.usable[columns],
                )
            )
        # NeighbourEvidence that differs by rounding is level: then the setting tried first wins.
        strength = levels(np.array([trial.evidence.score for trial in trials]))
        lacking = np.array([not trial.keeps_active_only for trial in trials])
        trials = [trials[at] for at in np.lexsort((-strength, lacking))]
        return SettingsChoice(
            n_features_to_select=wanted,
            trials=tuple(trials),
            structure=structure,
            n_features=self.table.n_features,
            seconds=seconds + time.perf_counter() - began,
            _search=self,
        )


def _leading_eigenvalue(table: Table, scaling: float, seed: int) -> float:
    """Of the scatter of the scaled columns."""
    with threadpool_limits(1):
        scaled = table.scale(scaling)
        scatter = as_scatter(scaled.X, scaled.moments, 1)
        return float(principal_subspace(scatter, 1, np.random.default_rng(seed)).values[0])


def _fit_one(
    table: Table,
    settings: dict[str, Any],
    gamma: float,
    max_correlations: tuple[float | None, ...],
    seed: int,
    compared: int,
) -> list[_Fitted]:
    """One fit: its ranking, and what each limit on correlation makes of it."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        params = {**{name: settings[name] for name in FITTED}, "gamma": float(gamma)}
        # As exact as the fit of the winner: at 1e-6, rows on their way to zero counted as active.
        selector = SPCAFS(**params, random_state=seed % 2**31).fit(table.X)
        order = np.argsort(selector.ranking_)
        return [
            _Fitted(
                {**params, "max_correlation": limit},
                float(settings["gamma_share"]),
                selector.active_,
                _unlike_first(table, order, limit, compared),
            )
            for limit in (None, *max_correlations)
        ]


def _unlike_first(
    table: Table, order: IndexArray, limit: float | None, compared: int
) -> IndexArray:
    if limit is None:
        return order
    keeps = unlike_the_better(table.correlations(order), order, limit, most=compared)
    return np.concatenate([order[keeps], order[~keeps]])


@dataclass(eq=False, repr=False)
class SPCAFSCV(RankingSelector):
    """SPCAFS that chooses its settings, and how many features to keep, without labels.

    The sibling of scikit-learn's ``LassoCV`` for tables without labels: `select_settings` weighs
    every combination of settings by the features it keeps, and the winner is fitted. Instead of a
    held-out error, which needs something to predict, it looks at neighbours: those of a sample in
    the kept features should be those in the whole table, and nearer than without clusters.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them. None finds the number: the features that
        the others predict better than chance, up to the knee of their leverages. The settings are
        chosen for this number.
    n_components : value or sequence, default=(1, 10, 30, 100)
        Numbers of components to try, as in `SPCAFS`.
    gamma_shares : float or sequence of float, default=(1e-5, 1.0)
        Penalty weights to try, as shares of the leading eigenvalue.
    p : float or sequence of float, default=(1.0,)
        Exponents of the penalty to try.
    scaling : float or sequence of float, default=(0.0, 0.5, 1.0)
        Powers of the standard deviation to divide the features by, as in `SPCAFS`.
    max_correlation : float, None or sequence of them, default=(0.8, 0.6)
        Limits on the correlation between kept features to try, as in `SPCAFS`.
    random_state : int, RandomState or None, default=None
        Seeds folds and draws.
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
        The evidence: everything tried, best first, and where the number of features comes from.
        ``choice_.at(k)`` is the choice for another number.
    structure_found_ : bool
        False if no feature has more to do with the others than chance. Then all features are kept,
        with a warning, unless a number was given.
    scores_ : array of shape (n_features,)
        Scores of the winner; higher is better.
    ranking_ : array of shape (n_features,)
        1 is the best feature; features skipped for being too much like a better one come later
        than their scores say.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_features_to_select_ : int
        Their number.
    n_active_ : int
        Active rows of W: features that the penalty of the winner has not sent to zero.
    active_ : boolean array of shape (n_features,)
        Those features.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    Examples
    --------
    >>> from keepers import SPCAFSCV, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = SPCAFSCV(50, n_components=[3, 10], random_state=0).fit(X)
    >>> selector.transform(X).shape
    (83, 50)
    """

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
        """Refuse settings outside their rules, without looking at data."""
        check_feature_count(self.n_features_to_select)
        check_seed(self.random_state)
        check_callback(self.callback)
        _Choices.check(**{name: getattr(self, name) for name in TRIED})

    def _fit(self, X: Any) -> None:
        with warnings.catch_warnings():
            # The fit of the winner says it.
            warnings.simplefilter("ignore", InactiveRowsWarning)
            warnings.simplefilter("ignore", UnitsWarning)
            choice = select_settings(X, **self.get_params(deep=False))
        params = choice.params
        if choice.n_features_to_select == 0:
            warnings.warn(
                "No structure found: no feature has more to do with the others than chance. All "
                "features are kept; give n_features_to_select to keep fewer.",
                DataWarning,
                stacklevel=3,
            )
            params = {**params, "n_features_to_select": choice.n_features, "max_correlation": None}
        seed = self.random_state if isinstance(self.random_state, (int, np.integer)) else 0
        winner = SPCAFS(**params, random_state=seed)
        with warnings.catch_warnings():
            # Reading the table has already named the constant columns.
            warnings.filterwarnings("ignore", ".*do not vary.*", DataWarning)
            if choice.n_features_to_select == 0:
                # All features are kept, as was just said: nobody asked for so many.
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
