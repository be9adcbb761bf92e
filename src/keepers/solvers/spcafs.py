"""SPCAFS: row-sparse PCA under an l2,p penalty.

    minimise  f(W) = -Tr(W'SW) + gamma * sum_i (|w_i|^2 + eps)^(p/2)   over W'W = I      (23)

Algorithm 1 of the paper alternates the weights of a quadratic majorant of the penalty (26) with
the m leading eigenvectors of S - gamma diag(g) (27); f never rises (Theorem 2). Rows may be pooled
into groups and have costs of their own: `RowPenalty` has the general form. Two solvers:

* `solve_dense` is Algorithm 1 as printed: S in memory, one dense eigenproblem a step. It is the
  reference against which the other one is tested.
* `solve_block` walks the same path with products S V only. Each eigenproblem is solved just well
  enough, from the last solution; weights further ahead are taken where they lower f (`pace`); rows
  that have no effect on the others, or vanish (groups of them, as a whole), are left out of the
  work; at the end one product with all rows shows whether any of them would leave zero.
"""

from collections.abc import Callable
from dataclasses import dataclass

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
    with_light_rows,
)
from keepers.solvers.pace import Pace
from keepers.solvers.penalty import RowPenalty
from keepers.solvers.saved_run import SavedRun

# Residual, relative to |S w_j|, at which an eigenproblem is left for the next weights: in the first
# steps, which decide which minimum is reached, and later. Looser, runs ended in other minima than
# the dense iteration; below p = 1 there are many more of them.
FIRST_INNER_TOL, INNER_TOL = 3e-3, 3e-2
FIRST_INNER_TOL_BELOW_1, INNER_TOL_BELOW_1 = 1e-4, 1e-2
CAREFUL_STEPS = 10
# The first steps are plain, for the same reason.
PLAIN_STEPS = 8
# Products after which an eigenproblem counts as a long way from its solution, and how many are
# made at most once it was helped along.
PATIENCE = 4
MOST_PRODUCTS = 12
# Rows that the next step makes shorter than this, and that have little effect on the others, are
# left out in the first steps. Those that stay have this share of all effects; at least so many do.
LOWEST_RATE = 0.5
STRONG = 0.98
FEWEST_KEPT, FEWEST_PER_COLUMN = 100, 4
# Later those are left out that shrink to this share in a step and are below this share of the mean.
VANISHING_RATE = 0.8
VANISHING_SIZE = 1e-2
CERTAIN_RATE = 0.9
# Rows leave the work when they are at least this share of it.
WORTH_A_COPY = 0.2
# What f may rise by for it, relatively: the smoothing holds inactive rows a little off zero.
SMOOTHING = 1e-3
# How often rows that were left out may return before all of them are taken in, and how long they
# are then beside a typical active row.
MOST_ROUNDS = 5
FIRST_SIZE = 1e-3
# Below p = 1: a step that gains less, relatively, is one of waiting for a row to leave; it may have
# begun if so many steps, each longer than the last, gained next to nothing.
WAITING = 1e-4
CALM_STEPS_BELOW_1 = 6
# A plateau: so many steps that each gained less than this, relatively, while no more than this
# share of the rows left or returned, and Ritz values that are nearly equal.
PLATEAU_STEPS, PLATEAU_GAIN, PLATEAU_CHANGE, NEARLY_EQUAL = 20, 1e-5, 1e-3, 0.9

