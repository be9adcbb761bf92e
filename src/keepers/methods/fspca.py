"""FSPCA: the k features on which m components hold the most variance.

    maximise  Tr(W'SW)   over W'W = I with m columns and at most k non-zero rows

On a set I of rows the best W holds F(I), the sum of the m largest eigenvalues of S_II, so only I
has to be found (Tian, Nie, Wang and Li, NeurIPS 2020). This is NP-hard already for m = 1.

Let (theta_a, u_a), a = 1..m, be the leading eigenpairs of S_II, and B = S_{.,I} U their images, one
row b_j for every feature:

* Projection. With X the centred data, Q = X_I U Theta^(-1/2) has orthonormal columns, and
  p_j = |Q'x_j|^2 = sum_a b_ja^2 / theta_a is what they hold of feature j. Over I the p_j add up to
  F(I); over any other set J to Tr(Q' X_J X_J' Q) <= F(J). So F never falls if the next set is the
  one with the largest p: IPU of the authors.
* Gain of adding j, at least: the m largest eigenvalues of S on the span of U and feature j, the
  matrix [[Theta, b_j], [b_j', s_jj]], add up to F(I) + s_jj - mu with mu its smallest eigenvalue,
  which is the smallest root of s_jj - mu = sum_a b_ja^2 / (theta_a - mu).
* Loss of removing i, at most: U without its row i spans a space on which the trace is known in
  closed form; it lacks (q - s_ii t) / (1 - t), with t = |u_i|^2 and q = sum_a theta_a u_ia^2.

The search:

* Starts: GO, the k largest of sum_i lambda_i v_ji^2 from the m leading eigenpairs of S (exact if
  the rank of S is at most m, where it is the variance of every feature); the largest variances;
  a set grown by the largest gains; a larger set from which the smallest losses are dropped.
* From each start projections, then exchanges of single features as long as F, computed anew, grows.

The search holds S on some candidates in memory. When it ends, one product with all of S shows which
other features would come in. These become candidates, and the search continues.
"""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from keepers._blas_threads import one_blas_thread_for
from keepers._protocols import BoolArray, FloatArray, IndexArray, SymmetricOperator
from keepers.exceptions import ParameterError, shorten
from keepers.linalg.ordering import best_first, first_largest, nearest_first
from keepers.linalg.scatter import SMALL_SIDE, DenseScatter, FactoredScatter
from keepers.linalg.spectrum import (
    Subspace,
    fix_signs,
    leading_pairs,
    leading_spectrum,
    principal_subspace,
)
from keepers.methods.base import ScatterSelector
from keepers.methods.parameters import (
    COMPONENTS,
    FeatureCount,
    Seed,
    check_component_count,
    control_of,
    expected_width,
    is_whole,
    positive,
)
from keepers.methods.reading import FittedTable, scatter_of, warn_of_units

# Eigenvalues of S_II below this share of the largest are rounding, and their vectors arbitrary.
NEGLIGIBLE = 1e-12
# The relative growth of F beyond which a set counts as better.
GAIN = 1e-10
# Candidates: at least the first number, or the second for every feature kept, but at most the last,
# whose scatter takes 128 MB. Larger numbers found no better sets (docs/decisions/0020-proofs.md).
FEWEST_CANDIDATES, CANDIDATES_EACH, MOST_CANDIDATES = 1000, 4, 4000
# Kept features up to which sets are grown, and shrunk: beyond, that takes longer than the PCA.
MOST_GROWN, MOST_SHRUNK = 500, 250
# Features that may leave in an exchange, the cheapest first, and those that may come for each, the
# best first. All of both if there are no more pairs than the last.
OUT, IN, ALL_PAIRS = 6, 2, 600
# Multiplications that the exchanges from one set may take: a second or two.
SWAP_WORK = 6e8


# Sets, and what they hold, gain and lose


@dataclass(frozen=True)
class HeldSet:
    """A set of features, and the leading eigenpairs of S on them."""

    features: IndexArray
    values: FloatArray
    """theta, largest first: at most m, and none that is rounding."""
    vectors: FloatArray
    """u, a row for every feature of the set."""
    width: int
    """m; there may be fewer features."""

    @property
    def variance(self) -> float:
        """The variance F that the set holds."""
        return float(np.sum(self.values))


