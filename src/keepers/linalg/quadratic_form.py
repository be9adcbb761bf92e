"""Positive semi-definite matrices M = X'LX to which diagonals are added, in three storages.

`DenseForm` holds the matrix (d <= n), `LowRankForm` the factors of M = Q diag(s) Q' with an
orthonormal Q of at most n columns (d > n), `SparseForm` a sparse matrix. What they share is the
inverse of M + diag(b) for b > 0, through a Cholesky factor, through a sparse factor, or by
Woodbury's formula with n x n work only:

    (M + diag(b))^-1 = diag(1/b) - Z Z',   Z = diag(1/b) Q K^(-1/2),   K = diag(1/s) + Q'diag(1/b)Q.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse.linalg import splu

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.subspace import whitening

# How many features are looked at one by one before the others count as heavy, and how much heavier
# than the eigenvalues wanted those have to be.
FEWEST_LIGHT, LIGHT_PER_COLUMN = 50, 4
HEAVY_RATIO = 10.0
DEPENDENT = 1e-12


class Inverse(Protocol):
    """C = (M + diag(b))^-1, known by its products."""

    def __call__(self, V: FloatArray) -> FloatArray:
        """The product CV."""

    def leading_guess(self, n_columns: int, reach: float) -> FloatArray | None:
        """Orthonormal approximations to the leading eigenvectors of C, if they come cheaply.

        The eigenvalues wanted of M + diag(b) are at most ``reach``.
        """


@dataclass(frozen=True)
class _Solve(Inverse):
    """C through a factor."""

    solve: Callable[[FloatArray], FloatArray]

    def __call__(self, V: FloatArray) -> FloatArray:
        return np.asarray(self.solve(V))

    def leading_guess(self, n_columns: int, reach: float) -> FloatArray | None:
        return None


@dataclass(frozen=True)
class _Woodbury(Inverse):
    """C = diag(1/b) - Z Z'."""

    inverse_diagonal: FloatArray
    Z: FloatArray

    def __call__(self, V: FloatArray) -> FloatArray:
        return np.asarray(self.inverse_diagonal[:, np.newaxis] * V - self.Z @ (self.Z.T @ V))

    def leading_guess(self, n_columns: int, reach: float) -> FloatArray | None:
        """Rayleigh-Ritz on the light features and the response of the heavy ones to them.

        On heavy features (b >> reach) an eigenvector is a quickly converging series whose first
        term lies in the span of Z restricted to them, so all light features and that span almost
        contain it. What is left to decompose has the size of both, whatever d.
        """
        light = self._light_features(n_columns, reach)
        if light is None:
            return None
        heavy = self.Z.copy()
        heavy[light] = 0.0
        gram = heavy.T @ heavy
        weighted = heavy * np.sqrt(self.inverse_diagonal)[:, np.newaxis]
        T = whitening(gram, DEPENDENT)  # heavy T is orthonormal
        along = gram @ T  # Z'(heavy T)
        Z = self.Z[light]
        corner = T.T @ (weighted.T @ weighted) @ T - along.T @ along
        side = -(Z @ along)
        C = np.block([[np.diag(self.inverse_diagonal[light]) - Z @ Z.T, side], [side.T, corner]])
        last = len(C) - 1
        _, leading = eigh(C, subset_by_index=[last - n_columns + 1, last], check_finite=False)
        vectors = heavy @ (T @ leading[len(light) :, ::-1])
        vectors[light] = leading[: len(light), ::-1]
        # T has lost digits where Z is nearly dependent; orthonormal up to those, vectors need one
        # Cholesky step only.
        return np.asarray(vectors @ np.linalg.inv(np.linalg.cholesky(vectors.T @ vectors)).T)

    def _light_features(self, n_columns: int, reach: float) -> IndexArray | None:
        count = FEWEST_LIGHT + LIGHT_PER_COLUMN * n_columns
        if count + self.Z.shape[1] >= len(self.Z):
            return None
        light = np.argpartition(-self.inverse_diagonal, count)[:count]
        if self.inverse_diagonal[light].min() * reach * HEAVY_RATIO > 1.0:
            return None
        return light


class QuadraticForm(Protocol):
    """A positive semi-definite d x d matrix M to which diagonals are added."""

    @property
    def size(self) -> int:
        """Number of rows, d."""

    def diagonal(self) -> FloatArray:
        """The entries M_jj."""

    def images(self, W: FloatArray) -> FloatArray:
        """The product MW."""

    def inverse(self, diagonal: FloatArray) -> Inverse:
        """C = (M + diag(diagonal))^-1, for a positive diagonal."""

    def bound(self, diagonal: FloatArray, count: int) -> float:
        """An upper bound on the ``count``-th smallest eigenvalue of M + diag(diagonal)."""

    def smallest_distance(self, diagonal: FloatArray) -> float:
        """How far sigma has to stay below min(diagonal) for C to have digits."""


@dataclass(frozen=True)
class _MatrixForm(QuadraticForm):
    """M as an array or a sparse matrix."""

    matrix: Any

    @property
    def size(self) -> int:
        return int(self.matrix.shape[0])

    def diagonal(self) -> FloatArray:
        return np.asarray(self.matrix.diagonal())

    def images(self, W: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ W)


