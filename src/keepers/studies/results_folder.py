"""Which folders take the results of a study: new ones, empty ones, and those keepers made."""

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from keepers.data.replacing import is_temporary
from keepers.data.wording import listed
from keepers.exceptions import KeepersError, ParameterError
from keepers.studies.atomic import make_folder, write_text

__all__ = ["MARKER", "STORE", "claim_folder"]

MARKER = "keepers-results.txt"
STORE = "results.sqlite"

_SIGNATURE = "keepers results folder"
_TEXT = f"""{_SIGNATURE}
Written by `keepers compare` or `keepers reproduce`. The next run replaces the tables, the figures
and the page in this folder; without this file it refuses the folder.
"""
_COLUMNS_OF_A_STORE = {
    "layout": "version",
    "results": "key, task, outcome, finished",
    "runs": "number, started, facts",
}


def claim_folder(folder: Path, sources: Iterable[str] = ()) -> None:
    """Make ``folder`` a results folder, or raise before anything in it is touched.

    Parameters
    ----------
    folder : Path
        Does not exist, or is empty, or was claimed before: its marker says so or, in folders of
        versions that wrote no marker, its store.
    sources : iterable of str
        Tables that are to be read. They must lie outside of the folder.
    """
    try:
        if folder.exists() or folder.is_symlink():
            _refuse_foreign(folder)
            _refuse_inside(folder, sources)
    except OSError as error:
        raise KeepersError(
            f"{folder} cannot be read: {error.strerror}. Choose another folder with --out."
        ) from error
    make_folder(folder)
    write_text(folder / MARKER, _TEXT)  # each time: a folder that is read-only is noticed here


def _refuse_foreign(folder: Path) -> None:
    if not folder.is_dir():
        raise ParameterError(
            f"Results go to a folder; {folder} is not a folder. Choose another name with --out."
        )
    # A run killed while it wrote the marker leaves nothing but a temporary file.
    found = sorted(name for name in os.listdir(folder) if not is_temporary(name))
    if found and not _has_marker(folder) and not _has_store(folder):
        raise ParameterError(
            f"Results go to a new or empty folder, or to one that keepers made; {folder} holds "
            f"other files ({listed(found)}). Choose another with --out."
        )


def _refuse_inside(folder: Path, sources: Iterable[str]) -> None:
    inside = Path(os.path.realpath(folder))
    for source in sources:
        is_file = "\0" not in source and os.path.exists(source)
        if is_file and Path(os.path.realpath(source)).is_relative_to(inside):
            raise ParameterError(
                f"The table must lie outside of the results folder, whose files are replaced; "
                f"{source} is in {folder}. Move it, or choose another folder with --out."
            )


def _has_marker(folder: Path) -> bool:
    marker = folder / MARKER
    if not marker.is_file():
        return False
    with marker.open("rb") as stream:
        return stream.readline(100).strip() == _SIGNATURE.encode()


def _has_store(folder: Path) -> bool:
    """Whether there is a store of keepers, by its tables and not by its name alone."""
    path = folder / STORE
    if not path.is_file():
        return False
    # Not read-only: what a killed run had begun may have to be rolled back before one can look.
    address = f"{path.resolve().as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            for table, columns in _COLUMNS_OF_A_STORE.items():
                database.execute(f"SELECT {columns} FROM {table} LIMIT 0")
    except sqlite3.Error:
        return False
    return True
