"""The solvers of SPCAFS: row-sparse PCA under an l2,p penalty.

    minimise  f(W) = -Tr(W'SW) + gamma * sum_i (|w_i|^2 + eps)^(p/2)   over W'W = I      (23)

Algorithm 1 of the paper alternates the weights of a quadratic majorant of the penalty (26) with the
m leading eigenvectors of S - gamma diag(g) (27); f never rises (Theorem 2).

* `RowPenalty` is the penalty. Rows may be pooled into groups and have costs of their own.
* `solve_dense` is Algorithm 1 as printed: S in memory, one dense eigenproblem a step. It is the
  reference against which the other one is tested.
* `solve_block` walks the same path with products S V only. Each eigenproblem is solved just well
  enough, from the last solution. Two things make it fast: weights further ahead are taken where
  they lower f (`Proposals`), and rows that vanish are left out of the work until, at the end, one
  product with all rows shows whether any of them would leave zero (`_rows_that_stay`,
  `_check_optimality`).
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh

from keepers._blas_threads import one_blas_thread_for
from keepers._protocols import BoolArray, FloatArray, IndexArray, SymmetricOperator
from keepers.linalg.ordering import tilt_ties
from keepers.linalg.subspace import (
    Subspace,
    leading_subspace,
    orthonormal_subspace,
    row_norms,
    squared_row_norms,
)

# A group whose squared norm has sunk to this multiple of eps is inactive. The optimality condition
# for p = 1, a share r < 1 of the force that would keep it active, puts the norm at
# sqrt(eps) r / sqrt(1 - r^2): this is r = 0.89.
INACTIVE = 4.0
# The first steps decide which minimum is reached: they are plain, and their eigenproblems accurate.
# Of 3,000 small tables 7 ended worse than Algorithm 1 with 5 such steps, 2 with 8.
EARLY_STEPS = 8
# Residual, relative to |S w_j|, at which an early eigenproblem is left for the next weights; later
# ones are left at ten times this. With 3e-2 in all steps 9 of 2,000 small tables ended in other
# minima; with 1e-3 fits take a fifth longer.
INNER_TOL = 3e-3
# How far beyond the image a proposal may go, in log(|w_i|^2). Of 2,000 small tables 5 ended worse
# than Algorithm 1 with 1, 2 with 2.
LONGEST_STEP = 2.0
# Rows stay in the work that a step makes no shorter than this: at 0.9, f of SRBCT, m = 3, is 1e-6
# higher; at 0.5, LEUML at 0.03 lambda_1 takes half as long again.
SHRINKING = 0.8
# Rows stay that have, together, this share of all effects. Without this rule f of sparse topics at
# 0.3 lambda_1 was 4 % higher; with 0.95 planted 300 x 200,000 ends in another minimum; with 0.98
# planted 300 x 50,000 at lambda_1 takes a third longer.
STRONG = 0.97
# A step that lowers f by less, relatively, is a slow one. Below p = 1 longer ones follow: at 1e-5
# SRBCT, m = 3, p = 0.5, ended 2e-5 higher.
SLOW = 1e-4
# Where f fell by less than SLOW in this many steps together, and the Ritz values are nearly equal,
# the run stops on a plateau. Pure noise, 300 x 50,000, was still falling after 1,000 steps; with
# 16, f is 1e-5 higher.
PLATEAU_STEPS = 18
# Steps in a row that must gain nothing below p = 1; meanwhile a step becomes 64 times as long. (For
# p = 1 two are enough.) With 2, SRBCT, m = 10, p = 0.5, ended 4e-3 higher.
CALM_STEPS = 6


@dataclass(frozen=True)
class RowPenalty:
    """gamma * sum_G c_G (|W_G|^2 + eps)^(p/2), seen through the squared row norms of W.

    |W_G|^2 is the sum of |w_i|^2 over the rows i of a group G, and c_G >= 0 its cost; with groups
    of one row and costs of 1 this is Eq. (23). The function u -> u^(p/2) is concave, so its tangent
    at the present |W_G|^2 + eps lies above it (the paper's Lemma 1, which asks nothing else of u):
    the majorant gives each row of G the weight gamma c_G (p/2) (|W_G|^2 + eps)^((p-2)/2), and
    Theorem 2 holds as before. Theorem 1 (at least m active rows) is about W'W = I alone.
    """

    gamma: float
    p: float
    eps: float
    costs: FloatArray | float = 1.0
    """c_G of every group, finite and >= 0, or one for all."""
    groups: IndexArray | None = None
    """The group of every row, counted from 0; None: every row is its own group."""

    def pool(self, squared_norms: FloatArray) -> FloatArray:
        """|W_G|^2 of every group."""
        if self.groups is None:
            return squared_norms
        return np.asarray(np.bincount(self.groups, squared_norms), dtype=np.float64)

    def to_rows(self, values: Any) -> Any:
        """A value of every group -> a value of every row."""
        return values if self.groups is None else values[self.groups]

    def value(self, squared_norms: FloatArray) -> float:
        """The penalty itself, the second term of Eq. (23)."""
        terms = self.costs * (self.pool(squared_norms) + self.eps) ** (self.p / 2)
        return self.gamma * float(np.sum(terms))

    def weights(self, squared_norms: FloatArray) -> FloatArray:
        """Gamma g_i of every row, with g_i = c_G (p/2) (|W_G|^2 + eps)^((p-2)/2), Eq. (26)."""
        return self.weights_at(np.log(self.pool(squared_norms) + self.eps))

    def weights_at(self, log_norms: FloatArray) -> FloatArray:
        """The same, from log(|W_G|^2 + eps) of every group."""
        by_group = self.gamma * self.p / 2 * self.costs * np.exp((self.p / 2 - 1.0) * log_norms)
        return np.asarray(self.to_rows(by_group))

    def inactive(self, squared_norms: FloatArray) -> BoolArray:
        """Rows the penalty has sent to zero: the norm of their group is of the smoothing's size.

        Rows that cost nothing are always active, however small.
        """
        small = self.pool(squared_norms) <= INACTIVE * self.eps
        return np.asarray(self.to_rows(small & (np.asarray(self.costs) > 0.0)))

    def norms_near_zero(self, squared_pulls: FloatArray) -> FloatArray:
        """The norms that the smoothing leaves to inactive rows, given |F_i / gamma|^2, F = S W.

        An inactive row solves F_i = gamma g_i w_i with its own weight g_i, Eq. (26): the multiplier
        of W'W = I is nothing beside that weight. With u = |W_G| / sqrt(eps) of its group this says
        ``u = r (1 + u^2)^(1 - p/2)``, ``r = 2 eps^((1 - p)/2) |F_G| / (gamma c_G p)``; for p = 1,
        ``u = r / sqrt(1 - r^2)``. It rises with |F_G| / c_G, and for p = 1 the group becomes active
        at r = 1. u is at most 2, where rows begin to count as active.
        """
        pulls = np.sqrt(self.pool(squared_pulls))
        with np.errstate(divide="ignore", invalid="ignore"):  # rows that cost nothing are active
            share = pulls / (self._pull_at_one * np.asarray(self.costs))
            if self.p == 1.0:
                share = np.minimum(share, np.sqrt(INACTIVE / (1.0 + INACTIVE)))
                size = share / np.sqrt(1.0 - share**2)
            else:
                size = np.zeros_like(share)
                for _ in range(60):  # r is of the size eps^((1 - p)/2), so few are needed
                    size = share * (1.0 + size**2) ** (1.0 - self.p / 2)
                    size = np.minimum(size, np.sqrt(INACTIVE))
            norms = np.sqrt(self.eps) * size
            if self.groups is None:
                return np.asarray(norms)
            per_pull = np.where(pulls > 0.0, norms / pulls, 0.0)
        return np.asarray(per_pull[self.groups] * np.sqrt(squared_pulls))

    @property
    def _pull_at_one(self) -> float:
        """|F_G / gamma| at which r = 1 for a group of cost 1."""
        return self.p / 2.0 * self.eps ** ((self.p - 1.0) / 2)

    def pulled_out(self, images: FloatArray) -> BoolArray:
        """Rows at zero that would leave it, given F = S W: `norms_near_zero` has no solution.

        With u = |W_G| / sqrt(eps) it asks for ``r = u / (1 + u^2)^(1 - p/2)``, which is at most
        what it is at ``u^2 = 1 / (1 - p)``, and 1 for p = 1: there, a row leaves zero if and only
        if 2 |F_G| > gamma c_G.
        """
        largest = 1.0
        if self.p < 1.0:
            largest = (1.0 - self.p) ** -0.5 * (1.0 + 1.0 / (1.0 - self.p)) ** (self.p / 2 - 1.0)
        pulls = np.sqrt(self.pool(squared_row_norms(images / self.gamma)))
        return np.asarray(self.to_rows(pulls > largest * self._pull_at_one * self.costs))

    def first_effects(
        self, squared_norms: FloatArray, images: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """How a plain step from W changes every row, and what the row adds to the others.

        With F = S W and the weights D, row i becomes about ``F_i / D_i``: |F_i| / (D_i |w_i|) times
        as long as it was (for p = 1 that is 2 |F_i| / gamma c_i, however long it was). To the
        eigenproblem of the others it adds ``S_i' S_i / D_i``, which on W is |F_i|^2 / D_i. (The
        Ritz value beside D_i is left out: it is small where rows vanish.)
        """
        pulls = self.to_rows(self.pool(squared_row_norms(images)))
        norms = np.sqrt(self.to_rows(self.pool(squared_norms)) + self.eps)
        weights = self.weights(squared_norms)
        free = weights <= 0.0
        weights = np.where(free, 1.0, weights)
        rates = np.where(free, np.inf, np.sqrt(pulls) / (weights * norms))
        return rates, np.where(free, 0.0, pulls / weights)

    def whole_groups(self, rows: BoolArray) -> BoolArray:
        """These rows and those that must stay with them: their groups' and rows without cost."""
        by_group = rows if self.groups is None else np.bincount(self.groups, rows) > 0
        return np.asarray(self.to_rows(by_group | (np.asarray(self.costs) == 0.0)))

    def restrict(self, rows: IndexArray) -> "RowPenalty":
        """The penalty on some of the rows, which are those of whole groups."""
        kept, groups = rows, None
        if self.groups is not None:
            kept, groups = np.unique(self.groups[rows], return_inverse=True)
        costs = self.costs[kept] if isinstance(self.costs, np.ndarray) else self.costs
        return replace(self, costs=costs, groups=groups)


