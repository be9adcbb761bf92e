"""How large a table may become, decided before memory is asked for."""

import os
import re
from dataclasses import dataclass
from typing import Any

from keepers.data.wording import readable_size
from keepers.exceptions import DataError, ParameterError, shorten

DEFAULT_MAX_BYTES = 8 * 2**30
MOST_COLUMNS = 5_000_000
"""Every column has a name; past this number the names alone outweigh the table."""

DEFLATE_RATIO = 1032
"""No stream that zlib compressed expands by more: a larger declared size is a lie."""

LARGEST_EXACT_INTEGER = 2**53
"""float64 holds every integer up to this one; larger ones are refused, not rounded."""

_ROWS_TAKEN_ON_TRUST, _ROWS_PER_ENTRY = 1_000_000, 100


@dataclass(frozen=True)
class SizeLimit:
    """The largest table, in bytes of memory, that a reader may build."""

    max_bytes: int
    by_machine: bool = False
    """Whether the machine's memory, not the setting, is what binds."""

    @classmethod
    def of(cls, max_bytes: int | None) -> "SizeLimit":
        """The user's limit or the default (8 GiB), never more than the machine's memory."""
        wanted = DEFAULT_MAX_BYTES if max_bytes is None else max_bytes
        if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
            raise ParameterError(
                "max_bytes must be an integer >= 1, a number of bytes; got "
                f"{shorten(max_bytes)}. Leave "
                f"it out for the default, {DEFAULT_MAX_BYTES} (8 GiB)."
            )
        memory = physical_memory()
        if memory is not None and memory < wanted:
            return cls(memory, by_machine=True)
        return cls(wanted)

    def refuse_past(self, n_bytes: int, what: str) -> None:
        """Raise if ``n_bytes`` for ``what`` exceeds the limit."""
        if n_bytes <= self.max_bytes:
            return
        if self.by_machine:
            bound = f"the {readable_size(self.max_bytes)} of memory of this machine"
            way_out = "Read a part of the table, or use a larger machine."
        else:
            bound = f"the limit of {readable_size(self.max_bytes)}"
            way_out = "If that size is meant, raise the limit: max_bytes= (--max-size)."
        raise DataError(f"{what} needs {readable_size(n_bytes)}, more than {bound}. {way_out}")

    def refuse_shape(self, shape: tuple[int, ...], itemsize: int, what: str) -> None:
        """Raise if an array of this shape, or its number of columns, is too large."""
        n_bytes = itemsize
        for length in shape:
            if length < 0:
                raise DataError(f"{what} declares a negative length ({shape}); it is damaged.")
            n_bytes *= length
        self.refuse_past(n_bytes, f"{what} ({' x '.join(str(length) for length in shape)})")
        if len(shape) == 2:
            refuse_columns(shape[1], what)


_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def as_n_bytes(size: int | float | str, name: str) -> int:
    """A number of bytes, or a text such as "500M" or "4GB"; ``name`` is for the message."""
    if isinstance(size, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", size.strip(), re.IGNORECASE)
        if match is not None and float(match[1]) > 0:
            return int(float(match[1]) * _UNITS[match[2].upper()])
    elif not isinstance(size, bool) and isinstance(size, (int, float)) and 1 <= size < 2**63:
        return int(size)
    raise ParameterError(f"{name} takes a size like 500M or 4G; got {shorten(size)}.")


def largest_inexact(values: Any) -> int | None:
    """The largest of some integers in size, if float64 does not hold all of that size exactly."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not values.size:
        return None
    largest = max(int(values.max()), -int(values.min()))
    return largest if largest > LARGEST_EXACT_INTEGER else None


def refuse_columns(n_columns: int, what: str) -> None:
    """Raise if there are more columns than keepers reads."""
    if n_columns > MOST_COLUMNS:
        raise DataError(
            f"At most {MOST_COLUMNS} columns are read; {what} declares {n_columns}. If it is not "
            "damaged, leave out columns first (for example those that are almost always zero)."
        )


def refuse_declared(declared: int, at_most: int, what: str) -> None:
    """Raise if a file declares more bytes than it can hold."""
    if declared > at_most:
        raise DataError(
            f"{what} declares {declared} bytes of values, but the file can hold {at_most} at most: "
            "it is truncated or damaged. Obtain or write it again."
        )


def refuse_hollow(n_rows: int, n_entries: int, what: str) -> None:
    """Raise if a sparse matrix declares rows out of all proportion to its entries.

    Every row costs memory, entries or not, so a damaged row count is expensive to believe.
    """
    if n_rows > _ROWS_TAKEN_ON_TRUST + _ROWS_PER_ENTRY * n_entries:
        raise DataError(
            f"A row without entries is no sample; {what} declares {n_rows} rows and {n_entries} "
            "entries: it is damaged, or samples are columns. Write it again, samples as rows."
        )


def physical_memory() -> int | None:
    """The memory of this machine in bytes; None on a platform that does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
