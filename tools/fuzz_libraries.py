"""Damage files and have the libraries read them, without the checks of keepers.

    python tools/fuzz_libraries.py mat 3000     scipy.io.loadmat
    python tools/fuzz_libraries.py mtx 3000     scipy.io.mmread
    python tools/fuzz_libraries.py arrow 3000   pyarrow, file and stream
    python tools/fuzz_libraries.py hdf5 3000    h5py: every array and attribute

Each file is read by a forked child with 4 GiB of address space and 8 seconds; what became of the
children is counted. The numbers stand in docs/decisions/0010-readers-again.md.
"""

import os
import resource
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import scipy.io
from fuzzing import array_writers, column_writers, text_writers
from fuzzing.mutations import mutated

SECONDS, MEMORY = 8, 4 * 2**30
N_SOUND = 40
READ, ERROR, NO_MEMORY = 0, 1, 2
NAMES = {READ: "read", ERROR: "exception", NO_MEMORY: "MemoryError"}


def read_mat(path: Path) -> None:
    """All variables."""
    scipy.io.loadmat(path)


def read_mtx(path: Path) -> None:
    """The matrix."""
    scipy.io.mmread(path)


def read_arrow(path: Path) -> None:
    """Every value of every batch."""
    with pa.memory_map(str(path)) as source:
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        reader = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source)
        for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
            batch.validate(full=True)
            batch.to_pylist()


def read_hdf5(path: Path) -> None:
    """Every array and attribute."""

    def look(_: str, node: h5py.Group | h5py.Dataset) -> None:
        dict(node.attrs)
        if isinstance(node, h5py.Dataset):
            node[()]

    with h5py.File(path, "r") as file:
        file.visititems(look)


KINDS = {
    "mat": (read_mat, (array_writers.scipy_savemat,)),
    "mtx": (read_mtx, (text_writers.sparse_mtx, text_writers.dense_mtx)),
    "arrow": (read_arrow, (column_writers.arrow_ipc, column_writers.polars_stream)),
    "hdf5": (read_hdf5, (array_writers.present_h5ad, array_writers.plain_hdf5)),
}


def outcome(read: Callable[[Path], None], path: Path) -> str:
    """What becomes of a child that reads a file."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.alarm(SECONDS)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            read(path)
        except MemoryError:
            os._exit(NO_MEMORY)
        except Exception:
            os._exit(ERROR)
        os._exit(READ)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return NAMES.get(code) or signal.Signals(-code).name


def main(kind: str, count: int, seed: int = 0) -> None:
    """Damage and read so many files."""
    read, writers = KINDS[kind]
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(seed)
        sound = [
            writers[at % len(writers)](rng, Path(folder) / f"{at}").path for at in range(N_SOUND)
        ]
        for number in range(count):
            source = sound[number % len(sound)]
            path = Path(folder) / f"damaged-{source.name}"
            path.write_bytes(mutated(rng, source, sound))
            counts[outcome(read, path)] += 1
    print(f"{kind}, {count} files:", ", ".join(f"{name} {n}" for name, n in counts.most_common()))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *map(int, sys.argv[3:]))
