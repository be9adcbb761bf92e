"""The commands `keepers compare` and `keepers datasets`.

What needs NumPy or scikit-learn is imported inside the commands, so that help and completion are
quick.
"""

import csv
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table as Cells

from keepers.catalogue import METHODS, Method, all_methods, find_method
from keepers.cli import options
from keepers.cli.console import (
    PlainConsole,
    errors_in_one_sentence,
    note,
    print_json,
    printable,
    progress_line,
    say_notes,
)
from keepers.cli.options import ReadingOptions, on_a_table
from keepers.exceptions import KeepersError, KeepersWarning, ParameterError

if TYPE_CHECKING:
    from keepers.tables.table import Table

USUAL = "auto,spcafs,fspca,lapscore,mcfs"
"""The best of the leaderboard, which also take seconds; the slowest of all take hours."""
_METHODS = "Names with commas between them, or all; the baselines are always added."
_SCALE = "auto puts columns of different units on one scale; or as in `keepers select`."
MethodsOption = Annotated[str, typer.Option("--methods", metavar="NAMES", help=_METHODS)]
CountsOption = Annotated[str, typer.Option("--ks", metavar="NUMBERS", help="Numbers of features.")]
RepeatsOption = Annotated[int, typer.Option("--repeats", min=1, help="Repeats of k-means.")]
ScaleOption = Annotated[str, typer.Option("--scale", metavar="HOW", help=_SCALE)]
ResultsOption = Annotated[
    options.File, typer.Option("--out", metavar="FILE", help="Write all numbers (CSV).")
]


@dataclass(frozen=True)
class Result:
    """What one method reached with k features; means over the repeats of k-means."""

    method: str
    k: int
    acc: float | None = None
    """Clustering accuracy; None if the method failed."""
    nmi: float | None = None
    """Normalised mutual information."""
    seconds: float | None = None
    """Time of the fit."""
    error: str = ""


@on_a_table
def compare(
    *,
    data: options.DataArgument,
    methods: MethodsOption = USUAL,
    ks: CountsOption = "10,20,50,100",
    repeats: RepeatsOption = 20,
    out: ResultsOption = None,
    scale: ScaleOption = "auto",
    reading: ReadingOptions,
    json: options.JsonOption = False,
    force: options.ForceOption = False,
    seed: options.SeedOption = 0,
    threads: options.ThreadsOption = None,
) -> None:
    """Compare methods on a table whose classes are known (--labels).

    Every method selects without the classes, with its default settings; methods that need a number
    of clusters get that of the classes. K-means on the kept features is then compared with the
    classes. Example: keepers compare cells.csv --labels type --ks 50,100
    """
    from keepers.cli.prepared import PUTS_FEATURES_ON_ONE_SCALE, prepare, scale_table

    options.check_outputs({"--out": out}, [data], force=force)
    chosen, counts = methods_of(methods), options.as_numbers(ks, "--ks")
    scaling = scale if scale == "auto" else options.check_scaling(scale)
    prepared = prepare(data, reading, in_blocks=False)
    if prepared.rows.labels is None:
        raise ParameterError(
            "A comparison needs classes to compare with; name their column with --labels."
        )
    differ = any(finding.about == "units" for finding in prepared.check.findings)
    if scaling == "auto":
        scaling = "standardize-features" if differ else "raw"
        if differ:
            text = "The columns have different units: all are standardised (--scale raw: as given)."
            text += " Variance, which is then 1 for all of them, takes the first columns."
            say_notes([text], quiet=reading.quiet)
    elif differ and scaling not in PUTS_FEATURES_ON_ONE_SCALE:
        text = (
            f"The columns have different units, and with --scale {scaling} those with the largest "
            "numbers decide the clusters. Methods may agree for that reason alone."
        )
        say_notes([text], quiet=reading.quiet)
    too_many = [k for k in counts if k >= prepared.rows.n_features]
    if too_many:
        text = f"There are {prepared.rows.n_features} features, so --ks {too_many[0]} and more "
        say_notes([f"{text}would keep all of them: see the row All features."], quiet=reading.quiet)
    table = scale_table(prepared.rows, scaling)
    results = run(table, chosen, counts, repeats, seed, threads, quiet=reading.quiet)
    if out is not None:
        write_results(results, out, force=force)
    if json:
        print_json({"data": table.name, "scaling": scaling, "results": [*map(asdict, results)]})
        return
    print_results(results, table)
    for name, why in {each.method: each.error for each in results if each.error}.items():
        note(f"keepers: note: {name} has no result. {why}", quiet=reading.quiet)
    if out is not None:
        note(f"Wrote {out}", quiet=reading.quiet)


def methods_of(names: str) -> list[Method]:
    """The methods of a list with commas, and the baselines."""
    given = [name.strip() for name in names.split(",") if name.strip()]
    known = list(all_methods().values())
    if "all" in given:
        return known
    asked = [find_method(name) for name in dict.fromkeys(given)]
    return [*asked, *(each for each in METHODS if each.is_baseline and each not in asked)]


