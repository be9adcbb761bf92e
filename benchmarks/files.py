"""From a CSV file to a selection, against the time pyarrow takes to read the file."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from measure import PEAK, seconds

N_SAMPLES, N_FEATURES = 1000, 20_000
# Both sides in processes of their own: what one has allocated must not help the other.
SELECT = """
import time, sys
import keepers
from keepers.datasets import open_table
before, began = peak_mb(), time.perf_counter()
table = open_table(sys.argv[1])
read = time.perf_counter() - began
keepers.SPCAFS(50).fit(table.values)
grown = (peak_mb() - before) * 2**20 / table.values.nbytes
print(read, time.perf_counter() - began, grown, peak_mb())
"""
# pyarrow's default block of 1 MiB holds two such rows, and it is slow; its own best is fairer.
READ = """
import time, sys
from pyarrow import csv
began = time.perf_counter()
csv.read_csv(sys.argv[1], read_options=csv.ReadOptions(block_size=BLOCK))
print(time.perf_counter() - began)
"""
DEFAULT_BLOCK, LARGE_BLOCK = 2**20, 2**25


def _child(script: str, path: Path) -> list[float]:
    command = [sys.executable, "-c", PEAK + script, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


CHECK = """
import time, sys
from threadpoolctl import threadpool_limits
from keepers import check_table
from keepers.datasets import open_table
with threadpool_limits(1):
    began = time.perf_counter()
    table = open_table(sys.argv[1])
    read = time.perf_counter() - began
    check_table(table)
    print(read, time.perf_counter() - began)
"""


def checked_csv(counts: bool) -> dict[str, object]:
    """1,000 x 20,000 numbers or counts, with one thread: reading and checking over reading."""
    rng = np.random.default_rng(0)
    shape = (N_SAMPLES, N_FEATURES)
    X = rng.standard_normal(shape)
    if counts:
        levels = np.exp(rng.normal(3.0, 2.0, N_FEATURES))
        X = rng.poisson(levels * rng.gamma(5.0, 0.2, shape))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wide.csv"
        csv.write_csv(pa.table({f"g{j}": X[:, j] for j in range(N_FEATURES)}), path)
        runs = np.array([_child(CHECK, path) for _ in range(5)])
    return {
        "read_s": float(np.median(runs[:, 0])),
        "read_and_check_s": float(np.median(runs[:, 1])),
        "times_reading": float(np.median(runs[:, 1] / runs[:, 0])),
    }


def wide_csv() -> dict[str, object]:
    """1,000 x 20,000 numbers, about 350 MB of text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wide.csv"
        X = np.random.default_rng(0).standard_normal((N_SAMPLES, N_FEATURES))
        columns = {f"g{j}": X[:, j] for j in range(N_FEATURES)}
        writing = seconds(lambda: csv.write_csv(pa.table(columns), path))
        large = READ.replace("BLOCK", str(LARGE_BLOCK))
        pairs = [(_child(SELECT, path), _child(large, path)) for _ in range(3)]
        by_default = _child(READ.replace("BLOCK", str(DEFAULT_BLOCK)), path)[0]
        size = path.stat().st_size
    ours, theirs = (np.median([pair[side] for pair in pairs], axis=0) for side in (0, 1))
    return {
        "text_mb": size / 1e6,
        "read_s": ours[0],
        "read_and_select_s": ours[1],
        "pyarrow_read_s": theirs[0],
        "times_pyarrow": ours[1] / theirs[0],
        "pyarrow_default_read_s": by_default,
        "times_pyarrow_default": ours[1] / by_default,
        "peak_over_matrix": ours[2],
        "peak_mb_whole_process": ours[3],
        "writing_s": writing,
    }


def command_starts() -> dict[str, object]:
    """How long the command takes to say its version: the wait before anything happens."""
    command = str(Path(sys.executable).with_name("keepers"))

    def once() -> float:
        began = time.perf_counter()
        subprocess.run([command, "--version"], capture_output=True, check=True)
        return time.perf_counter() - began

    return {"seconds": float(np.median([once() for _ in range(5)]))}


CASES = {
    "CSV 1,000 x 20,000 read and selected": wide_csv,
    "CSV 1,000 x 20,000 read and checked": lambda: checked_csv(counts=False),
    "CSV 1,000 x 20,000 read and checked, counts": lambda: checked_csv(counts=True),
    "the command starts": command_starts,
}
