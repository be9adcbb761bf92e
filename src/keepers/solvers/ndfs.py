"""NDFS: non-negative spectral clusters and their row-sparse regression on the features, together.

    minimise  Tr(F'LF) + alpha (|X W - F|^2 + beta |W|_{2,1}) + gamma / 2 |F'F - I|^2,   F >= 0

F is n x c (which sample is in which cluster), W is d x c, L = D - S is the Laplacian of a
neighbour graph of the samples with weights S and degrees D, and |W|_{2,1} sums the lengths of rows.

One step reweights the penalty, w_j by 1 / (2 r_j) with r_j = sqrt(|w_j|^2 + eps) of the step
before, which makes the best W a ridge regression; then it moves F by a multiplicative update and
scales its columns to length 1. The released programs divide by N + gamma F F'F with
N = L F + alpha (F - X W), which can be negative, and F with it. Here all that is negative in N
stands above the bar instead,

    F <- F * (gamma F + S F + alpha P+) / (D F + alpha F + alpha P- + gamma F F'F),   P = X W,

P+ and P- being the positive and the negative part of P. Fixed points are the same, and F >= 0.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.graph import degrees
from keepers.linalg.subspace import row_norms
from keepers.linalg.weighted_ridge import WeightedRidge

EPS = float(np.finfo(np.float64).eps)
INACTIVE = 2.0 * EPS**0.5
"""The smoothing leaves rows that the penalty sends to zero up to this norm, about."""
# A pull on a column of ones below this share of its length is rounding.
SMALLEST_PULL = 1e-10
# Added to every entry of the first F: what is zero there stays zero for ever.
FIRST_SHARE = 0.2


@dataclass(frozen=True)
class NDFSResult:
    """Where the iteration ended."""

    W: FloatArray
    F: FloatArray
    """Columns of length 1."""
    objective: FloatArray
    """After every step. Scaling the columns of F may raise it a little."""
    change: float
    """By how much the row norms of W changed in the last step, relative to the largest."""
    n_iter: int
    converged: bool


def first_clusters(labels: IndexArray, n_clusters: int) -> FloatArray:
    """F to start from: 1.2 where a sample is in its cluster, 0.2 elsewhere."""
    return np.asarray(np.eye(n_clusters)[labels] + FIRST_SHARE)


def vanishing_beta(table: WeightedRidge, labels: IndexArray, n_clusters: int) -> float:
    """The least beta for which W = 0 is stationary, if F is the indicator of these clusters.

    At W = 0 row j of |X W - F|^2 has the gradient -2 f_j'F, and the penalty holds a row at zero as
    long as that is no longer than beta. Never below what rounding makes of pulls that cancel, in a
    table whose values are of size 1: one cluster explains nothing of centred features.
    """
    indicator = np.eye(n_clusters)[labels]
    indicator /= np.sqrt(indicator.sum(axis=0))
    pull = float(row_norms(table.transposed_times(indicator)).max())
    return 2.0 * max(pull, table.n_samples**0.5 * SMALLEST_PULL)


def solve_ndfs(
    table: WeightedRidge,
    graph: sp.csr_array,
    F: FloatArray,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    max_iter: int,
    tol: float,
    _release_update: bool = False,
    _degrees: FloatArray | None = None,
    _first_norms: FloatArray | None = None,
) -> NDFSResult:
    """Iterate from F until row norms change by no more than ``tol`` of the largest, in one step.

    To compare with published programs: ``_release_update`` moves F as they do, ``_degrees`` takes
    the place of D (ones, with a normalised graph), ``_first_norms`` that of the row norms of
    W = 1, from which the first weights are taken.
    """
    D = (degrees(graph) if _degrees is None else _degrees)[:, np.newaxis]
    move = _move_as_released if _release_update else _move
    norms = np.full(table.n_features, F.shape[1] ** 0.5) if _first_norms is None else _first_norms
    DF, SF = D * F, graph @ F
    history: list[float] = []
    change = np.inf
    while len(history) < max_iter and change > tol:
        q = 2.0 / beta * np.sqrt(norms**2 + EPS)
        fit = table.at(q).fit(F)
        P = F - fit.residual
        F = _unit_columns(move(F, DF, SF, P, alpha, gamma))
        DF, SF = D * F, graph @ F
        last, norms = norms, row_norms(fit.W)
        history.append(
            float(np.vdot(F, DF) - np.vdot(F, SF))
            + alpha * float(np.sum((P - F) ** 2) + beta * norms.sum())
            + gamma / 2 * float(np.sum((F.T @ F - np.eye(F.shape[1])) ** 2))
        )
        if len(history) > 1:
            change = float(np.abs(norms - last).max() / max(norms.max(), EPS))
    return NDFSResult(fit.W, F, np.array(history), change, len(history), change <= tol)


def _move(
    F: FloatArray, DF: FloatArray, SF: FloatArray, P: FloatArray, alpha: float, gamma: float
) -> FloatArray:
    """F times a quotient of which neither side can be negative."""
    above = gamma * F + SF + alpha * np.maximum(P, 0.0) + EPS
    below = DF + alpha * F + alpha * np.maximum(-P, 0.0) + gamma * (F @ (F.T @ F)) + EPS
    return np.asarray(F * (above / below))


def _move_as_released(
    F: FloatArray, DF: FloatArray, SF: FloatArray, P: FloatArray, alpha: float, gamma: float
) -> FloatArray:
    """The same of the released programs, whose denominator has any sign."""
    below = DF - SF + alpha * (F - P) + gamma * (F @ (F.T @ F)) + EPS
    return np.asarray(F * (gamma * F + EPS) / below)


def _unit_columns(F: FloatArray) -> FloatArray:
    return np.asarray(F / np.sqrt(np.einsum("ij,ij->j", F, F) + EPS))