CONVERGED, PLATEAU, MAX_ITER = "converged", "plateau", "max_iter"


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
    stop: str
    """Why it ended: "converged", "plateau" or "max_iter"."""
    n_products: int

    @property
    def converged(self) -> bool:
        """Whether f stopped falling."""
        return self.stop == CONVERGED

    @classmethod
    def at(
        cls,
        W: FloatArray,
        images: FloatArray,
        penalty: RowPenalty,
        *,
        objective: list[float],
        n_iter: int,
        stop: str,
        n_products: int,
    ) -> "SPCAFSResult":
        """The result at W, whose images are S W.

        What the iteration left in inactive rows depends on when it stopped and, divided by weights
        of 1 / sqrt(eps), on rounding; how near each is to becoming active does not.
        """
        squared_norms = squared_row_norms(W)
        inactive = penalty.inactive(squared_norms)
        near_zero = penalty.norms_near_zero(squared_row_norms(images / penalty.gamma))
        norms = np.where(inactive, near_zero, np.sqrt(squared_norms))
        history = np.array(objective)
        return cls(W, norms, ~inactive, history, n_iter, stop, n_products)

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
        stop=CONVERGED if converged else MAX_ITER,
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
    while run.n_iter < max_iter and not run.finished and not run.on_plateau:
        if keep is not None:
            keep(run.state())
        if not run.calm:
            run.leave_out_rows()
        with one_blas_thread_for(run.n_operations):  # rows leave, and products become small
            run.step()
        run.report(callback)
        if run.calm and not run.on_all_rows:
            run.check_optimality()
    if not run.on_all_rows:
        run.restore_rows()
    if run.finished:
        run.let_rows_off_zero()
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
        self.smoothed = 0.0
        self.history = [self.objective(start, penalty)] if history is None else history
        self.n_iter = 1
        self.n_products = start.n_products
        self.rounds_left = MOST_ROUNDS
        self.plain_steps = PLAIN_STEPS
        self.careful_steps = CAREFUL_STEPS
        self.shrinkage: FloatArray | None = None
        self.calm_steps = 0
        self.slow_steps = 0
        self.n_active = 0
        self.pace = Pace(penalty)
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
        run._restore(start)
        return run

    def _restore(self, saved: SavedRun) -> None:
        counts = saved["counts"].tolist()
        self.n_iter, self.n_products, self.rounds_left, self.calm_steps = counts[:4]
        self.slow_steps, self.n_active = counts[4:6]
        self.pace.lengthening, self.pace.alone = map(bool, counts[6:])
        self.pace.factor, self.smoothed = saved["reals"].tolist()
        self.shrinkage, self.proposal = saved.get("shrinkage"), saved.get("proposal")
        if "points" in saved:
            for point, image in zip(saved["points"], saved["point_images"], strict=True):
                self.pace.ahead.remember(point, image)

    def state(self) -> SavedRun:
        """What it takes to resume from here."""
        counts = [self.n_iter, self.n_products, self.rounds_left, self.calm_steps]
        counts += [self.slow_steps, self.n_active, self.pace.lengthening, self.pace.alone]
        points, images = self.pace.ahead.pairs()
        arrays: dict[str, FloatArray | IndexArray | None] = {
            "vectors": self.space.vectors,
            "images": self.space.images,
            "values": self.space.values,
            "history": np.array(self.history),
            "counts": np.array(counts, dtype=np.int64),
            "reals": np.array([self.pace.factor, self.smoothed]),
            "rows": self.rows,
            "shrinkage": self.shrinkage,
            "proposal": self.proposal,
            "points": points,
            "point_images": images,
        }
        return {name: array for name, array in arrays.items() if array is not None}

    @property
    def n_operations(self) -> float:
        """Those of a product of S, formed, with a block; there are never many more."""
        size, width = self.space.vectors.shape
        return 2.0 * width * float(size) ** 2

    @property
    def on_all_rows(self) -> bool:
        """Whether no row is set aside."""
        return self.rows is None

    @property
    def calm(self) -> bool:
        """Whether f has stopped falling on the rows in the work."""
        return self.calm_steps >= (2 if self.penalty.p == 1.0 else CALM_STEPS_BELOW_1)

    @property
    def finished(self) -> bool:
        """Whether f has stopped falling, and no row that was set aside would lower it."""
        return self.on_all_rows and self.calm

    @property
    def on_plateau(self) -> bool:
        """Whether f falls slowly because the components can be turned at next to no price.

        Where the leading eigenvalues are nearly equal, as in a table without structure, there is no
        end to be waited for: many blocks are as good as each other.
        """
        return self.slow_steps >= PLATEAU_STEPS

    def objective(self, space: Subspace, penalty: RowPenalty) -> float:
        """f, with rows that were set aside counted as zero."""
        n_rows = space.vectors.shape[0]
        everywhere = self.penalty_on_all_rows.value_at_zero(self.everything.size)
        set_aside = everywhere - penalty.value_at_zero(n_rows) - self.smoothed
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
        self.space = candidate
        self.shrinkage = image - point
        self.history.append(after)
        self.calm_steps = self.calm_steps + 1 if self._gained_less_than(self.tol) else 0
        self._look_for_plateau()
        self.proposal = None
        if self.n_iter > self.plain_steps:
            waiting = self._gained_less_than(WAITING)
            self.proposal = self.pace.propose(
                point, image, candidate, self.penalty, waiting=waiting
            )

    def _gained_less_than(self, share: float) -> bool:
        """Whether the last step lowered f by less than a share of it."""
        before, after = self.history[-2:]
        return _gains_nothing(before, after, self.space.trace, share)

    def _look_for_plateau(self) -> None:
        n_active = self.penalty.count_active(self.space.squared_row_norms)
        values = self.space.values
        slow = (
            self._gained_less_than(PLATEAU_GAIN)
            and abs(n_active - self.n_active) <= PLATEAU_CHANGE * n_active
            and len(values) > 1
            and bool(values[-1] >= NEARLY_EQUAL * values[0] > 0.0)
        )
        self.slow_steps = self.slow_steps + 1 if slow else 0
        self.n_active = n_active

    @property
    def _inner_tol(self) -> float:
        careful = self.n_iter < self.careful_steps
        if self.penalty.p == 1.0:
            return FIRST_INNER_TOL if careful else INNER_TOL
        return FIRST_INNER_TOL_BELOW_1 if careful else INNER_TOL_BELOW_1

    def _leading(self, shift: FloatArray) -> Subspace:
        """The leading subspace of S - diag(shift); where the way is long, by way of light rows."""
        tol = self._inner_tol
        found = leading_subspace(self.operator, shift, self.space, tol=tol, max_iter=PATIENCE)
        self.n_products += found.n_products
        if found.residual <= tol:
            return found
        nearer = with_light_rows(self.operator, shift, found)
        if nearer is not None:
            self.n_products += 2
        found = leading_subspace(
            self.operator, shift, nearer or found, tol=tol, max_iter=MOST_PRODUCTS
        )
        self.n_products += found.n_products
        return found

    def _turn_down(self) -> None:
        """Keep the old block. A plain step that raises f does so by rounding: it is the end."""
        if self.proposal is None:
            self.calm_steps = CALM_STEPS_BELOW_1
        elif self.n_iter > self.plain_steps:  # before, nothing was proposed but the weights of PCA
            self.pace.turned_down(self.space)
        self.proposal = None

    def _log_norms(self, space: Subspace) -> FloatArray:
        """Of the groups: all that the weights depend on."""
        return np.log(self.penalty.pool(space.squared_row_norms) + self.penalty.eps)

    @property
    def _slack(self) -> float:
        """What f may rise by if rows are set to zero: the smoothing holds them a little off it."""
        scale = max(abs(self.history[-1]), self.space.trace / 100)
        return min(self.penalty.value_at_zero(len(self.space.vectors)), SMOOTHING * scale)

    def leave_out_rows(self) -> None:
        """Set rows to zero and leave them out, if they are many and f does not rise.

        In the first steps they are those that the next step all but sends to zero and that have
        little effect on the others; later those that have become small and are vanishing.
        """
        size, width = self.space.vectors.shape
        if size < 2 * (FEWEST_KEPT + 2 * width):
            return
        early = self.n_iter < self.careful_steps
        kept = self._strong_rows() if early else self._rows_that_stay()
        rows = np.flatnonzero(self.penalty.whole_groups(kept))
        if len(rows) > (1.0 - WORTH_A_COPY) * size:
            return
        if self.n_iter > 1:
            self.restrict_to(rows, self._slack)
        else:
            self._begin_on(rows)

    def _strong_rows(self) -> BoolArray:
        rates, effects = self._effects
        order = np.argsort(-effects)
        n_strong = int(np.searchsorted(np.cumsum(effects[order]), STRONG * effects.sum())) + 1
        fewest = FEWEST_KEPT + FEWEST_PER_COLUMN * self.space.vectors.shape[1]
        strong = rates > LOWEST_RATE
        strong[order[: max(n_strong, fewest)]] = True
        return strong

    def _rows_that_stay(self) -> BoolArray:
        size, width = self.space.vectors.shape
        squared_norms = self.space.squared_row_norms
        stay = ~self.penalty.inactive(squared_norms)
        if self.shrinkage is not None:
            shrinkage = self.penalty.to_rows(self.shrinkage)
            stay &= (shrinkage >= 2 * np.log(VANISHING_RATE)) | (
                squared_norms >= VANISHING_SIZE * width / size
            )
        # One that is small but pulled almost out of zero may have been sent there too soon.
        stay |= self._effects[0] > CERTAIN_RATE
        stay[np.argpartition(-squared_norms, 4 * width)[: 4 * width]] = True
        return stay

    @property
    def _effects(self) -> tuple[FloatArray, FloatArray]:
        return self.penalty.first_effects(self.space.squared_row_norms, self.space.images)

    def _begin_on(self, rows: IndexArray) -> None:
        """Make the first step on some rows only, with the weights of PCA."""
        weights_at = np.log(self.space.squared_row_norms[rows] + self.penalty.eps)
        operator, penalty = self.everything.restrict(rows), self.penalty.restrict(rows)
        space = orthonormal_subspace(operator, self.space.vectors[rows])
        self.n_products += 1
        self.rows = rows
        self._move_to(operator, penalty, space)
        self.proposal = weights_at if penalty.groups is None else None

    def restrict_to(self, kept: IndexArray, slack: float = 0.0) -> None:
        """Set all other rows to zero and leave them out, if f rises by no more than ``slack``."""
        operator, penalty = self.operator.restrict(kept), self.penalty.restrict(kept)
        space = orthonormal_subspace(operator, self.space.vectors[kept])
        self.n_products += 1
        after = self.objective(space, penalty)
        if after > self.history[-1] + slack:
            return
        self.smoothed += max(after - self.history[-1], 0.0)
        self.history[-1] = min(after, self.history[-1])
        self.rows = kept if self.rows is None else self.rows[kept]
        self._move_to(operator, penalty, space)

    def check_optimality(self) -> None:
        """Look at all rows: those at zero that would lower f are taken in, else this is the end."""
        kept = self.rows
        self.restore_rows()
        outside = np.ones(self.everything.size, dtype=bool)
        outside[kept] = False
        pulled = outside & self.penalty.pulled_out(self.space.images)
        if not pulled.any():
            self.calm_steps = CALM_STEPS_BELOW_1
        elif self.rounds_left:
            self.rounds_left -= 1
            outside &= ~self.penalty.whole_groups(pulled)
            self._take_in(pulled, np.flatnonzero(~outside))

    def let_rows_off_zero(self) -> None:
        """Give rows that were left out the size that the smoothing has for them, in closed form."""
        at_zero = ~self.space.vectors.any(axis=1)
        if not at_zero.any():
            return
        images = self.space.images[at_zero]
        squares = squared_row_norms(self.space.images / self.penalty.gamma)
        sizes = self.penalty.norms_near_zero(squares)[at_zero]
        lengths = np.maximum(row_norms(images), np.finfo(float).tiny)
        vectors = self.space.vectors.copy("F")
        vectors[at_zero] = images * (sizes / lengths)[:, np.newaxis]
        # S W as it was: what these rows add to it is of the size of the smoothing.
        gained = 2.0 * float(np.vdot(vectors[at_zero], images))
        price = self.penalty.value(squared_row_norms(vectors))
        self._end_with(price - self.space.trace - gained)
        self.space = Subspace(vectors, self.space.images, self.space.values)

    def _end_with(self, objective: float) -> None:
        """Put f of all rows in the place of those that left out what the smoothing adds."""
        while len(self.history) > 1 and self.history[-2] < objective:
            self.history.pop(-2)
        self.history[-1] = objective

    def _take_in(self, pulled: BoolArray, kept: IndexArray) -> None:
        """Go on with some rows only, those that are pulled out of zero a little away from it."""
        squared_norms = self.space.squared_row_norms
        active = ~self.penalty.inactive(squared_norms)
        size = FIRST_SIZE * float(np.sqrt(np.median(squared_norms[active])))
        vectors = self.space.vectors.copy()
        images = self.space.images[pulled]
        vectors[pulled] = images * (size / row_norms(images))[:, np.newaxis]
        operator, penalty = self.everything.restrict(kept), self.penalty.restrict(kept)
        space = orthonormal_subspace(operator, vectors[kept])
        self.n_products += 1
        after = self.objective(space, penalty)
        if after <= self.history[-1]:
            self.history[-1] = after
            self.rows = kept
            self._move_to(operator, penalty, space)

    def restore_rows(self) -> None:
        """Take all rows into the work again; those set aside start from zero."""
        vectors = np.zeros((self.everything.size, self.space.vectors.shape[1]), order="F")
        vectors[self.rows] = self.space.vectors
        images = self.everything.matmat(vectors)
        self.n_products += 1
        self.rows = None
        self.smoothed = 0.0
        space = Subspace(vectors, images, self.space.values)
        self._move_to(self.everything, self.penalty_on_all_rows, space)

    def _move_to(self, operator: SymmetricOperator, penalty: RowPenalty, space: Subspace) -> None:
        self.operator = operator
        self.penalty = penalty
        self.space = space
        self.calm_steps = 0
        self.shrinkage = None
        self.proposal = None
        self.pace.ahead.forget()

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
            stop=CONVERGED if self.finished else PLATEAU if self.on_plateau else MAX_ITER,
            n_products=self.n_products,
        )
