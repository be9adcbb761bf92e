"""The tables of the page on speed: times compared with PCA and peers, and growth."""

import re
from pathlib import Path
from typing import Any

from figures.drawing import keep_text
from figures.kept_results import Results, markdown_table

__all__ = ["GROWTH", "growth_exponent", "write"]

PEERS, GROWTH = "peers: ", "growth: "
AGAINST_PCA, STREAMED = "against PCA: ", "streamed: "
EIGHT = "eight: "
WAITS = "waits: "
# Tables of `AGAINST_PCA` whose times on one thread are among `WAITS`.
ON_ONE_THREAD = {
    "AR 2600 x 2200, m = 99": "SPCAFS AR m = 99",
    "AR 2600 x 2200, m = 99, 0.03 lambda_1": "SPCAFS AR m = 99, 0.03 lambda_1",
}
OURS = "SPCAFS"
TABLES = (
    "SRBCT 83 x 2,308, m = 3, k = 50",
    "planted 2,000 x 300, m = 10, k = 40",
    "planted 300 x 5,000, m = 10, k = 100",
    "planted 300 x 50,000, m = 10, k = 100",
    "cells 50,000 x 20,000, m = 20, k = 2,000",
)
# Properties of each, from its documentation and source in the version that is run.
ABOUT = {
    "SPCAFS": "No labels; ranks all features by all components together; dense, sparse, and tables "
    "larger than memory.",
    "scikit-learn SparsePCA": "No labels; every component has features of its own, their "
    "number follows from `alpha` and cannot be set; dense tables in memory.",
    "scikit-learn MiniBatchSparsePCA": "As `SparsePCA`, updated from a few features at a time; "
    "dense tables in memory, no `partial_fit`.",
    "fastcan FastCan": "Needs a target: without labels its guide takes the principal components; "
    "orders the k features that it keeps, greedily and skipping redundant ones; dense tables in "
    "memory.",
    "scikit-matter CUR": "No labels; orders the k features that it keeps, each after the ones "
    "before were projected out: it looks for different features, not for all informative ones; "
    "dense tables in memory.",
    "scikit-matter CUR, computed once": "The same with `recompute_every=0`: features by their "
    "loadings in the first m singular vectors, no sparsity; dense tables in memory.",
    "scikit-feature lap_score": "No labels; ranks all features one at a time by a graph of "
    "neighbours, no components; dense tables, and n x n matrices.",
    "scikit-feature MCFS": "No labels, but a number of clusters; at most k features per "
    "eigenvector of a graph, the others are not ranked; dense tables, and n x n matrices.",
    "abess SparsePCA": "No labels; m components one after the other, each with a number of "
    "features that is given; keeps, does not rank; forms the d x d covariance; with fewer samples "
    "than features it computes only if given the covariance. GPL.",
    "scanpy highly_variable_genes": "No labels; ranks all genes one at a time by their dispersion "
    "among genes of similar mean, no components; expects logarithms of counts; sparse, and Dask "
    "arrays.",
}
# case -> (what changes, the rest)
AXES = {
    "rows": ("rows", "200 columns, m = 5"),
    "columns": ("columns", "200 rows, m = 5"),
    "components": ("components m", "1,000 x 4,000"),
    "stored entries": ("stored entries of a CSR table", "50 in a row of 5,000 columns, m = 10"),
}
SIDES = {
    "memory": "SPCAFS",
    "blocks": "SPCAFS in blocks",
    "PCA": "PCA(m)",
    "TruncatedSVD": "TruncatedSVD(m)",
}


def write(folder: Path) -> list[Path]:
    """All of them."""
    cases = Results().cases()
    beside_pca = measured_against_pca(cases) + "\n" + measured_passes(cases)
    return [
        keep_text(folder / "against_pca.md", beside_pca),
        keep_text(folder / "peers.md", measured_peers(cases) + "\n" + described_peers(cases)),
        keep_text(folder / "waits.md", measured_waits(cases)),
        keep_text(folder / "growth.md", measured_growth(cases)),
        keep_text(folder / "eight_methods.md", measured_eight(cases)),
    ]


def measured_waits(cases: dict[str, Any]) -> str:
    """Times that people wait for, with the aim of each; bold where it was missed."""
    rows = []
    for name, case in cases.items():
        if not name.startswith(WAITS) or case is None:
            continue
        title = name.removeprefix(WAITS)
        if title in ON_ONE_THREAD.values():
            continue
        parts = case if all(isinstance(part, dict) for part in case.values()) else {title: case}
        for what, part in parts.items():
            if "times" in part:
                found, aim = part["times"], part["aim"]
                rows.append((what, _bold(f"{found:.2g} times", found > aim), f"{aim:g} times"))
            elif "aim_s" in part:
                found, aim = part["seconds"], part["aim_s"]
                rows.append((what, _bold(f"{found:.2g} s", found > aim), f"{aim:g} s"))
            elif "exponent" in part:
                rows.append((what, f"size to the power {part['exponent']:.2f}", ""))
    return markdown_table(("work", "measured", "aim"), rows)


