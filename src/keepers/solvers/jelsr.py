"""JELSR: an embedding of the samples and its row-sparse regression on the features, together.

    minimise  Tr(Y'LY) + beta (|X W - Y|^2 + alpha |W|_{2,1})   over  Y'Y = I, Y'1 = 0,  W

Y is n x m (coordinates of the samples), W is d x m, X is centred, L is the Laplacian of a neighbour
graph of the samples, and |W|_{2,1} sums the lengths of rows.

One step reweights the penalty, w_j by 1 / (2 |w_j|) of the step before, and minimises over Y and W
together: with R = I - X (X'X + alpha U)^-1 X', U = diag(1 / (2 |w_j|)),

    Y = the m smallest eigenvectors of K = L + beta R but the constant,
    W = (X'X + alpha U)^-1 X'Y,

so that the objective never rises. The weights start from U = I. As X is centred and L 1 = 0, the
constant vector is an eigenvector of K, and W ignores it. It is moved to the other end of the
spectrum; in the released programs it is among the Y of some tables and not of others.

Up to `DENSE_SAMPLES` samples K is formed and decomposed. Beyond, a block of vectors is improved by
products with K, from where the last step has left it; nothing of size n x n is formed for d <= n.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from keepers._protocols import FloatArray
from keepers.linalg.subspace import leading_subspace, orthonormal_subspace, row_norms
from keepers.linalg.weighted_ridge import RidgeFactor, WeightedRidge

EPS = float(np.finfo(np.float64).eps)
# Up to here a dense eigenproblem is quicker than products, and nothing is random.
DENSE_SAMPLES = 600
# Residual of the eigenvectors beyond, relative, and products for it: of the first step, which
# starts from random numbers, and of the others, which start near the solution.
SUBSPACE_TOL = 1e-5
FIRST_PRODUCTS, MOST_PRODUCTS = 500, 50


@dataclass(frozen=True)
class JELSRResult:
    """Where the iteration ended."""

    W: FloatArray
    Y: FloatArray
    objective: FloatArray
    """After every step; it never rises."""
    n_iter: int
    converged: bool

    @property
    def change(self) -> float:
        """By how much the last step lowered the objective, relatively; infinite after one step."""
        if self.n_iter < 2:
            return np.inf
        return float((self.objective[-2] - self.objective[-1]) / abs(self.objective[-1]))


def solve_jelsr(
    table: WeightedRidge,
    laplacian: sp.csr_array,
    n_columns: int,
    rng: np.random.Generator,
    *,
    alpha: float,
    beta: float,
    max_iter: int,
    tol: float,
    _keep_constant: bool = False,
    _degrees: FloatArray | None = None,
    _first_norms: FloatArray | None = None,
) -> JELSRResult:
    """Iterate until a step lowers the objective by no more than ``tol``, relatively.

    ``table`` is centred; ``rng`` is used past `DENSE_SAMPLES` samples only. A negative ``tol``
    makes exactly ``max_iter`` steps. To compare with published programs: ``_keep_constant`` takes
    the smallest eigenvectors whatever they are, ``_degrees`` D asks for Y'DY = I and drops the
    first of them, and ``_first_norms`` replaces the row norms from which the first weights are
    taken, 1/2 each.
    """
    if _keep_constant or _degrees is not None:
        embedding: _Embedding = _ReleasedEmbedding(laplacian, beta, n_columns, _degrees)
    elif table.n_samples <= DENSE_SAMPLES:
        embedding = _DenseEmbedding(laplacian, beta, n_columns)
    else:
        embedding = _IterativeEmbedding(laplacian, beta, n_columns, rng)
    norms = np.full(table.n_features, 0.5) if _first_norms is None else _first_norms
    history: list[float] = []
    converged = False
    while len(history) < max_iter and not converged:
        factor = table.at(2.0 / alpha * (norms + EPS))
        Y = embedding.smallest(factor)
        fit = factor.fit(Y)
        norms = row_norms(fit.W)
        loss = float(np.sum(fit.residual**2) + alpha * norms.sum())
        history.append(float(np.vdot(Y, laplacian @ Y)) + beta * loss)
        if len(history) > 1:
            converged = history[-2] - history[-1] <= tol * abs(history[-1])
    return JELSRResult(fit.W, Y, np.array(history), len(history), converged)


class _Embedding:
    """The smallest eigenvectors of K = L + beta R, for one L and many R."""

    def __init__(self, laplacian: sp.csr_array, beta: float, n_columns: int) -> None:
        self.laplacian = laplacian
        self.beta = beta
        self.n_columns = n_columns

    def smallest(self, factor: RidgeFactor) -> FloatArray:
        """Y for the R of these weights."""
        raise NotImplementedError

    def _form(self, factor: RidgeFactor) -> FloatArray:
        """K itself."""
        K = self.beta * factor.residual(np.eye(self.laplacian.shape[0]))
        K += self.laplacian.toarray()
        return np.asarray((K + K.T) / 2)


class _DenseEmbedding(_Embedding):
    """By decomposing K."""

    def smallest(self, factor: RidgeFactor) -> FloatArray:
        K = self._form(factor)
        K += (np.trace(K) + 1.0) / len(K)  # the constant vector is moved above all others
        return np.asarray(eigh(K, subset_by_index=[0, self.n_columns - 1])[1])


class _ReleasedEmbedding(_Embedding):
    """As the published programs do it, the constant vector included."""

    def __init__(
        self,
        laplacian: sp.csr_array,
        beta: float,
        n_columns: int,
        degrees: FloatArray | None,
    ) -> None:
        super().__init__(laplacian, beta, n_columns)
        self.degrees = degrees

    def smallest(self, factor: RidgeFactor) -> FloatArray:
        K = self._form(factor)
        if self.degrees is None:
            return np.asarray(eigh(K, subset_by_index=[0, self.n_columns - 1])[1])
        vectors = eigh(K, np.diag(self.degrees), subset_by_index=[0, self.n_columns])[1]
        return np.asarray(vectors[:, 1:])


class _IterativeEmbedding(_Embedding):
    """By products with K, from the solution for the last R.

    They are the leading eigenvectors of A - diag(shift) with shift = diag(L) + beta, what is off
    the diagonal of K being small beside it: the form that `leading_subspace` is made for.
    """

    def __init__(
        self, laplacian: sp.csr_array, beta: float, n_columns: int, rng: np.random.Generator
    ) -> None:
        super().__init__(laplacian, beta, n_columns)
        diagonal = laplacian.diagonal()
        self.shift = diagonal + beta
        self.off_diagonal = sp.csr_array(sp.diags_array(diagonal) - laplacian)
        # No eigenvalue of K exceeds this: that of the constant vector is to be moved there.
        self.far = float(np.abs(laplacian).sum(axis=1).max()) + beta
        self.block: FloatArray = rng.standard_normal((len(diagonal), n_columns))
        self.block -= self.block.mean(axis=0)
        self.most_products = FIRST_PRODUCTS

    def smallest(self, factor: RidgeFactor) -> FloatArray:
        operator = _OffDiagonal(self, factor)
        start = orthonormal_subspace(operator, self.block)
        found = leading_subspace(
            operator, self.shift, start, tol=SUBSPACE_TOL, max_iter=self.most_products
        )
        self.most_products = MOST_PRODUCTS
        self.block = found.vectors
        return found.vectors


@dataclass(frozen=True)
class _OffDiagonal:
    """A = diag(shift) - K, less a multiple of the projection onto the constant vector."""

    embedding: _IterativeEmbedding
    factor: RidgeFactor

    def matmat(self, V: FloatArray) -> FloatArray:
        """A V."""
        image = self.embedding.off_diagonal @ V
        image += self.embedding.beta * (V - self.factor.residual(V))
        image -= self.embedding.far * V.mean(axis=0)
        return np.asarray(image)
