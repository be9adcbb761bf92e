"""Tables past memory and past one machine: each made on the spot, measured, and removed.

Every side runs in a process of its own, so that memory is its own; sides alternate.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from measure import PEAK

REPEATS = 3
TIMED = PEAK + (
    "import json, sys, time\n"
    "def timed(work):\n"
    "    before, began = peak_mb(), time.perf_counter()\n"
    "    result = work()\n"
    "    seconds = time.perf_counter() - began\n"
    "    return result, {'s': seconds, 'peak_mb': peak_mb(), 'above_mb': peak_mb() - before}\n"
)


def child(script: str, *arguments: object, threads: int | None = None) -> dict[str, object]:
    """Run a script that prints JSON last."""
    environment = dict(os.environ)
    if threads is not None:
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment |= dict.fromkeys(names, str(threads))
    command = [sys.executable, "-W", "ignore", "-c", TIMED + script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def alternating(
    ours: str, theirs: str, *arguments: object, repeats: int = REPEATS
) -> dict[str, object]:
    """Medians of both sides, and their ratio."""
    pairs = [(child(ours, *arguments), child(theirs, *arguments)) for _ in range(repeats)]
    mine, other = (statistics.median(pair[side]["s"] for pair in pairs) for side in (0, 1))
    last = {key: value for key, value in pairs[-1][0].items() if key != "s"}
    return {"ours_s": mine, "theirs_s": other, "times": mine / other, "repeats": repeats, **last}


# 2,000,000 x 500 float32 in a file

MAP_OURS = """
from keepers import SPCAFS
import numpy as np
X = np.memmap(sys.argv[1], dtype=np.float32, mode="r", shape=(int(sys.argv[2]), int(sys.argv[3])))
selector, measured = timed(lambda: SPCAFS(50, memory_limit="800M").fit(X))
print(json.dumps(measured | {"passes": selector.n_passes_, "route": selector.route_}))
"""
MAP_THEIRS = """
import numpy as np
n, d = int(sys.argv[2]), int(sys.argv[3])
X = np.memmap(sys.argv[1], dtype=np.float32, mode="r", shape=(n, d))
def gram():
    total = np.zeros((d, d))
    step = 2**24 // (4 * d)
    for start in range(0, n, step):
        block = X[start : start + step]
        total += block.T @ block
_, measured = timed(gram)
print(json.dumps(measured))
"""


def _write_rows(path: Path, n_rows: int, n_columns: int) -> None:
    rng = np.random.default_rng(0)
    centres = np.zeros((8, n_columns), dtype=np.float32)
    centres[:, : n_columns // 10] = 2 * rng.standard_normal((8, n_columns // 10))
    with path.open("wb") as stream:
        for start in range(0, n_rows, 20_000):
            size = min(20_000, n_rows - start)
            rows = rng.standard_normal((size, n_columns), dtype=np.float32)
            rows += centres[rng.integers(0, 8, size)] + 5
            stream.write(rows)


def memory_map() -> dict[str, object]:
    """At most 1.3 times one blocked X'X pass over the file; peak below 1 GB."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.f32"
        _write_rows(path, 2_000_000, 500)
        return alternating(MAP_OURS, MAP_THEIRS, path, 2_000_000, 500)


# 500 x 450,000 float32

WIDE = """
import numpy as np
rng = np.random.default_rng(0)
X = rng.standard_normal((500, 450_000), dtype=np.float32)
X[:, :4000] += 2 * rng.standard_normal((12, 4000), dtype=np.float32)[rng.integers(0, 12, 500)]
"""
WIDE_OURS = (
    WIDE
    + """
from keepers import SPCAFS
selector, measured = timed(lambda: SPCAFS(100, n_components=10).fit(X))
measured["peak_over_data"] = (measured["above_mb"] * 2**20 + X.nbytes) / X.nbytes
print(json.dumps(measured | {"steps": selector.n_iter_}))
"""
)
WIDE_THEIRS = (
    WIDE
    + """
from sklearn.decomposition import PCA
_, measured = timed(lambda: PCA(10, random_state=0).fit(X))
print(json.dumps(measured))
"""
)


