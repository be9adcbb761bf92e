"""The leading eigenvectors of S - diag(shift), from products with S alone.

`leading_subspace` is a block eigensolver for a sequence of problems in which only the diagonal
changes: it starts from the last solution and its image under S (so a new diagonal costs no
product), improves the block along its preconditioned residual, and takes the best m vectors of
the 2m-dimensional space (Rayleigh-Ritz). The old block lies in that space, so the trace
Tr(W'(S - diag(shift))W) never falls, however early the iteration stops.

The preconditioner is the diagonal of (theta - (S - diag(shift))) without S: the residual of row i
and vector j is divided by shift_i + theta_j. It is what keeps the iteration short when the
reweighting has spread the diagonal over many orders of magnitude, where Lanczos needs hundreds of
products. See ``docs/decisions/0002-eigensolver.md`` for the measurement against `scipy`'s LOBPCG.
"""

from dataclasses import dataclass

import numpy as np

from keepers._protocols import FloatArray, SymmetricOperator

__all__ = ["Subspace", "best_of_both", "leading_subspace", "orthonormal_subspace"]

# Below this, a direction of the 2m-dimensional space is rounding noise (relative, squared norm).
_DEPENDENT = 1e-8
# theta_j + shift_i may cross zero in rows with little shift; such quotients are capped.
_FLOOR = 1e-3
# Images smaller than this share of the largest do not set the accuracy.
_NEGLIGIBLE = 1e-4


@dataclass(frozen=True)
class Subspace:
    """An orthonormal block, its image under S, and how well it solves the eigenproblem."""

    vectors: FloatArray
    images: FloatArray
    values: FloatArray
    residual: float = np.inf
    """Largest residual norm of a vector, relative to the norm of its image."""
    n_products: int = 0

    @property
    def squared_row_norms(self) -> FloatArray:
        """|w_i|^2 for every feature i."""
        return np.asarray(np.einsum("ij,ij->i", self.vectors, self.vectors))

    @property
    def trace(self) -> float:
        """Tr(W'SW)."""
        return float(np.vdot(self.vectors, self.images))


def orthonormal_subspace(operator: SymmetricOperator, block: FloatArray) -> Subspace:
    """The span of a block, rotated to the Ritz vectors of the operator."""
    basis, _ = np.linalg.qr(block)
    images = operator.matmat(basis)
    values, rotation = _descending(basis.T @ images)
    return Subspace(basis @ rotation, images @ rotation, values, n_products=1)


def leading_subspace(
    operator: SymmetricOperator,
    shift: FloatArray,
    start: Subspace,
    *,
    tol: float = 1e-2,
    max_iter: int = 50,
) -> Subspace:
    """The m leading eigenvectors of S - diag(shift), m being the width of ``start``.

    At least one product is made, even if ``start`` already meets ``tol``: an outer iteration that
    stops on a step in which nothing moved would have converged by neglect.
    """
    column_shift = shift[:, np.newaxis]
    width = start.vectors.shape[1]
    # W, then its search direction, side by side; and the image of both under S.
    basis = np.empty((operator.size, 2 * width))
    images = np.empty_like(basis)
    shifted = start.images - column_shift * start.vectors
    values, rotation = _descending(start.vectors.T @ shifted)
    W = np.matmul(start.vectors, rotation, out=basis[:, :width])
    SW = np.matmul(start.images, rotation, out=images[:, :width])
    for n_products in range(max_iter + 1):
        residual = SW - column_shift * W
        residual -= W * values
        error = float(np.max(_column_norms(residual) / _column_sizes(SW)))
        if n_products == max_iter or (n_products > 0 and error <= tol):
            break
        direction = basis[:, width:]
        direction[:] = _preconditioned(residual, column_shift, values)
        direction -= W @ (W.T @ direction)
        images[:, width:] = operator.matmat(np.ascontiguousarray(direction))
        values, mixing = _rayleigh_ritz(basis, images, column_shift, width)
        basis[:, :width] = basis @ mixing
        images[:, :width] = images @ mixing
    return Subspace(W.copy(), SW.copy(), values, float(error), n_products)


def best_of_both(one: Subspace, other: Subspace, shift: FloatArray) -> Subspace:
    """The leading Ritz vectors of S - diag(shift) in the span of two blocks."""
    basis = np.hstack([one.vectors, other.vectors])
    images = np.hstack([one.images, other.images])
    width = one.vectors.shape[1]
    values, mixing = _rayleigh_ritz(basis, images, shift[:, np.newaxis], width)
    return Subspace(basis @ mixing, images @ mixing, values)


def _preconditioned(
    residual: FloatArray, column_shift: FloatArray, values: FloatArray
) -> FloatArray:
    """Residual over (shift + theta), columns scaled to unit length."""
    quotient = np.abs(column_shift + values)
    floor = _FLOOR * max(float(np.abs(values).max()), np.finfo(float).tiny)
    np.maximum(quotient, floor, out=quotient)
    np.divide(residual, quotient, out=quotient)
    norms = _column_norms(quotient)
    quotient /= np.where(norms > 0.0, norms, 1.0)
    return quotient


def _rayleigh_ritz(
    basis: FloatArray, images: FloatArray, column_shift: FloatArray, width: int
) -> tuple[FloatArray, FloatArray]:
    """Values and coefficients of the ``width`` leading Ritz vectors in the span of ``basis``."""
    gram = basis.T @ basis
    projected = basis.T @ (images - column_shift * basis)
    whitening = _whitening(gram)
    values, vectors = _descending(whitening.T @ projected @ whitening)
    return values[:width], whitening @ vectors[:, :width]


def _whitening(gram: FloatArray) -> FloatArray:
    """C with C' gram C = I; directions that are dependent to rounding are left out."""
    scale = 1.0 / np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
    normalised = gram * scale * scale[:, np.newaxis]
    try:
        factor = np.linalg.cholesky(normalised)
    except np.linalg.LinAlgError:
        factor = None
    if factor is not None and factor.diagonal().min() ** 2 > _DEPENDENT:
        return np.asarray(scale[:, np.newaxis] * np.linalg.inv(factor).T)
    spectrum, vectors = np.linalg.eigh(normalised)
    kept = spectrum > _DEPENDENT * spectrum[-1]
    return np.asarray(scale[:, np.newaxis] * (vectors[:, kept] / np.sqrt(spectrum[kept])))


def _descending(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues (largest first) and eigenvectors of a small symmetric matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return values[::-1], vectors[:, ::-1]


def _column_norms(block: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", block, block)))


def _column_sizes(images: FloatArray) -> FloatArray:
    """|S w_j|, from below by a small share of the largest: what a residual is compared with."""
    norms = _column_norms(images)
    return np.maximum(norms, max(_NEGLIGIBLE * float(norms.max()), np.finfo(float).tiny))
