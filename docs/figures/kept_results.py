"""The kept results, and Markdown tables of them."""

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["Results", "markdown_table", "mean", "signed"]

ROOT = Path(__file__).resolve().parents[2]


class Results:
    """The results in studies/results/ and benchmarks/results/."""

    def __init__(self, root: Path = ROOT) -> None:
        self.paper = root / "studies" / "results" / "paper"
        self.without_labels = root / "studies" / "results" / "without-labels"
        self.autoselector_study = root / "studies" / "results" / "autoselector"
        self.row_sparse_study = root / "studies" / "results" / "row-sparse"
        self.suite = root / "studies" / "results" / "suite"
        self.redundancy = root / "studies" / "results" / "redundancy" / "redundancy.csv"
        self.benchmarks = root / "benchmarks" / "results" / "latest.json"

    def study(self, name: str) -> list[dict[str, str]]:
        """A table of the paper's study: "tuned", "default", "claims", "timing" ..."""
        path = self.paper / f"{name}.csv"
        return _rows(path) if path.exists() else []

    def choice(self, name: str) -> list[dict[str, str]]:
        """A table of the study of choices made without labels, such as "regret"."""
        return _rows(self.without_labels / f"{name}.csv")

    def autoselector(self, name: str) -> list[dict[str, str]]:
        """A table of the study of AutoSelector: "by_set", "planted", "noise"."""
        return _rows(self.autoselector_study / f"{name}.csv")

    def row_sparse(self, name: str) -> list[dict[str, str]]:
        """A table of the study of the l2,0 problem: "values", "accuracy", "exact"."""
        return _rows(self.row_sparse_study / f"{name}.csv")

    def leaderboard(self) -> list[dict[str, str]]:
        """The leaderboard of the suite; empty while it has not been measured."""
        path = self.suite / "leaderboard.csv"
        return _rows(path) if path.is_file() else []

    def suite_sets(self) -> list[dict[str, str]]:
        """Every method on every data set of the suite: means over the numbers of features."""
        return _rows(self.suite / "sets.csv")

    def suite_scores(self) -> list[dict[str, str]]:
        """Every method of the suite at every number of features, at default settings."""
        path = self.suite / "default.csv"
        return _rows(path) if path.is_file() else []

    def fseval(self, name: str) -> list[dict[str, str]]:
        """A table of the check against FSEVAL: "comparison", "counts"; none if it has not run."""
        path = self.paper.parent / "fseval" / f"{name}.csv"
        return _rows(path) if path.exists() else []

    def redundant(self) -> list[dict[str, str]]:
        """Properties of top, pruned and random features of each data set."""
        return _rows(self.redundancy)

    def cases(self) -> dict[str, Any]:
        """The benchmark cases."""
        return json.loads(self.benchmarks.read_text(encoding="utf-8"))["cases"]

    def data_sets(self) -> list[str]:
        """The paper's data sets, in its study's order."""
        return [row["data"] for row in self.study("table2")]

    def means_over_k(self, tuning: str, measure: str = "acc") -> dict[str, dict[str, float]]:
        """Method -> data set -> mean over the numbers of features."""
        found: dict[str, dict[str, list[float]]] = {}
        for row in self.study(tuning):
            if row["status"] == "ok" and row[f"{measure}_mean"]:
                values = found.setdefault(row["method"], {}).setdefault(row["data"], [])
                values.append(float(row[f"{measure}_mean"]))
        return {m: {d: mean(v) for d, v in sets.items()} for m, sets in found.items()}


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def mean(values: Iterable[float]) -> float:
    """The arithmetic mean."""
    kept = list(values)
    return sum(kept) / len(kept)


def signed(value: float, digits: int = 3) -> str:
    """With its sign, and a real minus."""
    return f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A pipe table; pipes in cells become line breaks."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += [
        "| " + " | ".join(cell.replace(" | ", "<br>").replace("|", "\\|") for cell in row) + " |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"
