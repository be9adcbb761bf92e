"""Positive semi-definite matrices M = X'LX to which diagonals are added, in three storages.

`DenseForm` holds the matrix (d <= n), `LowRankForm` the factors of M = Q diag(s) Q' with an
orthonormal Q of at most n columns (d > n), `SparseForm` a sparse matrix. What they share is the
inverse of M + diag(b) for b > 0, through a Cholesky factor, through a sparse factor, or by
Woodbury's formula with n x n work only:

    (M + diag(b))^-1 = diag(1/b) - diag(1/b) Q K^-1 Q' diag(1/b),   K = diag(1/s) + Q' diag(1/b) Q.

Rows whose b dwarfs M can be left out of an eigenproblem. With l for the light rows and h for the
heavy ones, an eigenvector w of M + diag(b) to the eigenvalue t satisfies

    w_h = -(diag(b_h) + M_hh - t)^-1 M_hl w_l,      (M_ll + diag(b_l)) w_l + M_lh w_h = t w_l.

The first term of the series for that inverse, diag(1/b_h), leaves a problem of the size of w_l with
M_ll - M_lh diag(1/b_h) M_hl in place of M (`light_part`).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpotri
from scipy.sparse.linalg import SuperLU, splu

from keepers._protocols import FloatArray, IndexArray

Rows = slice | IndexArray
ALL_ROWS = slice(None)
# Symmetric products are computed in column blocks of this width, without what lies above them.
PRODUCT_BLOCK = 256


class Inverse(Protocol):
    """C = (M + diag(b))^-1, known by its products."""

    def __call__(self, V: FloatArray) -> FloatArray:
        """The product CV."""

    def matrix(self) -> FloatArray:
        """C itself."""


@dataclass(frozen=True)
class _CholeskyInverse(Inverse):
    """C through a Cholesky factor, in the lower triangle."""

    factor: FloatArray

    def __call__(self, V: FloatArray) -> FloatArray:
        return np.asarray(cho_solve((self.factor, True), V, check_finite=False))

    def matrix(self) -> FloatArray:
        return mirrored(dpotri(self.factor, lower=1)[0])


@dataclass(frozen=True)
class _SparseInverse(Inverse):
    """C through a sparse factor."""

    factor: SuperLU

    def __call__(self, V: FloatArray) -> FloatArray:
        return np.asarray(self.factor.solve(V))

    def matrix(self) -> FloatArray:
        return self(np.eye(self.factor.shape[0]))


@dataclass(frozen=True)
class _Woodbury(Inverse):
    """C = diag(1/b) - T'T with T = L^-1 Q' diag(1/b), K = L L'."""

    inverse_diagonal: FloatArray
    T: FloatArray

    def __call__(self, V: FloatArray) -> FloatArray:
        # In this order BLAS is a third faster.
        return np.asarray(self.inverse_diagonal[:, np.newaxis] * V - ((V.T @ self.T.T) @ self.T).T)

    def matrix(self) -> FloatArray:
        return symmetric_part(np.diag(self.inverse_diagonal) - self.T.T @ self.T)


class QuadraticForm(Protocol):
    """A positive semi-definite d x d matrix M to which diagonals are added."""

    @property
    def size(self) -> int:
        """Number of rows, d."""

    def diagonal(self) -> FloatArray:
        """The entries M_jj."""

    def images(
        self, W: FloatArray, *, given: Rows = ALL_ROWS, wanted: Rows = ALL_ROWS
    ) -> FloatArray:
        """The product MW, or some rows of it, for a W that may be zero outside of those given."""

    def inverse(self, diagonal: FloatArray) -> Inverse:
        """C = (M + diag(diagonal))^-1, for a positive diagonal."""

    def bound(self, diagonal: FloatArray, count: int) -> float:
        """An upper bound on the ``count``-th smallest eigenvalue of M + diag(diagonal)."""

    def smallest_distance(self, diagonal: FloatArray) -> float:
        """How far sigma has to stay below min(diagonal) for C to have digits."""

    @property
    def norm(self) -> float:
        """The Frobenius norm of M, or a bound on it."""

    @property
    def most_light(self) -> int:
        """Up to how many light rows it pays to leave out the others; 0 if it never does."""

    def light_part(
        self, light: IndexArray, heavy: IndexArray, b: FloatArray
    ) -> "DenseForm | LowRankForm":
        """M_ll - M_lh diag(1/b) M_hl."""


@dataclass(frozen=True)
class _MatrixForm(QuadraticForm):
    """M as an array or a sparse matrix."""

    matrix: Any

    @property
    def size(self) -> int:
        return int(self.matrix.shape[0])

    def diagonal(self) -> FloatArray:
        return np.asarray(self.matrix.diagonal())

    def images(
        self, W: FloatArray, *, given: Rows = ALL_ROWS, wanted: Rows = ALL_ROWS
    ) -> FloatArray:
        if isinstance(given, slice):
            return np.asarray(self.matrix[wanted] @ W)
        return np.asarray((self.matrix[given].T @ W)[wanted])  # symmetric: rows are faster to take


