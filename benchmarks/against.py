"""Compare this checkout with another one, case by case in one run: is anything slower?

python benchmarks/against.py OTHER [part of a case's name] ...    OTHER: root of the other checkout

Two processes, one per checkout, take turns REPEATS times (an environment variable, 7 if not set);
the ratios of the medians and of the best times are printed. Only public names are used, so that old
checkouts can be measured.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

REPEATS = int(os.environ.get("REPEATS", "7"))
LONGEST = 60.0
"""Seconds for one case, after which it is not repeated."""


def blobs(n: int, d: int) -> np.ndarray:
    """Five groups of samples."""
    from sklearn.datasets import make_blobs

    return make_blobs(n, d, centers=5, cluster_std=20.0, random_state=0)[0]


def file_of(suffix: str, n: int, d: int) -> Path:
    """A table of numbers in a file that both processes read."""
    path = Path(sys.argv[2]) / f"{n}x{d}{suffix}"
    if not path.exists():
        X = np.random.default_rng(0).standard_normal((n, d))
        if suffix == ".npy":
            np.save(path, X)
        else:
            import pyarrow as pa
            from pyarrow import csv, feather, parquet

            table = pa.table({f"g{j}": X[:, j] for j in range(d)})
            write = {".csv": csv.write_csv, ".parquet": parquet.write_table}.get(suffix)
            (write or feather.write_feather)(table, path)
    return path


def cases() -> dict[str, Callable[[], Callable[[], object]]]:
    """Name -> what prepares a case and returns the work to be timed."""
    import keepers
    import spcafs as data
    from keepers import SPCAFS, datasets

    def fit(make: Callable[[], object], X: Callable[[], object]) -> Callable[[], object]:
        def prepare() -> Callable[[], object]:
            values = X()
            return lambda: make().fit(values)

        return prepare

    def reading(suffix: str, n: int, d: int) -> Callable[[], Callable[[], object]]:
        def prepare() -> Callable[[], object]:
            path = file_of(suffix, n, d)
            return lambda: datasets.open_table(path)

        return prepare

    def certifying(X: Callable[[], object]) -> Callable[[], object]:
        def prepare() -> Callable[[], object]:
            values = X()
            features = keepers.VarianceScore(50).fit(values).get_support(indices=True)
            return lambda: keepers.certify(values, features, 3, random_state=0)

        return prepare

    def in_blocks(suffix: str, n: int, d: int) -> Callable[[], Callable[[], object]]:
        def prepare() -> Callable[[], object]:
            path = file_of(suffix, n, d)
            return lambda: SPCAFS(20, n_components=5).fit_blocks(path)

        return prepare

    def one_case(X: np.ndarray) -> Callable[[], object]:
        return lambda: keepers.spcafs_path(X, n_components=3)

    def square() -> np.ndarray:
        X = np.random.default_rng(0).standard_normal((1600, 1500))
        return X @ np.diag(np.geomspace(10, 1, 1500))

    def srbct() -> np.ndarray:
        return datasets.load("srbct").X

    return {
        "fit srbct, m = 3": fit(lambda: SPCAFS(n_components=3), srbct),
        "fit srbct, auto": fit(lambda: SPCAFS(50), srbct),
        "fit 300 x 50,000, m = 10": fit(
            lambda: SPCAFS(n_components=10), lambda: data.wide_planted(300, 50_000, 2000)
        ),
        "fit 1600 x 1500, auto": fit(lambda: SPCAFS(50), square),
        "fit 1600 x 1500, m = 5": fit(lambda: SPCAFS(50, n_components=5), square),
        "fit 20,000 x 500, m = 10": fit(
            lambda: SPCAFS(50, n_components=10), lambda: blobs(20_000, 500)
        ),
        "fit CSR 10,000 x 10,000, m = 10": fit(
            lambda: SPCAFS(n_components=10, random_state=0),
            lambda: data.topics(10_000, 10_000, 0.01),
        ),
        "path srbct, m = 3": lambda: one_case(srbct()),
        "tune srbct": lambda: lambda: keepers.select_settings(srbct(), random_state=0),
        "LaplacianScore 2000 x 1000": fit(
            lambda: keepers.LaplacianScore(100), lambda: blobs(2000, 1000)
        ),
        "MCFS 2000 x 1000": fit(lambda: keepers.MCFS(100, n_clusters=5), lambda: blobs(2000, 1000)),
        "FSPCA srbct, m = 3": fit(lambda: keepers.FSPCA(50, n_components=3), srbct),
        "FSPCA 1600 x 1500, m = 5": fit(lambda: keepers.FSPCA(50, n_components=5), square),
        "certify srbct, m = 3": certifying(srbct),
        "certify 1600 x 1500": certifying(square),
        "UDFS 600 x 300": fit(lambda: keepers.UDFS(50, n_clusters=5), lambda: blobs(600, 300)),
        "EUFS 300 x 200": fit(lambda: keepers.EUFS(50, n_clusters=5), lambda: blobs(300, 200)),
        "DGUFS 300 x 200": fit(lambda: keepers.DGUFS(50, n_clusters=5), lambda: blobs(300, 200)),
        "SOGFS 300 x 200": fit(lambda: keepers.SOGFS(50, n_clusters=5), lambda: blobs(300, 200)),
        "RNE 300 x 200": fit(lambda: keepers.RNE(50), lambda: blobs(300, 200)),
        "read CSV 500 x 5000": reading(".csv", 500, 5000),
        "read CSV 50,000 x 30": reading(".csv", 50_000, 30),
        "read Parquet 1000 x 5000": reading(".parquet", 1000, 5000),
        "read Parquet 500,000 x 20": reading(".parquet", 500_000, 20),
        "read Feather 500,000 x 20": reading(".feather", 500_000, 20),
        "read NPY 5000 x 5000": reading(".npy", 5000, 5000),
        "blocks Parquet 500,000 x 50": in_blocks(".parquet", 500_000, 50),
        "blocks CSV 50,000 x 30": in_blocks(".csv", 50_000, 30),
        "blocks NPY 5000 x 2000": in_blocks(".npy", 5000, 2000),
    }


def serve() -> None:
    """Time one case per line read: prepare it at its first mention, run it at each."""
    warnings.simplefilter("ignore")
    known, prepared = cases(), {}
    print("|".join(known), flush=True)
    for line in sys.stdin:
        name = line.strip()
        if name not in prepared:
            prepared.clear()  # one table in memory at a time
            prepared[name] = known[name]()
            prepared[name]()
        began = time.perf_counter()
        prepared[name]()
        print(time.perf_counter() - began, flush=True)


class Side:
    """A process that runs cases with the sources of one checkout."""

    def __init__(self, root: Path, folder: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(root / "src")}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", folder],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.names = self._answer().split("|")

    def _answer(self) -> str:
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a benchmark process ended before its time; its error is above")
        return line.strip()

    def seconds(self, name: str) -> float:
        """Time of one run."""
        self._process.stdin.write(name + "\n")
        self._process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        """Let the process end."""
        self._process.stdin.close()
        self._process.wait()


def main(other: str, wanted: list[str]) -> None:
    """Print the ratio of the medians, this checkout to the other, for every case wanted."""
    with tempfile.TemporaryDirectory() as folder:
        here = Side(Path(__file__).resolve().parent.parent, folder)
        there = Side(Path(other).resolve(), folder)
        print(f"{'case':36}{'here':>9}{'there':>9}{'ratio':>7}{'best':>7}{'range':>14}")
        for name in here.names:
            if wanted and not any(part in name for part in wanted):
                continue
            pairs: list[tuple[float, float]] = []
            began = time.perf_counter()
            while len(pairs) < REPEATS and (
                len(pairs) < 2 or time.perf_counter() - began < LONGEST
            ):
                first, second = (here, there) if len(pairs) % 2 else (there, here)
                times = {first: first.seconds(name), second: second.seconds(name)}
                pairs.append((times[here], times[there]))
            ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
            ratios = sorted(mine / its for mine, its in pairs)
            spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
            best = min(mine for mine, _ in pairs) / min(its for _, its in pairs)
            times = f"{ours:9.3f}{theirs:9.3f}{ours / theirs:7.2f}{best:7.2f}"
            print(f"{name:36}{times}{spread:>14}", flush=True)
        here.close()
        there.close()


if sys.argv[1:2] == ["--serve"]:
    serve()
elif len(sys.argv) > 1:
    main(sys.argv[1], sys.argv[2:])
else:
    raise SystemExit(__doc__)
