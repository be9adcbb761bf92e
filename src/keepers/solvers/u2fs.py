"""U2FS: backward elimination by utility (Villa, Mundanad Narayanan, Van Huffel, Bertrand, Varon).

1. Embed: for a graph S of the samples with degrees D, E = D^1/2 [u_2 ... u_{c+1}], u_i being the
   leading eigenvectors of D^-1/2 S D^-1/2 but the trivial one. 1'E = 0.
2. Remove, one at a time, the feature with the smallest utility: by how much the error of the least
   squares fit of E by the remaining features rises without it. With R = X'X/n, B = X'E/n,
   K = R + delta I and w = K^-1 B,

       utility of j = |w_j|^2 / (K^-1)_jj,

   and K^-1 of the others follows by one step of elimination. delta = 0 if R has full rank, else
   1e-5 times its sixth eigenvalue (or the last positive one).

The features removed last are the best. Elimination goes two ways, with the same result:

* Few features: on K^-1 itself, scaled so that K has a unit diagonal; then (K^-1)_jj >= 1 are
  variance inflation factors. Updates are gathered and applied some at a time, as one product.
* More features than samples (delta > 0): K^-1 = (I - Z'M Z) / delta with M = (delta I + Z Z')^-1
  and Z the samples in their r principal coordinates, over sqrt(n). Then w = Z'M T (T: E in these
  coordinates), the utility is delta |w_j|^2 / (1 - z_j'M z_j), and a removal adds a rank-one term
  to M. It costs O(r d) where the inverse would cost O(d^2); no d x d matrix is formed.

Both are computed afresh before rounding shows. Utilities that agree to rounding are ties: the last
of them in the order of the columns goes.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, eigvalsh

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.graph import Graph
from keepers.linalg.graph_spectrum import leading_eigenvectors
from keepers.linalg.ordering import first_smallest
from keepers.linalg.subspace import squared_row_norms

EPS = float(np.finfo(float).eps)
# The released program's: delta relative to one of so many leading eigenvalues of R.
RIDGE_SHARE, RIDGE_EIGENVALUES = 1e-5, 6
# Removals between two fresh starts in the coordinates of the samples, at least.
FEWEST_STEPS = 50
# Removals whose updates of the inverse are applied together.
GATHERED = 32
# The rounding of an entry of the inverse stays what it was while the entry falls. It is computed
# afresh at the end of a block where one has fallen so far, at once where one has fallen further.
FALLEN, FALLEN_FAR = 1e-2, 1e-6


@dataclass(frozen=True)
class UtilityEmbedding:
    """What the features have to predict."""

    E: FloatArray
    """Coordinates of the samples; the columns add up to zero."""
    mu: FloatArray
    """Eigenvalue of every column, falling."""
    converged: bool
    """Whether the eigensolver reached its tolerance."""


@dataclass(frozen=True)
class Ridge:
    """What is added to the diagonal of R, and why."""

    delta: float
    rank: int
    """Eigenvalues of R above rounding."""


@dataclass(frozen=True)
class U2FSResult:
    """The order in which features were removed."""

    removed: IndexArray
    """First the feature that was removed first; all of them, so the last one is the best."""
    utilities: FloatArray
    """Per feature, in the order of the columns: its utility when it was removed."""
    ridge: Ridge


def embed_for_utility(graph: Graph, n_vectors: int, rng: np.random.Generator) -> UtilityEmbedding:
    """Step 1: ``n_vectors`` columns, or as many as the graph has."""
    spectrum = leading_eigenvectors(graph, n_vectors, rng)
    E = spectrum.root_degrees[:, np.newaxis] * spectrum.vectors
    return UtilityEmbedding(E, spectrum.mu, spectrum.converged)


def choose_ridge(eigenvalues: FloatArray, n_features: int) -> Ridge:
    """The delta of step 2, from the eigenvalues of R; zeros may be left out where d > n."""
    falling = np.sort(eigenvalues)[::-1]
    rounding = n_features * EPS * max(float(falling[0]), 0.0)
    rank = int(np.count_nonzero(falling > rounding))
    if rank in (0, n_features):
        return Ridge(0.0 if rank else 1.0, rank)
    delta = RIDGE_SHARE * float(falling[min(rank, RIDGE_EIGENVALUES) - 1])
    return Ridge(max(delta, rounding), rank)


def utilities(X: FloatArray, E: FloatArray, delta: float) -> FloatArray:
    """Of every column of X beside all the others, by one factorisation."""
    n_samples = len(X)
    K, B = _unit_diagonal(X.T @ X / n_samples, X.T @ E / n_samples, delta)
    inverse, w = _invert(K, B)
    return np.asarray(squared_row_norms(w) / inverse.diagonal())


def remove_by_utility(X: FloatArray, E: FloatArray) -> U2FSResult:
    """Step 2. Columns of X are used as they are: centre them for a fit with an intercept."""
    n_samples, n_features = X.shape
    removals = _Removals()
    if n_features <= n_samples:
        gram = X.T @ X / n_samples
        ridge = choose_ridge(eigvalsh(gram), n_features)
        everyone = np.arange(n_features)
        _eliminate(gram, X.T @ E / n_samples, ridge.delta, everyone, removals)
    else:
        spectrum, vectors = eigh(X @ X.T / n_samples)
        ridge = choose_ridge(spectrum, n_features)
        basis = vectors[:, n_samples - ridge.rank :] / np.sqrt(n_samples)
        Z, T = basis.T @ X, basis.T @ E
        left = _remove_by_samples(Z, T, ridge.delta, ridge.rank, removals)
        Z = Z[:, left]
        _eliminate(Z.T @ Z, Z.T @ T, ridge.delta, left, removals)
    removed = np.array(removals.features, dtype=np.intp)
    per_feature = np.empty(n_features)
    per_feature[removed] = removals.utilities
    return U2FSResult(removed, per_feature, ridge)


class _Removals:
    """Features removed so far, and their utilities."""

    def __init__(self) -> None:
        self.features: list[int] = []
        self.utilities: list[float] = []

    def take_least(self, active: IndexArray, found: FloatArray) -> int:
        """Remove the feature of the smallest utility, and tell its place.

        The rounding of |w_j| is relative to the largest one: ties are those that differ by less.
        """
        size = np.sqrt(found)
        largest = float(size.max(where=np.isfinite(size), initial=0.0))
        place = len(size) - 1 - first_smallest(size[::-1], largest)
        self.features.append(int(active[place]))
        self.utilities.append(float(found[place]))
        return place


def _remove_by_samples(
    Z: FloatArray, T: FloatArray, delta: float, stop: int, removals: _Removals
) -> IndexArray:
    """Remove features until ``stop`` are left, by way of M; the features left."""
    active = np.arange(Z.shape[1])
    while len(active) > stop:
        A = Z[:, active]
        squared_lengths = np.einsum("ij,ij->j", A, A)
        G = A @ A.T
        G.flat[:: len(G) + 1] += delta
        M, MT = _invert(G, T)
        w = A.T @ MT
        # 1 - z'Mz = delta (K^-1)_jj is at least delta / K_jj: rounding may not bring it below.
        fewest = delta / (squared_lengths + delta)
        slack = np.maximum(1.0 - np.einsum("ij,ij->j", A, M @ A), fewest)
        kept = np.ones(len(active), dtype=bool)
        for _ in range(min(max(len(M), FEWEST_STEPS), len(active) - stop)):
            found = delta * squared_row_norms(w) / slack
            found[~kept] = np.inf
            j = removals.take_least(active, found)
            image = M @ A[:, j]
            column = A.T @ image
            share = column / slack[j]
            w += np.outer(share, w[j])
            M += np.outer(image, image / slack[j])
            slack = np.maximum(slack - share * column, fewest)
            kept[j] = False
        active = active[kept]
    return active


def _eliminate(
    gram: FloatArray, B: FloatArray, delta: float, features: IndexArray, removals: _Removals
) -> None:
    """Remove all features, by way of the inverse of K; ``gram`` is R, and is overwritten."""
    K, B = _unit_diagonal(gram, B, delta)
    left = np.arange(len(K))
    while len(left):
        inverse, w = _invert(K[np.ix_(left, left)], B[left])
        fresh = inverse.diagonal().copy()
        while len(left) and np.all(inverse.diagonal() >= FALLEN * fresh):
            kept, P = _eliminate_some(inverse, w, fresh, features[left], removals)
            left, fresh, w, P = left[kept], fresh[kept], w[kept], P[kept]
            inverse = inverse[np.ix_(kept, kept)]
            inverse -= P @ P.T


def _eliminate_some(
    inverse: FloatArray,
    w: FloatArray,
    fresh: FloatArray,
    features: IndexArray,
    removals: _Removals,
) -> tuple[IndexArray, FloatArray]:
    """Remove up to `GATHERED` features: the places kept, and P with inverse - PP' the next one.

    ``w`` is brought up to date.
    """
    size = len(inverse)
    P = np.zeros((size, min(GATHERED, size)))
    diagonal = inverse.diagonal().copy()
    kept = np.ones(size, dtype=bool)
    for step in range(P.shape[1]):
        found = squared_row_norms(w) / diagonal
        found[~kept] = np.inf
        j = removals.take_least(features, found)
        pivot = np.sqrt(diagonal[j])
        P[:, step] = (inverse[:, j] - P[:, :step] @ P[j, :step]) / pivot
        w -= np.outer(P[:, step], w[j] / pivot)
        # K has a unit diagonal, so no entry of the inverse's is below 1 but by rounding.
        diagonal = np.maximum(diagonal - P[:, step] ** 2, 1.0)
        kept[j] = False
        if np.any(diagonal[kept] < FALLEN_FAR * fresh[kept]):
            break
    return np.flatnonzero(kept), P


def _unit_diagonal(gram: FloatArray, B: FloatArray, delta: float) -> tuple[FloatArray, FloatArray]:
    """K = gram + delta I and B in units in which the diagonal of K is 1; utilities stay."""
    gram.flat[:: len(gram) + 1] += delta
    units = 1.0 / np.sqrt(gram.diagonal())
    gram *= units
    gram *= units[:, np.newaxis]
    return gram, B * units[:, np.newaxis]


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
