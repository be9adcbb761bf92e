"""The store of results: a folder of its own with one SQLite file, one transaction a result.

A run that is killed at any moment leaves a file with every finished result in it and nothing else.
A folder is accepted if it is new, empty, or has results in it; nothing else is ever touched.
``results.jsonl.xz`` holds the same results in a tenth of the space, to keep and to give to others.
"""

import json
import lzma
import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from keepers._wording import first_line, some_of
from keepers.exceptions import DataError, KeepersError, ParameterError
from keepers.tables.atomic import describe_os_error, whole_file
from keepers_studies.plan import FitTask, Outcome, timed_task

STORE = "results.sqlite"
PACKED = "results.jsonl.xz"
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


class StoredRows(NamedTuple):
    """The two tables of a store, all values as text."""

    results: list[tuple[str, str, str, str]]
    """Key, task, outcome and when it was finished."""
    runs: list[tuple[str, str]]
    """When it was started, and its facts."""
    layout: object


class Store(AbstractContextManager["Store"]):
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
                self._check()
        except BaseException:
            self._database.close()
            raise

    def _check(self) -> None:
        """Notice another layout or damage now, not after hours of fits."""
        rows = self._database.execute("SELECT version FROM layout").fetchall()
        if not rows:
            self._database.execute("INSERT INTO layout VALUES (?)", (LAYOUT,))
        else:
            _check_layout(self.path, rows[0][0])
        (found,) = self._database.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(str(found).splitlines()[-1])

    def add(self, task: FitTask, outcome: Outcome) -> None:
        """Store the outcome of a task; one transaction, on disk when this returns."""
        row = (task.key, json.dumps(asdict(task)), json.dumps(asdict(outcome)))
        self._change("INSERT INTO results VALUES (?, ?, ?, datetime('now'))", *row)

    def add_run(self, facts: dict[str, Any]) -> None:
        """Store the facts of a run: environment, versions, seed, commit."""
        insert = "INSERT INTO runs (started, facts) VALUES (datetime('now'), ?)"
        self._change(insert, json.dumps(facts))

    def delete_unsuccessful(self) -> int:
        """Delete failures and timeouts, which then run again; returns their number."""
        return self._change("DELETE FROM results WHERE json_extract(outcome, '$.status') <> 'ok'")

    def _change(self, statement: str, *values: str) -> int:
        with _explain_errors(self.path):
            return self._database.execute(statement, values).rowcount

    def outcomes(self) -> dict[str, Outcome]:
        """All outcomes, by the key of their task."""
        with _explain_errors(self.path):
            rows = self._database.execute("SELECT key, outcome FROM results")
            return {key: _as_outcome(text) for key, text in rows}

    def runs(self) -> list[dict[str, Any]]:
        """The facts of every run that added to this store, oldest first."""
        with _explain_errors(self.path):
            rows = self._database.execute("SELECT started, facts FROM runs ORDER BY number")
            return [{"started": started, **json.loads(facts)} for started, facts in rows]

    def add_results_of(self, earlier: Path) -> int:
        """Add the results of another store that are not in this one; returns their number."""
        rows = _read_earlier(earlier)
        _check_layout(earlier, rows.layout)
        with _explain_errors(earlier):  # all of it is as it should be, or nothing is added
            results = [_converted(row) for row in rows.results]
        with _explain_errors(self.path):
            self._database.execute("BEGIN")
            insert = "INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?)"
            added = self._database.executemany(insert, results).rowcount
            if added:  # parts that start from the same earlier run both list it
                insert = "INSERT INTO runs (started, facts) SELECT ?, ? EXCEPT "
                insert += "SELECT started, facts FROM runs"
                self._database.executemany(insert, rows.runs)
            self._database.execute("COMMIT")
        return added

    def write_packed(self, path: Path) -> None:
        """Write everything as compressed JSON lines: eight decimals, no lists of features."""
        with _explain_errors(self.path):
            rows = _rows_of(self._database)
        lines: list[dict[str, Any]] = [{"format": "keepers results", "layout": rows.layout}]
        lines += [{"started": started, "facts": json.loads(facts)} for started, facts in rows.runs]
        for key, task, outcome, finished in rows.results:
            small = {**json.loads(outcome, parse_float=_rounded), "top": []}
            lines.append(
                {"key": key, "task": json.loads(task), "outcome": small, "finished": finished}
            )
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        write_bytes(path, lzma.compress(text.encode(), preset=4))

    @contextmanager
    def only_one_run(self) -> Iterator[None]:
        """Raise while another run uses the same results.

        The lock is SQLite's, on a second file, so it is released with the process.
        """
        path = self.path.with_suffix(".lock")
        with closing(sqlite3.connect(path, timeout=0.5, isolation_level=None)) as lock:
            try:
                lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                raise KeepersError(
                    f"Another run is using {self.path.parent} ({error}). Wait for it, or choose "
                    "another folder."
                ) from error
            yield

    def __exit__(self, *_: object) -> None:
        self._database.close()


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
        return _read_packed(path)
    address = f"{path.resolve().as_uri()}?mode=ro"
    with _explain_errors(path), closing(sqlite3.connect(address, uri=True)) as database:
        return _rows_of(database)


