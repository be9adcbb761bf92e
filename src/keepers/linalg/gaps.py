"""Gaps (NaN) in a table, filled by a model of a few components.

Every column is standardised by the mean and deviation of its observed values, and modelled as ::

    z_ij = c_j + w_j' t_i + noise,   t_i ~ N(0, I),   w_jk ~ N(0, 1 / a_k),   c_j ~ N(0, 1),

with the same noise variance v in all columns: probabilistic PCA with a prior on the loadings
(Bishop 1999; with missing values Ilin and Raiko, JMLR 2010). The posteriors of t and of (w, c) are
taken to be independent; given the other, each is Gaussian in closed form. Updating them in turn,
with v and a at their best values, never lowers the bound on the likelihood. Loadings of columns
with few observed values are shrunk more, and components without support vanish.

The fit uses at most 2,000 rows, always the same ones. Then every row is filled by a ridge
regression of its observed values on the loadings, and so are new rows. Nothing is random.

An estimate lacks the noise of a value. With estimates z = w't as they are, a column has the right
covariances with others, but neighbouring rows agree on it more than on complete columns: columns
with many gaps seem to carry structure. If a share p of the column is observed, the components
explain the share R of it, and gaps are filled with s z, agreement relative to variance is
R (p + (1 - p) s)^2 / (p + (1 - p) s^2 R). It is R, as in the complete column, for ::

    s = 1 / (1 + sqrt((1 - R) / p)).

Gaps are filled with sqrt(s) z, between the two.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.exceptions import DataError
from keepers.linalg.ordering import drawn_rows
from keepers.linalg.scatter import CONSTANT_RATIO, ColumnMoments, as_scatter
from keepers.linalg.spectrum import edge_of_scatter, leading_spectrum, principal_subspace

MOST_ROWS_FITTED = 2000
MOST_COMPONENTS = 40
MAX_ITER = 60
TOLERANCE = 3e-4
# Below this share of the variance of the columns, noise is rounding.
_LEAST_NOISE = 1e-9
# Components whose squared loadings are below this on average have vanished.
_VANISHED = 1e-12
_COLUMNS_AT_ONCE = 256
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class ObservedColumns:
    """Number, mean and standard deviation of the observed values of every column."""

    counts: IndexArray
    means: FloatArray
    scales: FloatArray
    """Divided by the number of values; 0 for columns that do not vary."""


@dataclass(frozen=True)
class GapModel:
    """The fitted model; `fill_rows` needs nothing else."""

    means: FloatArray
    """Column means in the model."""
    scales: FloatArray
    """Standard deviations of the observed values; 0 for columns that do not vary."""
    loadings: FloatArray
    """Loadings of the standardised columns; shape (n_features, rank)."""
    uncertainty: FloatArray
    """Variance of the loadings of each column."""
    weights: FloatArray
    """Factors for the estimates of each column."""
    noise: float
    """Variance that the components leave in a standardised column."""
    objective: tuple[float, ...] = ()
    """The bound on the log-likelihood after every step; it never falls."""

    @property
    def rank(self) -> int:
        """The number of components; 0 fills with means."""
        return self.loadings.shape[1]


def fit_gap_model(X: FloatArray, *, max_iter: int = MAX_ITER) -> GapModel:
    """The model of a float64 table with NaN in its gaps and a value in every column.

    Where no component stands out from noise, gaps are filled with the means of the columns.
    """
    observed = observed_columns(X)
    means, scales = observed.means, observed.scales
    if not np.all(np.isfinite(means) & np.isfinite(scales)):
        raise DataError(
            "A model of the gaps needs finite values that float64 can sum; some columns hold "
            "others. Drop infinite values, or rescale X."
        )
    (n_samples, n_features), varying = X.shape, np.flatnonzero(scales > 0)
    X = X[drawn_rows(n_samples, MOST_ROWS_FITTED, seed=0)]
    varying = varying[np.any(~np.isnan(X[:, varying]), axis=0)]
    uncertainty = np.zeros(n_features)
    Z, is_observed = _standardise(X[:, varying], means[varying], scales[varying])
    start = _principal_loadings(Z)
    if start is None:
        none, ones = np.empty((n_features, 0)), np.ones(n_features)
        return GapModel(means, scales, none, uncertainty, ones, 1.0)
    found = _VariationalPCA(Z, is_observed, start)
    found.iterate(max_iter)
    kept = np.flatnonzero(np.mean(found.loadings**2, axis=0) > _VANISHED)
    loadings = np.zeros((n_features, len(kept)))
    means[varying] += scales[varying] * found.offsets
    loadings[varying] = found.loadings[:, kept]
    uncertainty[varying] = found.uncertainty
    weights = _weights(loadings, found.noise, observed.counts / n_samples)
    objective = tuple(found.objective)
    return GapModel(means, scales, loadings, uncertainty, weights, found.noise, objective)


def fill_rows(model: GapModel, X: FloatArray) -> FloatArray:
    """A copy of X with its gaps filled: each row from what is observed of it."""
    filled = X.copy()
    with_gaps = np.flatnonzero(np.isnan(X).any(axis=1))
    for start in range(0, len(with_gaps), _ROWS_AT_ONCE):
        rows = with_gaps[start : start + _ROWS_AT_ONCE]
        block = X[rows]
        gaps = np.isnan(block)
        estimate = _components(model, block) @ model.loadings.T
        estimate *= model.scales * model.weights
        filled[rows] = np.where(gaps, model.means + estimate, block)
    return filled


def observed_columns(X: FloatArray) -> ObservedColumns:
    """Number, mean and standard deviation of the values of every column that are not NaN."""
    counts, means, variances = np.zeros((3, X.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        for columns in _column_blocks(X.shape[1]):
            block = X[:, columns]
            there = ~np.isnan(block)
            n = np.maximum(there.sum(axis=0), 1)
            mean = np.where(there, block, 0.0).sum(axis=0) / n
            centred = np.where(there, block - mean, 0.0)
            residue = centred.sum(axis=0) / n  # the mean that rounding left
            counts[columns], means[columns] = there.sum(axis=0), mean + residue
            # Lengths rather than squares, which may leave the range of float64.
            largest = np.maximum(np.abs(centred).max(axis=0, initial=0.0), np.finfo(float).tiny)
            centred = np.where(there, centred - residue, 0.0) / largest
            variances[columns] = np.einsum("ij,ij->j", centred, centred) / n * largest**2
    scales = np.sqrt(variances)
    scales[scales <= CONSTANT_RATIO * np.abs(means)] = 0.0  # rounding noise of the mean
    return ObservedColumns(counts.astype(np.intp), means, scales)


def _standardise(
    X: FloatArray, means: FloatArray, scales: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Columns in standard units with 0 in the gaps, and the mask of values."""
    there = ~np.isnan(X)
    return np.where(there, (X - means) / scales, 0.0), there


