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

from keepers.catalogue import METHODS, Method, all_methods, find_method
from keepers.cli.console import PlainConsole, note, print_json, printable, progress_line, say_notes
from keepers.cli.options import CompareOptions, check_outputs, one_of
from keepers.cli.prepared import PUTS_FEATURES_ON_ONE_SCALE, prepare, scale_table
from keepers.exceptions import KeepersError, KeepersWarning, ParameterError, shorten
from keepers.linalg.scaling import SCALINGS
from keepers.metrics import clustering_accuracy, normalized_mutual_information
from keepers.prepare.check import TableCheck
from keepers.tables.atomic import whole_file
from keepers.tables.table import Table
from keepers.tables.writing import csv_text

Result = dict[str, Any]
"""method, k, acc, nmi (means over the repeats of k-means), seconds of a fit, and error."""


def compare(data: str, options: CompareOptions) -> None:
    """Compare methods on a table; print and write the results."""
    check_outputs({"--out": options.out}, [data], force=options.force)
    one_of("--scale", options.scale, ("auto", *SCALINGS))
    counts, methods = _numbers(options.ks), _methods(options.methods)
    prepared = prepare(data, options, in_blocks=False)
    if prepared.rows.labels is None:
        raise ParameterError(
            "A comparison needs classes to compare with; name their column with --labels."
        )
    scaling, notes = _scaling(options.scale, prepared.check)
    d = prepared.rows.n_features
    if too_many := [k for k in counts if k >= d]:
        text = f"There are {d} features, so --ks {too_many[0]} and more would keep all of them: see"
        notes.append(f"{text} the row All features.")
        counts = [k for k in counts if k < d] or [d]
    say_notes(notes, quiet=options.quiet)
    table = scale_table(prepared.rows, scaling)
    results = run(table, methods, counts, options)
    if options.out is not None:
        with whole_file(options.out, force=options.force) as target:
            lines = csv_text([list(results[0]), *(list(each.values()) for each in results)])
            target.write_text(lines, encoding="utf-8", errors="replace")
    if options.json:
        print_json({"data": table.name, "scaling": scaling, "results": results})
        return
    print_results(results, table.name)
    for name, why in {each["method"]: each["error"] for each in results if each["error"]}.items():
        note(f"keepers: note: {name} has no result. {why}", quiet=options.quiet)
    if options.out is not None:
        note(f"Wrote {options.out}", quiet=options.quiet)


def _numbers(text: str) -> list[int]:
    """Read "10,20,50" as integers >= 1."""
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise ParameterError(f"--ks must be integers >= 1, as in 10,20; got {shorten(text)}.")
    return numbers


def _methods(names: str) -> list[Method]:
    """The methods of a list with commas, and the baselines."""
    given = [name.strip() for name in names.split(",") if name.strip()]
    if "all" in given:
        return list(all_methods().values())
    asked = [find_method(name) for name in dict.fromkeys(given)]
    return [*asked, *(each for each in METHODS if each.is_baseline and each not in asked)]


def _scaling(asked: str, check: TableCheck) -> tuple[str, list[str]]:
    """The scaling, and what to say about it."""
    differ = any(finding.about == "units" for finding in check.findings)
    if asked == "auto" and differ:
        return "standardize-features", [
            "The columns have different units: all are standardised (--scale raw: as given). "
            "Variance, which is then 1 for all of them, takes the first columns."
        ]
    if asked not in ("auto", *PUTS_FEATURES_ON_ONE_SCALE) and differ:
        return asked, [
            f"The columns have different units, and with --scale {asked} those with the largest "
            "numbers decide the clusters. Methods may agree for that reason alone."
        ]
    return "raw" if asked == "auto" else asked, []


def run(
    table: Table, methods: Sequence[Method], counts: Sequence[int], options: CompareOptions
) -> list[Result]:
    """Results of all methods, in processes of one thread each."""
    y = np.unique(np.asarray(table.labels).astype(str), return_inverse=True)[1]
    what = f"comparing {len(methods)} methods on {table.name}"
    found: list[Result] = []
    parallel = joblib.Parallel(options.threads or joblib.cpu_count(), return_as="generator")
    given = (table.values, y, counts, options.repeats, options.seed)
    jobs = (joblib.delayed(judge)(each, *given) for each in methods)
    with progress_line(what, quiet=options.quiet) as show:
        for done, results in enumerate(parallel(jobs), 1):
            found += results
            show(f"{what}: {done} done")
    return found


def judge(
    method: Method, X: Any, y: Any, ks: Sequence[int], repeats: int, seed: int
) -> list[Result]:
    """Results of one method with every number of features; a random one is drawn several times."""
    name = method.label or method.class_name
    known = {"classes": int(y.max()) + 1, "classes - 1": max(1, int(y.max()))}
    settings = {key: known.get(value, value) for key, value in method.fixed.items()}
    draws = method.draws or 1
    results: list[Result] = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        for k in ks if method.selects else [X.shape[1]]:
            scores, began = [], time.perf_counter()
            result: Result = {"method": name, "k": k, "acc": None, "nmi": None}
            try:
                for draw in range(draws):
                    selector: Any = method.load()(k, **settings)
                    if "random_state" in selector.get_params():
                        selector.set_params(random_state=seed + draw)
                    kept = selector.fit(X).get_support()
                    seconds = (time.perf_counter() - began) / draws
                    scores += cluster(X[:, kept], y, max(1, repeats // draws), seed + draw)
            except (KeepersError, MemoryError) as error:
                return [{**result, "seconds": None, "error": str(error)}]
            acc, nmi = np.mean(scores, axis=0)
            found = {"acc": float(acc), "nmi": float(nmi), "seconds": seconds, "error": ""}
            results.append({**result, **found})
    return results


def cluster(X: Any, y: Any, repeats: int, seed: int) -> list[tuple[float, float]]:
    """ACC and NMI of k-means from several starts."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer points than clusters
        for repeat in range(repeats):
            clusters = KMeans(int(y.max()) + 1, n_init=1, random_state=seed + repeat).fit_predict(X)
            acc = clustering_accuracy(y, clusters)
            found.append((acc, normalized_mutual_information(y, clusters)))
    return found


def print_results(results: Sequence[Result], table: str) -> None:
    """Print ACC and NMI by number of features, the best mean ACC first."""
    counts = sorted({each["k"] for each in results})
    by_method: dict[str, dict[int, Result]] = {}
    for each in results:
        by_method.setdefault(each["method"], {})[each["k"]] = each
    cells = Cells("method", *(f"k = {k}" for k in counts), "seconds", box=None, pad_edge=False)
    cells.title, cells.title_justify = f"ACC / NMI on {printable(table)}", "left"

    def mean(name: str) -> float:
        known = [each["acc"] for each in by_method[name].values() if each["acc"] is not None]
        return float(np.mean(known)) if known else -1.0

    for name in sorted(by_method, key=mean, reverse=True):
        found = by_method[name]
        known = {k: f"{r['acc']:.3f} / {r['nmi']:.3f}" for k, r in found.items() if not r["error"]}
        seconds = max(each["seconds"] or 0.0 for each in found.values())
        cells.add_row(printable(name), *(known.get(k, "") for k in counts), f"{seconds:.2f}")
    PlainConsole(width=200).print(cells)
