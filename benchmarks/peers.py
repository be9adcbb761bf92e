"""SPCAFS beside what people use today to keep features without labels.

Every side runs in a process of its own (peer_process.py) with one thread, the same memory limit and
the same time limit; packages that are no dependencies of ours come from folders that only their own
process sees (``make peers``). A peer that exceeds the time limit, fails or cannot be installed
stays in the results, and the result says so.
"""

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from keepers import datasets
from peer_process import MEMORY_LIMIT, REPEATS, SHORT
from spcafs import wide_planted

FOLDERS = Path(__file__).resolve().parents[1] / ".venv-peers"
PROCESS = Path(__file__).with_name("peer_process.py")
TIME_LIMIT = 30  # seconds for one selection
CELLS_TIME_LIMIT = 120
START_LIMIT = 90  # seconds for everything that is not timed: imports, reading, a small first run
THREADS = 1
OURS = "SPCAFS"


@dataclass(frozen=True)
class Peer:
    """What is run: the name in peer_process.py, and the package (None: in the environment)."""

    run: str
    package: str
    folder: str | None = None


PEERS = {
    OURS: Peer("keepers", "keepers"),
    "scikit-learn SparsePCA": Peer("SparsePCA", "scikit-learn"),
    "scikit-learn MiniBatchSparsePCA": Peer("MiniBatchSparsePCA", "scikit-learn"),
    "fastcan FastCan": Peer("fastcan", "fastcan", "fastcan"),
    "scikit-matter CUR": Peer("CUR", "skmatter", "skmatter"),
    "scikit-matter CUR, computed once": Peer("CUR once", "skmatter", "skmatter"),
    "scikit-feature lap_score": Peer("LaplacianScore", "skfeature-chappers", "skfeature-chappers"),
    "scikit-feature MCFS": Peer("MCFS", "skfeature-chappers", "skfeature-chappers"),
    "abess SparsePCA": Peer("abess", "abess", "abess"),
}
GENES = {
    OURS: PEERS[OURS],
    "scanpy highly_variable_genes": Peer("scanpy", "scanpy"),
}


def anonymous(reason: str) -> str:
    """The last line of an error, without the paths and hosts of this machine."""
    lines = reason.strip().splitlines() or ["no message"]
    kept = re.sub(r"\w+://\S+|host='[^']*'|(?<!\w)/[^\s'\"]+", "...", lines[-1])
    return kept[:160]


def why_missing(peer: Peer) -> str | None:
    """Why a package is not there, as pip said it; None if it is there."""
    if peer.folder is None or any((FOLDERS / peer.folder).glob("*.dist-info")):
        return None
    log = FOLDERS / f"{peer.folder}.log"
    said = log.read_text().splitlines() if log.exists() else []
    errors = [line for line in said if line.startswith("ERROR")]
    return f"not installed: {anonymous(errors[-1])}" if errors else "not installed: `make peers`"


def version_of(peer: Peer) -> str:
    """The version that is run, or nothing where there is none."""
    where = [str(FOLDERS / peer.folder)] if peer.folder else sys.path
    found = metadata.distributions(name=peer.package, path=where)
    return next((distribution.version for distribution in found), "")


def environment(peer: Peer) -> dict[str, str]:
    """One thread, and the folder of the package before everything else."""
    names = ("OMP", "OPENBLAS", "MKL", "NUMBA")
    found = dict(os.environ) | {f"{name}_NUM_THREADS": str(THREADS) for name in names}
    if peer.folder is not None:
        paths = [str(FOLDERS / peer.folder), found.get("PYTHONPATH", "")]
        found["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return found


def run(peer: Peer, table: Path, k: int, m: int, limit: int) -> dict[str, object]:
    """Seconds of every repeat and the features kept, or what became of it."""
    missing = why_missing(peer)
    if missing is not None:
        return {"failed": missing}
    command = [sys.executable, "-W", "ignore", PROCESS, peer.run, table, k, m, limit]
    try:
        done = subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            text=True,
            timeout=START_LIMIT + limit + REPEATS * SHORT,
            env=environment(peer),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"no selection was begun within {START_LIMIT} s"}
    if done.returncode == -signal.SIGALRM:
        return {"seconds_at_least": float(limit)}
    if done.returncode:
        return {"failed": anonymous(done.stderr)}
    return json.loads(done.stdout.strip().splitlines()[-1])