def _weights(loadings: FloatArray, noise: float, shares: FloatArray) -> FloatArray:
    """Factors of the estimates, from the observed share of every column."""
    noise -= _LEAST_NOISE  # at which the components explain everything
    explained = np.einsum("ij,ij->i", loadings, loadings)
    unexplained = noise / np.maximum(explained + noise, np.finfo(float).tiny)
    return np.asarray(1.0 / np.sqrt(1.0 + np.sqrt(unexplained / shares)))


def _principal_loadings(Z: FloatArray) -> FloatArray | None:
    """Twice the number of components that stand out from noise; None if none does.

    The prior shrinks the loadings of those beyond.
    """
    n_samples, n_features = Z.shape
    if n_samples < 3 or n_features < 2:
        return None
    mean = Z.mean(axis=0)
    squares = np.einsum("ij,ij->j", Z, Z) - n_samples * mean**2
    moments = ColumnMoments(n_samples, mean, squares)
    scatter = as_scatter(Z, moments, MOST_COMPONENTS)
    rng = np.random.default_rng(0)
    standing_out = leading_spectrum(
        scatter, "auto", n_samples=n_samples, sum_of_squares=squares, rng=rng
    )
    if standing_out.values[0] <= edge_of_scatter(squares, n_samples):
        return None
    width = min(2 * len(standing_out.values) + 2, MOST_COMPONENTS, n_samples - 1, n_features)
    found = principal_subspace(scatter, width, rng)
    deviations = np.sqrt(np.maximum(found.values, 0.0) / n_samples)
    return np.asarray(found.vectors * np.maximum(deviations, np.finfo(float).eps))


