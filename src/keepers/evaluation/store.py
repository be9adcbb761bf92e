"""Where results stay: one SQLite file, one transaction a result.

A run that is killed at any moment leaves a file with every finished result in it and nothing else.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from keepers.evaluation.tasks import Growth, Outcome, Task
from keepers.exceptions import DataError, KeepersError

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
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._database = sqlite3.connect(path, isolation_level=None)
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.executescript(_TABLES)
            self._check_layout()
        except sqlite3.DatabaseError as error:
            raise DataError(
                f"{path} is not a results file of keepers ({error}). Choose another folder, or "
                "move the file away."
            ) from error

    def _check_layout(self) -> None:
        rows = self._database.execute("SELECT version FROM layout").fetchall()
        if not rows:
            self._database.execute("INSERT INTO layout VALUES (?)", (LAYOUT,))
        elif rows[0][0] != LAYOUT:
            raise DataError(
                f"{self.path} has layout {rows[0][0]}; this version of keepers writes {LAYOUT}. "
                "Choose another folder, or use the version that made it."
            )

    def add(self, task: Task | Growth, outcome: Outcome) -> None:
        """Keep the outcome of a task; one transaction, on disk when this returns."""
        self._database.execute(
            "INSERT INTO results VALUES (?, ?, ?, datetime('now'))",
            (task.key, json.dumps(asdict(task)), json.dumps(asdict(outcome))),
        )

    def outcomes(self) -> dict[str, Outcome]:
        """All outcomes, by key of their task."""
        rows = self._database.execute("SELECT key, outcome FROM results")
        return {key: _as_outcome(json.loads(text)) for key, text in rows}

    def forget_unsuccessful(self) -> int:
        """Drop failures and time-outs, so that they are tried again; how many there were."""
        return self._database.execute(
            "DELETE FROM results WHERE json_extract(outcome, '$.status') <> 'ok'"
        ).rowcount

    def note_run(self, facts: dict[str, Any]) -> None:
        """Keep the facts of a run: environment, versions, seeds, commit."""
        self._database.execute(
            "INSERT INTO runs (started, facts) VALUES (datetime('now'), ?)", (json.dumps(facts),)
        )

    def runs(self) -> list[dict[str, Any]]:
        """The facts of every run that added to this store, oldest first."""
        rows = self._database.execute("SELECT started, facts FROM runs ORDER BY number")
        return [{"started": started, **json.loads(facts)} for started, facts in rows]

    @contextmanager
    def only_one_run(self) -> Iterator[None]:
        """Refuse to work while another run works on the same results.

        The lock is SQLite's own, on a file beside the results, so that it ends with the process
        that holds it, however that ends.
        """
        lock = sqlite3.connect(self.path.with_suffix(".lock"), timeout=0.5, isolation_level=None)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise KeepersError(
                f"Another run is at work in {self.path.parent}. Wait for it, or choose another "
                "folder."
            ) from error
        try:
            yield
        finally:
            lock.close()

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