def _bold(text: str, marked: bool) -> str:
    return f"**{text}**" if marked else text


def measured_against_pca(cases: dict[str, Any]) -> str:
    """One row per table and gamma; what falls short of its aim is bold."""
    rows = []
    for name, case in sorted(cases.items()):
        if not name.startswith(AGAINST_PCA):
            continue
        title = name.removeprefix(AGAINST_PCA)
        alone = case.get("one_thread") or cases.get(WAITS + ON_ONE_THREAD.get(title, title))
        rows.append(
            (
                _described(title, case),
                _against_aim(case["times"], case["aim"]),
                "" if alone is None else _against_aim(alone["times"], case["aim"]),
                f"{case['aim']:g}",
                f"{case['steps']}",
                f"{case['products']}",
                *_fidelity(list(case.get("shares", {"": case}).values())),
            )
        )
    head = ("table", "times", "times, one thread", "aim", "steps", "products")
    return markdown_table((*head, "objective apart", "same of top 100"), rows)


def measured_passes(cases: dict[str, Any]) -> str:
    """How often a table is read that is streamed."""
    rows = [
        (
            name.removeprefix(STREAMED),
            _against_aim(case["passes"], case["aim"]),
            f"{case['aim']:g}",
            f"{case['steps']}",
            f"{case['products']}",
            *_fidelity([case]),
        )
        for name, case in sorted(cases.items())
        if name.startswith(STREAMED)
    ]
    head = ("streamed table", "passes", "aim", "steps", "products")
    return markdown_table((*head, "objective apart", "same of top 100"), rows)


def _described(name: str, case: dict[str, Any]) -> str:
    if "shares" in case:
        return f"{name}, slowest of {len(case['shares'])}: {case['gamma/lambda_1']:g} lambda_1"
    if case["stop_reason"] == "converged":
        return name
    return f"{name} (ends: {case['stop_reason']})"


def _against_aim(value: float, aim: float) -> str:
    shown = f"{value:.3g}"
    return shown if value <= aim else f"**{shown}**"


def _fidelity(parts: list[dict[str, Any]]) -> tuple[str, str]:
    """The objective that is furthest from its reference, and the fewest features in common."""
    known = [part for part in parts if "objective_apart" in part]
    if not known:
        return "", ""
    furthest = max((part["objective_apart"] for part in known), key=abs)
    some = f" ({len(known)} of {len(parts)} known)" if len(known) < len(parts) else ""
    return f"{furthest:.0e}{some}", str(min(part["same_top_100"] for part in known))


def peer_cases(cases: dict[str, Any]) -> dict[str, Any]:
    """The tables on which peers were run, by name."""
    return {name: cases[PEERS + name] for name in TABLES}


def measured_peers(cases: dict[str, Any]) -> str:
    """One table per data set, fastest first; what did not finish is last."""
    parts = []
    for name, case in peer_cases(cases).items():
        rows = sorted(case["rows"].items(), key=lambda item: _order(item[1]))
        with_planted = "informative" in case
        head = ["", "seconds", "times SPCAFS", *(["planted of kept"] if with_planted else [])]
        body = [_peer_row(peer, row, with_planted) for peer, row in rows]
        title = f"**{name[0].upper()}{name[1:]}**"
        if with_planted:
            title += f" ({case['informative']:,} features planted)"
        parts.append(f"{title}\n\n" + markdown_table(head, body))
    return "\n".join(parts)


def _order(row: dict[str, Any]) -> tuple[int, float]:
    if "seconds" in row:
        return 0, row["seconds"]
    return (1, row["seconds_at_least"]) if "seconds_at_least" in row else (2, 0.0)


def _peer_row(peer: str, row: dict[str, Any], with_planted: bool) -> list[str]:
    if "seconds" in row:
        times = "1" if peer == OURS else f"{row['times']:.2g}"
        cells = [f"{row['seconds']:.3g}", f"{float(times):g}"]
    elif "seconds_at_least" in row:
        least = float(f"{row['times_at_least']:.2g}")
        cells = [f"more than {row['seconds_at_least']:g}", f"more than {least:g}"]
    else:
        size = re.search(r"Unable to allocate ([\d.]+ \w+)", row["failed"])
        why = f"needs {size[1]} at once" if size else row["failed"].replace("|", "/")
        cells = ["failed", why]
    if with_planted:
        cells.append(f"{row['planted']:,} of {row['kept']:,}" if "planted" in row else "")
    return [f"**{peer}**" if peer == OURS else peer, *cells]


