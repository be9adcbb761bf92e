"""Orthonormal W with few non-zero rows, by reweighting: the step that UDFS and SOGFS share.

    minimise  f(W) = Tr(W'MW) + gamma * sum_j r_j,   r_j = sqrt(|w_j|^2 + eps),   over W'W = I

Concavity of the square root bounds the penalty by a quadratic with the weights 1 / (2 r_j), so
each step is an eigenproblem: W holds the smallest eigenvectors of M + gamma diag(weights), and f
never rises. The weights start from ones.

Where M has a null space wider than W (always for d > n), the first W would be an arbitrary part of
it. `first_weights` therefore adds 1e-6 * mean(s) / s_j, at most 1, to the ones, s_j being the
standard deviation of feature j: features that vary more win what the objective leaves open.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from keepers._protocols import FloatArray
from keepers.linalg.ordering import tilt_ties
from keepers.linalg.quadratic_form import QuadraticForm
from keepers.linalg.smallest import EigenBlock, smallest_eigenvectors
from keepers.linalg.subspace import squared_row_norms

EPS = float(np.finfo(float).eps)
TIE_BREAK = 1e-6
# A feature of next to no variance may weigh twice as much at first; unbounded, the tilt would
# replace the objective where deviations are more than six decades apart.
MOST_TILT = 1.0
# Squared row norms up to this share of the largest are rounding noise.
NOISE = 1e-12
# Error allowed in W; f is stationary in W, so it feels the square of it.
SUBSPACE_TOL = 1e-9

HasConverged = Callable[[list[float]], bool]


@dataclass(frozen=True)
class RowSparseProjection:
    """Where the reweighting ended."""

    W: FloatArray
    squared_norms: FloatArray
    """|w_j|^2; they sum to the number of columns."""
    objective: FloatArray
    """f after every step; it never rises."""
    n_iter: int
    """Eigenproblems solved."""
    converged: bool
    first: EigenBlock
    """Solution of the first eigenproblem: where another run, on a similar M, can start from."""


def first_weights(deviations: FloatArray, *, tie_breaker: bool = True) -> FloatArray:
    """Ones, tilted towards features of large standard deviation, then of low index."""
    if not tie_breaker:
        return np.ones(len(deviations))
    tilt = np.minimum(TIE_BREAK * (deviations.mean() / deviations), MOST_TILT)
    return tilt_ties(1.0 + tilt, deviations)


def row_sparse_projection(
    form: QuadraticForm,
    gamma: float,
    width: int,
    weights: FloatArray,
    rng: np.random.Generator,
    *,
    max_iter: int,
    has_converged: HasConverged,
    start: EigenBlock | None = None,
) -> RowSparseProjection:
    """Reweight from ``weights`` until ``has_converged`` says so of the values of f.

    ``start`` only speeds up the first eigenproblem.
    """
    first = block = smallest_eigenvectors(
        form, gamma * weights, width, rng, start, tol=SUBSPACE_TOL
    )
    history = [_objective(gamma, block)]
    n_iter, converged = 1, False
    while n_iter < max_iter and not converged:
        weights = 0.5 / _smoothed_row_norms(block.vectors)
        candidate = smallest_eigenvectors(
            form, gamma * weights, width, rng, block, tol=SUBSPACE_TOL
        )
        history.append(_objective(gamma, candidate))
        n_iter, converged = n_iter + 1, has_converged(history)
        if converged and history[-1] > history[-2]:  # by rounding: the step before was the last
            history.pop()
        else:
            block = candidate
    W = block.vectors
    return RowSparseProjection(
        W, squared_row_norms(W), np.array(history), n_iter, converged and block.converged, first
    )


def count_active(squared_norms: FloatArray) -> int:
    """Rows whose squared norm is not rounding noise."""
    return int(np.count_nonzero(squared_norms > NOISE * squared_norms.max()))


def break_ties_by_cost(squared_norms: FloatArray, cost: FloatArray) -> FloatArray:
    """Scores in which rows that are rounding noise stand in the order of their cost M_jj.

    A squared norm up to 1e-12 of the largest becomes 1e-12 of the largest times m / (m + M_jj), m
    being the mean cost: positive, below the score of every active row, and larger for cheaper
    features.
    """
    noise = NOISE * squared_norms.max()
    positive = np.maximum(cost, 0.0)
    scale = max(float(positive.mean()), float(np.finfo(float).tiny))
    return np.where(squared_norms > noise, squared_norms, noise * (scale / (scale + positive)))


def _smoothed_row_norms(W: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(squared_row_norms(W) + EPS))


def _objective(gamma: float, block: EigenBlock) -> float:
    assert block.projected is not None
    smoothness = float(block.projected.diagonal()[: block.width].sum())
    return smoothness + gamma * float(_smoothed_row_norms(block.vectors).sum())
