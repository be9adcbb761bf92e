"""EUFS: robust clustering of the samples with row-sparse cluster centres, by ADMM.

    minimise  |X - U V'|_{2,1} + alpha |V|_{2,1} + beta Tr(U'LU)   over U'U = I, U >= 0,  V

U is n x c (which sample is in which cluster), V is d x c (what the clusters look like), L is the
Laplacian of a neighbour graph of the samples. Both norms sum the lengths of rows: over samples in
the first, over features in the second.

The problem is split with E = X - U V' and Z = U, where Z carries U >= 0 and the graph term is
beta Tr(Z'LU); Y1 and Y2 are the multipliers of Z - U and X - U V' - E, mu their penalty. One
iteration minimises over E, V, Z and U in turn and then moves the multipliers.

Y2 is kept as W = Y2 / mu, and with B = X - E + W the last step is W = (B - U V') mu / new mu. The
two n x d arrays W and B are all that is stored beside X.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.moments import row_blocks
from keepers.linalg.proximal import nearest_orthonormal, shrinkage
from keepers.linalg.subspace import row_norms

MU_START = 1e-3
MU_GROWTH = 1.1
MU_MOST = 1e10
# Rows are worked on in blocks that stay in a cache: two to three times faster on 1000 x 4000.
BLOCK_BYTES = 1 << 19


@dataclass(frozen=True)
class Start:
    """Where U and V begin."""

    U: FloatArray
    V: FloatArray


@dataclass(frozen=True)
class EUFSResult:
    """Where the iteration ended."""

    U: FloatArray
    V: FloatArray
    last_norms: FloatArray
    """Row norms of V, each from the last iteration in which it was not zero (0: never)."""
    pulls: FloatArray
    """For rows at zero the share of the threshold their norm had before shrinking; else 1."""
    objective: FloatArray
    """The objective after every iteration; ADMM does not make it fall every time."""
    residual: float
    """max|X - U V' - E| / max|X|."""
    indicator_gap: float
    """max|Z - U|: how far U is from being non-negative."""
    n_iter: int
    converged: bool


def start_from_labels(X: FloatArray, labels: IndexArray, n_clusters: int) -> Start:
    """U = the indicator of the clusters with orthonormal columns, V = X'U; no cluster is empty."""
    n_samples = X.shape[0]
    U = np.zeros((n_samples, n_clusters))
    U[np.arange(n_samples), labels] = 1.0
    U /= np.sqrt(U.sum(axis=0))
    return Start(U, X.T @ U)


def vanishing_alpha(X: FloatArray, U: FloatArray) -> float:
    """The least alpha for which V = 0 is stationary with this U.

    At V = 0 row j of the loss has the gradient -sum_i x_ij u_i / |x_i|, and the penalty holds a row
    at zero as long as that is no longer than alpha. A sum whose terms cancel up to rounding is 0.
    """
    norms = row_norms(X)
    weights = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    pulled = weights[:, np.newaxis] * U
    pulls = row_norms(X.T @ pulled)
    largest = np.abs(X).T @ row_norms(pulled)
    rounding = len(X) * np.finfo(np.float64).eps * largest
    return float(np.where(pulls > rounding, pulls, 0.0).max())


def solve_eufs(
    X: FloatArray,
    laplacian: sp.csr_array,
    start: Start,
    *,
    alpha: float,
    beta: float,
    max_iter: int,
    tol: float,
    _release_threshold: bool = False,
) -> EUFSResult:
    """Iterate until E = X - U V' and Z = U hold to ``tol``, at most ``max_iter`` times.

    ``_release_threshold`` shrinks the rows of V by alpha / 2 as the released program does, instead
    of alpha / mu; it is there to compare with that program's output.
    """
    state = Splitting(X, laplacian, start, alpha, beta, release_threshold=_release_threshold)
    largest = float(np.abs(X).max())
    history: list[float] = []
    last_norms = np.zeros(X.shape[1])
    converged = False
    while len(history) < max_iter and not converged:
        state.update_residual()
        state.update_centres()
        state.update_nonnegative()
        state.update_indicator()
        state.update_multipliers()
        history.append(state.objective)
        norms = row_norms(state.V)
        last_norms = np.where(norms > 0, norms, last_norms)
        converged = state.residual < tol * largest and state.indicator_gap < tol
    return EUFSResult(
        state.U,
        state.V,
        last_norms,
        state.pulls,
        np.array(history),
        state.residual / largest,
        state.indicator_gap,
        len(history),
        converged,
    )


