"""Samples in the plane of the first two principal components, before and after selection."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from keepers._protocols import FloatArray, IndexArray, SymmetricOperator
from keepers.linalg.moments import ColumnMoments, column_moments, row_blocks
from keepers.linalg.scatter import as_scatter
from keepers.linalg.spectrum import principal_subspace

LARGEST_EXACT = 500
DRAWING_ACCURACY = 1e-3
MOST_POINTS = 2000
MOST_COLOURS = 10


@dataclass(frozen=True)
class Plane:
    """Coordinates on the first two principal components, and the share of variance of each."""

    points: FloatArray
    shares: tuple[float, float]


@dataclass(frozen=True)
class Planes:
    """The same samples by all features and by the kept ones."""

    before: Plane
    after: Plane
    samples: IndexArray
    """Which samples are shown."""
    n_samples: int


@dataclass(frozen=True)
class Classes:
    """Labels as colours: the largest classes have one each, the others share the last."""

    legend: tuple[str, ...]
    sizes: tuple[int, ...]
    n_sharing: int
    """Classes behind the last entry of the legend; 0 if every class has its own."""
    colour_of: IndexArray
    """Per sample its place in the legend."""


def planes_of(X: Any, moments: ColumnMoments, kept: IndexArray) -> Planes | None:
    """Both planes of at most 2000 samples, chosen by a fixed seed; None if no plane exists."""
    n_samples = X.shape[0]
    if n_samples < 3 or not np.any(moments.sum_of_squares[kept] > 0):
        return None
    before = plane_of(X, moments)
    chosen = X[:, kept]
    after = _turn_towards(before, plane_of(chosen, moments.subset(kept)))
    samples = np.arange(n_samples)
    if n_samples > MOST_POINTS:
        samples = np.sort(np.random.default_rng(0).choice(n_samples, MOST_POINTS, replace=False))
    return Planes(
        Plane(before.points[samples], before.shares),
        Plane(after.points[samples], after.shares),
        samples,
        n_samples,
    )


def plane_of(X: Any, moments: ColumnMoments | None = None) -> Plane:
    """The first two principal components of X; the second is 0 where X has only one."""
    moments = column_moments(X) if moments is None else moments
    n_samples, n_features = X.shape
    width = min(2, n_samples - 1, n_features)
    values, vectors = _leading(as_scatter(X, moments, width), width, min(X.shape))
    largest_first = np.argsort(-values, kind="stable")
    axes = _fix_signs(vectors[:, largest_first])
    points = np.zeros((n_samples, 2))
    for rows in row_blocks(n_samples, n_features):
        points[rows, :width] = _project(X[rows], moments.mean, axes)
    total = float(moments.sum_of_squares.sum())
    shares = np.zeros(2)
    shares[:width] = np.einsum("ij,ij->j", points, points)[:width] / total
    return Plane(points, (float(shares[0]), float(shares[1])))


def _leading(
    scatter: SymmetricOperator, width: int, smaller_side: int
) -> tuple[FloatArray, FloatArray]:
    """Leading eigenpairs: exact for a small table, by Lanczos to drawing accuracy for a large one.

    The selectors want the whole leading subspace and decompose up to 3000 x 3000 for it, which
    takes a quarter of a minute; a picture wants two axes, and some 70 products find them.
    """
    rng = np.random.default_rng(0)
    if smaller_side > LARGEST_EXACT:
        operator = LinearOperator(
            (scatter.size, scatter.size),
            matvec=lambda vector: scatter.matmat(vector.reshape(-1, 1)).ravel(),
            dtype=np.float64,
        )
        try:
            start = rng.standard_normal(scatter.size)
            values, vectors = eigsh(operator, k=width, v0=start, tol=DRAWING_ACCURACY)
            return values, vectors
        except ArpackNoConvergence:
            pass  # a spectrum without gaps; the block method below always ends
    subspace = principal_subspace(scatter, width, rng)
    return subspace.values, subspace.vectors


def _project(block: Any, mean: FloatArray, axes: FloatArray) -> FloatArray:
    if sp.issparse(block):
        return block @ axes - mean @ axes
    return (block - mean) @ axes


def _fix_signs(axes: FloatArray) -> FloatArray:
    """The largest entry of every axis positive: eigenvectors have no sign of their own."""
    largest = axes[np.argmax(np.abs(axes), axis=0), np.arange(axes.shape[1])]
    return axes * np.where(largest < 0, -1.0, 1.0)


def _turn_towards(before: Plane, after: Plane) -> Plane:
    """Turn the second plane so that samples stay on the side where they were in the first."""
    agreement = np.einsum("ij,ij->j", before.points, after.points)
    return Plane(after.points * np.where(agreement < 0, -1.0, 1.0), after.shares)


def classes_of(labels: list[str]) -> Classes:
    """At most ten colours: past ten classes the nine largest keep theirs, the rest share one."""
    words, index, counts = np.unique(
        np.array(labels, dtype=object), return_inverse=True, return_counts=True
    )
    by_size = np.argsort(-counts, kind="stable")
    n_own = len(words) if len(words) <= MOST_COLOURS else MOST_COLOURS - 1
    own = sorted(by_size[:n_own], key=lambda j: _reading_order(str(words[j])))
    n_sharing = len(words) - n_own
    place = np.full(len(words), n_own, dtype=np.intp)
    place[own] = np.arange(n_own)
    legend = tuple(str(words[j]) for j in own)
    sizes = tuple(int(counts[j]) for j in own)
    if n_sharing:
        legend += (f"{n_sharing} other classes",)
        sizes += (int(counts.sum()) - sum(sizes),)
    return Classes(legend, sizes, n_sharing, place[index])


def _reading_order(label: str) -> tuple[bool, float, str]:
    """Numbers first and by value, so that class 10 does not stand before class 2."""
    try:
        return False, float(label), label
    except ValueError:
        return True, 0.0, label
