"""What is left of the columns of a table once some of them, and all they explain, are taken out.

With Q an orthonormal basis of the columns taken out, A = (I - QQ')X is what is left of X. It is
never formed: X may be sparse or large. What is kept is Q, and the sum of squares of every column of
A, which falls by the square of w = A'q when a further direction q is taken out.

Subtracting squares loses digits as less and less is left. `remeasure` computes the sums of squares
from A instead, and makes what is left of them the unit, so that nothing underflows on the way down.
"""

import numpy as np

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.moments import row_blocks
from keepers.linalg.scatter import FactoredScatter

# A column of which less than this share of its sum of squares is left is a combination of those
# taken out: a millionth of its length. Rounding leaves 1e-14.
SPANNED = 1e-12
# A share of the whole that is smaller than this has lost digits to the range of float64.
_SMALLEST_SHARE = 1e-290
_EPS = float(np.finfo(np.float64).eps)
# A vector whose part in the space of Q is this share of it is orthogonal to Q, up to rounding.
_ORTHOGONAL = 16.0 * _EPS
# A vector that keeps this share of its length has lost no digits to the rest.
_MUCH_LEFT = 0.5


class ResidualColumns:
    """A = (I - QQ')X for directions Q that are taken out one by one."""

    def __init__(self, X: FactoredScatter, most: int) -> None:
        """Nothing is taken out yet; at most ``most`` directions will be."""
        squares = X.moments.sum_of_squares
        self.X = X
        self._root = float(np.sqrt(np.sum(squares)))
        self._first = (np.sqrt(squares) / self._root) ** 2
        self.squares = np.where(self._first > _SMALLEST_SHARE, self._first, 0.0)
        """The sum of squares of every column of A; 0 for those that are spanned."""
        self.doubt = _EPS * self._first
        """How wrong rounding may have made them."""
        self._unit = 1.0
        self._basis = np.empty((most, X.n_rows))
        self._n_removed = 0

    @property
    def left(self) -> float:
        """The sum of squares of A."""
        return float(np.sum(self.squares))

    @property
    def share(self) -> float:
        """The sum of squares of A as a share of that of X."""
        return self._unit * self.left

    @property
    def noise(self) -> float:
        """Rounding in a product of A with a vector of length 1: that of X is the larger one."""
        return _EPS / float(np.sqrt(self._unit))

    def remeasure(self) -> float:
        """Compute the sums of squares anew, and make that of A the unit, which is returned."""
        for part in self._blocks():
            self._measure(part, self.columns(part))
        unit = self.left
        if unit > 0.0:
            self._root *= float(np.sqrt(unit))
            self._first = self._first / unit
            self.squares = self.squares / unit
            self.doubt = self.doubt / unit
            self._unit *= unit
        return unit

    def measured_columns(self, which: IndexArray) -> FloatArray:
        """Some of the columns of A, whose sums of squares are computed anew."""
        columns = self.columns(which)
        self._measure(which, columns)
        return columns

    def _measure(self, which: IndexArray, columns: FloatArray) -> None:
        squares = np.sum(columns**2, axis=0)
        self.squares[which] = np.where(squares > SPANNED * self._first[which], squares, 0.0)
        self.doubt[which] = _EPS * np.sqrt(self._first[which] * squares)

    def as_share(self, squares: FloatArray | float) -> FloatArray | float:
        """Sums of squares in the present unit as shares of that of X."""
        return self._unit * squares

    def project(self, block: FloatArray) -> FloatArray:
        """(I - QQ') times a block of rows as many as X has.

        Once for vectors of which much is left, and not at all for those that are orthogonal to Q
        already: where little is left, rounding asks for a second time.
        """
        Q = self._basis[: self._n_removed]
        if not self._n_removed:
            return block
        sizes = np.linalg.norm(block, axis=0)
        for _ in range(2):
            inside = Q @ block
            if np.all(np.linalg.norm(inside, axis=0) <= _ORTHOGONAL * sizes):
                break
            block = block - Q.T @ inside
            left = np.linalg.norm(block, axis=0)
            if np.all(left >= _MUCH_LEFT * sizes):
                break
            sizes = left
        return block

    def columns(self, which: IndexArray) -> FloatArray:
        """Some of the columns of A."""
        return self.project(self.X.columns(which) / self._root)

    def times(self, V: FloatArray) -> FloatArray:
        """A V."""
        return self.project(self.X.times(V) / self._root)

    def back(self, P: FloatArray) -> FloatArray:
        """A'P for P orthogonal to Q; spanned columns count as zero."""
        images = self.X.back(P) / self._root
        images[self.squares == 0.0] = 0.0
        return images

    def gram(self) -> FloatArray:
        """A A'."""
        if self._n_removed == 0:
            return self.X.sample_gram() / self._root**2
        gram = np.zeros((self.X.n_rows, self.X.n_rows))
        for part in self._blocks():
            columns = self.columns(part)
            gram += columns @ columns.T
        return gram

    def squared_images(self, gram: FloatArray | None) -> FloatArray:
        """|A'a|^2 for every column a of A; ``gram`` is A A', if it is known."""
        if self._n_removed == 0:
            known = None if gram is None else gram * self._root**2
            found = self.X.squared_columns(known) / self._root**4
            return np.where(self.squares > 0.0, found, 0.0)
        found = np.zeros(len(self.squares))
        for part in self._blocks():
            columns = self.columns(part)
            if gram is None:
                found[part] = np.sum(self.back(columns) ** 2, axis=0)
            else:
                found[part] = np.einsum("ij,ij->j", columns, gram @ columns)
        return found

    def _blocks(self) -> list[IndexArray]:
        active = np.flatnonzero(self.squares)
        return [active[part] for part in row_blocks(len(active), self.X.n_rows)]

    def direction(self, column: int) -> FloatArray:
        """A column of A at length 1."""
        found = self.columns(np.array([column]))[:, 0]
        return np.asarray(found / np.linalg.norm(found))

    def remove(self, column: int, direction: FloatArray, image: FloatArray) -> None:
        """Take out the `direction` of a column; ``image`` is A' times it."""
        self._basis[self._n_removed] = direction
        self._n_removed += 1
        self.doubt += _EPS * self.squares
        squares = self.squares - image**2
        squares[squares <= SPANNED * self._first] = 0.0
        squares[column] = 0.0
        self.squares = squares