def run(
    table: "Table",
    methods: Sequence[Method],
    counts: Sequence[int],
    repeats: int,
    seed: int,
    threads: int | None,
    *,
    quiet: bool,
) -> list[Result]:
    """All methods, in processes of one thread each."""
    import joblib
    import numpy as np

    y = np.unique(table.labels.astype(str), return_inverse=True)[1]  # type: ignore[union-attr]
    ks = [k for k in counts if k < table.n_features] or [table.n_features]
    what = f"comparing {len(methods)} methods on {table.name}"
    found: list[Result] = []
    parallel = joblib.Parallel(threads or joblib.cpu_count(), return_as="generator")
    jobs = (joblib.delayed(judge)(each, table.values, y, ks, repeats, seed) for each in methods)
    with progress_line(what, quiet=quiet) as show:
        for done, results in enumerate(parallel(jobs), 1):
            found += results
            show(f"{what}: {done} done")
    return found


def judge(
    method: Method, X: Any, y: Any, ks: Sequence[int], repeats: int, seed: int
) -> list[Result]:
    """One method with every number of features; a random one is drawn several times."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    name = method.label or method.class_name
    n_classes = int(y.max()) + 1
    known = {"classes": n_classes, "classes - 1": max(1, n_classes - 1)}
    settings = {key: known.get(value, value) for key, value in method.fixed.items()}
    draws = method.draws or 1
    results = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        for k in ks if method.selects else [X.shape[1]]:
            scores, began = [], time.perf_counter()
            try:
                for draw in range(draws):
                    selector: Any = method.load()(k, **settings)
                    if "random_state" in selector.get_params():
                        selector.set_params(random_state=seed + draw)
                    kept = selector.fit(X).get_support()
                    seconds = time.perf_counter() - began
                    scores += cluster(X[:, kept], y, max(1, repeats // draws), seed + draw)
            except (KeepersError, MemoryError) as error:
                return [Result(name, k, error=str(error))]
            acc, nmi = np.mean(scores, axis=0)
            results.append(Result(name, k, float(acc), float(nmi), seconds / draws))
    return results


def cluster(X: Any, y: Any, repeats: int, seed: int) -> list[tuple[float, float]]:
    """ACC and NMI of k-means from several starts."""
    from sklearn.cluster import KMeans

    from keepers.metrics import clustering_accuracy, normalized_mutual_information

    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer points than clusters
        for repeat in range(repeats):
            clusters = KMeans(int(y.max()) + 1, n_init=1, random_state=seed + repeat).fit_predict(X)
            acc = clustering_accuracy(y, clusters)
            found.append((acc, normalized_mutual_information(y, clusters)))
    return found


def write_results(results: Sequence[Result], path: Any, *, force: bool) -> None:
    """A line for each method and number of features."""
    from keepers.tables.atomic import whole_file

    with whole_file(path, force=force) as target, target.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(asdict(results[0])))
        writer.writeheader()
        writer.writerows(asdict(each) for each in results)


def print_results(results: Sequence[Result], table: "Table") -> None:
    """ACC and NMI by number of features, the best mean ACC first."""
    counts = sorted({each.k for each in results})
    by_method: dict[str, dict[int, Result]] = {}
    for each in results:
        by_method.setdefault(each.method, {})[each.k] = each
    cells = Cells("method", *(f"k = {k}" for k in counts), "seconds", box=None, pad_edge=False)
    cells.title, cells.title_justify = f"ACC / NMI on {printable(table.name)}", "left"

    def shown(each: Result | None) -> str:
        return "" if each is None or each.acc is None else f"{each.acc:.3f} / {each.nmi:.3f}"

    def mean(of: dict[int, Result]) -> float:
        known = [each.acc for each in of.values() if each.acc is not None]
        return sum(known) / len(known) if known else -1.0

    for name in sorted(by_method, key=lambda name: -mean(by_method[name])):
        found = by_method[name]
        texts = [shown(found.get(k)) for k in counts]
        seconds = max((each.seconds or 0.0 for each in found.values()), default=0.0)
        cells.add_row(printable(name), *texts, f"{seconds:.2f}")
    PlainConsole(width=200).print(cells)


@errors_in_one_sentence
def datasets(debug: options.DebugOption = False) -> None:
    """List the data sets that commands know by name, and which are on this machine.

    Example: KEEPERS_DATA=~/benchmarks keepers datasets
    """
    from keepers.datasets import catalogue, data_folder, load, names, present

    table = Cells(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "samples", "features", "classes", "scaling", "here", "source"):
        is_count = heading in ("samples", "features", "classes")
        table.add_column(heading, justify="right" if is_count else "left")
    for name in names():
        X, _, y = load(name)
        shape = (str(X.shape[0]), str(X.shape[1]), str(len(set(y))))
        scaling = "unit-samples" if name == "srbct" else "raw"
        table.add_row(name, *shape, scaling, "bundled", "comes with keepers")
    absent = 0
    for entry in catalogue():
        here = present(entry)
        absent += not here
        shape = (str(entry.n_samples), str(entry.n_features), str(entry.n_classes))
        table.add_row(entry.name, *shape, entry.scaling, "yes" if here else "no", entry.source)
    PlainConsole(soft_wrap=True).print(table)
    if absent:
        note(
            f"{absent} of {len(catalogue())} catalogued sets are not in {data_folder()}. keepers "
            "may not redistribute them: fetch each from its source, store it as NAME.npz with "
            "arrays X and y, and set KEEPERS_DATA to the folder."
        )
