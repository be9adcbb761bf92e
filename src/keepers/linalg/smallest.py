"""The smallest eigenvectors of M + diag(a), for one M and many diagonals a > 0.

Reweighting spreads a over ten orders of magnitude and more. A dense eigensolver then costs O(d^3)
and commits an error of eps * max(a), large beside the eigenvalues wanted. The inverse has neither
defect: its largest eigenvalues are the wanted ones, and the heavy entries of a hardly appear in
it. So `smallest_eigenvectors` runs a block Lanczos iteration on

    C = (M + diag(a) - sigma)^-1,      sigma just below min(a).

M is positive semi-definite, so M + diag(a) - sigma is positive definite. The iteration starts from
what the storage of M offers (`Inverse.leading_guess`), else from the last solution.

The shift matters where M has a null space and a is nearly constant: the eigenvalues wanted then
differ in the seventh digit, and only the distance to sigma tells them apart.
"""

from dataclasses import dataclass

import numpy as np

from keepers._protocols import FloatArray
from keepers.linalg.quadratic_form import Inverse, QuadraticForm, symmetric_part

# Up to this size, and where so many vectors are wanted that the blocks would fill the space, C is
# formed and decomposed.
DENSE_SIZE = 150
FEWEST_BLOCKS = 3
MOST_BLOCKS = 24
# Vectors carried beside the wanted ones: they hold the next eigenvalues off and show the gap.
GUARDS = 4
# No residual falls below a few roundings.
ROUNDING = 1e-14
# A new block with less than this of its length outside of the basis may not be orthogonal to it.
DEPENDENT = 1e-8
# sigma stays this far below min(a), in units of (last eigenvalue of the block - min(a)); at least
# this share of min(a), where a - sigma would have lost its digits; and never below zero.
SHIFT_DISTANCE = 0.03
SMALLEST_DISTANCE = 1e-11
MOST_SHIFTS = 12


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


def smallest_eigenvectors(
    form: QuadraticForm,
    diagonal: FloatArray,
    width: int,
    rng: np.random.Generator,
    start: EigenBlock | None = None,
    *,
    tol: float = 1e-10,
) -> EigenBlock:
    """The ``width`` smallest eigenvectors of M + diag(diagonal), the diagonal being positive.

    ``start`` is the solution for another diagonal. ``rng`` fills the starting block where there is
    none; it does not influence the result beyond ``tol``, which bounds the error of the subspace
    (residual over gap).
    """
    n_columns = min(width + GUARDS, form.size)
    dense = form.size <= max(DENSE_SIZE, FEWEST_BLOCKS * n_columns)
    lightest = float(diagonal.min())
    nearest = max(SMALLEST_DISTANCE * lightest, form.smallest_distance(diagonal))
    reach = form.bound(diagonal, n_columns) - lightest
    if start is not None:
        reach = min(reach, _largest_ritz_value(form, diagonal, start.block) - lightest)
    block: FloatArray = rng.standard_normal((form.size, n_columns))
    if start is not None:
        # The last column stays random: an old solution can be invariant without being smallest.
        block[:, :-1] = start.block[:, : n_columns - 1]
    n_solves = 0
    for _ in range(MOST_SHIFTS):
        distance = min(max(SHIFT_DISTANCE * reach, nearest), max(lightest, nearest))
        C = form.inverse((diagonal - lightest) + distance)
        if dense:
            leading = _decompose(C(np.eye(form.size)), n_columns)
        else:
            leading = _leading_subspace(C, block, width, reach + distance, tol)
        block, n_solves = leading.vectors, n_solves + leading.n_products
        values = (1.0 / leading.values - distance) + lightest
        nearer = max(float(values[-1]) - lightest, 0.0)
        if leading.converged and (not dense or distance <= max(nearer, nearest)):
            return EigenBlock(block, width, values[:width], n_solves, True)
        reach = min(reach, nearer)
    return EigenBlock(block, width, values[:width], n_solves, False)


def _largest_ritz_value(form: QuadraticForm, diagonal: FloatArray, W: FloatArray) -> float:
    projected = W.T @ (form.images(W) + diagonal[:, np.newaxis] * W)
    return float(np.linalg.eigvalsh(symmetric_part(projected))[-1])


@dataclass(frozen=True)
class _Leading:
    """Leading eigenvectors of C."""

    vectors: FloatArray
    values: FloatArray
    n_products: int
    converged: bool


def _decompose(C: FloatArray, n_columns: int) -> _Leading:
    values, vectors = np.linalg.eigh(symmetric_part(C))
    return _Leading(vectors[:, ::-1][:, :n_columns], values[::-1][:n_columns], 1, True)


def _leading_subspace(
    C: Inverse, block: FloatArray, width: int, reach: float, tol: float
) -> _Leading:
    """Leading eigenvectors of C in a block Krylov space (block Lanczos).

    C V = V T + rest * (last block of the identity), so the residual of a Ritz vector V y is the
    rest times the last part of y.
    """
    leading_guess = C.leading_guess(block.shape[1], reach)
    following = np.linalg.qr(block)[0] if leading_guess is None else leading_guess
    size, n_columns = block.shape
    most_blocks = min(MOST_BLOCKS, size // n_columns)
    fewest_blocks = 2 if leading_guess is None else 1
    basis = np.empty((size, most_blocks * n_columns))
    projected = np.zeros((most_blocks * n_columns, most_blocks * n_columns))
    for n_blocks in range(1, most_blocks + 1):
        filled = n_blocks * n_columns
        V = basis[:, :filled]
        V[:, -n_columns:] = following
        rest = C(following)
        recent = slice(
            max(filled - 2 * n_columns, 0), filled
        )  # but for rounding, V'CV is zero above
        along = V[:, recent].T @ rest
        rest -= V[:, recent] @ along
        projected[recent, filled - n_columns : filled] = along
        values, rotation = np.linalg.eigh(projected[:filled, :filled], UPLO="U")
        values, leading = values[::-1][:n_columns], rotation[:, ::-1][:, :n_columns]
        last = leading[-n_columns:, :width]
        squared_residuals = np.einsum("ij,ij->j", last, (rest.T @ rest) @ last)
        converged = _has_converged(squared_residuals, values, width, tol)
        if n_blocks == most_blocks or (converged and n_blocks >= fewest_blocks):
            break
        following = _orthonormal_to(V, rest)
    return _Leading(V @ leading, values, n_blocks, converged)


def _has_converged(
    squared_residuals: FloatArray, values: FloatArray, width: int, tol: float
) -> bool:
    error = float(np.sqrt(squared_residuals.max()))
    gap = float(values[width - 1] - values[width])
    return error <= max(tol * gap, ROUNDING * float(values[0]))


def _orthonormal_to(V: FloatArray, block: FloatArray) -> FloatArray:
    """Orthonormal columns that span ``block``, which is almost orthogonal to V, outside of V."""
    block = block - V @ (V.T @ block)
    following, triangle = np.linalg.qr(block)
    lengths = np.abs(triangle.diagonal())
    if lengths.min() <= DEPENDENT * lengths.max():
        following = np.linalg.qr(following - V @ (V.T @ following))[0]
    return following
