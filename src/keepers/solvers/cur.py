"""CUR: the columns with the largest part in the leading singular vectors of what is left.

The leverage of a column is pi_j = sum of v_ij^2 over the k leading right singular vectors v_i of a
table. The recursive form picks the column with the largest leverage, takes it and all it explains
out of the table, and begins anew with what is left, A:

    pi_j = sum_i (A'u_i)_j^2 / |A'u_i|^2,     u_i the k leading eigenvectors of AA'.

AA' is formed where X has few rows, else known by products with X; A is never formed. Where the k-th
eigenvalue is multiple, which of its vectors are taken would be left to rounding: the group counts
as a whole, each vector with the same part, so that the leverages still sum to k.
"""

import numpy as np

from keepers._protocols import FloatArray
from keepers.linalg.leading_vectors import LeadingPairs, LeadingVectors, parts_of_pairs
from keepers.linalg.ordering import best_first, first_largest
from keepers.linalg.residual_columns import ResidualColumns
from keepers.linalg.scatter import SMALL_SIDE, FactoredScatter
from keepers.solvers.picked_columns import PickedColumns, scores_of_picks

# Up to this size all eigenvectors take less time than an iteration.
_DECOMPOSED = 150
# AA' is formed anew when its largest eigenvalue has fallen to this share since it was.
_FORMED_ANEW = 1e-3
# Residual of an eigenvector beside the largest eigenvalue, and that in units of rounding.
_TOLERANCE, _ROUNDINGS = 1e-12, 50.0
# An eigenvalue below this share of the largest is rounding.
_ROUNDING_SHARE = 1e-11


def leverage_scores(X: FactoredScatter, n_components: int, n_picks: int) -> PickedColumns:
    """Leverages of the whole table, which also rank; what the ``n_picks`` largest explain."""
    residual = ResidualColumns(X, min(n_picks, X.n_rows, X.size))
    spectrum = _Spectrum(residual, n_components)
    leverages = spectrum.leverages()
    order = best_first(leverages, X.moments.sum_of_squares)[:n_picks]
    left = [residual.share]
    for column in order:
        if residual.squares[column] > 0.0:
            _take_out(residual, int(column))
        left.append(residual.share)
    return PickedColumns(order, np.array(left), leverages, leverages, spectrum.converged)


def solve_cur(
    X: FactoredScatter, n_components: int, n_picks: int, recompute_every: int = 1
) -> PickedColumns:
    """Pick ``n_picks`` columns, or fewer if they explain everything. ``values`` are leverages.

    They are computed anew after every ``recompute_every`` picks, and where those left have none.
    """
    n_picks = min(n_picks, X.n_rows, X.size)
    residual = ResidualColumns(X, n_picks)
    spectrum = _Spectrum(residual, n_components)
    order: list[int] = []
    left = [residual.share]
    picked = []
    leverages = spectrum.leverages()
    while len(order) < n_picks and leverages.any():
        best = first_largest(leverages)
        order.append(best)
        picked.append(leverages[best])
        spectrum.deflate(_take_out(residual, best))
        left.append(residual.share)
        leverages = np.where(residual.squares > 0.0, leverages, 0.0)
        is_due = len(order) % recompute_every == 0 or len(order) == n_picks
        if residual.left > 0.0 and (is_due or not leverages.any()):
            leverages = spectrum.leverages()
    others = left[-1] * np.minimum(leverages, 1.0)
    values = leverages.copy()
    values[order] = picked
    return PickedColumns(
        order=np.array(order, dtype=np.intp),
        left=np.array(left),
        values=values,
        scores=scores_of_picks(order, left, others),
        converged=spectrum.converged,
    )


def _take_out(residual: ResidualColumns, column: int) -> FloatArray:
    direction = residual.direction(column)
    residual.remove(column, direction, residual.back(direction[:, np.newaxis])[:, 0])
    return direction


class _Spectrum:
    """The leading eigenvectors of AA' while columns are taken out of A."""

    def __init__(self, residual: ResidualColumns, n_components: int) -> None:
        n_rows = residual.X.n_rows
        self.converged = True
        self._residual = residual
        self._n_components = n_components
        self._gram = residual.gram() if n_rows <= SMALL_SIDE else None
        self._largest = 0.0  # eigenvalue when AA' was formed
        self._space: LeadingVectors | None = None
        if self._gram is None or n_rows > _DECOMPOSED:
            self._space = LeadingVectors(self._product, n_rows, n_components)

    def deflate(self, direction: FloatArray) -> None:
        """A direction was taken out of A."""
        if self._space is not None:
            self._space.deflate(direction)

    def leverages(self) -> FloatArray:
        """Of every column; 0 for those that are spanned."""
        pairs = self._leading()
        squares = self._residual.back(pairs.vectors) ** 2
        # What is left of spanned columns is still in AA', and must not lead.
        is_noise = np.sum(squares[:, 0]) < pairs.values[0] / 2
        if is_noise or pairs.values[0] < _FORMED_ANEW * self._largest:
            self._form_anew()
            if self._residual.left == 0.0:
                return np.zeros(len(squares))
            pairs = self._leading()
            squares = self._residual.back(pairs.vectors) ** 2
            self._largest = 0.0
        self._largest = self._largest or float(pairs.values[0])
        self.converged &= pairs.converged
        lengths = squares.sum(axis=0)
        real = lengths > np.maximum(pairs.values / 2, _ROUNDING_SHARE * pairs.values[0])
        parts = parts_of_pairs(pairs.values[real], self._n_components)
        return np.asarray(squares[:, real] / lengths[real] @ parts)

    def _form_anew(self) -> None:
        self._residual.remeasure()
        if self._gram is not None:
            self._gram = self._residual.gram()
        if self._space is not None:
            self._space.restart()

    def _leading(self) -> LeadingPairs:
        if self._space is not None:
            pairs = self._space.find(max(_TOLERANCE, _ROUNDINGS * self._residual.noise))
            if pairs.complete or self._gram is None:
                return pairs
        assert self._gram is not None
        project = self._residual.project
        deflated = project(project(self._gram).T)
        values, vectors = np.linalg.eigh((deflated + deflated.T) / 2)
        return LeadingPairs(values[::-1], vectors[:, ::-1])

    def _product(self, rows: FloatArray) -> FloatArray:
        """(I - QQ') AA' (I - QQ') times vectors in rows."""
        residual = self._residual
        block = residual.project(rows.T)
        if self._gram is None:
            return residual.times(residual.back(block)).T
        return residual.project(self._gram @ block).T