CONVERGED, PLATEAU, MAX_ITER = "converged", "plateau", "max_iter"


@dataclass(frozen=True)
class SolverProgress:
    """What a callback receives after each step."""

    n_iter: int
    objective: float
    n_active: int
    """Rows of W that the penalty has not sent to zero."""
    n_rows: int
    """Rows in the work; fewer than the number of features once rows were left out."""


Callback = Callable[[SolverProgress], object]


@dataclass(frozen=True)
class SPCAFSResult:
    """Where the iteration ended."""

    W: FloatArray
    images: FloatArray
    """S W."""
    row_norms: FloatArray
    """Of W; those of inactive rows as the smoothing leaves them in the limit, in closed form."""
    active: BoolArray
    """Rows of W that the penalty has not sent to zero, up to the smoothing."""
    objective: FloatArray
    """f after every step, the first being PCA."""
    n_iter: int
    stop: str
    """Why it ended: "converged", "plateau" or "max_iter"."""
    n_products: int

    @property
    def converged(self) -> bool:
        """Whether f stopped falling."""
        return self.stop == CONVERGED

    @property
    def n_active(self) -> int:
        """How many rows are active."""
        return int(np.count_nonzero(self.active))


def _result(
    W: FloatArray,
    images: FloatArray,
    penalty: RowPenalty,
    history: list[float],
    n_iter: int,
    stop: str,
    n_products: int,
) -> SPCAFSResult:
    """The result at W, whose images are S W.

    What the iteration left in inactive rows depends on when it stopped and, divided by weights of
    1 / sqrt(eps), on rounding; how near each is to becoming active does not.
    """
    squared_norms = squared_row_norms(W)
    inactive = penalty.inactive(squared_norms)
    near_zero = penalty.norms_near_zero(squared_row_norms(images / penalty.gamma))
    norms = np.where(inactive, near_zero, np.sqrt(squared_norms))
    return SPCAFSResult(W, images, norms, ~inactive, np.array(history), n_iter, stop, n_products)


