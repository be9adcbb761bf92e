"""NumPy archives (.npz) and single arrays (.npy). Nothing is ever unpickled."""

import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from keepers.data.columns import Matrix, to_table
from keepers.data.formats.stored_sparse import STORED_PARTS, build_stored
from keepers.data.limits import refuse_declared
from keepers.data.request import ReadRequest
from keepers.data.table import LabelledTable
from keepers.data.wording import closest, listed
from keepers.exceptions import DataError, shortened

__all__ = ["ArrayHeader", "read_header", "read_npz"]

LABEL_ARRAYS = ("y", "labels", "label", "target")
_SPARSE_SIGNS = {"format", "shape", "data"}
"""What every archive of `scipy.sparse.save_npz` holds."""
_LONGEST_HEADER = 10_000  # as in NumPy
_CONVERTED = 8  # bytes per value once in float64


def read_npz(path: Path, request: ReadRequest) -> LabelledTable:
    """Read an archive: X (or its only 2-D array), y, feature_names and sample_names if there.

    The parts of a matrix stored by ``scipy.sparse.save_npz`` are put together again.
    """
    with zipfile.ZipFile(path) as archive:
        members = {
            info.filename.removesuffix(".npy"): info
            for info in archive.infolist()
            if info.filename.endswith(".npy")
        }

        def read(name: str) -> Any:
            info = members[name]
            with archive.open(info) as stream:
                return _read_array(stream, info.file_size, name, request)

        labels = _named_array(request.labels, members, LABEL_ARRAYS)
        identifier = _named_array(request.identifier, members, ("sample_names",))
        if set(members) >= _SPARSE_SIGNS and "X" not in members:
            X = _stored_sparse(read, members, path.name)
        else:
            X = read(_values_array(members, archive, {labels, identifier}))
        return to_table(
            Matrix(
                X,
                feature_names=read("feature_names") if "feature_names" in members else None,
                sample_names=read(identifier) if identifier else None,
                labels=read(labels) if labels else None,
            ),
            request,
            path.stem,
        )


def _named_array(
    asked: str | None, members: dict[str, zipfile.ZipInfo], usual: tuple[str, ...]
) -> str | None:
    """The array that plays a role: the one asked for, if it is there, else a usual name."""
    if asked is not None:
        return asked if asked in members else None
    return next((name for name in usual if name in members), None)


def _values_array(
    members: dict[str, zipfile.ZipInfo], archive: zipfile.ZipFile, taken: set[str | None]
) -> str:
    """The array of values: X, else the only one with two dimensions."""
    if "X" in members:
        return "X"
    two_dimensional = []
    for name, info in members.items():
        if name in taken:
            continue
        with archive.open(info) as stream:
            header = read_header(stream, name)
        if len(header.shape) == 2 and header.dtype.kind in "biuf":
            two_dimensional.append(name)
    if len(two_dimensional) == 1:
        return two_dimensional[0]
    found = listed([repr(name) for name in members], shown=12) or "nothing"
    raise DataError(
        "An archive must hold an array X, or exactly one numeric array with two dimensions; this "
        f"one holds {found}.{closest('X', members)} Store the values as X and the classes as y."
    )


@dataclass(frozen=True)
class ArrayHeader:
    """What stands in front of the values of an array."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]

    def refuse_longer_than(self, n_bytes: int, what: str) -> None:
        """Raise if there are fewer bytes of values than declared."""
        declared = int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize
        refuse_declared(declared, n_bytes, what)


def read_header(stream: IO[bytes], name: str) -> ArrayHeader:
    """Read up to where the values begin; refuse what would have to be unpickled."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version in ((2, 0), (3, 0)):  # 3.0 differs in non-ASCII names of fields only
        _refuse_long_header(stream, name)
        shape, by_columns, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise DataError(
            f"{shortened(name)} has the unknown format version {version}. Write it again."
        )
    if dtype.hasobject:
        raise DataError(
            f"{shortened(name)} holds pickled Python objects, which are never loaded: a pickle can "
            "run any code. Store it as numbers or fixed-width text (for example names.astype(str))."
        )
    return ArrayHeader(shape, by_columns, dtype)


def _refuse_long_header(stream: IO[bytes], name: str) -> None:
    """Raise for a length that NumPy would set memory aside for, only to refuse the header then."""
    at = stream.tell()
    length = int.from_bytes(stream.read(4), "little")
    stream.seek(at)
    if length > _LONGEST_HEADER:
        raise DataError(
            f"The header of {shortened(name)} must have at most {_LONGEST_HEADER} bytes; it "
            "declares "
            f"{length}: it is damaged. Obtain or write it again."
        )


def _read_array(stream: IO[bytes], n_bytes: int, name: str, request: ReadRequest) -> Any:
    """One array, after its declared size was held against the file and the limit."""
    header = read_header(stream, name)
    what = f"array {shortened(name)}"
    request.limit.refuse_shape(header.shape, max(header.dtype.itemsize, _CONVERTED), what)
    header.refuse_longer_than(n_bytes - stream.tell(), what)
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)


def _stored_sparse(
    read: Callable[[str], Any], members: Mapping[str, zipfile.ZipInfo], name: str
) -> Any:
    kind = read("format").item()
    kind = kind.decode("ascii", errors="replace") if isinstance(kind, bytes) else str(kind)
    known = STORED_PARTS.get(kind)
    if known is None or not set(members) >= set(known):
        raise DataError(
            f"A sparse matrix must be stored as scipy.sparse.save_npz does, in one of the formats "
            f"{', '.join(STORED_PARTS)}, with all its parts; this one is {shortened(kind)} and "
            "holds "
            f"{listed([repr(member) for member in members], shown=12)}. Store X.tocsr()."
        )
    shape = tuple(int(length) for length in read("shape").ravel())
    parts = {part: read(part) for part in known}
    return build_stored(kind, parts, shape, f"the sparse matrix in {shortened(name)}")
