"""Timing two sides of a comparison in one run, and memory in a process of its own."""

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_info

DATA = Path(os.environ.get("KEEPERS_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def benchmark_data(name: str) -> np.ndarray | None:
    """X of a benchmark data set, or None where it is not there."""
    path = DATA / f"{name}.npz"
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as archive:
        return archive["X"].astype(np.float64)


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def side_by_side(
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int = 5, warm: bool = True
) -> dict[str, float]:
    """Median seconds of both, alternating; ``warm`` runs each once before the clock starts."""
    if warm:
        ours()
        theirs()
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(repeats)]
    mine, other = (statistics.median(side) for side in zip(*pairs, strict=True))
    return {"ours_s": mine, "theirs_s": other, "repeats": repeats}


PEAK = (
    "def peak_mb():\n"
    "    for line in open('/proc/self/status'):\n"
    "        if line.startswith('VmHWM'):\n"
    "            return int(line.split()[1]) / 1024\n"
)
"""Source of a function for a child process: its highest memory so far. (ru_maxrss will not do: a
child starts with its parent's.)"""


def peak_over_data(script: str) -> float:
    """Run a script that builds X and fits; return (peak - start) / size of X, memory in a child.

    The script has to define ``build()`` and ``fit(X)``.
    """
    child = (
        PEAK + script + "\nimport keepers\n"
        "before = peak_mb()\n"
        "X = build()\nfit(X)\n"
        "print((peak_mb() - before) * 2**20 / X.nbytes)\n"
    )
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True)
    return float(done.stdout.strip().splitlines()[-1])


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    threads = {pool["internal_api"]: pool["num_threads"] for pool in threadpool_info()}
    return {
        "cores": os.cpu_count(),
        "threads": threads,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
