"""The ranking without labels that AutoSelector has to match: smoothness over four graphs.

1.  Of more than 1,000 rows, 1,000 are drawn; constant columns are left out.
2.  The columns, centred (A) and at variance 1 (B), each give two clouds of samples: the leading
    left singular vectors, as they are and times the fourth root of their eigenvalues. As many are
    taken as stand out from noise. Every sample is joined to its 7 nearest in each cloud.
3.  A column is smooth if joined samples agree on it: 1 minus its Laplacian score.
4.  A column carries structure if shuffled rows are rarely as smooth (false discovery rate 1 %).
5.  Where fewer than half of the columns do, each fifth of them is scored on graphs made from the
    others, twice, the second time with columns weighted by their smoothness.
6.  Columns that carry structure are taken one after the other, each by its smoothness times what
    the columns taken leave of it: 1 minus the largest squared correlation. The rest follow by
    smoothness.

It stands here, in as few lines as it takes, so that `study_autoselector.py` can compare with it.
"""

from dataclasses import KW_ONLY, dataclass

import numpy as np
import scipy.sparse as sp

from keepers.extending import (
    FeatureCount,
    MemoryTable,
    RankingSelector,
    Seed,
    nearest_neighbours,
    union_graph,
)
from keepers.linalg.spectrum import edge_of_scatter

MOST_ROWS, MOST_COMPONENTS = 1000, 100
NEIGHBOURS, NEIGHBOURS_OF_FOLDS = 7, 10
FOLDS, ROUNDS, LEVEL = 5, 2, 0.01


@dataclass(eq=False, repr=False)
class PublishedRecipe(RankingSelector):
    """Smooth columns that do not repeat each other; ``top(k)`` serves every k up to the fit's.

    ``structure_found_`` is False if step 4 finds no column, ``n_carrying_`` is how many it finds,
    and ``used_folds_`` whether step 5 was entered.
    """

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    random_state: Seed = None

    def score_features(self, table: MemoryTable) -> np.ndarray:
        """The place in the ranking, counted from behind."""
        rng = self.random_generator()
        A, varying = _drawn_and_centred(table, rng)
        B = A / A.std(axis=0)
        graph = neighbour_graph(A, B, NEIGHBOURS)
        smooth = smoothness(graph, B)
        carries = discoveries(smooth, shuffled_smoothness(graph, B, n_shuffles(B), rng))
        self.structure_found_ = bool(carries.any())
        self.n_carrying_ = int(carries.sum())
        self.used_folds_ = 2 * self.n_carrying_ < len(carries)
        if self.used_folds_:
            smooth, carries = score_by_folds(A, B, rng)
        order = varying[rank(smooth, carries, B, self.n_features_to_select_)]
        places = np.zeros(table.X.shape[1])
        places[order] = np.arange(len(order), 0, -1)
        return table.to_all_columns(places)


