"""MCFS: sparse regressions of a spectral embedding on the features (Cai, Zhang and He, KDD 2010).

1. Embed: Y solves L y = lambda D y on a graph S of the samples (D its degrees, L = D - S), for
   the smallest lambda but the trivial one; the same as Y = D^-1/2 V with V the leading
   eigenvectors of N = D^-1/2 S D^-1/2, mu = 1 - lambda. Y'DY = I.
2. Regress: for each column y, follow the lasso path of |y - X a|^2 + ridge |a|^2, with neither
   intercept nor scaling, to its first knot with ``cardinality`` non-zeros; scale a to length 1.
3. Score: the largest |a_j| of a feature over the columns.

The lasso path is that of least angle regression (Efron et al., 2004): the solutions of

    minimise  1/2 a' G a - a' c + penalty * |a|_1,   G = X'X + ridge I,   c = X'y,

for every penalty from max |c| down to 0. Between two knots the active features A and their signs
s stay, and everything is linear in the penalty:

    a_A = b - penalty * w,                       G_AA b = c_A,  G_AA w = s,
    correlations c - G a = p + penalty * slope,  p = c - G_.A b,  slope = G_.A w.

A segment ends where a feature's correlation reaches the penalty (it joins) or an active
coefficient reaches zero (it is dropped). scikit-learn's `lars_path_gram` needs all of G and cannot
stop at a number of non-zeros: docs/decisions/0011-own-lars.md.
"""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_solve, cholesky, solve_triangular
from sklearn.base import clone

from keepers._protocols import FloatArray, IndexArray
from keepers.exceptions import DataWarning, warn_caller
from keepers.linalg.graph import leading_eigenvectors
from keepers.linalg.ordering import first_largest, first_smallest
from keepers.linalg.scatter import as_array, by_columns
from keepers.methods.parameters import (
    Seed,
    cap_clusters,
    check_value,
    count_features,
    one_of,
    positive,
    refuse_past_memory,
    whole,
)
from keepers.methods.reading import MemoryTable, named_table, read_table
from keepers.methods.rivals import Rival

# Eigenvectors to mu this close to 0 are left out, as in Cai's program.
VANISHING = 1e-6
# Shares of the largest coefficient and correlation of a path below which they are rounding noise. A
# feature depends on the active ones if less than the third share of its square lies outside.
_ZERO, _END, _DEPENDENT = 1e-10, 1e-13, 1e-12


@dataclass(frozen=True)
class MCFSResult:
    """The scores of the features, and the regressions: a row for every column of the embedding."""

    scores: FloatArray
    coef: FloatArray
    n_knots: int
    n_short: int
    """Regressions with fewer non-zeros than wanted."""


def embed(
    graph: sp.csr_array, n_vectors: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, bool]:
    """Step 1: up to ``n_vectors`` columns, their mu, and whether the eigensolver converged."""
    spectrum = leading_eigenvectors(graph, n_vectors, rng)
    kept = np.abs(spectrum.mu) >= VANISHING
    if not kept.any():
        kept[:] = True
    Y = spectrum.vectors[:, kept] * spectrum.inverse_root_degrees[:, np.newaxis]
    return Y, spectrum.mu[kept], spectrum.converged


def solve_mcfs(
    X: Any, Y: FloatArray, cardinalities: Sequence[int], ridge: float
) -> list[MCFSResult]:
    """Steps 2 and 3 for each cardinality, along one path; X is an array or a CSR/CSC matrix."""
    gram = Gram(X, ridge)
    paths = [first_knots_of_sizes(gram, c, cardinalities) for c in np.asarray(X.T @ Y).T]
    results = []
    for place in range(len(cardinalities)):
        knots = [path[place][0] for path in paths]
        coef = np.zeros((len(knots), gram.size))
        for row, knot in zip(coef, knots, strict=True):
            row[knot.features] = knot.values / (np.linalg.norm(knot.values) or 1.0)
        n_knots = sum(path[place][1] for path in paths)
        n_short = sum(not knot.reached for knot in knots)
        results.append(MCFSResult(np.abs(coef).max(axis=0, initial=0.0), coef, n_knots, n_short))
    return results


