"""`keepers compare`: every method without the classes, then k-means against them."""

import time
import warnings
from collections.abc import Sequence
from typing import Any

import joblib
import numpy as np
from rich.table import Table as Cells
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from keepers.catalogue import METHODS, Method, find_method
from keepers.cli import console
from keepers.cli.console import note, printable, progress_line, say_notes
from keepers.cli.prepared import prepare, scale_table
from keepers.exceptions import KeepersError, ParameterError
from keepers.metrics import clustering_accuracy, normalized_mutual_information
from keepers.tables.table import Table

Result = dict[str, Any]
"""method, k, acc, nmi (means over the repeats of k-means), seconds of a fit, and error."""


def compare(data: str, options: console.CompareOptions) -> None:
    counts = [console.as_number(word, "--ks") for word in options.ks.split(",")]
    methods = _methods(options.methods)
    prepared = prepare(data, options, in_blocks=False)
    if prepared.rows.labels is None:
        raise ParameterError(
            "A comparison needs classes to compare with; name their column with --labels."
        )
    notes = []
    differ = any(finding.about == "units" for finding in prepared.check.findings)
    scale = "standardize-features" if differ else "raw"
    if differ:
        notes.append(
            "The columns have different units: all are standardised. Variance, which is then 1 "
            "for all of them, takes the first columns."
        )
    d = prepared.rows.n_features
    if too_many := [k for k in counts if k >= d]:
        text = f"There are {d} features, so --ks {too_many[0]} and more would keep all of them: see"
        notes.append(f"{text} the row All features.")
        counts = [k for k in counts if k < d] or [d]
    say_notes(notes)
    table = scale_table(prepared.rows, scale)
    results = run(table, methods, counts, options)
    if options.json:
        console.print_json({"data": table.name, "scaling": scale, "results": results})
        return
    print_results(results, table.name)
    for name, why in {each["method"]: each["error"] for each in results if each["error"]}.items():
        note(f"keepers: note: {name} has no result. {why}")


def _methods(names: str) -> list[Method]:
    """The methods of a list with commas, and the baselines."""
    given = [name.strip() for name in names.split(",") if name.strip()]
    if "all" in given:
        return [*METHODS]
    asked = [find_method(name) for name in dict.fromkeys(given)]
    return [*asked, *(each for each in METHODS if each.is_baseline and each not in asked)]


def run(
    table: Table,
    methods: Sequence[Method],
    counts: Sequence[int | float],
    options: console.CompareOptions,
) -> list[Result]:
    """Results of all methods, in processes of one thread each."""
    y = np.unique(np.asarray(table.labels).astype(str), return_inverse=True)[1]
    what = f"comparing {len(methods)} methods on {table.name}"
    found: list[Result] = []
    parallel = joblib.Parallel(options.threads or joblib.cpu_count(), return_as="generator")
    given = (table.values, y, counts, options.repeats, options.seed)
    jobs = (joblib.delayed(judge)(each, *given) for each in methods)
    with progress_line(what) as show:
        for done, results in enumerate(parallel(jobs), 1):
            found += results
            show(f"{what}: {done} done")
    return found


def judge(
    method: Method, X: Any, y: Any, ks: Sequence[int | float], repeats: int, seed: int
) -> list[Result]:
    """Results of one method with every number of features; a random one is drawn several times."""
    name, draws = method.label or method.class_name, method.draws or 1
    known = {"classes": int(y.max()) + 1, "classes - 1": max(1, int(y.max()))}
    settings = {key: known.get(value, value) for key, value in method.fixed.items()}
    results: list[Result] = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # also of fewer points than clusters
        for k in ks if method.selects else [X.shape[1]]:
            result: Result = dict.fromkeys(("method", "k", "acc", "nmi", "seconds", "error"))
            result |= {"method": name, "k": k}
            scores, seconds = [], 0.0
            try:
                for draw in range(draws):
                    selector: Any = method.load()(k, **settings)
                    if "random_state" in selector.get_params():
                        selector.set_params(random_state=seed + draw)
                    began = time.perf_counter()
                    kept = X[:, selector.fit(X).get_support()]
                    seconds += (time.perf_counter() - began) / draws
                    scores += cluster(kept, y, max(1, repeats // draws), seed + draw)
            except (KeepersError, MemoryError) as error:
                return [{**result, "error": str(error)}]
            acc, nmi = np.mean(scores, axis=0).tolist()
            results.append({**result, "acc": acc, "nmi": nmi, "seconds": seconds})
    return results


def cluster(X: Any, y: Any, repeats: int, seed: int) -> list[tuple[float, float]]:
    n_clusters, found = int(y.max()) + 1, []
    for start in range(seed, seed + repeats):
        clusters = KMeans(n_clusters, n_init=1, random_state=start).fit_predict(X)
        acc = clustering_accuracy(y, clusters)
        found.append((acc, normalized_mutual_information(y, clusters)))
    return found


def print_results(results: Sequence[Result], table: str) -> None:
    """Print ACC and NMI by number of features, the best mean ACC first."""
    counts = sorted({each["k"] for each in results})
    cells = Cells("method", *(f"k = {k}" for k in counts), "seconds", box=None, pad_edge=False)
    cells.title, cells.title_justify = f"ACC / NMI on {printable(table)}", "left"
    rows = []
    for name in dict.fromkeys(each["method"] for each in results):
        mine = [each for each in results if each["method"] == name]
        worked = [each for each in mine if not each["error"]]
        shown = {each["k"]: f"{each['acc']:.3f} / {each['nmi']:.3f}" for each in worked}
        mean = float(np.mean([each["acc"] for each in worked])) if worked else -1.0
        seconds = max([each["seconds"] for each in worked], default=0.0)
        texts = [shown.get(k, "") for k in counts]
        rows.append((mean, [printable(name), *texts, f"{seconds:.2f}"]))
    for _, row in sorted(rows, key=lambda row: -row[0]):
        cells.add_row(*row)
    console.PlainConsole(width=200).print(cells)
