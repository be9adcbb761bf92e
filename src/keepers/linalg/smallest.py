"""The smallest eigenvectors of M + diag(a), for one M and many diagonals a > 0.

M = X'LX is positive semi-definite and comes in one of two storages: `DenseForm`, the matrix itself
(d <= n), and `LowRankForm`, M = Q diag(s) Q' with an orthonormal Q of at most n columns (d > n).

Reweighting spreads a over ten orders of magnitude and more. A dense eigensolver then costs O(d^3)
and commits an error of eps * max(a), large beside the eigenvalues wanted. The inverse has neither
defect: its largest eigenvalues are the wanted ones, and the heavy entries of a hardly appear in
it. So `smallest_eigenvectors` runs a block Krylov iteration on

    C = (M + diag(a) - sigma)^-1,      sigma just below min(a),

warm-started from the last solution. M is positive semi-definite, so M + diag(a) - sigma is
positive definite. C is applied through a Cholesky factor of the d x d matrix, or by Woodbury's
formula with n x n work only; with b = a - sigma,

    C = diag(1/b) - Z Z',      Z = diag(1/b) Q K^(-1/2),      K = diag(1/s) + Q' diag(1/b) Q.

The shift matters where M has a null space and a is nearly constant: the eigenvalues wanted then
differ in the seventh digit, and only the distance to sigma tells them apart.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from keepers._protocols import FloatArray

__all__ = [
    "DenseForm",
    "EigenBlock",
    "LowRankForm",
    "QuadraticForm",
    "dense_eigenvectors",
    "low_rank_form",
    "smallest_eigenvectors",
]

Apply = Callable[[FloatArray], FloatArray]

# Up to this size, or for more than this share of all vectors, the dense solver is faster.
DENSE_SIZE = 150
DENSE_SHARE = 0.2
# Vectors carried beside the wanted ones: they hold the next eigenvalues off and show the gap.
GUARDS = 4
# Error of the subspace: residual over gap. No residual falls below a few roundings.
SUBSPACE_TOL = 1e-11
ROUNDING = 1e-14
# sigma stays this far below min(a), in units of (c-th eigenvalue - min(a)); and at least this
# share of min(a), where a - sigma would have lost its digits.
SHIFT_DISTANCE = 0.1
SMALLEST_SHIFT = 1e-11
BLOCKS_PER_SHIFT = 8
MOST_SHIFTS = 12


class QuadraticForm(Protocol):
    """A positive semi-definite d x d matrix M to which diagonals are added."""

    @property
    def size(self) -> int:
        """Number of rows, d."""

    def diagonal(self) -> FloatArray:
        """The entries M_jj."""

    def dense(self) -> FloatArray:
        """M itself."""

    def images(self, W: FloatArray) -> FloatArray:
        """The product MW."""

    def inverse(self, diagonal: FloatArray) -> Apply:
        """The map V -> (M + diag(diagonal))^-1 V, for a positive diagonal."""

    def bound(self, diagonal: FloatArray, count: int) -> float:
        """An upper bound on the ``count``-th smallest eigenvalue of M + diag(diagonal)."""


@dataclass(frozen=True)
class DenseForm:
    """M in memory."""

    matrix: FloatArray

    @property
    def size(self) -> int:
        """Number of rows, d."""
        return int(self.matrix.shape[0])

    def diagonal(self) -> FloatArray:
        """The entries M_jj."""
        return np.asarray(self.matrix.diagonal())

    def dense(self) -> FloatArray:
        """M itself."""
        return self.matrix

    def images(self, W: FloatArray) -> FloatArray:
        """The product MW."""
        return np.asarray(self.matrix @ W)

    def inverse(self, diagonal: FloatArray) -> Apply:
        """Solve with a Cholesky factor."""
        shifted = self.matrix.copy(order="F")
        shifted[np.diag_indices(self.size)] += diagonal
        factor = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)

        def solve(V: FloatArray) -> FloatArray:
            return np.asarray(cho_solve(factor, V, check_finite=False))

        return solve

    def bound(self, diagonal: FloatArray, count: int) -> float:
        """The eigenvalues of a principal submatrix lie above those of the whole."""
        light = np.argsort(self.diagonal() + diagonal)[:count]
        part = self.matrix[np.ix_(light, light)] + np.diag(diagonal[light])
        return float(np.linalg.eigvalsh(part)[-1])


@dataclass(frozen=True)
class LowRankForm:
    """M = Q diag(s) Q' with orthonormal columns of Q and s > 0."""

    Q: FloatArray
    s: FloatArray

    @property
    def size(self) -> int:
        """Number of rows, d."""
        return int(self.Q.shape[0])

    def diagonal(self) -> FloatArray:
        """The entries M_jj."""
        return np.asarray(np.einsum("ij,ij,j->i", self.Q, self.Q, self.s))

    def dense(self) -> FloatArray:
        """M itself (d x d)."""
        half = self.Q * np.sqrt(self.s)
        return np.asarray(half @ half.T)

    def images(self, W: FloatArray) -> FloatArray:
        """The product MW."""
        return np.asarray(self.Q @ (self.s[:, np.newaxis] * (self.Q.T @ W)))

    def inverse(self, diagonal: FloatArray) -> Apply:
        """Woodbury's formula, with the middle factor split between its two sides."""
        light = 1.0 / diagonal[:, np.newaxis]
        half = self.Q * np.sqrt(light)
        K = half.T @ half
        K[np.diag_indices(len(K))] += 1.0 / self.s
        Z = light * np.linalg.solve(np.linalg.cholesky(K), self.Q.T).T

        def multiply(V: FloatArray) -> FloatArray:
            return np.asarray(light * V - Z @ (Z.T @ V))

        return multiply

    def bound(self, diagonal: FloatArray, count: int) -> float:
        """A change of rank r moves eigenvalues up by at most r places."""
        place = count + len(self.s) - 1
        if place < self.size:
            return float(np.partition(diagonal, place)[place])
        return float(diagonal.max() + self.s.max(initial=0.0))