def _gains_less(before: float, after: float, trace: float, share: float) -> bool:
    """Whether f fell by less than a share of it (or of the variance, where f is near zero)."""
    return before - after <= share * max(abs(after), trace / 100)


def _without_ties(weights: FloatArray) -> FloatArray:
    """The weights that follow PCA, tilted: among equal columns rounding must not choose."""
    return tilt_ties(weights, weights)


def solve_dense(
    operator: SymmetricOperator,
    start: Subspace,
    penalty: RowPenalty,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
) -> SPCAFSResult:
    """Algorithm 1 as printed; ``start`` is the PCA solution (G = I).

    Its eigenproblems are exact up to rounding of the size of the largest weight; a step that raises
    f does so by that rounding, is not taken, and is the end.
    """
    S = operator.dense()
    size, width = start.vectors.shape
    W, n_iter, converged = start.vectors, 1, False
    history = [penalty.value(start.squared_row_norms) - start.trace]
    while True:
        if callback is not None:
            n_active = int(np.count_nonzero(~penalty.inactive(squared_row_norms(W))))
            callback(SolverProgress(n_iter, history[-1], n_active, size))
        if n_iter >= max_iter or converged:
            break
        weights = penalty.weights(squared_row_norms(W))  # Eq. (26)
        if n_iter == 1:
            weights = _without_ties(weights)
        shifted = S.copy()
        shifted[np.diag_indices(size)] -= weights
        _, vectors = eigh(shifted, subset_by_index=[size - width, size - 1])  # Eq. (27)
        n_iter += 1
        trace = float(np.vdot(vectors, S @ vectors))
        objective = penalty.value(squared_row_norms(vectors)) - trace  # Eq. (23)
        converged = objective > history[-1] or _gains_less(history[-1], objective, trace, tol)
        if objective <= history[-1]:
            W = vectors[:, ::-1]
            history.append(objective)
    stop = CONVERGED if converged else MAX_ITER
    return _result(W, S @ W, penalty, history, n_iter, stop, n_products=0)


