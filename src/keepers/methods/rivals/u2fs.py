"""U2FS: backward elimination by utility (Villa, Mundanad Narayanan, Van Huffel, Bertrand, Varon).

1. Embed: for a graph S of the samples with degrees D, E = D^1/2 [u_2 ... u_{c+1}], u_i being the
   leading eigenvectors of D^-1/2 S D^-1/2 but the trivial one. 1'E = 0.
2. Remove, one at a time, the feature with the smallest utility: by how much the error of the least
   squares fit of E by the remaining features rises without it. With R = X'X/n, B = X'E/n,
   K = R + delta I and w = K^-1 B,

       utility of j = |w_j|^2 / (K^-1)_jj,

   and K^-1 of the others follows by one step of elimination. delta = 0 if R has full rank, else
   1e-5 times its sixth eigenvalue (or the last positive one).

Of utilities that agree to rounding the last column goes first. K^-1 is computed afresh after an
eighth of the removals, and sooner where rounding would show; in between, removals are kept as a
factor P, K^-1 - PP'. For more features than samples (delta > 0), K^-1 = (I - Z'M Z) / delta with
M = (delta I + ZZ')^-1 and Z the samples in their r principal coordinates, over sqrt(n): no d x d
matrix is formed.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, eigvalsh

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.graph import leading_eigenvectors
from keepers.linalg.ordering import best_first, first_smallest
from keepers.linalg.spectrum import squared_row_norms
from keepers.methods.neighbours import full_heat_graph
from keepers.methods.parameters import Seed, cap_clusters
from keepers.methods.reading import MemoryTable
from keepers.methods.rivals import EPS, Rival

# The rounding of an entry of the inverse stays what it was while the entry falls. Everything is
# computed afresh where one has fallen so far.
FALLEN = 1e-6


@dataclass(frozen=True)
class U2FSResult:
    """All features in the order of removal, and the utility of each column when it was removed."""

    removed: IndexArray
    utilities: FloatArray
    delta: float
    rank: int


def remove_by_utility(X: FloatArray, E: FloatArray) -> U2FSResult:
    """Step 2. Columns of X are used as they are: centre them for a fit with an intercept."""
    n_samples, n_features = X.shape
    removed: list[int] = []
    utilities, left = np.empty(n_features), np.arange(n_features)
    if n_features <= n_samples:
        gram, B = X.T @ X / n_samples, X.T @ E / n_samples
        delta, rank = choose_ridge(eigvalsh(gram), n_features)
    else:
        spectrum, vectors = eigh(X @ X.T / n_samples)
        delta, rank = choose_ridge(spectrum, n_features)
        basis = vectors[:, n_samples - rank :] / np.sqrt(n_samples)
        Z, T = basis.T @ X, basis.T @ E
        while len(left) > rank:
            most = min(max(rank, 50), len(left) - rank)
            kept = _remove_some(_by_samples(Z, T, delta), left, most, removed, utilities)
            left, Z = left[kept], Z[:, kept]
        gram, B = Z.T @ Z, Z.T @ T
    gram.flat[:: len(gram) + 1] += delta
    while len(left):
        kept = _remove_some(_by_features(gram, B), left, len(left) // 8 + 1, removed, utilities)
        left, gram, B = left[kept], gram[np.ix_(kept, kept)], B[kept]
    return U2FSResult(np.array(removed, dtype=np.intp), utilities, delta, rank)


def choose_ridge(eigenvalues: FloatArray, n_features: int) -> tuple[float, int]:
    """Delta and the rank, from the eigenvalues of R; zeros may be left out where d > n.

    They are those of the released program.
    """
    falling = np.sort(eigenvalues)[::-1]
    rounding = n_features * EPS * max(float(falling[0]), 0.0)
    rank = int(np.count_nonzero(falling > rounding))
    if rank in (0, n_features):
        return (0.0 if rank else 1.0), rank
    return max(1e-5 * float(falling[min(rank, 6) - 1]), rounding), rank


@dataclass(frozen=True)
class _Inverse:
    """A multiple of K^-1 for the features left."""

    column: Callable[[int], FloatArray]
    diagonal: FloatArray
    least: FloatArray
    """1 / K_jj: no entry of the diagonal is below it, whatever is removed, but by rounding."""
    w: FloatArray


def _by_features(K: FloatArray, B: FloatArray) -> _Inverse:
    """The inverse of K scaled to a unit diagonal; utilities do not change."""
    units = 1.0 / np.sqrt(K.diagonal())
    inverse, w = _invert(K * units * units[:, np.newaxis], B * units[:, np.newaxis])
    return _Inverse(lambda j: inverse[:, j], inverse.diagonal(), np.ones(len(K)), w)


def _by_samples(Z: FloatArray, T: FloatArray, delta: float) -> _Inverse:
    """I - Z'M Z, with w times the root of delta: utilities do not change."""
    M, MT = _invert(Z @ Z.T + delta * np.eye(len(Z)), T)
    MZ = M @ Z
    least = delta / (np.einsum("ij,ij->j", Z, Z) + delta)
    diagonal = np.maximum(1.0 - np.einsum("ij,ij->j", Z, MZ), least)
    # The entry of a feature itself is not read again once it is removed.
    return _Inverse(lambda j: -(Z.T @ MZ[:, j]), diagonal, least, np.sqrt(delta) * (Z.T @ MT))


