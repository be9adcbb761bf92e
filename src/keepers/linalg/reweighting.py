"""Orthonormal W with few non-zero rows, by reweighting: the step that UDFS and SOGFS share.

    minimise  f(W) = Tr(W'MW) + gamma * sum_j r_j,   r_j = sqrt(|w_j|^2 + eps),   over W'W = I

Concavity of the square root bounds the penalty by a quadratic with the weights 1 / (2 r_j), so
each step is an eigenproblem: W holds the smallest eigenvectors of M + gamma diag(weights), and f
never rises. The weights start from ones.

The weights come to spread over ten orders of magnitude. An eigensolver of the sum would commit an
error of eps times the largest; the inverse hardly sees the heavy rows, and its largest eigenvalues
are the wanted ones (`smallest_eigenvectors`). M = X'LX is a d x d matrix for d <= n (`DenseForm`),
and F'F with at most n rows of F for d > n (`LowRankForm`), which takes n x n work only.

Where M has a null space wider than W (always for d > n), the first W would be an arbitrary part of
it. `first_weights` therefore adds 1e-6 * mean(s) / s_j, at most 1, to the ones, s_j being the
standard deviation of feature j: features that vary more win what the objective leaves open.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from scipy.linalg.blas import dsymv
from scipy.linalg.lapack import dpotri
from scipy.sparse.linalg import LinearOperator, eigsh

from keepers._protocols import FloatArray
from keepers.linalg.ordering import tilt_ties
from keepers.linalg.subspace import squared_row_norms

Product = Callable[[FloatArray], FloatArray]

EPS = float(np.finfo(float).eps)
# Squared row norms up to this share of the largest are rounding noise.
NOISE = 1e-12


@dataclass(frozen=True)
class DenseForm:
    """M as a matrix."""

    matrix: FloatArray

    @property
    def rank(self) -> int:
        """At most this number of eigenvalues is not zero."""
        return len(self.matrix)

    def diagonal(self) -> FloatArray:
        return self.matrix.diagonal().copy()

    def images(self, W: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ W)

    def inverse(self, b: FloatArray) -> Product:
        """Products with (M + diag(b))^-1, whose lower triangle is formed."""
        factor, _ = cho_factor(self.matrix + np.diag(b), lower=True, overwrite_a=True)
        triangle, _ = dpotri(factor, lower=1)
        return lambda v: np.asarray(dsymv(1.0, triangle, v, lower=1))


@dataclass(frozen=True)
class LowRankForm:
    """M = F'F for an F with fewer rows than columns."""

    F: FloatArray

    @property
    def rank(self) -> int:
        return len(self.F)

    def diagonal(self) -> FloatArray:
        return np.asarray(np.einsum("ij,ij->j", self.F, self.F))

    def images(self, W: FloatArray) -> FloatArray:
        return np.asarray(self.F.T @ (self.F @ W))

    def inverse(self, b: FloatArray) -> Product:
        """Products with (M + diag(b))^-1, by Woodbury's formula.

        It is diag(1/b) - T'T with T = R^-1 F diag(1/b) and R R' = I + F diag(1/b) F'.
        """
        T = self.F / b
        if self.rank:  # SciPy 1.12 refuses an empty system
            R = np.linalg.cholesky(T @ self.F.T + np.eye(self.rank))
            T = solve_triangular(R, T, lower=True, overwrite_b=True)
        return lambda v: v / b - T.T @ (T @ v)


QuadraticForm = DenseForm | LowRankForm


def smallest_eigenvectors(
    form: QuadraticForm, a: FloatArray, width: int, rng: np.random.Generator
) -> FloatArray:
    """The ``width`` smallest eigenvectors of M + diag(a), for a > 0.

    They are the largest of (M + diag(a) - sigma)^-1, sigma being just below min(a): where a is
    nearly constant and M has a null space, the eigenvalues wanted differ in the seventh digit, and
    only their distance to sigma tells them apart. A change of rank r moves eigenvalues by at most
    r places, so the last one wanted is at most the entry of a that is r places further.
    """
    if width == len(a):  # all of them; M, zero but for rounding, may have no inverse
        return np.eye(width)
    above = a - a.min()
    place = min(width + form.rank, len(a)) - 1
    distance = min(0.01 * float(np.partition(above, place)[place]), float(a.min()))
    # Where M is zero and a constant, the distance is that of rounding.
    rounding = len(a) * EPS * float(form.diagonal().sum() + a.max())
    product = form.inverse(above + max(distance, rounding))
    return leading_eigenvectors(product, len(a), width, rng)