def hold(operator: SymmetricOperator, features: IndexArray, width: int) -> HeldSet:
    """The leading eigenpairs of S on some features; their sum is never above F but for rounding."""
    part = operator.restrict(features)
    count = min(width, len(features))
    if part.size <= SMALL_SIDE:
        values, vectors = leading_pairs(part.dense(), count)
    else:
        # Any start will do; always the same one gives the same digits.
        found = principal_subspace(part, count, np.random.default_rng(0), tol=1e-7)
        values, vectors = found.values, found.vectors
    n_real = max(1, int(np.sum(values > NEGLIGIBLE * values[0])))
    return HeldSet(features, values[:n_real], vectors[:, :n_real], width)


def variance_held(operator: SymmetricOperator, features: IndexArray, width: int) -> float:
    """F of a set, which may be empty or have fewer features than components."""
    if len(features) <= width:
        return float(operator.diagonal()[features].sum())
    return max(hold(operator, features, width).variance, 0.0)


def images_of(operator: SymmetricOperator, held: HeldSet) -> FloatArray:
    """The images B = S_{.,I} U, by one product with a block that is zero outside the set."""
    if isinstance(operator, DenseScatter):
        return np.asarray(operator.matrix[:, held.features] @ held.vectors)
    if isinstance(operator, FactoredScatter):
        return operator.back(operator.take(held.features).times(held.vectors))
    block = np.zeros((operator.size, held.vectors.shape[1]), order="F")
    block[held.features] = held.vectors
    return operator.matmat(block)


def projections(held: HeldSet, images: FloatArray) -> FloatArray:
    """The part p of every feature that the components hold."""
    return np.asarray(images**2 @ (1.0 / held.values))


def gains_of_adding(held: HeldSet, images: FloatArray, variances: FloatArray) -> FloatArray:
    """The least growth of F with each feature outside the set."""
    if len(held.values) < held.width:
        # There is room for one more component, and nothing is lost of the others.
        if len(held.values) == len(held.features):
            return variances
        return np.maximum(variances - projections(held, images), 0.0)
    squares, values = images**2, held.values
    last, rest = values[-1], variances - squares[:, :-1] @ (1.0 / values[:-1])
    # With the other poles at mu = 0 the root of a quadratic lies above that of the whole.
    middle, apart = (rest + last) / 2.0, (rest - last) / 2.0
    mu = np.clip(middle - np.sqrt(apart**2 + squares[:, -1]), 0.0, None)
    floor = np.finfo(float).tiny + NEGLIGIBLE * values[0]
    for _ in range(6):  # Newton's steps come from above: gains are never overstated
        below = np.maximum(values - mu[:, np.newaxis], floor)
        terms = squares / below
        excess = variances - mu - terms.sum(axis=1)
        slope = 1.0 + np.sum(terms / below, axis=1)
        mu = np.clip(mu + excess / slope, 0.0, mu)
    return np.maximum(variances - mu, 0.0)


def losses_of_removing(held: HeldSet, variances: FloatArray) -> FloatArray:
    """The largest fall of F without each feature of the set; ``variances`` are the set's."""
    squares = held.vectors**2
    t, q = squares.sum(axis=1), squares @ held.values
    left = 1.0 - t
    alone = left <= 1e-10  # a component of its own: all of its variance goes
    quotient = (q - variances * t) / np.where(alone, 1.0, left)
    return np.where(alone, variances, np.clip(quotient, 0.0, variances))


@dataclass(frozen=True)
class AllowedSets:
    """The sets that may be kept: at most ``count`` features, those of ``must`` among them."""

    count: int
    must: BoolArray

    @classmethod
    def of_count(cls, size: int, count: int, must: BoolArray | None = None) -> "AllowedSets":
        """Any ``count`` of ``size`` features, with those that must be kept."""
        return cls(min(count, size), np.zeros(size, dtype=bool) if must is None else must)

    def choose(self, values: FloatArray) -> IndexArray:
        """Features whose values add up to the most; ties go to the lowest index."""
        chosen = self.must.copy()
        free = np.flatnonzero(~self.must)
        n_free = min(self.count - int(self.must.sum()), len(free))
        if n_free > 0:
            chosen[free[nearest_first(-values[np.newaxis, free], n_free)[0]]] = True
        return np.flatnonzero(chosen)


