"""Which features carry a structure they share with others, and how many of them are enough.

A feature carries structure if the leading components of the *other* features predict it better
than chance. The features are dealt into folds; for each fold, the leading components of the rest
are taken, and every feature of the fold is regressed on them, by its ranks. A feature that is
independent of all others then has a squared multiple correlation that follows the
Beta(m/2, (n-1-m)/2) distribution, however large its variance, so its p-value is uniform. This is
done twice, with the components of the features as they are, which see a few strong features among
many, and at the same variance, which are not led astray by one feature of large variance; the
smaller p-value counts, doubled. Benjamini and Hochberg's procedure turns the p-values into a set;
if no feature has anything to do with any other, that set is empty except with probability
``level``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.stats import beta, rankdata

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.moments import ColumnMoments, column_moments
from keepers.linalg.ordering import knee_of
from keepers.linalg.spectrum import edge_of_scatter
from keepers.linalg.storage import as_array, by_columns
from keepers.solvers.denoised_laplacian import discoveries

LEVEL = 0.01
FOLDS = 10
MOST_SAMPLES = 2000
MOST_COMPONENTS = 20
_COLUMNS_AT_ONCE = 1024


@dataclass(frozen=True)
class Structure:
    """What the features of a table have to do with each other."""

    p_values: FloatArray
    """Per feature: how often a feature unrelated to all others would be predicted as well."""
    carries: BoolArray
    """Features that carry structure, false discovery rate held at ``LEVEL``."""
    n_components: int
    """Components with more variance than unrelated columns would give them, at least 1."""
    leverages: FloatArray
    """Per feature: squared norm of its row in these components."""

    @property
    def found(self) -> bool:
        """Whether there is any."""
        return bool(self.carries.any())

    @property
    def n_carrying(self) -> int:
        """How many features carry structure."""
        return int(self.carries.sum())

    @property
    def knee(self) -> int | None:
        """Where the curve of leverages bends."""
        return knee_of(np.sort(self.leverages)[::-1])

    @property
    def n_features_to_select(self) -> int:
        """How many to keep: those that carry structure, up to the knee; 0 if there is none."""
        return self.n_carrying if self.knee is None else min(self.n_carrying, self.knee)


def find_structure(X: Any, rng: np.random.Generator, level: float = LEVEL) -> Structure:
    """Test every column of an array or CSR/CSC matrix; none of them may be constant."""
    n_samples, n_features = X.shape
    if n_samples > MOST_SAMPLES:
        X = X[np.sort(rng.choice(n_samples, MOST_SAMPLES, replace=False))]
    X = by_columns(X)
    moments = column_moments(X)
    # Columns may be constant in the samples drawn.
    lengths = np.sqrt(np.where(moments.sum_of_squares > 0.0, moments.sum_of_squares, 1.0))
    plain, alike = (_Features(X, moments, f) for f in (np.ones(n_features), 1.0 / lengths))
    folds = rng.permutation(n_features) % min(FOLDS, n_features)
    p_values = 2.0 * np.minimum(_p_values(plain, folds), _p_values(alike, folds))
    p_values = np.minimum(p_values, 1.0)
    return Structure(p_values, discoveries(p_values, level), plain.n_components, plain.leverages())


class _Features:
    """The columns of X, centred and multiplied by factors, and their leading components."""

    def __init__(self, X: Any, moments: ColumnMoments, factors: FloatArray) -> None:
        self.X = X
        self.mean = moments.mean
        self.factors = factors
        self.gram = self.gram_of(np.arange(len(factors)))
        self.values, self.vectors = np.linalg.eigh(self.gram)
        self.n_components = self._count_components(moments.sum_of_squares * factors**2)

    def block(self, columns: IndexArray) -> FloatArray:
        """Some of the columns as an array."""
        block = as_array(self.X[:, columns])
        return np.asarray((block - self.mean[columns]) * self.factors[columns])

    def gram_of(self, columns: IndexArray) -> FloatArray:
        """The sum of the outer products of some of the columns."""
        total = np.zeros((self.X.shape[0], self.X.shape[0]))
        for part in _parts(columns):
            block = self.block(part)
            total += block @ block.T
        return total

    def _count_components(self, sums_of_squares: FloatArray) -> int:
        """Eigenvalues above the edge of unrelated columns, at least 1."""
        n_samples = self.X.shape[0]
        edge = edge_of_scatter(sums_of_squares, n_samples)
        most = max(1, min(MOST_COMPONENTS, n_samples // 4))
        return int(np.clip(np.sum(self.values > edge), 1, most))

    def leverages(self) -> FloatArray:
        """Squared row norms of the components, as eigenvectors of the scatter."""
        values = np.maximum(self.values[-self.n_components :], np.finfo(float).tiny)
        vectors = self.vectors[:, -self.n_components :]
        parts = _parts(np.arange(len(self.mean)))
        return np.concatenate(
            [np.sum((self.block(part).T @ vectors) ** 2 / values, axis=1) for part in parts]
        )


def _parts(columns: IndexArray) -> list[IndexArray]:
    return [
        columns[start : start + _COLUMNS_AT_ONCE]
        for start in range(0, len(columns), _COLUMNS_AT_ONCE)
    ]


def _p_values(features: _Features, folds: IndexArray) -> FloatArray:
    """P-values of all columns, each given the leading components of the other folds."""
    n_samples = features.X.shape[0]
    width = features.n_components
    freedom = n_samples - 1 - width
    p_values = np.ones(len(folds))
    if folds.max() == 0 or freedom < 1:
        return p_values
    for fold in range(int(folds.max()) + 1):
        held_out = np.flatnonzero(folds == fold)
        rest = features.gram - features.gram_of(held_out)
        components = eigh(rest, subset_by_index=[n_samples - width, n_samples - 1])[1]
        basis, _ = np.linalg.qr(components - components.mean(axis=0))
        for part in _parts(held_out):
            explained = np.sum((basis.T @ _ranks(features.block(part))) ** 2, axis=0)
            p_values[part] = beta.sf(np.minimum(explained, 1.0), width / 2, freedom / 2)
    return p_values


def _ranks(block: FloatArray) -> FloatArray:
    """Ranks of each column, centred, of unit length."""
    ranks = rankdata(block, axis=0)
    ranks -= ranks.mean(axis=0)
    lengths = np.sqrt(np.einsum("ij,ij->j", ranks, ranks))
    return np.asarray(ranks / np.where(lengths > 0.0, lengths, 1.0))
