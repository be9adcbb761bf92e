"""DGUFS: exactly m features and a cluster kernel of the samples that agree with each other.

    minimise  -beta Tr(SL) - (1 - beta) Tr(Y'Y HLH) + alpha rank(L)

over L positive semi-definite, binary, with ones on its diagonal (n x n, which samples belong
together) and Y (d x n) whose rows are those of X' in m places and zero elsewhere. S is a neighbour
graph of the samples; H centres and divides by n - 1, so that the second term is an HSIC.

* `solve_bcd` alternates between L of rank c nearest to a blend of S and the kernel of the selected
  features, and the features themselves. For fixed L the objective is a sum over the selected
  features of -(1 - beta) q_j with q_j = f_j' HLH f_j, so the best m are the m largest q_j. It is
  ours: same model, with the rank fixed at c as in the paper's first formulation.
* `solve_admm` is the authors' program, step by step. Started from zero, its first step keeps the m
  features of smallest norm, and as long as L = 0 nothing moves them: provably so for every X with
  n <= 1 + 12.6 sqrt(alpha) samples. It is here to be compared with.

Features are rows in this file, as in the paper: F = X'.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.ordering import best_first
from keepers.linalg.proximal import SpectralPart, keep_top_rows, rank_threshold
from keepers.linalg.subspace import row_norms, squared_row_norms

MU_START, MU_GROWTH, MU_MOST = 1e-6, 1.1, 1e10
# Weight of the l0 penalty on M in the authors' program.
BINARY_PENALTY = 0.005
FEASIBLE = 5e-7
# Entries this many times those of X: the iteration has run away.
RUNAWAY = 1e6
# Below this many samples one dense eigenproblem is faster than Lanczos.
DENSE_SAMPLES = 200
_BLOCK_ENTRIES = 1 << 20


@dataclass(frozen=True)
class BCDResult:
    """Where the alternation ended."""

    scores: FloatArray
    """q_j of every feature, for the last L."""
    L: SpectralPart
    objective: FloatArray
    n_iter: int
    converged: bool
    period: int
    """1: the selection stayed; more: it came back after so many passes; 0: neither was seen."""


@dataclass(frozen=True)
class ADMMResult:
    """Where the authors' iteration ended."""

    Y: FloatArray
    """d x n; m rows are not zero."""
    Z: FloatArray
    L: SpectralPart
    M: FloatArray
    objective: FloatArray
    n_iter: int
    converged: bool
    diverged: bool


def cluster_labels(L: SpectralPart, n_clusters: int) -> IndexArray:
    """For every sample the leading eigenvector of L in which it weighs most."""
    scaled = np.abs(L.vectors[:, :n_clusters]) * np.sqrt(L.values[:n_clusters])
    if scaled.shape[1] == 0:
        return np.zeros(len(L.vectors), dtype=np.intp)
    return np.asarray(np.argmax(scaled, axis=1))


def kernel_is_dense(n_samples: int, n_clusters: int) -> bool:
    """Whether `solve_bcd` forms n x n matrices: few samples, or too many clusters for Lanczos."""
    return n_samples <= DENSE_SAMPLES or 10 * n_clusters >= n_samples


def solve_bcd(
    X: FloatArray,
    graph: sp.csr_array,
    n_selected: int,
    n_clusters: int,
    *,
    beta: float,
    max_iter: int,
    rng: np.random.Generator,
) -> BCDResult:
    """Alternate kernel and selection until the selection stays, or comes back."""
    features = np.ascontiguousarray((X - X.mean(axis=0)).T)
    variances = squared_row_norms(features)
    blend: sp.csr_array | BlendedKernel = graph
    history: list[float] = []
    seen: dict[bytes, int] = {}
    period = 0
    while len(history) < max_iter and not period:
        L = _leading_part(blend, n_clusters, rng)
        scores = _alignment(features, L)
        selected = np.sort(best_first(scores, variances)[:n_selected])
        history.append(_agreement(graph, L, beta, float(scores[selected].sum())))
        key = selected.tobytes()
        period = len(history) - seen.setdefault(key, len(history))
        blend = BlendedKernel(graph, features[selected], beta)
    return BCDResult(scores, L, np.array(history), len(history), period == 1, period)