def dense_is_cheaper(n_samples: int, n_features: int, width: int) -> bool:
    """Whether a step of `solve_dense` costs less than one of `solve_block`.

    Multiply-adds, weighted by how well they run: a dense eigenproblem spends 4/3 d^3 of them in
    memory-bound reductions (weight 4); a block step makes one product, seventeen thin products of
    d m^2, three small eigenproblems of size up to 2m, and about half a millisecond of calls.
    """
    dense = 5.0 * n_features**3
    product = n_features * width * min(2 * n_samples, n_features)
    block = product + 17.0 * n_features * width**2 + 100.0 * (2 * width) ** 3 + 1e7
    return 2 * width >= n_features or dense <= block


# Fewer steps: Anderson extrapolation of the weights


class Proposals:
    """Weights further ahead than those of the last solution.

    The weights depend on u = log(|W_G|^2 + eps) alone. A step of Algorithm 1 maps a *point* u to
    its *image*, and the next step begins at the image; here it begins further ahead. Nothing
    guarantees that this lowers f: `_step` compares, and calls `refuse` if it does not.
    """

    def __init__(self, *, relaxed: bool = True) -> None:
        # Made twice as long, steps of a path drive equal columns apart.
        self._relaxed = relaxed
        # Three differences; six or ten saved no steps.
        self._pairs: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=4)
        self._stride = 1.0

    def propose(
        self, point: FloatArray, image: FloatArray, part: "_Part", *, slow: bool
    ) -> FloatArray | None:
        """The next point, or None for the image; ``slow``: the last step gained next to nothing.

        Below p = 1, where there are many more minima, steps stay plain unless they are slow: a row
        then takes long to leave and nothing else moves, so each step is twice as long as the one
        before. (Without this SRBCT, m = 10, p = 0.5, ended 4e-3 above where it ends now.)
        """
        penalty = part.penalty
        if penalty.p < 1.0:
            self._stride = 2.0 * self._stride if slow else 1.0
            if not slow:
                return None
            step = self._stride * (image - point)
        else:
            self._pairs.append((point, image))
            importance = penalty.costs * np.exp(image / 2)
            step = extrapolate(list(self._pairs), importance, relaxed=self._relaxed) - image
        proposal = image + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        # The squared norm of a row is at most 1, that of a group at most the number of columns.
        largest = 1 if penalty.groups is None else part.space.vectors.shape[1]
        return np.clip(proposal, np.log(penalty.eps), np.log(largest))

    def refuse(self) -> None:
        """The last proposal would have raised f."""
        self.forget()
        self._stride /= 4.0

    def forget(self) -> None:
        """Drop the points so far: other rows are in the work."""
        self._pairs.clear()