def wide() -> dict[str, object]:
    """At most 1.2 times PCA(10); peak below twice the data."""
    return alternating(WIDE_OURS, WIDE_THEIRS)


# CSR 200,000 x 20,000

CELLS = """
import numpy as np, scipy.sparse as sp
def cells(n, d, per_row, types=25):
    '''Counts of cells of so many types: every type has genes that it expresses more.'''
    rng = np.random.default_rng(0)
    popularity = rng.lognormal(0, 1.2, d)
    own = [rng.choice(d, 200, replace=False) for _ in range(types)]
    indices = np.empty(n * per_row, dtype=np.int32)
    data = np.empty(n * per_row)
    kinds = rng.integers(0, types, n)
    cumulative = []
    for genes in own:
        weights = popularity.copy()
        weights[genes] *= 30
        cumulative.append(np.cumsum(weights) / weights.sum())
    for row in range(n):
        drawn = np.unique(np.searchsorted(cumulative[kinds[row]], rng.random(2 * per_row)))
        chosen = rng.permutation(drawn)[:per_row]
        missing = per_row - len(chosen)
        if missing:
            rest = np.setdiff1d(np.arange(d), chosen, assume_unique=True)
            chosen = np.append(chosen, rng.choice(rest, missing, replace=False))
        chosen.sort()
        place = slice(row * per_row, (row + 1) * per_row)
        indices[place] = chosen
        boost = np.isin(chosen, own[kinds[row]])
        data[place] = np.log1p(1 + rng.poisson(1 + 4 * boost))
    indptr = np.arange(0, n * per_row + 1, per_row)
    return data, indices, indptr
"""
MAKE_CELLS = (
    CELLS
    + """
data, indices, indptr = cells(*(int(a) for a in sys.argv[2:5]))
np.save(sys.argv[1] + "/data.npy", data)
np.save(sys.argv[1] + "/indices.npy", indices)
np.save(sys.argv[1] + "/indptr.npy", indptr)
print("{}")
"""
)
LOAD_CELLS = """
import numpy as np, scipy.sparse as sp
parts = [np.load(f"{sys.argv[1]}/{part}.npy") for part in ("data", "indices", "indptr")]
X = sp.csr_array(tuple(parts), shape=(int(sys.argv[2]), int(sys.argv[3])))
n_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
"""
CELLS_OURS = (
    LOAD_CELLS
    + """
from keepers import SPCAFS
selector, measured = timed(lambda: SPCAFS(200, n_components=20, random_state=0).fit(X))
measured["peak_over_data"] = (measured["above_mb"] * 2**20 + n_bytes) / n_bytes
print(json.dumps(measured | {"steps": selector.n_iter_, "alive": selector.n_active_}))
"""
)
CELLS_THEIRS = (
    LOAD_CELLS
    + """
from sklearn.decomposition import TruncatedSVD
_, measured = timed(lambda: TruncatedSVD(20, random_state=0).fit(X))
print(json.dumps(measured))
"""
)


def cells(n_samples: int = 200_000, n_features: int = 20_000) -> dict[str, object]:
    """At most 1.5 times TruncatedSVD(20); peak below twice the data."""
    with tempfile.TemporaryDirectory() as folder:
        child(MAKE_CELLS, folder, n_samples, n_features, int(0.03 * n_features))
        return alternating(CELLS_OURS, CELLS_THEIRS, folder, n_samples, n_features, repeats=1)


# A folder of Parquet files

PARQUET_OURS = """
from keepers import SPCAFS
import pyarrow.parquet
selector, measured = timed(lambda: SPCAFS(20, memory_limit="1G").fit_blocks(sys.argv[1]))
print(json.dumps(measured | {"passes": selector.n_passes_, "rows": selector.n_samples_seen_}))
"""
PARQUET_AUTO = """
from keepers import AutoSelector
import pyarrow.parquet
selector, measured = timed(lambda: AutoSelector().fit_blocks(sys.argv[1]))
print(json.dumps(measured | {"passes": selector.n_passes_, "rows": selector.n_samples_seen_}))
"""
PARQUET_THEIRS = """
import pyarrow.parquet as pq
_, measured = timed(lambda: pq.read_table(sys.argv[1]))
print(json.dumps(measured))
"""