class DenseForm(_MatrixForm):
    """M in memory."""

    def inverse(self, diagonal: FloatArray) -> Inverse:
        """Solve with a Cholesky factor."""
        shifted = self.matrix.copy(order="F")
        shifted[np.diag_indices(self.size)] += diagonal
        factor = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
        return _Solve(lambda V: cho_solve(factor, V, check_finite=False))

    def bound(self, diagonal: FloatArray, count: int) -> float:
        """The eigenvalues of a principal submatrix lie above those of the whole."""
        light = np.argsort(self.diagonal() + diagonal)[:count]
        part = self.matrix[np.ix_(light, light)] + np.diag(diagonal[light])
        return float(np.linalg.eigvalsh(part)[-1])

    def smallest_distance(self, diagonal: FloatArray) -> float:
        """Below this, a Cholesky factor of the d x d matrix need not exist."""
        return float(self.size * np.finfo(float).eps * self.diagonal().max())


@dataclass(frozen=True)
class LowRankForm(QuadraticForm):
    """M = Q diag(s) Q' with orthonormal columns of Q and s > 0."""

    Q: FloatArray
    s: FloatArray

    @property
    def size(self) -> int:
        return int(self.Q.shape[0])

    def diagonal(self) -> FloatArray:
        return np.asarray(np.einsum("ij,ij,j->i", self.Q, self.Q, self.s))

    def images(self, W: FloatArray) -> FloatArray:
        return np.asarray(self.Q @ (self.s[:, np.newaxis] * (self.Q.T @ W)))

    def inverse(self, diagonal: FloatArray) -> Inverse:
        """Woodbury's formula, with the middle factor split between its two sides."""
        inverse_diagonal = 1.0 / diagonal
        half = self.Q * np.sqrt(inverse_diagonal)[:, np.newaxis]
        K = half.T @ half
        K[np.diag_indices(len(K))] += 1.0 / self.s
        Z = self.Q @ np.linalg.inv(np.linalg.cholesky(K)).T
        Z *= inverse_diagonal[:, np.newaxis]
        return _Woodbury(inverse_diagonal, Z)

    def bound(self, diagonal: FloatArray, count: int) -> float:
        """A change of rank r moves eigenvalues up by at most r places."""
        place = count + len(self.s) - 1
        if place < self.size:
            return float(np.partition(diagonal, place)[place])
        return float(diagonal.max() + self.s.max(initial=0.0))

    def smallest_distance(self, diagonal: FloatArray) -> float:
        """Below this, a Cholesky factor of K need not exist."""
        if not len(self.s):
            return 0.0
        smallest_of_K = 1.0 / diagonal.max() + 1.0 / self.s.max()
        return float(self.size * np.finfo(float).eps / smallest_of_K)


class SparseForm(_MatrixForm):
    """A sparse M, such as a graph Laplacian."""

    def inverse(self, diagonal: FloatArray) -> Inverse:
        """Solve with a sparse factor; M + diagonal is positive definite, so pivots stay put."""
        shifted = sp.csc_matrix(self.matrix + sp.diags_array(diagonal))
        factor = splu(
            shifted,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        return _Solve(factor.solve)

    def bound(self, diagonal: FloatArray, count: int) -> float:
        """Gershgorin's discs."""
        sums = np.asarray(np.abs(self.matrix).sum(axis=1)).ravel()
        return float((sums + diagonal).max())

    def smallest_distance(self, diagonal: FloatArray) -> float:
        """Half the digits: the factor is not scaled."""
        return float(np.sqrt(np.finfo(float).eps) * self.diagonal().max())


@dataclass(frozen=True)
class LaplacianForms:
    """X'LX for centred data X and any number of Laplacians L, in the storage that suits X."""

    X: FloatArray
    basis: FloatArray | None
    """Orthonormal basis of the row space, X = triangle' basis'; None for d <= n."""
    triangle: FloatArray | None

    @classmethod
    def of(cls, X: FloatArray) -> "LaplacianForms":
        """Factorise X if it has more columns than rows."""
        n_samples, n_features = X.shape
        if n_features <= n_samples:
            return cls(X, None, None)
        return cls(X, *np.linalg.qr(X.T))

    @property
    def coordinates(self) -> FloatArray:
        """The samples in the basis: X itself where there is none."""
        return self.X if self.triangle is None else self.triangle.T

    def form(self, L: sp.csr_array) -> QuadraticForm:
        """X'LX."""
        return self.of_middle(self.coordinates.T @ (L @ self.coordinates))

    def of_middle(self, middle: FloatArray) -> QuadraticForm:
        """The form that is ``middle`` in the coordinates of the samples."""
        if self.basis is None:
            return DenseForm(symmetric_part(middle))
        return _low_rank_form(self.basis, middle)


def _low_rank_form(basis: FloatArray, middle: FloatArray) -> LowRankForm:
    """V G V' for an orthonormal V and a positive semi-definite G, null directions left out."""
    spectrum, rotation = np.linalg.eigh(symmetric_part(middle))
    kept = spectrum > len(spectrum) * np.finfo(float).eps * max(spectrum[-1], 0.0)
    return LowRankForm(basis @ rotation[:, kept], spectrum[kept])


def symmetric_part(matrix: FloatArray) -> FloatArray:
    """(M + M') / 2, for a matrix that is symmetric up to rounding."""
    return np.asarray((matrix + matrix.T) / 2)
