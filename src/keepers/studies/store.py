"""Where results stay: one SQLite file, one transaction a result.

A run that is killed at any moment leaves a file with every finished result in it and nothing else.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from keepers.data.wording import first_line
from keepers.exceptions import DataError, KeepersError
from keepers.studies.atomic import make_folder
from keepers.studies.tasks import Growth, Outcome, Task

__all__ = ["Store"]

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
        with _explained(path):
            self._database = sqlite3.connect(path, isolation_level=None)
        try:
            with _explained(path):
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
            raise DataError(
                f"{self.path} has layout {rows[0][0]}; this version of keepers writes {LAYOUT}. "
                "Choose another folder, or use the version that made it."
            )

    def _check_integrity(self) -> None:
        """Notice damage now, not after hours of fits."""
        (found,) = self._database.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise _damaged(self.path, str(found).splitlines()[-1])

    def add(self, task: Task | Growth, outcome: Outcome) -> None:
        """Keep the outcome of a task; one transaction, on disk when this returns."""
        row = (task.key, json.dumps(asdict(task)), json.dumps(asdict(outcome)))
        with _explained(self.path):
            self._database.execute("INSERT INTO results VALUES (?, ?, ?, datetime('now'))", row)

    def outcomes(self) -> dict[str, Outcome]:
        """All outcomes, by key of their task."""
        with _explained(self.path):
            rows = self._database.execute("SELECT key, outcome FROM results")
            return {key: _as_outcome(json.loads(text)) for key, text in rows}

    def forget_unsuccessful(self) -> int:
        """Drop failures and time-outs, so that they are tried again; how many there were."""
        with _explained(self.path):
            return self._database.execute(
                "DELETE FROM results WHERE json_extract(outcome, '$.status') <> 'ok'"
            ).rowcount

    def note_run(self, facts: dict[str, Any]) -> None:
        """Keep the facts of a run: environment, versions, seeds, commit."""
        row = (json.dumps(facts),)
        with _explained(self.path):
            self._database.execute(
                "INSERT INTO runs (started, facts) VALUES (datetime('now'), ?)", row
            )

    def runs(self) -> list[dict[str, Any]]:
        """The facts of every run that added to this store, oldest first."""
        with _explained(self.path):
            rows = self._database.execute("SELECT started, facts FROM runs ORDER BY number")
            return [{"started": started, **json.loads(facts)} for started, facts in rows]

    @contextmanager
    def only_one_run(self) -> Iterator[None]:
        """Refuse to work while another run works on the same results.

        The lock is SQLite's own, on a file beside the results, so that it ends with the process
        that holds it, however that ends.
        """
        path = self.path.with_suffix(".lock")
        with _explained(path):
            lock = sqlite3.connect(path, timeout=0.5, isolation_level=None)
        with closing(lock):
            with _explained(path):
                self._take(lock)
            yield

    def _take(self, lock: sqlite3.Connection) -> None:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise KeepersError(
                f"Another run is at work in {self.path.parent}. Wait for it, or choose another "
                "folder."
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _as_outcome(stored: dict[str, Any]) -> Outcome:
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
    }
    return Outcome(**values)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what SQLite, or content that is not ours, raises into an error with a way out."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise  # the same task twice: a fault of the program, not of the file
    except sqlite3.DatabaseError as error:
        raise _error_of(path, error) from error
    except (ValueError, TypeError, AttributeError) as error:
        if isinstance(error, KeepersError):
            raise
        raise _damaged(path, first_line(error)) from error


def _error_of(path: Path, error: sqlite3.DatabaseError) -> KeepersError:
    said = first_line(error)
    if "is full" in said or "I/O error" in said:
        return KeepersError(
            f"{path} cannot be written: the disk is full or failing ({said}). Make room and run "
            "the same command again; it resumes with what is finished."
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
    return _damaged(path, said)


def _damaged(path: Path, said: str) -> DataError:
    return DataError(
        f"{path} is damaged ({said}). Move it away and run the same command again, which begins "
        "anew, or put a copy in its place."
    )
