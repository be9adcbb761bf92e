"""Where results are kept: a folder of keepers' own with one SQLite file, one transaction a result.

A run that is killed at any moment leaves a file with every finished result in it and nothing else.
A folder is accepted if it is new, empty, or was made by keepers; nothing else is ever touched.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from keepers.data.replacing import describe_os_error, is_temporary, whole_file
from keepers.data.wording import first_line, some_of
from keepers.exceptions import DataError, KeepersError, ParameterError
from keepers.studies.packed_results import PACKED, StoredRows, read_packed
from keepers.studies.plan import FitTask, GrowthTask, Outcome

MARKER = "keepers-results.txt"
STORE = "results.sqlite"

_SIGNATURE = "keepers results folder"
_TEXT = f"""{_SIGNATURE}
Written by `keepers compare` or `keepers reproduce`. The next run replaces the tables, the figures
and the report in this folder; without this file it refuses the folder.
"""
_COLUMNS = {
    "layout": "version",
    "results": "key, task, outcome, finished",
    "runs": "number, started, facts",
}

LAYOUT = 1

_TABLES = """
CREATE TABLE IF NOT EXISTS layout (version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY, task TEXT NOT NULL, outcome TEXT NOT NULL, finished TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS runs (
    number INTEGER PRIMARY KEY, started TEXT NOT NULL, facts TEXT NOT NULL
);
"""


class Store:
    """The results of a study, by task."""

    def __init__(self, path: Path) -> None:
        self.path = path
        make_folder(path.parent)
        with _explain_errors(path):
            self._database = sqlite3.connect(path, isolation_level=None)
        try:
            with _explain_errors(path):
                self._database.execute("PRAGMA synchronous = FULL")
                self._database.executescript(_TABLES)
                self._check_layout()
                self._check_integrity()
        except BaseException:
            self.close()
            raise

    def _check_layout(self) -> None:
        rows = self._database.execute("SELECT version FROM layout").fetchall()
        if not rows:
            self._database.execute("INSERT INTO layout VALUES (?)", (LAYOUT,))
        elif rows[0][0] != LAYOUT:
            raise _layout_error(self.path, rows[0][0])

    def _check_integrity(self) -> None:
        """Notice damage now, not after hours of fits."""
        (found,) = self._database.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise _damage_error(self.path, str(found).splitlines()[-1])

    def add(self, task: FitTask | GrowthTask, outcome: Outcome) -> None:
        """Store the outcome of a task; one transaction, on disk when this returns."""
        row = (task.key, json.dumps(asdict(task)), json.dumps(asdict(outcome)))
        with _explain_errors(self.path):
            self._database.execute("INSERT INTO results VALUES (?, ?, ?, datetime('now'))", row)

    def outcomes(self) -> dict[str, Outcome]:
        """All outcomes, by the key of their task."""
        with _explain_errors(self.path):
            rows = self._database.execute("SELECT key, outcome FROM results")
            return {key: _as_outcome(json.loads(text)) for key, text in rows}

    def delete_unsuccessful(self) -> int:
        """Delete failures and timeouts, so that they run again; returns their number."""
        with _explain_errors(self.path):
            return self._database.execute(
                "DELETE FROM results WHERE json_extract(outcome, '$.status') <> 'ok'"
            ).rowcount

    def rows(self) -> StoredRows:
        """Everything in the store, as text."""
        with _explain_errors(self.path):
            return _rows_of(self._database)

    def add_results_of(self, earlier: Path) -> int:
        """Add the results of another store that are not in this one; returns their number."""
        rows = _read_earlier(earlier)
        if rows.layout != LAYOUT:
            raise _layout_error(earlier, rows.layout)
        with _explain_errors(earlier):
            for row in rows.results:  # all of it is as it should be, or nothing is taken
                json.loads(row[1]), _as_outcome(json.loads(row[2]))
        with _explain_errors(self.path):
            self._database.execute("BEGIN")
            insert = "INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?)"
            added = self._database.executemany(insert, rows.results).rowcount
            if added:  # parts that start from the same earlier run both list it
                known = set(self._database.execute("SELECT started, facts FROM runs"))
                insert = "INSERT INTO runs (started, facts) VALUES (?, ?)"
                new = [run for run in rows.runs if tuple(run) not in known]
                self._database.executemany(insert, new)
            self._database.execute("COMMIT")
        return added

    def add_run(self, facts: dict[str, Any]) -> None:
        """Store the facts of a run: environment, versions, seed, commit."""
        row = (json.dumps(facts),)
        with _explain_errors(self.path):
            self._database.execute(
                "INSERT INTO runs (started, facts) VALUES (datetime('now'), ?)", row
            )

    def runs(self) -> list[dict[str, Any]]:
        """The facts of every run that added to this store, oldest first."""
        with _explain_errors(self.path):
            rows = self._database.execute("SELECT started, facts FROM runs ORDER BY number")
            return [{"started": started, **json.loads(facts)} for started, facts in rows]

    @contextmanager
    def only_one_run(self) -> Iterator[None]:
        """Refuse to start while another run uses the same results.

        The lock is SQLite's, on a file beside the results, so it is released with the process.
        """
        path = self.path.with_suffix(".lock")
        with _explain_errors(path):
            lock = sqlite3.connect(path, timeout=0.5, isolation_level=None)
        with closing(lock):
            with _explain_errors(path):
                self._take(lock)
            yield

    def _take(self, lock: sqlite3.Connection) -> None:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise KeepersError(
                f"Another run is using {self.path.parent}. Wait for it, or choose another folder."
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _read_earlier(path: Path) -> StoredRows:
    """A store or a packed file, given by its name or its folder; nothing in it is changed."""
    if path.is_dir():
        path = next((path / name for name in (STORE, PACKED) if (path / name).is_file()), path)
    if not path.is_file():
        raise DataError(
            f"Earlier results are a folder of keepers or its file {STORE} or {PACKED}; {path} is "
            "not there."
        )
    if path.suffix == ".xz":
        return read_packed(path)
    address = f"{path.resolve().as_uri()}?mode=ro"
    with _explain_errors(path), closing(sqlite3.connect(address, uri=True)) as database:
        return _rows_of(database)


def _rows_of(database: sqlite3.Connection) -> StoredRows:
    (version,) = database.execute("SELECT version FROM layout").fetchone()
    results = database.execute("SELECT key, task, outcome, finished FROM results").fetchall()
    runs = database.execute("SELECT started, facts FROM runs ORDER BY number").fetchall()
    return StoredRows(results, runs, version)


def _layout_error(path: Path, version: object) -> DataError:
    return DataError(
        f"{path} has layout {version}; this version of keepers writes {LAYOUT}. "
        "Choose another folder, or use the version that made it."
    )


def _as_outcome(stored: dict[str, Any]) -> Outcome:
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
    }
    return Outcome(**values)


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    """Raise what SQLite, or foreign content, raises as an error that says what to do."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise  # the same task twice: a bug, not a damaged file
    except sqlite3.DatabaseError as error:
        raise _sqlite_error(path, error) from error
    except (ValueError, TypeError, AttributeError) as error:
        if isinstance(error, KeepersError):
            raise
        raise _damage_error(path, first_line(error)) from error


def _sqlite_error(path: Path, error: sqlite3.DatabaseError) -> KeepersError:
    said = first_line(error)
    if "is full" in said or "I/O error" in said:
        return KeepersError(
            f"{path} cannot be written: the disk is full or failing ({said}). Free some space "
            "and run the same command again; it resumes."
        )
    if any(words in said for words in ("readonly", "read-only", "unable to open")):
        return KeepersError(
            f"{path} must be writable: {said}. Make the file and its folder writable, or choose "
            "another folder."
        )
    if "locked" in said:
        return KeepersError(
            f"{path} is in use by another program ({said}). Close it and run the same command "
            "again."
        )
    if "not a database" in said:
        return DataError(
            f"{path} is not a results file of keepers ({said}). Choose another folder, or move the "
            "file away."
        )
    return _damage_error(path, said)


def _damage_error(path: Path, said: str) -> DataError:
    return DataError(
        f"{path} is damaged ({said}). Move it away and run the same command again to "
        "start over, or restore a copy."
    )


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
            f"other files ({some_of(found)}). Choose another with --out."
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
            for table, columns in _COLUMNS.items():
                database.execute(f"SELECT {columns} FROM {table} LIMIT 0")
    except sqlite3.Error:
        return False
    return True


def write_text(path: Path, text: str) -> None:
    """Write text (UTF-8, newlines as they are); a reader sees the old file or the new one."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes; a reader sees the old file or the new one."""
    with whole_file(path, force=True) as temporary:
        temporary.write_bytes(content)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, if need be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise KeepersError(
            describe_os_error(path, error, "Choose another folder, or free some space.")
        ) from error
