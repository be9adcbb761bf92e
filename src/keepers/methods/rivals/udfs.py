"""UDFS: unsupervised discriminative feature selection (Yang, Shen, Ma, Huang and Zhou, IJCAI 2011).

The objective is in the docstring of `UDFS`. Lbar adds up, over every sample and its k nearest
neighbours (a patch of k + 1 rows, centred to Z_i), how badly a linear map separates these rows:

    Lbar = sum_i P_i' H B_i H P_i,      B_i = (Z_i Z_i' + lambda I)^-1,      H = I - 11'/(k + 1),

P_i picking the rows of the patch. X' Lbar X would cancel (one far outlier left nothing of it), so
Lbar is never formed. With Z_i = U diag(sigma) V',

    M = sum_i F_i' F_i,      F_i = diag(1 / sqrt(sigma^2 + lambda)) U' Z_i,

where no row of F_i is longer than 1. Then W is found by reweighting, as in SOGFS: the penalty
gamma sum_j r_j, r_j = sqrt(|w_j|^2 + eps), is bounded by a quadratic with the weights 1 / (2 r_j)
of the last step, and a step takes the smallest eigenvectors of M + gamma diag(weights), so the
objective never rises. The weights come to spread over ten orders of magnitude, and an eigensolver
of the sum would commit an error of eps times the largest. The inverse hardly sees the heavy rows,
and its largest eigenvalues are the wanted ones. M is a d x d matrix for d <= n, and F'F with at
most n rows of F for d > n, which takes n x n work.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from scipy.linalg.blas import dsymv
from scipy.linalg.lapack import dpotri
from scipy.sparse.linalg import LinearOperator, eigsh

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.ordering import tilt_ties
from keepers.linalg.scatter import BLOCK_BYTES, row_blocks
from keepers.linalg.spectrum import squared_row_norms
from keepers.methods.parameters import Seed, cap_columns, one_of, positive
from keepers.methods.reading import MemoryTable
from keepers.methods.rivals import EPS, Rival

# Squared row norms up to this share of the largest are rounding noise.
NOISE = 1e-12


def local_scatter(X: FloatArray, neighbours: IndexArray, regularization: float) -> FloatArray:
    """M of centred data X, from the n x k list of neighbours."""
    n_samples, n_features = X.shape
    patches = np.column_stack([np.arange(n_samples), neighbours])
    M = np.zeros((n_features, n_features))
    # Blocks much smaller than M would spend their time on adding it up.
    n_bytes = max(BLOCK_BYTES, M.nbytes // 2)
    for rows in row_blocks(n_samples, patches.shape[1] * n_features, n_bytes):
        F = _patch_factors(X[patches[rows]], regularization).reshape(-1, n_features)
        M += F.T @ F
    return M


def _patch_factors(patches: FloatArray, regularization: float) -> FloatArray:
    """F of every patch of a stack (b x (k + 1) x d); directions lost to rounding are zero."""
    width = patches.shape[1]
    Z = patches - patches.mean(axis=1, keepdims=True)
    spectrum, vectors = np.linalg.eigh(Z @ Z.transpose(0, 2, 1))
    eps = width * EPS
    rounding = eps**2 * np.einsum("bij,bij->b", patches, patches)[:, np.newaxis]
    kept = spectrum > np.maximum(eps * spectrum[:, -1:], rounding)
    factors = np.where(kept, 1.0 / np.sqrt(np.maximum(spectrum, 0.0) + regularization), 0.0)
    F = factors[:, :, np.newaxis] * (vectors.transpose(0, 2, 1) @ Z)
    return np.asarray(F[:, 1:])  # Z'1 = 0: the first is always lost


@dataclass(frozen=True)
class QuadraticForm:
    """M as a matrix, or as F'F for an F with fewer rows than columns."""

    matrix: FloatArray
    is_factor: bool = False

    def diagonal(self) -> FloatArray:
        if self.is_factor:
            return np.asarray(np.einsum("ij,ij->j", self.matrix, self.matrix))
        return self.matrix.diagonal()

    def trace(self, W: FloatArray) -> float:
        """Tr(W'MW)."""
        images = self.matrix @ W
        return float(np.vdot(images, images if self.is_factor else W))

    def inverse(self, b: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Products with (M + diag(b))^-1; by Woodbury's formula if M = F'F.

        Then it is diag(1/b) - T'T with T = R^-1 F diag(1/b) and R R' = I + F diag(1/b) F'.
        """
        if not self.is_factor:
            factor, _ = cho_factor(self.matrix + np.diag(b), lower=True, overwrite_a=True)
            triangle, _ = dpotri(factor, lower=1)
            return lambda v: np.asarray(dsymv(1.0, triangle, v, lower=1))
        T = self.matrix / b
        if len(T):  # SciPy 1.12 refuses an empty system
            R = np.linalg.cholesky(T @ self.matrix.T + np.eye(len(T)))
            T = solve_triangular(R, T, lower=True, overwrite_b=True)
        return lambda v: v / b - T.T @ (T @ v)


def row_coordinates(X: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    """Coordinates (n x n) and an orthonormal basis (d x n) of the rows; X itself for d <= n."""
    if X.shape[1] <= X.shape[0]:
        return X, None
    basis, triangle = np.linalg.qr(X.T)
    return triangle.T, basis


def form_in_coordinates(middle: FloatArray, basis: FloatArray | None) -> QuadraticForm:
    """The positive semi-definite form that is ``middle`` in the coordinates of the basis."""
    middle = (middle + middle.T) / 2
    if basis is None:
        return QuadraticForm(middle)
    spectrum, rotation = np.linalg.eigh(middle)
    kept = spectrum > len(spectrum) * EPS * max(spectrum[-1], 0.0)
    factor = (rotation[:, kept] * np.sqrt(spectrum[kept])).T @ basis.T
    return QuadraticForm(factor, is_factor=True)


def smallest_eigenvectors(
    form: QuadraticForm, a: FloatArray, width: int, rng: np.random.Generator
) -> FloatArray:
    """The ``width`` smallest eigenvectors of M + diag(a), for a > 0.

    They are the largest of (M + diag(a) - sigma)^-1, sigma being just below min(a): where a is
    nearly constant and M has a null space, the eigenvalues wanted differ in the seventh digit. A
    change of rank r moves eigenvalues by at most r places, so the last one wanted is at most the
    entry of a that is r places further. Lanczos can miss copies of a multiple eigenvalue, as
    identical columns make them: it runs again outside of what it found, until nothing is larger.
    """
    size = len(a)
    if width == size:  # all of them; M, zero but for rounding, may have no inverse
        return np.eye(width)
    above = a - a.min()
    place = min(width + len(form.matrix), size) - 1
    distance = min(0.01 * float(np.partition(above, place)[place]), float(a.min()))
    # Where M is zero and a constant, the distance is that of rounding.
    rounding = size * EPS * float(form.diagonal().sum() + a.max())
    product = form.inverse(above + max(distance, rounding))

    def largest(outside: FloatArray, count: int, tol: float) -> tuple[FloatArray, FloatArray]:
        def project(v: FloatArray) -> FloatArray:
            return np.asarray(v - outside @ (outside.T @ v))

        operator = LinearOperator(
            (size, size), matvec=lambda v: project(product(project(v.ravel()))), dtype=float
        )
        return eigsh(operator, count, v0=project(rng.standard_normal(size)), tol=tol)

    values, vectors = largest(np.zeros((size, 0)), width, 0.0)
    while True:
        last = int(np.argmin(values))
        # Half the digits of a vector are all digits of its eigenvalue.
        if largest(vectors, 1, 1e-7)[0][0] <= values[last] * (1.0 + 1e-9):
            return np.asarray(vectors[:, np.argsort(-values)])
        missed, vector = largest(vectors, 1, 0.0)
        values[last], vectors[:, last] = missed[0], vector[:, 0]


@dataclass(frozen=True)
class RowSparseProjection:
    """The last step of the reweighting."""

    W: FloatArray
    squared_norms: FloatArray
    objective: FloatArray
    converged: bool

    @property
    def n_active(self) -> int:
        """Rows whose squared norm is not rounding noise."""
        return int(np.count_nonzero(self.squared_norms > NOISE * self.squared_norms.max()))

    def scores(self, cost: FloatArray) -> FloatArray:
        """Squared norms; rows of rounding noise come last, the cheapest M_jj first."""
        noise = NOISE * self.squared_norms.max()
        positive = np.maximum(cost, 0.0)
        mean = max(float(positive.mean()), float(np.finfo(float).tiny))
        low = noise * (mean / (mean + positive))
        return np.where(self.squared_norms > noise, self.squared_norms, low)


def first_weights(deviations: FloatArray) -> FloatArray:
    """Ones, tilted towards features of large standard deviation s, then of low index.

    Where M has a null space wider than W (always for d > n), the tilt decides which part of it the
    first W is. It is at most 1, or it would replace the objective where deviations are more than
    six decades apart.
    """
    tilt = np.minimum(1e-6 * (deviations.mean() / deviations), 1.0)
    return tilt_ties(1.0 + tilt, deviations)


def row_sparse_projection(
    form: QuadraticForm,
    gamma: float,
    width: int,
    weights: FloatArray,
    rng: np.random.Generator,
    *,
    max_iter: int,
    tol: float,
    is_relative: bool = True,
) -> RowSparseProjection:
    """Reweight from ``weights`` until a step lowers the objective by no more than ``tol``.

    A negative ``tol`` makes exactly ``max_iter`` steps.
    """

    def smoothed_norms(W: FloatArray) -> FloatArray:
        return np.asarray(np.sqrt(squared_row_norms(W) + EPS))

    def objective(W: FloatArray) -> float:
        return form.trace(W) + gamma * float(smoothed_norms(W).sum())

    W = smallest_eigenvectors(form, gamma * weights, width, rng)
    history = [objective(W)]
    converged = False
    while len(history) < max_iter and not converged:
        weights = 0.5 / smoothed_norms(W)
        candidate = smallest_eigenvectors(form, gamma * weights, width, rng)
        history.append(objective(candidate))
        scale = abs(history[-1]) if is_relative else 1.0
        converged = history[-2] - history[-1] <= tol * scale
        if converged and history[-1] > history[-2]:  # by rounding: the step before was the last
            history.pop()
        else:
            W = candidate
    return RowSparseProjection(W, squared_row_norms(W), np.array(history), converged)


@dataclass(eq=False, repr=False, kw_only=True)
class UDFS(Rival):
    """Unsupervised discriminative feature selection.

    Finds an orthonormal W (features x clusters) under which every sample and its nearest
    neighbours stay easy to tell apart, while a penalty on the norms of its rows drives most of
    them to zero::

        minimise  Tr(W' M W) + gamma * sum_j |w_j|   subject to W'W = I.

    M = X' Lbar X adds up the local scatter of all neighbourhoods. A feature's score is the squared
    norm of its row. The method is that of Yang, Shen, Ma, Huang and Zhou (IJCAI 2011).

    Parameters
    ----------
    {n_features_to_select}
    n_clusters : int, default=5
        Columns of W. Capped, with a warning, below the number of columns that vary.
    {n_neighbors}
    gamma : "scale" or float, default="scale"
        Weight of the penalty, on the scale of M; "scale" means 0.1 times the mean of its diagonal.
    regularization : float, default=1000.0
        The paper's lambda: added to the local scatter before it is inverted, in the unit of the
        squared distances between neighbours.
    max_iter : int, default=100
        Maximum number of eigenproblems.
    tol : float, default=1e-8
        The iteration ends when a step lowers the objective by no more than this share.
    {max_correlation}
    {random_state}

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Squared row norms of W; higher is better. Norms that are rounding noise, up to 1e-12 of the
        largest, are ordered by M_jj.
    {fitted}
    {run}
    n_active_ : int
        Features whose score is not rounding noise.
    gamma_ : float
        The penalty weight used.

    Examples
    --------
    >>> from keepers import UDFS, datasets
    >>> UDFS(3, n_clusters=2, gamma=0.1).fit(datasets.load("digits").X[:, 2:7]).converged_
    True
    """

    why_not_sparse = "it works with centred neighbourhoods, which have no zeros."
    parameter_rules: ClassVar = {
        "gamma": one_of("scale") | positive(),
        "regularization": positive(),
    }

    n_clusters: int = 5
    n_neighbors: int = 5
    gamma: float | str = "scale"
    regularization: float = 1000.0
    max_iter: int = 100
    tol: float = 1e-8
    random_state: Seed = None

    def score_features(self, table: MemoryTable) -> FloatArray:
        n_clusters = cap_columns("n_clusters", self.n_clusters, table.X.shape[1])
        self.refuse_past_memory(table, tables=4, of_side=2)
        values = self.centred_values(table)
        neighbours = self.list_neighbours(values)
        coordinates, basis = row_coordinates(values)
        M = local_scatter(coordinates, neighbours.indices, float(self.regularization))
        form = form_in_coordinates(M, basis)
        scale = float(form.diagonal().mean()) or 10.0  # 0: all neighbours coincide
        self.gamma_ = 0.1 * scale if self.gamma == "scale" else float(self.gamma)
        with one_blas_thread_if_small(min(values.shape)):
            result = row_sparse_projection(
                form,
                self.gamma_,
                n_clusters,
                first_weights(np.sqrt(table.moments.variance)),
                self.random_generator(),
                max_iter=self.max_iter,
                tol=self.tol,
            )
        self.store_run(
            result,
            f"The objective was still falling after max_iter={self.max_iter} steps. Raise "
            "max_iter or tol.",
        )
        self.warn_of_noise(result.n_active)
        return table.to_all_columns(result.scores(form.diagonal()))
