"""Pieces of error messages that several readers share."""

import difflib
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from keepers.exceptions import shorten


def some_of(items: Sequence[str]) -> str:
    """The first five items, long ones cut, and the number of others."""
    text = ", ".join(_cut(item, 120) for item in items[:5])
    more = len(items) - 5
    return f"{text} and {more} more" if more > 0 else text


def closest(name: str, known: Iterable[str]) -> str:
    """' Did you mean ...?' for the nearest known name, or nothing."""
    longest = 200  # comparing takes time with the product of the lengths
    by_folded = {each.casefold(): each for each in known if len(each) <= longest}
    near = difflib.get_close_matches(name[: longest + 1].casefold(), by_folded, n=1)
    return f" Did you mean {shorten(by_folded[near[0]])}?" if near else ""


def duplicates(names: Iterable[Hashable]) -> list[str]:
    """Names that occur more than once, as they are written in a message."""
    return [repr(name) for name, count in Counter(names).items() if count > 1]


def first_line(error: BaseException) -> str:
    """The first line of the message of an exception, without the full stop, or its type."""
    lines = str(error).strip().splitlines()
    return _cut(lines[0].strip().rstrip(".") if lines else type(error).__name__, 200)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def readable_size(n_bytes: float) -> str:
    """1.5 GB."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes:.0f} bytes"
