"""Pieces of error messages that several readers share."""

import difflib
from collections.abc import Iterable, Sequence

__all__ = ["closest", "first_line", "listed", "readable_size", "unknown_suffix"]

_SHOWN = 5


def listed(items: Sequence[str], shown: int = _SHOWN) -> str:
    """The first few items, and how many more there are."""
    text = ", ".join(items[:shown])
    more = len(items) - shown
    return f"{text} and {more} more" if more > 0 else text


def closest(name: str, known: Iterable[str]) -> str:
    """' Did you mean ...?' for the nearest known name, or nothing."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    found = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    return f" Did you mean {by_folded[found[0]]!r}?" if found else ""


def first_line(error: BaseException, width: int = 200) -> str:
    """The first line of what an exception says, without its final stop, or else its kind."""
    lines = str(error).strip().splitlines()
    text = lines[0].strip().rstrip(".") if lines else type(error).__name__
    return text if len(text) <= width else text[: width - 3] + "..."


def readable_size(n_bytes: float) -> str:
    """A size for people."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes:.0f} bytes"


def unknown_suffix(name: str, known: Iterable[str]) -> str:
    """What to say of a file whose name does not tell its format."""
    return (
        f"A file's format is told by its suffix, one of {', '.join(known)}; got {name!r}. Rename "
        "or convert it."
    )
