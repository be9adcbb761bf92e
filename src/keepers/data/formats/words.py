"""Which text is a number, a missing value, a truth value or a class."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from keepers.data.limits import LARGEST_EXACT_INTEGER

__all__ = ["as_classes", "as_float", "is_grouped", "is_number", "is_rounded_integer", "is_value"]

# fmt: off
_MISSING = {
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
}
# fmt: on
"""What pandas takes for a missing value."""
_TRUTH = {"true": 1.0, "false": 0.0}

# Python's own int and float also read 1_000 and the digits of every script.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_LONGEST_INTEGER = 19  # digits of the largest int64
_MISSING_CLASSES = ("", "NA", "NaN", "nan")


def is_number(word: str) -> bool:
    """Whether it is a plain decimal number.

    Examples
    --------
    >>> [is_number(word) for word in ("+1.5e3", ".5", "1_0", "0x10", "inf")]
    [True, True, False, False, False]
    """
    return _NUMBER.fullmatch(word) is not None


def is_value(word: str) -> bool:
    """Whether a cell of a feature column may hold it."""
    return (
        is_number(word)
        or word in _MISSING
        or word.lower() in _TRUTH
        or _INFINITE.fullmatch(word) is not None
    )


def as_float(word: str) -> float:
    """The value that a word is, NaN if it stands for a missing one."""
    if word in _MISSING:
        return float("nan")
    truth = _TRUTH.get(word.lower())
    return float(word) if truth is None else truth


def is_grouped(word: str) -> bool:
    """Whether a comma in it may separate thousands.

    Examples
    --------
    >>> [is_grouped(word) for word in ("1,234", "-12,345", "0,123", "1,23")]
    [True, True, False, False]
    """
    return _GROUPED.fullmatch(word) is not None


def is_rounded_integer(word: str) -> bool:
    """Whether it is an integer beyond those that float64 holds exactly."""
    digits = word.strip().lstrip("+-0")
    if not digits.isdigit() or _INTEGER.fullmatch(word.strip()) is None:
        return False
    return len(digits) > _LONGEST_INTEGER or int(digits) > LARGEST_EXACT_INTEGER


def as_classes(words: Sequence[str], *, may_have_commas: bool = False) -> Any:
    """Classes written as numbers become numbers if no two become one; some words are missing.

    ``may_have_commas``: decimal commas, which no thousands separator can be taken for.
    """
    if may_have_commas and not any(map(is_grouped, words)):
        pointed = [word.replace(",", ".") for word in words]
        words = pointed if all(map(is_number, pointed)) else words
    cells = [None if word in _MISSING_CLASSES else word for word in words]
    array = np.array(cells, dtype=object)
    if not all(cell is not None and is_number(cell) for cell in cells):
        return array
    if all(_INTEGER.fullmatch(word) for word in words):
        longest = max(map(len, words), default=0)
        integers = [int(word) for word in words] if longest <= _LONGEST_INTEGER + 1 else [2**63]
        return np.array(integers) if max(map(abs, integers)) < 2**63 else array
    numbers = [float(word) for word in words]
    distinct = len({Decimal(word) for word in words})
    exact = np.isfinite(numbers).all() and len(set(numbers)) == distinct
    return np.array(numbers) if exact else array