def extrapolate(
    pairs: list[tuple[FloatArray, FloatArray]], importance: FloatArray, *, relaxed: bool = True
) -> FloatArray:
    """Anderson extrapolation of a fixed-point iteration u -> G(u), over-relaxed by default.

    Over the affine hull of the pairs (u, G(u)): the place where the gap G(u) - u is shortest, in a
    weighted norm and by a linear model. From there the step is made twice as long, which took AR at
    gamma = 0.03 lambda_1 from 135 steps to 106, and pure noise from 74 to 64.
    """
    points, images = np.array(pairs).swapaxes(0, 1)
    point, image = points[-1], images[-1]
    gaps = (images - points) * np.sqrt(importance)
    changes = np.diff(gaps, axis=0)
    normal = changes @ changes.T
    normal[np.diag_indices_from(normal)] += 1e-10 * np.trace(normal)
    if normal.any():
        mixing = np.linalg.solve(normal, changes @ gaps[-1])
        point = point - mixing @ np.diff(points, axis=0)
        image = image - mixing @ np.diff(images, axis=0)
    return np.asarray(image + (image - point) if relaxed else image)


# Fewer rows: which of them can be left out


@dataclass(frozen=True)
class _Part:
    """The rows in the work: S, the penalty and W on them, and what the others add to f."""

    operator: SymmetricOperator
    penalty: RowPenalty
    space: Subspace
    rows: IndexArray | None = None
    """Places among all rows; None: these are all."""
    outside: float = 0.0

    @property
    def objective(self) -> float:
        """f, the rows that were left out being zero."""
        return self.penalty.value(self.space.squared_row_norms) + self.outside - self.space.trace

    def restrict(self, kept: IndexArray, vectors: FloatArray) -> "_Part":
        """Some of the rows, with these vectors made orthonormal."""
        operator, penalty = self.operator.restrict(kept), self.penalty.restrict(kept)
        space = orthonormal_subspace(operator, vectors[kept])
        everywhere = self.penalty.value(np.zeros(len(vectors)))
        at_zero = everywhere - penalty.value(np.zeros(len(kept)))
        rows = kept if self.rows is None else self.rows[kept]
        return _Part(operator, penalty, space, rows, self.outside + at_zero)


def _rows_that_stay(part: _Part) -> BoolArray:
    """Rows to keep in the work: those that grow or shrink by little, and those that others need."""
    space, penalty = part.space, part.penalty
    rates, effects = penalty.first_effects(space.squared_row_norms, space.images)
    order = np.argsort(-effects)
    n_strong = int(np.searchsorted(np.cumsum(effects[order]), STRONG * effects.sum())) + 1
    stay = rates > SHRINKING
    stay[order[: max(n_strong, _fewest_rows(part))]] = True
    return penalty.whole_groups(stay)


