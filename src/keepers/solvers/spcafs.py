"""SPCAFS: row-sparse PCA under an l2,p penalty.

    minimise  f(W) = -Tr(W'SW) + gamma * sum_i (|w_i|^2 + eps)^(p/2)   over W'W = I      (23)

Algorithm 1 of the paper alternates the weights of a quadratic majorant of the penalty (26) with
the m leading eigenvectors of S - gamma diag(g) (27); f never rises (Theorem 2). Rows may be pooled
into groups and have costs of their own: `RowPenalty` has the general form. Two solvers:

* `solve_dense` is Algorithm 1 as printed: S in memory, one dense eigenproblem a step. It is the
  reference against which the other one is tested.
* `solve_block` walks the same path with products S V only. Each eigenproblem is solved just well
  enough, from the last solution; rows that become inactive (groups of them, as a whole) are taken
  out of the work and put back, and iterated with, before it ends; for p = 1 the weights are
  extrapolated where that lowers f.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from keepers._protocols import BoolArray, FloatArray, IndexArray, SymmetricOperator
from keepers.linalg.ordering import tilt_ties
from keepers.linalg.subspace import (
    Subspace,
    leading_subspace,
    orthonormal_subspace,
    squared_row_norms,
    with_light_rows,
)
from keepers.solvers.penalty import RowPenalty
from keepers.solvers.saved_run import SavedRun

# Residual, relative to |S w_j|, at which an eigenproblem is left for the next weights. Looser, runs
# ended in other minima than the dense iteration; below p = 1 there are many more of them, and 1e-3
# was not always enough.
INNER_TOL = 3e-2
INNER_TOL_BELOW_1 = 1e-4
# Products after which an eigenproblem counts as a long way from its solution.
PATIENCE = 16
# The first steps decide which minimum is reached: they are plain, on all rows.
PLAIN_STEPS = 5
DEPTH = 3
LONGEST_LOG_STEP = 3.0
_REGULARISATION = 1e-10
# Rows leave the work when at least half of them are inactive or vanishing, and there are many.
FEWEST_ROWS = 1000
MOST_DROPS = 3
VANISHING_RATE = 0.8
VANISHING_SIZE = 1e-2


@dataclass(frozen=True)
class SolverProgress:
    """What a callback is told after each step."""

    n_iter: int
    objective: float
    n_active: int
    """Rows of W that the penalty has not sent to zero."""
    n_rows: int
    """Rows in the work; fewer than the number of features once inactive ones were set aside."""


Callback = Callable[[SolverProgress], object]
Keep = Callable[[SavedRun], object]


@dataclass(frozen=True)
class SPCAFSResult:
    """Where the iteration ended."""

    W: FloatArray
    row_norms: FloatArray
    """Of W; those of inactive rows as the smoothing leaves them in the limit, in closed form."""
    active: BoolArray
    """Rows of W that the penalty has not sent to zero, up to the smoothing."""
    objective: FloatArray
    """f after every step, the first being PCA."""
    n_iter: int
    converged: bool
    n_products: int

    @classmethod
    def at(
        cls,
        W: FloatArray,
        images: FloatArray,
        penalty: RowPenalty,
        *,
        objective: list[float],
        n_iter: int,
        converged: bool,
        n_products: int,
    ) -> "SPCAFSResult":
        """The result at W, whose images are S W.

        What the iteration left in inactive rows depends on when it stopped and, divided by weights
        of 1 / sqrt(eps), on rounding; how near each is to becoming active does not.
        """
        squared_norms = squared_row_norms(W)
        inactive = penalty.inactive(squared_norms)
        near_zero = penalty.norms_near_zero(squared_row_norms(images / penalty.gamma))
        row_norms = np.where(inactive, near_zero, np.sqrt(squared_norms))
        history = np.array(objective)
        return cls(W, row_norms, ~inactive, history, n_iter, converged, n_products)

    @property
    def n_active(self) -> int:
        """How many rows are active."""
        return int(np.count_nonzero(self.active))


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


def _weights_after(n_iter: int, weights: FloatArray) -> FloatArray:
    """The weights; those that follow PCA are tilted, so that rounding does not choose."""
    return tilt_ties(weights, weights) if n_iter == 1 else weights


def _gains_nothing(before: float, after: float, trace: float, tol: float) -> bool:
    """Whether a step gained next to nothing, beside f (or the variance, where f is near zero)."""
    return before - after <= tol * max(abs(after), trace / 100)


def solve_dense(
    operator: SymmetricOperator,
    start: Subspace | SavedRun,
    penalty: RowPenalty,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
    keep: Keep | None = None,
) -> SPCAFSResult:
    """Algorithm 1 as printed; ``start`` is the PCA solution (G = I), or a run to resume.

    Its eigenproblems are exact up to rounding of the size of the largest weight; a step that raises
    f does so by that rounding, is not taken, and is the end. After the start and after every step
    ``keep`` is handed what it takes to resume from there.
    """
    scatter = operator.dense()
    size = scatter.shape[0]
    if isinstance(start, Subspace):
        W, n_iter, converged = start.vectors, 1, False
        history = [penalty.value(start.squared_row_norms) - start.trace]
    else:
        W, history = start["vectors"], start["history"].tolist()
        n_iter, converged = int(start["n_iter"]), bool(start["converged"])
    width = W.shape[1]
    while True:
        squared_norms = squared_row_norms(W)
        if callback is not None:
            n_active = penalty.count_active(squared_norms)
            callback(SolverProgress(n_iter, history[-1], n_active, size))
        if keep is not None:
            counts = {"n_iter": np.array(n_iter), "converged": np.array(converged)}
            keep({"vectors": W, "history": np.array(history), **counts})
        if n_iter >= max_iter or converged:
            break
        shifted = scatter.copy()
        shifted[np.diag_indices(size)] -= _weights_after(n_iter, penalty.weights(squared_norms))
        _, candidate = eigh(shifted, subset_by_index=[size - width, size - 1])  # Eqs. (26), (27)
        n_iter += 1
        trace = float(np.vdot(candidate, scatter @ candidate))
        objective = penalty.value(squared_row_norms(candidate)) - trace  # Eq. (23)
        converged = objective > history[-1] or _gains_nothing(history[-1], objective, trace, tol)
        if objective <= history[-1]:
            W = candidate[:, ::-1]
            history.append(objective)
    return SPCAFSResult.at(
        W,
        scatter @ W,
        penalty,
        objective=history,
        n_iter=n_iter,
        converged=converged,
        n_products=0,
    )


def solve_block(
    operator: SymmetricOperator,
    start: Subspace | SavedRun,
    penalty: RowPenalty,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
    keep: Keep | None = None,
) -> SPCAFSResult:
    """Algorithm 1 from block products; ``start`` is the PCA solution, or a run to resume.

    After the start and after every step ``keep`` is handed what it takes to resume from there.
    """
    run = BlockRun.resume_or_start(operator, start, penalty, tol)
    run.report(callback)
    while run.n_iter < max_iter and not run.finished:
        if keep is not None:
            keep(run.state())
        run.step()
        run.report(callback)
        if not run.calm:
            run.drop_inactive_rows()
        elif not run.on_all_rows:
            run.restore_rows()
    if not run.on_all_rows:
        run.restore_rows()
    if keep is not None:
        keep(run.state())
    return run.result()


class BlockRun:
    """The state of one run of `solve_block`."""

    def __init__(
        self,
        operator: SymmetricOperator,
        start: Subspace,
        penalty: RowPenalty,
        tol: float,
        history: list[float] | None = None,
    ) -> None:
        self.everything = operator
        self.operator = operator
        self.rows: IndexArray | None = None
        self.space = start
        self.penalty_on_all_rows = penalty
        self.penalty = penalty
        self.tol = tol
        self.history = [self.objective(start, penalty)] if history is None else history
        self.n_iter = 1
        self.n_products = start.n_products
        self.drops_left = MOST_DROPS
        self.plain_steps = PLAIN_STEPS
        self.shrinkage: FloatArray | None = None
        self.calm_steps = 0
        # Extrapolation pays for p = 1 only: below, it was turned down every second time and once
        # led to a worse minimum (2e-5 relative).
        self.ahead = Extrapolation(DEPTH, LONGEST_LOG_STEP) if penalty.p == 1.0 else None
        self.proposal: FloatArray | None = None

    @classmethod
    def resume_or_start(
        cls,
        operator: SymmetricOperator,
        start: Subspace | SavedRun,
        penalty: RowPenalty,
        tol: float,
    ) -> "BlockRun":
        """A new run, or one that resumes where a saved one was."""
        if isinstance(start, Subspace):
            return cls(operator, start, penalty, tol)
        space = Subspace(start["vectors"], start["images"], start["values"])
        run = cls(operator, space, penalty, tol, start["history"].tolist())
        if "rows" in start:
            run.rows = start["rows"]
            run.operator, run.penalty = operator.restrict(run.rows), penalty.restrict(run.rows)
        run.n_iter, run.n_products, run.drops_left, run.calm_steps = start["counts"].tolist()
        run.shrinkage, run.proposal = start.get("shrinkage"), start.get("proposal")
        if run.ahead is not None and "points" in start:
            for point, image in zip(start["points"], start["point_images"], strict=True):
                run.ahead.remember(point, image)
        return run

    def state(self) -> SavedRun:
        """What it takes to resume from here."""
        counts = [self.n_iter, self.n_products, self.drops_left, self.calm_steps]
        arrays: dict[str, FloatArray | IndexArray | None] = {
            "vectors": self.space.vectors,
            "images": self.space.images,
            "values": self.space.values,
            "history": np.array(self.history),
            "counts": np.array(counts),
            "rows": self.rows,
            "shrinkage": self.shrinkage,
            "proposal": self.proposal,
        }
        if self.ahead is not None:
            arrays["points"], arrays["point_images"] = self.ahead.pairs()
        return {name: array for name, array in arrays.items() if array is not None}

    @property
    def on_all_rows(self) -> bool:
        """Whether no row is set aside."""
        return self.rows is None

    @property
    def calm(self) -> bool:
        """Whether f has stopped falling on the rows in the work."""
        return self.calm_steps >= 2

    @property
    def finished(self) -> bool:
        """Whether f has stopped falling with every row in the work."""
        return self.on_all_rows and self.calm

    def objective(self, space: Subspace, penalty: RowPenalty) -> float:
        """f, with rows that were set aside counted as zero."""
        n_rows = space.vectors.shape[0]
        everywhere = self.penalty_on_all_rows.value_at_zero(self.everything.size)
        set_aside = everywhere - penalty.value_at_zero(n_rows)
        return penalty.value(space.squared_row_norms) + set_aside - space.trace

    def step(self) -> None:
        """New weights, then the leading subspace; an extrapolation that raises f is undone."""
        log_norms = self._log_norms(self.space)
        point = log_norms if self.proposal is None else self.proposal
        weights = self.penalty.weights_at(np.exp(point) - self.penalty.eps)  # Eq. (26)
        shift = _weights_after(self.n_iter, weights) if self.plain_steps else weights
        candidate = self._leading(shift)  # Eq. (27)
        self.n_iter += 1
        before, after = self.history[-1], self.objective(candidate, self.penalty)  # (23)
        if after > before:
            self._turn_down()
            return
        image = self._log_norms(candidate)
        calm = _gains_nothing(before, after, candidate.trace, self.tol)
        self.calm_steps = self.calm_steps + 1 if calm else 0
        self.shrinkage = image - point
        self.space = candidate
        self.history.append(after)
        self._look_ahead(point, image)

    def _leading(self, shift: FloatArray) -> Subspace:
        """The leading subspace of S - diag(shift); where the way is long, by way of light rows."""
        tol = INNER_TOL if self.penalty.p == 1.0 else INNER_TOL_BELOW_1
        found = leading_subspace(self.operator, shift, self.space, tol=tol, max_iter=PATIENCE)
        self.n_products += found.n_products
        if found.residual <= tol:
            return found
        nearer = with_light_rows(self.operator, shift, found)
        if nearer is not None:
            self.n_products += 2
        found = leading_subspace(self.operator, shift, nearer or found, tol=tol)
        self.n_products += found.n_products
        return found

    def _turn_down(self) -> None:
        """Keep the old block. A plain step that raises f does so by rounding: it is the end."""
        if self.proposal is None:
            self.calm_steps = 2
        if self.ahead is not None:
            self.ahead.forget()
        self.proposal = None

    def _look_ahead(self, point: FloatArray, image: FloatArray) -> None:
        if self.ahead is None or self.n_iter <= self.plain_steps:
            return
        self.ahead.remember(point, image)
        terms = np.exp(image / 2)  # of the penalty: p = 1
        costs = self.penalty.costs
        self.proposal = self.ahead.propose(terms if costs is None else costs * terms)
        if self.proposal is not None:
            # The squared norm of a row is at most 1, that of a group at most the number of columns.
            largest = 1 if self.penalty.groups is None else self.space.vectors.shape[1]
            np.clip(self.proposal, np.log(self.penalty.eps), np.log(largest), out=self.proposal)

    def _log_norms(self, space: Subspace) -> FloatArray:
        """Of the groups: all that the weights depend on."""
        return np.log(self.penalty.pool(space.squared_row_norms) + self.penalty.eps)

    def drop_inactive_rows(self) -> None:
        """Set vanishing rows to zero and leave them out, if they are many and f does not rise."""
        size = self.space.vectors.shape[0]
        width = self.space.vectors.shape[1]
        if not self.drops_left or self.n_iter < self.plain_steps - 1 or size < FEWEST_ROWS:
            return
        if self.shrinkage is None:
            return
        squared_norms = self.space.squared_row_norms
        shrinkage = self.penalty.to_rows(self.shrinkage)
        vanishing = (shrinkage < 2 * np.log(VANISHING_RATE)) & (
            squared_norms < VANISHING_SIZE * width / size
        )
        vanishing |= self.penalty.inactive(squared_norms)
        vanishing[np.argsort(-squared_norms, kind="stable")[: 4 * width]] = False
        kept = np.flatnonzero(self.penalty.whole_groups(~vanishing))
        if len(kept) > size // 2:
            return
        self.drops_left -= 1
        self.restrict_to(kept)

    def restrict_to(self, kept: IndexArray, slack: float = 0.0) -> None:
        """Set all other rows to zero and leave them out, if f rises by no more than ``slack``."""
        operator, penalty = self.operator.restrict(kept), self.penalty.restrict(kept)
        space = orthonormal_subspace(operator, self.space.vectors[kept])
        self.n_products += 1
        after = self.objective(space, penalty)
        if after > self.history[-1] + slack:
            return
        self.history[-1] = after
        self.rows = kept if self.rows is None else self.rows[kept]
        self._move_to(operator, penalty, space)

    def restore_rows(self) -> None:
        """Take all rows into the work again; those set aside start from zero."""
        vectors = np.zeros((self.everything.size, self.space.vectors.shape[1]))
        vectors[self.rows] = self.space.vectors
        images = self.everything.matmat(vectors)
        self.n_products += 1
        self.rows = None
        space = Subspace(vectors, images, self.space.values)
        self._move_to(self.everything, self.penalty_on_all_rows, space)

    def _move_to(self, operator: SymmetricOperator, penalty: RowPenalty, space: Subspace) -> None:
        self.operator = operator
        self.penalty = penalty
        self.space = space
        self.calm_steps = 0
        self.shrinkage = None
        self.proposal = None
        if self.ahead is not None:
            self.ahead.forget()

    def report(self, callback: Callback | None) -> None:
        """Tell the callback where the run is."""
        if callback is not None:
            squared_norms = self.space.squared_row_norms
            n_active = self.penalty.count_active(squared_norms)
            callback(SolverProgress(self.n_iter, self.history[-1], n_active, len(squared_norms)))

    def result(self) -> SPCAFSResult:
        """Freeze."""
        return SPCAFSResult.at(
            self.space.vectors,
            self.space.images,
            self.penalty,
            objective=self.history,
            n_iter=self.n_iter,
            converged=self.finished,
            n_products=self.n_products,
        )


class Extrapolation:
    """Anderson extrapolation of a fixed-point iteration u -> G(u), from the last few pairs.

    The proposal minimises, in a weighted norm, the linear model of G(u) - u over the affine hull
    of the remembered points. It carries no guarantee: whoever uses it compares objectives, and
    calls `forget` when a proposal was turned down.
    """

    def __init__(self, depth: int, longest_step: float) -> None:
        self._longest_step = longest_step
        self._points: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=depth + 1)

    def remember(self, point: FloatArray, image: FloatArray) -> None:
        """Add a pair; the oldest is dropped."""
        self._points.append((point, image))

    def pairs(self) -> tuple[FloatArray | None, FloatArray | None]:
        """All points, and all their images, oldest first."""
        if not self._points:
            return None, None
        points, images = zip(*self._points, strict=True)
        return np.array(points), np.array(images)

    def forget(self) -> None:
        """Drop all pairs."""
        self._points.clear()

    def propose(self, importance: FloatArray) -> FloatArray | None:
        """A point ahead, or None while fewer than two pairs are known."""
        if len(self._points) < 2:
            return None
        points = np.array([point for point, _ in self._points])
        images = np.array([image for _, image in self._points])
        gaps = (images - points) * np.sqrt(importance)
        gap_steps = np.diff(gaps, axis=0)
        normal = gap_steps @ gap_steps.T
        normal[np.diag_indices_from(normal)] += _REGULARISATION * np.trace(normal)
        if not normal.any():
            return None
        coefficients = np.linalg.solve(normal, gap_steps @ gaps[-1])
        step = -coefficients @ np.diff(images, axis=0)
        return np.asarray(images[-1] + np.clip(step, -self._longest_step, self._longest_step))
