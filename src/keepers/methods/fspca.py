"""FSPCA: the k features on which m components hold the most variance.

    maximise  Tr(W'SW)   over W'W = I with m columns and at most k non-zero rows

On a set I of rows the best W holds F(I), the sum of the m largest eigenvalues of S_II, so only I
has to be found (Tian, Nie, Wang and Li, NeurIPS 2020). This is NP-hard already for m = 1.

* Starts: GO, the k largest of sum_i lambda_i v_ji^2 from the m leading eigenpairs of S (exact if
  the rank of S is at most m, where it is the variance of every feature); the largest variances;
  a set grown by the largest gains; a larger set from which the smallest losses are dropped.
* From each start IPU, the projection steps of `keepers.methods.sets`; F never falls.
* Exchanges of single features as long as F, computed anew, grows.

The search holds S on some candidates in memory. When it ends, one product with all of S shows which
other features would come in. These become candidates, and the search continues.
"""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from keepers._blas_threads import one_blas_thread_for
from keepers._protocols import FloatArray, IndexArray, SymmetricOperator
from keepers.exceptions import ParameterError, shorten
from keepers.linalg.ordering import best_first, first_largest
from keepers.linalg.scatter import DenseScatter
from keepers.linalg.spectrum import leading_spectrum
from keepers.linalg.subspace import Subspace, fix_signs
from keepers.methods.control import FeatureControl, check_control, control_of
from keepers.methods.parameters import (
    COMPONENTS,
    FeatureCount,
    Seed,
    check_component_count,
    expected_width,
    is_whole,
    positive,
    whole,
)
from keepers.methods.reading import FittedTable, warn_of_units
from keepers.methods.reading_blocks import ScatterSelector, StreamedTable
from keepers.methods.sets import (
    GAIN,
    AllowedSets,
    FoundSet,
    HeldSet,
    gains_of_adding,
    hold,
    images_of,
    improve_by_projection,
    losses_of_removing,
    projections,
)
from keepers.tables.table import as_n_bytes

# Candidates: at least the first number, or the second for every feature kept, and at most the last,
# whose scatter takes 128 MB. Larger numbers found no better sets (docs/decisions/0020-proofs.md).
FEWEST_CANDIDATES, CANDIDATES_EACH, MOST_CANDIDATES = 1000, 4, 4000
# Kept features up to which sets are grown, and shrunk: beyond, this takes longer than the PCA.
MOST_GROWN, MOST_SHRUNK = 500, 250
# Features that may leave in an exchange, cheapest first, and those that may come for each, best
# first. All of both if there are at most ALL_PAIRS pairs.
OUT, IN, ALL_PAIRS = 6, 2, 600
# Multiplications that the exchanges from one set may take: a second or two.
SWAP_WORK = 6e8


def go_scores(pca: Subspace) -> FloatArray:
    """GO's score of every feature: sum_i lambda_i v_ji^2 over the leading eigenpairs of S."""
    return np.asarray(pca.vectors**2 @ np.maximum(pca.values, 0.0))


def solve_fspca(
    operator: SymmetricOperator,
    pca: Subspace,
    allowed: AllowedSets,
    *,
    max_iter: int = 100,
    most_candidates: int = MOST_CANDIDATES,
) -> FoundSet:
    """The best set from several starts, given the m leading eigenpairs of S.

    At most ``most_candidates`` rows of S are held as a matrix.
    """
    width = len(pca.values)
    scores, variances = go_scores(pca), operator.diagonal()
    starts = {"go": allowed.choose(scores), "variance": allowed.choose(variances)}
    size = max(len(features) for features in starts.values())
    wanted = int(np.clip(CANDIDATES_EACH * size, FEWEST_CANDIDATES, most_candidates))
    if size > wanted // 2 and operator.size > wanted:
        # Too many are kept to hold S on candidates: IPU with products of all of S.
        ends = {
            name: improve_by_projection(operator, features, width, allowed, max_iter)
            for name, features in starts.items()
        }
        best = max(ends, key=lambda name: ends[name].variance)
        return replace(ends[best], start=best)
    rows = _first_candidates(scores, variances, allowed, starts, wanted)
    search = _Search(operator, rows, width, allowed, max_iter)
    name, found = search.run({each: np.searchsorted(rows, starts[each]) for each in starts})
    for visits_left in (3, 2, 1, 0):
        held = replace(found.held, features=rows[found.features])
        if len(rows) == operator.size:
            break
        found = replace(found, images=images_of(operator, held))
        newcomers = _newcomers(held, found.images, variances, allowed, rows)
        if not len(newcomers) or not visits_left:
            break
        rows = np.union1d(rows, newcomers)
        search = _Search(operator, rows, width, allowed, max_iter)
        again = search.swap(search.project(np.searchsorted(rows, held.features)))
        if not again.variance > found.variance * (1.0 + GAIN):
            break
        history, n_steps = found.history + again.history[1:], found.n_steps + again.n_steps
        found = replace(again, history=history, n_steps=n_steps)
    return replace(found, held=held, start=name)


