"""EUFS: robust clustering of the samples with row-sparse cluster centres, by ADMM.

The objective is in the docstring of `EUFS`. The problem is split with E = X - U V' and Z = U, where
Z carries U >= 0 and the graph term is beta Tr(Z'LU); Y1 and Y2 are the multipliers of Z - U and
X - U V' - E, mu their penalty. One iteration minimises over E, V, Z and U in turn and then moves
the multipliers.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray
from keepers.exceptions import ConvergenceWarning, warn_caller
from keepers.linalg.graph import laplacian
from keepers.linalg.spectrum import row_norms
from keepers.methods.parameters import Seed, one_of, positive
from keepers.methods.reading import MemoryTable
from keepers.methods.rivals import EPS, Rival
from keepers.methods.rivals.ndfs import start_clustering

# As in the released program, which has no largest mu; 300 iterations do not reach it.
MU_START, MU_GROWTH, MU_MOST = 1e-3, 1.1, 1e10


def shrink_rows(Q: FloatArray, threshold: float) -> FloatArray:
    """Minimise threshold * sum_i |e_i| + 1/2 |E - Q|^2 over E: rows shorter by threshold."""
    norms = row_norms(Q)
    factors = np.zeros_like(norms)
    np.divide(norms - threshold, norms, out=factors, where=norms > threshold)
    return factors[:, np.newaxis] * Q


def nearest_orthonormal(N: FloatArray) -> FloatArray:
    """Maximise Tr(U'N) over U with orthonormal columns: orthogonal Procrustes."""
    left, _, right = np.linalg.svd(N, full_matrices=False)
    return np.asarray(left @ right)


@dataclass(frozen=True)
class Splitting:
    """The variables of the split problem after an iteration."""

    U: FloatArray
    V: FloatArray
    Z: FloatArray
    E: FloatArray
    rest: FloatArray
    Y1: FloatArray
    Y2: FloatArray
    mu: float
    pulls: FloatArray
    """For rows of V at zero the share of the threshold their norm had before shrinking; else 1."""


@dataclass(frozen=True)
class EUFSResult:
    """The last iteration."""

    last: Splitting
    last_norms: FloatArray
    """Row norms of V, each from the last iteration in which it was not zero (0: never)."""
    residual: float
    """The largest entry of X - UV' - E, as a share of the largest entry of X."""
    objective: FloatArray
    converged: bool

    @property
    def scores(self) -> FloatArray:
        """Row norms of V; rows at zero below all others, by their last norm, then by their pull."""
        norms = row_norms(self.last.V)
        largest = max(self.last_norms.max(), np.finfo(np.float64).tiny)
        by_last_norm = 0.5 + 0.5 * self.last_norms / largest
        among_zeros = np.where(self.last_norms > 0, by_last_norm, 0.5 * self.last.pulls)
        ceiling = 1e-12 * norms[norms > 0].min() if norms.any() else 1.0
        return np.where(norms > 0, norms, ceiling * among_zeros)


def vanishing_alpha(X: FloatArray, U: FloatArray) -> float:
    """The least alpha for which V = 0 is stationary: the longest of sum_i x_ij u_i / |x_i|.

    A sum whose terms cancel up to rounding is 0.
    """
    norms = row_norms(X)
    pulled = U * np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)[:, np.newaxis]
    pulls = row_norms(X.T @ pulled)
    rounding = len(X) * EPS * (np.abs(X).T @ row_norms(pulled))
    return float(np.where(pulls > rounding, pulls, 0.0).max())


def start(X: FloatArray, U: FloatArray, V: FloatArray) -> Splitting:
    zeros, Z, Y1 = np.zeros_like(X), np.maximum(U, 0.0), np.zeros_like(U)
    return Splitting(U, V, Z, zeros, X - U @ V.T, Y1, zeros, MU_START, np.zeros(len(V)))


def iterate(
    X: FloatArray, laplacian: sp.csr_array, now: Splitting, threshold: float, beta: float
) -> Splitting:
    """One iteration, in which rows of V are shortened by ``threshold``: alpha / mu."""
    U, mu = now.U, now.mu
    W = now.Y2 / mu
    E = shrink_rows(now.rest + W, 1 / mu)
    B = X - E + W
    K = B.T @ U
    V = shrink_rows(K, threshold)  # because U'U = I
    pulls = np.minimum(row_norms(K) / (threshold or 1.0), 1.0)
    Z = np.maximum(U - (now.Y1 + beta * (laplacian @ U)) / mu, 0.0)
    U = nearest_orthonormal((now.Y1 - beta * (laplacian @ Z)) / mu + Z + B @ V)
    rest = X - U @ V.T
    Y1, Y2 = now.Y1 + mu * (Z - U), now.Y2 + mu * (rest - E)
    return Splitting(U, V, Z, E, rest, Y1, Y2, min(MU_GROWTH * mu, MU_MOST), pulls)


