"""DGUFS: m features and a cluster kernel of the samples that agree with each other.

The model (Guo and Zhu, AAAI 2018) is in the docstring of `DGUFS`; L is positive semi-definite, H
centres and divides by n - 1. The solver is ours. It fixes rank(L) = c, as in the paper's first
formulation, and alternates two closed forms:

* L is the best approximation of rank c to G. At first G = S.
* For fixed L the objective is a sum over the selected features of -(1 - beta) q_j with
  q_j = f_j' HLH f_j, so the best m features are those with the m largest q_j. Then
  G = beta S + (1 - beta) R(H Y'Y H), where R scales the entries off the diagonal to [0, 1].

The authors' program selects the features of smallest norm (shown in tests/methods/test_dgufs.py).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray
from keepers.linalg.ordering import best_first
from keepers.linalg.scatter import as_array
from keepers.linalg.spectrum import leading_pairs
from keepers.methods.neighbours import binary_graph
from keepers.methods.parameters import cap_clusters, cap_neighbors, positive
from keepers.methods.reading import MemoryTable
from keepers.methods.rivals import Rival


@dataclass(frozen=True)
class DGUFSResult:
    """q_j of every feature, and the last kernel L = V diag(values) V'."""

    scores: FloatArray
    values: FloatArray
    vectors: FloatArray
    objective: FloatArray
    converged: bool


def solve_dgufs(
    X: FloatArray,
    graph: sp.csr_array,
    n_selected: int,
    n_clusters: int,
    *,
    beta: float,
    max_iter: int,
) -> DGUFSResult:
    """Alternate kernel and selection on centred data until the selection stays."""
    sums_of_squares = np.einsum("ij,ij->j", X, X)
    G: sp.csr_array | FloatArray = graph
    selected = np.empty(0, dtype=np.intp)
    history: list[float] = []
    converged = False
    while len(history) < max_iter and not converged:
        values, V = leading_part(G, n_clusters)
        HV = (V - V.mean(axis=0)) / max(len(V) - 1, 1)
        scores = (X.T @ HV) ** 2 @ values
        previous, selected = selected, np.sort(best_first(scores, sums_of_squares)[:n_selected])
        with_graph = float(np.einsum("ij,ij->j", V, graph @ V) @ values)
        history.append(-beta * with_graph - (1.0 - beta) * float(scores[selected].sum()))
        converged = np.array_equal(selected, previous)
        G = blended_kernel(graph, X[:, selected], beta)
    return DGUFSResult(scores, values, V, np.array(history), converged)


def blended_kernel(graph: sp.csr_array, X: FloatArray, beta: float) -> FloatArray:
    """The blend of S and R(XX'); R ignores the factor in H, and makes equal entries zero."""
    kernel = X @ X.T
    off = ~np.eye(len(kernel), dtype=bool)
    low, high = float(kernel[off].min()), float(kernel[off].max())
    is_flat = high - low <= 1e-12 * max(abs(high), abs(low))
    weight = 0.0 if is_flat else (1.0 - beta) / (high - low)
    blended = weight * (kernel - low)
    np.fill_diagonal(blended, 0.0)
    return np.asarray(blended + beta * graph)


def leading_part(G: sp.csr_array | FloatArray, n_clusters: int) -> tuple[FloatArray, FloatArray]:
    """Eigenpairs of the positive semi-definite matrix of rank ``n_clusters`` nearest to G."""
    values, vectors = leading_pairs(as_array(G), min(n_clusters, G.shape[0]))
    return values[values > 0], vectors[:, values > 0]


@dataclass(eq=False, repr=False, kw_only=True)
class DGUFS(Rival):
    """Dependence guided unsupervised feature selection.

    Chooses m features and a cluster kernel L of the samples (samples x samples). L agrees with a
    neighbour graph S and, by the Hilbert-Schmidt independence criterion, with the features chosen::

        minimise  -beta Tr(S L) - (1 - beta) Tr(Y' Y H L H),   rank(L) = n_clusters,

    Y being the table with all but m features set to zero (Guo and Zhu, AAAI 2018). The solver is
    not the authors'.

    Parameters
    ----------
    {n_features_refit}
    n_clusters : int, default=5
        Rank of L. Capped, with a warning, at the number of samples.
    {n_neighbors}
    beta : float in (0, 1], default=0.5
        Weight of the graph against the dependence on the features.
    max_iter : int, default=100
        Maximum number of passes; two to four are usual.
    {max_correlation}

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        f' H L H f of every feature; higher is better.
    {fitted}
    {run}
        It converges if a step does not change the selection; on few tables it ends in a cycle.

    Examples
    --------
    >>> from keepers import DGUFS, datasets
    >>> DGUFS(50, n_clusters=4).fit(datasets.load("srbct").X).converged_
    True
    """

    score_means = "how much the feature depends on the groups that were found"

    depends_on_k = True
    why_not_sparse = "its kernels are those of centred columns, which have no zeros."
    parameter_rules: ClassVar = {"beta": positive(1.0)}

    n_clusters: int = 5
    n_neighbors: int = 5
    beta: float = 0.5
    max_iter: int = 100

    def score_features(self, table: MemoryTable) -> FloatArray:
        n_samples, n_usable = table.X.shape
        n_clusters = cap_clusters(self.n_clusters, n_samples)
        self.refuse_past_memory(table, of_samples=4)
        graph = binary_graph(table.X, cap_neighbors(self.n_neighbors, n_samples))
        result = solve_dgufs(
            self.centred_values(table),
            graph,
            min(self.n_features_to_select_, n_usable),
            n_clusters,
            beta=self.beta,
            max_iter=self.max_iter,
        )
        self.store_run(
            result,
            f"The selection was still changing after max_iter={self.max_iter} passes. Raise "
            "max_iter; if it changes in a cycle, another beta or n_clusters may help.",
        )
        return table.to_all_columns(result.scores)