class Gram:
    """X'X + ridge I. Rows are formed on first use and kept: the regressions share many of them."""

    def __init__(self, X: Any, ridge: float) -> None:
        self.X = by_columns(X)
        self.ridge = ridge
        self.n_samples, self.size = X.shape
        self._kept: dict[int, FloatArray] = {}

    def row(self, feature: int) -> FloatArray:
        if feature not in self._kept:
            row = as_array(self.X[:, [feature]].T @ self.X).ravel()
            row[feature] += self.ridge
            self._kept[feature] = row
        return self._kept[feature]


@dataclass(frozen=True)
class Knot:
    """The solution where the path bends; active features in the order in which they joined."""

    penalty: float
    features: IndexArray
    values: FloatArray
    reached: bool = False
    """True if it has the wanted number of non-zeros."""

    @property
    def n_nonzero(self) -> int:
        size = np.abs(self.values)
        return int(np.sum(size > _ZERO * size.max(initial=0.0)))


def first_knots_of_sizes(
    gram: Gram, covariance: FloatArray, sizes: Sequence[int]
) -> list[tuple[Knot, int]]:
    """For each size the first knot with that many non-zeros or more, or the last; its number."""
    found: dict[int, tuple[Knot, int]] = {}
    waiting = sorted(set(sizes), reverse=True)
    number, knot = 0, Knot(0.0, np.empty(0, dtype=np.intp), np.empty(0))
    for number, knot in enumerate(lasso_knots(gram, covariance), 1):
        # Without a limit, a tie that rounding breaks now this way, now that, could go on forever.
        while waiting and (knot.n_nonzero >= waiting[-1] or number >= 50 * waiting[-1] + 1000):
            size = waiting.pop()
            reached = knot.n_nonzero >= size and _is_on_path(gram, covariance, knot)
            found[size] = (replace(knot, reached=reached), number)
        if not waiting:
            break
    return [found.get(size, (knot, number)) for size in sizes]


def _is_on_path(gram: Gram, covariance: FloatArray, knot: Knot) -> bool:
    """Check the condition |correlation with the residual| = penalty to 0.1 %.

    It fails where columns are nearly dependent and the ridge is nearly zero.
    """
    active = as_array(gram.X[:, knot.features])
    left = covariance[knot.features] - active.T @ (active @ knot.values) - gram.ridge * knot.values
    missed = np.abs(np.abs(left) - knot.penalty).max(initial=0.0)
    return bool(missed <= 1e-3 * np.abs(covariance).max())


def lasso_knots(gram: Gram, covariance: FloatArray) -> Iterator[Knot]:
    """All knots from the first, where one feature is active, to the penalty 0."""
    active = _ActiveSet(gram)
    barred = np.zeros(gram.size, dtype=bool)
    dropped: tuple[int, float] | None = None
    joins = first_largest(np.abs(covariance))
    penalty = highest = float(np.abs(covariance[joins]))
    if penalty == 0.0:
        return
    joined = active.join(joins, float(np.sign(covariance[joins])))
    barred[joins] = True
    while penalty > 0.0:
        b, w, p, slope = active.solve(covariance)
        correlation = p + penalty * slope
        rising = _time_to_close(penalty - correlation, 1.0 - slope)
        falling = _time_to_close(penalty + correlation, 1.0 + slope)
        if dropped is not None:  # it cannot come back at once on the side that it leaves
            (rising if dropped[1] > 0 else falling)[dropped[0]] = np.inf
        to_join = np.where(barred, np.inf, np.minimum(rising, falling))
        to_drop = _time_to_close(active.signs * (b - penalty * w), -active.signs * w)
        if joined:
            to_drop[-1] = np.inf  # it stands at zero and is about to leave it
        joins, drops = first_smallest(to_join, penalty), first_smallest(to_drop, penalty)
        penalty -= min(to_join[joins], to_drop[drops], penalty)
        penalty = float(penalty) if penalty > _END * highest else 0.0
        values = b - penalty * w
        dropping = penalty > 0.0 and to_drop[drops] <= to_join[joins]
        if dropping:
            values[drops] = 0.0
        yield Knot(penalty, active.features, values)
        correlation = p + penalty * slope
        dropped = None
        if dropping:
            dropped = (int(active.features[drops]), float(active.signs[drops]))
            barred[dropped[0]] = False
            active.drop(drops)
            joined = False
        elif penalty > 0.0:
            joined = active.join(joins, float(np.sign(correlation[joins])))
            barred[joins] = True  # for good if it depends on the active ones


