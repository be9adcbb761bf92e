"""Many files seen as one table."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import IndexArray, RowBlock
from keepers.data.blocks.files import FileBlocks
from keepers.data.blocks.local import LocalBlocks
from keepers.data.blocks.splitting import shares
from keepers.data.wording import listed
from keepers.exceptions import DataError

__all__ = ["FileSequence", "files_below", "in_natural_order"]


class FileSequence(LocalBlocks):
    """The rows of several files, one after the other.

    Parameters
    ----------
    name : str
        What the table is called in messages.
    members : sequence of FileBlocks
        Tables with the same columns, in any order; the first tells the order of all.
    """

    def __init__(self, name: str, members: Sequence[FileBlocks]) -> None:
        first = members[0]
        self.name = name
        self.feature_names = first.feature_names
        self.n_features = first.n_features
        self.is_sparse = first.is_sparse
        self.dtype = np.result_type(*(member.dtype for member in members))
        self._orders = [_order(member, first) for member in members]
        self._members = [_alike(each, first, self.dtype) for each in members]
        self.n_samples = _summed([member.n_samples for member in members])
        self.n_stored = _summed([member.n_stored for member in members])

    def blocks(
        self, columns: IndexArray | None = None, *, annotated: bool = False
    ) -> Iterator[RowBlock]:
        """The rows of each file, block after block, with labels and names if ``annotated``."""
        for member, order in zip(self._members, self._orders, strict=True):
            if order is None:
                yield from member.blocks(columns, annotated=annotated)
            else:
                chosen = order if columns is None else order[columns]
                yield from member.blocks(chosen, annotated=annotated)

    def parts(self, n_parts: int) -> list["FileSequence"]:
        """The same rows as about ``n_parts`` tables: groups of files, or parts of each file."""
        weights = [member.n_samples or 1 for member in self._members]
        if self.n_samples is None:
            weights = [1] * len(weights)
        if n_parts <= len(weights):
            chosen = shares(weights, n_parts)
            return [self._some(self._members[at.start : at.stop], at.start) for at in chosen]
        tables: list[FileSequence] = []
        for at, member in enumerate(self._members):
            pieces = member.parts(max(1, round(n_parts * weights[at] / sum(weights))))
            tables.extend(self._some([piece], at) for piece in pieces)
        return tables

    def _some(self, members: Sequence[FileBlocks], start: int) -> "FileSequence":
        """Consecutive members, or a piece of one, as a table of their own."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._members = list(members)
        other._orders = self._orders[start : start + len(members)]
        other.n_samples = _summed([member.n_samples for member in members])
        other.n_stored = _summed([member.n_stored for member in members])
        return other


def _order(member: FileBlocks, first: FileBlocks) -> IndexArray | None:
    """Where the columns of the first file stand in another; None if in the same places."""
    names, expected = member.feature_names, first.feature_names
    if len(names) == len(expected) and bool(np.all(names == expected)):
        return None
    if set(names) != set(expected):
        raise DataError(
            f"All files of a table must have the same feature columns; {first.path} has "
            f"{len(expected)}, and {member.path} {_difference(names, expected)}. Leave it out, or "
            "write it again with the columns of the others."
        )
    position = {name: at for at, name in enumerate(names)}
    return np.array([position[name] for name in expected], dtype=np.intp)


def _difference(names: NDArray[Any], expected: NDArray[Any]) -> str:
    """How the columns of a file differ from those of the first."""
    here, there = set(names), set(expected)
    told = [
        f"{what} {listed([repr(name) for name in some])}"
        for what, some in (
            ("lacks", [name for name in expected if name not in here]),
            ("adds", [name for name in names if name not in there]),
        )
        if some
    ]
    return f"has {len(names)} and {' and '.join(told)}"


def _alike(member: FileBlocks, first: FileBlocks, dtype: np.dtype[Any]) -> FileBlocks:
    """A member that gives blocks of the same kind as all the others."""
    if member.is_sparse != first.is_sparse:
        kinds = ["dense", "sparse"]
        raise DataError(
            f"All files of a table must be sparse, or none; {member.path} is "
            f"{kinds[member.is_sparse]} and {first.path} is {kinds[first.is_sparse]}. Write one "
            "of them again."
        )
    return member.in_precision(dtype).sharing_with(first)


def _summed(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def files_below(folder: Path) -> list[Path]:
    """All files in a folder and below it, but hidden ones and those whose names begin with "_"."""
    found = [
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    return in_natural_order(found)


def in_natural_order(paths: Sequence[Path]) -> list[Path]:
    """Sorted by name, numbers in names by their value: part-2 before part-10."""
    return sorted(paths, key=lambda path: [_by_value(part) for part in path.parts])


def _by_value(name: str) -> tuple[list[str | int], str]:
    pieces = re.split(r"([0-9]+)", name.casefold())
    return [int(piece) if at % 2 else piece for at, piece in enumerate(pieces)], name
