"""FSPCA: the k features on which m components hold the most variance.

    maximise  Tr(W'SW)   over W'W = I with m columns and at most k non-zero rows

The rows decide: on a set I the best W holds F(I), the sum of the m largest eigenvalues of S_II, so
that I is all there is to find (Tian, Nie, Wang and Li, NeurIPS 2020). NP-hard already for m = 1.

* GO: the k largest of sum_i lambda_i v_ji^2, from the m leading eigenpairs of S. Exact if the rank
  of S is at most m, where it is the variance of every feature.
* IPU: for a set I, p_j = sum_a (S_{j,I} u_a)^2 / theta_a, and the k largest p_j next. F never falls
  (`keepers.solvers.set_changes`).
* Several starts, swaps (`keepers.solvers.set_search`), and the best of all.

The search runs in S on some candidates, which is in memory. Each time it has ended, one product
with all of S shows which other features would come in; they become candidates, and it continues.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray, SymmetricOperator
from keepers.linalg.ordering import best_first, first_largest
from keepers.linalg.scatter import DenseScatter
from keepers.linalg.subspace import Subspace, orthonormal_subspace
from keepers.solvers.penalty import RowPenalty
from keepers.solvers.set_changes import (
    HeldSet,
    gains_of_adding,
    hold,
    losses_of_removing,
    projections,
)
from keepers.solvers.set_limit import SetLimit
from keepers.solvers.set_search import GAIN, Found, SetSearch, project
from keepers.solvers.spcafs import solve_block

# Candidates: at least so many, or so many for every feature kept, but no more than these.
FEWEST_CANDIDATES, CANDIDATES_EACH, MOST_CANDIDATES = 1000, 4, 4000
# Visits to the features that are no candidates, at most.
MOST_VISITS = 4
# S has rank m if no more than this share of its trace is left beside m eigenvalues.
RANK_TOL = 1e-10
# Starts from SPCAFS: its gamma as a share of the largest eigenvalue, and when it may stop. Only its
# ranking is used, and only where its products are cheap.
SPCAFS_SHARES = (0.1, 0.03, 0.01)
SPCAFS_STEPS, SPCAFS_TOL, SPCAFS_ROWS = 40, 1e-4, 1500
# Features that are kept, at most, for a greedy start and for one that drops features.
MOST_GROWN, MOST_SHRUNK = 500, 250
# Ends of different starts from which swaps are tried: of small problems many, else the best.
POLISHED, POLISHED_SMALL, SMALL = 1, 8, 4000
MAX_ITER = 100


@dataclass(frozen=True)
class RowSparseResult:
    """The best set that was found."""

    features: IndexArray
    """In order."""
    variance: float
    """F: the sum of ``values``."""
    values: FloatArray
    """The leading eigenvalues of S on the set, at most m, largest first."""
    vectors: FloatArray
    """Their eigenvectors, a row for every feature of the set."""
    projections: FloatArray
    """p of every feature of S: what the components hold of it."""
    history: FloatArray
    """F of every set on the way from the start that won; it never falls."""
    n_iter: int
    """Steps, the last of which changes nothing, and swaps on that way."""
    n_products: int
    """Products with all of S."""
    start: str
    """The start that won."""


def rank_one_by_one(pca: Subspace) -> FloatArray:
    """GO's score of every feature: sum_i lambda_i v_ji^2 over the leading eigenpairs of S."""
    return np.asarray(pca.vectors**2 @ np.maximum(pca.values, 0.0))


def improve_by_projection(
    operator: SymmetricOperator,
    features: IndexArray,
    n_components: int,
    *,
    limit: SetLimit | None = None,
    candidates: IndexArray | None = None,
    max_iter: int = MAX_ITER,
    start: str = "given",
) -> RowSparseResult:
    """IPU from a set of features; F never falls.

    A step needs S on the set and one product with S. With ``candidates``, S is held on them (and
    on the set), where steps cost next to nothing, and one product at the end shows whether other
    features come in. ``limit``: which sets are allowed; any of that size, if it is None.
    """
    features = np.sort(np.asarray(features, dtype=np.intp))
    limit = SetLimit.of_count(operator.size, len(features)) if limit is None else limit
    if candidates is None or isinstance(operator, DenseScatter):
        held = hold(operator, features, n_components)
        found, images = project(operator, held, limit, max_iter)
        return _freeze(found, images, start, n_products=len(found.history))  # one for every set
    search = _GrowingSearch(operator, n_components, limit, max_iter, swaps=False)
    pool = limit.must.copy()
    pool[candidates] = pool[features] = True
    search.take_in(np.flatnonzero(_whole_units(pool, limit)))
    return search.finish(search.project(features), start)