def leading_eigenvectors(
    product: Product, size: int, width: int, rng: np.random.Generator
) -> FloatArray:
    """The ``width`` leading eigenvectors of a positive semi-definite matrix, by Lanczos.

    Lanczos can miss copies of a multiple eigenvalue, as identical columns make them. So it is run
    again outside of what it found, until it finds nothing larger there.
    """
    if width == size:
        return np.eye(size)

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
class RowSpace:
    """Centred data X in coordinates in which matrices X'LX are cheap."""

    coordinates: FloatArray
    """X itself for d <= n, else n x n: X = coordinates basis'."""
    basis: FloatArray | None
    """Orthonormal basis of the row space of X, d x n; None for d <= n."""

    @classmethod
    def of(cls, X: FloatArray) -> "RowSpace":
        if X.shape[1] <= X.shape[0]:
            return cls(X, None)
        basis, triangle = np.linalg.qr(X.T)
        return cls(triangle.T, basis)

    def form(self, middle: FloatArray) -> QuadraticForm:
        """The positive semi-definite form that is ``middle`` in the coordinates."""
        middle = (middle + middle.T) / 2
        if self.basis is None:
            return DenseForm(middle)
        spectrum, rotation = np.linalg.eigh(middle)
        kept = spectrum > len(spectrum) * EPS * max(spectrum[-1], 0.0)
        return LowRankForm((rotation[:, kept] * np.sqrt(spectrum[kept])).T @ self.basis.T)


@dataclass(frozen=True)
class RowSparseProjection:
    """The last step of the reweighting."""

    W: FloatArray
    squared_norms: FloatArray
    """|w_j|^2; they sum to the number of columns."""
    objective: FloatArray
    n_iter: int
    converged: bool


def first_weights(deviations: FloatArray) -> FloatArray:
    """Ones, tilted towards features of large standard deviation, then of low index.

    A feature of next to no variance weighs at most twice as much: unbounded, the tilt would replace
    the objective where deviations are more than six decades apart.
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
    has_converged: Callable[[list[float]], bool],
) -> RowSparseProjection:
    """Reweight from ``weights`` until ``has_converged`` is true of the values of f.

    ``rng`` starts the eigensolver.
    """
    W = smallest_eigenvectors(form, gamma * weights, width, rng)
    history = [_objective(form, gamma, W)]
    n_iter, converged = 1, False
    while n_iter < max_iter and not converged:
        weights = 0.5 / _smoothed_row_norms(W)
        candidate = smallest_eigenvectors(form, gamma * weights, width, rng)
        history.append(_objective(form, gamma, candidate))
        n_iter, converged = n_iter + 1, has_converged(history)
        if converged and history[-1] > history[-2]:  # by rounding: the step before was the last
            history.pop()
        else:
            W = candidate
    return RowSparseProjection(W, squared_row_norms(W), np.array(history), n_iter, converged)


def count_active(squared_norms: FloatArray) -> int:
    """Rows whose squared norm is not rounding noise."""
    return int(np.count_nonzero(squared_norms > NOISE * squared_norms.max()))


def break_ties_by_cost(squared_norms: FloatArray, cost: FloatArray) -> FloatArray:
    """Scores in which rows that are rounding noise stand in the order of their cost M_jj.

    A squared norm up to 1e-12 of the largest becomes 1e-12 of the largest times m / (m + M_jj), m
    being the mean cost: positive, below the score of every active row, and larger for cheaper
    features.
    """
    noise = NOISE * squared_norms.max()
    positive = np.maximum(cost, 0.0)
    scale = max(float(positive.mean()), float(np.finfo(float).tiny))
    return np.where(squared_norms > noise, squared_norms, noise * (scale / (scale + positive)))


def _smoothed_row_norms(W: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(squared_row_norms(W) + EPS))


def _objective(form: QuadraticForm, gamma: float, W: FloatArray) -> float:
    return float(np.vdot(W, form.images(W))) + gamma * float(_smoothed_row_norms(W).sum())
