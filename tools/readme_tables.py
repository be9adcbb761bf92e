"""Write the README's tables of results from the kept files, or check that they are up to date.

python tools/readme_tables.py            rewrite what stands between the marks
python tools/readme_tables.py --check    exit with 1 if that would change anything

A part of the README between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` is made by the
function of that name here.
"""

import csv
import re
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
K = "100"
PART = re.compile(r"(<!-- begin (?P<name>[\w-]+) -->\n).*?(<!-- end (?P=name) -->)", re.DOTALL)
SHOWN = 10


def rows_of(path: Path) -> list[dict[str, str]]:
    """All rows of a CSV file; none if it is not there."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def paper() -> str:
    """ACC with 100 features: a row a method, a column a data set, the best of each bold."""
    tuned, default = (rows_of(RESULTS / "paper" / f"{name}.csv") for name in ("tuned", "default"))
    data = list(dict.fromkeys(row["data"] for row in tuned))
    cells: dict[str, dict[str, str]] = {}
    for row in tuned:
        if row["k"] == K or row["method"] == "All features":
            cells.setdefault(row["method"], {})[row["data"]] = row["acc_mean"]
    cells["SPCAFS, default"] = {
        row["data"]: row["acc_mean"]
        for row in default
        if row["method"] == "SPCAFS" and row["k"] == K
    }
    best = {d: max(float(v[d]) for v in cells.values() if v.get(d)) for d in data}

    def cell(values: dict[str, str], name: str) -> str:
        if not values.get(name):
            return ""
        text = f"{float(values[name]):.3f}"
        return f"**{text}**" if float(values[name]) == best[name] else text

    rows = [[method, *(cell(values, d) for d in data)] for method, values in cells.items()]
    return table(["tuned, unless marked default", *data], rows)


def leaderboard() -> str:
    """The first methods of the leaderboard at default settings, and the baselines."""
    every = [row for row in rows_of(RESULTS / "suite" / "leaderboard.csv") if row["kind"] == "all"]
    tuned = {row["method"]: row["scaled"] for row in every if row["tuning"] == "tuned"}
    found = [row for row in every if row["tuning"] == "default"]
    baselines = ("Random", "Variance", "All features")
    shown = [row for row in found if int(row["place"]) <= SHOWN or row["method"] in baselines]
    rows = [_board_cells(row, tuned[row["method"]]) for row in shown]
    head = ["", "method", "mean scaled score", "tuned with labels", "sets above random", "mean ACC"]
    return table([*head, "forest accuracy", "worst set", "told"], rows)


def _board_cells(row: dict[str, str], tuned: str) -> list[str]:
    ahead = f"{row['above_random_acc']} of {row['sets_of_kind']}"
    worst = f"{row['worst_set']} {float(row['worst_gain']):+.3f}" if row["worst_set"] else ""
    is_random = row["method"] == "Random"
    return [
        row["place"],
        row["method"],
        f"{float(row['scaled']):.2f}",
        f"{float(tuned):.2f}",
        "" if is_random else ahead,
        f"{float(row['acc']):.3f}",
        f"{float(row['forest']):.3f}" if row["forest"] else "",
        "" if is_random else worst,
        row["told"] or "nothing",
    ]


def readings() -> str:
    """How many claims hold under each reading, and which depend on it."""
    rows = rows_of(RESULTS / "paper" / "readings.csv")
    if not rows:
        return ""
    names = list(dict.fromkeys(row["reading"] for row in rows))
    ids = list(dict.fromkeys(row["id"] for row in rows))
    verdicts = {(row["id"], row["reading"]): row["verdict"] for row in rows}
    short = {"holds": "holds", "does not hold here": "does not", "cannot be tested": "untested"}
    changing = [
        key
        for key in ids
        if {"holds", "does not hold here"} <= {verdicts[key, name] for name in names}
    ]
    said = {row["id"]: row["claim"] for row in rows_of(RESULTS / "paper" / "claims.csv")}
    lines = [[said[key], *(short[verdicts[key, name]] for name in names)] for key in changing]
    holding = {name: sum(verdicts[key, name] == "holds" for key in ids) for name in names}
    lines.append([f"hold, of {len(ids)}", *(f"**{holding[name]}**" for name in names)])
    return table(["claims that change with the reading", *names], lines)


PARTS: dict[str, Callable[[], str]] = {
    "paper": paper,
    "leaderboard": leaderboard,
    "readings": readings,
}


def with_tables(text: str) -> str:
    """The text with every marked part made anew."""
    return PART.sub(lambda found: found[1] + PARTS[found["name"]]() + found[3], text)


def main() -> None:
    """Rewrite the README, or say that it is out of date."""
    path = ROOT / "README.md"
    before = path.read_text(encoding="utf-8")
    after = with_tables(before)
    if "--check" in sys.argv:
        sys.exit(
            0 if after == before else "README.md is out of date: python tools/readme_tables.py"
        )
    path.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