def solve_row_sparse(
    operator: SymmetricOperator,
    pca: Subspace,
    limit: SetLimit,
    *,
    max_iter: int = MAX_ITER,
    most_candidates: int = MOST_CANDIDATES,
) -> RowSparseResult:
    """The best set from several starts.

    ``pca``: the m leading eigenpairs of S. ``most_candidates``: how many rows of S may be held as a
    matrix.
    """
    width = len(pca.values)
    variances = operator.diagonal()
    scores = rank_one_by_one(pca)
    trace = float(np.sum(variances))
    has_low_rank = trace - float(np.sum(pca.values)) <= RANK_TOL * trace
    simple = {"go": limit.choose(scores), "variance": limit.choose(variances)}
    if has_low_rank and limit.is_count:
        simple = {"go": simple["variance"]}
    size = max(len(features) for features in simple.values())
    wanted = int(np.clip(CANDIDATES_EACH * size, FEWEST_CANDIDATES, most_candidates))
    if size > wanted // 2 and operator.size > wanted:
        return _best_projection(operator, width, limit, simple, max_iter, pca.n_products)
    search = _GrowingSearch(operator, width, limit, max_iter, swaps=not has_low_rank)
    search.n_products = pca.n_products
    search.take_in(_candidates(scores, variances, limit, list(simple.values()), wanted))
    if has_low_rank and limit.is_count:
        return search.finish(search.project(simple["go"]), "go")
    ends = {name: search.project(features) for name, features in simple.items()}
    for name, features in search.starts(pca):
        ends[name] = search.project(features)
    return search.finish(*search.polish(ends))


def _best_projection(
    operator: SymmetricOperator,
    width: int,
    limit: SetLimit,
    starts: dict[str, IndexArray],
    max_iter: int,
    n_products: int,
) -> RowSparseResult:
    """IPU with products of all of S, where too many features are kept to hold S on them."""
    results = []
    for name, features in starts.items():
        found = improve_by_projection(
            operator, features, width, limit=limit, max_iter=max_iter, start=name
        )
        n_products += found.n_products
        results.append(found)
    best = max(results, key=lambda found: found.variance)
    return replace(best, n_products=n_products)


def _candidates(
    scores: FloatArray,
    variances: FloatArray,
    limit: SetLimit,
    sets: list[IndexArray],
    wanted: int,
) -> IndexArray:
    """Rows to begin with: those of some sets, and the best by GO's score and by variance."""
    size = len(scores)
    if size <= wanted:
        return np.arange(size)
    chosen = limit.must.copy()
    for features in sets:
        chosen[features] = True
    by_score, by_variance = best_first(scores, variances), best_first(variances, scores)
    place = np.empty((2, size), dtype=np.intp)
    place[0, by_score] = place[1, by_variance] = np.arange(size)
    nearest = np.argsort(place.min(axis=0), kind="stable")
    left = max(0, wanted - int(chosen.sum()))
    chosen[nearest[~chosen[nearest]][:left]] = True
    return np.flatnonzero(_whole_units(chosen, limit))


def _whole_units(rows: BoolArray, limit: SetLimit) -> BoolArray:
    """These rows and the others of their units."""
    if limit.units is None:
        return rows
    return np.asarray((np.bincount(limit.units, rows) > 0)[limit.units])


