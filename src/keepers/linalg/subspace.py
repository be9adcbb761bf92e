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

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from keepers._protocols import FloatArray, SymmetricOperator
from keepers.linalg.moments import row_blocks

# Below this, a direction of the 2m-dimensional space is rounding noise (relative, squared norm).
_DEPENDENT = 1e-8
# theta_j + shift_i may cross zero in rows with little shift; such quotients are capped.
_SMALLEST_QUOTIENT = 1e-3
# Images smaller than this share of the largest do not set the accuracy.
_NEGLIGIBLE = 1e-4
# Small enough for BLAS not to call its threads for a product of a chunk.
_CHUNK_BYTES, _FEWEST_ROWS = 1 << 17, 256
# Rows that count as light, at least and for every vector.
_FEWEST_LIGHT, _LIGHT_PER_COLUMN = 500, 4


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
        """The squared norm of the row of every feature."""
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
    work = _Iteration(start, shift)
    for n_products in range(max_iter + 1):
        error = work.error
        if n_products == max_iter or (n_products > 0 and error <= tol):
            break
        direction = work.direction()
        work.improve(direction, operator.matmat(direction))
    return Subspace(work.W, work.SW, work.values, error, n_products)


class _Iteration:
    """W, its image, and the sweeps of one step over their rows.

    A step looks at every row of a few d x m arrays some forty times. Rows are taken in chunks that
    stay in the cache meanwhile: with d in the hundred thousands, memory is what takes the time.
    """

    def __init__(self, start: Subspace, shift: FloatArray) -> None:
        self.shift = shift[:, np.newaxis]
        width = start.vectors.shape[1]
        self._chunks = row_blocks(len(shift), width, max(_CHUNK_BYTES, 8 * _FEWEST_ROWS * width))
        projected = np.zeros((width, width))
        for rows in self._chunks:
            block = start.vectors[rows]
            projected += block.T @ (start.images[rows] - self.shift[rows] * block)
        self.values, rotation = _descending(projected)
        self.W: FloatArray = np.empty(start.vectors.shape)
        self.SW: FloatArray = np.empty(start.vectors.shape)
        self.error = self._set(
            lambda rows: (start.vectors[rows] @ rotation, start.images[rows] @ rotation)
        )

    def _set(self, block: Callable[[slice], tuple[FloatArray, FloatArray]]) -> float:
        """Set W and SW chunk by chunk; returns the largest relative residual."""
        residual_squares, image_squares = np.zeros((2, len(self.values)))
        for rows in self._chunks:
            W, SW = block(rows)
            self.W[rows], self.SW[rows] = W, SW
            residual = self._residual(W, SW, rows)
            residual_squares += np.einsum("ij,ij->j", residual, residual)
            image_squares += np.einsum("ij,ij->j", SW, SW)
        sizes = np.sqrt(image_squares)
        # Images far smaller than the largest do not set the accuracy.
        least = max(_NEGLIGIBLE * float(sizes.max()), np.finfo(float).tiny)
        return float(np.max(np.sqrt(residual_squares) / np.maximum(sizes, least)))

    def _residual(self, W: FloatArray, SW: FloatArray, rows: slice) -> FloatArray:
        residual = SW - self.shift[rows] * W
        residual -= W * self.values
        return residual

    def direction(self) -> FloatArray:
        """The preconditioned residual, less what of it lies in the span of W."""
        found = np.empty_like(self.W)
        overlap = np.zeros((len(self.values), len(self.values)))
        smallest = _SMALLEST_QUOTIENT * max(float(np.abs(self.values).max()), np.finfo(float).tiny)
        for rows in self._chunks:
            quotient = np.abs(self.shift[rows] + self.values)
            np.maximum(quotient, smallest, out=quotient)
            residual = self._residual(self.W[rows], self.SW[rows], rows)
            np.divide(residual, quotient, out=found[rows])
            overlap += self.W[rows].T @ found[rows]
        for rows in self._chunks:
            found[rows] -= self.W[rows] @ overlap
        return found

    def improve(self, direction: FloatArray, image: FloatArray) -> None:
        """Move to the leading Ritz vectors of the space of W and the direction."""
        width = len(self.values)
        gram, projected = np.zeros((2, 2 * width, 2 * width))
        old, new = slice(0, width), slice(width, None)
        for rows in self._chunks:
            W, D = self.W[rows], direction[rows]
            AW, AD = self.SW[rows] - self.shift[rows] * W, image[rows] - self.shift[rows] * D
            gram[old, old] += W.T @ W
            projected[old, old] += W.T @ AW
            gram[new, new] += D.T @ D
            projected[new, new] += D.T @ AD
            gram[old, new] += W.T @ D
            projected[old, new] += W.T @ AD
        gram[new, old], projected[new, old] = gram[old, new].T, projected[old, new].T
        self.values, mixing = _ritz_vectors(gram, projected, width)
        stay, move = mixing[:width], mixing[width:]
        self.error = self._set(
            lambda rows: (
                self.W[rows] @ stay + direction[rows] @ move,
                self.SW[rows] @ stay + image[rows] @ move,
            )
        )