class Splitting:
    """The variables of the split problem, and the five steps of one iteration."""

    def __init__(
        self,
        X: FloatArray,
        laplacian: sp.csr_array,
        start: Start,
        alpha: float,
        beta: float,
        *,
        release_threshold: bool = False,
    ) -> None:
        self.X = X
        self.laplacian = laplacian
        self.alpha = alpha
        self.beta = beta
        self.release_threshold = release_threshold
        self.U = start.U
        self.V = start.V
        self.Z = np.maximum(start.U, 0.0)
        self.Y1 = np.zeros_like(start.U)
        self.W = np.zeros_like(X)
        self.B = np.empty_like(X)
        self.pulls: FloatArray = np.zeros(X.shape[1])
        self.mu = MU_START
        self.objective = np.inf
        self.residual = np.inf
        self.indicator_gap = np.inf
        self._blocks = row_blocks(X.shape[0], X.shape[1], BLOCK_BYTES)

    @property
    def E(self) -> FloatArray:
        """What U V' leaves of X, from the last `update_residual`."""
        return self.X + self.W - self.B

    @property
    def Y2(self) -> FloatArray:
        """The multiplier of X - U V' - E."""
        return self.mu * self.W

    @property
    def threshold(self) -> float:
        """By how much the rows of V are shortened."""
        return self.alpha / 2 if self.release_threshold else self.alpha / self.mu

    def update_residual(self) -> None:
        """E = shrink_rows(Q, 1/mu), Q = X - U V' + W; and B = X + W - E."""
        for rows in self._blocks:
            A = self.X[rows] + self.W[rows]
            Q = self.U[rows] @ self.V.T
            np.subtract(A, Q, out=Q)
            Q *= shrinkage(row_norms(Q), 1.0 / self.mu)[:, np.newaxis]
            np.subtract(A, Q, out=self.B[rows])

    def update_centres(self) -> None:
        """V = shrink_rows(B'U, alpha/mu), because U'U = I."""
        K = self.B.T @ self.U
        norms = row_norms(K)
        self.V = shrinkage(norms, self.threshold)[:, np.newaxis] * K
        self.pulls = np.divide(
            norms, self.threshold, out=np.ones_like(norms), where=norms < self.threshold
        )

    def update_nonnegative(self) -> None:
        """Z = max(U - Y1/mu - (beta/mu) L U, 0)."""
        pulled = self.U - (self.Y1 + self.beta * (self.laplacian @ self.U)) / self.mu
        self.Z = np.maximum(pulled, 0.0)

    def update_indicator(self) -> None:
        """U = the orthonormal matrix nearest to Y1/mu + Z - (beta/mu) L Z + B V."""
        N = (self.Y1 - self.beta * (self.laplacian @ self.Z)) / self.mu
        N += self.Z
        N += self.B @ self.V
        self.U = nearest_orthonormal(N)

    def update_multipliers(self) -> None:
        """Y1 += mu (Z - U); Y2 += mu (X - U V' - E); mu grows. Measures on the way."""
        mu, self.mu = self.mu, min(MU_GROWTH * self.mu, MU_MOST)
        self.Y1 = self.Y1 + mu * (self.Z - self.U)
        loss, violation = 0.0, 0.0
        for rows in self._blocks:
            fitted = self.U[rows] @ self.V.T
            loss += float(row_norms(self.X[rows] - fitted).sum())
            moved = self.B[rows] - fitted
            change = np.subtract(moved, self.W[rows], out=fitted)
            violation = max(violation, float(change.max()), -float(change.min()))
            np.multiply(moved, mu / self.mu, out=self.W[rows])
        smoothness = float(np.vdot(self.U, self.laplacian @ self.U))
        penalty = self.alpha * float(row_norms(self.V).sum())
        self.objective = loss + penalty + self.beta * smoothness
        self.residual = violation
        self.indicator_gap = float(np.abs(self.Z - self.U).max())
