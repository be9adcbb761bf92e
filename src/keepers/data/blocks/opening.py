"""From a file, a folder, a pattern or a list of files to a table in blocks."""

import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from keepers.data.blocks.arrow_ipc import open_arrow
from keepers.data.blocks.files import FileBlocks
from keepers.data.blocks.folder import FileSequence, files_below, in_natural_order
from keepers.data.blocks.h5ad_file import open_h5ad
from keepers.data.blocks.hdf5_file import open_hdf5_file
from keepers.data.blocks.local import LocalBlocks
from keepers.data.blocks.numpy_file import open_numpy
from keepers.data.blocks.parquet import open_parquet
from keepers.data.blocks.text import open_csv, open_tsv
from keepers.data.formats import format_of
from keepers.data.formats.compression import with_compressions
from keepers.data.limits import SizeLimit
from keepers.data.replacing import leads_to_itself
from keepers.data.request import ReadRequest
from keepers.data.wording import closest, listed, unknown_suffix
from keepers.exceptions import DataError, ParameterError, shortened

__all__ = ["open_blocks"]

# Blocks come one at a time, so the size of the whole is no concern.
_ANY_SIZE = SizeLimit(2**62)


@dataclass(frozen=True)
class _BlockFormat:
    """How a kind of file is called, recognised and opened."""

    title: str
    suffixes: tuple[str, ...]
    open: Callable[[Path, ReadRequest], FileBlocks]


_HDF5 = "HDF5"
_FORMATS = (
    _BlockFormat("Parquet", (".parquet", ".pq"), open_parquet),
    _BlockFormat("Arrow", (".feather", ".arrow", ".ipc"), open_arrow),
    _BlockFormat("CSV", with_compressions(".csv"), open_csv),
    _BlockFormat("TSV", with_compressions(".tsv", ".tab"), open_tsv),
    _BlockFormat("NumPy array", (".npy",), open_numpy),
    _BlockFormat("AnnData", (".h5ad",), open_h5ad),
    _BlockFormat(_HDF5, (".h5", ".hdf5"), open_hdf5_file),
)


def open_blocks(
    source: str | Path | Sequence[str | Path],
    *,
    labels: str | None = None,
    identifier: str | None = None,
    drop: Sequence[str] = (),
    dataset: str | None = None,
    header: bool | None = None,
) -> LocalBlocks:
    """Open a table that may be larger than memory, to be read in blocks of rows.

    Parameters
    ----------
    source : str, Path or list of them
        A file, read by its suffix; a folder, whose files of one format make one table, sorted by
        name with numbers by their value (folders in it are searched; names that begin with "."
        or "_" are left out); a pattern such as ``"part-*.parquet"``; or a list of files, read in
        that order. The files of a table have the same columns, in any order.
    labels, identifier : str or None
        Columns that hold classes and sample names; they are no features, and are not read.
    drop : sequence of str
        Further columns to leave out.
    dataset : str or None
        Which array of an HDF5 file holds the values, if there are several.
    header : bool or None
        Whether the first line of a text file holds column names, as in `open_table`.

    Returns
    -------
    LocalBlocks
        Rows come from ``blocks()``; nothing but names and sizes is read before.

    Raises
    ------
    DataError
        A file cannot be read as a table, or does not fit the others; the message names it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from keepers.data.blocks.opening import open_blocks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "part-1.npy", np.eye(3))
    ...     np.save(Path(folder) / "part-2.npy", np.ones((2, 3)))
    ...     table = open_blocks(folder, drop=["x1"])
    ...     for block in table.blocks():
    ...         print(block.origin, block.values.sum(axis=0))
    part-1.npy, rows 1 to 3 [1. 1.]
    part-2.npy, rows 1 to 2 [2. 2.]
    >>> table.n_samples, list(table.feature_names)
    (5, ['x0', 'x2'])
    """
    request = ReadRequest(labels, identifier, tuple(drop), _ANY_SIZE, header=header)
    opened = partial(_opened, request=request, dataset=dataset)
    if not isinstance(source, (str, os.PathLike)):
        files = _all_there([_absolute(path) for path in source])
        return _sequence("the list of files", files, opened)
    if os.path.isfile(source):
        return opened(_absolute(source))
    if os.path.isdir(source):
        folder = _absolute(source)
        files = _of_one_format(_recognised(files_below(folder), str(folder)), str(folder))
        return _sequence(folder.name, files, opened, below=folder)
    if glob.has_magic(os.fspath(source)):
        return _sequence(str(source), _matching(str(source)), opened)
    raise DataError(_absent(Path(source)))