class _GrowingSearch:
    """A search among candidates that become more."""

    def __init__(
        self,
        operator: SymmetricOperator,
        width: int,
        limit: SetLimit,
        max_iter: int,
        *,
        swaps: bool,
    ) -> None:
        self.operator = operator
        self.width = width
        self.limit = limit
        self.max_iter = max_iter
        self.swaps = swaps
        self.n_products = 0
        self.rows: IndexArray = np.empty(0, dtype=np.intp)
        self.inside: SetSearch

    def take_in(self, rows: IndexArray) -> None:
        """Hold S on these rows, which are those of whole units."""
        self.rows = rows
        everything = len(rows) == self.operator.size
        part = self.operator if everything else self.operator.restrict(rows)
        limit = self.limit if everything else self.limit.restrict(rows)
        self.inside = SetSearch(part.dense(), self.width, limit, self.max_iter)

    def _places(self, features: IndexArray) -> IndexArray:
        return np.searchsorted(self.rows, features)

    def project(self, features: IndexArray) -> Found:
        """IPU among the candidates; the result is in places among them."""
        return self.inside.project(self._places(features))

    def starts(self, pca: Subspace) -> Iterator[tuple[str, IndexArray]]:
        """Sets to start from, beside the simple ones; ``pca``: the leading eigenpairs of S."""
        inside = self.inside
        size = len(inside.limit.choose(inside.variances))
        if size <= MOST_GROWN:
            yield "greedy", self.rows[inside.grow()]
        if size <= MOST_SHRUNK and inside.limit.is_count and len(self.rows) > size:
            many = min(CANDIDATES_EACH * size, len(self.rows))
            larger = replace(inside.limit, capacity=float(many)).choose(inside.variances)
            yield "backward", self.rows[inside.shrink(larger)]
        if len(self.rows) <= SPCAFS_ROWS and len(self.rows) > self.width:
            begin = orthonormal_subspace(inside.operator, pca.vectors[self.rows])
            for share in SPCAFS_SHARES:
                norms = _spcafs_norms(inside.operator, begin, share * float(pca.values[0]))
                yield f"spcafs {share:g}", self.rows[inside.limit.choose(norms**2)]

    def polish(self, ends: dict[str, Found]) -> tuple[Found, str]:
        """The best end, after swaps; of equal ones that whose features vary most, then the first.

        Features without a part in the components hold nothing, whichever they are.
        """
        size = len(self.rows) * max(len(found.held.features) for found in ends.values())
        left = POLISHED_SMALL if size <= SMALL else POLISHED
        polished: dict[str, Found] = {}
        while ends and left:
            name = self._best_of(ends)
            found = ends[name]
            polished[name] = self.inside.swap(found)
            same = found.held.features
            ends = {
                other: end
                for other, end in ends.items()
                if not np.array_equal(end.held.features, same)
            }
            left -= 1
        best = self._best_of(polished)
        return polished[best], best

    def _best_of(self, ends: dict[str, Found]) -> str:
        """The name of the one that holds most."""
        most = max(found.variance for found in ends.values())
        near = [name for name, found in ends.items() if found.variance >= most * (1.0 - GAIN)]
        traces = [float(np.sum(self.inside.variances[ends[name].held.features])) for name in near]
        return near[first_largest(np.array(traces))]

    def finish(self, found: Found, start: str) -> RowSparseResult:
        """Look at all rows, continue with those that would come in, and freeze the result."""
        for visit in range(1, MOST_VISITS + 1):
            held = replace(found.held, features=self.rows[found.held.features])
            images = self._images(held)
            if len(self.rows) == self.operator.size or visit == MOST_VISITS:
                break
            newcomers = self._newcomers(held, images)
            if not newcomers.any():
                break
            newcomers[self.rows] = True
            self.take_in(np.flatnonzero(newcomers))
            again = self.project(held.features)
            again = self.inside.swap(again) if self.swaps else again
            improved = again.variance > found.variance * (1.0 + GAIN)
            history = found.history + again.history[1:]
            found = Found(again.held, history, found.n_steps + again.n_steps)
            if not improved:
                break
        return _freeze(replace(found, held=held), images, start, self.n_products)

    def _images(self, held: HeldSet) -> FloatArray:
        if len(self.rows) == self.operator.size:
            return np.asarray(self.inside.operator.matrix[:, held.features] @ held.vectors)
        self.n_products += 1
        block = np.zeros((self.operator.size, held.vectors.shape[1]), order="F")
        block[held.features] = held.vectors
        return self.operator.matmat(block)

    def _newcomers(self, held: HeldSet, images: FloatArray) -> BoolArray:
        """Rows that are no candidates, and that IPU or a swap would take in."""
        limit, variances = self.limit, self.operator.diagonal()
        outside = np.ones(self.operator.size, dtype=bool)
        outside[self.rows] = False
        p = projections(held, images)
        wanted = np.zeros(self.operator.size, dtype=bool)
        if np.sum(p[chosen := limit.choose(p)]) > held.variance * (1.0 + GAIN):
            wanted[chosen] = True
        if self.swaps:
            losses = losses_of_removing(held, variances[held.features])
            free = losses[~limit.must[held.features]]
            gains = gains_of_adding(held, images, variances)
            wanted |= gains > np.min(free, initial=np.inf)
            best = np.argsort(-np.where(outside & wanted, gains, -np.inf), kind="stable")
            wanted[best[FEWEST_CANDIDATES // 2 :]] = False
        return np.asarray(outside & _whole_units(outside & wanted, limit))


def _spcafs_norms(operator: SymmetricOperator, start: Subspace, gamma: float) -> FloatArray:
    """The scores of SPCAFS, as far as it gets in a few steps."""
    penalty = RowPenalty(gamma, 1.0, 1e-12)
    result = solve_block(operator, start, penalty, max_iter=SPCAFS_STEPS, tol=SPCAFS_TOL)
    return result.row_norms


def _freeze(found: Found, images: FloatArray, start: str, n_products: int) -> RowSparseResult:
    held = found.held
    return RowSparseResult(
        features=held.features,
        variance=held.variance,
        values=held.values,
        vectors=held.vectors,
        projections=projections(held, images),
        history=np.array(found.history),
        n_iter=found.n_steps,
        n_products=n_products,
        start=start,
    )