def _first_candidates(
    scores: FloatArray,
    variances: FloatArray,
    allowed: AllowedSets,
    starts: dict[str, IndexArray],
    wanted: int,
) -> IndexArray:
    """The features of the first sets, and the best by GO's score and by variance, sorted."""
    by_score, by_variance = best_first(scores, variances), best_first(variances, scores)
    place = np.minimum(np.argsort(by_score), np.argsort(by_variance))
    place[allowed.must] = -1
    for features in starts.values():
        place[features] = -1
    return np.sort(np.argsort(place, kind="stable")[:wanted])


def _newcomers(
    held: HeldSet,
    images: FloatArray,
    variances: FloatArray,
    allowed: AllowedSets,
    rows: IndexArray,
) -> IndexArray:
    """Features outside the candidates that a projection or an exchange would take in."""
    p = projections(held, images)
    chosen = allowed.choose(p)
    wanted = np.zeros(len(p), dtype=bool)
    wanted[chosen] = np.sum(p[chosen]) > held.variance * (1.0 + GAIN)
    losses = losses_of_removing(held, variances[held.features])
    gains = gains_of_adding(held, images, variances)
    wanted |= gains > np.min(losses[~allowed.must[held.features]], initial=np.inf)
    wanted[rows] = False
    best = np.argsort(-np.where(wanted, gains, -np.inf), kind="stable")
    wanted[best[FEWEST_CANDIDATES // 2 :]] = False
    return np.flatnonzero(wanted)


class _Search:
    """The search among candidates, by their places in the matrix of their scatter."""

    def __init__(
        self,
        operator: SymmetricOperator,
        rows: IndexArray,
        width: int,
        allowed: AllowedSets,
        max_iter: int,
    ) -> None:
        part = operator if len(rows) == operator.size else operator.restrict(rows)
        self.operator = DenseScatter(part.dense())
        self.variances = self.operator.diagonal()
        self.width, self.allowed, self.max_iter = width, allowed.restrict(rows), max_iter

    def run(self, starts: dict[str, IndexArray]) -> tuple[str, FoundSet]:
        """The name of the best start, and the set found from it."""
        count = len(starts["variance"])
        if count <= MOST_GROWN:
            starts = starts | {"greedy": self.grow()}
        if count <= MOST_SHRUNK and len(self.variances) > count:
            starts["backward"] = self.shrink(CANDIDATES_EACH * count)
        ends = {name: self.project(features) for name, features in starts.items()}
        if len(self.variances) * count > 4000:  # exchanges from all ends are for small problems
            best = self._best_of(ends)
            return best, self.swap(ends[best])
        distinct: dict[bytes, str] = {}
        for name, found in ends.items():
            distinct.setdefault(found.features.tobytes(), name)
        ends = {name: self.swap(ends[name]) for name in distinct.values()}
        best = self._best_of(ends)
        return best, ends[best]

    def _best_of(self, ends: dict[str, FoundSet]) -> str:
        """The set that holds most; ties go to the features that vary most, then to the first."""
        most = max(found.variance for found in ends.values())
        near = [name for name, found in ends.items() if found.variance >= most * (1.0 - GAIN)]
        traces = [float(np.sum(self.variances[ends[name].features])) for name in near]
        return near[first_largest(np.array(traces))]

    def project(self, features: IndexArray) -> FoundSet:
        return improve_by_projection(
            self.operator, features, self.width, self.allowed, self.max_iter
        )

    def grow(self) -> IndexArray:
        """Features added one by one, each with the largest gain.

        The eigenpairs are those of S on the span of the last ones and the new feature. What they
        hold is a lower bound, good enough to choose by.
        """
        S, taken = self.operator.matrix, np.zeros(len(self.variances), dtype=bool)
        values: FloatArray = np.empty(0)
        images: FloatArray = np.empty((len(S), 0))
        rows = np.flatnonzero(self.allowed.must).tolist()
        while True:
            for row in rows:
                taken[row] = True
                count = len(values)
                bordered = np.diag(np.append(values, S[row, row]))
                bordered[count, :count] = bordered[:count, count] = images[row]
                values, mixing = np.linalg.eigh(bordered)
                values, mixing = values[::-1][: self.width], mixing[:, ::-1][:, : self.width]
                images = images @ mixing[:count] + np.outer(S[:, row], mixing[count])
            features = np.flatnonzero(taken)
            if len(features) >= self.allowed.count:
                return features
            so_far = HeldSet(features, values, np.empty((0, 0)), self.width)
            gains = gains_of_adding(so_far, images, self.variances)
            rows = [first_largest(np.where(taken, -np.inf, gains))]

    def shrink(self, begin: int) -> IndexArray:
        """The ``begin`` largest variances less those of the smallest losses, 15 % at a time."""
        larger = replace(self.allowed, count=min(begin, len(self.variances)))
        features = larger.choose(self.variances)
        while len(features) > self.allowed.count:
            held = hold(self.operator, features, self.width)
            losses = losses_of_removing(held, self.variances[features])
            losses = np.where(self.allowed.must[features], np.inf, losses)
            left = max(self.allowed.count, int(0.85 * len(features)))
            order = best_first(losses, self.variances[features])
            features = np.sort(features[order[:left]])
        return features

    def swap(self, found: FoundSet) -> FoundSet:
        """Exchange features as long as F grows, and project after each exchange."""
        work = OUT * (1 + IN) * float(len(found.features)) ** 3
        for _ in range(int(min(50, SWAP_WORK / work))):
            best = self._best_swap(found.held)
            if not best.variance > found.variance * (1.0 + GAIN):
                break
            onward = self.project(best.features)
            history, n_steps = found.history + onward.history, found.n_steps + 1 + onward.n_steps
            found = replace(onward, history=history, n_steps=n_steps)
        return found

    def _best_swap(self, held: HeldSet) -> HeldSet:
        """The best set that differs in one feature."""
        features, n_out, n_in = held.features, OUT, IN
        if len(features) * (len(self.variances) - len(features)) <= ALL_PAIRS:
            n_out = n_in = len(self.variances)
        losses = losses_of_removing(held, self.variances[features])
        losses[self.allowed.must[features]] = np.inf
        n_out = min(n_out, int(np.isfinite(losses).sum()))
        candidates = []
        for feature in features[np.argsort(losses, kind="stable")][:n_out]:
            rest, worth = features[features != feature], self.variances
            if len(rest):
                left = hold(self.operator, rest, self.width)
                worth = gains_of_adding(left, images_of(self.operator, left), worth)
            coming = np.setdiff1d(np.arange(len(worth)), features)
            for other in coming[np.argsort(-worth[coming], kind="stable")][:n_in]:
                changed = np.sort(np.append(rest, other))
                candidates.append(hold(self.operator, changed, self.width))
        if not candidates:
            return held
        return candidates[first_largest(np.array([each.variance for each in candidates]))]


@dataclass(eq=False, repr=False)
class FSPCA(ScatterSelector):
    """The k features on which m components hold the most variance.

    PCA with at most k features in all of its components together::

        maximise  Tr(W' S W)   subject to W'W = I, at most k non-zero rows of W,

    where S is the scatter of the centred data. The problem is NP-hard. The search makes the
    projection steps of Tian, Nie, Wang and Li (NeurIPS 2020), which never lose variance, from
    several starts, and then exchanges single features. On tables small enough to try all sets it
    found the best one in 99 of 100.

    Use it if you want to hold variance, as in compression. For clusters, `SPCAFS` or `AutoSelector`
    do as well or better. Features with large numbers win (see ``scaling``). For another number of
    features, fit again.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of those not in ``never_keep``; None keeps half.
    n_components : "auto", int or float in (0, 1), default="auto"
        The number of components m. A float takes as many principal components as explain that
        share of the variance; "auto" counts the eigenvalues of the covariance above the largest one
        expected of unrelated columns with the same variances. Both are lowered to the number of
        features kept; an integer must not exceed it.
    scaling : float in [0, 1], default=0.0
        Divide each feature by its standard deviation to this power before the fit: 0 takes the
        values as they are; 1 gives all features the same variance. ``mean_`` and ``transform`` stay
        in the units of X.
    must_keep : sequence of names or indices, boolean mask or None, default=None
        Features that stay. Names need a data frame.
    never_keep : sequence of names or indices, boolean mask or None, default=None
        Features that go, as if these columns were not in the table.
    {max_correlation}
    missing : {"error", "mean", "median", "model"}, default="error"
        How to treat NaN: raise, or fill the gaps for the fit with the mean or the median of the
        column, or from the other columns ("model"; see the page "Missing values"). ``transform``
        keeps gaps. Tables that are read in blocks must have none.
    memory_limit : int, str or None, default=None
        Memory for ``fit_blocks``, ``partial_fit`` and Dask collections, in bytes or as "500MB",
        "4GB"; None is a quarter of the machine's.
    max_iter : int, default=100
        The most projection steps from one start; 0 to 6 are typical.
    random_state : int, RandomState or None, default=None
        Seeds the start of the eigensolver where both sides of X exceed 3000; nothing else is
        random.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        The part of each feature's sum of squares that the components hold: ``|Q'x_j|^2`` with Q
        their orthonormal scores of the samples. Higher is better; over the kept features they add
        up to ``value_``. In the ranking the kept features come first.
    {fitted}
    components_ : array of shape (n_components, n_features)
        W transposed: the leading eigenvectors of S on the kept features, zero elsewhere. Fewer rows
        where the kept features do not span as many dimensions.
    explained_variance_ : array of shape (n_components,)
        The variance of the data along each component, divided by n - 1 as in scikit-learn's PCA.
    value_ : float
        Tr(W'SW): (n - 1) times the sum of ``explained_variance_``.
    objective_ : array
        Tr(W'SW) of every set on the way from the best start; it never falls.
    start_ : str
        The best start: "go" (the authors'), "variance", "greedy" or "backward".
    n_iter_ : int
        Projection steps and exchanges from the best start.
    n_components_ : int
        The number of components used.
    mean_ : array of shape (n_features,)
        Column means.
    var_ : array of shape (n_features,)
        Column variances, divided by n; 0 for constant columns.
    n_samples_seen_ : int
        Number of rows.
    n_passes_ : int
        How many times the table was read, after ``fit_blocks`` and for Dask collections.
    route_ : str
        What ``fit_blocks`` held in memory: "scatter" (d x d), "memory" (the rows) or "stream" (a
        few d x m blocks and the scatter of some candidates).
    scatter_sum_ : object
        The sums of ``partial_fit``; only after it.

    See Also
    --------
    SPCAFS : Row-sparse PCA by a penalty: a ranking for all numbers of features at once.

    Examples
    --------
    >>> from keepers import FSPCA, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = FSPCA(20, n_components=3).fit(X)
    >>> selector.transform(X).shape
    (83, 20)
    >>> selector.start_, selector.n_iter_
    ('go', 2)
    """

    looks_for = "features that together hold as much of the variance of the table as so few can"
    score_means = "how much of the feature's sum of squares the components of the selection hold"

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_components: int | float | str = "auto"
    scaling: float = 0.0
    must_keep: Any = None
    never_keep: Any = None
    max_correlation: float | None = None
    missing: str = "error"
    memory_limit: int | float | str | None = None
    max_iter: int = 100
    random_state: Seed = None

    depends_on_k = True
    parameter_rules: ClassVar = {
        "n_components": COMPONENTS,
        "scaling": positive(at_most=1.0, zero=True),
        "max_iter": whole(),
    }

    def check_parameters(self) -> None:
        """Raise for settings outside their rules, without looking at data."""
        super().check_parameters()
        if self.memory_limit is not None:
            as_n_bytes(self.memory_limit, "memory_limit")
        check_control(**self._user_control())
        if is_whole(self.n_features_to_select):
            self._check_width(self.n_features_to_select)

    def _check_width(self, n_kept: int) -> None:
        """Raise for more components than features; a number from the data is lowered instead."""
        if is_whole(self.n_components) and self.n_components > n_kept:
            raise ParameterError(
                f"n_components must be at most the number of features kept, {n_kept}; got "
                f"{shorten(self.n_components)}. Keep more features, or give fewer components."
            )

    def _user_control(self) -> dict[str, Any]:
        return {"must_keep": self.must_keep, "never_keep": self.never_keep}

    def _check_columns(self, n_features: int) -> None:
        super()._check_columns(n_features)
        control = control_of(self, n_features)
        self._check_width(control.count_to_select(self.n_features_to_select))

    def _fit_table(self, everything: FittedTable) -> None:
        control = control_of(self, everything.n_features)
        warn_of_units(self, everything)
        table = control.restrict(everything).scale(float(self.scaling))
        self.n_features_to_select_ = control.count_to_select(self.n_features_to_select)
        self._check_width(self.n_features_to_select_)
        allowed = AllowedSets.of_table(table, control, self.n_features_to_select_)
        if allowed.count < 1:
            raise ParameterError(
                "At least one column that varies must be kept; all places, "
                f"{self.n_features_to_select_}, go to constant columns in must_keep. Keep more "
                "features."
            )
        width, n_usable = expected_width(self.n_components), len(table.usable)
        with one_blas_thread_for(2.0 * width * n_usable * min(2 * table.n_samples, n_usable)):
            scatter = self._scatter_of(table, everything)
            pca = self._components(scatter, table, allowed)
            result = solve_fspca(
                scatter,
                pca,
                allowed,
                max_iter=self.max_iter,
                most_candidates=_candidates_in_memory(table),
            )
            self._store_set(result, control, table, everything)
            self._store_components(result.held, scatter, table)
        self.objective_ = np.array(result.history)
        self.start_ = result.start
        self.n_iter_ = result.n_steps
        self.n_components_ = len(pca.values)
        self.mean_ = table.mean.astype(table.dtype, copy=False)
        self.var_ = everything.variances  # float32 may not hold it
        self.n_samples_seen_ = table.n_samples

    def _components(
        self, scatter: SymmetricOperator, table: FittedTable, allowed: AllowedSets
    ) -> Subspace:
        """The leading eigenpairs of S: no more than features may be kept."""
        check_component_count(self.n_components, table.n_samples, len(table.usable))
        spectrum = leading_spectrum(
            scatter,
            self.n_components,
            n_samples=table.n_samples,
            sum_of_squares=table.moments.sum_of_squares,
            rng=self.random_generator(),
        )
        pca = spectrum.subspace
        width = min(spectrum.width, len(allowed.choose(scatter.diagonal())))
        return replace(
            pca,
            vectors=pca.vectors[:, :width],
            images=pca.images[:, :width],
            values=pca.values[:width],
        )

    def _store_set(
        self,
        result: FoundSet,
        control: FeatureControl,
        table: FittedTable,
        everything: FittedTable,
    ) -> None:
        scores = table.to_all_columns(projections(result.held, result.images))
        self.scores_ = scores.astype(table.dtype, copy=False)
        kept = control.must.copy()
        kept[table.usable[result.held.features]] = True
        order = control.order(scores, everything)
        order = order[np.argsort(~kept[order], kind="stable")]
        self._store_order(order, everything, control.must, control.never)

    def _store_components(
        self, held: HeldSet, scatter: SymmetricOperator, table: FittedTable
    ) -> None:
        """The components on the kept features, which ``max_correlation`` may have changed."""
        kept: IndexArray = np.flatnonzero(self.support_[table.usable])
        if not np.array_equal(kept, held.features):
            held = hold(scatter, kept, min(len(held.values), len(kept)))
        components = np.zeros((len(held.values), len(table.usable)))
        components[:, kept] = fix_signs(held.vectors).T
        self.components_ = table.to_all_columns(components.astype(table.dtype, copy=False))
        self.explained_variance_ = held.values / (table.n_samples - 1)
        self.value_ = held.variance

    def _count_top(self, k: Any) -> int:
        return control_of(self, self.n_features_in_).count(k, "k")


def _candidates_in_memory(table: FittedTable) -> int:
    """The number of columns whose scatter fits in memory during a search."""
    count = MOST_CANDIDATES
    if isinstance(table, StreamedTable):
        while count > 125 and not table.budget.holds(table.budget.of_scatter(count)):
            count //= 2
    return count