@dataclass(frozen=True)
class FoundSet:
    """A set, what it holds, and the images of its components."""

    held: HeldSet
    images: FloatArray
    """B of the set, a row for every feature of S."""

    @property
    def features(self) -> IndexArray:
        return self.held.features

    @property
    def variance(self) -> float:
        """F of the set."""
        return self.held.variance


def improve_by_projection(
    operator: SymmetricOperator,
    features: IndexArray,
    width: int,
    allowed: AllowedSets | None = None,
    max_iter: int = 100,
) -> FoundSet:
    """IPU from a set of features: the set with the largest p, until the sum of p does not grow.

    A step needs S on the set and one product with S. Without ``allowed``, any set of this size may
    be kept.
    """
    features = np.sort(np.asarray(features, dtype=np.intp))
    allowed = allowed or AllowedSets.of_count(operator.size, len(features))
    held = hold(operator, features, width)
    images = images_of(operator, held)
    for _ in range(max_iter):
        p = projections(held, images)
        features = allowed.choose(p)
        if not np.sum(p[features]) > held.variance * (1.0 + GAIN):
            break
        candidate = hold(operator, features, width)
        if candidate.variance < held.variance:
            break  # by rounding
        held, images = candidate, images_of(operator, candidate)
    return FoundSet(held, images)


# The search


def go_scores(pca: Subspace) -> FloatArray:
    """GO's score of every feature: sum_i lambda_i v_ji^2 over the leading eigenpairs of S."""
    return np.asarray(pca.vectors**2 @ np.maximum(pca.values, 0.0))


def solve_fspca(
    operator: SymmetricOperator,
    pca: Subspace,
    allowed: AllowedSets,
) -> FoundSet:
    """The best set from several starts, given the m leading eigenpairs of S.

    At most `MOST_CANDIDATES` rows of S are held as a matrix.
    """
    width = len(pca.values)
    scores, variances = go_scores(pca), operator.diagonal()
    starts = [allowed.choose(scores), allowed.choose(variances)]
    size = max(len(features) for features in starts)
    wanted = int(np.clip(CANDIDATES_EACH * size, FEWEST_CANDIDATES, MOST_CANDIDATES))
    if size > wanted // 2 and operator.size > wanted:
        # Too many are kept to hold S on candidates: IPU with products of all of S.
        ends = [improve_by_projection(operator, features, width, allowed) for features in starts]
        return max(ends, key=lambda found: found.variance)
    rows = _first_candidates(scores, variances, allowed, starts, wanted)
    search = _Search(operator, rows, width, allowed)
    found = search.run([np.searchsorted(rows, features) for features in starts])
    for visits_left in (3, 2, 1, 0):
        held = replace(found.held, features=rows[found.features])
        if len(rows) == operator.size:
            break
        found = replace(found, images=images_of(operator, held))
        newcomers = _newcomers(held, found.images, variances, allowed, rows)
        if not len(newcomers) or not visits_left:
            break
        rows = np.union1d(rows, newcomers)
        search = _Search(operator, rows, width, allowed)
        again = search.swap(search.project(np.searchsorted(rows, held.features)))
        if not again.variance > found.variance * (1.0 + GAIN):
            break
        found = again
    return replace(found, held=held)