def solve_eufs(
    X: FloatArray,
    laplacian: sp.csr_array,
    U: FloatArray,
    *,
    alpha: float,
    beta: float,
    max_iter: int,
    tol: float,
) -> EUFSResult:
    """Iterate from U until E = X - U V' and Z = U hold to ``tol``, at most ``max_iter`` times."""
    state = start(X, U, X.T @ U)
    largest = float(np.abs(X).max())
    last_norms = np.zeros(X.shape[1])
    history: list[float] = []
    converged = False

    def residual() -> float:
        return float(np.abs(state.rest - state.E).max()) / largest

    while len(history) < max_iter and not converged:
        state = iterate(X, laplacian, state, alpha / state.mu, beta)
        norms = row_norms(state.V)
        last_norms = np.where(norms > 0, norms, last_norms)
        smoothness = float(np.vdot(state.U, laplacian @ state.U))
        loss = float(row_norms(state.rest).sum())
        history.append(loss + alpha * float(norms.sum()) + beta * smoothness)
        converged = bool(np.abs(state.Z - state.U).max() < tol) and residual() < tol
    return EUFSResult(state, last_norms, residual(), np.array(history), converged)


@dataclass(eq=False, repr=False, kw_only=True)
class EUFS(Rival):
    """Embedded unsupervised feature selection: clustering with row-sparse cluster centres.

    Factors the table into a cluster indicator U (samples x clusters) and centres V (features x
    clusters); most rows of V are zero::

        minimise  |X - U V'|_{2,1} + alpha |V|_{2,1} + beta Tr(U' L U)
        subject to  U'U = I,  U >= 0,

    where the norms sum the lengths of rows and L is the Laplacian of a neighbour graph of the
    samples. A feature's score is the norm of its row of V. This is the method of Wang, Tang and Liu
    (AAAI 2015), with the threshold alpha / mu of their derivation.

    Parameters
    ----------
    {n_features_to_select}
    n_clusters : int, default=5
        Columns of U and V. Capped, with a warning, at the number of distinct samples.
    {n_neighbors}
    alpha : "scale" or float, default="scale"
        Weight of the row sparsity. "scale" means 0.3 times the least alpha at which V = 0 is
        stationary for the k-means clusters.
    beta : float, default=0.1
        Weight of the graph; in the unit of X.
    max_iter : int, default=300
        Maximum number of iterations; by then the penalty of the splitting is about 1e9.
    tol : float, default=1e-6
        The iteration ends when U V' + E = X (relative to the largest entry of X) and U >= 0 hold
        to this.
    {bandwidth}
    {max_correlation}
    random_state : int, RandomState or None, default=None
        Seeds the k-means start, and the sample from which the bandwidth is taken beyond 3000 rows.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Row norms of V; higher is better. Rows at zero get up to 1e-12 of the smallest other norm:
        first those that once were not zero, by the last norm they had, then the others.
    {fitted}
    components_ : array of shape (n_clusters, n_features)
        V transposed.
    {run}
        Usually not.
    alpha_ : float
        The weight used.
    n_active_ : int
        Rows of V that are not zero.

    Examples
    --------
    >>> from keepers import EUFS, datasets
    >>> EUFS(50, n_clusters=4, random_state=0).fit_transform(datasets.load("srbct").X).shape
    (83, 50)
    """

    why_not_sparse = "its residual X - U V' has no zeros."
    parameter_rules: ClassVar = {"alpha": one_of("scale") | positive(), "beta": positive(zero=True)}

    n_clusters: int = 5
    n_neighbors: int = 5
    alpha: float | str = "scale"
    beta: float = 0.1
    max_iter: int = 300
    tol: float = 1e-6
    bandwidth: float | None = None
    random_state: Seed = None

    def score_features(self, table: MemoryTable) -> FloatArray:
        # In one layout: the iteration amplifies what rounding makes of another.
        values = np.ascontiguousarray(table.X, dtype=np.float64)
        graph, clusters = start_clustering(self, values)
        L, U = laplacian(graph), clusters / np.sqrt(clusters.sum(axis=0))
        alpha = 0.3 * vanishing_alpha(values, U) if self.alpha == "scale" else float(self.alpha)
        result = solve_eufs(
            values, L, U, alpha=alpha, beta=self.beta, max_iter=self.max_iter, tol=self.tol
        )
        # The split usually holds to four digits after 300 iterations.
        remedy = (
            f"After max_iter={self.max_iter} iterations U V' + E still differs from X by "
            f"{result.residual:.2g} of its largest entry. Raise max_iter; 300 is usual."
        )
        self.store_run(result, remedy if result.residual > 1e-2 else None)
        self.components_ = table.to_all_columns(result.last.V.T)
        self.alpha_ = alpha
        self.n_active_ = int(np.count_nonzero(row_norms(result.last.V)))
        if self.n_active_ == 0 and result.residual <= 1e-2:
            warn_caller(
                f"All rows of V vanished with alpha={alpha:.3g}. The features are ranked by the "
                "last norm their row had, then by how near it came to having one. Lower alpha "
                "(alpha='scale' adapts it to the data) or raise n_clusters.",
                ConvergenceWarning,
            )
        return table.to_all_columns(result.scores)
