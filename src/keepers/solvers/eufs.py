"""EUFS: robust clustering of the samples with row-sparse cluster centres, by ADMM.

    minimise  |X - U V'|_{2,1} + alpha |V|_{2,1} + beta Tr(U'LU)   over U'U = I, U >= 0,  V

U is n x c (which sample is in which cluster), V is d x c (what the clusters look like), L is the
Laplacian of a neighbour graph of the samples. Both norms sum the lengths of rows: over samples in
the first, over features in the second.

The problem is split with E = X - U V' and Z = U, where Z carries U >= 0 and the graph term is
beta Tr(Z'LU); Y1 and Y2 are the multipliers of Z - U and X - U V' - E, mu their penalty. One
iteration minimises over E, V, Z and U in turn and then moves the multipliers.

Y2 is kept as W = Y2 / mu, and E by B = X - E + W. `keepers.solvers.row_combinations` says when
these n x d arrays are stored and when they need not be.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.proximal import nearest_orthonormal, shrinkage
from keepers.linalg.subspace import row_norms
from keepers.solvers.row_combinations import first_rows

MU_START = 1e-3
MU_GROWTH = 1.1
MU_MOST = 1e10


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
    losses: list[float] = []
    penalties: list[float] = []
    last_norms = np.zeros(X.shape[1])
    converged = False
    while len(penalties) < max_iter and not converged:
        losses.append(state.update_residual())  # of the iteration before
        state.update_centres()
        state.update_nonnegative()
        state.update_indicator()
        state.update_multipliers()
        norms = row_norms(state.V)
        penalties.append(alpha * float(norms.sum()) + beta * state.smoothness)
        last_norms = np.where(norms > 0, norms, last_norms)
        # The first comparison is cheap and usually fails.
        converged = state.indicator_gap < tol and state.residual < tol * largest
    losses.append(state.loss)
    return EUFSResult(
        state.U,
        state.V,
        last_norms,
        state.pulls,
        np.add(losses[1:], penalties),
        state.residual / largest,
        state.indicator_gap,
        len(penalties),
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
        self.laplacian = laplacian
        self.alpha = alpha
        self.beta = beta
        self.release_threshold = release_threshold
        self.U = start.U
        self.Vt = np.ascontiguousarray(start.V.T)
        self.Z = np.maximum(start.U, 0.0)
        self.Y1 = np.zeros_like(start.U)
        self.pulls: FloatArray = np.zeros(X.shape[1])
        self.mu = MU_START
        self._rows = first_rows(X, self.U, self.Vt)
        self._smoothed: FloatArray = laplacian @ self.U

    @property
    def V(self) -> FloatArray:
        """The cluster centres."""
        return self.Vt.T

    @property
    def E(self) -> FloatArray:
        """What U V' leaves of X, from the last `update_residual`."""
        return self._rows.E

    @property
    def Y2(self) -> FloatArray:
        """The multiplier of X - U V' - E."""
        return self.mu * self._rows.W

    @property
    def threshold(self) -> float:
        """By how much the rows of V are shortened."""
        return self.alpha / 2 if self.release_threshold else self.alpha / self.mu

    @property
    def loss(self) -> float:
        """|X - U V'|_{2,1}, after an iteration."""
        return self._rows.loss()

    @property
    def smoothness(self) -> float:
        """Tr(U'LU)."""
        return float(np.vdot(self.U, self._smoothed))

    @property
    def residual(self) -> float:
        """max|X - U V' - E|, after an iteration."""
        return self._rows.violation()

    @property
    def indicator_gap(self) -> float:
        """max|Z - U|."""
        return float(np.abs(self.Z - self.U).max())

    def update_residual(self) -> float:
        """E = shrink_rows(X - U V' + Y2/mu, 1/mu). Returns `loss` of the U and V there are."""
        self._rows = self._rows.form_for(self.mu)
        return self._rows.shorten(self.mu)

    def update_centres(self) -> None:
        """V = shrink_rows(B'U, alpha/mu), because U'U = I."""
        K = self._rows.project(self.U)
        norms = row_norms(K.T)
        self.Vt = shrinkage(norms, self.threshold) * K
        self.pulls = np.divide(
            norms, self.threshold, out=np.ones_like(norms), where=norms < self.threshold
        )

    def update_nonnegative(self) -> None:
        """Z = max(U - Y1/mu - (beta/mu) L U, 0)."""
        self.Z = np.maximum(self.U - (self.Y1 + self.beta * self._smoothed) / self.mu, 0.0)

    def update_indicator(self) -> None:
        """U = the orthonormal matrix nearest to Y1/mu + Z - (beta/mu) L Z + B V."""
        N = (self.Y1 - self.beta * (self.laplacian @ self.Z)) / self.mu
        N += self.Z
        N += self._rows.multiply(self.Vt)
        self.U = nearest_orthonormal(N)
        self._smoothed = self.laplacian @ self.U

    def update_multipliers(self) -> None:
        """Y1 += mu (Z - U); Y2 += mu (X - U V' - E); mu grows."""
        mu, self.mu = self.mu, min(MU_GROWTH * self.mu, MU_MOST)
        self.Y1 = self.Y1 + mu * (self.Z - self.U)
        self._rows.move(self.U, self.Vt, mu / self.mu)
