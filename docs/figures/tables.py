"""Tables of the kept results, as Markdown to be included."""

import json
from pathlib import Path

from figures.drawing import keep_text
from figures.kept_results import Results, markdown_table, signed

__all__ = ["write"]

METHODS = {  # page -> name in the study
    "spcafs": "SPCAFS",
    "laplacian-score": "LapScore",
    "mcfs": "MCFS",
    "udfs": "UDFS",
    "eufs": "EUFS",
    "dgufs": "DGUFS",
    "sogfs": "SOGFS",
    "rne": "RNE",
}
K = "100"
FLAT = 0.05
HELD_OUT = ("TOX_171", "lung_discrete")  # not used until the criterion was fixed


def write(folder: Path) -> list[Path]:
    """All of them."""
    results = Results()
    texts = {
        "paper-acc-100.md": accuracy_at_100(results),
        "untuned.md": untuned_means(results),
        "untuned-summary.md": describe_untuned(results),
        "baselines.md": baselines(results),
        "baselines-summary.md": describe_baselines(results),
        "regret-summary.md": describe_regret(results),
        "flat-summary.md": describe_flat(results),
        "data-sets.md": data_sets(results),
        "cut-grids.md": cut_grids(results),
        "costs.md": costs(results),
        "speed-summary.md": describe_speed(results),
    }
    texts |= {f"cost-{page}.md": cost_of(results, name) for page, name in METHODS.items()}
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


def untuned_means(results: Results) -> str:
    """Mean ACC over all numbers of features, with default settings."""
    cells = results.means_over_k("default")
    return _best_in_bold("default settings, mean over k", cells, results.data_sets())


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


def describe_untuned(results: Results) -> str:
    """Which baselines SPCAFS with default settings beats, and where."""
    cells = results.means_over_k("default")
    data = results.data_sets()
    lines = []
    for baseline in ("Variance", "Random", "All features"):
        gains = {d: cells["SPCAFS"][d] - cells[baseline][d] for d in data}
        ahead = [d for d in data if gains[d] > 0]
        behind = ", ".join(f"{d} ({signed(gains[d])})" for d in data if gains[d] <= 0)
        lines.append(
            f"- against **{baseline.lower()}**: ahead on {len(ahead)} of {len(data)}"
            + (f"; behind on {behind}" if behind else "")
        )
    return "\n".join(lines) + "\n"


def baselines(results: Results) -> str:
    """ACC at 50 and 100 features, mean: the choice without labels and the baselines."""
    columns = ("label-free", "Random", "Variance", "LapScore", "MCFS", "default")
    head = ("chosen without labels", "random", "variance", "LapScore", "MCFS", "SPCAFS, default")
    rows = []
    for row in results.choice("floors"):
        values = [float(row[column]) for column in columns]
        best = max(values)
        shown = [f"**{v:.3f}**" if v == best else f"{v:.3f}" for v in values]
        rows.append([row["data"], *shown])
    return markdown_table(("data", *head), rows)


def describe_baselines(results: Results) -> str:
    """Where few methods beat random selection, and where variance is enough."""
    rows = results.choice("floors")
    numbers = {r["data"]: {k: float(v) for k, v in r.items() if k != "data"} for r in rows}
    lost = [d for d, v in numbers.items() if v["label-free"] < v["Random"]]
    enough = [d for d, v in numbers.items() if v["Variance"] >= v["label-free"] - 0.02]
    worse = [d for d, v in numbers.items() if v["Variance"] < v["Random"]]
    no_gain = [
        d
        for d, v in numbers.items()
        if max(v[m] for m in ("label-free", "Variance", "LapScore", "MCFS", "default"))
        < v["Random"] + 0.02
    ]
    losses = [f"{d} (by {numbers[d]['Random'] - numbers[d]['label-free']:.3f})" for d in lost]
    return (
        f"- **The largest variances are enough** (at most 0.02 below the choice) on "
        f"{len(enough)} of {len(numbers)}: {', '.join(enough)}.\n"
        f"- **They are worse than random features** on {len(worse)}: {', '.join(worse)}.\n"
        f"- **The choice without labels loses to random features** on {len(lost)}: "
        f"{', '.join(losses)}.\n"
        f"- **Nothing in the table is more than 0.02 above random features** on {len(no_gain)}: "
        f"{', '.join(no_gain) if no_gain else 'none'}.\n"
    )


def describe_regret(results: Results) -> str:
    """The choice without labels, over the best point of the paper's grid picked with labels."""
    rows = {row["data"]: row for row in results.choice("regret")}
    overall = rows.pop("mean (without the held out)")
    held_out = {name: rows.pop(name) for name in HELD_OUT}
    fixed = max(float(v) for k, v in overall.items() if k.startswith("gamma"))
    worst = min(rows, key=lambda d: float(rows[d]["label-free"]))
    best = max(rows, key=lambda d: float(rows[d]["label-free"]))
    return (
        f"Its accuracy, divided by that of the best point of the paper's grid, which is picked "
        f"with labels, is {float(overall['label-free']):.3f} on average over {len(rows)} data "
        f"sets: {float(rows[best]['label-free']):.2f} at best ({best}), "
        f"{float(rows[worst]['label-free']):.2f} at worst ({worst}). On two held-out sets it is "
        + " and ".join(f"{float(row['label-free']):.2f}" for row in held_out.values())
        + f". The best fixed gamma, with the number of classes, reaches {fixed:.3f} on the first "
        f"{len(rows)}; `SPCAFS` with default settings {float(overall['default']):.3f}.\n"
    )


