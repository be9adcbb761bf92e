"""Tables of the kept results, as Markdown to be included."""

from pathlib import Path

from figures.drawing import keep_text
from figures.kept_results import Results, markdown_table

__all__ = ["write"]

K = "100"


def write(folder: Path) -> list[Path]:
    """All of them."""
    results = Results()
    texts = {
        "paper-acc-100.md": accuracy_at_100(results),
        "data-sets.md": data_sets(results),
        "cut-grids.md": cut_grids(results),
        "speed-summary.md": describe_speed(results),
        "regret.md": regret(results),
        "baselines.md": baselines(results),
        "noise.md": noise(results),
    }
    return [keep_text(folder / name, text) for name, text in texts.items()]


def accuracy_at_100(results: Results) -> str:
    """ACC with 100 features, tuned, and SPCAFS untuned; the best of a column is bold."""
    data = results.data_sets()
    cells: dict[str, dict[str, float]] = {}
    for row in results.study("tuned"):
        if row["acc_mean"] and (row["k"] == K or row["method"] == "All features"):
            cells.setdefault(row["method"], {})[row["data"]] = float(row["acc_mean"])
    cells["SPCAFS, default"] = {
        row["data"]: float(row["acc_mean"])
        for row in results.study("default")
        if row["method"] == "SPCAFS" and row["k"] == K
    }
    return _best_in_bold("tuned, unless marked default", cells, data)


def _best_in_bold(head: str, cells: dict[str, dict[str, float]], data: list[str]) -> str:
    best = {d: max(values[d] for values in cells.values() if d in values) for d in data}
    rows = [
        [method]
        + [
            ("**{:.3f}**" if values[d] == best[d] else "{:.3f}").format(values[d])
            if d in values
            else ""
            for d in data
        ]
        for method, values in cells.items()
    ]
    return markdown_table((head, *data), rows)


def data_sets(results: Results) -> str:
    """The paper's six."""
    rows = [
        (row["data"], row["instances"], row["features"], row["classes"], row["scaling"])
        for row in results.study("table2")
    ]
    return markdown_table(("data", "samples", "features", "classes", "values"), rows)


def cut_grids(results: Results) -> str:
    """List the grids that are smaller than the paper's, with the reasons."""
    rows = [
        (
            row["method"],
            row["data"],
            "left out" if row["skipped"] == "True" else f"`{row['grid']}`",
            row["reason"],
        )
        for row in results.study("reduced")
    ]
    return markdown_table(("method", "data", "grid", "reason"), rows)


def describe_speed(results: Results) -> str:
    """Compare the two solvers of SPCAFS."""
    case = results.cases()["SRBCT 83 x 2308, m = 3"]
    return (
        f"On SRBCT (83 x 2308, m = 3) the dense solver takes {case['theirs_s']:.0f} s for "
        f"{case['dense_steps']} steps, the block solver {case['ours_s']:.2f} s for "
        f"{case['block_steps']}, {case['faster']:.0f} times less. {case['same_top_100']} of "
        "their 100 best features are the same. "
        "[Compared with PCA](../speed.md#the-limit-one-pca).\n"
    )


def regret(results: Results) -> str:
    """The choice without labels over the best point of the paper's grid, picked with labels."""
    rows = results.choice("regret")
    settings = [name for name in rows[0] if name.startswith("gamma")]
    head = ("data", "chosen without labels", "SPCAFS, default", *settings)
    return markdown_table(
        head,
        [
            [row["data"], *(f"{float(row[n]):.3f}" for n in ("label-free", "default", *settings))]
            for row in rows
        ],
    )


def baselines(results: Results) -> str:
    """ACC at 50 and 100 features, mean: the choice without labels and the baselines."""
    columns = ("label-free", "Random", "Variance", "LapScore", "MCFS", "default")
    head = ("chosen without labels", "random", "variance", "LapScore", "MCFS", "SPCAFS, default")
    rows = [[r["data"], *(f"{float(r[c]):.3f}" for c in columns)] for r in results.choice("floors")]
    gains = [float(row[1]) - float(row[2]) for row in rows]
    won = sum(gain > 0 for gain in gains)
    return markdown_table(("data", *head), rows) + (
        f"\nThe choice beats random columns on {won} of {len(rows)} tables, and loses by at most "
        f"{-min(gains):.3f}.\n"
    )


def noise(results: Results) -> str:
    """How often AutoSelector finds structure in noise."""
    rows = [row for row in results.autoselector("noise") if row["method"] == "AutoSelector"]
    found = sum(row["structure_found"] == "True" for row in rows)
    return f"On {len(rows)} tables of pure noise AutoSelector found structure in {found}.\n"
