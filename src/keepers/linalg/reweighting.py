"""Row-sparse W by reweighting: regressions (NDFS, JELSR) and projections (UDFS, SOGFS).

A penalty gamma sum_j r_j, r_j = sqrt(|w_j|^2 + eps), is bounded by a quadratic with the weights
1 / (2 r_j) of the last step. Each step minimises the bound, so the objective never rises.

**Regressions** on one table, again and again, with a weight of its own for every feature:

    W = argmin |X W - Y|^2 + sum_j |w_j|^2 / q_j,      R = Y - X W,      q > 0.

Two forms give the same numbers, and the one with the smaller matrix is taken. Neither matrix has an
eigenvalue below 1, so weights near zero do no harm:

* d <= n: W = s (I + s X'X s)^-1 s X'Y with s = diag(sqrt(q)), X'X being formed once;
* d > n:  R = (I + X diag(q) X')^-1 Y and W = diag(q) X'R.

**Projections** W'W = I that minimise Tr(W'MW) + gamma sum_j r_j: a step takes the smallest
eigenvectors of M + gamma diag(weights). The weights come to spread over ten orders of magnitude. An
eigensolver of the sum would commit an error of eps times the largest; the inverse hardly sees the
heavy rows, and its largest eigenvalues are the wanted ones. M = X'LX is a d x d matrix for d <= n,
and F'F with at most n rows of F for d > n, which takes n x n work.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.blas import dsymv
from scipy.linalg.lapack import dpotri
from scipy.sparse.linalg import LinearOperator, eigsh

from keepers._protocols import FloatArray
from keepers.linalg.ordering import tilt_ties
from keepers.linalg.spectrum import squared_row_norms

Product = Callable[[FloatArray], FloatArray]

EPS = float(np.finfo(float).eps)
# Squared row norms up to this share of the largest are rounding noise.
NOISE = 1e-12


class WeightedRidge:
    """The table of the regressions: `at` factorises them for one choice of weights."""

    def __init__(self, X: FloatArray) -> None:
        self.X = X
        self.n_samples, self.n_features = X.shape
        self._gram = X.T @ X if self.n_features <= self.n_samples else None

    def at(self, q: FloatArray) -> "RidgeFactor":
        """The regressions with weights ``q``."""
        root = np.sqrt(q)
        if self._gram is not None:
            matrix = root[:, np.newaxis] * self._gram * root
        else:
            weighted = self.X * root
            matrix = weighted @ weighted.T
        # The 1 is raised where the rounding of the matrix would exceed it.
        diagonal = np.diag_indices(len(matrix))
        rounding = len(matrix) * EPS * float(matrix[diagonal].max(initial=0.0))
        matrix[diagonal] += max(1.0, rounding)
        cholesky = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
        return RidgeFactor(self.X, q[:, np.newaxis], cholesky)


@dataclass(frozen=True)
class RidgeFactor:
    """Regressions on one table with one choice of weights."""

    X: FloatArray
    q: FloatArray
    cholesky: tuple[FloatArray, bool]
    """The factor of I + s X'X s for d <= n, of I + X diag(q) X' for d > n."""

    def fit(self, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """W and R for a block of n rows."""
        if len(self.q) <= len(self.X):
            root = np.sqrt(self.q)
            W = root * cho_solve(self.cholesky, root * (self.X.T @ Y), check_finite=False)
            return W, Y - self.X @ W
        residual = self.residual(Y)
        return self.q * (self.X.T @ residual), residual

    def residual(self, Y: FloatArray) -> FloatArray:
        """R, without W where that saves work."""
        if len(self.q) <= len(self.X):
            return self.fit(Y)[1]
        return np.asarray(cho_solve(self.cholesky, Y, check_finite=False))


@dataclass(frozen=True)
class RowSparseRegression:
    """The last step of a method that learns regressions and what they predict together."""

    W: FloatArray
    target: FloatArray
    objective: FloatArray
    change: float
    """The relative change in the last step; infinite after one step."""
    converged: bool


@dataclass(frozen=True)
class QuadraticForm:
    """M as a matrix, or as F'F for an F with fewer rows than columns."""

    matrix: FloatArray
    """M or F: its number of rows bounds the rank."""
    is_factor: bool = False

    def diagonal(self) -> FloatArray:
        if self.is_factor:
            return np.asarray(np.einsum("ij,ij->j", self.matrix, self.matrix))
        return self.matrix.diagonal()

    def trace(self, W: FloatArray) -> float:
        """Tr(W'MW)."""
        images = self.matrix @ W
        return float(np.vdot(images, images if self.is_factor else W))

    def inverse(self, b: FloatArray) -> Product:
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
    nearly constant and M has a null space, the eigenvalues wanted differ in the seventh digit, and
    only their distance to sigma tells them apart. A change of rank r moves eigenvalues by at most
    r places, so the last one wanted is at most the entry of a that is r places further.

    Lanczos can miss copies of a multiple eigenvalue, as identical columns make them: it runs again
    outside of what it found, until it finds nothing larger there.
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
    """|w_j|^2; they sum to the number of columns."""
    objective: FloatArray
    converged: bool

    @property
    def n_active(self) -> int:
        """Rows whose squared norm is not rounding noise."""
        return int(np.count_nonzero(self.squared_norms > NOISE * self.squared_norms.max()))

    def scores(self, cost: FloatArray) -> FloatArray:
        """Squared norms; rows that are rounding noise stand in the order of their cost M_jj.

        These get 1e-12 of the largest times m / (m + M_jj), m being the mean cost: positive, below
        the score of every active row, and larger for cheaper features.
        """
        noise = NOISE * self.squared_norms.max()
        positive = np.maximum(cost, 0.0)
        mean = max(float(positive.mean()), float(np.finfo(float).tiny))
        low = noise * (mean / (mean + positive))
        return np.where(self.squared_norms > noise, self.squared_norms, low)


def first_weights(deviations: FloatArray) -> FloatArray:
    """Ones, tilted towards features of large standard deviation s, then of low index.

    Where M has a null space wider than W (always for d > n), the first W would be an arbitrary part
    of it. The tilt, 1e-6 * mean(s) / s_j, decides; it is at most 1, or it would replace the
    objective where deviations are more than six decades apart.
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

    A negative ``tol`` makes exactly ``max_iter`` steps. ``rng`` starts the eigensolver.
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