def _opened(path: Path, request: ReadRequest, dataset: str | None) -> FileBlocks:
    file_format = _format_of(path)
    if file_format is None:
        raise DataError(_unreadable(path))
    if dataset is not None and file_format.title == _HDF5:
        return open_hdf5_file(path, request, dataset)
    if dataset is not None:
        raise ParameterError(
            f"dataset= names an array in an HDF5 file; {path} is {file_format.title}. Leave it out."
        )
    return file_format.open(path, request)


def _format_of(path: Path) -> _BlockFormat | None:
    name = path.name.casefold()
    for file_format in _FORMATS:
        if name.endswith(file_format.suffixes):
            return file_format
    return None


def _sequence(
    name: str,
    paths: Sequence[Path],
    opened: Callable[[Path], FileBlocks],
    below: Path | None = None,
) -> FileSequence:
    members = [opened(path) for path in paths]
    if below is not None:
        members = [member.called(member.path.relative_to(below).as_posix()) for member in members]
    return FileSequence(name, members)


def _all_there(paths: list[Path]) -> list[Path]:
    if not paths:
        raise DataError("A table needs at least one file; the list of files is empty. Name one.")
    for path in paths:
        if not os.path.isfile(path):
            raise DataError(_absent(path))
        if _format_of(path) is None:
            raise DataError(_unreadable(path))
    return _of_one_format(paths, "the list")


def _recognised(paths: Sequence[Path], where: str) -> list[Path]:
    """The files whose suffix tells a format that is read in blocks; there may be others."""
    known = [path for path in paths if _format_of(path) is not None]
    if not known:
        found = listed([path.name for path in paths]) or "nothing"
        raise DataError(
            f"A table in blocks needs files whose names end in one of {_known()}; {where} holds "
            f"{found}. Name another folder, or convert the files."
        )
    return known


def _of_one_format(paths: list[Path], where: str) -> list[Path]:
    examples: dict[str, Path] = {}
    for path in paths:
        if file_format := _format_of(path):
            examples.setdefault(file_format.title, path)
    if len(examples) > 1:
        told = " and ".join(f"{title} ({path.name})" for title, path in examples.items())
        raise DataError(
            f"All files of a table must have one format; {where} holds {told}. Name those that "
            "are meant by a pattern, such as '*.parquet'."
        )
    return paths


def _matching(pattern: str) -> list[Path]:
    """The files that a pattern matches, and those in folders that it matches."""
    found: list[Path] = []
    for match in sorted(glob.glob(pattern, recursive=True)):
        path = _absolute(match)
        if path.name.startswith("_"):
            continue
        found += files_below(path) if path.is_dir() else [path]
    if not found:
        raise DataError(
            f"A pattern must match at least one file; {shortened(pattern)} matches none, seen from "
            f"{Path.cwd()}. Check the folder and the pattern."
        )
    where = f"the pattern {shortened(pattern)}"
    paths = in_natural_order(list(dict.fromkeys(found)))
    return _of_one_format(_recognised(paths, where), where)


def _absolute(path: str | os.PathLike[str]) -> Path:
    """Absolute, since another process may work in another folder."""
    return Path(os.path.abspath(path))


def _known() -> str:
    return ", ".join(suffix for known in _FORMATS for suffix in known.suffixes)


def _unreadable(path: Path) -> str:
    whole = format_of(path)
    if whole is not None:
        return (
            f"Blocks are read from files whose names end in {_known()}; {path} is a file of kind "
            f"{whole.title}, which is read as a whole only (open_table). Convert it."
        )
    return f"{path}: {unknown_suffix(path.name, _known().split(', '))}"


def _absent(path: Path) -> str:
    try:
        beside = os.listdir(path.parent)
    except (OSError, ValueError):
        beside = []
    what = "is a folder" if os.path.isdir(path) else "is not there"
    if leads_to_itself(path):
        what, beside = "is a symbolic link that leads back to itself", []
    return (
        f"A table in blocks is read from a file, a folder, a pattern or a list of files; {path} "
        f"{what}.{closest(path.name, beside)}"
    )
