"""The study of the l2,0 problem: shares of the bound, k-means on what is kept, exact solutions."""

from collections.abc import Iterable
from pathlib import Path

from figures.drawing import keep_text
from figures.kept_results import Results, markdown_table, mean, signed

__all__ = ["write"]

FIRST = ("FSPCA", "Variance")
BASE = "SPCAFS"
# Differences in accuracy below this do not count as better or worse.
SAME = 0.005
N_NAMED = 3
MEASURES = ("acc", "nmi", "explained")


def write(folder: Path) -> list[Path]:
    """Three tables."""
    results = Results()
    texts = {
        "row_sparse_values.md": shares_of_bound(results.row_sparse("values")),
        "row_sparse_accuracy.md": accuracy(results.row_sparse("accuracy")),
        "row_sparse_exact.md": exact(results.row_sparse("exact")),
    }
    return [keep_text(folder / name, text) for name, text in texts.items()]


def shares_of_bound(rows: list[dict[str, str]]) -> str:
    """Variance held in % of the bound, a row for each k; the best of a row in bold."""
    methods = _in_order(row["method"] for row in rows)
    found: dict[tuple[str, str, int], dict[str, dict[str, str]]] = {}
    for row in rows:
        key = (row["data"], row["components"], int(row["k"]))
        found.setdefault(key, {})[row["method"]] = row
    cells = []
    for (data, m, k), by_method in sorted(found.items()):
        share = {name: float(row["share"]) for name, row in by_method.items()}
        shown = {name: f"{100 * value:.1f}" for name, value in share.items()}
        best = f"{100 * max(share.values()):.1f}"
        marked = [f"**{best}**" if shown.get(n) == best else shown.get(n, "") for n in methods]
        # The same for all methods but for rounding, as the bound is.
        bound = max(float(row["explained"]) / float(row["share"]) for row in by_method.values())
        cells.append((data, m, str(k), *marked, f"{100 * bound:.1f}"))
    # Shares of the largest eigenvalue; the page says so.
    names = [name.replace("gamma = ", "").replace(" lambda_1", "") for name in methods]
    head = ("data", "m", "k", *names, "the bound, in % of PCA")
    return markdown_table(head, cells)


def accuracy(rows: list[dict[str, str]]) -> str:
    """Per method: share of the bound, accuracy of k-means, and that beside SPCAFS."""
    by_set = _means_over_k(rows)
    methods = _in_order(by_set)
    base = by_set[BASE]
    table = []
    for name in methods:
        of_method = by_set[name]
        gains = _gains(of_method, base)
        table.append(
            (
                name,
                str(len(of_method)),
                f"{100 * mean(at['explained'] for at in of_method.values()):.1f}",
                f"{mean(at['acc'] for at in of_method.values()):.3f}",
                f"{mean(at['nmi'] for at in of_method.values()):.3f}",
                "" if name == BASE else signed(mean(gains.values())),
                "" if name == BASE else str(sum(gain > SAME for gain in gains.values())),
                "" if name == BASE else str(sum(gain < -SAME for gain in gains.values())),
            )
        )
    head = (
        "method", "sets", "% of the bound", "mean ACC", "mean NMI", f"ACC less that of {BASE}",
        "better on", "worse on",
    )  # fmt: skip
    gains = _gains(by_set["FSPCA"], base)
    ordered = sorted(gains, key=lambda name: gains[name])
    losses = [name for name in ordered if gains[name] < 0.0][:N_NAMED]
    wins = [name for name in ordered[::-1] if gains[name] > 0.0][:N_NAMED]
    sentences = [
        f"{words}: {', '.join(f'{name} ({signed(gains[name])})' for name in named)}."
        for words, named in (
            (f"Where FSPCA loses most accuracy against {BASE}", losses),
            ("Where it gains most", wins),
        )
        if named
    ]
    return markdown_table(head, table) + "\n" + " ".join(sentences) + "\n"


def exact(rows: list[dict[str, str]]) -> str:
    """What was proved in how long."""
    cells = [
        (
            row["data"],
            row["components"],
            row["k"],
            "yes" if row["proved"] == "True" else "no",
            f"{100 * (1 - float(row['value']) / float(row['upper_bound'])):.1f} %"
            if row["proved"] != "True"
            else "0",
            f"{int(row['nodes']):,}",
            _seconds(float(row["seconds"])),
        )
        for row in sorted(rows, key=lambda r: (r["data"], int(r["components"]), int(r["k"])))
    ]
    return markdown_table(("data", "m", "k", "proved", "gap", "nodes", "seconds"), cells)


def _in_order(names: Iterable[str]) -> list[str]:
    """Each once, FSPCA and variance before the others."""
    there = sorted(set(names))
    return [*(n for n in FIRST if n in there), *(n for n in there if n not in FIRST)]


def _means_over_k(rows: list[dict[str, str]]) -> dict[str, dict[str, dict[str, float]]]:
    """Method -> data set -> means over k; without runs that failed."""
    found: dict[str, dict[str, list[dict[str, str]]]] = {}
    for row in rows:
        if row["acc"]:
            found.setdefault(row["method"], {}).setdefault(row["data"], []).append(row)
    return {
        method: {
            data: {name: mean(float(row[name]) for row in runs) for name in MEASURES}
            for data, runs in sets.items()
        }
        for method, sets in found.items()
    }


def _gains(
    of_method: dict[str, dict[str, float]], base: dict[str, dict[str, float]]
) -> dict[str, float]:
    """Accuracy less that of the base, on the sets that both have."""
    return {data: at["acc"] - base[data]["acc"] for data, at in of_method.items() if data in base}


def _seconds(value: float) -> str:
    if value < 0.01:
        return "< 0.01"
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 10 else f"{value:.0f}"