def _remove_some(
    inverse: _Inverse, features: IndexArray, most: int, removed: list[int], utilities: FloatArray
) -> BoolArray:
    """Remove up to ``most`` features and note them; marks those left."""
    P = np.zeros((len(features), most))
    w, diagonal = inverse.w.copy(), inverse.diagonal.copy()
    kept = np.ones(len(features), dtype=bool)
    for step in range(most):
        found = squared_row_norms(w) / diagonal
        found[~kept] = np.inf
        # Ties differ by less than the rounding of |w_j|, which is relative to the largest one.
        size = np.sqrt(found)
        j = len(size) - 1 - first_smallest(size[::-1], float(size[kept].max()))
        removed.append(int(features[j]))
        utilities[features[j]] = found[j]
        kept[j] = False
        pivot = np.sqrt(diagonal[j])
        P[:, step] = (inverse.column(j) - P[:, :step] @ P[j, :step]) / pivot
        w -= np.outer(P[:, step], w[j] / pivot)
        diagonal = np.maximum(diagonal - P[:, step] ** 2, inverse.least)
        if np.any(diagonal[kept] < FALLEN * inverse.diagonal[kept]):
            break
    return kept


def _invert(K: FloatArray, B: FloatArray) -> tuple[FloatArray, FloatArray]:
    """K^-1 and K^-1 B of a positive definite K; if rounding made it indefinite, of one nearby."""
    mean = float(np.trace(K)) / len(K)
    jitter = 0.0
    while True:
        try:
            factor = cho_factor(K + jitter * np.eye(len(K)) if jitter else K)
        except LinAlgError:
            jitter = max(10.0 * jitter, len(K) * EPS * mean)
        else:
            return cho_solve(factor, np.eye(len(K))), cho_solve(factor, B)


@dataclass(eq=False, repr=False, kw_only=True)
class U2FS(Rival):
    """Utility-based selection: features without which the samples' embedding is predicted worse.

    Embeds the samples by the leading eigenvectors of a heat kernel over all pairs, predicts the
    embedding from all features by least squares, and removes one feature after another: always
    the one whose removal raises the error least (Villa, Mundanad Narayanan, Van Huffel, Bertrand
    and Varon, 2021). Those removed last rank first. Of features that repeat each other, all but
    one are removed early.

    Parameters
    ----------
    {n_features_to_select}
    n_clusters : int, default=5
        Number of eigenvectors. Capped, with a warning, below the number of samples.
    bandwidth : float or None, default=None
        The t of the heat kernel exp(-d^2 / (2 t^2)). None takes the mean distance of all samples.
    {max_correlation}
    {random_state}

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        The place in the order of removal: 1 for the feature removed first; higher is better.
    {fitted}
    embedding_ : array of shape (n_samples, n_vectors)
        The coordinates E that are predicted; its columns sum to zero.
    converged_ : bool
        Whether the eigenvectors reached their tolerance.

    Examples
    --------
    >>> from keepers import U2FS, datasets
    >>> U2FS(20, n_clusters=4).fit_transform(datasets.load("srbct").X).shape
    (83, 20)
    """

    score_means = "the place in the order of removal: the longer a feature was needed, the more"

    why_not_sparse = "it works with centred columns, which have no zeros."

    n_clusters: int = 5
    bandwidth: float | None = None
    random_state: Seed = None

    def score_features(self, table: MemoryTable) -> FloatArray:
        n_samples, n_usable = table.X.shape
        n_vectors = cap_clusters(self.n_clusters, n_samples, spare=1)
        self.refuse_past_memory(table, tables=4, of_side=5, of_samples=3)
        graph = full_heat_graph(table.X, self.bandwidth)
        spectrum = leading_eigenvectors(graph, n_vectors, self.random_generator())
        self.warn_of_eigenvectors(spectrum.converged)
        E = spectrum.root_degrees[:, np.newaxis] * spectrum.vectors
        # The last one of tied features goes.
        order = best_first(np.zeros(n_usable), table.moments.variance)
        values = self.centred_values(table)[:, order]
        with one_blas_thread_if_small(min(values.shape)):
            result = remove_by_utility(values, E)
        places = np.empty(n_usable)
        places[order[result.removed]] = np.arange(1, n_usable + 1)
        self.embedding_ = E
        self.converged_ = spectrum.converged
        return table.to_all_columns(places)