class DenseForm(_MatrixForm):
    """M in memory."""

    def inverse(self, diagonal: FloatArray) -> Inverse:
        """Solve with a Cholesky factor."""
        shifted = self.matrix.T.copy(order="F")  # symmetric, and in this order a plain copy
        shifted[np.diag_indices(self.size)] += diagonal
        factor, _ = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
        return _CholeskyInverse(factor)

    def bound(self, diagonal: FloatArray, count: int) -> float:
        """The eigenvalues of a principal submatrix lie above those of the whole."""
        light = np.argsort(self.diagonal() + diagonal)[:count]
        part = self.matrix[np.ix_(light, light)] + np.diag(diagonal[light])
        return float(np.linalg.eigvalsh(part)[-1])

    def smallest_distance(self, diagonal: FloatArray) -> float:
        """Below this, a Cholesky factor of the d x d matrix need not exist."""
        return float(self.size * np.finfo(float).eps * self.diagonal().max())

    @cached_property
    def norm(self) -> float:
        """Of the whole matrix."""
        return float(np.linalg.norm(self.matrix))

    @property
    def most_light(self) -> int:
        """What is left has to be worth the products."""
        return self.size * 3 // 5

    def light_part(
        self, light: IndexArray, heavy: IndexArray, b: FloatArray
    ) -> "DenseForm | LowRankForm":
        """One product of the rows that are light."""
        rows = self.matrix[light]
        across = rows[:, heavy]
        return DenseForm(rows[:, light] - symmetric_product(across.T, (across / b).T))


@dataclass(frozen=True)
class LowRankForm(QuadraticForm):
    """M = Q diag(s) Q' with s > 0."""

    Q: FloatArray
    s: FloatArray

    @property
    def size(self) -> int:
        return int(self.Q.shape[0])

    def diagonal(self) -> FloatArray:
        return np.asarray(np.einsum("ij,ij,j->i", self.Q, self.Q, self.s))

    def images(
        self, W: FloatArray, *, given: Rows = ALL_ROWS, wanted: Rows = ALL_ROWS
    ) -> FloatArray:
        return np.asarray(self.Q[wanted] @ (self.s[:, np.newaxis] * (self.Q[given].T @ W)))

    def inverse(self, diagonal: FloatArray) -> Inverse:
        """Woodbury's formula."""
        inverse_diagonal = 1.0 / diagonal
        half = self.Q * np.sqrt(inverse_diagonal)[:, np.newaxis]
        K = half.T @ half
        K[np.diag_indices(len(K))] += 1.0 / self.s
        scaled = (self.Q * inverse_diagonal[:, np.newaxis]).T
        if len(K):  # SciPy 1.12 refuses an empty system
            L = np.linalg.cholesky(K)
            scaled = solve_triangular(L, scaled, lower=True, overwrite_b=True, check_finite=False)
        return _Woodbury(inverse_diagonal, scaled)

    @cached_property
    def norm(self) -> float:
        """Q has no part in it."""
        return float(np.linalg.norm(self.s))

    @property
    def most_light(self) -> int:
        """What is left has to be worth the products."""
        return self.size * 3 // 5

    def light_part(
        self, light: IndexArray, heavy: IndexArray, b: FloatArray
    ) -> "DenseForm | LowRankForm":
        """Q_l G Q_l', G = diag(s) - diag(s) K diag(s) with K = Q_h' diag(1/b) Q_h.

        Dense where its factor costs no more than K; else G, whose eigenvalues are nearly s and so
        positive, is split between the two sides.
        """
        scale = np.zeros((self.size, 1))
        scale[heavy, 0] = 1.0 / np.sqrt(b)
        half = self.Q * scale  # zeros cost less than a copy of the heavy rows
        rank = len(self.s)
        G = np.diag(self.s) - self.s[:, np.newaxis] * (half.T @ half) * self.s
        Q = self.Q[light]
        if len(light) ** 3 <= self.size * rank**2:
            return DenseForm(symmetric_part(Q @ G @ Q.T))
        return LowRankForm(Q @ np.linalg.cholesky(G), np.ones(rank))

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
        return _SparseInverse(factor)

    @cached_property
    def norm(self) -> float:
        """Of the entries stored."""
        return float(np.linalg.norm(self.matrix.data))

    @property
    def most_light(self) -> int:
        """What is left would not be sparse."""
        return 0

    def light_part(
        self, light: IndexArray, heavy: IndexArray, b: FloatArray
    ) -> "DenseForm | LowRankForm":
        """Not used."""
        raise NotImplementedError

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
        return self.of_middle(symmetric_product(self.coordinates, L @ self.coordinates))

    def of_middle(self, middle: FloatArray) -> QuadraticForm:
        """The form that is ``middle`` in the coordinates of the samples."""
        if self.basis is None:
            return DenseForm(middle)
        return _low_rank_form(self.basis, middle)


def _low_rank_form(basis: FloatArray, middle: FloatArray) -> LowRankForm:
    """V G V' for an orthonormal V and a positive semi-definite G, null directions left out."""
    spectrum, rotation = np.linalg.eigh(symmetric_part(middle))
    kept = spectrum > len(spectrum) * np.finfo(float).eps * max(spectrum[-1], 0.0)
    return LowRankForm(basis @ rotation[:, kept], spectrum[kept])


def symmetric_part(matrix: FloatArray) -> FloatArray:
    """(M + M') / 2, for a matrix that is symmetric up to rounding."""
    return np.asarray((matrix + matrix.T) / 2)


def symmetric_product(A: FloatArray, B: FloatArray) -> FloatArray:
    """A'B where it is symmetric: half of it, and its mirror image."""
    size = A.shape[1]
    product = np.empty((size, size))
    for start in range(0, size, PRODUCT_BLOCK):
        stop = min(start + PRODUCT_BLOCK, size)
        product[start:, start:stop] = A[:, start:].T @ B[:, start:stop]
        product[start:stop, stop:] = product[stop:, start:stop].T
        product[start:stop, start:stop] = symmetric_part(product[start:stop, start:stop])
    return product


def mirrored(lower: FloatArray) -> FloatArray:
    """The symmetric matrix that has this lower triangle."""
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)
