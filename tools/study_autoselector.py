"""Which columns to keep if nothing is known of the table? The study of the default selector.

python tools/study_autoselector.py run       every method on every set: scores.csv
python tools/study_autoselector.py planted   known columns among noise: planted.csv
python tools/study_autoselector.py noise     tables without structure: noise.csv
python tools/study_autoselector.py tables    by_set.csv, by_set_nmi.csv, summary.csv, summary.md

    --data NAME ...                  these sets only
    --only METHOD ...                these methods only
    --method LABEL=module:Class ...  a selector to be compared as well

46 data sets in their usual form, at most 2,000 rows of each, in two halves fixed beforehand:
choices are made on one and reported on the other. Every method keeps 20, 50 and 100 columns (an
eighth, a quarter and a half of fewer than 200), and k-means with the true number of classes is run
on these: the mean accuracy and the mean normalised mutual information of 10 starts are kept.

Everything goes to studies/results/autoselector. What is there is not computed again, after a kill
neither; --redo computes what --data, --only and --method name again. A --method is a selector of
keepers; one that does not depend on k is fitted once.
"""

import argparse
import fcntl
import importlib
import json
import os
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from autoselector_tables import write_tables
from keepers_studies.catalogue import data_folder
from keepers_studies.worker import _limit, _TimeLimitError, judge_columns
from published_recipe import PublishedRecipe

from keepers import MCFS, SPCAFS, UDFS, LaplacianScore, VarianceScore, select_settings
from keepers.tables.atomic import whole_file

KEPT = Path(__file__).parents[1] / "studies" / "results" / "autoselector"

# Sorted without regard to case. golub_raw7129 is not here: it is LEUML, unfiltered.
NAMES = (
    *("AR", "BinAlpha", "Brain_Tumor_1", "christensen", "classic3", "CNAE9", "COIL100_1000"),
    *("COIL20", "colon", "desouto_dyrskjot-2003", "desouto_tomlins-2006", "desouto_yeoh-2002-v2"),
    *("DLBCL", "GasDrift_batch1", "GLIOMA", "Imm40", "Ionosphere", "Isolet", "LEUML", "Libras"),
    *("lung_discrete", "lymphoma", "madelon", "Meats", "Mfeat649", "MLL_Leukemia_3"),
    *("mouse_bladder_2100", "MSRA25", "PalmData25", "pbmc68k_reduced", "PIE", "pixraw10P"),
    *("Pollen", "Semeion", "SRBCTML", "tissue_gene_expr", "TOX_171", "tr11", "tr41"),
    *("UCR_ACSF1", "UCR_Trace", "UMIST", "wap", "warpPIE10P", "Waveform40", "Yale"),
)
HALVES = {name: ("choosing", "reporting")[place % 2] for place, name in enumerate(NAMES)}
RAW_EXPRESSION = ("Brain_Tumor_1", "DLBCL", "MLL_Leukemia_3", "TOX_171")
RAW_EXPRESSION += ("desouto_dyrskjot-2003", "desouto_yeoh-2002-v2")
COUNTS = ("mouse_bladder_2100", "classic3", "CNAE9")

MOST_ROWS, SEED, LIMIT = 2000, 0, 900.0
STARTS, DRAWS, STARTS_OF_DRAW = 10, 20, 2
GAMMAS = (1e-6, 1e-4, 1e-2, 1e0, 1e2, 1e4, 1e6)
UDFS_MOST = (1000, 6000)  # rows and columns; a fit of 2000 x 4303 took 530 s
SCORES = ("data", "half", "method", "k", "acc", "nmi", "seconds", "settings", "note")
PLANTED = ("samples", "spread", "rescaled", "draw", "method", "recall", "seconds", "note")
NOISE = ("kind", "draw", "method", "structure_found", "seconds", "note")
N_COLUMNS, N_PLANTED = 5000, 50
NOISE_KINDS = ("Gaussian", "rescaled", "heavy-tailed")


