"""The measured table, and the growth, of the page on scaling."""

from pathlib import Path
from typing import Any

from figures.drawing import keep_text
from figures.kept_results import Results, markdown_table
from figures.speed import GROWTH, growth_exponent

__all__ = ["write"]

PREFIX = "scale: "
# case -> (against, aim in times, aim for memory as shown)
AIMS: dict[str, tuple[str, float, str]] = {
    "2,000,000 x 500 float32 memory map": ("one blocked X'X pass over the file", 1.3, "< 1 GB"),
    "500 x 450,000 float32, m = 10": ("scikit-learn PCA(10)", 1.2, "< 2 times the data"),
    "CSR 200,000 x 20,000, 3 %, m = 20": ("TruncatedSVD(20)", 1.5, "< 2 times the data"),
    "Parquet folder 10,000,000 x 100": ("pyarrow reading the folder", 1.5, ""),
    "Dask 1,000,000 x 1,000, two workers": ("`fit` in memory, two threads", 1.5, ""),
}


def write(folder: Path) -> list[Path]:
    """Both."""
    cases = Results().cases()
    return [keep_text(folder / "scaling.md", measured(cases) + "\n" + growth(cases))]


def measured(cases: dict[str, Any]) -> str:
    """One row per table; what falls short of its aim is bold."""
    rows = []
    for name, (against, aim, memory_aim) in AIMS.items():
        case = cases[PREFIX + name]
        times = f"{case['times']:.2f}"
        rows.append(
            (
                name,
                against,
                f"{case['ours_s']:.1f} s / {case['theirs_s']:.1f} s",
                times if case["times"] <= aim else f"**{times}**",
                f"{aim:g}",
                _memory(case) + (f" ({memory_aim})" if memory_aim else ""),
                _else(case),
            )
        )
    head = ("table", "against", "ours / theirs", "times", "aim", "peak memory", "")
    return markdown_table(head, rows)


def _memory(case: dict[str, Any]) -> str:
    if "peak_over_data" in case:
        return f"{case['peak_over_data']:.2f} times the data"
    return f"{case['peak_mb']:.0f} MB, whole process" if "peak_mb" in case else ""


def _else(case: dict[str, Any]) -> str:
    parts = []
    if "passes" in case:
        parts.append("one pass" if case["passes"] == 1 else f"{case['passes']} passes")
    if "scores_apart" in case:
        parts.append(f"scores {case['scores_apart']:.0e} apart")
    if "steps" in case:
        parts.append(f"{case['steps']} steps")
    return ", ".join(parts)


def growth(cases: dict[str, Any]) -> str:
    """Exponents."""
    in_n, in_d = cases[GROWTH + "rows"], cases[GROWTH + "columns"]
    return (
        "Time grows with the number of rows (up to 3,000,000, 200 columns) with exponent "
        f"{growth_exponent(in_n['memory'])} in memory and {growth_exponent(in_n['blocks'])} in "
        f"blocks (aim 1.05), and with the number of columns (up to {in_d['sizes'][-1]:,}, 200 "
        f"rows) with exponent {growth_exponent(in_d['memory'])} (aim 1.2): "
        "[compared with PCA](speed.md#growth).\n"
    )