def _rows_of(database: sqlite3.Connection) -> StoredRows:
    (version,) = database.execute("SELECT version FROM layout").fetchone()
    results = database.execute("SELECT key, task, outcome, finished FROM results").fetchall()
    runs = database.execute("SELECT started, facts FROM runs ORDER BY number").fetchall()
    return StoredRows(results, runs, version)


def _read_packed(path: Path) -> StoredRows:
    try:
        with lzma.open(path) as stream:
            head, *lines = [json.loads(line) for line in stream]
        if head["format"] != "keepers results":
            raise ValueError("its first line is not that of a file of results")
        return StoredRows(
            [
                (row["key"], json.dumps(row["task"]), json.dumps(row["outcome"]), row["finished"])
                for row in lines
                if "key" in row
            ],
            [(row["started"], json.dumps(row["facts"])) for row in lines if "started" in row],
            head["layout"],
        )
    except (lzma.LZMAError, EOFError, OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path} is not a results file of keepers: {first_line(error)}.") from error


def _converted(row: tuple[str, str, str, str]) -> tuple[str, str, str, str]:
    """A result of an earlier version under the key that its task has now."""
    key, text, outcome, finished = row
    task = json.loads(text)
    _as_outcome(outcome)
    is_timed = "ks" not in task
    is_renamed = task["method"] == "DGUFS" and task["params"].get("solver") == "bcd"
    if is_renamed:  # the only solver now
        del task["params"]["solver"]
    if is_timed or is_renamed:
        now = timed_task(**task) if is_timed else FitTask(**task)
        key, text = now.key, json.dumps(asdict(now))
    return key, text, outcome, finished


def _as_outcome(text: str) -> Outcome:
    stored = json.loads(text)
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
    }
    return Outcome(**values)


def _rounded(number: str) -> float:
    return round(float(number), 8)


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite, or of foreign content, into errors with a remedy."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise  # the same task twice: a bug, not a damaged file
    except (sqlite3.DatabaseError, ValueError, TypeError, AttributeError, KeyError) as error:
        if isinstance(error, KeepersError):
            raise
        raise DataError(
            f"{path} cannot be read or written: {first_line(error)}. If the disk is full or the "
            "file is in use, change that and run the same command again; it resumes. If the file "
            "is damaged or not a results file of keepers, move it away or restore a copy."
        ) from error


def _check_layout(path: Path, version: object) -> None:
    if version != LAYOUT:
        raise DataError(
            f"{path} has layout {version}; this version of keepers writes {LAYOUT}. "
            "Choose another folder, or use the version that made it."
        )


def claim_folder(folder: Path) -> None:
    """Make a folder for results; raise if it holds other files, and no results."""
    make_folder(folder)
    found = sorted(os.listdir(folder))
    if found and STORE not in found:
        raise ParameterError(
            f"Results go to a new or empty folder, or to one that keepers made; {folder} holds "
            f"other files ({some_of(found)}). Choose another with --out."
        )


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