def _fewest_rows(part: _Part) -> int:
    """With fewer rows a step takes no less time."""
    return 100 + 4 * part.space.vectors.shape[1]


@dataclass
class _Run:
    """Where a run of `solve_block` is."""

    part: _Part
    history: list[float]
    proposals: Proposals
    n_products: int
    n_iter: int = 1
    n_calm: int = 0
    """Steps in a row that gained less than tol."""
    proposal: FloatArray | None = None
    may_leave: bool = True
    """Whether rows may be left out: not once some of them had to come back."""

    def move_to(self, part: _Part) -> None:
        """Continue on other rows."""
        self.part, self.n_calm, self.proposal = part, 0, None
        self.proposals.forget()

    def gained_less(self, share: float, n_steps: int = 1) -> bool:
        """Whether the last steps lowered f by less than a share of it."""
        if len(self.history) <= n_steps:
            return False
        before, after = self.history[-n_steps - 1], self.history[-1]
        return _gains_less(before, after, self.part.space.trace, share)

    @property
    def on_plateau(self) -> bool:
        """Whether f falls slowly because the components can be turned at next to no price.

        Where the leading eigenvalues are nearly equal, as in a table without structure, there is no
        end to be waited for: many blocks are as good as each other.
        """
        values = self.part.space.values
        nearly_equal = len(values) > 1 and bool(values[-1] >= 0.9 * values[0] > 0.0)
        return nearly_equal and self.gained_less(SLOW, PLATEAU_STEPS)


def _leave_out_rows(run: _Run) -> None:
    """Set rows to zero and leave them out, if they are worth a copy of S, and f does not rise.

    The smoothing holds inactive rows a little off zero: f may rise by what that is worth.
    """
    part, before = run.part, run.history[-1]
    size = len(part.space.vectors)
    if not run.may_leave or size < 2 * _fewest_rows(part):
        return
    kept = np.flatnonzero(_rows_that_stay(part))
    if len(kept) > 0.8 * size:
        return
    smaller = part.restrict(kept, part.space.vectors)
    run.n_products += 1
    if run.n_iter == 1:  # the first step is made with the weights of PCA
        run.move_to(smaller)
        if part.penalty.groups is None:
            run.proposal = np.log(part.space.squared_row_norms[kept] + part.penalty.eps)
        return
    rise = smaller.objective - before
    if rise <= smaller.outside - part.outside:
        run.history[-1] = min(before, smaller.objective)
        run.move_to(replace(smaller, outside=smaller.outside - max(rise, 0.0)))


def _restore_rows(run: _Run, whole: _Part) -> None:
    """Take all rows into the work again; those that were left out are zero."""
    vectors = np.zeros((whole.operator.size, run.part.space.vectors.shape[1]), order="F")
    vectors[run.part.rows] = run.part.space.vectors
    images = whole.operator.matmat(vectors)
    run.n_products += 1
    run.move_to(replace(whole, space=Subspace(vectors, images, run.part.space.values)))


def _check_optimality(run: _Run, whole: _Part) -> bool:
    """Whether no row that was left out would leave zero; those that would are taken in."""
    kept = run.part.rows
    _restore_rows(run, whole)
    space, penalty = run.part.space, whole.penalty
    pulled = penalty.pulled_out(space.images)
    pulled[kept] = False
    if not pulled.any():
        return True
    run.may_leave = False
    # A thousandth of a typical active row, in the direction of the pull.
    norms = row_norms(space.vectors)
    size = 1e-3 * float(np.median(norms[~penalty.inactive(norms**2)]))
    vectors = space.vectors.copy()
    images = space.images[pulled]
    vectors[pulled] = images * (size / row_norms(images))[:, np.newaxis]
    wanted = pulled
    wanted[kept] = True
    larger = run.part.restrict(np.flatnonzero(penalty.whole_groups(wanted)), vectors)
    run.n_products += 1
    if larger.objective <= run.history[-1]:
        run.history[-1] = larger.objective
        run.move_to(larger)
    return False


