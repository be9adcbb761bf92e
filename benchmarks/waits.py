"""What people wait for: each kind of work beside a yardstick, both in one run.

CPU seconds with one BLAS thread, medians of alternating runs. ``aim`` is the limit that we set
ourselves, ``times`` the distance to the yardstick. Commands are timed as processes of their own,
imports included.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA, TruncatedSVD
from threadpoolctl import threadpool_limits

from keepers import SPCAFS, AutoSelector, StabilitySelector, describe_selection
from measure import benchmark_data

Outcome = dict[str, object]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}


def cpu_seconds(work: Callable[[], object]) -> float:
    """Processor time of one call."""
    began = time.process_time()
    work()
    return time.process_time() - began


def beside(
    ours: Callable[[], object], yardstick: Callable[[], object], aim: float, repeats: int = 3
) -> Outcome:
    """Median processor seconds of both, alternating, and their ratio."""
    with threadpool_limits(1):
        pairs = [(cpu_seconds(ours), cpu_seconds(yardstick)) for _ in range(repeats)]
    mine, other = (statistics.median(side) for side in zip(*pairs, strict=True))
    return {"ours_s": mine, "yardstick_s": other, "times": mine / other, "aim": aim}


def command(*arguments: str, aim: float, repeats: int = 3) -> Outcome:
    """Median processor seconds of a `keepers` command."""
    taken = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "keepers", *arguments],
            env={**os.environ, **ONE_THREAD},
            capture_output=True,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {"seconds": statistics.median(taken), "aim_s": aim}


def groups(n_informative: int, n_samples: int = 1000, n_features: int = 20_000) -> np.ndarray:
    """Ten groups of samples that differ in some of the features, rescaled at random."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features))
    means = 1.5 * rng.standard_normal((10, n_informative))
    X[:, :n_informative] += means[rng.integers(10, size=n_samples)]
    return X * np.exp(rng.standard_normal(n_features))


def sparse_noise(n_samples: int, n_features: int, share: float) -> sp.csr_array:
    """Stored entries at random places: no structure."""
    rng = np.random.default_rng(0)
    return sp.random_array((n_samples, n_features), density=share, rng=rng, format="csr")


