"""The paper's claims with verdicts, and the curves behind them."""

from pathlib import Path

from figures.drawing import BLUE, GREEN, GREY, INK, ORANGE, board, keep_figure, keep_text
from figures.kept_results import Results, markdown_table

__all__ = ["write"]

COLOURS = {"holds": "success", "does not hold here": "warning", "cannot be tested": "secondary"}
MARKED = {"SPCAFS": (BLUE, 2.4), "Variance": (ORANGE, 1.8), "Random": (GREEN, 1.8)}


def write(folder: Path) -> list[Path]:
    """The verdicts as a table and a count, and accuracy against the number of features."""
    results = Results()
    return [
        keep_text(folder / "claims.md", claims_table(results)),
        keep_text(folder / "claims-counted.md", claims_counted(results)),
        keep_text(folder / "readings.md", readings_table(results)),
        keep_text(folder / "ranks-summary.md", describe_ranks(results)),
        keep_figure(draw_curves(results), folder / "paper-curves.svg"),
    ]


def claims_table(results: Results) -> str:
    """One dropdown per claim: verdict and claim as title; rule and measurements inside."""
    return "\n".join(
        f":::{{dropdown}} {row['verdict'].capitalize()}: {row['claim']}\n"
        f":color: {COLOURS[row['verdict']]}\n\n"
        f"**Source**: {row['where']}.\n\n"
        f"**Rule**: {row['rule']}\n\n"
        f"**Measured**:\n\n{_listed(row['numbers'])}:::\n"
        for row in results.study("claims")
    )


def _listed(numbers: str) -> str:
    return "".join(f"- {part}\n" for part in numbers.split(" | "))


def claims_counted(results: Results) -> str:
    """One sentence: how many of the claims hold."""
    verdicts = [row["verdict"] for row in results.study("claims")]
    plural = {"holds": "hold", "does not hold here": "do not hold here"}
    counts = {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}
    parts = [f"{count} {plural.get(verdict, verdict)}" for verdict, count in counts.items()]
    return f"Of {len(verdicts)} claims, " + ", ".join(parts) + ".\n"


def readings_table(results: Results) -> str:
    """Claims x readings, with a count of what holds, and the claims that depend on the reading."""
    rows = results.study("readings")
    if not rows:
        return "The readings have not been run yet.\n"
    names = list(dict.fromkeys(row["reading"] for row in rows))
    claims = {row["id"]: row["claim"] for row in results.study("claims")}
    verdicts = {(row["id"], row["reading"]): row["verdict"] for row in rows}
    marks = {"holds": "holds", "does not hold here": "does not", "cannot be tested": "untested"}
    table = [
        [claim, *(marks[verdicts[key, name]] for name in names)] for key, claim in claims.items()
    ]
    counts = {name: sum(verdicts[key, name] == "holds" for key in claims) for name in names}
    table.append(["**claims that hold**", *(f"**{counts[name]}**" for name in names)])
    return markdown_table(["claim", *names], table) + "\n" + readings_in_words(rows, claims)


def readings_in_words(rows, claims: dict[str, str]) -> str:
    """List the claims that hold with one scaling only, with the deciding numbers."""
    lines = []
    for key, claim in claims.items():
        mine = [row for row in rows if row["id"] == key]
        if {"holds", "does not hold here"} <= {row["verdict"] for row in mine}:
            texts = [f"{r['reading']}: {r['numbers'].split(' | ')[0]}" for r in mine]
            lines.append(f"- *{claim}* " + "; ".join(texts) + ".")
    head = "Claims that depend on the scaling of the data:\n\n" if lines else ""
    return head + "\n".join(lines) + "\n"


def draw_curves(results: Results):
    """ACC against k on each data set: SPCAFS, the baselines, and the other methods."""
    data = results.data_sets()
    figure, axes = board(3, 2, (7.2, 8.2), sharex=True)
    rows = [row for row in results.study("tuned") if row["status"] == "ok"]
    for axis, name in zip(axes.ravel(), data, strict=True):
        curves: dict[str, list[tuple[int, float]]] = {}
        for row in rows:
            if row["data"] == name and row["k"]:
                point = (int(float(row["k"])), float(row["acc_mean"]))
                curves.setdefault(row["method"], []).append(point)
        _draw_panel(axis, name, curves)
    for axis in axes[-1]:
        axis.set_xlabel("features kept")
    for axis in axes[:, 0]:
        axis.set_ylabel("ACC, tuned with labels")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _draw_panel(axis, name: str, curves: dict[str, list[tuple[int, float]]]) -> None:
    axis.set_title(name)
    everything = curves.pop("All features", None)
    others = [method for method in curves if method not in MARKED]
    for position, method in enumerate(others):
        label = "the other methods" if position == 0 else None
        axis.plot(*zip(*curves[method], strict=True), color=GREY, alpha=0.55, lw=1, label=label)
    for method, (colour, width) in MARKED.items():
        axis.plot(*zip(*curves[method], strict=True), color=colour, lw=width, label=method)
    if everything:
        axis.axhline(everything[0][1], color=INK, lw=1.2, ls="--", label="all features")
    axis.set_ylim(bottom=0)
    axis.locator_params(axis="y", nbins=5)


def describe_ranks(results: Results) -> str:
    """Name the methods that differ significantly on the six data sets."""
    rows = [r for r in results.study("ranks") if r["tuning"] == "tuned" and r["measure"] == "acc"]
    ranks = {row["method"]: float(row["average_rank"]) for row in rows}
    difference = float(rows[0]["critical_difference"])
    first = min(ranks, key=lambda method: ranks[method])
    apart = [m for m, rank in ranks.items() if rank - ranks[first] > difference]
    return (
        f"Tuned, {first} has the best average rank ({ranks[first]:.1f} of {len(ranks)}). Nemenyi's "
        f"critical difference for {rows[0]['data_sets']} data sets is {difference:.1f} ranks: only "
        f"{' and '.join(apart)} are significantly worse, and **this study does not separate the "
        f"others.**\n"
    )