def with_light_rows(
    operator: SymmetricOperator, shift: FloatArray, block: Subspace
) -> Subspace | None:
    """The best vectors in the span of a block and of the eigenvectors on the lightest rows.

    Where shifts spread over orders of magnitude, the leading eigenvectors lie on the rows with the
    smallest ones, and elsewhere they are small corrections, which the preconditioned iteration
    finds at once. What it does not find soon is the way from a block spread over all rows to one
    that lies on a few. There the principal submatrix on the lightest rows is decomposed instead,
    and its eigenvectors are offered beside the block: the best of the space of both is never worse
    than the block. Costs one product and a restriction; None where the operator is too small for
    that to be a short cut.
    """
    width = block.vectors.shape[1]
    count = _FEWEST_LIGHT + _LIGHT_PER_COLUMN * width
    if 2 * count > operator.size:
        return None
    light = np.sort(np.argpartition(shift, count)[:count])
    part = operator.restrict(light).dense().copy()
    part[np.diag_indices(count)] -= shift[light]
    _, leading = eigh(part, subset_by_index=[count - width, count - 1])
    vectors = np.zeros((operator.size, width))
    vectors[light] = leading
    offered = Subspace(vectors, operator.matmat(vectors), np.zeros(width))
    return _best_of_both(block, offered, shift)


def _best_of_both(one: Subspace, other: Subspace, shift: FloatArray) -> Subspace:
    """The leading Ritz vectors of S - diag(shift) in the span of two blocks."""
    basis = np.hstack([one.vectors, other.vectors])
    images = np.hstack([one.images, other.images])
    projected = basis.T @ (images - shift[:, np.newaxis] * basis)
    values, mixing = _ritz_vectors(basis.T @ basis, projected, one.vectors.shape[1])
    return Subspace(basis @ mixing, images @ mixing, values)


def _ritz_vectors(
    gram: FloatArray, projected: FloatArray, width: int
) -> tuple[FloatArray, FloatArray]:
    """Values and coefficients of the ``width`` leading Ritz vectors of a basis with this Gram."""
    C = _whitening_by_cholesky(gram)
    values, vectors = _descending(C.T @ projected @ C)
    return values[:width], C @ vectors[:, :width]


def _whitening_by_cholesky(gram: FloatArray) -> FloatArray:
    """C with C' gram C = I; directions that are dependent to rounding are left out."""
    scale = 1.0 / np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
    normalised = gram * scale * scale[:, np.newaxis]
    try:
        factor = np.linalg.cholesky(normalised)
    except np.linalg.LinAlgError:
        factor = None
    if factor is not None and factor.diagonal().min() ** 2 > _DEPENDENT:
        return np.asarray(scale[:, np.newaxis] * np.linalg.inv(factor).T)
    return whitening(gram, _DEPENDENT)


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
    """Squared Euclidean norm of every row."""
    return np.asarray(np.einsum("ij,ij->i", Q, Q))


def row_norms(Q: FloatArray) -> FloatArray:
    """Euclidean norm of every row."""
    return np.asarray(np.sqrt(squared_row_norms(Q)))