def shown(measured: dict[str, object], ours: float, planted: np.ndarray | None) -> dict:
    """One row: seconds, times SPCAFS, how many were kept and how many of these were planted."""
    if "failed" in measured:
        return measured
    if "seconds_at_least" in measured:
        return measured | {"times_at_least": measured["seconds_at_least"] / ours}
    taken = statistics.median(measured["seconds"])
    kept = measured["kept"]
    row = {"seconds": taken, "times": taken / ours, "repeats": len(measured["seconds"])}
    row["kept"] = len(kept)
    if planted is not None:
        row["planted"] = int(np.isin(kept, planted).sum())
    return row


def beside(
    peers: dict[str, Peer],
    table: Path,
    k: int,
    m: int,
    planted: np.ndarray | None = None,
    limit: int = TIME_LIMIT,
) -> dict[str, object]:
    """Every peer on one table; SPCAFS first and, if that is short, last, against a drift."""
    found = {name: run(peer, table, k, m, limit) for name, peer in peers.items()}
    if "seconds" not in found[OURS]:
        raise RuntimeError(f"SPCAFS has no time to compare with: {found[OURS]}")
    if found[OURS]["seconds"][0] < SHORT:
        found[OURS]["seconds"] += run(peers[OURS], table, k, m, limit)["seconds"]
    ours = statistics.median(found[OURS]["seconds"])
    rows = {name: shown(measured, ours, planted) for name, measured in found.items()}
    for name, peer in peers.items():
        rows[name]["package"] = f"{peer.package} {version_of(peer)}".strip()
    limits = {"limit_s": limit, "limit_gb": MEMORY_LIMIT / 1e9, "threads": THREADS}
    return {"k": k, "m": m, **limits, "rows": rows}


def srbct() -> dict[str, object]:
    """83 x 2308 genes, m = 3."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.npy"
        np.save(table, datasets.load("srbct").X)
        return beside(PEERS, table, 50, 3)


def planted(n: int, d: int, informative: int, k: int) -> dict[str, object]:
    """Eleven groups of samples in the first features, m = 10."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.npy"
        np.save(table, wide_planted(n, d, informative))
        outcome = beside(PEERS, table, k, 10, np.arange(informative))
    return outcome | {"informative": informative}


def count_cells(
    n: int, d: int, reads: int, types: int = 25, markers: int = 200
) -> tuple[sp.csr_array, np.ndarray]:
    """Counts of cells of several types, and the genes that some type expresses 30 times as much.

    As `CELLS` in scale.py, but all reads of a type are drawn at once: cells x reads searches.
    """
    rng = np.random.default_rng(0)
    popularity = rng.lognormal(0, 1.2, d)
    kinds = np.sort(rng.integers(0, types, n))
    blocks, special = [], []
    for kind in range(types):
        genes = rng.choice(d, markers, replace=False)
        special.append(genes)
        weights = popularity.copy()
        weights[genes] *= 30
        cumulative = np.cumsum(weights) / weights.sum()
        size = int((kinds == kind).sum())
        drawn = np.searchsorted(cumulative, rng.random(size * reads)).astype(np.int32)
        starts = np.arange(0, size * reads + 1, reads, dtype=np.int32)
        block = sp.csr_array((np.ones(drawn.size), drawn, starts), shape=(size, d))
        block.sum_duplicates()
        blocks.append(block)
    return sp.csr_array(sp.vstack(blocks, format="csr")), np.unique(np.concatenate(special))


def log_normalised(counts: sp.csr_array) -> sp.csr_array:
    """What scanpy's normalize_total(target_sum=1e4) and log1p give."""
    per_cell = np.diff(counts.indptr)
    scale = 1e4 / np.repeat(counts.sum(axis=1), per_cell)
    parts = (np.log1p(counts.data * scale), counts.indices, counts.indptr)
    return sp.csr_array(parts, shape=counts.shape)


def genes(n: int = 50_000, d: int = 20_000) -> dict[str, object]:
    """2,000 genes of 50,000 cells, m = 20; reading and normalising are not timed on either side."""
    counts, special = count_cells(n, d, reads=900)
    X = log_normalised(counts)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.npz"
        sp.save_npz(table, X, compressed=False)
        outcome = beside(GENES, table, 2000, 20, special, CELLS_TIME_LIMIT)
    return outcome | {"informative": len(special), "stored_share": X.nnz / (n * d)}


CASES = {
    "peers: SRBCT 83 x 2,308, m = 3, k = 50": srbct,
    "peers: planted 2,000 x 300, m = 10, k = 40": lambda: planted(2000, 300, 40, 40),
    "peers: planted 300 x 5,000, m = 10, k = 100": lambda: planted(300, 5000, 500, 100),
    "peers: planted 300 x 50,000, m = 10, k = 100": lambda: planted(300, 50_000, 500, 100),
    "peers: cells 50,000 x 20,000, m = 20, k = 2,000": genes,
}