def _first_candidates(
    scores: FloatArray,
    variances: FloatArray,
    allowed: AllowedSets,
    starts: list[IndexArray],
    wanted: int,
) -> IndexArray:
    """The features of the first sets, and the best by GO's score and by variance, sorted."""
    by_score, by_variance = best_first(scores, variances), best_first(variances, scores)
    place = np.minimum(np.argsort(by_score), np.argsort(by_variance))
    place[allowed.must] = -1
    for features in starts:
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
    ) -> None:
        part = operator if len(rows) == operator.size else operator.restrict(rows)
        self.operator = DenseScatter(part.dense())
        self.variances = self.operator.diagonal()
        self.allowed = AllowedSets(allowed.count, allowed.must[rows])
        self.width = width

    def run(self, starts: list[IndexArray]) -> FoundSet:
        """The best set found from these starts, from a grown set and from a shrunk one."""
        count = len(starts[0])
        if count <= MOST_GROWN:
            starts = [*starts, self.grow()]
        if count <= MOST_SHRUNK and len(self.variances) > count:
            starts = [*starts, self.shrink(CANDIDATES_EACH * count)]
        ends = [self.project(features) for features in starts]
        if len(self.variances) * count > 4000:  # exchanges from all ends are for small problems
            return self.swap(self._best_of(ends))
        distinct: dict[bytes, FoundSet] = {}
        for found in ends:
            distinct.setdefault(found.features.tobytes(), found)
        return self._best_of([self.swap(found) for found in distinct.values()])

    def _best_of(self, ends: list[FoundSet]) -> FoundSet:
        """The set that holds most; ties go to the features that vary most, then to the first."""
        most = max(found.variance for found in ends)
        near = [found for found in ends if found.variance >= most * (1.0 - GAIN)]
        traces = [float(np.sum(self.variances[found.features])) for found in near]
        return near[first_largest(np.array(traces))]

    def project(self, features: IndexArray) -> FoundSet:
        return improve_by_projection(self.operator, features, self.width, self.allowed)

    def grow(self) -> IndexArray:
        """Features added one by one, each with the largest gain.

        The eigenpairs are those of S on the span of the last ones and the new feature. What they
        hold is a lower bound, good enough to choose by.
        """
        S, must = self.operator.matrix, np.flatnonzero(self.allowed.must)
        taken = np.zeros(len(S), dtype=bool)
        values: FloatArray = np.empty(0)
        images: FloatArray = np.empty((len(S), 0))
        for step in range(self.allowed.count):
            if step < len(must):
                row = int(must[step])
            else:
                so_far = HeldSet(np.flatnonzero(taken), values, np.empty((0, 0)), self.width)
                gains = gains_of_adding(so_far, images, self.variances)
                row = first_largest(np.where(taken, -np.inf, gains))
            taken[row] = True
            bordered = np.diag(np.append(values, S[row, row]))
            bordered[-1, :-1] = bordered[:-1, -1] = images[row]
            values, mixing = np.linalg.eigh(bordered)
            values, mixing = values[::-1][: self.width], mixing[:, ::-1][:, : self.width]
            images = images @ mixing[:-1] + np.outer(S[:, row], mixing[-1])
        return np.flatnonzero(taken)

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
            found = self.project(best.features)
        return found

    def _best_swap(self, held: HeldSet) -> HeldSet:
        """The best set that differs in one feature."""
        features, others = held.features, len(self.variances) - len(held.features)
        everything = len(features) * others <= ALL_PAIRS
        losses = losses_of_removing(held, self.variances[features])
        losses[self.allowed.must[features]] = np.inf
        n_out = min(len(features) if everything else OUT, int(np.isfinite(losses).sum()))
        candidates = []
        for out in features[np.argsort(losses, kind="stable")][:n_out]:
            rest = features[features != out]
            for other in self._best_to_add(rest, features, others if everything else IN):
                changed = np.sort(np.append(rest, other))
                candidates.append(hold(self.operator, changed, self.width))
        if not candidates:
            return held
        return candidates[first_largest(np.array([each.variance for each in candidates]))]

    def _best_to_add(self, rest: IndexArray, features: IndexArray, count: int) -> IndexArray:
        """The features outside a set that gain most with the rest of it."""
        gains = self.variances
        if len(rest):
            left = hold(self.operator, rest, self.width)
            gains = gains_of_adding(left, images_of(self.operator, left), gains)
        coming = np.setdiff1d(np.arange(len(gains)), features)
        return coming[np.argsort(-gains[coming], kind="stable")][:count]