class BlendedKernel(LinearOperator):  # type: ignore[misc]
    """beta S + (1 - beta) R(F'F), known by its products; R as in `rescale`.

    The n x n kernel F'F of the (centred) features is looked at in blocks of rows, once, for its
    extremes, and never stored.
    """

    def __init__(self, graph: sp.csr_array, features: FloatArray, beta: float) -> None:
        super().__init__(np.float64, graph.shape)
        self.graph = graph
        self.samples = np.ascontiguousarray(features.T)
        self.beta = beta
        self.low, high = self._extremes()
        width = high - self.low
        flat = width <= 1e-12 * max(abs(high), abs(self.low))
        self.weight = 0.0 if flat else (1.0 - beta) / width
        self.diagonal = squared_row_norms(self.samples)

    def _extremes(self) -> tuple[float, float]:
        """Least and largest entry of F'F off its diagonal."""
        n_samples = self.samples.shape[0]
        low, high = np.inf, -np.inf
        step = max(1, _BLOCK_ENTRIES // n_samples)
        for first in range(0, n_samples, step):
            # Entries to the left of the block were seen from the other side.
            block = self.samples[first : first + step] @ self.samples[first:].T
            own = np.arange(len(block))
            block[own, own] = np.inf
            low = min(low, float(block.min()))
            block[own, own] = -np.inf
            high = max(high, float(block.max()))
        return low, high

    def _matmat(self, V: FloatArray) -> FloatArray:
        kernel = self.samples @ (self.samples.T @ V) - self.low * V.sum(axis=0)
        kernel -= (self.diagonal - self.low)[:, np.newaxis] * V
        return np.asarray(self.beta * (self.graph @ V) + self.weight * kernel)

    def _matvec(self, v: FloatArray) -> FloatArray:
        return self._matmat(v.reshape(-1, 1)).ravel()

    def _adjoint(self) -> "BlendedKernel":
        return self


def _leading_part(
    G: sp.csr_array | BlendedKernel, n_clusters: int, rng: np.random.Generator
) -> SpectralPart:
    """The positive semi-definite matrix of rank at most ``n_clusters`` nearest to G."""
    size = G.shape[0]
    if kernel_is_dense(size, n_clusters):
        dense = G @ np.eye(size)
        values, vectors = eigh(dense, subset_by_index=[max(0, size - n_clusters), size - 1])
    else:
        values, vectors = eigsh(G, k=n_clusters, which="LA", v0=rng.standard_normal(size))
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > 0]
    return SpectralPart(values[order], vectors[:, order])


def _centre(L: SpectralPart) -> FloatArray:
    """H times the eigenvectors of L."""
    vectors = L.vectors
    return np.asarray((vectors - vectors.mean(axis=0)) / max(len(vectors) - 1, 1))


def _alignment(features: FloatArray, L: SpectralPart) -> FloatArray:
    """q_j = f_j' HLH f_j for every feature."""
    projections = features @ _centre(L)
    return np.asarray((projections * projections) @ L.values)


def _agreement(graph: sp.csr_array, L: SpectralPart, beta: float, aligned: float) -> float:
    """-beta Tr(SL) - (1 - beta) Tr(Y'Y HLH), the last trace given."""
    with_graph = np.einsum("ij,ij->j", L.vectors, graph @ L.vectors) @ L.values
    return -beta * float(with_graph) - (1.0 - beta) * aligned


