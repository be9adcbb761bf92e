"""Set our figures beside FSEVAL's, on the data sets that both have.

python tools/compare_fseval.py

Reads studies/results/fseval/published.csv (figures of the public repository
mrajabinasab/FSEVAL, dashboard/resources, commit e1d3f52) and default.csv beside it (ours, made by
`keepers-studies reproduce fseval`), and writes comparison.csv, counts.csv and summary.md.
"""

import csv
import math
from collections import defaultdict
from pathlib import Path
from statistics import fmean

FOLDER = Path(__file__).parents[1] / "studies" / "results" / "fseval"
PAIRS = {"Random": "Random", "Variance": "Variance", "Laplacian": "LapScore"}
"""Their name of a method, and ours."""
MEASURES = {"clustering_accuracy": "acc_mean", "rf_accuracy": "forest_mean"}
Curves = dict[tuple[str, str, str], dict[float, float]]
"""By method, data set and measure: a value for each share."""


def rows_of(path: Path) -> list[dict[str, str]]:
    """All rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def published() -> Curves:
    """Their figures."""
    found: Curves = defaultdict(dict)
    for row in rows_of(FOLDER / "published.csv"):
        place = row["method"], row["data"], row["measure"]
        found[place][round(float(row["share"]), 3)] = float(row["value"])
    return found


def ours() -> Curves:
    """Our figures, by the share that each number of features stands for."""
    features = {row["data"]: int(row["features"]) for row in rows_of(FOLDER / "table2.csv")}
    shares = [round(0.05 * step, 3) for step in range(1, 21)]
    found: Curves = defaultdict(dict)
    for row in rows_of(FOLDER / "default.csv"):
        by_k = {math.ceil(round(s * features[row["data"]], 9)): s for s in shares}
        share = by_k.get(int(row["k"]))
        for measure, column in MEASURES.items():
            if share is not None and row[column]:
                found[row["method"], row["data"], measure][share] = float(row[column])
    return found


def shared_mean(one: dict[float, float], two: dict[float, float]) -> tuple[float, float, int]:
    """Means over the shares that both have, and their number."""
    shares = sorted(one.keys() & two.keys())
    if not shares:
        return math.nan, math.nan, 0
    return fmean(one[s] for s in shares), fmean(two[s] for s in shares), len(shares)


def compare(theirs: Curves, mine: Curves) -> list[dict[str, object]]:
    """Means of the methods that both have, set by set."""
    rows = []
    data = sorted({place[1] for place in mine})
    for measure in MEASURES:
        for their_name, name in PAIRS.items():
            for table in data:
                one, two, n = shared_mean(
                    theirs[their_name, table, measure], mine[name, table, measure]
                )
                if n:
                    rows.append(
                        {
                            "measure": measure,
                            "method": name,
                            "data": table,
                            "shares": n,
                            "fseval": round(one, 6),
                            "keepers": round(two, 6),
                            "difference": round(two - one, 6),
                        }
                    )
    return rows


def counts(theirs: Curves, mine: Curves) -> list[dict[str, object]]:
    """On how many of the shared sets each method is ahead of random columns, by both sources."""
    data = sorted({place[1] for place in mine})
    rows = []
    for source, curves in (("fseval", theirs), ("keepers", mine)):
        for measure in MEASURES:
            for method in sorted({place[0] for place in curves} - {"Random"}):
                gains = []
                for table in data:
                    # At the shares that we measured, so that both sources answer one question.
                    at = mine["Random", table, measure].keys()
                    own = {s: v for s, v in curves[method, table, measure].items() if s in at}
                    one, random, n = shared_mean(own, curves["Random", table, measure])
                    gains += [one - random] if n else []
                if gains:
                    rows.append(
                        {
                            "source": source,
                            "measure": measure,
                            "method": method,
                            "sets": len(gains),
                            "above_random": sum(gain > 0 for gain in gains),
                            "mean_gain": round(fmean(gains), 6),
                            "worst_gain": round(min(gains), 6),
                        }
                    )
    return rows


def write_csv(path: Path, rows: list[dict[str, object]]) -> None:
    """Rows with the same names."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def summary(compared: list[dict[str, object]], counted: list[dict[str, object]]) -> str:
    """The two tables in Markdown, with the largest difference in words."""
    lines = [
        "# Beside FSEVAL",
        "",
        "Made by `python tools/compare_fseval.py`; see its first lines.",
        "",
    ]
    for measure in MEASURES:
        mine = [row for row in compared if row["measure"] == measure]
        worst = max(mine, key=lambda row: abs(row["difference"]))
        where = f"{worst['method']} on {worst['data']}"
        lines += [
            f"## {measure.replace('_', ' ')}",
            "",
            f"Largest difference {worst['difference']:+.3f} ({where}).",
            "",
            "| data | " + " | ".join(f"{m}, FSEVAL | {m}, keepers" for m in PAIRS.values()) + " |",
            "|---" * (1 + 2 * len(PAIRS)) + "|",
        ]
        for table in dict.fromkeys(row["data"] for row in mine):
            cells = {row["method"]: row for row in mine if row["data"] == table}
            values = [
                f"{cells[m][source]:.3f}" if m in cells else ""
                for m in PAIRS.values()
                for source in ("fseval", "keepers")
            ]
            lines.append(f"| {table} | " + " | ".join(values) + " |")
        lines += [
            "",
            "| source | method | sets above random | mean gain | worst |",
            "|---" * 5 + "|",
        ]
        lines += [
            f"| {r['source']} | {r['method']} | {r['above_random']} of {r['sets']} | "
            f"{r['mean_gain']:+.3f} | {r['worst_gain']:+.3f} |"
            for r in counted
            if r["measure"] == measure
        ]
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Write the three files and print the summary."""
    theirs, mine = published(), ours()
    compared, counted = compare(theirs, mine), counts(theirs, mine)
    write_csv(FOLDER / "comparison.csv", compared)
    write_csv(FOLDER / "counts.csv", counted)
    text = summary(compared, counted)
    (FOLDER / "summary.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