def describe_flat(results: Results) -> str:
    """How much accuracy moves between 50 and 100 features."""
    curves: dict[tuple[str, str], list[float]] = {}
    for row in results.study("tuned"):
        if row["method"] != "All features" and row["acc_mean"] and int(float(row["k"])) >= 50:
            curves.setdefault((row["method"], row["data"]), []).append(float(row["acc_mean"]))
    flat = sum(max(values) - min(values) <= FLAT for values in curves.values())
    return (
        f"- **Accuracy is flat over a wide range of k**: from 50 to 100 features it changes by at "
        f"most {FLAT:g} on {flat} of {len(curves)} curves of the "
        f"[study](evaluation.md#the-curves). The exact number matters little.\n"
    )


def data_sets(results: Results) -> str:
    """The paper's six."""
    rows = [
        (row["data"], row["instances"], row["features"], row["classes"], row["scaling"])
        for row in results.study("table2")
    ]
    return markdown_table(("data", "samples", "features", "classes", "values"), rows)


def cut_grids(results: Results) -> str:
    """Where a method's grid is smaller than the paper's, and why."""
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


def _seconds_per_fit(results: Results) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in results.study("timing"):
        if row["role"] == "default" and float(row["fits"]):
            seconds = float(row["fit_seconds"]) / float(row["fits"])
            found.setdefault(row["method"], {})[row["data"]] = seconds
    return found


def costs(results: Results) -> str:
    """Seconds of one fit with default settings on the paper's data sets."""
    seconds = _seconds_per_fit(results)
    sizes = {
        row["data"]: f"{row['instances']}\N{MULTIPLICATION SIGN}{row['features']}"
        for row in results.study("table2")
    }
    head = ("seconds per fit", *(f"{d}<br>{sizes[d]}" for d in results.data_sets()))
    wanted = [*METHODS.values(), "Variance"]
    return markdown_table(
        head,
        [[m, *(_rounded(seconds[m][d]) if d in seconds[m] else "" for d in sizes)] for m in wanted],
    )


def cost_of(results: Results, name: str) -> str:
    """One method: seconds per fit on the six sets, and the growth."""
    seconds = _seconds_per_fit(results)[name]
    table = markdown_table(
        ("data", "samples", "features", "seconds per fit"),
        [
            (row["data"], row["instances"], row["features"], _rounded(seconds[row["data"]]))
            for row in results.study("table2")
            if row["data"] in seconds
        ],
    )
    growth = next(row for row in results.study("table1") if row["method"] == name)
    text = (
        f"Default settings, one BLAS thread. Measured growth: {_growth_in(growth, 'samples')}, "
        f"{_growth_in(growth, 'features')}; the paper's table has {growth['printed']}.\n"
    )
    return f"{table}\n{text}{_against_packages(results, name)}"


def _growth_in(growth: dict[str, str], size: str) -> str:
    """The exponent of one size with its interval, or why there is none."""
    sizes = [int(at) for at, t in json.loads(growth[f"seconds_by_{size}"]).items() if t is not None]
    if not growth[f"exponent_in_{size}"]:
        return f"{size}: {growth[f'remark_{size}']}"
    interval = growth.get(f"half_interval_{size}")
    half = f" ± {float(interval):.1f}" if interval else ""
    power = f"{float(growth[f'exponent_in_{size}']):.1f}{half}"
    return f"{size} to the power {power} (up to {max(sizes):,})"


def _against_packages(results: Results, name: str) -> str:
    """What `make bench` measured for the method, where it does."""
    cases = results.cases()
    label = {"LapScore": "LaplacianScore"}.get(name, name)
    text = ""
    case = cases.get(f"{label} 2000 x 1000 against packages")
    if case:
        theirs = case["skfeature-chappers"]["seconds"]
        text += (
            f"\n2000 x 1000: {case['ours_s']:.2g} s, `skfeature-chappers` {theirs:.2g} s "
            f"(`make bench`)."
        )
    large = cases.get(f"{label} 50,000 x 500")
    if large:
        text += f" 50,000 x 500: {large['seconds']:.0f} s, {large['peak_mb']:.0f} MB with X."
    return f"{text}\n" if text else ""


def _rounded(seconds: float) -> str:
    return (
        f"{seconds:.3f}"
        if seconds < 0.1
        else f"{seconds:.2f}"
        if seconds < 10
        else f"{seconds:.0f}"
    )


def describe_speed(results: Results) -> str:
    """The two solvers of SPCAFS against each other, and against PCA."""
    cases = results.cases()
    case = cases["SRBCT 83 x 2308, m = 3"]
    wide = cases["against PCA: planted 300 x 200,000, m = 10"]
    weak, near = (
        cases[f"2600 x 2200, m = 99, gamma/lambda_1 = {share}"] for share in ("0.01", "0.03")
    )
    return (
        f"On SRBCT (83 x 2308, m = 3) the dense solver takes {case['theirs_s']:.0f} s for "
        f"{case['dense_steps']} steps, the block solver {case['ours_s']:.2f} s for "
        f"{case['block_steps']}, {case['faster']:.0f} times less, and {case['same_top_100']} of "
        f"their 100 best features are the same. Compared with scikit-learn's PCA with as many "
        f"components, the block solver takes {wide['times']:.2f} times as long on 300 x "
        f"200,000 (m = 10), and on 2600 x 2200 (m = 99) {weak['times_pca']:.2f} or "
        f"{near['times_pca']:.2f} times, the latter where hundreds of rows become zero.\n"
    )
