"""Types that several packages use."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]
IndexArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class SmallSide:
    """A small matrix with the non-zero eigenvalues of a large one, and the way back to it."""

    matrix: FloatArray
    lift: Callable[[FloatArray, FloatArray], FloatArray]
    """(eigenvectors, eigenvalues) of ``matrix`` -> unit eigenvectors of the large one."""


class BlockProducts(Protocol):
    """A symmetric d x d matrix, given by its products."""

    def matmat(self, V: FloatArray) -> FloatArray:
        """Return the product with the d x m block ``V``."""


class SymmetricOperator(BlockProducts, Protocol):
    """A symmetric positive semi-definite d x d matrix known by its products."""

    @property
    def size(self) -> int:
        """Number of rows and columns, d."""

    def diagonal(self) -> FloatArray:
        """Return the d diagonal entries."""

    def restrict(self, rows: IndexArray) -> "SymmetricOperator":
        """Return the principal submatrix on ``rows``."""

    def dense(self) -> FloatArray:
        """Return the matrix itself (d x d); only for d that fits in memory."""

    def small_side(self) -> SmallSide | None:
        """Return the smaller of the two Gram matrices, or None if both are too large."""


@dataclass(frozen=True)
class RowBlock:
    """Some consecutive rows of a table."""

    values: Any
    """Array or CSR matrix, rows x features, float64 or float32."""
    origin: str
    """The place of the rows, for messages: "part-3.parquet, rows 4097 to 8192"."""
    start: int | None = None
    """Number of the first row in the table, from 0; None: the block follows the one added before.

    Needed only in sums that are merged, by methods that draw some of the rows.
    """


class BlockSum(Protocol):
    """Something that is summed over the blocks of a table."""

    def add(self, block: RowBlock) -> None:
        """Take a block in."""

    def merge(self, other: Self) -> None:
        """Take in what was summed over other blocks."""


Sum = TypeVar("Sum", bound=BlockSum)


class BlockTable(Protocol):
    """A table that is seen in blocks of rows only, wherever they lie."""

    @property
    def name(self) -> str:
        """The name of the table in messages."""

    @property
    def n_features(self) -> int:
        """Number of columns."""

    @property
    def n_samples(self) -> int | None:
        """Number of rows, where it is known without reading them."""

    @property
    def n_stored(self) -> int | None:
        """Number of stored values (rows x columns, if not sparse), where it is known."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 or float32."""

    @property
    def is_sparse(self) -> bool:
        """True if blocks are CSR matrices."""

    @property
    def is_local(self) -> bool:
        """True if rows may be taken into the memory of this process, if they fit."""

    @property
    def feature_names(self) -> NDArray[np.object_] | None:
        """Names of the columns, if they have any."""

    def total(self, begin: Callable[[], Sum], columns: IndexArray | None = None) -> Sum:
        """Sum over all blocks: one pass. Blocks hold ``columns`` only, in that order, if given.

        ``begin`` makes an empty sum; partial sums may be made elsewhere and merged in order.
        """
