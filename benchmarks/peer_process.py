"""One peer on one table, in a process of its own: what benchmarks/peers.py starts.

python benchmarks/peer_process.py PEER TABLE K M SECONDS

A peer is a function of (X, k, m) that returns the work to be timed; imports, and objects that its
users have anyway, are made before it returns and are not timed. The work returns the indices of
the features kept, best first where the peer has an order.
"""

import json
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

# A covariance of 50,000 features has 20 GB: a peer that asks for it gets a MemoryError, which is
# recorded, and does not drive the machine out of memory.
MEMORY_LIMIT = 10 * 10**9
SHORT = 2.0  # seconds; below it a run is repeated, and the median counts
REPEATS = 5

Work = Callable[[], np.ndarray]


def best_rows(loadings: np.ndarray, k: int) -> np.ndarray:
    """At most k features with a loading, by the norm of their loadings (features x components)."""
    norms = np.linalg.norm(loadings, axis=1)
    order = np.argsort(-norms, kind="stable")[:k]
    return order[norms[order] > 0]


def spcafs(X: Any, k: int, m: int) -> Work:
    """Ours."""
    from keepers import SPCAFS

    return lambda: SPCAFS(k, n_components=m, random_state=0).fit(X).top(k).indices


def sparse_pca(X: np.ndarray, k: int, m: int) -> Work:
    """scikit-learn's default settings."""
    from sklearn.decomposition import SparsePCA

    return lambda: best_rows(SparsePCA(m, random_state=0).fit(X).components_.T, k)


def mini_batch_sparse_pca(X: np.ndarray, k: int, m: int) -> Work:
    """scikit-learn's default settings."""
    from sklearn.decomposition import MiniBatchSparsePCA

    return lambda: best_rows(MiniBatchSparsePCA(m, random_state=0).fit(X).components_.T, k)


def fastcan(X: np.ndarray, k: int, m: int) -> Work:
    """Without labels as its user guide shows it: the target is the principal components of X."""
    from fastcan import FastCan
    from sklearn.decomposition import PCA

    def select() -> np.ndarray:
        target = PCA(m, random_state=0).fit_transform(X)
        return FastCan(k, verbose=0).fit(X, target).indices_

    return select


def cur(X: np.ndarray, k: int, m: int, recompute_every: int = 1) -> Work:
    """scikit-matter's default: the importance is computed anew after every feature."""
    from skmatter.feature_selection import CUR

    return lambda: CUR(n_to_select=k, k=m, recompute_every=recompute_every).fit(X).selected_idx_


def cur_once(X: np.ndarray, k: int, m: int) -> Work:
    """scikit-matter, importance computed once: the leverage scores of classical CUR."""
    return cur(X, k, m, recompute_every=0)


def skfeature_graph(X: np.ndarray) -> Any:
    """The graph of five neighbours, as in benchmarks/compared.py."""
    from skfeature.utility.construct_W import construct_W

    options = {"neighbor_mode": "knn", "k": 5, "weight_mode": "heat_kernel"}
    # t scales with the squared distances, or all weights would be zero: twice the variance.
    return construct_W(X, metric="euclidean", t=2 * float(X.var(axis=0).sum()), **options)


def skfeature_laplacian(X: np.ndarray, k: int, m: int) -> Work:
    """The graph is part of the work."""
    from skfeature.function.similarity_based.lap_score import lap_score

    return lambda: lap_score(X, W=skfeature_graph(X), mode="index")[:k]


def skfeature_mcfs(X: np.ndarray, k: int, m: int) -> Work:
    """The graph is part of the work; clusters are components plus one, as in the SPCAFS paper."""
    from skfeature.function.sparse_learning_based.MCFS import mcfs

    def select() -> np.ndarray:
        graph = skfeature_graph(X)
        return mcfs(X, n_selected_features=k, W=graph, n_clusters=m + 1, mode="index")[:k]

    return select


def abess(X: np.ndarray, k: int, m: int) -> Work:
    """k/m features in each of m components, rounded up, of which at most k are kept.

    Given X with fewer samples than features, abess 0.4.11 computes nothing and returns ones; given
    the covariance, it refuses eigenvalues that rounding has made negative. So it gets the
    covariance with a ridge that is too small to change the choice, which is part of the work.
    """
    from abess.decomposition import SparsePCA

    sizes = np.zeros((-(-k // m), m), dtype=int)
    sizes[-1] = 1  # the only support size that is tried
    n, d = X.shape

    def select() -> np.ndarray:
        model = SparsePCA(support_size=sizes)
        if n >= d:
            model.fit(X, number=m)
        else:
            covariance = np.cov(X.T)
            covariance = (covariance + covariance.T) / 2
            covariance[np.diag_indices(d)] += 1e-9 * np.trace(covariance)
            model.fit(Sigma=covariance, number=m)
        return best_rows(np.reshape(model.coef_, (d, -1)), k)

    return select


def scanpy_genes(X: sp.csr_array, k: int, m: int, flavor: str = "seurat") -> Work:
    """highly_variable_genes on logarithms; the AnnData object is there already."""
    import anndata
    import scanpy

    cells = anndata.AnnData(sp.csr_matrix(X))
    cells.uns["log1p"] = {"base": None}  # as scanpy.pp.log1p leaves it

    def select() -> np.ndarray:
        found = scanpy.pp.highly_variable_genes(cells, n_top_genes=k, flavor=flavor, inplace=False)
        return np.flatnonzero(found["highly_variable"])

    return select


PEERS: dict[str, Callable[..., Work]] = {
    "keepers": spcafs,
    "SparsePCA": sparse_pca,
    "MiniBatchSparsePCA": mini_batch_sparse_pca,
    "fastcan": fastcan,
    "CUR": cur,
    "CUR once": cur_once,
    "LaplacianScore": skfeature_laplacian,
    "MCFS": skfeature_mcfs,
    "abess": abess,
    "scanpy": scanpy_genes,
}


def load(path: Path) -> Any:
    """A dense or sparse table."""
    return sp.csr_array(sp.load_npz(path)) if path.suffix == ".npz" else np.load(path)


def measure(work: Work, limit: int) -> tuple[list[float], np.ndarray]:
    """Seconds of one run, or of several if it is short, and the features kept.

    The alarm has no handler on purpose: it ends the process also inside compiled code.
    """
    taken: list[float] = []
    while not taken or (taken[0] < SHORT and len(taken) < REPEATS):
        signal.alarm(limit)
        began = time.perf_counter()
        kept = work()
        taken.append(time.perf_counter() - began)
        signal.alarm(0)
    return taken, kept


def main(peer: str, table: str, k: str, m: str, limit: str) -> None:
    """Print seconds and features as JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    for name, kind in (("float", float), ("int", int), ("bool", bool)):
        if not hasattr(np, name):  # skfeature uses names that NumPy has dropped
            setattr(np, name, kind)
    X = load(Path(table))
    # Code that is compiled on first use (scanpy's) and threads that are started are not timed.
    PEERS[peer](X[:60, :200], 10, 2)()
    taken, kept = measure(PEERS[peer](X, int(k), int(m)), int(limit))
    print(json.dumps({"seconds": taken, "kept": [int(index) for index in kept]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
