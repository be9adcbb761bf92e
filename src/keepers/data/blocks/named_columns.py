"""Columns of data frames, which are matched by their labels, never by their places."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers.data.wording import listed
from keepers.exceptions import DataError, shortened

__all__ = ["column_labels", "in_order", "refuse_repeated", "string_names"]

Labels = list[Hashable] | None


def column_labels(block: Any) -> Labels:
    """The labels of the columns of a frame or an Arrow or AnnData table; None for an array."""
    for attribute in ("column_names", "var_names", "columns"):  # an Arrow table's columns are data
        labels = getattr(block, attribute, None)
        if labels is not None and not callable(labels):
            return list(labels)
    return None


def string_names(labels: Labels) -> NDArray[np.object_] | None:
    """The labels as names of features, if all of them are strings."""
    if labels is None or not all(isinstance(label, str) for label in labels):
        return None
    return np.array(labels, dtype=object)


def in_order(block: Any, expected: Labels, origin: str, first: str = "the first block") -> Any:
    """The block with its columns in the expected order; an error if they are not the same."""
    found = column_labels(block)
    if _by_place(found, expected):
        return block
    if found is None or expected is None:
        with_labels, without = (first, origin) if found is None else (origin, first)
        raise DataError(
            f"Columns are matched by name, in all blocks or in none; {with_labels} names them and "
            f"{without} does not. Give data frames throughout, or arrays throughout."
        )
    refuse_repeated(found, origin)
    refuse_repeated(expected, first)
    if found == expected:
        return block
    if set(found) == set(expected):
        return _selected(block, expected)
    if len(found) != len(expected):
        return block  # refused for its number of columns
    known = set(expected)
    strange = next(label for label in found if label not in known)
    raise DataError(
        f"All blocks must have the same columns; {origin} has {shortened(strange)}, which {first} "
        "has not. "
        "Leave it out, or name its columns like the others'."
    )


def _by_place(found: Labels, expected: Labels) -> bool:
    """Whether neither has labels but those that count the columns."""
    counted = [None, list(range(len(found or expected or [])))]
    return found in counted and expected in counted


def refuse_repeated(labels: Sequence[Hashable], origin: str) -> None:
    """Raise for labels by which columns cannot be told apart."""
    if len(set(labels)) < len(labels):
        repeated = [repr(label) for label, count in Counter(labels).items() if count > 1]
        raise DataError(
            f"Column names must differ to be matched between blocks; {origin} has duplicate "
            f"names: {listed(repeated)}. Rename all but one of each."
        )


def _selected(block: Any, labels: Sequence[Hashable]) -> Any:
    if hasattr(block, "column_names"):
        return block.select(labels)
    if hasattr(block, "var_names"):
        return block[:, labels]
    return block[list(labels)]
