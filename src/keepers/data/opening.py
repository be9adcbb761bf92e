"""From a path or a name to a table."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keepers.data import bundled
from keepers.data.blocks.files import collect
from keepers.data.catalogue import catalogue, entry_named, find, refuse_wrong_checksum
from keepers.data.columns import Matrix, refuse_empty_columns, to_table
from keepers.data.formats.registry import HDF5, known_format
from keepers.data.limits import SizeLimit
from keepers.data.read_errors import reading
from keepers.data.replacing import leads_to_itself
from keepers.data.request import ReadRequest
from keepers.data.table import LabelledTable
from keepers.data.values import as_labels
from keepers.data.wording import closest
from keepers.exceptions import DataError, ParameterError, shortened

__all__ = ["load_catalogued", "open_table"]


def open_table(
    source: str | Path,
    *,
    labels: str | None = None,
    identifier: str | None = None,
    drop: Sequence[str] = (),
    max_bytes: int | None = None,
    dataset: str | None = None,
    header: bool | None = None,
) -> LabelledTable:
    """Read a table from a file, or a data set by its name.

    Parameters
    ----------
    source : str or Path
        A file, read by its suffix; else the name of a bundled data set ("srbct", "digits") or of
        a catalogued one (see `catalogue`), whose labels come with it.
    labels : str or None
        Column (or array of a .npz or .h5, variable of a .mat) that holds the classes.
    identifier : str or None
        Column that names the samples.
    drop : sequence of str
        Columns to leave out.
    max_bytes : int or None
        Refuse a table that would take more memory than this, compressed files included.
        None: 8 GiB; never more than the memory of the machine.
    dataset : str or None
        Which array of an HDF5 file (.h5) holds the values, if there are several and none is "X".
    header : bool or None
        Whether the first line of a text table holds column names. None: it does unless it holds
        numbers only, other than 0, 1, 2, ...; a `DataWarning` says where that is doubtful.

    Returns
    -------
    LabelledTable
        Values, names, and labels where there are any.

    Raises
    ------
    DataError
        The file cannot be read as a table; the message says why and what helps.

    Examples
    --------
    >>> from keepers.data import open_table
    >>> table = open_table("srbct")
    >>> table.n_samples, table.n_features, sorted(set(table.labels))
    (83, 2308, ['BL', 'EWS', 'NB', 'RMS'])
    """
    request = ReadRequest(
        labels,
        identifier,
        tuple(drop),
        SizeLimit.of(max_bytes),
        dataset=dataset,
        header=header,
        whole=True,
    )
    path = Path(source)
    if os.path.isfile(path):  # unlike Path.is_file, False for any name that cannot be one
        return _read_file(path, request)
    name = str(source)
    if name.casefold() in bundled.names():
        return _with_roles(_bundled(name.casefold()), request)
    if name.casefold() in {entry.name.casefold() for entry in catalogue()}:
        return _with_roles(load_catalogued(name), request)
    raise DataError(_unknown(name, path))


def load_catalogued(name: str, *, verify: bool = True) -> LabelledTable:
    """Read a catalogued benchmark set from the data folder.

    Parameters
    ----------
    name : str
        Name in the catalogue; upper and lower case do not matter.
    verify : bool
        Refuse a file whose SHA-256 is not the catalogued one.

    Returns
    -------
    LabelledTable
        The raw values, with labels; the entry's ``scaling`` is not applied.
    """
    entry, path = entry_named(name), find(name)
    if verify:
        refuse_wrong_checksum(entry, path)
    table = _read_file(path, ReadRequest(whole=True))
    return LabelledTable(table.X, table.feature_names, None, table.labels, entry.name)


def _bundled(name: str) -> LabelledTable:
    X, feature_names, y = bundled.load(name)
    X = np.ascontiguousarray(X, dtype=np.float64)
    return LabelledTable(X, feature_names, None, as_labels(y, "labels"), name)


def _with_roles(table: LabelledTable, request: ReadRequest) -> LabelledTable:
    """Drop columns of a named set; its labels are what they are."""
    stored = Matrix(table.X, table.feature_names, table.sample_names, table.labels)
    roles = ReadRequest(None, request.identifier, request.drop, request.limit)
    return to_table(stored, roles, table.name)


def _read_file(path: Path, request: ReadRequest) -> LabelledTable:
    file_format = known_format(path)
    if request.dataset is not None and file_format.title != HDF5:
        raise ParameterError(
            f"dataset= names an array in an HDF5 file; {path} is {file_format.title}. Leave it out."
        )
    with reading(path, file_format.title):
        if file_format.read_whole is not None:
            table = file_format.read_whole(path, request)
        else:
            assert file_format.open_blocks is not None
            blocks = file_format.open_blocks(path, request)
            table = collect(blocks, request.limit, file_format.name_of(path))
        refuse_empty_columns(table)
        return table


def _unknown(name: str, path: Path) -> str:
    names = [*bundled.names(), *(entry.name for entry in catalogue())]
    shown = shortened(name)
    if os.path.isdir(path):
        return f"A table is read from a file; {shown} is a folder. Name a file in it."
    if leads_to_itself(path):
        return f"{shown} is a symbolic link that leads back to itself. Name another file."
    if path.suffix or len(path.parts) > 1:
        return (
            f"There is no file {shown}.{closest(path.name, _files_beside(path))} Give a file that "
            f"exists, or one of the known data sets: {', '.join(names)}."
        )
    return (
        f"{shown} is neither a file nor a known data set.{closest(name, names)} Known: "
        f"{', '.join(names)}."
    )


def _files_beside(path: Path) -> list[str]:
    try:
        return os.listdir(path.parent)
    except (OSError, ValueError):
        return []