def _drawn_and_centred(
    table: MemoryTable, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Step 1: the columns that vary in the rows drawn, and which of the table's they are."""
    X = table.in_double()
    n_samples = X.shape[0]
    if n_samples > MOST_ROWS:
        rows = np.sort(rng.choice(n_samples, MOST_ROWS, replace=False))
        X = X.tocsr()[rows] if sp.issparse(X) else X[rows]
    X = X.toarray() if sp.issparse(X) else X
    varying = np.flatnonzero(X.max(axis=0) > X.min(axis=0))
    return X[:, varying] - X[:, varying].mean(axis=0), varying


def neighbour_graph(A: np.ndarray, B: np.ndarray, n_neighbors: int) -> sp.csr_array:
    """Step 2: the sum of four adjacency matrices."""
    n_neighbors = min(n_neighbors, len(A) - 1)
    points = (cloud for M in (A, B) for cloud in clouds(M))
    return sum(union_graph(nearest_neighbours(cloud, n_neighbors)) for cloud in points)


def clouds(M: np.ndarray) -> list[np.ndarray]:
    """The samples in the components that stand out from noise, half whitened and whitened."""
    n_samples, n_features = M.shape
    if n_samples <= n_features:
        values, vectors = np.linalg.eigh(M @ M.T)
    else:
        values, loadings = np.linalg.eigh(M.T @ M)
        vectors = M @ loadings
        vectors /= np.maximum(np.linalg.norm(vectors, axis=0), np.finfo(float).tiny)
    values, vectors = values[::-1], vectors[:, ::-1]
    above = np.sum(values > edge_of_scatter(np.sum(M**2, axis=0), n_samples))
    real = np.sum(values > 1e-12 * values[0])
    width = min(max(above, 2), MOST_COMPONENTS, n_samples - 1, real)
    values, vectors = values[:width], vectors[:, :width]
    return [vectors * (values / values[0]) ** 0.25, vectors]


def smoothness(graph: sp.csr_array, X: np.ndarray) -> np.ndarray:
    """Step 3: z'Wz / z'Dz of every column, z freed of its mean weighted by the degrees D."""
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    z = X - degrees @ X / degrees.sum()
    return np.einsum("ij,ij->j", z, graph @ z) / np.einsum("i,ij,ij->j", degrees, z, z)


def n_shuffles(X: np.ndarray) -> int:
    """How often the rows are shuffled: some 20,000 smoothnesses in all."""
    return int(np.clip(20000 / X.shape[1], 2, 100))


def shuffled_smoothness(
    graph: sp.csr_array, X: np.ndarray, times: int, rng: np.random.Generator
) -> np.ndarray:
    """Smoothnesses of columns whose rows have nothing to do with the graph."""
    return np.concatenate([smoothness(graph, X[rng.permutation(len(X))]) for _ in range(times)])


def discoveries(smooth: np.ndarray, pool: np.ndarray) -> np.ndarray:
    """Step 4: columns above the shuffled ones, after Benjamini and Hochberg."""
    at_least = len(pool) - np.searchsorted(np.sort(pool), smooth, side="left")
    p = (1 + at_least) / (1 + len(pool))
    allowed = LEVEL * np.arange(1, len(p) + 1) / len(p)
    passed = np.flatnonzero(np.sort(p) <= allowed)
    return p <= np.sort(p)[passed[-1]] if len(passed) else np.zeros(len(p), dtype=bool)


def score_by_folds(
    A: np.ndarray, B: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Step 5: no column has a say in the graphs by which it is scored.

    What carries structure is decided in the first round: in the second, the weights know it.
    """
    n_features = A.shape[1]
    weights = np.ones(n_features)
    smooth = np.zeros(n_features)
    for round_ in range(ROUNDS):
        fold = rng.permutation(n_features) % FOLDS
        pool = []
        for which in range(FOLDS):
            scored, others = fold == which, fold != which
            if not scored.any():
                continue
            kept = weights[others]
            graph = neighbour_graph(A[:, others] * kept, B[:, others] * kept, NEIGHBOURS_OF_FOLDS)
            smooth[scored] = smoothness(graph, B[:, scored])
            if round_ == 0:
                pool.append(shuffled_smoothness(graph, B[:, scored], n_shuffles(B), rng))
        if round_ == 0:
            carries = discoveries(smooth, np.concatenate(pool))
        weights = np.maximum(smooth, 0.0) + 1e-6
    return smooth, carries


def rank(smooth: np.ndarray, carries: np.ndarray, B: np.ndarray, n_wanted: int) -> np.ndarray:
    """Step 6: the columns in order, the first ``n_wanted`` freed of what repeats another."""
    left = np.where(carries, np.maximum(smooth, 0.0), -1.0)
    largest = np.zeros(len(smooth))
    order: list[int] = []
    for _ in range(min(n_wanted, int(carries.sum()))):
        value = np.where(left >= 0, left * (1.0 - largest), -np.inf)
        best = int(np.argmax(value))
        order.append(best)
        left[best] = -1.0
        largest = np.maximum(largest, np.minimum((B.T @ B[:, best] / len(B)) ** 2, 1.0))
    rest = np.lexsort((-smooth, ~carries))
    return np.concatenate([np.array(order, dtype=int), rest[~np.isin(rest, order)]])
