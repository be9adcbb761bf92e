"""Reading files in child processes that may crash, hang or run out of memory."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from fuzzing.tables import stacked, strict_warnings, values_difference
from keepers.datasets import open_table, scan_table
from keepers.exceptions import KeepersError
from keepers.tables.opening import format_of

READ, REFUSED, UNSOUND = "read", "refused", "unsound"
EXCEPTION, CRASH, HANG, MEMORY = "other exception", "crash", "hang", "out of memory"
OUTCOMES = (READ, REFUSED, UNSOUND, EXCEPTION, CRASH, HANG, MEMORY)
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
MEMORY_LIMIT = 3 * 2**30
LONGEST_SECONDS = 10
COMMAND = (sys.executable, "-m", "fuzzing.reading")
FILES_PER_PROCESS = 500
NO_MEMORY = "does not fit in memory"


def has_blocks(path: Path) -> bool:
    """Whether files of this format are read in blocks."""
    known = format_of(path)
    return known is not None and known.in_blocks


def read_both_ways(path: Path, arguments: dict[str, Any]) -> tuple[str, str]:
    """The outcome of reading a file as a table and in blocks, and what to say of it."""
    outcome, told, table = _attempt(lambda: open_table(path, **arguments))
    if outcome == READ:
        told = _fault(table)
        outcome = UNSOUND if told else READ
    if outcome not in (READ, REFUSED) or not has_blocks(path):
        return outcome, told
    in_blocks, why, values = _attempt(lambda: stacked(scan_table(path, **arguments)))
    if in_blocks not in (READ, REFUSED):
        return in_blocks, f"in blocks: {why}"
    if outcome == in_blocks == READ:
        found = values_difference(values, table.values)
        return (READ, "") if found is None else (UNSOUND, f"blocks and table differ: {found}")
    return outcome, told


def _attempt(read: Any) -> tuple[str, str, Any]:
    try:
        with strict_warnings():
            return READ, "", read()
    except KeepersError as error:
        return REFUSED, str(error), None
    except MemoryError as error:
        return MEMORY, f"{error!r}", None
    except Exception as error:
        return EXCEPTION, f"{type(error).__name__}: {error}", None


def _fault(table: Any) -> str:
    """What is wrong with a table that was read, if something is."""
    if table.values.shape != (table.n_samples, table.n_features) or not table.columns:
        return f"shape {table.values.shape}"
    if table.values.dtype not in (np.float64, np.float32):
        return f"dtype {table.values.dtype}"
    if len(set(table.columns)) != table.n_features + len(table.others):
        return "feature names stand twice"
    for names in (table.names, table.ids):
        if names is not None and not all(isinstance(name, str) for name in names):
            return "a name is no text"
    for column in (table.ids, table.labels):
        if column is not None and column.shape != (table.n_samples,):
            return f"a column of shape {column.shape}"
    if table.is_sparse:
        table.values.check_format(full_check=True)
    return ""


def serve(questions: IO[str], answers: IO[str]) -> None:
    """Read the files that are named, one a line, until the lines end: what a child does."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in questions:
        path, arguments = json.loads(line)
        signal.alarm(LONGEST_SECONDS)  # not handled: it ends native code, too
        outcome = read_both_ways(Path(path), arguments)
        signal.alarm(0)
        answers.write(json.dumps(outcome) + "\n")
        answers.flush()


class Reader:
    """A child process that reads one file at a time; replaced when it dies or grows old."""

    def __init__(self, folder: Path, command: Sequence[str] = COMMAND) -> None:
        self.folder = folder
        self._command = command
        self._child: subprocess.Popen[str] | None = None
        self._n_read = 0
        self._errors = folder.with_suffix(".stderr")

    def start(self, path: Path, arguments: dict[str, Any]) -> None:
        """Begin to read a file that lies in this reader's folder."""
        if self._child is None:
            self._child = self._new_child()
        self._n_read += 1
        self._ask(path, arguments)

    def outcome(self, path: Path, arguments: dict[str, Any]) -> tuple[str, str]:
        """Wait for the outcome of the file that was begun."""
        found = self._answer()
        if found[0] in (CRASH, HANG, MEMORY) and self._child is None:
            # Memory that an earlier file corrupted may fail now: alone it would not.
            n_before = self._n_read - 1
            self._child = self._new_child()
            self._ask(path, arguments)
            alone = self._answer()
            if alone[0] != found[0]:
                found = (found[0], f"{found[1]}; not alone, but after {n_before} other files")
        return found

    def rest(self) -> None:
        """Between two files: replace a child that has read many, and remove what it read."""
        if self._n_read >= FILES_PER_PROCESS or self._child is None:
            self.stop()
            for path in self.folder.iterdir():
                path.unlink()

    def stop(self) -> None:
        """End the child."""
        if self._child is not None:
            self._end()
        self._n_read = 0

    def _ask(self, path: Path, arguments: dict[str, Any]) -> None:
        assert self._child is not None
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps([str(path), arguments]) + "\n")
        self._child.stdin.flush()

    def _answer(self) -> tuple[str, str]:
        assert self._child is not None
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if line:
            outcome, told = json.loads(line)
            return outcome, told
        number = self._end()
        said = self._errors.read_text(errors="replace")
        if number == -signal.SIGALRM:
            return HANG, f"not read within {LONGEST_SECONDS} s"
        kind = MEMORY if "bad_alloc" in said or "MemoryError" in said else CRASH
        name = signal.Signals(-number).name if number < 0 else f"exit code {number}"
        return kind, f"{name}: {said.strip().splitlines()[-1:]}"

    def _end(self) -> int:
        """Let the child go, and return its exit code."""
        assert self._child is not None
        for stream in (self._child.stdin, self._child.stdout):
            assert stream is not None
            stream.close()
        number = self._child.wait()
        self._child = None
        return number

    def _new_child(self) -> "subprocess.Popen[str]":
        tools = str(Path(__file__).parents[1])
        paths = os.pathsep.join([tools, *filter(None, [os.environ.get("PYTHONPATH")])])
        with self._errors.open("w") as errors:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": paths},
            )


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
