"""Columns that hold no plain numbers: text, ordered categories and dates, as they were stored."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from keepers.exceptions import DataError

OtherKind = Literal["text", "ordered", "date"]


@dataclass(frozen=True, eq=False)
class OtherColumn:
    """A column of a table beside its numbers.

    Parameters
    ----------
    name : str
        Its name.
    kind : {"text", "ordered", "date"}
        Ordered columns are text whose values have an order.
    values : array of length n_samples
        Text as an object array of str, None for a gap; dates as datetime64, NaT for a gap.
    position : int
        Its place among the features of the source, numbers included.
    levels : tuple of str
        The values of an ordered column, lowest first.
    """

    name: str
    kind: OtherKind
    values: NDArray[Any]
    position: int
    levels: tuple[str, ...] = ()

    def take(self, rows: Any) -> "OtherColumn":
        """Some of its rows, given by a mask or by numbers."""
        return replace(self, values=self.values[rows])

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which rows have a gap."""
        if self.kind == "date":
            return np.isnat(self.values)
        return np.array([value is None for value in self.values], dtype=bool)


def as_texts(values: Sequence[Any]) -> NDArray[np.object_]:
    """Values as text; None, NaN and words that stand for nothing become None."""
    texts = np.empty(len(values), dtype=object)
    texts[:] = [None if is_gap(value) else str(value) for value in values]
    return texts


def is_gap(value: Any) -> bool:
    """Whether a value of a text column stands for nothing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, str):
        return value.strip() in GAP_WORDS
    return isinstance(value, float) and value != value


# fmt: off
GAP_WORDS = frozenset({
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
})
# fmt: on
"""What pandas takes for a missing value."""


def join_columns(pieces: Sequence[Sequence[OtherColumn]]) -> tuple[OtherColumn, ...]:
    """The columns of consecutive rows, put together; the first piece tells their order."""
    if len(pieces) < 2:
        return tuple(pieces[0]) if pieces else ()
    named = [{column.name: column for column in piece} for piece in pieces]
    if any(piece.keys() != named[0].keys() for piece in named):
        raise DataError("All blocks must have the same columns that hold text or dates.")
    return tuple(
        replace(first, values=np.concatenate([piece[first.name].values for piece in named]))
        for first in pieces[0]
    )


def take_rows(columns: Sequence[OtherColumn], rows: Any) -> tuple[OtherColumn, ...]:
    """Some rows of columns, given by a mask or by numbers."""
    return tuple(replace(column, values=column.values[rows]) for column in columns)
