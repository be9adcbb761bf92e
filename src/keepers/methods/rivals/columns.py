"""ColumnSubset and CUR: columns picked one after another to reconstruct the whole table.

Both pick a column of what is left of the table, A, and take it out with all that it explains:
q = a_j / |a_j|, A <- (I - qq')A. At first A = X, centred; a tall X is replaced by the triangle of
its QR decomposition.

**ColumnSubset** picks the column that explains most, the one with the largest
gain_j = |A'a_j|^2 / |a_j|^2 = f_j / |a_j|^2.  With w = A'q and G = AA', a pick changes

    f <- f - 2 w * (A'p) - |w|^2 w^2,     p = (I - qq') G q.

**CUR** picks the column with the largest leverage,

    pi_j = sum_i (A'u_i)_j^2 / |A'u_i|^2,     u_i the k leading eigenvectors of G.

Where the k-th eigenvalue is multiple, rounding would choose among its vectors: all of them count
then, each with the same part: leverages still sum to k.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.linalg import eigh, eigvalsh
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import FloatArray, IndexArray
from keepers.exceptions import DataWarning, warn_caller
from keepers.linalg.ordering import first_largest
from keepers.methods.parameters import check_component_count, whole
from keepers.methods.reading import MemoryTable
from keepers.methods.rivals import Rival

# A column of whose sum of squares less than this share is left is a combination of the picks.
SPANNED = 1e-12
# G and f lose digits as they are updated. They are computed anew when this share is left.
LITTLE_LEFT = 0.01
# Up to this number of rows all eigenvectors take less time than Lanczos steps. Eigenvalues closer
# than the second share of the largest are one.
DECOMPOSED, SAME_VALUE = 150, 1e-8


@dataclass(frozen=True)
class PickedColumns:
    """The columns picked, in order, and the share of the table left before and after each."""

    order: IndexArray
    left: FloatArray
    values: FloatArray
    """Gains or leverages: when a column was picked, or at the end if it was not."""
    scores: FloatArray
    """Higher is better: falls along the order, and the columns that were not picked follow."""


class Residual:
    """The rest of a table, A; the sum of squares of the whole is 1."""

    def __init__(self, X: FloatArray) -> None:
        if len(X) > X.shape[1]:  # the columns of R have the lengths and angles of those of X
            X = np.asarray(np.linalg.qr(X, mode="r"))
        scaled = X / np.abs(X).max()  # squares of values beyond 1e154 would overflow
        self.A = scaled / np.linalg.norm(scaled)
        self._first = np.einsum("ij,ij->j", self.A, self.A)
        self._measure()
        self._renew()

    @property
    def left(self) -> float:
        """The share of the sum of squares that is not explained."""
        return float(np.sum(self.squares))

    def _measure(self) -> None:
        """Set the sum of squares of every column of A; 0 for those that are spanned."""
        self.squares = np.einsum("ij,ij->j", self.A, self.A)
        # Squares below 1e-290 have lost digits to the range of float64.
        spanned = self.squares <= np.maximum(SPANNED * self._first, 1e-290)
        self.A[:, spanned & (self.squares > 0.0)] = 0.0
        self.squares[spanned] = 0.0

    def _renew(self) -> None:
        self.gram = self.A @ self.A.T
        self._f = np.einsum("ij,ij->j", self.A, self.gram @ self.A)
        self._left_at_renewal = self.left

    def take_out(self, column: int) -> None:
        """Take out a column, and all that it explains."""
        q = self.A[:, column] / np.linalg.norm(self.A[:, column])
        w = q @ self.A
        self.A -= np.outer(q, w)
        self.A[:, column] = 0.0
        self._measure()
        if self.left < LITTLE_LEFT * self._left_at_renewal:
            self._renew()
            return
        Gq = self.gram @ q
        p = Gq - q * (q @ Gq)
        self.gram -= np.outer(q, p) + np.outer(Gq, q)
        self._f = np.maximum(self._f - 2.0 * w * (p @ self.A) - (w @ w) * w**2, 0.0)

    def gains(self) -> FloatArray:
        """The share of what is left that every column would explain."""
        gains = np.zeros(len(self.squares))
        np.divide(self._f, self.squares, out=gains, where=self.squares > 0.0)
        return np.asarray(np.minimum(gains / (self.left or 1.0), 1.0))

    def leverages(self, n_components: int) -> FloatArray:
        """The leverages of the columns of A."""
        if self.left == 0.0:
            return np.zeros(len(self.squares))
        squares = (leading_vectors(self.gram, n_components).T @ self.A) ** 2
        lengths = squares.sum(axis=1)
        real = lengths > 1e-11 * lengths[0]  # smaller ones are rounding
        parts = parts_of_pairs(lengths[real], n_components)
        return np.asarray((parts / lengths[real]) @ squares[real])


def leading_vectors(gram: FloatArray, count: int) -> FloatArray:
    """The leading eigenvectors of G; more than ``count`` where the last one is multiple."""
    if len(gram) > max(DECOMPOSED, 10 * count):
        # The same start gives the same digits every time; an ncv of 12, 20 or 30 takes longer.
        start = np.random.default_rng(0).standard_normal(len(gram))
        options = {"ncv": min(max(40, 2 * count), len(gram)), "v0": start, "tol": 1e-12}
        with suppress(ArpackNoConvergence):
            values, vectors = eigsh(gram, count + 1, maxiter=100, **options)
            if np.count_nonzero(parts_of_pairs(values[::-1], count)) <= count:
                return np.asarray(vectors[:, ::-1][:, :count])
    values, vectors = eigh(gram)
    n_found = np.count_nonzero(parts_of_pairs(values[::-1], count))
    return np.asarray(vectors[:, ::-1][:, :n_found])


def parts_of_pairs(values: FloatArray, width: int) -> FloatArray:
    """How much each eigenpair counts: 1, 1/2, 1/2, 0 for the values 3, 2, 2, 1 and a width of 2."""
    width = min(width, len(values))
    apart = values - values[width - 1]
    above, tied = apart > SAME_VALUE * values[0], np.abs(apart) <= SAME_VALUE * values[0]
    return np.where(above, 1.0, tied * (width - np.count_nonzero(above)) / np.count_nonzero(tied))


def pick_columns(
    residual: Residual, value: Callable[[], FloatArray], n_picks: int
) -> PickedColumns:
    """Pick the largest value until ``n_picks`` columns are picked, or those explain everything."""
    order: list[int] = []
    left, values = [1.0], value()
    picked = []
    while len(order) < min(n_picks, *residual.A.shape) and values.any():
        best = first_largest(values)
        order.append(best)
        picked.append(values[best])
        residual.take_out(best)
        left.append(residual.left)
        values = value()
    # The rest never grows, so these scores fall along the order, and the others follow.
    scores = left[-1] * np.minimum(values, 1.0)
    scores[order] = left[: len(order)]
    values[order] = picked
    return PickedColumns(np.array(order, dtype=np.intp), np.array(left), values, scores)


def best_shares(residual: Residual, count: int) -> FloatArray:
    """Share of the sum of squares that 1, 2, ..., ``count`` directions explain at most: PCA."""
    size = len(residual.gram)
    values = eigvalsh(residual.gram, subset_by_index=[max(size - count, 0), size - 1])[::-1]
    return np.asarray(np.minimum(np.cumsum(np.maximum(values, 0.0)), 1.0))


class _ColumnPicker(Rival):
    """Common parts of ColumnSubset and CUR: how the table is read, and what is stored."""

    looks_for = "features from which the others can be computed"
    score_means = (
        "the share of the variance that was left to explain when the feature was picked: 1 "
        "for the first; of the others, what they would add"
    )
    depends_on_k = picks_one_by_one = True
    why_not_dask = "it reads the whole table again for every pick."

    def _read(self, table: MemoryTable) -> Residual:
        self.refuse_past_memory(table, tables=3, of_side=4)
        residual = Residual(self.centred_values(table))
        self.best_share_ = best_shares(residual, self.n_features_to_select_)
        return residual

    def _store(self, picked: PickedColumns) -> None:
        self.n_picked_ = len(picked.order)
        self.explained_share_ = 1.0 - picked.left[1:]
        self.best_share_ = np.maximum(self.best_share_[: self.n_picked_], self.explained_share_)
        if self.n_picked_ < self.n_features_to_select_:
            warn_caller(
                f"{self.n_features_to_select_} features should be kept, but {self.n_picked_} "
                "explain all others. The others are combinations of these and ranked by variance.",
                DataWarning,
            )


@dataclass(eq=False, repr=False, kw_only=True)
class ColumnSubset(_ColumnPicker):
    """Pick the features from which all others are reconstructed best, one after another.

    Greedy column subset selection (Farahat, Ghodsi and Kamel, ICDM 2011): each pick is the feature
    that explains most of what the earlier picks leave unexplained::

        minimise  |X - P X|^2,   P the projector on the picked columns of X.

    It takes one of several similar features, and later features that resemble no other, noise
    included. Use it to compress a table or to place sensors, not to find clusters. Standardise the
    table if its units differ, because columns with large numbers count more. A sparse X is made
    dense.

    Parameters
    ----------
    {n_features_refit}
        Picks are nested: ``top(k)`` is that of a fit for k.
    {max_correlation}

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Share of the variance left to explain before a pick (1 for the first), or left after all
        that a further pick would explain. Higher is better; 0 for what the picks determine.
    {fitted}
    {picks}

    Examples
    --------
    >>> from keepers import ColumnSubset, datasets
    >>> selector = ColumnSubset(20).fit(datasets.load("srbct").X)
    >>> f"{selector.explained_share_[-1]:.3f} of {selector.best_share_[-1]:.3f}"
    '0.691 of 0.768'
    """

    def score_features(self, table: MemoryTable) -> FloatArray:
        with one_blas_thread_if_small(min(table.X.shape)):
            residual = self._read(table)
            picked = pick_columns(residual, residual.gains, self.n_features_to_select_)
        self._store(picked)
        return table.to_all_columns(picked.scores)


@dataclass(eq=False, repr=False, kw_only=True)
class CUR(_ColumnPicker):
    """Pick the features with the largest part in the leading singular vectors, one by one.

    The leverage of a feature is its part in the k leading right singular vectors of the centred
    table, ``pi_j = sum of v_ij^2 over i`` (Mahoney and Drineas, PNAS 2009). The feature with the
    largest one is picked, and taken out with all it explains; then leverages are computed anew
    (Imbalzano et al., J. Chem. Phys. 2018). Nothing is random. A sparse X is made dense.

    Like `ColumnSubset` it takes one of several similar features, and features with large numbers
    win. `SPCAFS` with next to no penalty ranks by the leverages of the whole table.

    Parameters
    ----------
    {n_features_refit}
        Picks are nested: ``top(k)`` is that of a fit for k.
    n_components : int, default=1
        The number k of singular vectors.
    {max_correlation}

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Share of the variance left to explain before a pick (1 for the first), or that left after
        all, times the leverage. Higher is better.
    {fitted}
    {picks}

    Examples
    --------
    >>> from keepers import CUR, datasets
    >>> selector = CUR(20).fit(datasets.load("srbct").X)
    >>> f"{selector.explained_share_[-1]:.3f} of {selector.best_share_[-1]:.3f}"
    '0.685 of 0.768'
    """

    parameter_rules: ClassVar = {"n_components": whole()}

    n_components: int = 1

    def score_features(self, table: MemoryTable) -> FloatArray:
        check_component_count(self.n_components, table.n_samples, len(table.usable))
        with one_blas_thread_if_small(min(table.X.shape)):
            residual = self._read(table)
            value = partial(residual.leverages, int(self.n_components))
            picked = pick_columns(residual, value, self.n_features_to_select_)
        self._store(picked)
        return table.to_all_columns(picked.scores)
