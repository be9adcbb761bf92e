"""The sums of long passes over a table, in files beside a checkpoint.

A pass over a large table may take an hour. What it has summed is saved now and then, and its result
is saved when it ends, so that a fit that was killed reads no rows twice. A file belongs to one sum
over one table: its name is a digest of both, and whatever does not fit is read anew.
"""

import hashlib
import json
import os
import re
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import BlockSum, BlockTable, IndexArray, ResumableSum, Sum
from keepers.data.blocks.local import LocalBlocks
from keepers.data.formats.numpy_files import read_header
from keepers.data.replacing import remove_abandoned, whole_file
from keepers.exceptions import KeepersError, KeepersWarning, warn_caller
from keepers.linalg.sketch import TableSketch
from keepers.linalg.sums import ScatterSum

LAYOUT = 1
# Small tables never pay: shorter passes are not saved at all.
SECONDS_BETWEEN = 30.0
# Saving takes at most one part in so many of the time: the scatter of 10,000 columns is 800 MB.
REST = 20.0
_MOST_ARRAYS = 64


class SavedPasses:
    """The files of the passes of one fit.

    Parameters
    ----------
    checkpoint : Path
        Beside which the files are; they are named ``<checkpoint>.pass-<digest>``.
    table : BlockTable
        What is read. Only passes of tables that are read by this process are saved. The first one
        must be recognised before any row is read, and is saved only if the table has an
        ``identity``: that is, if it is in files.
    """

    def __init__(self, checkpoint: Path, table: BlockTable) -> None:
        self._table = table if isinstance(table, LocalBlocks) else None
        self._identity = None if self._table is None else self._table.identity()
        self._sketch: str | None = None
        self._checkpoint = checkpoint
        self._new = self._file("new")
        self._needed_by_all_steps: dict[str, Path] = {}
        self._of_this_step: set[Path] = set()
        self._is_writable = True

    def know(self, sketch: TableSketch) -> None:
        """Tell what the first pass found, by which the table is recognised from now on."""
        moments = sketch.moments
        found = (moments.n_samples, moments.mean, moments.sum_of_squares, sketch.products)
        self._sketch = _digest(found)

    def open(self, empty: BlockSum, columns: IndexArray | None) -> "SavedPass | None":
        """The pass that makes this sum; None if it cannot be saved."""
        if self._table is None or not isinstance(empty, ResumableSum):
            return None
        if self._sketch is None and self._identity is None:
            return None
        table = (self._identity or "", self._sketch or "", columns is None)
        read = () if columns is None else (columns,)
        key = _digest((LAYOUT, *table, *read, type(empty).__name__, *empty.parameters()))
        path = self._file(key[:16])
        if self._sketch is None:
            self._needed_by_all_steps["first"] = path
        elif isinstance(empty, ScatterSum):  # of the columns that are in the work from now on
            self._needed_by_all_steps["columns"] = path
        self._of_this_step.add(path)
        return SavedPass(self, self._table, path, key)

    def forget_step(self) -> None:
        """Remove what a fit that resumes from the step just saved does not need.

        That is, files of passes that this process has made since. A fit that resumes saves the step
        it starts from once more, before it comes to the pass that was interrupted.
        """
        for path in self._of_this_step.difference(self._needed_by_all_steps.values()):
            with suppress(OSError):  # a file that stays is no reason to end a fit
                path.unlink(missing_ok=True)
        self._of_this_step.clear()

    def forget(self) -> None:
        """Remove all files, also those that earlier processes left."""
        pattern = re.compile(re.escape(self._checkpoint.name) + r"\.pass-(new|[0-9a-f]{16})")
        with suppress(OSError):
            remove_abandoned(Path(os.path.realpath(self._new)))
            for name in os.listdir(self._checkpoint.parent):
                if pattern.fullmatch(name):
                    self._checkpoint.with_name(name).unlink(missing_ok=True)

    def _file(self, word: str) -> Path:
        return self._checkpoint.with_name(f"{self._checkpoint.name}.pass-{word}")

    def write(self, path: Path, header: dict[str, Any], states: Sequence[dict[str, Any]]) -> None:
        """Replace a file as a whole. If it cannot be written, the fit continues, with a warning."""
        if not self._is_writable:
            return
        arrays: dict[str, Any] = {
            f"{number}_{name}": array
            for number, state in enumerate(states)
            for name, array in state.items()
        }
        arrays["header"] = np.array(json.dumps({**header, "n_sums": len(states)}))
        try:
            # By one name for all, so that what a killed process left is found and removed.
            with whole_file(self._new, force=True) as temporary, temporary.open("wb") as stream:
                np.savez(stream, **arrays)
            os.replace(self._new, path)
        except (KeepersError, OSError) as error:
            self._is_writable = False
            warn_caller(
                f"The sums of a pass could not be saved: {error} The fit continues; if it is "
                "interrupted, this pass is read again.",
                KeepersWarning,
            )


