"""Greedy column subset selection: the columns from which all others are reconstructed best.

Minimise |X - P_I X|^2, P_I the projector on the columns I, one column at a time. With A what is
left of X (`ResidualColumns`) and M = A'A, a column a_j of A that is picked next explains

    gain_j = |A'a_j|^2 / |a_j|^2 = f_j / g_j,     f_j = |M e_j|^2,  g_j = M_jj.

Picking j with q = a_j / |a_j| and w = A'q replaces M by M - ww', so that

    f <- f - 2 w * h - |w|^2 w^2,     h = M_new w = A'p,     p = (I - qq') A w,
    g <- g - w^2.

A w is AA'q: where X has few rows, AA' is formed once, and a step reads X once, for A'[q, p]. The
subtractions lose digits as g and the whole fall. f is formed anew when a thousandth is left, and
in between for columns that might be the best if their f is as wrong as rounding can make it.
"""

import numpy as np

from keepers._protocols import BoolArray, FloatArray
from keepers.linalg.moments import row_blocks
from keepers.linalg.ordering import first_largest
from keepers.linalg.residual_columns import ResidualColumns
from keepers.linalg.scatter import SMALL_SIDE, FactoredScatter
from keepers.solvers.picked_columns import PickedColumns, scores_of_picks

# f is formed anew when what is left has fallen to this share since it was.
_FORMED_ANEW = 1e-3
# Gains are believed to this share of the best one.
_BELIEVED = 1e-11
# Rounding of a step, in units of that of one product.
_TERMS = 4.0


def solve_column_subset(X: FactoredScatter, n_picks: int) -> PickedColumns:
    """Pick ``n_picks`` columns, or fewer if they explain everything. ``values`` are the gains."""
    n_picks = min(n_picks, X.n_rows, X.size)
    search = _Search(X, n_picks)
    order: list[int] = []
    left = [search.residual.share]
    picked_gains = []
    while len(order) < n_picks and search.prepare():
        best = first_largest(search.gains())
        order.append(best)
        picked_gains.append(search.pick(best))
        left.append(search.residual.share)
    gains = np.zeros(X.size)
    if search.prepare():
        gains = np.asarray(search.residual.as_share(search.gains()))
    others = np.minimum(gains, left[-1])
    gains[order] = picked_gains
    return PickedColumns(
        order=np.array(order, dtype=np.intp),
        left=np.array(left),
        values=gains,
        scores=scores_of_picks(order, left, others),
    )


class _Search:
    """The gains of all columns, kept up to date from pick to pick."""

    def __init__(self, X: FactoredScatter, most: int) -> None:
        self.residual = ResidualColumns(X, most)
        self._form()

    def _form(self) -> None:
        """Form f of every column anew."""
        is_short = self.residual.X.n_rows <= SMALL_SIDE
        self._gram = self.residual.gram() if is_short else None
        self._f = self.residual.squared_images(self._gram)
        self._error = _TERMS * self.residual.noise * self.residual.squares

    def prepare(self) -> bool:
        """Compute anew what has lost digits; returns whether anything is left."""
        if 0.0 < self.residual.left < _FORMED_ANEW:
            unit = self.residual.remeasure()
            if unit > 0.0 and self._gram is not None:
                self._form()
            elif unit > 0.0:  # forming costs more than the picks: `gains` looks at some columns
                self._f, self._error = self._f / unit**2, self._error / unit**2
        return self.residual.left > 0.0

    def gains(self) -> FloatArray:
        """What every column would explain; 0 for those that are picked or spanned."""
        looked_at = np.zeros(len(self._f), dtype=bool)
        while True:
            squares = self.residual.squares
            active = squares > 0.0
            g = np.where(active, squares, 1.0)
            gains = np.where(active, self._f / g, 0.0)
            doubt = (self._error + gains * self.residual.doubt) / g
            best = float(gains.max())
            doubtful = active & ~looked_at & (gains + doubt >= best) & (doubt > _BELIEVED * best)
            if not doubtful.any():
                return np.minimum(gains, self.residual.left)
            self._look_at(doubtful)
            looked_at |= doubtful

    def _look_at(self, doubtful: BoolArray) -> None:
        """Compute f and g of some columns anew."""
        residual, which = self.residual, np.flatnonzero(doubtful)
        for part in row_blocks(len(which), max(residual.X.n_rows, residual.X.size)):
            images = residual.back(residual.measured_columns(which[part]))
            self._f[which[part]] = np.sum(images**2, axis=0)
        self._error[which] = residual.noise * residual.squares[which] * np.sqrt(residual.left)

    def pick(self, column: int) -> float:
        """Take a column out; returns its gain, as a share of the sum of squares of X."""
        residual = self.residual
        squares, left = residual.squares, residual.left
        q = residual.direction(column)
        if self._gram is not None:
            p = _without(residual.project(self._gram @ q[:, np.newaxis]), q)
            w, h = residual.back(np.column_stack([q, p])).T
            noise = residual.noise
        else:
            w = residual.back(q[:, np.newaxis])[:, 0]
            p = _without(residual.times(w[:, np.newaxis]), q)
            h = residual.back(p)[:, 0]
            noise = residual.noise * float(np.sqrt(left))
        residual.remove(column, q, w)
        gain = float(w @ w)
        f = np.maximum(self._f - 2.0 * w * h - gain * w**2, 0.0)
        self._f = np.where(residual.squares > 0.0, f, 0.0)
        self._error += _TERMS * noise * squares
        return float(residual.as_share(gain))


def _without(block: FloatArray, q: FloatArray) -> FloatArray:
    """(I - qq') times a block."""
    return np.asarray(block - np.outer(q, q @ block))
