"""The study of the l2,0 problem: shares of the bound, k-means on what is kept, exact solutions."""

from collections.abc import Iterable
from pathlib import Path

from figures.drawing import keep_text
from figures.kept_results import Results, markdown_table, mean, signed

__all__ = ["write"]

FIRST = ("FSPCA", "Variance")
BASE = "SPCAFS"
LEFT_OUT = ("SPCAFS, refined",)  # measured, and no longer part of keepers
_SHORT = {"SparsePCA of scikit-learn": "SparsePCA"}
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
    """Variance held in % of the bound, a row for each k; the best of a row in bold.

    SPCAFS has one column, its penalties from small to large.
    """
    found: dict[tuple[str, int, int], dict[str, dict[str, str]]] = {}
    for row in rows:
        key = (row["data"], int(row["components"]), int(row["k"]))
        found.setdefault(key, {})[row["method"]] = row
    columns: dict[str, list[str]] = {}
    for method in _in_order(row["method"] for row in rows):
        columns.setdefault(_SHORT.get(method, method.partition(",")[0]), []).append(method)
    cells = []
    for (data, m, k), by_method in sorted(found.items()):
        shown = {name: f"{100 * float(row['share']):.1f}" for name, row in by_method.items()}
        best = max(shown.values(), key=float)
        marked = {name: f"**{text}**" if text == best else text for name, text in shown.items()}
        shares = [
            " / ".join(marked[name] for name in names if name in marked)
            for names in columns.values()
        ]
        # Each method has the least bound that its certificate found; all of them are valid.
        bound = min(float(row["explained"]) / float(row["share"]) for row in by_method.values())
        cells.append((f"{data}, {m}", str(k), *shares, f"{100 * bound:.1f}"))
    return markdown_table(("data, m", "k", *columns, "bound"), cells)


def accuracy(rows: list[dict[str, str]]) -> str:
    """Per method: share of the bound, accuracy of k-means, and its gain over SPCAFS."""
    by_set = _means_over_k(rows)
    methods = _in_order(name for name in by_set if name not in LEFT_OUT)
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
    """Times of the proofs: a row for each table and m, a column for each k."""
    ks = sorted({int(row["k"]) for row in rows})
    found: dict[tuple[str, int], dict[int, str]] = {}
    for row in rows:
        key = (row["data"], int(row["components"]))
        found.setdefault(key, {})[int(row["k"])] = _outcome(row)
    cells = [
        (data, str(m), *(by_k.get(k, "") for k in ks)) for (data, m), by_k in sorted(found.items())
    ]
    return markdown_table(("data", "m", *(f"k = {k}" for k in ks)), cells)


def _outcome(row: dict[str, str]) -> str:
    n_nodes = int(row["nodes"])
    cost = f"{_seconds(float(row['seconds']))} s, {n_nodes:,} node{'' if n_nodes == 1 else 's'}"
    if row["proved"] == "True":
        return cost
    gap = 1.0 - float(row["value"]) / float(row["upper_bound"])
    return f"gap {100 * gap:.1f} %: {cost}"


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