def described_peers(cases: dict[str, Any]) -> str:
    """One sentence on each, with the version that was run."""
    versions = {
        peer: row["package"]
        for case in peer_cases(cases).values()
        for peer, row in case["rows"].items()
    }
    rows = [(peer, versions[peer], ABOUT[peer]) for peer in versions]
    return markdown_table(("", "version", "what it does and does not do"), rows)


def growth_exponent(side: dict[str, Any]) -> str:
    """The exponent with half its 95 % interval, or why there is none."""
    if "exponent" not in side:
        return f"{side['points']} points past the fixed time: too few"
    return f"{side['exponent']:.2f} ± {side['half_interval']:.2f}"


def measured_growth(cases: dict[str, Any]) -> str:
    """One row per axis and side."""
    rows = []
    for name, (changes, rest) in AXES.items():
        case = cases[GROWTH + name]
        for side, label in SIDES.items():
            if side in case:
                found = case[side]
                rows.append(
                    (f"{changes} ({rest})", label, growth_exponent(found), *_span(case, found))
                )
    head = ("what grows", "", "exponent", "from", "to", "points", "seconds at the largest")
    return markdown_table(head, rows)


def _span(case: dict[str, Any], side: dict[str, Any]) -> tuple[str, str, str, str]:
    last = f"{side['seconds'][-1]:.2g}" if side["seconds"] else ""
    if "more_than_limit_at" in side:
        last += f" (more than {case['limit_s']} at {side['more_than_limit_at']:,})"
    if "exponent" not in side:
        return "", "", str(side["points"]), last
    return f"{side['from']:,}", f"{side['to']:,}", str(side["points"]), last


def measured_eight(cases: dict[str, Any]) -> str:
    """Compare the eight methods with packages and on genes, and show their growth."""
    own = {name.removeprefix(EIGHT): case for name, case in cases.items() if name.startswith(EIGHT)}
    beside = {name: case for name, case in own.items() if "theirs" in case}
    growth = {name: case for name, case in own.items() if name.endswith(" growth")}
    genes = own["72 x 3571"]
    parts = [
        _eight_beside(beside),
        _eight_genes(genes),
        _eight_growth(growth),
    ]
    return "\n".join(parts)


def _seconds(run: dict[str, Any]) -> str:
    if "seconds" in run:
        return f"{run['seconds']:.2g}"
    return f"more than {run['seconds_at_least']:g}"


def _eight_beside(cases: dict[str, Any]) -> str:
    rows = []
    for name, case in cases.items():
        faster = f"{case['faster']:.2g}" if "faster" in case else ""
        if "faster_at_least" in case:
            faster = f"more than {case['faster_at_least']:.2g}"
        steps = ""
        if "seconds_a_step" in case["theirs"]:
            ours, theirs = case["ours"], case["theirs"]
            steps = f"{ours['seconds_a_step']:.2g} ({ours['steps']} steps) / "
            steps += f"{theirs['seconds_a_step']:.2g} ({theirs['steps']} steps so far)"
        rows.append(
            (
                name.partition(" against")[0].rstrip(","),
                case["package"],
                _seconds(case["ours"]),
                _seconds(case["theirs"]),
                f"**{faster}**"
                if faster and "more" not in faster and case["faster"] < 5
                else faster,
                steps,
            )
        )
    head = ("", "package", "keepers, s", "package, s", "times faster", "seconds a step")
    return markdown_table(head, rows)


def _eight_genes(case: dict[str, Any]) -> str:
    methods = {name: found for name, found in case.items() if isinstance(found, dict)}
    head = (f"{case['data']}, 72 x 3571", "seconds", "steps")
    return markdown_table(
        head,
        [(name, _seconds(found), str(found.get("steps", ""))) for name, found in methods.items()],
    )


def _eight_growth(cases: dict[str, Any]) -> str:
    rows = []
    for name, case in cases.items():
        for axis, other in (("rows", "columns"), ("columns", "rows")):
            line = case[axis]
            n_points = len(line["seconds"])
            rows.append(
                (
                    name.removesuffix(" growth"),
                    f"{axis} ({line[other]:,} {other})",
                    _exponents(line),
                    ", ".join(f"{size:,}" for size in line["sizes"][:n_points]),
                    ", ".join(f"{taken:.2g}" for taken in line["seconds"]),
                )
            )
    return markdown_table(("method", "what grows", "exponent", "sizes", "seconds"), rows)


def _exponents(line: dict[str, Any]) -> str:
    """The exponent, and that of a step where their number is not the same at all sizes."""
    if "exponent" not in line:
        return "too few points"
    if len(set(line.get("steps", ()))) <= 1:
        return f"{line['exponent']:.2f}"
    steps = ", ".join(str(count) for count in line["steps"])
    return f"{line['exponent']:.2f}; of a step {line['exponent_a_step']:.2f} ({steps} steps)"