def parquet(
    ours: str = PARQUET_OURS, n_files: int = 20, rows_each: int = 500_000
) -> dict[str, object]:
    """One pass; at most 1.5 times (AutoSelector 1.3 times) pyarrow's time to read the folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    names = [f"channel{column}" for column in range(100)]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(n_files):
            rows = rng.standard_normal((100, rows_each), dtype=np.float32)
            rows[:10] += (
                2 * rng.standard_normal((10, 5), dtype=np.float32)[:, rng.integers(0, 5, rows_each)]
            )
            table = pa.table(dict(zip(names, rows, strict=True)))
            pq.write_table(table, Path(folder) / f"part-{number:02d}.parquet", use_dictionary=False)
        return alternating(ours, PARQUET_THEIRS, folder)


# Dask

CHUNKS = """
import numpy as np
ROWS, COLUMNS, CHUNK = (int(a) for a in sys.argv[1:4])
def chunk(number):
    rng = np.random.default_rng(number)
    rows = rng.standard_normal((CHUNK, COLUMNS), dtype=np.float32)
    centres = np.random.default_rng(999_999).standard_normal((6, 100), dtype=np.float32)
    rows[:, :100] += 2 * centres[rng.integers(0, 6, CHUNK)]
    return rows
"""
DASK_OURS = (
    CHUNKS
    + """
if __name__ == "__main__":
    import dask, dask.array as da
    from distributed import Client, LocalCluster, wait
    from keepers import SPCAFS
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1",
        memory_limit=0, silence_logs=50,
    )
    with cluster, Client(cluster):
        parts = [
            da.from_delayed(dask.delayed(chunk)(number), (CHUNK, COLUMNS), np.float32)
            for number in range(ROWS // CHUNK)
        ]
        X = da.concatenate(parts).persist()
        wait(X)
        times = []
        for _ in range(3):
            selector, measured = timed(lambda: SPCAFS(50).fit(X))
            times.append(measured["s"])
        np.save(sys.argv[4], selector.scores_)
        print(json.dumps({"s": sorted(times)[1], "passes": selector.n_passes_}))
"""
)
DASK_THEIRS = (
    CHUNKS
    + """
from keepers import SPCAFS
X = np.empty((ROWS, COLUMNS), dtype=np.float32)
for number in range(ROWS // CHUNK):
    X[number * CHUNK : (number + 1) * CHUNK] = chunk(number)
times = []
for _ in range(3):
    selector, measured = timed(lambda: SPCAFS(50).fit(X))
    times.append(measured["s"])
np.save(sys.argv[4], selector.scores_)
print(json.dumps({"s": sorted(times)[1]}))
"""
)


def dask_cluster(n_rows: int = 1_000_000, n_columns: int = 1000) -> dict[str, object]:
    """At most 1.5 times the fit in memory with two threads; the same scores to 1e-6."""
    with tempfile.TemporaryDirectory() as folder:
        scores = [Path(folder) / f"{side}.npy" for side in ("dask", "memory")]
        ours = child(DASK_OURS, n_rows, n_columns, 20_000, scores[0])
        theirs = child(DASK_THEIRS, n_rows, n_columns, 20_000, scores[1], threads=2)
        apart = float(np.abs(np.load(scores[0]) - np.load(scores[1])).max())
    return {
        "ours_s": ours["s"],
        "theirs_s": theirs["s"],
        "times": ours["s"] / theirs["s"],
        "scores_apart": apart,
        "passes": ours["passes"],
    }


CASES = {
    "scale: 2,000,000 x 500 float32 memory map": memory_map,
    "scale: 500 x 450,000 float32, m = 10": wide,
    "scale: CSR 200,000 x 20,000, 3 %, m = 20": cells,
    "scale: Parquet folder 10,000,000 x 100": parquet,
    "scale: AutoSelector, Parquet folder 10,000,000 x 100": lambda: parquet(PARQUET_AUTO),
    "scale: Dask 1,000,000 x 1,000, two workers": dask_cluster,
}
