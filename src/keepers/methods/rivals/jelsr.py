"""JELSR: an embedding of the samples and its row-sparse regression on the features, together.

One step reweights the penalty and minimises the objective of `JELSR` over Y and W together: with
U = diag(1 / (2 |w_j|)) of the step before and R = I - X (X'X + alpha U)^-1 X',

    Y = the m smallest eigenvectors of K = L + beta R but the constant,
    W = (X'X + alpha U)^-1 X'Y.

The objective never rises. The weights start from U = I. As X is centred and L 1 = 0, the constant
vector is an eigenvector of K, and W ignores it. It is moved to the other end of the spectrum; in
the released programs it is in Y for some tables and not for others.
"""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, lobpcg

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import FloatArray
from keepers.linalg.graph import laplacian, reconstruction_laplacian, reconstruction_weights
from keepers.linalg.spectrum import row_norms
from keepers.methods.parameters import Seed, cap_clusters, one_of, positive
from keepers.methods.reading import MemoryTable
from keepers.methods.rivals import EPS, Rival
from keepers.methods.rivals.ndfs import RidgeFactor, RowSparseRegression, WeightedRidge

# Up to here a dense eigenproblem is as quick as products, and nothing is random. On PIE (1166
# samples) it takes four times as long.
DENSE_SAMPLES = 600
# Residual norm of the eigenvectors there; 1e-6 takes twice the time and changes no selection.
EMBEDDING_TOL = 1e-4


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
) -> RowSparseRegression:
    """Iterate until a step lowers the objective by no more than the share ``tol``.

    ``table`` is centred. A negative ``tol`` makes exactly ``max_iter`` steps.
    """
    norms: FloatArray = np.full(table.n_features, 0.5)
    Y: FloatArray = rng.standard_normal((table.n_samples, n_columns))
    history: list[float] = []
    change = np.inf
    while len(history) < max_iter and change > tol:
        factor = table.at(2.0 / alpha * (norms + EPS))
        Y = _embed(factor, laplacian, beta, Y, n_products=50 if history else 500)
        W, residual = factor.fit(Y)
        norms = row_norms(W)
        loss = float(np.sum(residual**2) + alpha * norms.sum())
        history.append(float(np.vdot(Y, laplacian @ Y)) + beta * loss)
        if len(history) > 1:
            change = (history[-2] - history[-1]) / abs(history[-1])
    return RowSparseRegression(W, Y, np.array(history), change, change <= tol)


