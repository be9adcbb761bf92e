"""Which weights the next step of SPCAFS takes: those of the last solution, or ones further on.

Algorithm 1 takes the weights of the solution before. It then walks slowly where rows shrink or grow
by little. All that the weights depend on are the norms of the rows (or groups); so a step is a map
from log norms, the *point*, to log norms, its *image*, and what follows proposes a better next
point than the image. No proposal carries a guarantee: whoever takes it compares objectives, and
says if it was turned down. `docs/decisions/0019-price-of-a-pca.md` has the measurements.
"""

from collections import deque

import numpy as np

from keepers._protocols import FloatArray
from keepers.linalg.subspace import Subspace
from keepers.solvers.penalty import RowPenalty

DEPTH = 3
# By how much a step may be lengthened. Longer ones led off plateaus into other minima.
LARGEST_FACTOR = 3.0
# Below p = 1, while a row takes its time to leave, nothing else moves.
LARGEST_FACTOR_WAITING = 32.0
LONGEST_LOG_STEP = 3.0
# Rows solved alone may not vanish at once: some that the others still need were lost, for good.
LONGEST_SHRINKAGE = 1.0
LONGEST_LOG_STEP_WAITING = 1.0
_REGULARISATION = 1e-10


class Pace:
    """Proposes points, by what was not turned down so far."""

    def __init__(self, penalty: RowPenalty, *, only_extrapolates: bool = False) -> None:
        self.p = penalty.p
        self.factor = 1.0
        self.only_extrapolates = only_extrapolates
        self.lengthening = not only_extrapolates
        self.alone = penalty.p == 1.0 and penalty.groups is None and not only_extrapolates
        self.ahead = Extrapolation(DEPTH)

    def propose(
        self,
        point: FloatArray,
        image: FloatArray,
        space: Subspace,
        penalty: RowPenalty,
        *,
        waiting: bool,
    ) -> FloatArray | None:
        """The next point, or None for the image; ``waiting``: the last step gained little.

        For p = 1: where all Ritz values are positive each row is solved alone, until that is turned
        down; elsewhere steps are lengthened, as on a plateau, or extrapolated, as near an end, one
        taking turns with the other when it was turned down. Below p = 1, where there are many more
        minima, steps are lengthened only while next to nothing moves.
        """
        if self.p < 1.0:
            if not waiting:
                self.factor = 1.0
                return None
            proposal: FloatArray | None = self._lengthen(
                point, image, LARGEST_FACTOR_WAITING, LONGEST_LOG_STEP_WAITING
            )
        elif self._solves_rows(space):
            proposal = solve_rows_alone(image, space, penalty)
        elif self.lengthening and space.values[-1] <= 0.0:
            proposal = self._lengthen(point, image, LARGEST_FACTOR, LONGEST_LOG_STEP)
        else:
            self.ahead.remember(point, image)
            terms = np.exp(image / 2)  # of the penalty
            proposal = self.ahead.propose(terms if penalty.costs is None else penalty.costs * terms)
        if proposal is not None:
            # The squared norm of a row is at most 1, that of a group at most the number of columns.
            largest = 1 if penalty.groups is None else space.vectors.shape[1]
            np.clip(proposal, np.log(penalty.eps), np.log(largest), out=proposal)
        return proposal

    def turned_down(self, space: Subspace) -> None:
        """A step from what was proposed after ``space`` would have raised f."""
        self.ahead.forget()
        if self._solves_rows(space):
            self.alone = False
        elif self.p < 1.0:
            self.factor = max(self.factor / 4, 0.5)
        else:
            if self.lengthening:
                self.factor = max(self.factor / 4, 0.5)
            self.lengthening = not self.lengthening and not self.only_extrapolates

    def _solves_rows(self, space: Subspace) -> bool:
        return self.alone and bool(space.values[-1] > 0.0)

    def _lengthen(
        self, point: FloatArray, image: FloatArray, largest: float, longest: float
    ) -> FloatArray:
        growth = 1.5 if self.p == 1.0 else 2.0
        self.factor = min(growth * self.factor, largest)
        return image + np.clip(self.factor * (image - point), -longest, longest)


def solve_rows_alone(log_norms: FloatArray, space: Subspace, penalty: RowPenalty) -> FloatArray:
    """Log norms at which every row solves its own equation, all others held fixed (p = 1).

    Row i of a solution is ``w_ij = F_ij r / (c/2 + theta_j r)`` with F = S W, c = gamma c_i and
    r = |w_i|: so ``sum_j F_ij^2 / (c/2 + theta_j r)^2 = 1``. One Newton step, on the power of the
    sum that is linear in r where all theta_j are equal, solves it all but exactly. With a negative
    theta_j rows drive each other apart, and half of such proposals were turned down.
    """
    costs = 1.0 if penalty.costs is None else penalty.costs
    norms = np.exp(log_norms / 2)
    theta = space.values[:, np.newaxis]
    quotient = theta * norms + penalty.gamma * costs / 2.0
    shares = (space.images.T / quotient) ** 2
    tiny = np.finfo(float).tiny
    total = np.maximum(shares.sum(axis=0), tiny)
    slope = np.maximum(np.einsum("ij,ij->j", shares, theta / quotient), tiny)
    solved = np.maximum(norms - (total - total**1.5) / slope, 0.0)
    step = np.log(solved**2 + penalty.eps) - log_norms
    return log_norms + np.clip(step, -LONGEST_SHRINKAGE, LONGEST_LOG_STEP)


class Extrapolation:
    """Anderson extrapolation of a fixed-point iteration u -> G(u), from the last few pairs.

    The proposal minimises, in a weighted norm, the linear model of G(u) - u over the affine hull
    of the remembered points.
    """

    def __init__(self, depth: int) -> None:
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
        return np.asarray(images[-1] + np.clip(step, -LONGEST_LOG_STEP, LONGEST_LOG_STEP))
