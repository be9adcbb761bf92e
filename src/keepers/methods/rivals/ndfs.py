"""NDFS: non-negative spectral clusters and their row-sparse regression on the features, together.

The objective is in the docstring of `NDFS`; the graph has the weights S and the degrees D. One step
takes the best W for a reweighted penalty, a ridge regression; then it moves F by a multiplicative
update and scales its columns to length 1. The released programs divide by N + gamma F F'F with
N = L F + alpha (F - X W). N can be negative, and then F becomes negative too. Here the negative
parts of N move to the numerator,

    F <- F * (gamma F + S F + alpha P+) / (D F + alpha F + alpha P- + gamma F F'F),   P = X W,

P+ and P- being the positive and the negative part of P. Fixed points are the same, and F >= 0.

The penalty sum_j r_j, r_j = sqrt(|w_j|^2 + eps), is bounded by a quadratic with the weights
1 / (2 r_j) of the last step, as in JELSR. So W solves regressions on one table, again and again,
with a weight q_j > 0 for every feature:

    W = argmin |X W - Y|^2 + sum_j |w_j|^2 / q_j,      R = Y - X W.

Two forms give the same numbers, and the one with the smaller matrix is taken. Neither matrix has an
eigenvalue below 1, so weights near zero do no harm:

* d <= n: W = s (I + s X'X s)^-1 s X'Y with s = diag(sqrt(q)), X'X being formed once;
* d > n:  R = (I + X diag(q) X')^-1 Y and W = diag(q) X'R.
"""

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
from sklearn.utils import check_random_state

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import FloatArray
from keepers.exceptions import DataWarning, warn_caller
from keepers.linalg.scatter import as_array, row_sums
from keepers.linalg.spectrum import row_norms
from keepers.methods.parameters import Seed, positive
from keepers.methods.reading import MemoryTable
from keepers.methods.rivals import EPS, Rival

# The smoothing leaves rows that the penalty sends to zero up to about this norm.
INACTIVE = 2.0 * EPS**0.5


class WeightedRidge:
    """The table of the regressions."""

    def __init__(self, X: FloatArray) -> None:
        self.X = X
        self.n_samples, self.n_features = X.shape
        self._gram = X.T @ X if self.n_features <= self.n_samples else None

    def at(self, q: FloatArray) -> "RidgeFactor":
        """The regressions with weights ``q``."""
        root = np.sqrt(q)
        if self._gram is not None:
            matrix = root[:, np.newaxis] * self._gram * root
        else:
            weighted = self.X * root
            matrix = weighted @ weighted.T
        # The 1 is raised where the rounding of the matrix would exceed it.
        diagonal = np.diag_indices(len(matrix))
        rounding = len(matrix) * EPS * float(matrix[diagonal].max(initial=0.0))
        matrix[diagonal] += max(1.0, rounding)
        cholesky = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
        return RidgeFactor(self.X, q[:, np.newaxis], cholesky)


