"""The leading eigenvectors of S - diag(shift), from products with S alone.

`leading_subspace` is a block eigensolver for a sequence of problems in which only the diagonal
changes: it starts from the last solution and its image under S (so a new diagonal costs no
product), improves the block along its preconditioned residual, and takes the best m vectors of
the 2m-dimensional space (Rayleigh-Ritz). The old block lies in that space, so the trace
Tr(W'(S - diag(shift))W) never falls, however early the iteration stops.

The preconditioner divides the residual of row i and vector j by shift_i + theta_j. It keeps the
iteration short when the reweighting has spread the diagonal over many orders of magnitude, where
Lanczos needs hundreds of products (measured in ``docs/decisions/0002-eigensolver.md``).

Blocks are d x m and are kept column after column (Fortran order), also by the operators: sweeps
over d then run through memory.
"""

from dataclasses import dataclass

import numpy as np

from keepers._protocols import BlockProducts, FloatArray

# Below this, a direction of the 2m-dimensional space is rounding noise (relative, squared norm).
_DEPENDENT = 1e-8
# theta_j + shift_i may cross zero in rows with little shift; such quotients are capped.
_SMALLEST_QUOTIENT = 1e-3
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
        return squared_row_norms(self.vectors)

    @property
    def trace(self) -> float:
        return float(np.vdot(self.vectors.T, self.images.T))


def orthonormal_subspace(operator: BlockProducts, block: FloatArray) -> Subspace:
    """The span of a block, rotated to the Ritz vectors of the operator."""
    basis, _ = np.linalg.qr(block)
    images = operator.matmat(basis)
    values, rotation = _descending(basis.T @ images)
    return Subspace(basis @ rotation, images @ rotation, values, n_products=1)


def leading_subspace(
    operator: BlockProducts,
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
    work = _Iteration(start, shift)
    for n_products in range(max_iter + 1):
        direction, error = work.residual()
        if n_products == max_iter or (n_products > 0 and error <= tol):
            break
        # From ten times the tolerance away, more than two products are to be expected.
        work.improve(operator, direction, keep_more=error > 10.0 * tol)
    return Subspace(work.W.T.copy("F"), work.SW.T.copy("F"), work.values, error, n_products)


class _Iteration:
    """W, vectors kept beside it, a direction, and their images, all transposed.

    Kept are the Ritz vectors that follow those of W, as many again, where the way is long: they
    save a third of the products there, and cost more than they save where one or two are enough.
    """

    def __init__(self, start: Subspace, shift: FloatArray) -> None:
        self.shift = shift
        self._width = start.vectors.shape[1]
        W, SW = start.vectors.T, start.images.T
        projected = W @ (SW - shift * W).T
        self._ritz_values, mixing = _ritz_vectors(W @ W.T, projected, self._width)
        self._basis, self._images = mixing.T @ W, mixing.T @ SW

    @property
    def W(self) -> FloatArray:
        return self._basis[: self._width]

    @property
    def SW(self) -> FloatArray:
        return self._images[: self._width]

    @property
    def values(self) -> FloatArray:
        """The Ritz values of W, largest first."""
        return self._ritz_values[: self._width]

    def residual(self) -> tuple[FloatArray, float]:
        """The residuals of W, and the largest relative to its image."""
        residual = self.SW - (self.shift + self.values[:, np.newaxis]) * self.W
        squares = np.einsum("ij,ij->i", residual, residual)
        return residual, _relative_error(squares, np.einsum("ij,ij->i", self.SW, self.SW))

    def improve(self, operator: BlockProducts, direction: FloatArray, *, keep_more: bool) -> None:
        """Move to the leading Ritz vectors of the space of W and the preconditioned residual."""
        values = self.values[:, np.newaxis]
        smallest = _SMALLEST_QUOTIENT * max(float(np.abs(values).max()), np.finfo(float).tiny)
        direction /= np.maximum(np.abs(self.shift + values), smallest)
        direction -= (direction @ self._basis.T) @ self._basis
        image = operator.matmat(direction.T).T
        kept = len(self._basis)
        basis, images = np.vstack([self._basis, direction]), np.vstack([self._images, image])
        across = basis @ (image - self.shift * direction).T
        projected: FloatArray = np.zeros((len(basis), len(basis)))
        projected[:kept, :kept] = np.diag(self._ritz_values)
        projected[:, kept:] = across
        projected[kept:, :kept] = across[:kept].T
        wanted = min(2 * self._width, len(basis)) if keep_more else self._width
        self._ritz_values, mixing = _ritz_vectors(basis @ basis.T, projected, wanted)
        self._basis = np.asarray(mixing.T @ basis)
        self._images = np.asarray(mixing.T @ images)


def relative_residual(block: Subspace) -> float:
    """How well a block solves the eigenproblem of S: `Subspace.residual` where it is not known."""
    residuals = block.images - block.vectors * block.values
    return _relative_error(
        np.einsum("ij,ij->j", residuals, residuals),
        np.einsum("ij,ij->j", block.images, block.images),
    )


def _relative_error(residual_squares: FloatArray, image_squares: FloatArray) -> float:
    """The largest residual norm relative to that of the image of the same vector."""
    sizes = np.sqrt(image_squares)
    # Images far smaller than the largest do not set the accuracy.
    least = max(_NEGLIGIBLE * float(sizes.max()), np.finfo(float).tiny)
    return float(np.max(np.sqrt(residual_squares) / np.maximum(sizes, least)))


def _ritz_vectors(
    gram: FloatArray, projected: FloatArray, width: int
) -> tuple[FloatArray, FloatArray]:
    """Values and coefficients of the ``width`` leading Ritz vectors of a basis with this Gram."""
    inverse = _inverse_factor(gram)
    C = whitening(gram, _DEPENDENT) if inverse is None else inverse.T
    values, vectors = _descending(C.T @ projected @ C)
    return values[:width], C @ vectors[:, :width]


def _inverse_factor(gram: FloatArray) -> FloatArray | None:
    """C with C gram C' = I, by Cholesky; None where some directions are dependent to rounding."""
    scale = 1.0 / np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
    try:
        factor = np.linalg.cholesky(gram * scale * scale[:, np.newaxis])
    except np.linalg.LinAlgError:
        return None
    if factor.diagonal().min() ** 2 <= _DEPENDENT:
        return None
    return np.asarray(np.linalg.inv(factor) * scale)


def whitening(gram: FloatArray, dependent: float) -> FloatArray:
    """C with C' gram C = I; directions are left out that are below ``dependent`` of the largest."""
    scale = 1.0 / np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
    spectrum, vectors = np.linalg.eigh(gram * scale * scale[:, np.newaxis])
    kept = spectrum > dependent * spectrum.max(initial=0.0)
    return np.asarray(scale[:, np.newaxis] * (vectors[:, kept] / np.sqrt(spectrum[kept])))


def _descending(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues (largest first) and eigenvectors of a small symmetric matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return values[::-1], vectors[:, ::-1]


def squared_row_norms(Q: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", Q, Q))


def row_norms(Q: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(squared_row_norms(Q)))


def fix_signs(W: FloatArray) -> FloatArray:
    """Each column with its largest entry positive: eigenvectors have no sign of their own."""
    largest = W[np.argmax(np.abs(W), axis=0), np.arange(W.shape[1])]
    return W * np.where(largest < 0, -1.0, 1.0)