def low_rank_form(basis: FloatArray, middle: FloatArray) -> LowRankForm:
    """V G V' for an orthonormal basis V and a positive semi-definite G, null directions left out.

    With X = RV' (n <= d) and a Laplacian L, X'LX = V (R'LR) V'.
    """
    spectrum, rotation = np.linalg.eigh((middle + middle.T) / 2)
    kept = spectrum > len(spectrum) * np.finfo(float).eps * max(spectrum[-1], 0.0)
    return LowRankForm(basis @ rotation[:, kept], spectrum[kept])


@dataclass(frozen=True)
class EigenBlock:
    """Orthonormal vectors: the wanted ones first, then the guards that a next call starts from."""

    block: FloatArray
    width: int
    values: FloatArray
    """The smallest eigenvalues, ascending."""
    n_solves: int
    converged: bool

    @property
    def vectors(self) -> FloatArray:
        """The wanted eigenvectors."""
        return self.block[:, : self.width]


def dense_eigenvectors(form: QuadraticForm, diagonal: FloatArray, width: int) -> EigenBlock:
    """The ``width`` smallest eigenvectors by the dense symmetric solver."""
    shifted = form.dense().copy()
    shifted[np.diag_indices(form.size)] += diagonal
    kept = min(width + GUARDS, form.size)
    if form.size <= DENSE_SIZE:  # one call into NumPy's own LAPACK is the fastest
        values, vectors = np.linalg.eigh(shifted)
    else:
        values, vectors = eigh(shifted, subset_by_index=[0, kept - 1], overwrite_a=True)
    return EigenBlock(vectors[:, :kept], width, values[:width], 0, True)


def smallest_eigenvectors(
    form: QuadraticForm,
    diagonal: FloatArray,
    width: int,
    rng: np.random.Generator,
    start: EigenBlock | None = None,
) -> EigenBlock:
    """The ``width`` smallest eigenvectors of M + diag(diagonal), the diagonal being positive.

    ``start`` is the solution for another diagonal. ``rng`` fills the starting block where there is
    none; it does not influence the result beyond rounding.
    """
    size = form.size
    if size <= DENSE_SIZE or width + GUARDS > DENSE_SHARE * size:
        return dense_eigenvectors(form, diagonal, width)
    n_columns = width + GUARDS
    block = rng.standard_normal((size, n_columns)) if start is None else start.block
    lightest = float(diagonal.min())
    reach = form.bound(diagonal, width) - lightest
    if start is not None:
        reach = min(reach, _largest_ritz_value(form, diagonal, start.vectors) - lightest)
    n_solves = 0
    for _ in range(MOST_SHIFTS):
        distance = max(SHIFT_DISTANCE * reach, SMALLEST_SHIFT * lightest)
        apply = form.inverse((diagonal - lightest) + distance)
        found = _leading_of_inverse(apply, block, width)
        block, n_solves = found.block, n_solves + found.n_solves
        values = (1.0 / found.values - distance) + lightest
        if found.converged:
            return EigenBlock(block, width, values, n_solves, True)
        reach = min(reach, max(float(values[-1]) - lightest, 0.0))
    return EigenBlock(block, width, values, n_solves, False)


def _largest_ritz_value(form: QuadraticForm, diagonal: FloatArray, W: FloatArray) -> float:
    return float(np.linalg.eigvalsh(W.T @ (form.images(W) + diagonal[:, np.newaxis] * W))[-1])


def _leading_of_inverse(apply: Apply, block: FloatArray, width: int) -> EigenBlock:
    """Leading eigenvectors of C in the block Krylov space of ``block``.

    The residuals of the leading Ritz vectors span the next block of that space, so the basis can
    be cut down to them at any time.
    """
    n_columns = block.shape[1]
    basis = np.linalg.qr(block)[0]
    images = apply(basis)
    n_solves = 1
    while True:
        values, rotation = np.linalg.eigh(_symmetric(basis.T @ images))
        leading = rotation[:, ::-1][:, :n_columns]
        values = values[::-1][:n_columns]
        ritz, ritz_images = basis @ leading, images @ leading
        residual = ritz_images - ritz * values
        converged = _has_converged(residual, values, width)
        if converged or n_solves >= BLOCKS_PER_SHIFT:
            return EigenBlock(ritz, width, values[:width], n_solves, converged)
        fresh = _orthonormal_to(basis, residual)
        basis = np.hstack([basis, fresh])
        images = np.hstack([images, apply(fresh)])
        n_solves += 1


def _has_converged(residual: FloatArray, values: FloatArray, width: int) -> bool:
    error = float(np.sqrt(np.einsum("ij,ij->j", residual, residual)[:width].max()))
    gap = float(values[width - 1] - values[width])
    return error <= max(SUBSPACE_TOL * gap, ROUNDING * float(values[0]))


def _orthonormal_to(basis: FloatArray, block: FloatArray) -> FloatArray:
    for _ in range(2):  # once is not enough when the block is almost in the span
        block = np.linalg.qr(block - basis @ (basis.T @ block))[0]
    return block


def _symmetric(matrix: FloatArray) -> FloatArray:
    return np.asarray((matrix + matrix.T) / 2)