@dataclass(frozen=True)
class RidgeFactor:
    """Regressions on one table with one choice of weights, and the factor of their matrix."""

    X: FloatArray
    q: FloatArray
    cholesky: tuple[FloatArray, bool]

    def fit(self, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """W and R for a block of n rows."""
        if len(self.q) <= len(self.X):
            root = np.sqrt(self.q)
            W = root * cho_solve(self.cholesky, root * (self.X.T @ Y), check_finite=False)
            return W, Y - self.X @ W
        residual = self.residual(Y)
        return self.q * (self.X.T @ residual), residual

    def residual(self, Y: FloatArray) -> FloatArray:
        """R, without W where that saves work."""
        if len(self.q) <= len(self.X):
            return self.fit(Y)[1]
        return np.asarray(cho_solve(self.cholesky, Y, check_finite=False))


@dataclass(frozen=True)
class RowSparseRegression:
    """The last step of a method that learns regressions and what they predict together."""

    W: FloatArray
    target: FloatArray
    objective: FloatArray
    change: float
    """The relative change in the last step; infinite after one step."""
    converged: bool


def vanishing_beta(X: FloatArray, clusters: FloatArray) -> float:
    """The least beta for which W = 0 is stationary, 2 max |f_j'F|, F having columns of length 1.

    Never below what rounding makes of pulls that cancel, in a table whose values are of size 1: one
    cluster explains nothing of centred features.
    """
    pull = float(row_norms(X.T @ (clusters / np.sqrt(clusters.sum(axis=0)))).max())
    return 2.0 * max(pull, 1e-10 * len(X) ** 0.5)


def solve_ndfs(
    table: WeightedRidge,
    graph: sp.csr_array,
    F: FloatArray,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    max_iter: int,
    tol: float,
) -> RowSparseRegression:
    """Iterate from F until row norms change by no more than ``tol`` of the largest, in one step."""
    D = row_sums(graph)[:, np.newaxis]
    norms = np.full(table.n_features, F.shape[1] ** 0.5)  # of W = 1
    history: list[float] = []
    change = np.inf
    while len(history) < max_iter and change > tol:
        W, residual = table.at(2.0 / beta * np.sqrt(norms**2 + EPS)).fit(F)
        P = F - residual
        above = gamma * F + graph @ F + alpha * np.maximum(P, 0.0) + EPS
        below = (D + alpha) * F + alpha * np.maximum(-P, 0.0) + gamma * (F @ (F.T @ F)) + EPS
        F = F * (above / below)
        F /= np.sqrt(np.einsum("ij,ij->j", F, F) + EPS)
        last, norms = norms, row_norms(W)
        history.append(
            float(np.vdot(F, D * F - graph @ F))
            + alpha * float(np.sum((P - F) ** 2) + beta * norms.sum())
            + gamma / 2 * float(np.sum((F.T @ F - np.eye(F.shape[1])) ** 2))
        )
        if len(history) > 1:
            change = float(np.abs(norms - last).max() / max(norms.max(), EPS))
    return RowSparseRegression(W, F, np.array(history), change, change <= tol)


def kmeans_clusters(X: FloatArray, n_clusters: int, random: np.random.RandomState) -> FloatArray:
    """1 where a sample is in a cluster of k-means, else 0; no cluster (column) is empty.

    Warns if there are fewer distinct samples than clusters, and returns fewer clusters.
    """
    with warnings.catch_warnings():  # the message below replaces its own
        warnings.simplefilter("ignore", SklearnConvergenceWarning)
        kmeans = KMeans(min(n_clusters, len(X)), n_init=10, random_state=random)
        clusters = np.unique(kmeans.fit(X).labels_)[:, np.newaxis] == kmeans.labels_
    if len(clusters) < n_clusters:
        warn_caller(
            f"n_clusters={n_clusters} needs at least {n_clusters} distinct samples; k-means found "
            f"{len(clusters)} clusters in {len(X)} samples. {len(clusters)} clusters are used.",
            DataWarning,
        )
    return np.asarray(clusters.T, dtype=np.float64)


def start_clustering(
    selector: Rival, X: FloatArray, unit: float = 1.0
) -> tuple[sp.csr_array, FloatArray]:
    """The graph of the samples, which were divided by ``unit``, and their k-means clusters."""
    random = check_random_state(selector.random_state)
    rng = np.random.default_rng(random.randint(2**31 - 1))
    graph = selector.join_neighbours(X, rng, unit)
    return graph, kmeans_clusters(X, selector.n_clusters, random)


@dataclass(eq=False, repr=False, kw_only=True)
class NDFS(Rival):
    """Nonnegative discriminative feature selection: clusters and what predicts them.

    Learns a non-negative indicator of clusters F (samples x clusters) that is smooth on a graph of
    the samples, together with a regression W (features x clusters) of F on the features. Most rows
    of W become zero::

        minimise  Tr(F' L F) + alpha (|X W - F|^2 + beta sum_j |w_j|) + gamma/2 |F'F - I|^2
        subject to  F >= 0,

    where L is the Laplacian of the graph. A feature's score is the norm of its row of W. This is
    the method of Li, Yang, Liu, Zhou and Lu (AAAI 2012), with an update that keeps F non-negative
    (the released programs' does not), and with weights that do not depend on the unit of X.

    X is taken as it is: a feature with a large mean can stand in for the intercept that the
    regression does not have. Standardise first unless zero means something. A sparse X is made
    dense.

    Parameters
    ----------
    {n_features_to_select}
    n_clusters : int, default=5
        Columns of F and W. Capped, with a warning, at the number of distinct samples.
    {n_neighbors}
    alpha : float, default=1.0
        Weight of the regression against the graph. F follows it only as far as ``gamma`` lets it.
    beta : float in (0, 1], default=0.1
        Weight of the row sparsity, as a share of ``beta_max_``.
    gamma : float, default=1000.0
        Weight of F'F = I. From about 1e6 on the clusters stay what k-means has made of them; the
        paper's programs take 1e8.
    max_iter : int, default=200
        Maximum number of steps; usually all are needed.
    tol : float, default=1e-6
        The iteration ends when no score changes by more than this share of the largest.
    {bandwidth}
    {max_correlation}
    random_state : int, RandomState or None, default=None
        Seeds the k-means start, and the sample from which the bandwidth is taken beyond 3000 rows.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Row norms of W; higher is better. Rows that the penalty sends to zero keep a small value,
        larger the closer they are to being active.
    {fitted}
    components_ : array of shape (n_clusters, n_features)
        W transposed.
    indicator_ : array of shape (n_samples, n_clusters)
        F; the largest entry of a row is the cluster of the sample.
    {run}
        Usually not. Warns if scores still changed by more than 0.05 of the largest.
    n_active_ : int
        Number of rows of W that are longer than the smoothing leaves inactive ones.
    beta_max_ : float
        The least weight of the row sparsity for which W = 0 is stationary for the k-means clusters.

    Examples
    --------
    >>> from keepers import NDFS, datasets
    >>> NDFS(50, n_clusters=4, random_state=0).fit(datasets.load("srbct").X).indicator_.shape
    (83, 4)
    """

    parameter_rules: ClassVar = {
        "alpha": positive(zero=True),
        "beta": positive(at_most=1.0, hint="It is a share of beta_max_."),
        "gamma": positive(hint="Without it F would vanish."),
    }

    n_clusters: int = 5
    n_neighbors: int = 5
    alpha: float = 1.0
    beta: float = 0.1
    gamma: float = 1000.0
    max_iter: int = 200
    tol: float = 1e-6
    bandwidth: float | None = None
    random_state: Seed = None

    def score_features(self, table: MemoryTable) -> FloatArray:
        self.refuse_past_memory(table, tables=2, of_side=2)
        # The root mean square of X is the unit of the fit, which then does not depend on X's own.
        unit = float(np.sqrt(np.mean(table.moments.variance + table.moments.mean**2)))
        values = as_array(table.in_double()) / unit
        graph, clusters = start_clustering(self, values, unit)
        with one_blas_thread_if_small(min(values.shape)):
            beta_max = vanishing_beta(values, clusters)
            result = solve_ndfs(
                WeightedRidge(values),
                graph,
                clusters + 0.2,  # what is 0 would stay 0
                alpha=float(self.alpha),
                beta=float(self.beta) * beta_max,
                gamma=float(self.gamma),
                max_iter=self.max_iter,
                tol=self.tol,
            )
        # After 200 steps a step usually changes the scores by a thousandth of the largest.
        remedy = (
            f"In the last of max_iter={self.max_iter} steps the scores still changed by "
            f"{result.change:.2g} of the largest. Raise max_iter; 200 is usual."
        )
        self.store_run(result, remedy if result.change > 0.05 else None)
        self.components_ = table.to_all_columns(result.W.T / unit)
        self.indicator_ = result.target
        self.beta_max_ = beta_max * unit
        norms = row_norms(result.W)
        self.n_active_ = int(np.count_nonzero(norms > INACTIVE))
        return table.to_all_columns(norms / unit)