@dataclass(eq=False, repr=False)
class FSPCA(ScatterSelector):
    """Find the k features on which m components hold the most variance.

    PCA with at most k features in all of its components together::

        maximise  Tr(W' S W)   subject to W'W = I, at most k non-zero rows of W,

    where S is the scatter of the centred data. The problem is NP-hard. The search makes the
    projection steps of Tian, Nie, Wang and Li (NeurIPS 2020), which never lose variance, from
    several starts, and then exchanges single features. On 300 small tables, of which all sets were
    tried, it found the best one in 299.

    Use it if variance itself is the goal, as in compression. For clusters, `SPCAFS` or
    `AutoSelector` do as well or better. Columns with large numbers have large variances, so see
    ``scaling`` if units differ. For another number of features, fit again.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        Number of features to keep, or share of those not in ``never_keep``; None keeps half.
    n_components : "auto", int or float in (0, 1), default="auto"
        The number of components m. A float uses as many principal components as explain that share
        of the variance; "auto" counts the eigenvalues of the covariance above the largest one
        expected of unrelated columns with the same variances. Both are lowered to the number of
        kept features if they exceed it; an integer above it raises an error.
    {scaling}
    must_keep : sequence of names or indices, boolean mask or None, default=None
        Features to keep always. Names need a data frame.
    never_keep : sequence of names or indices, boolean mask or None, default=None
        Features never to keep; the result is the same as without these columns.
    {max_correlation}
    {missing}
    {memory_limit}
    {random_state}

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        The part of each feature's sum of squares that the components hold: ``|Q'x_j|^2``, where Q
        are the orthonormal scores of the samples. Higher is better. The scores of the kept features
        add up to ``value_``, and the kept features rank first.
    {fitted}
    components_ : array of shape (n_components, n_features)
        W transposed: the leading eigenvectors of S on the kept features, zero elsewhere. Fewer rows
        where the kept features do not span as many dimensions.
    explained_variance_ : array of shape (n_components,)
        The variance of the data along each component, divided by n - 1 as in scikit-learn's PCA.
    value_ : float
        Tr(W'SW): (n - 1) times the sum of ``explained_variance_``.
    {seen}

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
    """

    looks_for = "features that together hold as much of the variance of the table as possible"
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
    random_state: Seed = None

    depends_on_k = True
    parameter_rules: ClassVar = {
        "n_components": COMPONENTS,
        "scaling": positive(at_most=1.0, zero=True),
    }

    def check_parameters(self) -> None:
        """Raise for settings outside their rules, without looking at data."""
        super().check_parameters()
        if is_whole(self.n_features_to_select):
            self._check_width(self.n_features_to_select)

    def _check_width(self, n_kept: int) -> None:
        """Raise for more components than features; a number from the data is lowered instead."""
        if is_whole(self.n_components) and self.n_components > n_kept:
            raise ParameterError(
                f"n_components must be at most the number of features kept, {n_kept}; got "
                f"{shorten(self.n_components)}. Keep more features, or give fewer components."
            )

    def _fit_table(self, everything: FittedTable) -> None:
        control = control_of(self, everything.n_features)
        warn_of_units(self, everything)
        table = control.restrict(everything).scale(float(self.scaling))
        self.n_features_to_select_ = control.count_to_select(self.n_features_to_select)
        self._check_width(self.n_features_to_select_)
        # Constant columns that must be kept take a place.
        n_free = self.n_features_to_select_ - int(np.sum(control.must & table.unusable))
        must = control.must[table.usable]
        allowed = AllowedSets.of_count(len(must), n_free, must)
        if allowed.count < 1:
            raise ParameterError(
                "At least one column that varies must be kept; all places, "
                f"{self.n_features_to_select_}, go to constant columns in must_keep. Keep more "
                "features."
            )
        width, n_usable = expected_width(self.n_components), len(table.usable)
        with one_blas_thread_for(2.0 * width * n_usable * min(2 * table.n_samples, n_usable)):
            scatter = scatter_of(self, table, everything)
            pca = self._components(scatter, table, allowed.count)
            result = solve_fspca(scatter, pca, allowed)
            scores = table.to_all_columns(projections(result.held, result.images))
            self.scores_ = scores.astype(table.dtype, copy=False)
            order = control.order(scores, everything)
            # The set and columns that must be kept, before the others.
            first = control.must.copy()
            first[table.usable[result.held.features]] = True
            order = order[np.argsort(~first[order], kind="stable")]
            self._store_order(order, everything, control.must, control.never)
            self._store_components(result.held, scatter, table)
        self.n_components_ = len(pca.values)
        self.mean_ = table.mean.astype(table.dtype, copy=False)
        self.var_ = everything.variances  # float32 may not hold it
        self.n_samples_seen_ = table.n_samples

    def _components(self, scatter: SymmetricOperator, table: FittedTable, n_kept: int) -> Subspace:
        """The leading eigenpairs of S: no more than features may be kept."""
        check_component_count(self.n_components, table.n_samples, len(table.usable))
        pca = leading_spectrum(
            scatter,
            self.n_components,
            n_samples=table.n_samples,
            sum_of_squares=table.moments.sum_of_squares,
            rng=self.random_generator(),
        )
        return pca.first(n_kept)

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
