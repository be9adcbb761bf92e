"""
Select features, then cluster, in a Pipeline
============================================

Columns that are unrelated to the clusters make a clustering worse. A selector before k-means is one
more step of a scikit-learn ``Pipeline``. Whether it improves the clustering depends on the table.
This example compares it, on two tables, with two baselines: the largest variance, and random
selection.
"""

# %%
# The pipeline centres, selects and clusters, without labels. The scaler removes means but does not
# change variances, because SPCAFS ranks by variance.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from keepers import SPCAFS, RandomScore, VarianceScore, datasets, select_settings
from keepers.exceptions import DataWarning
from keepers.metrics import clustering_accuracy

RED, INK, MUTED, PALE = "#c8341b", "#1f242a", "#59626d", "#98a2ad"
plt.rcParams.update(
    {"figure.constrained_layout.use": True, "axes.titlelocation": "left", "text.color": INK}
)
warnings.filterwarnings("ignore", "Columns that do not vary", DataWarning)


def pipeline(selector, n_clusters):
    """Centre, select, cluster."""
    return Pipeline(
        [
            ("scale", StandardScaler(with_std=False)),
            ("select", selector),
            ("cluster", KMeans(n_clusters, n_init=1)),
        ]
    )


digits = datasets.load("digits")
srbct = datasets.load("srbct")
example = pipeline(SPCAFS(30, random_state=0), n_clusters=10).set_params(cluster__random_state=0)
found = example.fit_predict(digits.X)
print(f"30 of 64 pixels, 10 clusters: accuracy {clustering_accuracy(digits.y, found):.3f}")

# %%
# Accuracy against the number of features
# ---------------------------------------
#
# A selector is fitted once; ``top(k)`` then gives the best k for any k. Every point is the mean of
# ten runs of k-means. Labels are used only here, to measure the share of samples in the right
# cluster. SPCAFS is shown twice: with default settings, and with the settings that
# ``select_settings`` chooses from the table for each k (from a few hundred samples, to save time;
# with other samples the choice, and the accuracy at a given k, can differ).

REPEATS = 10


def accuracy(X, kinds, columns, repeats=REPEATS):
    """Mean accuracy of k-means on these columns, over some seeds."""
    n_clusters = len(set(kinds))
    runs = (KMeans(n_clusters, n_init=1, random_state=seed) for seed in range(repeats))
    return np.mean([clustering_accuracy(kinds, run.fit_predict(X[:, columns])) for run in runs])


def curves(X, kinds, counts):
    """Accuracy of each selector for every number of features, and with all features."""
    centred = X - X.mean(axis=0)
    some = centred[:: max(1, len(X) // 300)]
    choices = [select_settings(some, k, random_state=0) for k in counts]
    chosen = [SPCAFS(**choice.params, random_state=0).fit(centred) for choice in choices]
    columns = {
        "SPCAFS": SPCAFS(random_state=0).fit(centred),
        "largest variance": VarianceScore().fit(centred),
    }
    lines = {
        name: [accuracy(centred, kinds, one.top(k).indices) for k in counts]
        for name, one in columns.items()
    }
    lines["SPCAFS, settings from the table"] = [
        accuracy(centred, kinds, one.get_support(indices=True)) for one in chosen
    ]
    draws = [RandomScore(random_state=seed).fit(centred) for seed in range(REPEATS)]
    lines["random"] = [
        np.mean([accuracy(centred, kinds, draw.top(k).indices, repeats=1) for draw in draws])
        for k in counts
    ]
    return lines, accuracy(centred, kinds, slice(None))


LOOKS = {
    "SPCAFS": {"color": RED, "linewidth": 2.6, "marker": "o", "zorder": 4},
    "SPCAFS, settings from the table": {"color": "#d99000", "linewidth": 1.8, "marker": "D"},
    "largest variance": {"color": MUTED, "linestyle": (0, (6, 2.5)), "marker": "s"},
    "random": {"color": PALE, "linestyle": (0, (1.2, 2.2)), "marker": "^"},
}

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6))
for axis, name, X, kinds, counts in (
    (axes[0], "Digits", digits.X, digits.y, (5, 10, 20, 30, 40)),
    (axes[1], "Tumours", np.log2(srbct.X), srbct.y, (10, 20, 40, 60, 100)),
):
    lines, with_all = curves(X, kinds, counts)
    for label, values in lines.items():
        axis.plot(counts, values, markersize=5, label=label, **LOOKS[label])
    axis.axhline(with_all, color=INK, linewidth=1, label="all features")
    axis.set(xlabel="features kept", ylabel="clustering accuracy")
    axis.spines[["top", "right"]].set_visible(False)
    plain, tuned = (
        int(np.sum(np.array(lines[ours]) > np.array(lines["largest variance"])))
        for ours in ("SPCAFS", "SPCAFS, settings from the table")
    )
    axis.set_title(
        f"{name}: ahead of variance at {plain} of {len(counts)} points,\n"
        f"with settings from the table at {tuned}"
    )
handles, labels = axes[0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
plt.show()