def topics(n_samples: int, n_features: int, per_row: int) -> sp.csr_array:
    """Counts: three in ten of a row's words are from its topic, one of eleven."""
    rng = np.random.default_rng(0)
    own = np.array([rng.permutation(n_features)[: n_features // 20] for _ in range(11)])
    topic = rng.integers(0, 11, n_samples)
    topical = own[topic[:, None], rng.integers(0, n_features // 20, (n_samples, per_row))]
    anything = rng.integers(0, n_features, (n_samples, per_row))
    words = np.where(rng.random((n_samples, per_row)) < 0.3, topical, anything)
    starts = np.arange(0, n_samples * per_row + 1, per_row)
    X = sp.csr_array((np.ones(words.size), words.ravel(), starts), shape=(n_samples, n_features))
    X.sum_duplicates()
    return X


def autoselector(n_informative: int, n_halves: int, aim: float) -> Outcome:
    """AutoSelector and PCA(50) on 1,000 x 20,000."""
    X = groups(n_informative)
    selector = AutoSelector(n_halves=n_halves)
    outcome = beside(
        lambda: selector.fit(X), lambda: PCA(50, random_state=0).fit(X), aim, repeats=1
    )
    return {**outcome, "structure_found": selector.structure_found_}


def autoselector_sparse() -> Outcome:
    """AutoSelector on sparse noise, beside TruncatedSVD."""
    X = sparse_noise(20_000, 8_000, 0.03)
    svd = TruncatedSVD(20, random_state=0)
    return beside(lambda: AutoSelector().fit(X), lambda: svd.fit(X), aim=4, repeats=1)


def autoselector_parquet(n_files: int) -> Outcome:
    """AutoSelector on Parquet files of 1,000,000 x 100 each, beside reading them in batches."""
    import polars as pl

    rng = np.random.default_rng(0)
    means = 1.5 * rng.standard_normal((10, 100))
    means[:, 50:] = 0.0
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"part{i}.parquet" for i in range(n_files)]
        for path in paths:
            values = rng.standard_normal((1_000_000, 100)) + means[rng.integers(10, size=1_000_000)]
            columns = [f"x{i}" for i in range(100)]
            pl.DataFrame(values.astype(np.float32), schema=columns).write_parquet(path)
        selector = AutoSelector(n_halves=0)

        def read() -> None:
            for path in paths:
                for batch in pl.scan_parquet(path).collect_batches(maintain_order=True):
                    batch.to_numpy()

        return beside(lambda: selector.fit_blocks(folder), read, aim=1.2)


def cells(by_batch: bool, aim: float) -> Outcome:
    """`keepers.anndata.select` on 20,000 cells x 10,000 genes, beside scanpy if it is here."""
    import anndata

    import keepers.anndata

    X = topics(20_000, 10_000, 300).tocsr()
    X.data = np.log1p(X.data)
    adata = anndata.AnnData(sp.csr_matrix(X))
    adata.obs["batch"] = np.array(["a", "b", "c", "d"])[np.arange(20_000) % 4]
    key = {"batch_key": "batch"} if by_batch else {}
    with threadpool_limits(1):
        outcome: Outcome = {
            "seconds": cpu_seconds(lambda: keepers.anndata.select(adata, 2000, **key)),
            "aim_s": aim,
        }
        try:
            import scanpy
        except ImportError:
            return outcome
        outcome["scanpy_s"] = cpu_seconds(
            lambda: scanpy.pp.highly_variable_genes(adata, n_top_genes=2000, **key)
        )
    return outcome


def mixed_table(folder: Path) -> Path:
    """A CSV of 1,460 x 81: numbers, categories, gaps."""
    import pandas as pd

    rng = np.random.default_rng(0)
    group = rng.integers(4, size=1460)
    columns: dict[str, object] = {"Id": np.arange(1, 1461)}
    for i in range(40):
        columns[f"number{i}"] = (rng.normal(size=1460) + (i % 3) * group).round(2)
    for i in range(40):
        levels = np.array([f"level{j}" for j in range(2 + i % 9)])
        place = (group + rng.integers(0, 2, 1460)) if i % 2 else rng.integers(0, 99, 1460)
        columns[f"kind{i}"] = levels[place % len(levels)]
    table = pd.DataFrame(columns)
    for i in range(0, 40, 5):
        table.loc[rng.random(1460) < 0.2, f"number{i}"] = np.nan
    path = folder / "mixed.csv"
    table.to_csv(path, index=False)
    return path


def commands() -> Outcome:
    """Starting the command, checking a small table, a selection with its report."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = folder / "small.csv"
        small.write_text("a,b,c\n" + "\n".join(f"{i},{i % 7},{i % 3}" for i in range(50)) + "\n")
        mixed = mixed_table(folder)
        report = ("--out", str(folder / "k.csv"), "--report", str(folder / "r.html"), "--force")
        return {
            "keepers --help": command("--help", aim=0.3),
            "keepers check small.csv": command("check", str(small), aim=1.2),
            "keepers select, 1,460 x 81 mixed, with report": command(
                "select", str(mixed), *report, aim=6, repeats=1
            ),
        }


def certificate() -> Outcome:
    """A certificate from the spectrum that the fit has, as `select` asks for it, beside the fit."""
    X = groups(200, 2000, 20_000)

    def fit() -> SPCAFS:
        selector = SPCAFS(50)
        selector.keeps_scatter = True  # as the command does
        return selector.fit(X)

    fitted = fit()
    return beside(lambda: describe_selection(fitted, X).certificate, fit, aim=0.3, repeats=1)


def faces(share: float | None, aim: float) -> Outcome | None:
    """SPCAFS on AR, m = 99, beside PCA(99)."""
    X = benchmark_data("AR")
    if X is None:
        return None
    centred = X - X.mean(axis=0)
    leading = float(np.linalg.norm(centred, 2) ** 2)
    gamma: float | str = "scale" if share is None else share * leading
    pca = PCA(99, random_state=0)
    fit = SPCAFS(100, n_components=99, gamma=gamma).fit
    return beside(lambda: fit(X), lambda: pca.fit(X), aim)


def spcafs_sparse(X: sp.csr_array, aim: float) -> Outcome:
    """SPCAFS with 20 components on a sparse table, beside TruncatedSVD(20)."""
    svd = TruncatedSVD(20, random_state=0)
    fit = SPCAFS(100, n_components=20, random_state=0).fit
    return beside(lambda: fit(X), lambda: svd.fit(X), aim, repeats=1)


def stability() -> Outcome:
    """Twenty halves of AutoSelector, in single fits."""
    X = groups(200, 200, 5000)
    twenty = StabilitySelector(AutoSelector(50, n_halves=0), n_resamples=20, random_state=0)
    single = AutoSelector(50, n_halves=0)
    return beside(lambda: twenty.fit(X), lambda: single.fit(X), aim=8, repeats=1)


def growth(make: Callable[[], object], sizes: list[tuple[int, int]]) -> Outcome:
    """Exponent of the time over the largest and the smallest of the sizes."""
    taken = {}
    with threadpool_limits(1):
        for n_samples, n_features in sizes:
            X = groups(max(5, n_features // 20), n_samples, n_features)
            taken[f"{n_samples} x {n_features}"] = cpu_seconds(lambda X=X: make().fit(X))
    first, last = sizes[0], sizes[-1]
    growing = max(last[0] / first[0], last[1] / first[1])
    times = list(taken.values())
    return {"seconds": taken, "exponent": float(np.log(times[-1] / times[0]) / np.log(growing))}


IN_N = [(300, 300), (3000, 300), (30_000, 300)]
IN_D = [(300, 300), (300, 3000), (300, 30_000)]

CASES: dict[str, Callable[[], Outcome | None]] = {
    "waits: AutoSelector 1,000 x 20,000, one fit": lambda: autoselector(8000, 0, 1.5),
    "waits: AutoSelector 1,000 x 20,000, with halves": lambda: autoselector(8000, 4, 3),
    "waits: AutoSelector 1,000 x 20,000, noise": lambda: autoselector(0, 0, 4),
    "waits: AutoSelector CSR 20,000 x 8,000, noise": autoselector_sparse,
    "waits: AutoSelector Parquet 1,000,000 x 100": lambda: autoselector_parquet(1),
    "waits: AutoSelector Parquet 10,000,000 x 100": lambda: autoselector_parquet(10),
    "waits: cells 20,000 x 10,000": lambda: cells(False, 3),
    "waits: cells 20,000 x 10,000, by batch": lambda: cells(True, 8),
    "waits: commands": commands,
    "waits: certificate 2,000 x 20,000": certificate,
    "waits: SPCAFS AR m = 99": lambda: faces(None, 1.5),
    "waits: SPCAFS AR m = 99, 0.03 lambda_1": lambda: faces(0.03, 5),
    "waits: SPCAFS CSR 200,000 x 20,000": lambda: spcafs_sparse(topics(200_000, 20_000, 60), 1.5),
    "waits: SPCAFS CSR 20,000 x 8,000, noise": lambda: spcafs_sparse(
        sparse_noise(20_000, 8_000, 0.03), 4
    ),
    "waits: StabilitySelector(AutoSelector) 200 x 5,000": stability,
    "waits: growth of AutoSelector in samples": lambda: growth(
        lambda: AutoSelector(n_halves=0), IN_N
    ),
    "waits: growth of AutoSelector in features": lambda: growth(
        lambda: AutoSelector(n_halves=0), IN_D
    ),
    "waits: growth of SPCAFS in samples": lambda: growth(lambda: SPCAFS(20), IN_N),
    "waits: growth of SPCAFS in features": lambda: growth(lambda: SPCAFS(20), IN_D),
}
