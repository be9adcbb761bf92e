"""UDFS: unsupervised discriminative feature selection (Yang, Shen, Ma, Huang and Zhou, IJCAI 2011).

The objective is in the docstring of `UDFS`. Lbar adds up, over every sample and its k nearest
neighbours (a patch of k + 1 rows, centred to Z_i), how badly a linear map separates these rows:

    Lbar = sum_i P_i' H B_i H P_i,      B_i = (Z_i Z_i' + lambda I)^-1,      H = I - 11'/(k + 1),

P_i picking the rows of the patch. X' Lbar X would cancel (one far outlier left nothing of it), so
Lbar is never formed. With Z_i = U diag(sigma) V',

    M = sum_i F_i' F_i,      F_i = diag(1 / sqrt(sigma^2 + lambda)) U' Z_i,

where no row of F_i is longer than 1. Then follows the reweighting of `keepers.linalg.reweighting`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import FloatArray, IndexArray
from keepers.exceptions import ConvergenceWarning, warn_caller
from keepers.linalg import reweighting
from keepers.linalg.scatter import BLOCK_BYTES, row_blocks
from keepers.methods.parameters import (
    Seed,
    cap_columns,
    one_of,
    positive,
    refuse_quadratic_form,
    warn_of_noise,
)
from keepers.methods.reading import MemoryTable
from keepers.methods.rivals import Rival


def local_scatter(X: FloatArray, neighbours: IndexArray, regularization: float) -> FloatArray:
    """M of centred data X, from the n x k list of neighbours."""
    n_samples, n_features = X.shape
    patches = np.column_stack([np.arange(n_samples), neighbours])
    M = np.zeros((n_features, n_features))
    # Blocks much smaller than M would spend their time on adding it up.
    n_bytes = max(BLOCK_BYTES, M.nbytes // 2)
    for rows in row_blocks(n_samples, patches.shape[1] * n_features, n_bytes):
        F = _patch_factors(X[patches[rows]], regularization).reshape(-1, n_features)
        M += F.T @ F
    return M


def _patch_factors(patches: FloatArray, regularization: float) -> FloatArray:
    """F of every patch of a stack (b x (k + 1) x d); directions lost to rounding are zero."""
    width = patches.shape[1]
    Z = patches - patches.mean(axis=1, keepdims=True)
    spectrum, vectors = np.linalg.eigh(Z @ Z.transpose(0, 2, 1))
    eps = width * reweighting.EPS
    rounding = eps**2 * np.einsum("bij,bij->b", patches, patches)[:, np.newaxis]
    kept = spectrum > np.maximum(eps * spectrum[:, -1:], rounding)
    factors = np.where(kept, 1.0 / np.sqrt(np.maximum(spectrum, 0.0) + regularization), 0.0)
    F = factors[:, :, np.newaxis] * (vectors.transpose(0, 2, 1) @ Z)
    return np.asarray(F[:, 1:])  # Z'1 = 0: the first is always lost


@dataclass(eq=False, repr=False, kw_only=True)
class UDFS(Rival):
    """Unsupervised discriminative feature selection.

    Finds an orthonormal W (features x clusters) under which every sample and its nearest
    neighbours stay easy to tell apart, while a penalty on the norms of its rows drives most of
    them to zero::

        minimise  Tr(W' M W) + gamma * sum_j |w_j|   subject to W'W = I.

    M = X' Lbar X adds up the local scatter of all neighbourhoods. A feature's score is the squared
    norm of its row. The method is that of Yang, Shen, Ma, Huang and Zhou (IJCAI 2011).

    Parameters
    ----------
    {n_features_to_select}
    n_clusters : int, default=5
        Columns of W. Capped, with a warning, below the number of columns that vary.
    {n_neighbors}
    gamma : "scale" or float, default="scale"
        Weight of the penalty, on the scale of M; "scale" means 0.1 times the mean of its diagonal.
        No fixed number suits two tables: with gamma = 1, 5 to 8 rows were active on seven tables,
        with "scale" 20 to 150 on six of them.
    regularization : float, default=1000.0
        The paper's lambda: added to the local scatter before it is inverted. Compare it with the
        squared distances between neighbours: X -> aX with lambda -> a^2 lambda changes nothing.
    max_iter : int, default=100
        Eigenproblems at most.
    tol : float, default=1e-8
        The iteration ends when a step lowers the objective by no more than this, relatively.
    {max_correlation}
    {random_state}

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Squared row norms of W; higher is better. Those up to 1e-12 of the largest are rounding
        noise: values below that limit order these features by M_jj, the cheapest first.
    {fitted}
    {steps}
    n_active_ : int
        Features whose score is not rounding noise.
    gamma_ : float
        The penalty weight used.

    Examples
    --------
    >>> from keepers import UDFS, datasets
    >>> UDFS(3, n_clusters=2, gamma=0.1).fit(datasets.load("digits").X[:, 2:7]).converged_
    True
    """

    why_not_sparse = "it works with centred neighbourhoods, which have no zeros."
    parameter_rules: ClassVar = {
        "gamma": one_of("scale") | positive(),
        "regularization": positive(hint="The paper's lambda."),
    }

    n_clusters: int = 5
    n_neighbors: int = 5
    gamma: float | str = "scale"
    regularization: float = 1000.0
    max_iter: int = 100
    tol: float = 1e-8
    random_state: Seed = None

    def score_features(self, table: MemoryTable) -> FloatArray:
        n_samples, n_usable = table.X.shape
        n_clusters = cap_columns("n_clusters", self.n_clusters, n_usable)
        refuse_quadratic_form("UDFS", n_samples, n_usable)
        values = self.centred_values(table)
        neighbours = self.list_neighbours(values)
        coordinates, basis = reweighting.row_coordinates(values)
        M = local_scatter(coordinates, neighbours.indices, float(self.regularization))
        form = reweighting.form_in_coordinates(M, basis)
        scale = float(form.diagonal().mean()) or 10.0  # 0: all neighbours coincide
        self.gamma_ = 0.1 * scale if self.gamma == "scale" else float(self.gamma)
        with one_blas_thread_if_small(min(values.shape)):
            result = reweighting.row_sparse_projection(
                form,
                self.gamma_,
                n_clusters,
                reweighting.first_weights(np.sqrt(table.moments.variance)),
                self.random_generator(),
                max_iter=self.max_iter,
                tol=self.tol,
            )
        if not result.converged:
            warn_caller(
                f"The objective was still falling after max_iter={self.max_iter} steps. Raise "
                "max_iter or tol.",
                ConvergenceWarning,
            )
        self.store_run(result)
        self.n_active_ = result.n_active
        warn_of_noise(self.n_active_, self.n_features_to_select_)
        return table.to_all_columns(result.scores(form.diagonal()))