def _time_to_close(gap: FloatArray, speed: FloatArray) -> FloatArray:
    """Gap over speed where it closes, infinity where it does not; a gap below 0 is rounding."""
    time = np.full(gap.shape, np.inf)
    np.divide(np.maximum(gap, 0.0), speed, out=time, where=speed > _END)
    return time


class _ActiveSet:
    """The active features in the order in which they joined, and the Cholesky factor of G_AA."""

    def __init__(self, gram: Gram) -> None:
        self.gram = gram
        self.features: IndexArray = np.empty(0, dtype=np.intp)
        self.signs: FloatArray = np.empty(0)
        self._rows = np.empty((min(64, gram.size), gram.size))
        self._factor = np.empty((0, 0))

    def join(self, feature: int, sign: float) -> bool:
        """Take a feature in; False, and no change, if it depends on those inside."""
        count, row = len(self.features), self.gram.row(feature)
        along = np.empty(0)
        if count:  # SciPy 1.12 refuses an empty system
            along = solve_triangular(self._factor, row[self.features], lower=True)
        outside = row[feature] - along @ along
        if outside <= _DEPENDENT * row[feature]:
            return False
        if count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._rows[count] = row
        last = np.append(along, np.sqrt(outside))
        self._factor = np.vstack([np.pad(self._factor, [(0, 0), (0, 1)]), last])
        self.features, self.signs = np.append(self.features, feature), np.append(self.signs, sign)
        return True

    def drop(self, position: int) -> None:
        """Take a feature out."""
        self.features = np.delete(self.features, position)
        self.signs = np.delete(self.signs, position)
        count = len(self.features)
        self._rows[position:count] = self._rows[position + 1 : count + 1]
        self._factor = cholesky(self._rows[:count, self.features], lower=True)

    def solve(self, c: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The b, w, p and slope of the path from here to the next event."""
        targets = np.stack([c[self.features], self.signs], axis=1)
        solutions = cho_solve((self._factor, True), targets)
        if len(self.features) > self.gram.n_samples:  # G_AA is nearly singular: solve for the rest
            inside = as_array(self.gram.X[:, self.features])
            missed = targets - inside.T @ (inside @ solutions) - self.gram.ridge * solutions
            solutions += cho_solve((self._factor, True), missed)
        images = solutions.T @ self._rows[: len(self.features)]
        return solutions[:, 0], solutions[:, 1], c - images[0], images[1]


@dataclass(eq=False, repr=False, kw_only=True)
class MCFS(Rival):
    """Multi-cluster feature selection: sparse regressions of a spectral embedding.

    Embeds the samples by the leading eigenvectors of a heat-kernel graph of nearest neighbours,
    explains each coordinate by few features, along the lasso path, and scores a feature by its
    largest coefficient (Cai, Zhang and He, KDD 2010). At most ``n_clusters`` times ``cardinality``
    features have a score above zero, and all others tie: do not use ``top(k)`` far beyond
    ``n_features_to_select``. ``fit_each`` takes as long as a fit for the largest number.

    Parameters
    ----------
    {n_features_refit}
    n_clusters : int, default=5
        Number of eigenvectors. Each is regressed on the features.
    {n_neighbors}
    cardinality : int or None, default=None
        Non-zero coefficients of each regression. None takes the number of features to select.
    ridge : float, default=0.001
        Added to the diagonal of X'X, in the square of the unit of X. It lets a regression reach
        more non-zeros than there are samples; 0 is allowed.
    {bandwidth}
    {max_correlation}
    random_state : int, RandomState or None, default=None
        Seeds the eigensolver above 400 samples and the sample for the mean distance above 3000.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Largest absolute coefficient, from 0 to 1; higher is better.
    {fitted}
    coef_ : array of shape (n_vectors, n_features)
        Coefficients of each regression, scaled to length 1. n_vectors is ``n_clusters``, or
        slightly fewer: eigenvectors whose eigenvalue is zero are left out.
    embedding_ : array of shape (n_samples, n_vectors)
        The coordinates Y that were regressed; Y'DY = I for the degrees D of the graph.
    n_iter_ : int
        Number of knots of the lasso paths, over all regressions.
    converged_ : bool
        Whether the eigenvectors reached their tolerance.

    Examples
    --------
    >>> from keepers import MCFS, datasets
    >>> MCFS(50, n_clusters=4).fit(datasets.load("srbct").X).coef_.shape
    (4, 2308)
    """

    score_means = "the largest weight of the feature among those that predict the groups of samples"

    depends_on_k = True
    fits_each_together = True
    parameter_rules: ClassVar = {
        "cardinality": whole() | one_of(None, hint="None takes n_features_to_select."),
        "ridge": positive(zero=True),
    }

    n_clusters: int = 5
    n_neighbors: int = 5
    cardinality: int | None = None
    ridge: float = 1e-3
    bandwidth: float | None = None
    random_state: Seed = None

    def score_features(self, table: MemoryTable) -> FloatArray:
        ((_, scores),) = self._scores_of([self], table)
        return scores

    def fit_each(self, X: Any, counts: Sequence[int]) -> list[Self]:
        """Copies, fitted for these numbers of features by one walk along the lasso paths."""
        unfitted = clone(self).set_params(n_features_to_select=max(counts))
        with unfitted._fitting():
            table = read_table(unfitted, named_table(X))
            twins = [copy.copy(unfitted).set_params(n_features_to_select=k) for k in counts]
            for twin, count in zip(twins, counts, strict=True):
                twin.n_features_to_select_ = count_features(count, table.n_features)
            for twin, scores in self._scores_of(twins, table):
                twin._store_ranking(scores, table)
        return twins

    def _scores_of(
        self, selectors: Sequence[Self], table: MemoryTable
    ) -> Iterator[tuple[Self, FloatArray]]:
        """The scores of selectors that differ in the number of features; sets what they learned."""
        values = table.in_double()
        cardinalities = [selector._count_nonzeros(table) for selector in selectors]
        n_vectors = cap_clusters(self.n_clusters, table.n_samples, spare=1)
        n_rows = min(values.shape[1], (n_vectors + 1) * max(cardinalities))
        refuse_past_memory("MCFS", "rows of X'X", 8.0 * n_rows * values.shape[1])
        rng = self.random_generator()
        Y, _, converged = embed(self.join_neighbours(values, rng), n_vectors, rng)
        self.warn_of_eigenvectors(converged)
        results = solve_mcfs(values, Y, cardinalities, float(self.ridge))
        for selector, result, cardinality in zip(selectors, results, cardinalities, strict=True):
            if result.n_short:
                warn_caller(
                    f"{result.n_short} of {len(result.coef)} regressions ended before they had "
                    f"{cardinality} non-zero coefficients: the columns of X are dependent beyond "
                    "that. Lower cardinality or raise ridge.",
                    DataWarning,
                )
            selector.coef_ = table.to_all_columns(result.coef)
            selector.embedding_ = Y
            selector.n_iter_ = result.n_knots
            selector.converged_ = converged
            yield selector, table.to_all_columns(result.scores)

    def _count_nonzeros(self, table: MemoryTable) -> int:
        """The cardinality meant, and no more than the columns that vary."""
        wanted = self.cardinality or self.n_features_to_select_
        rule = whole(at_most=table.n_features, hint="X has no more columns.")
        check_value("cardinality", wanted, rule)
        return min(int(wanted), len(table.usable))
