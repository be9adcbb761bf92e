"""SPCAFS: row-sparse PCA under an l2,p penalty.

    minimise  f(W) = -Tr(W'SW) + gamma * sum_i (|w_i|^2 + eps)^(p/2)   over W'W = I      (23)

"Sparse PCA via l2,p-norm regularization for unsupervised feature selection" (Li, Nie, Bian and Li).
Algorithm 1 of the paper alternates the weights of a quadratic majorant of the penalty (26) with the
m leading eigenvectors of S - gamma diag(g) (27); f never rises (Theorem 2).

* `RowPenalty` is the penalty. Rows may have costs of their own: those always kept have none.
* `solve_dense` is Algorithm 1 as printed: S in memory, one dense eigenproblem a step. It is the
  reference against which the other one is tested.
* `solve_block` walks the same path with products S V only. Each eigenproblem is solved just well
  enough, from the last solution. Two things make it fast: weights further ahead are taken where
  they lower f (`Proposals`), and rows that vanish are left out of the work until, at the end, one
  product with all rows shows whether any of them would leave zero (`_rows_that_stay`,
  `_check_optimality`).
* `SPCAFS` is the selector.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh

from keepers._blas_threads import one_blas_thread_for
from keepers._protocols import BoolArray, FloatArray, IndexArray, SymmetricOperator
from keepers.exceptions import ConvergenceWarning, InactiveRowsWarning, warn_caller
from keepers.linalg.ordering import tilt_ties
from keepers.linalg.spectrum import (
    Subspace,
    fix_signs,
    is_flat,
    leading_spectrum,
    leading_subspace,
    nearly_equal,
    orthonormal_subspace,
    row_norms,
    squared_row_norms,
)
from keepers.methods.base import FitNotes, ScatterSelector
from keepers.methods.parameters import (
    COMPONENTS,
    FUNCTION,
    FeatureCount,
    Seed,
    check_component_count,
    control_of,
    expected_width,
    one_of,
    positive,
    refuse_past_memory,
    whole,
)
from keepers.methods.reading import FittedTable, scatter_of, warn_of_units

# A row whose squared norm has sunk to this multiple of eps is inactive. The optimality condition
# for p = 1, a share r < 1 of the force that would keep it active, puts the norm at
# sqrt(eps) r / sqrt(1 - r^2): this is r = 0.89.
INACTIVE = 4.0
# The first steps decide which minimum is reached: they are plain, and their eigenproblems accurate.
# With 5 such steps, 7 of 3,000 small tables ended worse than Algorithm 1; with 8, 2.
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
# A step that lowers f by a smaller share is a slow one. Below p = 1 longer ones follow: at 1e-5
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
    """gamma * sum_i c_i (|w_i|^2 + eps)^(p/2), seen through the squared row norms of W.

    c_i >= 0 is the cost of a row; with costs of 1 this is Eq. (23). The function u -> u^(p/2) is
    concave, so its tangent at the present |w_i|^2 + eps lies above it (the paper's Lemma 1): the
    majorant gives row i the weight gamma c_i (p/2) (|w_i|^2 + eps)^((p-2)/2), and Theorem 2 holds
    as before. Theorem 1 (at least m active rows) is about W'W = I alone.
    """

    gamma: float
    p: float
    eps: float
    costs: FloatArray | float = 1.0
    """c_i of every row, finite, or one for all; rows that cost nothing are always active."""

    @property
    def free(self) -> BoolArray:
        """Rows that cost nothing."""
        return np.asarray(self.costs) == 0.0

    def value(self, squared_norms: FloatArray) -> float:
        """The penalty itself, the second term of Eq. (23)."""
        return self.gamma * float(np.sum(self.costs * (squared_norms + self.eps) ** (self.p / 2)))

    def weights(self, squared_norms: FloatArray) -> FloatArray:
        """Gamma g_i of every row, with g_i = c_i (p/2) (|w_i|^2 + eps)^((p-2)/2), Eq. (26)."""
        return self.weights_at(np.log(squared_norms + self.eps))

    def weights_at(self, log_norms: FloatArray) -> FloatArray:
        """The same, from log(|w_i|^2 + eps)."""
        scale = self.gamma * self.p / 2 * self.costs
        return np.asarray(scale * np.exp((self.p / 2 - 1.0) * log_norms))

    def inactive(self, squared_norms: FloatArray) -> BoolArray:
        """Rows the penalty has sent to zero: their norm is of the smoothing's size."""
        return (squared_norms <= INACTIVE * self.eps) & ~self.free

    def norms_near_zero(self, squared_pulls: FloatArray) -> FloatArray:
        """The norms that the smoothing leaves to inactive rows, given |F_i / gamma|^2, F = S W.

        An inactive row solves F_i = gamma g_i w_i with its own weight g_i, Eq. (26): the multiplier
        of W'W = I is negligible against that weight. With u = |w_i| / sqrt(eps),
        ``u = r (1 + u^2)^(1 - p/2)``, ``r = 2 eps^((1 - p)/2) |F_i| / (gamma c_i p)``; for p = 1,
        ``u = r / sqrt(1 - r^2)``. It rises with |F_i| / c_i, and for p = 1 the row becomes active
        at r = 1. u is at most 2, where rows begin to count as active.
        """
        with np.errstate(divide="ignore", invalid="ignore"):  # rows that cost nothing are active
            share = np.sqrt(squared_pulls) / (self._pull_at_one * np.asarray(self.costs))
            if self.p == 1.0:
                share = np.minimum(share, np.sqrt(INACTIVE / (1.0 + INACTIVE)))
                size = share / np.sqrt(1.0 - share**2)
            else:
                size = np.zeros_like(share)
                for _ in range(60):  # r is of the size eps^((1 - p)/2): few steps suffice
                    size = share * (1.0 + size**2) ** (1.0 - self.p / 2)
                    size = np.minimum(size, np.sqrt(INACTIVE))
        return np.asarray(np.sqrt(self.eps) * size)

    @property
    def _pull_at_one(self) -> float:
        """|F_i / gamma| at which r = 1 for a row of cost 1."""
        return self.p / 2.0 * self.eps ** ((self.p - 1.0) / 2)

    def pulled_out(self, images: FloatArray) -> BoolArray:
        """Rows at zero that would leave it, given F = S W: `norms_near_zero` has no solution.

        With u = |w_i| / sqrt(eps) it needs ``r = u / (1 + u^2)^(1 - p/2)``, which is at most
        what it is at ``u^2 = 1 / (1 - p)``, and 1 for p = 1: there, a row leaves zero if and only
        if 2 |F_i| > gamma c_i.
        """
        largest = 1.0
        if self.p < 1.0:
            largest = (1.0 - self.p) ** -0.5 * (1.0 + 1.0 / (1.0 - self.p)) ** (self.p / 2 - 1.0)
        return row_norms(images / self.gamma) > largest * self._pull_at_one * self.costs

    def first_effects(
        self, squared_norms: FloatArray, images: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """How a plain step from W changes every row, and what the row adds to the others.

        With F = S W and the weights D, row i becomes about ``F_i / D_i``: |F_i| / (D_i |w_i|) times
        as long as it was (for p = 1 that is 2 |F_i| / gamma c_i, however long it was). To the
        eigenproblem of the others it adds ``S_i' S_i / D_i``, which on W is |F_i|^2 / D_i. (The
        Ritz value next to D_i is left out: it is small where rows vanish.)
        """
        pulls = squared_row_norms(images)
        weights = self.weights(squared_norms)
        weights = np.where(weights > 0.0, weights, np.inf)  # what costs nothing stays in any case
        return np.sqrt(pulls) / (weights * np.sqrt(squared_norms + self.eps)), pulls / weights

    def restrict(self, rows: IndexArray) -> "RowPenalty":
        """The penalty on some of the rows."""
        costs = self.costs[rows] if isinstance(self.costs, np.ndarray) else self.costs
        return replace(self, costs=costs)


CONVERGED, PLATEAU, MAX_ITER = "converged", "plateau", "max_iter"


@dataclass(frozen=True)
class SolverProgress:
    """The argument of a callback after each step."""

    n_iter: int
    objective: float
    n_active: int
    """Rows of W that the penalty has not sent to zero."""
    n_rows: int
    """Rows in the work; fewer than the number of features once rows were left out."""


Callback = Callable[[SolverProgress], object]


@dataclass(frozen=True)
class SPCAFSResult:
    """The end of the iteration."""

    W: FloatArray
    images: FloatArray
    """S W."""
    row_norms: FloatArray
    """Row norms of W; for inactive rows the limit of the smoothing, in closed form."""
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
        """True if f stopped falling."""
        return self.stop == CONVERGED

    @property
    def n_active(self) -> int:
        """Number of active rows."""
        return int(np.count_nonzero(self.active))


def _result(
    space: Subspace, penalty: RowPenalty, history: list[float], **counts: Any
) -> SPCAFSResult:
    """The result at W.

    What the iteration left in inactive rows depends on when it stopped and, divided by weights of
    1 / sqrt(eps), on rounding; how near each is to becoming active does not.
    """
    squared_norms = space.squared_row_norms
    inactive = penalty.inactive(squared_norms)
    near_zero = penalty.norms_near_zero(squared_row_norms(space.images / penalty.gamma))
    norms = np.where(inactive, near_zero, np.sqrt(squared_norms))
    return SPCAFSResult(space.vectors, space.images, norms, ~inactive, np.array(history), **counts)


def _gains_less(before: float, after: float, trace: float, share: float) -> bool:
    """True if f fell by less than a share of it (or of the variance, where f is near zero)."""
    return before - after <= share * max(abs(after), trace / 100)


def _report(
    callback: Callback | None, n_iter: int, f: float, penalty: RowPenalty, squared_norms: FloatArray
) -> None:
    if callback is not None:
        n_active = int(np.count_nonzero(~penalty.inactive(squared_norms)))
        callback(SolverProgress(n_iter, f, n_active, len(squared_norms)))


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
    _report(callback, n_iter, history[-1], penalty, squared_row_norms(W))
    while n_iter < max_iter and not converged:
        weights = penalty.weights(squared_row_norms(W))  # Eq. (26)
        if n_iter == 1:  # among equal columns rounding must not choose
            weights = tilt_ties(weights, weights)
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
        _report(callback, n_iter, history[-1], penalty, squared_row_norms(W))
    stop = CONVERGED if converged else MAX_ITER
    end = Subspace(W, S @ W, start.values)
    return _result(end, penalty, history, n_iter=n_iter, stop=stop, n_products=0)


def dense_is_cheaper(n_samples: int, n_features: int, width: int) -> bool:
    """True if a step of `solve_dense` costs less than one of `solve_block`.

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

    The weights depend on u = log(|w_i|^2 + eps) alone. A step of Algorithm 1 maps a *point* u to
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
        self, point: FloatArray, image: FloatArray, penalty: RowPenalty, *, slow: bool
    ) -> FloatArray | None:
        """The next point, or None for the image.

        ``slow``: the last step gained next to nothing. Below p = 1, where there are many more
        minima, steps stay plain unless they are slow: a row then takes long to leave and nothing
        else moves, so each step is twice as long as the one before. (Without this SRBCT, m = 10,
        p = 0.5, ended 4e-3 higher.)
        """
        if penalty.p == 1.0:
            self._pairs.append((point, image))
            importance = penalty.costs * np.exp(image / 2)
            step = extrapolate(list(self._pairs), importance, relaxed=self._relaxed) - image
        elif slow:
            self._stride *= 2.0
            step = self._stride * (image - point)
        else:
            self._stride = 1.0
            return None
        proposal = image + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        return np.clip(proposal, np.log(penalty.eps), 0.0)  # no row of W is longer than 1

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


def _rows_that_stay(part: _Part, fewest: int) -> BoolArray:
    """Rows to keep in the work: those that grow or shrink by little, and those that others need."""
    space, penalty = part.space, part.penalty
    rates, effects = penalty.first_effects(space.squared_row_norms, space.images)
    order = np.argsort(-effects)
    n_strong = int(np.searchsorted(np.cumsum(effects[order]), STRONG * effects.sum())) + 1
    stay = rates > SHRINKING
    stay[order[: max(n_strong, fewest)]] = True
    return stay | penalty.free


@dataclass
class _Run:
    """The state of a run of `solve_block`."""

    part: _Part
    history: list[float]
    proposals: Proposals
    n_products: int
    n_iter: int = 1
    n_calm: int = 0
    """Steps in a row that gained less than tol."""
    proposal: FloatArray | None = None
    few_enough: float = np.inf
    """Rows are left out if well below this number stay: what was tried in vain when f would have
    risen, and 0 once rows had to come back."""

    def move_to(self, part: _Part) -> None:
        """Continue on other rows."""
        self.part, self.n_calm, self.proposal = part, 0, None
        self.proposals.forget()

    def gained_less(self, share: float, n_steps: int = 1) -> bool:
        """True if the last steps lowered f by less than a share of it."""
        if len(self.history) <= n_steps:
            return False
        before, after = self.history[-n_steps - 1], self.history[-1]
        return _gains_less(before, after, self.part.space.trace, share)

    @property
    def on_plateau(self) -> bool:
        """True if f falls slowly because the components can be turned at next to no price.

        Where the leading eigenvalues are nearly equal, as in a table without structure, there is no
        end to be waited for: many blocks are as good as each other.
        """
        return nearly_equal(self.part.space.values) and self.gained_less(SLOW, PLATEAU_STEPS)


def _leave_out_rows(run: _Run) -> None:
    """Set rows to zero and leave them out, if they are worth a copy of S, and f does not rise.

    The smoothing holds inactive rows a little off zero: f may rise by what that is worth.
    """
    part, before = run.part, run.history[-1]
    size, width = part.space.vectors.shape
    fewest = 100 + 4 * width  # with fewer rows a step takes no less time
    if size < 2 * fewest:
        return
    kept = np.flatnonzero(_rows_that_stay(part, fewest))
    if len(kept) > 0.8 * min(size, run.few_enough):
        return
    smaller = part.restrict(kept, part.space.vectors)
    run.n_products += 1
    if run.n_iter == 1:  # the first step is made with the weights of PCA
        run.move_to(smaller)
        run.proposal = np.log(part.space.squared_row_norms[kept] + part.penalty.eps)
        return
    rise = smaller.objective - before
    if rise <= smaller.outside - part.outside:
        run.history[-1] = min(before, smaller.objective)
        run.move_to(replace(smaller, outside=smaller.outside - max(rise, 0.0)))
    else:
        run.few_enough = len(kept)


def _restore_rows(run: _Run, whole: _Part) -> None:
    """Take all rows into the work again; those that were left out are zero."""
    vectors = np.zeros((whole.operator.size, run.part.space.vectors.shape[1]), order="F")
    vectors[run.part.rows] = run.part.space.vectors
    images = whole.operator.matmat(vectors)
    run.n_products += 1
    run.move_to(replace(whole, space=Subspace(vectors, images, run.part.space.values)))


def _check_optimality(run: _Run, whole: _Part) -> bool:
    """True if no row that was left out would leave zero; those that would are taken in."""
    kept = run.part.rows
    _restore_rows(run, whole)
    space, penalty = run.part.space, whole.penalty
    pulled = penalty.pulled_out(space.images)
    pulled[kept] = False
    if not pulled.any():
        return True
    run.few_enough = 0
    # A thousandth of a typical active row, in the direction of the pull.
    norms = row_norms(space.vectors)
    size = 1e-3 * float(np.median(norms[~penalty.inactive(norms**2)]))
    vectors, images = space.vectors.copy(), space.images[pulled]
    vectors[pulled] = images * (size / row_norms(images))[:, np.newaxis]
    wanted = pulled
    wanted[kept] = True
    larger = run.part.restrict(np.flatnonzero(wanted | penalty.free), vectors)
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
    sizes = penalty.norms_near_zero(squared_row_norms(space.images / penalty.gamma))[at_zero]
    vectors = space.vectors.copy("F")
    lengths = np.maximum(row_norms(images), np.finfo(float).tiny)
    vectors[at_zero] = images * (sizes / lengths)[:, np.newaxis]
    # S W as it was: what these rows add to it is of the size of the smoothing.
    gained = 2.0 * float(np.vdot(vectors[at_zero], images))
    after = penalty.value(squared_row_norms(vectors)) - space.trace - gained
    run.history = [max(f, after) for f in run.history[:-1]] + [after]
    run.part = replace(run.part, space=replace(space, vectors=vectors))


def _step(run: _Run, tol: float, *, early: bool, flat: bool) -> None:
    """New weights, then the leading subspace; a proposal that raises f is undone."""
    part, penalty, point = run.part, run.part.penalty, run.proposal
    if point is None:
        point = np.log(part.space.squared_row_norms + penalty.eps)
    weights = penalty.weights_at(point)  # Eq. (26)
    if early and run.n_iter == 1:  # among equal columns rounding must not choose
        weights = tilt_ties(weights, weights)
    inner_tol = INNER_TOL if early and not flat else 10.0 * INNER_TOL
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
        image = np.log(space.squared_row_norms + penalty.eps)
        slow = run.gained_less(SLOW)
        run.proposal = run.proposals.propose(point, image, penalty, slow=slow)


def solve_block(
    operator: SymmetricOperator,
    start: Subspace,
    penalty: RowPenalty,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
    warm: bool = False,
    flat: bool = False,
) -> SPCAFSResult:
    """Algorithm 1 from block products.

    ``start`` is the PCA solution or, ``warm``, one for nearly the same penalty: there is then no
    choice between minima, and no step needs to be plain. ``flat``: other starts are as good as this
    one (`is_flat`), so no eigenproblem needs to be accurate.
    """
    whole = _Part(operator, penalty, start)
    run = _Run(whole, [whole.objective], Proposals(relaxed=not warm), start.n_products)
    enough = 2 if penalty.p == 1.0 else CALM_STEPS
    done = False
    _report(callback, run.n_iter, run.history[-1], penalty, start.squared_row_norms)
    while run.n_iter < max_iter and not done and not run.on_plateau:
        _leave_out_rows(run)
        size, width = run.part.space.vectors.shape
        with one_blas_thread_for(2.0 * width * float(size) ** 2):  # products become small
            _step(run, tol, early=run.n_iter < EARLY_STEPS and not warm, flat=flat)
        part = run.part
        _report(callback, run.n_iter, run.history[-1], part.penalty, part.space.squared_row_norms)
        if run.n_calm >= enough:
            done = part.rows is None or _check_optimality(run, whole)
    stop = CONVERGED if done else PLATEAU if run.on_plateau else MAX_ITER
    if run.part.rows is not None:
        _restore_rows(run, whole)
    if done:
        _let_rows_off_zero(run)
    counts = {"n_iter": run.n_iter, "stop": stop, "n_products": run.n_products}
    return _result(run.part.space, penalty, run.history, **counts)


# Chosen by the study in docs/without-labels.md. Weaker penalties rank a little better on real
# tables and lose a few informative features among many; from 0.01 to 0.03, where rows begin to
# vanish, the ranking was worst on real tables.
GAMMA_SCALE = 0.1


@dataclass(eq=False, repr=False)
class SPCAFS(ScatterSelector):
    r"""Unsupervised feature selection by row-sparse PCA.

    Finds an orthonormal W (d features x m components) that holds much of the variance while a
    penalty on the norms of its rows drives most of them to zero:

    .. math::

        \min_{W} \;
            & -\operatorname{Tr}\left(W^\top S\, W\right) + \gamma \sum_{i=1}^{d}
            \left(\lVert w_i \rVert_2^2 + \varepsilon\right)^{p/2} \\
        \text{s.t.} \; & W^\top W = I, \qquad 0 < p \le 1.

    Here S is the scatter matrix of the centred data and w_i the row of feature i. The norm of the
    row is the score of the feature. The method is that of Li, Nie, Bian and Li.

    With default settings it beats random features on tables in which groups of features vary
    together (text, cells, most gene tables). On tables in which all features are strongly
    correlated (images, spectra), set ``max_correlation=0.8``. Start with `AutoSelector`.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        Number of features to keep, or share of those not in ``never_keep``; None keeps half. It
        does not influence the fit: ``top(k)`` gives the best k for any k afterwards.
    n_components : "auto", int or float in (0, 1), default="auto"
        Number of columns of W. A float keeps as many principal components as explain that share of
        the variance. "auto" counts the eigenvalues of the covariance above the largest one expected
        of unrelated columns with the same variances (parallel analysis in closed form), at least 1
        and at most 100. The paper uses the number of clusters minus one.
    gamma : "scale" or float, default="scale"
        Weight of the penalty, on the scale of S, as in the paper. "scale" means 0.1 times the
        leading eigenvalue of S. For p = 1, practically all rows are active below 0.001 times that
        eigenvalue, and only ``n_components`` rows above it. `SPCAFSCV` chooses the weight.
    p : float in (0, 1], default=1.0
        Exponent of the penalty. Below 1 the problem has many more local minima.
    {scaling}
    eps : float, default=1e-12
        Smoothing of the penalty at zero; squared row norms sum to ``n_components``.
    solver : {"auto", "block", "dense"}, default="auto"
        "dense" is Algorithm 1 as printed, with S in memory and O(d^3) operations per step. "block"
        takes the same steps with products of X and thin blocks. "auto" uses the cheaper one.
    max_iter : int, default=1000
        Maximum number of steps.
    tol : float, default=1e-8
        The iteration ends when a step lowers the objective by less than this share.
    must_keep : sequence of names or indices, boolean mask or None, default=None
        Features to keep always: they have no penalty and rank first. Names need a data frame.
    never_keep : sequence of names or indices, boolean mask or None, default=None
        Features never to keep; the result is the same as without these columns.
    {max_correlation}
    {missing}
    {memory_limit}
    {random_state}
    callback : callable or None, default=None
        Called after each step with an object that has ``n_iter``, ``objective``, ``n_active`` and
        ``n_rows``.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Row norms of W; higher is better. Inactive rows have the small norm that the smoothing
        leaves: for p = 1, ``sqrt(eps) r / sqrt(1 - r^2)`` with ``r = 2 |(S W)_i| / gamma``, at most
        ``2 sqrt(eps)``. So inactive features are ranked by how close they are to becoming active,
        at r = 1. Features always kept rank first, those never kept last.
    {fitted}
    components_ : array of shape (n_components, n_features)
        W transposed, rows ordered by the weight they carry in the penalised problem.
    {run}
    stop_reason_ : str
        Why the iteration ended: "converged", "max_iter" or "plateau". On a plateau, the leading
        components have nearly the same variance, as in a table without structure, and many
        solutions are equally good.
    n_products_ : int
        Number of products of S, or of its active part, with a block of ``n_components`` columns.
    n_active_ : int
        Number of active rows of W: those whose norm exceeds 2 sqrt(eps), and those without penalty.
        If ``n_features_to_select`` is larger, an `InactiveRowsWarning` gives both numbers and a
        gamma that is small enough.
    active_ : boolean array of shape (n_features,)
        The features whose rows are active; ``n_active_`` of them.
    gamma_ : float
        The penalty weight used.
    solver_ : str
        The solver used.
    {seen}

    See Also
    --------
    AutoSelector : The selector to start with: no settings, and it chooses the number.
    SPCAFSCV : Chooses the settings and the number of features without labels.
    spcafs_path : The same fit for many values of ``gamma``, from PCA to the sparsest.
    FSPCA : The features that hold the most variance.
    certify : How close the selection is to the features that hold the most variance.

    Notes
    -----
    :doc:`Its page </methods/spcafs>` has the objective, both solvers, the effect of ``gamma`` and
    ``p``, and when not to use it.

    Examples
    --------
    A data frame of 178 wines with 13 measurements in different units, which ``scaling=1`` makes
    comparable. The kept columns are columns of the frame:

    >>> from sklearn.datasets import load_wine
    >>> from keepers import SPCAFS
    >>> wines = load_wine(as_frame=True).data
    >>> selector = SPCAFS(3, scaling=1).set_output(transform="pandas")
    >>> selector.fit_transform(wines).head(2)
       alcohol  color_intensity  proline
    0    14.23             5.64   1065.0
    1    13.20             4.38   1050.0

    The ranking of all features comes with the fit:

    >>> selector.top(4).names
    array(['color_intensity', 'alcohol', 'proline', 'flavanoids'],
          dtype=object)

    Features to keep always, or never, are given by their names:

    >>> known = {"must_keep": ["ash"], "never_keep": ["proline"]}
    >>> SPCAFS(3, scaling=1, **known).fit(wines).top().names
    array(['ash', 'color_intensity', 'alcohol'], dtype=object)
    """

    looks_for = "features that together hold as much of the variance of the table as possible"
    score_means = (
        "how much the feature counts in the sparse components, from 0 (inactive: not used) to 1"
    )

    parameter_rules: ClassVar = {
        "n_components": COMPONENTS,
        "gamma": one_of("scale") | positive(),
        "p": positive(at_most=1.0, hint="p = 1 is the convex-like default."),
        "scaling": positive(at_most=1.0, zero=True),
        "eps": positive(at_most=1.0, hint="It smooths squared row norms at zero."),
        "solver": one_of("auto", "block", "dense"),
        "max_iter": whole(),
        "tol": positive(zero=True),
        "callback": FUNCTION,
    }

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_components: int | float | str = "auto"
    gamma: float | str = "scale"
    p: float = 1.0
    scaling: float = 0.0
    eps: float = 1e-12
    solver: str = "auto"
    max_iter: int = 1000
    tol: float = 1e-8
    must_keep: Any = None
    never_keep: Any = None
    max_correlation: float | None = None
    missing: str = "error"
    memory_limit: int | float | str | None = None
    random_state: Seed = None
    callback: Callback | None = None

    def _fit_table(self, everything: FittedTable) -> None:
        control = control_of(self, everything.n_features)
        warn_of_units(self, everything)
        table = control.restrict(everything).scale(float(self.scaling))
        self.n_features_to_select_ = control.count_to_select(self.n_features_to_select)
        width, n_usable = expected_width(self.n_components), len(table.usable)
        with one_blas_thread_for(2.0 * width * n_usable * min(2 * table.n_samples, n_usable)):
            scatter = scatter_of(self, table, everything)
            check_component_count(self.n_components, table.n_samples, n_usable)
            pca = leading_spectrum(
                scatter,
                self.n_components,
                n_samples=table.n_samples,
                sum_of_squares=table.moments.sum_of_squares,
                rng=self.random_generator(),
            )
            self.gamma_ = float(
                GAMMA_SCALE * pca.values[0] if self.gamma == "scale" else self.gamma
            )
            must = control.must[table.usable]
            costs = np.where(must, 0.0, 1.0) if must.any() else 1.0
            penalty = RowPenalty(self.gamma_, float(self.p), float(self.eps), costs)
            result = self._solve(scatter, pca, penalty, table)
            norms = result.row_norms.astype(table.working_dtype, copy=False)
            scores = table.to_all_columns(norms)
            order = control.order(scores, everything)
        self._store(result, table)
        self.var_ = everything.variances  # float32 may not hold it
        self.scores_ = scores.astype(table.dtype, copy=False)
        self._store_order(order, everything, control.must, control.never)
        if self.n_features_to_select is not None:  # None keeps half, whatever the penalty does
            inactive = find_inactive_rows(self, np.flatnonzero(self.support_))
            if inactive is not None:
                warn_caller(f"{inactive} {inactive.way_out()}", InactiveRowsWarning)

    def _solve(
        self, scatter: SymmetricOperator, pca: Subspace, penalty: RowPenalty, table: FittedTable
    ) -> SPCAFSResult:
        d, width = pca.vectors.shape
        squares, n_samples = table.moments.sum_of_squares, table.n_samples
        flat = scatter.small_side() is None and is_flat(pca.values, squares, n_samples)
        self.solver_ = self.solver
        if self.solver == "auto":
            self.solver_ = "dense" if dense_is_cheaper(n_samples, d, width) else "block"
        if self.solver_ == "dense":
            refuse_past_memory(
                "solver='dense'",
                f"the {d} x {d} scatter, a copy and its decomposition",
                24.0 * d**2,
                "solver='block' needs none of them.",
            )
        solve = solve_dense if self.solver_ == "dense" else partial(solve_block, flat=flat)
        result = solve(
            scatter, pca, penalty, max_iter=self.max_iter, tol=self.tol, callback=self.callback
        )
        if flat and result.stop == CONVERGED:
            result = replace(result, stop=PLATEAU)
        if result.stop == MAX_ITER:
            warn_caller(
                f"The objective was still falling after max_iter={self.max_iter} steps. Raise "
                "max_iter or tol; the ranking usually converges long before the objective does.",
                ConvergenceWarning,
            )
        elif result.stop == PLATEAU:
            warn_caller(
                f"Stopped after {result.n_iter} steps on a plateau: the {width} leading "
                "components have nearly the same variance. Many solutions are equally good, so the "
                "ranking among the active features means little. The table may have no structure; "
                "AutoSelector tests this.",
                ConvergenceWarning,
            )
        return result

    def _store(self, result: SPCAFSResult, table: FittedTable) -> None:
        W = fix_signs(result.W)
        self.components_ = table.to_all_columns(W.T.astype(table.dtype, copy=False))
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.active_ = table.to_all_columns(result.active)
        self.n_active_ = result.n_active
        self.stop_reason_ = result.stop
        self.n_products_ = result.n_products
        self.n_components_ = W.shape[1]
        self.mean_ = table.mean.astype(table.dtype, copy=False)
        self.n_samples_seen_ = table.n_samples

    def fit_notes(self) -> FitNotes:
        """The notes of every method, and the features whose rows of W are active."""
        return replace(super().fit_notes(), active=self.active_)


@dataclass(frozen=True)
class InactiveRows:
    """A selection that reaches past the active rows of W."""

    n_kept: int
    n_active: int
    """Kept features with active rows."""
    gamma: float
    small_enough: float | None
    """A gamma at which about all kept features become active; None if it is not known."""

    def __str__(self) -> str:
        has = (
            "has an active (non-zero) row" if self.n_active == 1 else "have active (non-zero) rows"
        )
        return (
            f"Only {self.n_active} of the {self.n_kept} kept features {has} of W with "
            f"gamma={self.gamma:.3g}; the others are ranked by how close they are to becoming "
            "active."
        )

    def way_out(self, set_gamma: str = "gamma=", set_k: str = "") -> str:
        """The way out; a command writes its options before the numbers."""
        smaller = ""
        if self.small_enough is not None:
            smaller = f" ({set_gamma}{self.small_enough:.2g} should be small enough)"
        fewer = "1 feature" if self.n_active == 1 else f"{self.n_active} features"
        option = f" ({set_k}{self.n_active})" if set_k else ""
        return f"Use a smaller gamma{smaller}, or keep at most {fewer}{option}."


def find_inactive_rows(selector: Any, kept: IndexArray) -> InactiveRows | None:
    """Features that a fitted SPCAFS, or one that chose its settings, keeps beyond its active rows.

    None if every kept feature has an active row, and for selectors without active rows. For p = 1
    an inactive row is pulled by r gamma, and its score is sqrt(eps) r / sqrt(1 - r^2): with W held
    fixed it leaves zero where gamma falls below that pull. With the smaller gamma W spreads and
    pulls grow, and more rows than these become active.
    """
    fitted = getattr(selector, "best_estimator_", selector)
    if not isinstance(fitted, SPCAFS):
        return None
    # A constant column that the user wants kept has no row, and nobody ranks it.
    must = control_of(fitted, len(fitted.active_)).must
    inactive = kept[~fitted.active_[kept] & ~must[kept]]
    if len(inactive) == 0:
        return None
    small_enough = None
    if fitted.p == 1.0:
        size = float(np.min(fitted.scores_[inactive])) / float(np.sqrt(fitted.eps))
        pull = fitted.gamma_ * size / float(np.hypot(1.0, size))
        small_enough = 0.9 * pull if pull > 0.0 else None  # the message rounds it to two digits
    return InactiveRows(len(kept), len(kept) - len(inactive), fitted.gamma_, small_enough)
