"""The leaderboard of the suite as a Markdown table, and its pages for the site."""

from pathlib import Path

from figures.drawing import keep_text
from figures.kept_results import Results, markdown_table, signed

__all__ = ["pages_of_leaderboard", "write"]

RANDOM = "Random"
ABSENT = "The results are being made: this page has no numbers yet.\n"
LINK = """<p><a href="leaderboard/index.html">The whole leaderboard</a>: to sort, by kind of data,
by data set, and tuned with labels.</p>
"""


def write(folder: Path) -> list[Path]:
    """The table of default settings over all sets, and the link to the pages."""
    results = Results()
    return [
        keep_text(folder / "leaderboard.md", leaderboard(results)),
        keep_text(folder / "fseval.md", beside_fseval(results)),
    ]


def leaderboard(results: Results) -> str:
    """One row per method, best mean scaled score first."""
    rows = [r for r in results.leaderboard() if (r["tuning"], r["kind"]) == ("default", "all")]
    if not rows:
        return ABSENT
    link = f"{LINK}\n" if (results.suite / "index.html").is_file() else ""
    n_sets = rows[0]["sets_of_kind"]
    head = ("", "method", "mean scaled score", f"above random, of {n_sets}", "mean ACC")
    head += ("stability", "worst set")
    return link + markdown_table(head, [_cells(row) for row in rows])


def beside_fseval(results: Results) -> str:
    """The largest differences, and on how many of the shared sets methods are ahead of random."""
    compared, counted = results.fseval("comparison"), results.fseval("counts")
    if not compared:
        return ABSENT
    words = {"clustering_accuracy": "clustering accuracy", "rf_accuracy": "random-forest accuracy"}
    lines = []
    for measure, name in words.items():
        mine = [row for row in compared if row["measure"] == measure]
        worst = max(mine, key=lambda row: abs(float(row["difference"])))
        largest = signed(float(worst["difference"]))
        where = f"{worst['method']} on {worst['data']}"
        lines.append(f"- {name.capitalize()}: the largest difference is {largest} ({where}).")
    table = [
        (
            words[row["measure"]],
            row["source"],
            row["method"],
            f"{row['above_random']} of {row['sets']}",
            signed(float(row["mean_gain"])),
            signed(float(row["worst_gain"])),
        )
        for row in counted
        if row["method"] in ("AutoSelector", "LapScore", "Laplacian", "LIDFS", "Variance")
    ]
    head = ("measure", "figures of", "method", "sets above random", "mean gain", "worst")
    return "\n".join(lines) + "\n\n" + markdown_table(head, table) + "\n" + _failed_mcfs(results)


def _failed_mcfs(results: Results) -> str:
    """Compare ours with their MCFS where it has one value for all shares of features."""
    theirs: dict[str, list[float]] = {}
    for row in results.fseval("published"):
        if (row["method"], row["measure"]) == ("MCFS", "clustering_accuracy"):
            theirs.setdefault(row["data"], []).append(float(row["value"]))
    ours: dict[str, list[float]] = {}
    for row in results.suite_scores():
        if row["method"] == "MCFS" and row["acc_mean"]:
            ours.setdefault(row["data"], []).append(float(row["acc_mean"]))
    constant = [name for name, values in theirs.items() if min(values) == max(values)]
    table = [
        (name, f"{theirs[name][0]:.3f}", f"{min(ours[name]):.3f} to {max(ours[name]):.3f}")
        for name in constant
        if name in ours
    ]
    words = (
        f"FSEVAL's runs of MCFS failed on {len(constant)} of {len(theirs)} sets: the clustering "
        "accuracy is the same at every share of the features, as if all samples were equal (Yale "
        "has 15 classes, and 1/15 is 0.067). The table compares them with MCFS of keepers, with "
        "0.5 to 10 % of the features and with 20, 50 and 100 features:\n\n"
    )
    return words + markdown_table(("data", "FSEVAL's MCFS", "MCFS of keepers"), table)


def _cells(row: dict[str, str]) -> tuple[str, ...]:
    is_random = row["method"] == RANDOM
    worst = row["worst_set"] and f"{row['worst_set']} {signed(100 * float(row['worst_gain']), 1)}"
    return (
        row["place"],
        row["method"] + (" +" if row["told"] else ""),
        _number(row["scaled"], 2),
        "" if is_random else row["above_random_acc"],
        _number(row["acc"], 3),
        _number(row["stability"], 2),
        "" if is_random else worst,
    )


def _number(text: str, digits: int) -> str:
    return f"{float(text):.{digits}f}".replace("-", "\N{MINUS SIGN}") if text else ""


def pages_of_leaderboard(results: Results | None = None) -> list[tuple[Path, Path]]:
    """The files that its pages consist of and link to, and where each is below the first page."""
    folder = (results or Results()).suite
    if not (folder / "index.html").is_file():
        return []
    found = [folder / name for name in ("index.html", "leaderboard.csv", "sets.csv")]
    return [(path, path.relative_to(folder)) for path in found if path.is_file()]