def _embed(
    factor: RidgeFactor, laplacian: sp.csr_array, beta: float, Y: FloatArray, n_products: int
) -> FloatArray:
    """The smallest eigenvectors of K but the constant; Y is where products start from."""
    n_samples, n_columns = Y.shape
    if n_samples <= max(DENSE_SAMPLES, 6 * n_columns):  # for fewer LOBPCG would go dense as well
        K = beta * factor.residual(np.eye(n_samples)) + laplacian.toarray()
        K = (K + K.T) / 2
        K += (np.trace(K) + 1.0) / n_samples  # the constant vector is moved above all others
        return np.asarray(eigh(K, subset_by_index=[0, n_columns - 1])[1])

    def times(V: FloatArray) -> FloatArray:
        V = V.reshape(n_samples, -1)
        return np.asarray(laplacian @ V + beta * factor.residual(V))

    K = LinearOperator((n_samples, n_samples), matvec=times, matmat=times, dtype=np.float64)
    scaling = sp.diags_array(1.0 / (laplacian.diagonal() + beta))
    constant = np.ones((n_samples, 1))  # what the vectors are orthogonal to
    options: Any = {"tol": EMBEDDING_TOL, "maxiter": n_products, "largest": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # too few products: the next step goes on
        return np.asarray(lobpcg(K, Y, M=scaling, Y=constant, **options)[1])


@dataclass(eq=False, repr=False, kw_only=True)
class JELSR(Rival):
    """Joint embedding learning and sparse regression.

    Embeds the samples by coordinates Y that are smooth on a neighbour graph, and learns at the same
    time a regression W of Y on the features. Most rows of W become zero::

        minimise  Tr(Y' L Y) + beta (|X W - Y|^2 + alpha sum_j |w_j|)
        subject to  Y'Y = I,  Y'1 = 0,

    where X is centred and L is the Laplacian of the graph: `MCFS` in one step instead of two. A
    feature's score is the norm of its row of W. This is the method of Hou, Nie, Yi and Wu (IJCAI
    2011), with the constant vector kept out of Y. A sparse X is made dense.

    Parameters
    ----------
    {n_features_to_select}
    n_clusters : int, default=5
        Y has one column fewer, but at least one. A number above that of the samples is lowered,
        with a warning.
    {n_neighbors}
    graph : {"heat", "lle"}, default="heat"
        L: D - S of the graph with heat-kernel weights, or (I - B)'(I - B) with the weights B that
        rebuild every sample from its neighbours, as in locally linear embedding.
    alpha : float in (0, 1], default=0.1
        Weight of the row sparsity, as a share of ``alpha_max_``.
    beta : float, default=1.0
        Weight of the regression against the graph.
    max_iter : int, default=200
        Maximum number of steps; often all are needed. A warning reports a last step that lowered
        the objective by more than 1e-4 of itself.
    tol : float, default=1e-8
        The iteration ends when a step lowers the objective by no more than this share.
    {bandwidth}
    {max_correlation}
    random_state : int, RandomState or None, default=None
        Seeds the eigensolver above 600 samples and the sample for the mean distance above 3000.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Row norms of W; higher is better. Rows that the penalty sends to zero keep a small value.
    {fitted}
    components_ : array of shape (n_columns, n_features)
        W transposed.
    embedding_ : array of shape (n_samples, n_columns)
        Y: orthonormal columns, orthogonal to the constant.
    {run}
    n_active_ : int
        Rows of W longer than a millionth of the longest.
    alpha_max_ : float
        The smallest alpha for which W = 0 for every Y: twice the length of the longest column.

    Examples
    --------
    >>> from keepers import JELSR, datasets
    >>> JELSR(50, n_clusters=4).fit(datasets.load("srbct").X).embedding_.shape
    (83, 3)
    """

    parameter_rules: ClassVar = {
        "graph": one_of("heat", "lle"),
        "alpha": positive(at_most=1.0, hint="It is a share of alpha_max_."),
        "beta": positive(),
    }

    n_clusters: int = 5
    n_neighbors: int = 5
    graph: str = "heat"
    alpha: float = 0.1
    beta: float = 1.0
    max_iter: int = 200
    tol: float = 1e-8
    bandwidth: float | None = None
    random_state: Seed = None

    def score_features(self, table: MemoryTable) -> FloatArray:
        self.refuse_past_memory(table, tables=2, of_side=2)
        n_clusters = cap_clusters(self.n_clusters, table.n_samples)
        rng = self.random_generator()
        # The fit works in this unit, so it does not depend on the unit of X.
        unit = float(np.sqrt(np.mean(table.moments.variance)))
        values = self.centred_values(table) / unit
        alpha_max = 2.0 * float(np.sqrt(table.moments.sum_of_squares.max())) / unit
        if self.graph == "heat":
            L = laplacian(self.join_neighbours(values, rng, unit))
        else:
            weights = reconstruction_weights(values, self.list_neighbours(values))
            L = reconstruction_laplacian(weights)
        with one_blas_thread_if_small(min(values.shape)):
            result = solve_jelsr(
                WeightedRidge(values),
                L,
                max(1, n_clusters - 1),
                rng,
                alpha=float(self.alpha) * alpha_max,
                beta=float(self.beta),
                max_iter=self.max_iter,
                tol=self.tol,
            )
        # In the end a step usually lowers the objective by less than a millionth of it.
        remedy = (
            f"The last of max_iter={self.max_iter} steps still lowered the objective by "
            f"{result.change:.2g} of its value. Raise max_iter; 200 is usual."
        )
        self.store_run(result, remedy if result.change > 1e-4 else None)
        norms = row_norms(result.W)
        self.components_ = table.to_all_columns(result.W.T / unit)
        self.embedding_ = result.target
        self.n_active_ = int(np.count_nonzero(norms > 1e-6 * norms.max()))
        self.alpha_max_ = alpha_max * unit
        return table.to_all_columns(norms / unit)