@dataclass
class DataSet:
    """Values and classes of the rows used, for fitting and for judging."""

    name: str
    X: Any
    classes: np.ndarray
    judged: dict[tuple[bytes, int], tuple[float, float]] = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        """Classes among the rows used."""
        return len(np.unique(self.classes))

    @property
    def ks(self) -> tuple[int, ...]:
        """How many columns are kept."""
        d = self.X.shape[1]
        return (20, 50, 100) if d >= 200 else (d // 8, d // 4, d // 2)

    def judge(self, columns: np.ndarray, starts: int = STARTS) -> tuple[float, float]:
        """Mean ACC and NMI of k-means on some columns; the same columns are judged once."""
        columns = np.sort(columns)
        key = (columns.astype(np.int64).tobytes(), starts)
        if key not in self.judged:
            kept = self.X[:, columns]
            if sp.issparse(kept) and len(columns) < self.X.shape[1]:
                kept = kept.toarray()  # few columns: the products of dense ones are quicker
            places = np.arange(len(columns))
            found = judge_columns(kept, self.classes, places, n_repeats=starts, seed=SEED)
            self.judged[key] = (float(np.mean(found.acc)), float(np.mean(found.nmi)))
        return self.judged[key]


def load(name: str) -> DataSet:
    """One set in its usual form, at most 2,000 rows of it."""
    with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as archive:
        y = archive["y"]
        if "X" in archive:
            X = archive["X"].astype(np.float64)
        else:
            values = archive["data"].astype(np.float64)
            parts = (values, archive["indices"], archive["indptr"])
            X = sp.csr_array(parts, shape=tuple(int(size) for size in archive["shape"]))
    if name in RAW_EXPRESSION:
        X = np.log2(np.maximum(X, 16))
    if name in COUNTS:
        X = log_of_scaled_counts(X)
    if X.shape[0] > MOST_ROWS:
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        rows = np.sort(rng.choice(X.shape[0], MOST_ROWS, replace=False))
        X, y = X[rows], y[rows]
    return DataSet(name, X, np.unique(y, return_inverse=True)[1])


def log_of_scaled_counts(counts: sp.csr_array) -> sp.csr_array:
    """log(1 + x) of rows scaled to the same total, the mean of those that are not empty."""
    totals = np.asarray(counts.sum(axis=1)).ravel()
    scaled = counts.copy()
    factors = totals[totals > 0].mean() / np.where(totals > 0, totals, 1.0)
    scaled.data = np.log1p(scaled.data * np.repeat(factors, np.diff(scaled.indptr)))
    return scaled


@dataclass(frozen=True)
class Attempt:
    """What a piece of work gave, how long it took, and why it gave nothing."""

    result: Any
    seconds: float
    note: str = ""


def attempt(work: Callable[[], Any], limit: float = LIMIT) -> Attempt:
    """Run ``work``; a failure, or running past the time limit (0: none), becomes the note."""
    result, note = None, ""
    began = time.perf_counter()
    try:
        with _limit(limit):
            result = work()
    except _TimeLimitError:
        note = f"stopped after {limit:g} s"
    except Exception as error:
        note = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return Attempt(result, time.perf_counter() - began, note)


Rows = Iterator[dict[str, object]]
Method = Callable[[DataSet], Rows]


def row(data: DataSet, k: int, columns: Any, tried: Attempt, settings: Any = "") -> dict:
    """A row of scores.csv, without the names; no columns: no scores."""
    acc, nmi = (np.nan, np.nan) if columns is None else data.judge(columns)
    more = {"seconds": tried.seconds, "settings": settings, "note": tried.note}
    return {"k": k, "acc": acc, "nmi": nmi, **more}


def random_columns(data: DataSet) -> Rows:
    """20 draws of columns that vary, 2 starts of k-means each."""
    X = data.X.tocsc() if sp.issparse(data.X) else data.X
    spread = X.max(axis=0) - X.min(axis=0)
    varying = np.flatnonzero(spread.toarray().ravel() if sp.issparse(spread) else spread)
    for k in data.ks:
        draws = [np.random.default_rng(draw).permutation(varying)[:k] for draw in range(DRAWS)]
        acc, nmi = np.mean([data.judge(columns, STARTS_OF_DRAW) for columns in draws], axis=0)
        settings = as_json({"draws": DRAWS, "starts": STARTS_OF_DRAW})
        yield {"k": k, "acc": acc, "nmi": nmi, "seconds": 0.0, "settings": settings, "note": ""}


def all_columns(data: DataSet) -> Rows:
    """No selection."""
    d = data.X.shape[1]
    yield row(data, d, np.arange(d), Attempt(None, 0.0))


def by_selector(data: DataSet, make: Callable[[int, int], Any]) -> Rows:
    """The columns of ``make(k, n_classes)``; one fit, for the largest k, if k does not matter."""
    shared: Attempt | None = None
    for k in data.ks:
        selector = make(max(data.ks), data.n_classes)
        if getattr(selector, "depends_on_k", False):
            tried = attempt(partial(fit, make(k, data.n_classes), data.X))
        else:
            shared = tried = shared or attempt(partial(fit, selector, data.X))
        fitted = tried.result
        columns = None if fitted is None else fitted.top(k).indices
        yield row(data, k, columns, tried, facts_of(fitted))


def fit(selector: Any, X: Any) -> Any:
    """Fit; methods that take no sparse table get a dense one."""
    refuses = getattr(selector, "why_not_sparse", None) is not None
    return selector.fit(X.toarray() if refuses and sp.issparse(X) else X)


def facts_of(selector: Any) -> str:
    """What a fit chose, as far as it is a single number or word."""
    if selector is None:
        return ""
    usual = ("n_features_to_select_", "n_features_in_", "n_samples_seen_")
    found = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in vars(selector).items()
        if name.endswith("_") and not name.startswith("_") and name not in usual
    }
    found = {name: value for name, value in found.items() if isinstance(value, int | float | str)}
    return as_json(found)


