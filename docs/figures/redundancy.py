"""The table of the page on redundant features, and that of the cost of a path."""

from pathlib import Path

from figures.drawing import keep_text
from figures.kept_results import Results, markdown_table

__all__ = ["write"]

KINDS = ("top", "pruned", "random")


def write(folder: Path) -> list[Path]:
    """Both."""
    results = Results()
    texts = {"redundancy.md": redundancy(results)}
    return [keep_text(folder / name, text) for name, text in texts.items()]


def redundancy(results: Results) -> str:
    """One row a data set; the best accuracy is bold."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for row in results.redundant():
        found.setdefault(row["data"], {})[row["features"]] = row
    rows = []
    for data, by_kind in found.items():
        accuracies = [f"{float(by_kind[kind]['acc']):.2f}" for kind in KINDS]
        best = max(accuracies)
        rows.append(
            (
                data,
                " / ".join(f"{float(by_kind[kind]['effective rank']):.0f}" for kind in KINDS),
                " / ".join(f"{float(by_kind[kind]['variance share']):.3f}" for kind in KINDS),
                " / ".join(f"**{acc}**" if acc == best else acc for acc in accuracies),
            )
        )
    order = "top / pruned / random"
    head = ("data", f"effective rank: {order}", f"share of the variance: {order}", f"ACC: {order}")
    return markdown_table(head, rows)
