"""A few numbers by which a table is recognised, whatever its storage and the order of its rows.

A fit depends on the rows through their number, the means and the scatter S alone. So a table is
known by these: n, the means, the diagonal of S, and the products of S with a few fixed vectors,
which see every entry of S. Numbers are compared with a tolerance: the same table, read in other
blocks or multiplied by another BLAS, gives other last digits.
"""

from dataclasses import dataclass

import numpy as np

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.hashing import GOLDEN_RATIO, mix
from keepers.linalg.moments import ColumnMoments

# Each column has a weight in one vector only, so that a few columns with a huge variance drown the
# others in one product and not in all.
N_VECTORS = 4
_ROUNDING = 8 * float(np.finfo(np.float64).eps)


def sketch_vectors(columns: IndexArray) -> FloatArray:
    """The fixed vectors on these columns of a table: len(columns) x N_VECTORS.

    Weights have sizes from 0.5 to 1.5 and follow from the number of the column by integer
    arithmetic (`keepers.linalg.hashing`), the same on every machine and for ever.
    """
    mixed = mix((columns.astype(np.uint64) + np.uint64(1)) * GOLDEN_RATIO)
    sizes = 0.5 + (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53
    signs = np.where(mixed & np.uint64(1), -1.0, 1.0)
    vectors = np.zeros((len(columns), N_VECTORS))
    places = ((mixed >> np.uint64(1)) % np.uint64(N_VECTORS)).astype(np.intp)
    vectors[np.arange(len(columns)), places] = signs * sizes
    return vectors


@dataclass(frozen=True)
class TableSketch:
    """What a table is recognised by."""

    moments: ColumnMoments
    columns: IndexArray
    """Where the columns stand in the table."""
    products: FloatArray
    """Of the scatter with `sketch_vectors`: one row per column."""

    def subset(self, rows: IndexArray) -> "TableSketch":
        """The sketch without columns that do not vary, and so change no product."""
        moments = self.moments.subset(rows)
        return TableSketch(moments, self.columns[rows], self.products[rows])

    def same_as(self, other: "TableSketch", tolerance: float) -> bool:
        """Whether both may come from the same table."""
        mine, its = self.moments, other.moments
        squares = mine.sum_of_squares
        shapes = (its.mean.shape, its.sum_of_squares.shape, other.products.shape)
        if shapes != (mine.mean.shape, squares.shape, self.products.shape):
            return False
        if mine.n_samples != its.n_samples:
            return False
        return (
            same_means(its.mean - mine.mean, mine, tolerance)
            and bool(np.all(np.abs(its.sum_of_squares - squares) <= tolerance * squares))
            and not differs(
                other.products, self.products, mine, sketch_vectors(self.columns), tolerance
            )
        )


def same_means(difference: FloatArray, moments: ColumnMoments, tolerance: float) -> bool:
    """Whether means differ by no more than rounding, beside the deviation of each column."""
    allowed = tolerance * np.sqrt(moments.variance) + _ROUNDING * np.abs(moments.mean)
    return bool(np.all(np.abs(difference) <= allowed))


def differs(
    products: FloatArray,
    expected: FloatArray,
    moments: ColumnMoments,
    vectors: FloatArray,
    tolerance: float,
) -> bool:
    """Whether products of the scatter with ``vectors`` differ by more than ``tolerance`` allows.

    Beside sqrt(S_ii) times the root of sum_j S_jj v_j^2, which is the size of entry i of S v where
    columns are unrelated; it is larger by the root of the number of columns at most.
    """
    squares = moments.sum_of_squares
    scale = np.outer(np.sqrt(squares), np.sqrt(squares @ vectors**2))
    return not bool(np.all(np.abs(products - expected) <= tolerance * scale))
