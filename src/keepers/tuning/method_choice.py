"""A method, its settings and the number of features, chosen from X alone."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from keepers._protocols import IndexArray
from keepers._tables import AsTable
from keepers.exceptions import DataError, KeepersWarning
from keepers.linalg.ordering import levels
from keepers.methods import find_method
from keepers.selectors.auto import AutoSelector
from keepers.selectors.fitted_table import refuse_dask
from keepers.selectors.laplacian_score import LaplacianScore
from keepers.selectors.mcfs import MCFS
from keepers.selectors.parameters import FeatureCount, Seed, check_callback, check_feature_count
from keepers.selectors.prune import prune_redundant
from keepers.tuning.evidence import NeighbourEvidence
from keepers.tuning.search import SettingsChoice, select_settings

FRONT_DOOR = "auto"
# As good as random, a selection is ahead of all of them once in 21 times.
N_RANDOM_SETS = 20
MAX_CORRELATION = 0.8
N_CLUSTERS = 10
# Past so many samples, methods that compare every sample with every other take too long here.
MOST_SAMPLES_FOR_GRAPHS = 20_000
# A lead within so many standard errors is level. The strongest is the best of some 40 candidates,
# whose lead would exceed two of them by chance.
ERRORS_AHEAD = 3.0
N_OTHER_FITS = 3


@dataclass(frozen=True)
class MethodTrial:
    """A method with settings, the features that it keeps, and what speaks for them."""

    method: str
    """Its name on the command line: ``keepers.methods.find_method`` takes it."""
    params: dict[str, Any]
    """Settings of its class, apart from the number of features and the seed."""
    evidence: NeighbourEvidence
    """Fidelity, clumpiness and the score made of them."""
    columns: IndexArray = field(repr=False)
    """The features it keeps, best first."""

    @property
    def class_name(self) -> str:
        """The name of its class."""
        return find_method(self.method).class_name


@dataclass(frozen=True)
class MethodChoice(AsTable):
    """What `select_method` recommends, and why."""

    n_features_to_select: int
    """How many features to keep; 0 if no structure was found and no number was given."""
    trials: tuple[MethodTrial, ...] = field(repr=False)
    """Everything compared, strongest evidence first; empty if there is nothing to keep."""
    random_evidence: tuple[NeighbourEvidence, ...] = field(repr=False)
    """The evidence for random sets of as many features."""
    standard_error: float
    """Of the difference between the strongest score and that of `AutoSelector`, from halves of the
    samples; infinite if those are too few, 0 if `AutoSelector` is the strongest itself."""
    left_out: dict[str, str]
    """Methods that were not tried, and why."""
    front_door: AutoSelector = field(repr=False, compare=False)
    """`AutoSelector`, fitted: whether there is structure, and how many features are enough."""
    seed: int
    """Seeds the selector."""
    seconds: float
    """How long the choice took."""

    @property
    def strongest(self) -> MethodTrial:
        """The trial with the largest score."""
        return self.trials[0]

    @cached_property
    def front_trial(self) -> MethodTrial:
        """The trial of `AutoSelector`."""
        return next(trial for trial in self.trials if trial.method == FRONT_DOOR)

    @property
    def lead(self) -> float:
        """By how much the strongest score exceeds that of `AutoSelector`."""
        return self.strongest.evidence.score - self.front_trial.evidence.score

    @property
    def level(self) -> bool:
        """Whether another method is ahead of `AutoSelector`, but by no more than chance.

        That is, within three standard errors, or with a score that random sets reach.
        """
        if self.strongest is self.front_trial:
            return False
        within_errors = self.lead <= ERRORS_AHEAD * self.standard_error
        return within_errors or self.strongest.evidence.score <= self.random_limit

    @property
    def best(self) -> MethodTrial:
        """The recommendation: the strongest, or `AutoSelector` where the evidence is level."""
        return self.front_trial if self.level else self.strongest

    @property
    def random_limit(self) -> float:
        """The largest score of a random set."""
        return max(found.score for found in self.random_evidence)

    @property
    def interchangeable(self) -> bool:
        """Whether some random set reaches the score of the recommendation."""
        return self.best.evidence.score <= self.random_limit

    @property
    def structure_found(self) -> bool:
        """False if on no feature neighbouring samples agree by more than chance."""
        return self.front_door.structure_found_

    @property
    def why(self) -> str:
        """The reasons, in sentences."""
        if not self.trials:
            return self.front_door.summary_
        return f"{self._against_random()} {self._against_others()}"

    def selector(self) -> Any:
        """The selector that is recommended, not fitted.

        Returns
        -------
        selector
            With the settings, the number of features and the seed: its ``fit`` keeps them.
        """
        settings = {"random_state": self.seed, **self.best.params}
        return find_method(self.best.method).load()(self.n_features_to_select, **settings)

    def rows(self) -> list[dict[str, Any]]:
        """The table of everything compared, a dict a row, strongest first, random sets last.

        Returns
        -------
        list of dict
            ``method``, ``params``, ``fidelity``, ``clumpiness``, ``score``.
        """
        named = [(trial.method, trial.params, trial.evidence) for trial in self.trials]
        named += [("random", {}, found) for found in self.random_evidence]
        return [
            {
                "method": method,
                "params": params,
                "fidelity": found.fidelity,
                "clumpiness": found.clumpiness,
                "score": found.score,
            }
            for method, params, found in named
        ]

    def _caption(self) -> str:
        return self.why

    def _against_random(self) -> str:
        score = self.best.evidence.score
        scores = [found.score for found in self.random_evidence]
        k, least, most = self.n_features_to_select, min(scores), max(scores)
        theirs = f"theirs {least:.3f} to {most:.3f}"
        if self.interchangeable:
            return (
                f"The features are interchangeable: of {len(scores)} random sets of {k} features, "
                f"some are as good by this criterion (score {score:.3f} for "
                f"{self.best.class_name}, {theirs}). Any {k} features do about as well."
            )
        return (
            f"{self.best.class_name} is ahead of all {len(scores)} random sets of {k} features "
            f"(score {score:.3f}, {theirs})."
        )

    def _against_others(self) -> str:
        strongest, front = self.strongest, self.front_trial
        if strongest is front:
            return "No other method has stronger evidence."
        scores = f"{strongest.evidence.score:.3f} against {front.evidence.score:.3f}"
        if not self.level:
            return (
                f"It is ahead of AutoSelector ({scores}) by more than the samples leave open "
                f"(standard error {self.standard_error:.3f}, from halves of them)."
            )
        between = f"Between {strongest.class_name} and AutoSelector the evidence is level ({scores}"
        if np.isinf(self.standard_error):
            return f"{between}; too few samples to halve): AutoSelector is preferred."
        return f"{between}, standard error {self.standard_error:.3f}): AutoSelector is preferred."


def select_method(
    X: Any,
    n_features_to_select: FeatureCount = None,
    *,
    random_state: Seed = 0,
    n_jobs: int | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> MethodChoice:
    """Choose a method, its settings and the number of features, without labels.

    Compares the features that `AutoSelector` keeps with those of `SPCAFS` under the settings of
    `select_settings`, of `LaplacianScore` and `MCFS`, and with random sets of as many. One
    criterion judges them all: how far nearest neighbours are those of the whole table (fidelity),
    times the root of how much nearer they are than in Gaussian data of the same covariance
    (clumpiness). Where another method is ahead of `AutoSelector` by no more than chance,
    `AutoSelector` is recommended. Where random sets are as good, the result says so.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The table.
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None leaves it to `AutoSelector`.
    random_state : int, RandomState or None, default=0
        Seeds methods, draws and random sets. The choice is the same for the same int.
    n_jobs : int or None, default=None
        Processes for the fits of `SPCAFS`, as in joblib; the result does not depend on it.
    callback : callable or None, default=None
        Called after each fit with the number done and the number of all.

    Returns
    -------
    MethodChoice
        ``best`` is the recommendation, ``why`` the reasons in words, ``selector()`` a selector to
        fit; ``trials`` and ``rows()`` are the evidence.

    See Also
    --------
    AutoSelector : What is recommended unless something else is clearly ahead.
    select_settings : Settings of `SPCAFS` alone.

    Examples
    --------
    >>> from keepers import datasets, select_method
    >>> X, names, y = datasets.load("srbct")
    >>> choice = select_method(X[:, :200], 20)
    >>> choice.selector().fit_transform(X[:, :200]).shape
    (83, 20)
    >>> choice.interchangeable
    False
    """
    began = time.perf_counter()
    check_feature_count(n_features_to_select)
    check_callback(callback)
    front = AutoSelector(n_features_to_select, random_state=random_state)
    front.check_parameters()
    refuse_dask(X, "Choosing a method", "every choice is weighed by neighbours in the whole table.")
    seed = _as_int(front)
    with threadpool_limits(1):
        front.set_params(random_state=seed).fit(X)
    wanted = front.n_features_to_select_
    if n_features_to_select is None and not front.structure_found_:
        return MethodChoice(0, (), (), 0.0, {}, front, seed, time.perf_counter() - began)
    fits = _FitsDone(callback)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)  # AutoSelector said what there is to say
        settings = select_settings(
            X, wanted, random_state=seed, n_jobs=n_jobs, callback=fits.settings
        )
        with threadpool_limits(1):
            kept, left_out = _fit_others(X, front, wanted, seed, fits)
            trials = _weigh_all(settings, kept)
            random = _weigh_random(settings, front, wanted, seed)
            error = _standard_error(settings, trials)
    seconds = time.perf_counter() - began
    return MethodChoice(wanted, trials, random, error, left_out, front, seed, seconds)


def _as_int(selector: AutoSelector) -> int:
    """The seed, drawn if it is not an integer: the recommended selector is given the same."""
    if isinstance(selector.random_state, (int, np.integer)):
        return int(selector.random_state)
    return int(selector.random_generator().integers(2**31 - 1))


class _FitsDone:
    """Counts the fits of `select_settings` and those around them for a callback."""

    def __init__(self, callback: Callable[[int, int], object] | None) -> None:
        self._callback = callback
        self._done = self._total = 0

    def settings(self, done: int, total: int) -> None:
        """After a fit of `SPCAFS`; that of `AutoSelector` was before."""
        self._done, self._total = done, total + N_OTHER_FITS
        self.another()

    def another(self) -> None:
        """After a fit."""
        self._done += 1
        if self._callback is not None:
            self._callback(self._done, self._total)


_Kept = list[tuple[str, dict[str, Any], IndexArray]]


def _fit_others(
    X: Any, front: AutoSelector, k: int, seed: int, fits: _FitsDone
) -> tuple[_Kept, dict[str, str]]:
    """What the methods besides `SPCAFS` keep: method, settings, columns; and what was left out."""
    kept: _Kept = [(FRONT_DOOR, {}, front.top(k).indices)]
    if front.n_samples_seen_ > MOST_SAMPLES_FOR_GRAPHS:
        reason = (
            "It compares every sample with every other one, and is tried for up to "
            f"{MOST_SAMPLES_FOR_GRAPHS} samples."
        )
        return kept, {"lapscore": reason, "mcfs": reason}
    limit: dict[str, Any] = {"max_correlation": MAX_CORRELATION}
    laplacian: Any = LaplacianScore(k, **limit, random_state=seed).fit(X)
    kept.append(("lapscore", limit, laplacian.top().indices))
    fits.another()
    clusters: dict[str, Any] = {"n_clusters": N_CLUSTERS}
    try:
        regressed: Any = MCFS(k, **clusters, random_state=seed).fit(X)
    except DataError as error:  # more memory than there is
        return kept, {"mcfs": str(error)}
    kept.append(("mcfs", clusters, regressed.top().indices))
    kept.append(("mcfs", clusters | limit, _unlike(X, regressed, k)))
    fits.another()
    return kept, {}


def _unlike(X: Any, fitted: Any, k: int) -> IndexArray:
    """What ``max_correlation`` would keep, without another fit."""
    unlike = prune_redundant(X, fitted.ranking_, MAX_CORRELATION, n_features=k)
    order = np.argsort(fitted.ranking_)
    return np.concatenate([unlike, order[~np.isin(order, unlike)]])[:k]


def _weigh_all(settings: SettingsChoice, kept: _Kept) -> tuple[MethodTrial, ...]:
    """Every candidate with its evidence, strongest first; among equals the first in ``kept``."""
    trials = [
        MethodTrial(method, params, settings.weigh(columns), columns)
        for method, params, columns in kept
    ]
    trials += [
        MethodTrial("spcafs", trial.params, trial.evidence, trial.columns)
        for trial in settings.candidates
    ]
    strength = levels(np.array([trial.evidence.score for trial in trials]))
    return tuple(trials[at] for at in np.argsort(-strength, kind="stable"))


def _weigh_random(
    settings: SettingsChoice, front: AutoSelector, k: int, seed: int
) -> tuple[NeighbourEvidence, ...]:
    """The evidence for random sets of columns that vary."""
    varying = np.flatnonzero(np.isfinite(front.smoothness_))
    rng = np.random.default_rng(seed)
    return tuple(settings.weigh(rng.permutation(varying)[:k]) for _ in range(N_RANDOM_SETS))


def _standard_error(settings: SettingsChoice, trials: tuple[MethodTrial, ...]) -> float:
    """Of the difference between the first trial and that of the front door.

    The scores on halves of the samples vary about their mean as those on all samples would from
    one table to the next.
    """
    front = next(trial for trial in trials if trial.method == FRONT_DOOR)
    if trials[0] is front:
        return 0.0
    leads = settings.scores_on_halves(trials[0].columns) - settings.scores_on_halves(front.columns)
    return float(np.std(leads, ddof=1)) if len(leads) else float("inf")