class SavedPass:
    """One pass over a table, and the file with its sums."""

    def __init__(self, files: SavedPasses, table: LocalBlocks, path: Path, key: str) -> None:
        self._files, self._table = files, table
        self._path, self._key = path, key
        self._last_saved = time.monotonic()
        self._seconds_saving = 0.0
        self._was_saved = False

    def result(self, begin: Callable[[], Sum]) -> Sum | None:
        """The sum over all blocks, if the pass was finished before; None if not."""
        found = self._read(begin, is_whole=True, n_sums=1)
        return None if found is None else found[0]

    def total(self, begin: Callable[[], Sum], columns: IndexArray | None) -> Sum:
        """Sum over all blocks, from where an interrupted pass ended."""
        found = self._table.total(begin, columns, self)
        if self._was_saved or self.is_due():
            self._write([found], is_whole=True)
        return found

    def load(self, begin: Callable[[], Sum], n_sums: int) -> list[Sum] | None:
        """The sums of an interrupted pass with as many threads; None if there are none."""
        found = self._read(begin, is_whole=False, n_sums=n_sums)
        self._was_saved = found is not None
        return found

    def is_due(self) -> bool:
        """Whether it is time to save."""
        wait = max(SECONDS_BETWEEN, REST * self._seconds_saving)
        return time.monotonic() - self._last_saved >= wait

    def save(self, sums: Sequence[Sum]) -> None:
        """Replace what is kept."""
        began = time.monotonic()
        self._write(sums, is_whole=False)
        self._was_saved = True
        self._last_saved = time.monotonic()
        self._seconds_saving = self._last_saved - began

    def _write(self, sums: Sequence[BlockSum], *, is_whole: bool) -> None:
        header = {"layout": LAYOUT, "key": self._key, "is_whole": is_whole}
        self._files.write(self._path, header, [cast(ResumableSum, one).state() for one in sums])

    def _read(self, begin: Callable[[], Sum], *, is_whole: bool, n_sums: int) -> list[Sum] | None:
        """The sums in the file; None if it is another's, or damaged: then the rows are read."""
        try:
            with self._path.open("rb") as stream:
                arrays = read_arrays(stream)
            header = json.loads(arrays.pop("header").item())
            expected = {"layout": LAYOUT, "key": self._key, "is_whole": is_whole, "n_sums": n_sums}
            if header != expected:
                return None
            sums = [begin() for _ in range(n_sums)]
            for number, one in enumerate(sums):
                prefix = f"{number}_"
                state = {
                    name.removeprefix(prefix): array
                    for name, array in arrays.items()
                    if name.startswith(prefix)
                }
                cast(ResumableSum, one).restore(state)
        except Exception:  # no file, or a damaged archive, which raises anything
            return None
        return sums


def _digest(facts: Sequence[Any]) -> str:
    """One word for arrays, numbers and words; arrays by every bit."""
    total = hashlib.sha256()
    for fact in facts:
        if isinstance(fact, np.ndarray):
            total.update(repr((fact.shape, str(fact.dtype))).encode())
            total.update(np.ascontiguousarray(fact).data)
        else:
            total.update(repr(fact).encode())
        total.update(b"\0")
    return total.hexdigest()


def read_arrays(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    """All arrays of an archive without compression, none larger than the file; no objects."""
    n_bytes = os.fstat(file.fileno()).st_size
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if len(members) > _MOST_ARRAYS or sum(member.file_size for member in members) > n_bytes:
            raise ValueError("too large")
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("compressed")
        arrays = {}
        for member in members:
            name = member.filename.removesuffix(".npy")
            with archive.open(member) as stream:
                header = read_header(stream, name)
                n_values = int(np.prod(header.shape, dtype=object))
                if n_values * header.dtype.itemsize != member.file_size - stream.tell():
                    raise ValueError("another length")
                stream.seek(0)
                arrays[name] = np.lib.format.read_array(stream, allow_pickle=False)
                if stream.read(1):
                    raise ValueError("another length")
        if len(arrays) < len(members):
            raise ValueError("one name twice")
        return arrays