def as_json(settings: dict[str, Any]) -> str:
    """Settings in one cell, numbers to six digits."""
    short = {
        name: float(f"{value:.6g}") if isinstance(value, float) else value
        for name, value in settings.items()
    }
    return json.dumps(short, sort_keys=True) if short else ""


def label_free(data: DataSet) -> Rows:
    """Settings of SPCAFS chosen without labels, for every k from one search."""
    tried = attempt(lambda: select_settings(data.X, random_state=SEED))
    for k in data.ks:
        chosen = None if tried.result is None else tried.result.at(k)
        settings = {} if chosen is None else chosen.best.params
        columns = None if chosen is None else chosen.best.columns
        yield row(data, k, columns, tried, as_json(settings))


def tuned_with_labels(data: DataSet) -> Rows:
    """For every k the gamma whose columns have the best accuracy; seconds are those of all fits."""
    n, d = data.X.shape
    width = max(1, min(data.n_classes - 1, n - 1, d // 3))
    tries = {}
    for gamma in GAMMAS:
        selector = SPCAFS(max(data.ks), n_components=width, gamma=gamma, random_state=SEED)
        tries[gamma] = attempt(partial(fit, selector, data.X))
    missing = "; ".join(f"gamma {gamma:g}: {t.note}" for gamma, t in tries.items() if t.note)
    whole = Attempt(None, sum(t.seconds for t in tries.values()), missing)
    for k in data.ks:
        kept = {g: t.result.top(k).indices for g, t in tries.items() if t.result is not None}
        best = max(kept, key=lambda gamma: data.judge(kept[gamma])[0], default=None)
        settings = {} if best is None else {"gamma": best, "n_components": width}
        yield row(data, k, kept.get(best), whole, as_json(settings))


def make_mcfs(k: int, n_classes: int, *, told: bool) -> MCFS:
    """MCFS with as many eigenvectors as classes, or with ten."""
    return MCFS(k, n_clusters=n_classes if told else 10, random_state=SEED)


SELECTORS: dict[str, Callable[[int, int], Any]] = {
    "Variance": lambda k, _: VarianceScore(k),
    "LapScore": lambda k, _: LaplacianScore(k, random_state=SEED),
    "SPCAFS": lambda k, _: SPCAFS(k, random_state=SEED),
    "Recipe": lambda k, _: PublishedRecipe(k, random_state=SEED),
    "MCFS, 10 eigenvectors": partial(make_mcfs, told=False),
    "MCFS, told the classes": partial(make_mcfs, told=True),
    "UDFS, told the classes": lambda k, c: UDFS(k, n_clusters=c, random_state=SEED),
}
# The cheap ones of all sets come before the expensive ones of any.
STAGES = (
    ("Random", "Variance", "LapScore", "SPCAFS", "Recipe", "MCFS, 10 eigenvectors"),
    ("All features", "MCFS, told the classes"),
    ("Label-free SPCAFS",),
    ("SPCAFS, tuned with labels",),
    ("UDFS, told the classes",),
)


def methods_of(given: dict[str, Callable[[int, int], Any]]) -> list[dict[str, Method]]:
    """The methods of every stage; those given on the command line come in the first."""
    own: dict[str, Method] = {
        "Random": random_columns,
        "All features": all_columns,
        "Label-free SPCAFS": label_free,
        "SPCAFS, tuned with labels": tuned_with_labels,
    }
    own |= {label: partial(by_selector, make=make) for label, make in (SELECTORS | given).items()}
    first, *later = STAGES
    return [{label: own[label] for label in stage} for stage in ((*first, *given), *later)]


def why_skipped(method: str, data: DataSet) -> str:
    """Why a method is not run on a set, or nothing."""
    n, d = data.X.shape
    if method.startswith("UDFS") and n > UDFS_MOST[0] and d > UDFS_MOST[1]:
        return f"not run: {n} x {d} is past {UDFS_MOST[0]} rows and {UDFS_MOST[1]} columns"
    return ""


class Store:
    """A CSV file in which every piece of work is there whole or not at all."""

    def __init__(self, path: Path, columns: tuple[str, ...], keys: tuple[str, ...]) -> None:
        self.path, self.columns, self.keys = path, columns, keys
        path.parent.mkdir(parents=True, exist_ok=True)

    def read(self) -> pd.DataFrame:
        """All rows; empty cells of text are empty strings."""
        if not self.path.exists():
            return pd.DataFrame(columns=self.columns)
        table = pd.read_csv(self.path)
        text = [name for name in ("settings", "note") if name in table]
        return table.assign(**{name: table[name].fillna("").astype(str) for name in text})

    def has(self, *key: object) -> bool:
        """Whether there are rows of this piece of work."""
        return bool(self._rows_of(self.read(), key).any())

    def replace(self, key: tuple[object, ...], rows: list[dict[str, object]]) -> None:
        """Put rows in place of those of the same piece of work; other processes may write too."""
        with self._locked():
            before = self.read()
            before = before[~self._rows_of(before, key)]
            added = pd.DataFrame(rows, columns=self.columns)
            table = added if before.empty else pd.concat([before, added])
            order = [name for name in (*self.keys, "k") if name in table]
            table = table.sort_values(order, key=_ignoring_case, kind="stable")
            with whole_file(self.path, force=True) as temporary:
                table.to_csv(temporary, index=False, float_format="%.6g")

    def _rows_of(self, table: pd.DataFrame, key: tuple[object, ...]) -> pd.Series:
        found = pd.Series(True, index=table.index)
        for name, value in zip(self.keys, key, strict=True):
            found &= table[name] == value
        return found

    @contextmanager
    def _locked(self) -> Iterator[None]:
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def _ignoring_case(values: pd.Series) -> pd.Series:
    return values if pd.api.types.is_numeric_dtype(values) else values.astype(str).str.lower()


def run(arguments: argparse.Namespace) -> None:
    """All methods on all sets, stage by stage, small sets first."""
    store = Store(arguments.out / "scores.csv", SCORES, ("data", "method"))
    folder = data_folder()
    present = [name for name in arguments.data or NAMES if (folder / f"{name}.npz").is_file()]
    for name in sorted(set(arguments.data or NAMES) - set(present)):
        print(f"{name} is not in {folder}", flush=True)
    sizes = {name: work_of(name) for name in present}
    for stage in methods_of(arguments.method):
        wanted = [label for label in stage if arguments.only is None or label in arguments.only]
        for name in sorted(present, key=sizes.__getitem__):
            missing = [m for m in wanted if arguments.redo or not store.has(name, m)]
            data = load(name) if missing else None
            for method in missing:
                began = time.perf_counter()
                rows = list(score(method, stage[method], data))
                store.replace((name, method), rows)
                took = time.perf_counter() - began
                shown = " ".join(f"{found['acc']:.3f}" for found in rows)
                print(f"{name}: {method}: {shown} in {took:.1f} s {rows[-1]['note']}", flush=True)


def work_of(name: str) -> float:
    """What the work on a set grows with: entries of its table."""
    with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as archive:
        n, d = archive["X"].shape if "X" in archive else archive["shape"]
    return float(min(n, MOST_ROWS)) * float(d)


def score(method: str, rows_of: Method, data: DataSet) -> Rows:
    """Rows of scores.csv of one method on one set."""
    skipped = why_skipped(method, data)
    tried = Attempt(None, 0.0, skipped) if skipped else attempt(lambda: [*rows_of(data)], limit=0)
    for found in tried.result or [row(data, k, None, tried) for k in data.ks]:
        yield {"data": data.name, "half": HALVES[data.name], "method": method, **found}


def plant(samples: int, spread: float, rescaled: bool, draw: int) -> np.ndarray:
    """Four clusters that differ in the first 50 of 5,000 columns, in noise of variance 1."""
    rng = np.random.default_rng(draw)
    means = spread * rng.standard_normal((4, N_PLANTED))
    X = rng.standard_normal((samples, N_COLUMNS))
    X[:, :N_PLANTED] += means[rng.integers(4, size=samples)]
    return X * np.exp(rng.standard_normal(N_COLUMNS)) if rescaled else X


def planted(arguments: argparse.Namespace) -> None:
    """How many of the 50 planted columns are among the first 50."""
    keys = ("samples", "spread", "rescaled", "draw", "method")
    store = Store(arguments.out / "planted.csv", PLANTED, keys)
    cases = [
        (samples, spread, rescaled, draw)
        for samples in (100, 200)
        for spread in (0.7, 1.0, 1.5, 2.5)
        for rescaled in (False, True)
        for draw in range(5)
    ]
    for method, make in chosen_selectors(arguments, ("Variance", "SPCAFS", "Recipe")).items():
        for case in cases:
            if store.has(*case, method) and not arguments.redo:
                continue
            tried = attempt(partial(fit, make(N_PLANTED, 4), plant(*case)))
            recall = np.nan
            if tried.result is not None:
                recall = float(np.mean(tried.result.top(N_PLANTED).indices < N_PLANTED))
            found = {"method": method, "recall": recall}
            found |= {"seconds": tried.seconds, "note": tried.note}
            store.replace((*case, method), [dict(zip(keys, case, strict=False)) | found])
        print(method, flush=True)
    by_case = store.read().groupby(["samples", "rescaled", "spread", "method"])["recall"].mean()
    print(by_case.unstack("method").round(2).to_string())


def noise_table(kind: str, draw: int) -> np.ndarray:
    """100 x 500 without any structure."""
    rng = np.random.default_rng(draw)
    if kind == "heavy-tailed":
        return rng.standard_t(2, size=(100, 500))
    X = rng.standard_normal((100, 500))
    return X * np.exp(rng.standard_normal(500)) if kind == "rescaled" else X


def noise(arguments: argparse.Namespace) -> None:
    """How often a selector that tells whether there is structure says that there is none."""
    store = Store(arguments.out / "noise.csv", NOISE, ("kind", "draw", "method"))
    for method, make in chosen_selectors(arguments, ("Recipe",)).items():
        for case in [(kind, draw) for kind in NOISE_KINDS for draw in range(100)]:
            if store.has(*case, method) and not arguments.redo:
                continue
            tried = attempt(partial(fit, make(50, 2), noise_table(*case)))
            answer = getattr(tried.result, "structure_found_", None)
            found = {"kind": case[0], "draw": case[1], "method": method, "note": tried.note}
            found |= {"structure_found": answer, "seconds": tried.seconds}
            store.replace((*case, method), [found])
        print(method, flush=True)
    says = store.read().groupby(["method", "kind"])["structure_found"]
    print(says.agg(tables="count", structure_found="sum").to_string())


def chosen_selectors(
    arguments: argparse.Namespace, usual: tuple[str, ...]
) -> dict[str, Callable[[int, int], Any]]:
    """The usual selectors and those given, as far as --only wants them."""
    offered = {label: SELECTORS[label] for label in usual} | arguments.method
    return {k: v for k, v in offered.items() if arguments.only is None or k in arguments.only}


def parse_method(text: str) -> tuple[str, Callable[[int, int], Any]]:
    """LABEL=module:Class as a label and a function that makes the selector for k columns."""
    label, _, place = text.partition("=")
    module, _, name = place.partition(":")
    if not (label and module and name):
        raise argparse.ArgumentTypeError(f"must be LABEL=module:Class; got {text!r}")
    try:
        selector_class = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise argparse.ArgumentTypeError(f"{place}: {error}") from error
    return label, lambda k, _: selector_class(k, random_state=SEED)


def parse(given: list[str] | None) -> argparse.Namespace:
    """The command and its options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("run", "planted", "noise", "tables"))
    parser.add_argument("--data", nargs="+", choices=NAMES, metavar="NAME", help="these sets only")
    parser.add_argument("--only", nargs="+", metavar="METHOD", help="these methods only, by label")
    parser.add_argument(
        "--method",
        nargs="+",
        action="extend",
        type=parse_method,
        default=[],
        metavar="LABEL=module:Class",
        help="a selector to be compared as well",
    )
    parser.add_argument("--redo", action="store_true", help="compute again what is there")
    parser.add_argument("--out", type=Path, default=KEPT, help="folder of the results")
    arguments = parser.parse_args(given)
    arguments.method = dict(arguments.method)
    known = {label for stage in STAGES for label in stage} | set(arguments.method)
    unknown = sorted(set(arguments.only or ()) - known)
    if unknown:
        parser.error(f"--only: no method {unknown}; there are {sorted(known)}")
    return arguments


def main(given: list[str] | None = None) -> None:
    """Run, or assemble the tables."""
    arguments = parse(given)
    if arguments.command == "tables":
        write_tables(arguments.out)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        {"run": run, "planted": planted, "noise": noise}[arguments.command](arguments)


if __name__ == "__main__":
    main()
