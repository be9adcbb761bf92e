"""Gains over random selection, and the effect of scaling and of a limit on correlations."""

import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from figures.drawing import BLUE, GREEN, GREY, INK, ORANGE, PINK, board, keep_figure, keep_text
from figures.kept_results import Results, markdown_table, mean
from keepers import SPCAFS, AllFeatures, VarianceScore, datasets
from keepers.exceptions import InactiveRowsWarning
from keepers.metrics import clustering_accuracy

__all__ = ["write"]

SHOWN = {
    "label-free": ("chosen without labels", BLUE, "o"),
    "default": ("SPCAFS, default", PINK, "D"),
    "Variance": ("largest variance", ORANGE, "s"),
    "LapScore": ("LapScore", GREY, "^"),
    "MCFS": ("MCFS, with the number of classes", GREEN, "v"),
}


K_SHOWN = "50"
N_KEPT = 20
N_STARTS = 10
SCALED_TABLES = ("digits", "srbct", "srbct, samples at unit length")


def write(folder: Path) -> list[Path]:
    """One figure, three tables."""
    results = Results()
    return [
        keep_figure(draw_gains(results), folder / "gains.svg"),
        keep_text(folder / "chosen-settings.md", chosen_settings(results)),
        keep_text(folder / "ranks-summary.md", describe_ranks(results)),
        keep_text(folder / "scaling-measured.md", scaling_measured()),
    ]


def chosen_settings(results: Results) -> str:
    """Settings chosen without labels for 50 features."""
    rows = []
    for path in sorted(results.without_labels.glob("*.csv"), key=lambda path: path.stem.lower()):
        for row in results.choice(path.stem):
            if row.get("method") == "label-free" and row["k"] == K_SHOWN:
                chosen = json.loads(row["settings"])
                keys = ("scaling", "max_correlation", "n_components")
                rows.append((row["data"], *(f"{chosen[key]}" for key in keys)))
    return markdown_table(("data", "`scaling`", "`max_correlation`", "`n_components`"), rows)


def describe_ranks(results: Results) -> str:
    """Which methods differ significantly on six data sets."""
    rows = [r for r in results.study("ranks") if r["tuning"] == "tuned" and r["measure"] == "acc"]
    ranks = {row["method"]: float(row["average_rank"]) for row in rows}
    difference = float(rows[0]["critical_difference"])
    first = min(ranks, key=lambda method: ranks[method])
    apart = [m for m, rank in ranks.items() if rank - ranks[first] > difference]
    return (
        f"Tuned, {first} has the best average rank ({ranks[first]:.1f} of {len(ranks)}). Nemenyi's "
        f"critical difference for {rows[0]['data_sets']} data sets is {difference:.1f} ranks, so "
        f"that only {' and '.join(apart)} are significantly worse; **this study does not separate "
        f"the others.**\n"
    )


def scaling_measured() -> str:
    """ACC with 20 features on the two bundled tables, by scaling and limit on correlations."""
    settings = {
        "values as they are": {},
        "as they are, correlations up to 0.8": {"max_correlation": 0.8},
        "half way (`scaling=0.5`), 0.8": {"scaling": 0.5, "max_correlation": 0.8},
        "same variance (`scaling=1`), 0.8": {"scaling": 1.0, "max_correlation": 0.8},
    }
    rows = {name: [name] for name in (*settings, "*largest variance*", "*all features*")}
    for source in SCALED_TABLES:
        X, _, y = datasets.load(source.split(",")[0])
        X = X[:, X.std(axis=0) > 0]
        if "unit length" in source:
            X = normalize(X)
        for name, setting in settings.items():
            with warnings.catch_warnings():
                # The penalty is the default for all of them, however few rows it leaves active.
                warnings.simplefilter("ignore", InactiveRowsWarning)
                rows[name].append(_accuracy(SPCAFS(N_KEPT, **setting).fit(X), X, y))
        rows["*largest variance*"].append(_accuracy(VarianceScore(N_KEPT).fit(X), X, y))
        rows["*all features*"].append(_accuracy(AllFeatures().fit(X), X, y))
    return markdown_table((f"{N_KEPT} features kept", *SCALED_TABLES), rows.values())


def _accuracy(selector, X, y) -> str:
    kept = X[:, selector.support_]
    runs = [
        KMeans(len(set(y)), n_init=1, random_state=seed).fit_predict(kept)
        for seed in range(N_STARTS)
    ]
    return f"{mean(clustering_accuracy(y, found) for found in runs):.2f}"


def draw_gains(results: Results):
    """A row a data set, a mark a method: accuracy above or below random features."""
    rows = results.choice("floors")
    gains = np.array([[float(r[m]) - float(r["Random"]) for m in SHOWN] for r in rows])
    order = np.argsort(gains[:, 0])
    figure, axis = board(1, 1, (7.6, 5.2))
    heights = np.arange(len(rows))
    axis.hlines(heights, gains[order].min(1), gains[order].max(1), color=GREY, lw=0.8, alpha=0.5)
    for column, (label, colour, mark) in enumerate(SHOWN.values()):
        size = 62 if column == 0 else 34
        axis.scatter(
            gains[order, column], heights, s=size, c=colour, marker=mark, label=label, zorder=3
        )
    axis.axvline(0, color=INK, lw=1)
    axis.set_yticks(heights, [rows[i]["data"] for i in order])
    axis.set_xlabel("ACC minus that of random features (mean of 50 and 100 features)")
    axis.set_ylim(-0.6, len(rows) - 0.4)
    axis.legend(loc="lower right")
    axis.text(-0.004, len(rows) - 0.55, "worse than random", ha="right", color=INK, fontsize=8.5)
    axis.text(0.004, len(rows) - 0.55, "better", ha="left", color=INK, fontsize=8.5)
    return figure