def _let_rows_off_zero(run: _Run) -> None:
    """Give rows that were left out the size that the smoothing has for them, in closed form."""
    space, penalty = run.part.space, run.part.penalty
    at_zero = ~space.vectors.any(axis=1)
    if not at_zero.any():
        return
    images = space.images[at_zero]
    squares = squared_row_norms(space.images / penalty.gamma)
    sizes = penalty.norms_near_zero(squares)[at_zero]
    vectors = space.vectors.copy("F")
    lengths = np.maximum(row_norms(images), np.finfo(float).tiny)
    vectors[at_zero] = images * (sizes / lengths)[:, np.newaxis]
    # S W as it was: what these rows add to it is of the size of the smoothing.
    gained = 2.0 * float(np.vdot(vectors[at_zero], images))
    after = penalty.value(squared_row_norms(vectors)) - space.trace - gained
    run.history = [max(f, after) for f in run.history[:-1]] + [after]
    run.part = replace(run.part, space=replace(space, vectors=vectors))


def _step(run: _Run, tol: float, *, early: bool) -> None:
    """New weights, then the leading subspace; a proposal that raises f is undone."""
    part, penalty, point = run.part, run.part.penalty, run.proposal
    if point is None:
        point = np.log(penalty.pool(part.space.squared_row_norms) + penalty.eps)
    weights = penalty.weights_at(point)  # Eq. (26)
    if early and run.n_iter == 1:
        weights = _without_ties(weights)
    inner_tol = INNER_TOL if early else 10.0 * INNER_TOL
    space = leading_subspace(part.operator, weights, part.space, tol=inner_tol)  # Eq. (27)
    run.n_iter += 1
    run.n_products += space.n_products
    moved = replace(part, space=space)
    proposed, run.proposal = run.proposal is not None, None
    if moved.objective > run.history[-1]:  # Eq. (23)
        if not proposed:  # by rounding: it is the end
            run.n_calm = CALM_STEPS
        elif not early:
            run.proposals.refuse()
        return
    run.part = moved
    run.history.append(moved.objective)
    run.n_calm = run.n_calm + 1 if run.gained_less(tol) else 0
    if not early:
        image = np.log(penalty.pool(space.squared_row_norms) + penalty.eps)
        run.proposal = run.proposals.propose(point, image, moved, slow=run.gained_less(SLOW))


def solve_block(
    operator: SymmetricOperator,
    start: Subspace,
    penalty: RowPenalty,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
    warm: bool = False,
) -> SPCAFSResult:
    """Algorithm 1 from block products.

    ``start`` is the PCA solution or, ``warm``, one for nearly the same penalty: there is then no
    choice between minima, and no step needs to be plain.
    """
    whole = _Part(operator, penalty, start)
    run = _Run(whole, [whole.objective], Proposals(relaxed=not warm), start.n_products)
    enough = 2 if penalty.p == 1.0 else CALM_STEPS
    done = False
    _report(run, callback)
    while run.n_iter < max_iter and not done and not run.on_plateau:
        _leave_out_rows(run)
        size, width = run.part.space.vectors.shape
        with one_blas_thread_for(2.0 * width * float(size) ** 2):  # products become small
            _step(run, tol, early=run.n_iter < EARLY_STEPS and not warm)
        _report(run, callback)
        if run.n_calm >= enough:
            done = run.part.rows is None or _check_optimality(run, whole)
    stop = CONVERGED if done else PLATEAU if run.on_plateau else MAX_ITER
    if run.part.rows is not None:
        _restore_rows(run, whole)
    if done:
        _let_rows_off_zero(run)
    space = run.part.space
    return _result(
        space.vectors, space.images, penalty, run.history, run.n_iter, stop, run.n_products
    )


def _report(run: _Run, callback: Callback | None) -> None:
    if callback is not None:
        squared_norms = run.part.space.squared_row_norms
        n_active = int(np.count_nonzero(~run.part.penalty.inactive(squared_norms)))
        callback(SolverProgress(run.n_iter, run.history[-1], n_active, len(squared_norms)))
