"""Print the README's table of a study from its kept tables.

python tools/summarise_study.py experiments/results/paper
"""

import csv
import sys
from pathlib import Path

K = "100"


def rows_of(path: Path) -> list[dict[str, str]]:
    """All rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def main(folder: Path) -> None:
    """One row a method, one column a data set; the best of each column is bold."""
    tuned, default = (rows_of(folder / name) for name in ("tuned.csv", "default.csv"))
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
    print("| tuned, unless marked default |", " | ".join(data), "|")
    print("|---" * (len(data) + 1) + "|")
    for method, values in cells.items():
        shown = [f"{float(values[d]):.3f}" if values.get(d) else "" for d in data]
        marked = [
            f"**{text}**" if text and float(values[d]) == best[d] else text
            for d, text in zip(data, shown, strict=True)
        ]
        print("|", method, "|", " | ".join(marked), "|")


main(Path(sys.argv[1]))
