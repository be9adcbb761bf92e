"""Pieces of error messages that several readers share."""

import difflib
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from keepers.exceptions import shorten

_SHOWN = 5
_LONGEST_ITEM = 120
_LONGEST_COMPARED = 200


def some_of(items: Sequence[str], shown: int = _SHOWN) -> str:
    """The first few items, long ones cut, and how many more there are."""
    text = ", ".join(_cut(item, _LONGEST_ITEM) for item in items[:shown])
    more = len(items) - shown
    return f"{text} and {more} more" if more > 0 else text


def closest(name: str, known: Iterable[str]) -> str:
    """' Did you mean ...?' for the nearest known name, or nothing.

    Very long names are not compared: that takes time with the product of their lengths.
    """
    if len(name) > _LONGEST_COMPARED:
        return ""
    by_folded = {
        candidate.casefold(): candidate
        for candidate in known
        if len(candidate) <= _LONGEST_COMPARED
    }
    found = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    return f" Did you mean {shorten(by_folded[found[0]])}?" if found else ""


def duplicates(names: Iterable[Hashable]) -> list[str]:
    """Names that occur more than once, as they are written in a message."""
    return [repr(name) for name, count in Counter(names).items() if count > 1]


def first_line(error: BaseException, width: int = 200) -> str:
    """The first line of the message of an exception, without the full stop, or its type."""
    lines = str(error).strip().splitlines()
    return _cut(lines[0].strip().rstrip(".") if lines else type(error).__name__, width)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def readable_size(n_bytes: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes:.0f} bytes"
