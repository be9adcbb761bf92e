"""Which features carry a structure they share with others, and how many of them are enough.

A feature carries structure if the leading components of the *other* features predict it better
than chance. The features are dealt into folds; for each fold, the leading components of the rest
are taken, and every feature of the fold is regressed on them, by its ranks. A feature that is
independent of all others then has a squared multiple correlation that follows the
Beta(m/2, (n-1-m)/2) distribution, however large its variance, so its p-value is uniform.
Benjamini and Hochberg's procedure turns the p-values into a set; if no feature has anything to do
with any other, that set is empty except with probability ``level``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.stats import beta, rankdata

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.moments import ColumnMoments, column_moments
from keepers.linalg.null_spectrum import null_edge

__all__ = ["Structure", "find_structure", "knee_of"]

LEVEL = 0.01
FOLDS = 10
MOST_SAMPLES = 2000
MOST_COMPONENTS = 20
_COLUMNS_AT_ONCE = 1024
# A falling curve that is nowhere below its chord by more than this has no knee.
_SHALLOWEST_KNEE = 0.05


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
    X = X.tocsc() if sp.issparse(X) else X
    moments = column_moments(X)
    gram = _gram(X, moments, np.arange(n_features))
    values, vectors = np.linalg.eigh(gram)
    n_components = _count_components(values, moments)
    leading = vectors[:, -n_components:]
    p_values = np.ones(n_features)
    n_folds = min(FOLDS, n_features)
    folds = rng.permutation(n_features) % n_folds
    for fold in range(n_folds if n_folds > 1 else 0):
        held_out = np.flatnonzero(folds == fold)
        p_values[held_out] = _unpredicted(X, moments, held_out, gram, n_components)
    return Structure(
        p_values,
        _discoveries(p_values, level),
        n_components,
        _leverages(X, moments, leading, np.maximum(values[-n_components:], 1e-300)),
    )


def _count_components(values: FloatArray, moments: ColumnMoments) -> int:
    """Eigenvalues above the edge of unrelated columns, at least 1."""
    freedom = moments.n_samples - 1
    edge = freedom * null_edge(moments.sum_of_squares / freedom, freedom)
    most = max(1, min(MOST_COMPONENTS, moments.n_samples // 4))
    return int(np.clip(np.sum(values > edge), 1, most))


def _blocks(columns: IndexArray) -> list[IndexArray]:
    return [
        columns[start : start + _COLUMNS_AT_ONCE]
        for start in range(0, len(columns), _COLUMNS_AT_ONCE)
    ]


def _centred(X: Any, moments: ColumnMoments, columns: IndexArray) -> FloatArray:
    block = X[:, columns]
    block = block.toarray() if sp.issparse(block) else block
    return np.asarray(block - moments.mean[columns])


def _gram(X: Any, moments: ColumnMoments, columns: IndexArray) -> FloatArray:
    """Xc Xc' over some of the columns."""
    total = np.zeros((X.shape[0], X.shape[0]))
    for block in _blocks(columns):
        centred = _centred(X, moments, block)
        total += centred @ centred.T
    return total


def _unpredicted(
    X: Any, moments: ColumnMoments, held_out: IndexArray, gram: FloatArray, n_components: int
) -> FloatArray:
    """P-values of the held-out columns, given the leading components of all the others."""
    n_samples = X.shape[0]
    rest = gram - _gram(X, moments, held_out)
    components = eigh(rest, subset_by_index=[n_samples - n_components, n_samples - 1])[1]
    basis, _ = np.linalg.qr(components - components.mean(axis=0))
    explained = np.concatenate(
        [
            np.sum((basis.T @ _ranks(_centred(X, moments, block))) ** 2, axis=0)
            for block in _blocks(held_out)
        ]
    )
    freedom = n_samples - 1 - n_components
    return np.asarray(beta.sf(np.minimum(explained, 1.0), n_components / 2, freedom / 2))


def _ranks(block: FloatArray) -> FloatArray:
    """Ranks of each column, centred, of unit length."""
    ranks = rankdata(block, axis=0)
    ranks -= ranks.mean(axis=0)
    lengths = np.sqrt(np.einsum("ij,ij->j", ranks, ranks))
    return np.asarray(ranks / np.where(lengths > 0.0, lengths, 1.0))


def _discoveries(p_values: FloatArray, level: float) -> BoolArray:
    """Benjamini and Hochberg's step-up procedure."""
    ordered = np.sort(p_values)
    below = np.flatnonzero(ordered <= level * np.arange(1, len(ordered) + 1) / len(ordered))
    if not len(below):
        return np.zeros(len(p_values), dtype=bool)
    return np.asarray(p_values <= ordered[below[-1]])


def _leverages(
    X: Any, moments: ColumnMoments, vectors: FloatArray, values: FloatArray
) -> FloatArray:
    """Squared row norms of the eigenvectors of the scatter, from those of the Gram matrix."""
    parts = [
        np.sum((_centred(X, moments, block).T @ vectors) ** 2 / values, axis=1)
        for block in _blocks(np.arange(X.shape[1]))
    ]
    return np.concatenate(parts)


def knee_of(scores: FloatArray) -> int | None:
    """How many features stand up to the knee of the score curve; None if it has none.

    Ranks and scores are both scaled to run from 0 to 1. The knee is the point of the falling curve
    that lies furthest below the straight line from its first to its last point. A curve that lies
    nowhere below it by more than a twentieth has no knee.

    Examples
    --------
    >>> knee_of(np.array([10.0, 9.0, 8.0, 0.2, 0.1, 0.0]))
    4
    >>> knee_of(np.array([3.0, 2.0, 1.0, 0.0])) is None
    True
    """
    if len(scores) < 3 or not scores[0] > scores[-1]:
        return None
    rank = np.linspace(0.0, 1.0, len(scores))
    height = (scores - scores[-1]) / (scores[0] - scores[-1])
    below = 1.0 - rank - height
    furthest = int(np.argmax(below))
    return furthest + 1 if below[furthest] > _SHALLOWEST_KNEE else None