class _VariationalPCA:
    """Posterior means and covariances of components and loadings, updated in turn.

    Second moments of all rows are the rows of one matrix: their sums over the observed values are
    products with the mask. Those of columns are never held for all.
    """

    def __init__(self, Z: FloatArray, observed: BoolArray, loadings: FloatArray) -> None:
        self._Z, self._observed = Z, observed
        self._n, (self._d, self._rank) = len(Z), loadings.shape
        self._count = float(observed.sum())
        self._squares = float(np.vdot(Z, Z))
        self.loadings, self.offsets = loadings, np.zeros(self._d)
        self.uncertainty = np.zeros(self._d)
        self.objective: list[float] = []
        share = self._count / observed.size
        of_loadings = np.einsum("ij,ij->j", loadings, loadings)
        explained = float(of_loadings.sum()) / (share * self._d)
        self.noise = float(np.clip(1.0 - explained, 0.1, 1.0))
        # First the loadings, then the offset. Zeros in the gaps make loadings smaller by the share.
        self._precisions = np.append(self._d * share**2 / of_loadings, 1.0)
        self._update_components(*self._moments_of_start(loadings / share))

    def iterate(self, max_iter: int) -> None:
        """Iterate until the bound rises by at most the tolerance per value."""
        for _ in range(max_iter):
            self._step()
            if len(self.objective) > 1:
                rise = self.objective[-1] - self.objective[-2]
                if rise <= TOLERANCE * self._count:
                    return

    def _moments_of_start(self, loadings: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums of every row over the loadings of the start, taken as exact."""
        W = np.hstack([loadings, np.zeros((self._d, 1))])
        second = np.zeros((self._n, (self._rank + 1) ** 2))
        for columns in _column_blocks(self._d):
            second += self._observed[:, columns] @ _products(W[columns])
        return second, self._Z @ W

    def _step(self) -> None:
        n, d, rank = self._n, self._d, self._rank
        second = np.zeros((n, (rank + 1) ** 2))
        first = np.zeros((n, rank + 1))
        squared_loadings = np.zeros(rank + 1)
        error, log_volume = self._squares, 0.0
        for columns in _column_blocks(d):
            observed = self._observed[:, columns].astype(np.float64)
            Z = self._Z[:, columns]
            A = _as_matrices(observed.T @ self._second_moments)
            B = Z.T @ self._extended
            covariances, logs = _inverses(A / self.noise + np.diag(self._precisions))
            W = np.einsum("jkl,jl->jk", covariances, B) / self.noise
            self.loadings[columns], self.offsets[columns] = W[:, :rank], W[:, rank]
            variances = np.einsum("jkk->jk", covariances)
            self.uncertainty[columns] = variances[:, :rank].mean(axis=1)
            log_volume += logs
            covariances += _as_matrices(_products(W))  # now second moments
            error += float(np.vdot(A, covariances)) - 2.0 * float(np.vdot(W, B))
            squared_loadings += np.einsum("jkk->k", covariances)
            second += observed @ covariances.reshape(len(W), -1)
            first += Z @ W
        self.noise = max(error / self._count, _LEAST_NOISE)
        self._precisions[:rank] = d / squared_loadings[:rank]
        prior = d * (rank + 1 + float(np.log(self._precisions).sum()))
        prior -= float(self._precisions @ squared_loadings)
        of_rows = self._update_components(second, first)
        self.objective.append(of_rows + 0.5 * (prior + log_volume))

    def _update_components(self, second: FloatArray, first: FloatArray) -> float:
        """Posteriors of the rows; returns their part of the bound and that of the errors."""
        n, rank = self._n, self._rank
        P = _as_matrices(second)
        covariances, log_volume = _inverses(P[:, :rank, :rank] / self.noise + np.eye(rank))
        wanted = (first[:, :rank] - P[:, :rank, rank]) / self.noise
        T = np.einsum("ikl,il->ik", covariances, wanted)
        extended = np.ones((n, rank + 1))
        extended[:, :rank] = T
        moments = _as_matrices(_products(extended))
        moments[:, :rank, :rank] += covariances
        self._extended, self._second_moments = extended, moments.reshape(n, -1)
        error = self._squares - 2.0 * float(np.vdot(extended, first)) + float(np.vdot(P, moments))
        size = float(np.einsum("ikk->", moments[:, :rank, :rank]))
        fit = self._count * np.log(2.0 * np.pi * self.noise) + error / self.noise
        return 0.5 * (n * rank + log_volume - size - fit)


def _products(vectors: FloatArray) -> FloatArray:
    """The matrix vv' of every row v, as a row."""
    products = vectors[:, :, np.newaxis] * vectors[:, np.newaxis, :]
    return products.reshape(len(vectors), -1)


def _as_matrices(rows: FloatArray) -> FloatArray:
    """Square matrices from their entries in rows."""
    size = math.isqrt(rows.shape[1])
    return rows.reshape(-1, size, size)


def _inverses(matrices: FloatArray) -> tuple[FloatArray, float]:
    """Inverses of positive definite matrices, and the sum of their log-determinants."""
    factors = np.linalg.cholesky(matrices)
    diagonals = np.einsum("ikk->ik", factors)
    inverse_factors = np.linalg.inv(factors)
    inverses = inverse_factors.transpose(0, 2, 1) @ inverse_factors
    return inverses, -2.0 * float(np.log(diagonals).sum())


def _components(model: GapModel, X: FloatArray) -> FloatArray:
    """The components of rows with gaps: ridge regression of what is observed on the loadings."""
    rank = model.rank
    gram = np.zeros((len(X), rank**2))
    wanted, uncertain = np.zeros((len(X), rank)), np.zeros(len(X))
    varying = np.flatnonzero(model.scales > 0)
    for places in _column_blocks(len(varying) if rank else 0):
        columns = varying[places]
        Z, there = _standardise(X[:, columns], model.means[columns], model.scales[columns])
        observed = there.astype(np.float64)
        gram += observed @ _products(model.loadings[columns])
        wanted += Z @ model.loadings[columns]
        uncertain += observed @ model.uncertainty[columns]
    ridge = (model.noise + uncertain)[:, np.newaxis, np.newaxis] * np.eye(rank)
    found = np.linalg.solve(gram.reshape(ridge.shape) + ridge, wanted[:, :, np.newaxis])
    return np.asarray(found[:, :, 0])


def _column_blocks(n_columns: int) -> Iterator[slice]:
    for start in range(0, n_columns, _COLUMNS_AT_ONCE):
        yield slice(start, min(start + _COLUMNS_AT_ONCE, n_columns))