def rescale(A: FloatArray) -> FloatArray:
    """R: zero diagonal, the other entries scaled to [0, 1]; all zero if those are equal."""
    off_diagonal = ~np.eye(len(A), dtype=bool)
    low = A.min(where=off_diagonal, initial=np.inf)
    high = A.max(where=off_diagonal, initial=-np.inf)
    if not high - low > 0:
        return np.zeros_like(A)
    scaled = (A - low) / (high - low)
    np.fill_diagonal(scaled, 0.0)
    return np.asarray(scaled)


def solve_admm(
    X: FloatArray,
    graph: sp.csr_array,
    n_selected: int,
    *,
    alpha: float,
    beta: float,
    max_iter: int,
    stop_runaway: bool = True,
) -> ADMMResult:
    """The authors' program: order Z, Y, L, M, multipliers; all start from zero.

    ``stop_runaway`` ends the iteration when entries exceed 1e6 times those of X; the program
    itself continues.
    """
    F = np.ascontiguousarray(X.T)
    S = graph.toarray()
    n_features, n_samples = F.shape
    Y, Lam1 = np.zeros_like(F), np.zeros_like(F)
    M, Lam2 = np.zeros_like(S), np.zeros_like(S)
    L = SpectralPart(np.zeros(0), np.zeros((n_samples, 0)))
    mu = MU_START
    largest = float(np.abs(F).max())
    history: list[float] = []
    converged = diverged = False
    while len(history) < max_iter and not converged and not diverged:
        dropped = F - Y - ((1 - beta) * _through_kernel(Y, L) - Lam1) / mu
        Z = F - keep_top_rows(dropped, n_features - n_selected)
        Y = keep_top_rows(Z + ((1 - beta) * _through_kernel(Z, L) + Lam1) / mu, n_selected)
        pull = (1 - beta) * rescale(_cross_kernel(Y, Z)) + beta * S
        L = rank_threshold(rescale((pull - Lam2) / mu + M), 2 * alpha / mu)
        dense = L.dense()
        M = _nearly_binary(dense + Lam2 / mu, 2 * BINARY_PENALTY / mu)
        history.append(_agreement(graph, L, beta, float(_alignment(Y, L).sum())) + alpha * L.rank)
        apart, kernels_apart = Z - Y, dense - M
        converged = bool(max(np.abs(apart).max(), np.abs(kernels_apart).max()) < FEASIBLE)
        reached = max(np.abs(Y).max(), np.abs(Z).max())
        diverged = stop_runaway and bool(reached > RUNAWAY * largest)
        Lam1 = Lam1 + mu * apart
        Lam2 = Lam2 + mu * kernels_apart
        mu = min(MU_GROWTH * mu, MU_MOST)
    return ADMMResult(Y, Z, L, M, np.array(history), len(history), converged, diverged)


def _through_kernel(rows: FloatArray, L: SpectralPart) -> FloatArray:
    """The product rows HLH, in O(d n rank(L))."""
    vectors = _centre(L)
    return np.asarray(((rows @ vectors) * L.values) @ vectors.T)


def _cross_kernel(Y: FloatArray, Z: FloatArray) -> FloatArray:
    """H Y'Z H; only rows in which Y is not zero count."""
    active = np.flatnonzero(row_norms(Y))
    left = Y[active] - Y[active].mean(axis=1, keepdims=True)
    right = Z[active] - Z[active].mean(axis=1, keepdims=True)
    return np.asarray(left.T @ right) / max(Y.shape[1] - 1, 1) ** 2


def _nearly_binary(entries: FloatArray, penalty: float) -> FloatArray:
    """Entries moved to [0, 1] under an l0 penalty, which for penalty > 1 makes them 0 or 1."""
    if penalty > 1:
        smallest = (penalty + 1) / 2
        M = (entries > smallest).astype(np.float64)
    else:
        smallest = np.sqrt(penalty)
        M = np.minimum(entries, 1.0)
        M[entries < smallest] = 0.0
    np.fill_diagonal(M, 1.0)
    return M
