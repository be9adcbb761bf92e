"""What is lost if values are missing, and which way of filling the gaps loses least?

python tools/study_missing.py run      every way on every table: scores.csv
python tools/study_missing.py tables   summary.md

    --only TABLE ...   these tables only, by name

Values are taken out of complete tables, 5, 20 and 40 % of them: at random, or by column, where a
quarter of the columns misses far more than the others (17, 68 and 85 % of their values). SPCAFS(k)
and AutoSelector(k) are fitted on the filled table. Measured are the share of planted columns among
those kept (planted tables), the overlap with what is kept of the complete table, and the accuracy
of k-means on the complete values of the kept columns (real tables; mean of 10 starts). Random
columns and the complete table are what a way is compared with.

The candidates for "model", and its constants, were compared on the choosing tables, and ways are
reported on others (which had been looked at once before the weight of estimates was chosen, see
docs/decisions/0016-missing-values.md). At most 400 rows and 1,500 columns of
a set are used; k is 50, or 20 of fewer than 200 columns, or a third of fewer than 60.

Everything goes to studies/results/missing. Tables that are there are not computed again.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import scipy.sparse as sp
from autoselector_tables import markdown
from keepers_studies.worker import judge_columns
from study_autoselector import Store, load

from keepers import SPCAFS, AutoSelector
from keepers.linalg.gaps import fill_by_model, fill_rows, fit_gap_model, observed_columns
from keepers.linalg.scatter import ColumnMoments
from keepers.linalg.spectrum import null_edge
from keepers.methods.reading import ScatterTable
from keepers.tables.atomic import whole_file

KEPT = Path(__file__).parents[1] / "studies" / "results" / "missing"
# Genes, gas sensors, movements, genes in five levels, binary pixels.
CHOOSING = ("SRBCTML", "GasDrift_batch1", "Libras", "lung_discrete", "Semeion")
# Genes, single cells, genes in five levels as answers to a survey have them, speech, measured
# digits in mixed units, spectra, a signal, radar.
REPORTING = ("tissue_gene_expr", "pbmc68k_reduced", "lymphoma", "Isolet", "Mfeat649", "Meats")
REPORTING += ("UCR_Trace", "Ionosphere")
SPREADS = (1.0, 1.5)
HALVES = dict.fromkeys(CHOOSING, "choosing") | dict.fromkeys(REPORTING, "reporting")
HALVES |= {f"planted {spread:g}, choosing": "choosing" for spread in SPREADS}
HALVES |= {f"planted {spread:g}, reporting": "reporting" for spread in SPREADS}

PATTERNS, SHARES, DRAWS = ("random", "by column"), (0.05, 0.2, 0.4), 2
MOST_ROWS, MOST_COLUMNS, FEWEST_ROWS, STARTS, N_PLANTED = 400, 1500, 10, 10, 50
COLUMNS = ("table", "half", "draw", "pattern", "share", "selector", "way", "k")
COLUMNS += ("recall", "overlap", "acc", "error", "seconds")


@dataclass(frozen=True)
class Complete:
    """A table without gaps, its classes, how many columns to keep, and which were planted."""

    X: np.ndarray
    classes: np.ndarray
    k: int
    planted: int = 0

    def accuracy(self, columns: np.ndarray) -> float:
        """Of k-means on the complete values of some columns."""
        found = judge_columns(self.X, self.classes, columns, n_repeats=STARTS, seed=0)
        return float(np.mean(found.acc))


def open_complete(name: str, draw: int) -> Complete:
    """A real set, or a planted table."""
    if name.startswith("planted"):
        words = name.replace(",", "").split()
        return plant(float(words[1]), draw + 100 * (words[2] == "reporting"))
    data = load(name)
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    rng = np.random.default_rng(1)
    rows, columns = (
        np.sort(rng.choice(size, min(size, most), replace=False))
        for size, most in zip(X.shape, (MOST_ROWS, MOST_COLUMNS), strict=True)
    )
    X = X[np.ix_(rows, columns)]
    X = X[:, np.ptp(X, axis=0) > 0]
    d = X.shape[1]
    return Complete(X, data.classes[rows], 50 if d >= 200 else 20 if d >= 60 else d // 3)


def plant(spread: float, seed: int) -> Complete:
    """150 x 800: four clusters that differ in the first 50 columns, in noise of variance 1."""
    rng = np.random.default_rng(seed)
    means = spread * rng.standard_normal((4, N_PLANTED))
    X, classes = rng.standard_normal((150, 800)), rng.integers(4, size=150)
    X[:, :N_PLANTED] += means[classes]
    return Complete(X, classes, N_PLANTED, N_PLANTED)


def take_out(X: np.ndarray, share: float, pattern: str, seed: int) -> np.ndarray:
    """A copy with NaN for a share of the values; two values stay in every column."""
    rng = np.random.default_rng(seed)
    n, d = X.shape
    shares = np.full(d, share)
    if pattern == "by column":
        heavy = min(0.85, 3.4 * share)
        shares[:] = (share - heavy / 4) * 4 / 3
        shares[rng.permutation(d)[: d // 4]] = heavy
    gaps = rng.random((n, d)) < shares
    for column in np.flatnonzero((~gaps).sum(axis=0) < 2):
        gaps[rng.choice(n, 2, replace=False), column] = False
    return np.where(gaps, np.nan, X)


def fill_by_mean(X: np.ndarray) -> np.ndarray:
    """The mean of the column."""
    return np.where(np.isnan(X), observed_columns(X).means, X)


def fill_by_median(X: np.ndarray) -> np.ndarray:
    """The median of the column."""
    return np.where(np.isnan(X), np.nanmedian(X, axis=0), X)


def drop_rows(X: np.ndarray) -> np.ndarray | None:
    """The rows without gaps, if there are enough of them."""
    whole = X[~np.isnan(X).any(axis=1)]
    return whole if len(whole) >= FEWEST_ROWS else None


def iterative_pca(X: np.ndarray, max_iter: int = 60) -> np.ndarray:
    """Regularised iterative PCA (Josse and Husson), its rank from the edge of the noise."""
    observed = observed_columns(X)
    scales = np.where(observed.scales > 0, observed.scales, 1.0)
    gaps = np.isnan(X)
    Z = np.where(gaps, 0.0, (X - observed.means) / scales)
    n, d = Z.shape
    spectrum = np.linalg.svd(Z - Z.mean(axis=0), compute_uv=False) ** 2 / (n - 1)
    variances = Z.var(axis=0) * n / (n - 1)
    rank = int(np.sum(spectrum > null_edge(variances[variances > 0], n - 1)))
    rank = min(rank, 50, min(n, d) - 1)
    for _ in range(max_iter if rank else 0):
        centre = Z.mean(axis=0)
        U, s, Vt = np.linalg.svd(Z - centre, full_matrices=False)
        freedom = (n - 1) * d - rank * (n - 1 + d - rank)
        noise = n * float(np.sum(s[rank:] ** 2)) / freedom
        shrunk = np.maximum(s[:rank] ** 2 - noise, 0.0) / s[:rank]
        change = np.where(gaps, centre + (U[:, :rank] * shrunk) @ Vt[:rank] - Z, 0.0)
        Z = Z + change
        if np.sum(change**2) <= 1e-6 * np.sum(Z[gaps] ** 2):
            break
    return np.where(gaps, Z * scales + observed.means, X)


def full_weight(X: np.ndarray) -> np.ndarray:
    """The estimates of the model as they are."""
    model = fit_gap_model(X)
    return fill_rows(replace(model, weights=np.ones(X.shape[1])), X)


def with_noise(X: np.ndarray) -> np.ndarray:
    """The estimates of the model, and noise of the size that it does not explain."""
    model = fit_gap_model(X)
    noise = np.sqrt(model.noise) * np.random.default_rng(0).standard_normal(X.shape)
    return np.where(np.isnan(X), full_weight(X) + model.scales * noise, X)


def available_scatter(X: np.ndarray) -> ScatterTable:
    """Every covariance from the rows that have both values, made positive semi-definite."""
    observed = observed_columns(X)
    there = (~np.isnan(X)).astype(np.float64)
    centred = np.where(there > 0, X - observed.means, 0.0)
    S = len(X) * (centred.T @ centred) / np.maximum(there.T @ there, 1.0)
    values, vectors = np.linalg.eigh(S)
    S = (vectors * np.maximum(values, 0.0)) @ vectors.T
    usable = np.flatnonzero(S.diagonal() > 0)
    S = S[np.ix_(usable, usable)]
    moments = ColumnMoments(len(X), observed.means[usable], S.diagonal().copy())
    return ScatterTable(moments, usable, observed.means, np.dtype(float), S)


WAYS: dict[str, Callable[[np.ndarray], np.ndarray | None]] = {
    "drop-rows": drop_rows,
    "mean": fill_by_mean,
    "median": fill_by_median,
    "model": fill_by_model,
}
CANDIDATES: dict[str, Callable[[np.ndarray], np.ndarray | None]] = {
    "iterative PCA": iterative_pca,
    "model, full weight": full_weight,
    "model, with noise": with_noise,
}
AVAILABLE = "available scatter"


def kept_by(selector: str, X: np.ndarray, k: int) -> np.ndarray:
    """The columns that a selector keeps."""
    made = SPCAFS(k, random_state=0) if selector == "SPCAFS" else AutoSelector(k)
    return np.asarray(made.fit(X).top(k).indices)


def kept_by_scatter(X: np.ndarray, k: int) -> np.ndarray:
    """The columns that SPCAFS keeps, from the scatter of what is there."""
    selector = SPCAFS(k, random_state=0)
    selector.n_features_in_ = X.shape[1]
    selector._fit_table(available_scatter(X))
    return np.asarray(selector.top(k).indices)


def rows_of(name: str) -> Iterator[dict[str, object]]:
    """All draws, patterns and ways of one table."""
    half = HALVES[name]
    ways = WAYS | (CANDIDATES if half == "choosing" else {})
    for draw in range(DRAWS):
        table = open_complete(name, draw)
        d = table.X.shape[1]
        baseline = [np.random.default_rng(seed).permutation(d)[: table.k] for seed in range(10)]
        whole = {name: kept_by(name, table.X, table.k) for name in ("SPCAFS", "AutoSelector")}
        of_random = np.mean([list(score(table, kept, kept).values()) for kept in baseline], axis=0)
        for pattern, share in [(pattern, share) for pattern in PATTERNS for share in SHARES]:
            case = {"table": name, "half": half, "draw": draw, "pattern": pattern, "share": share}
            gaps = take_out(table.X, share, pattern, draw)
            found = {way: fill(table.X, gaps, how) for way, how in ways.items()}
            for selector, expected in whole.items():
                case |= {"selector": selector, "k": table.k}
                chance = {"recall": of_random[0], "overlap": table.k / d, "acc": of_random[2]}
                yield case | {"way": "random columns"} | chance
                yield case | {"way": "complete"} | score(table, expected, expected)
                for way, (filled, facts) in found.items():
                    if filled is not None:
                        kept = kept_by(selector, filled, table.k)
                        facts = facts | score(table, kept, expected)
                    yield case | {"way": way} | facts
            if half == "choosing":
                kept = kept_by_scatter(gaps, table.k)
                facts = score(table, kept, whole["SPCAFS"])
                yield case | {"selector": "SPCAFS", "way": AVAILABLE} | facts


def fill(
    complete: np.ndarray, gaps: np.ndarray, way: Callable[[np.ndarray], np.ndarray | None]
) -> tuple[np.ndarray | None, dict[str, object]]:
    """The filled table, its error in standard deviations, and the time."""
    began = perf_counter()
    filled = way(gaps)
    facts: dict[str, object] = {"seconds": perf_counter() - began}
    if filled is not None and filled.shape == complete.shape:
        off = (filled - complete) / complete.std(axis=0)
        facts["error"] = float(np.sqrt(np.mean(off[np.isnan(gaps)] ** 2)))
    return filled, facts


def score(table: Complete, kept: np.ndarray, expected: np.ndarray) -> dict[str, float]:
    """How good the kept columns are."""
    planted = table.planted > 0
    return {
        "recall": float(np.mean(kept < table.planted)) if planted else np.nan,
        "overlap": len(np.intersect1d(kept, expected)) / len(expected),
        "acc": np.nan if planted else table.accuracy(kept),
    }


def run(arguments: argparse.Namespace) -> None:
    """Every table that is not there yet."""
    store = Store(arguments.out / "scores.csv", COLUMNS, ("table",))
    for name in arguments.only or HALVES:
        if not store.has(name):
            began = perf_counter()
            store.replace((name,), list(rows_of(name)))
            print(f"{name}: {perf_counter() - began:.0f} s", flush=True)


def write_tables(folder: Path) -> None:
    """summary.md: means over tables, of both halves; none for a way that failed on a table."""
    scores = pd.read_csv(folder / "scores.csv")
    planted = scores["table"].str.startswith("planted")
    parts = ["# What missing values cost\n\nMade by `python tools/study_missing.py tables`.\n"]
    titles = {
        "recall": "Share of the planted columns that are kept, planted tables",
        "acc": "Accuracy of k-means on the kept columns, real tables",
        "overlap": "Overlap with what is kept of the complete table, all tables",
        "error": "Root mean square error of the filled values, in standard deviations, all tables",
    }
    order = ["complete", *WAYS, *CANDIDATES, AVAILABLE, "random columns"]
    for half in ("reporting", "choosing"):
        for measure, title in titles.items():
            judged = {"recall": planted, "acc": ~planted}.get(measure, planted | ~planted)
            table = mean_over_tables(scores[judged & (scores["half"] == half)], measure)
            if table.empty:
                continue
            table = table[[way for way in order if way in table]].reset_index()
            table["share"] = table["share"].map("{:.0%}".format)
            if measure == "error":
                table = table[table["selector"] == "SPCAFS"].drop(columns="selector")
            parts.append(f"## The {half} half: {title}\n\n{markdown(table)}")
    with whole_file(folder / "summary.md", force=True) as temporary:
        temporary.write_text("\n".join(parts), encoding="utf-8")


def mean_over_tables(scores: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Mean over draws, then over tables, one column a way."""
    by = ["selector", "pattern", "share", "way"]
    of_tables = scores.groupby([*by, "table"])[measure].mean()
    means = of_tables.groupby(by).agg(lambda values: values.mean(skipna=False))
    return means.unstack("way").dropna(axis=1, how="all")


def main(given: list[str] | None = None) -> None:
    """Run, or assemble the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("run", "tables"))
    parser.add_argument("--only", nargs="+", choices=HALVES, metavar="TABLE")
    parser.add_argument("--out", type=Path, default=KEPT, help="folder of the results")
    arguments = parser.parse_args(given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if arguments.command == "run":
            run(arguments)
        else:
            write_tables(arguments.out)


if __name__ == "__main__":
    main()
