"""
Forty genes instead of two thousand
===================================

A gene expression study measures thousands of genes of a few dozen patients, and most genes are
unrelated to the differences between the patients. A short list can be read, looked up and measured
again. To check the list, we order the samples by the kept genes alone, and see whether tumours of
one type are next to each other.
"""

# %%
# The table has 83 small round blue cell tumours of childhood and 2308 genes. The four types
# (Burkitt lymphoma, Ewing sarcoma, neuroblastoma, rhabdomyosarcoma) look alike under a microscope.
# ``SPCAFSCV`` chooses its settings from the table itself. The types only colour the figures.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from scipy.cluster.hierarchy import dendrogram, linkage
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score

from keepers import SPCAFSCV, datasets

INK, MUTED = "#1f242a", "#59626d"
COLOURS = {"BL": "#0072b2", "EWS": "#d55e00", "NB": "#009e73", "RMS": "#cc79a7"}
MARKS = {"BL": "o", "EWS": "s", "NB": "^", "RMS": "D"}
plt.rcParams.update(
    {"figure.constrained_layout.use": True, "axes.titlelocation": "left", "text.color": INK}
)

ratios, names, tumour = datasets.load("srbct")
X = np.log2(ratios)
KEPT = 40
selector = SPCAFSCV(KEPT, random_state=0).fit(X)
best = selector.best_params_
print(
    f"{len(selector.choice_.trials)} settings were compared without labels; the best has "
    f"{selector.best_estimator_.n_components_} components, scaling {best['scaling']:g} and "
    f"max_correlation {best['max_correlation']:g}."
)

# %%
# The kept genes
# --------------
#
# Rows are genes, columns are samples, both in the order of a hierarchical clustering. The strip at
# the top shows the type of each sample, which was not used.

kept = selector.top().indices
values = X[:, kept] - X[:, kept].mean(axis=0)
of_samples = linkage(values, "average", metric="cosine", optimal_ordering=True)
of_genes = linkage(values.T, "average", metric="correlation", optimal_ordering=True)
genes = dendrogram(of_genes, no_plot=True)["leaves"]
kinds = list(COLOURS)

figure, (tree, strip, heat) = plt.subplots(
    3, 1, figsize=(9.6, 8.2), height_ratios=(1.3, 0.28, 7), gridspec_kw={"hspace": 0}
)
samples = dendrogram(
    of_samples,
    ax=tree,
    no_labels=True,
    color_threshold=0,
    above_threshold_color=MUTED,
)["leaves"]
tree.set_axis_off()
codes = np.array([kinds.index(kind) for kind in tumour])[samples]
strip.imshow(codes[None], aspect="auto", cmap=ListedColormap(list(COLOURS.values())))
strip.set(xticks=[], yticks=[0], yticklabels=["tumour"])
strip.spines[:].set_visible(False)
image = heat.imshow(values[samples][:, genes].T, aspect="auto", cmap="RdBu_r", vmin=-4, vmax=4)
heat.set_yticks(range(KEPT), names[kept][genes], fontsize=7)
heat.set(xticks=[], xlabel=f"{len(X)} samples, ordered by these {KEPT} genes alone")
heat.spines[:].set_visible(False)
for axis in (strip, heat):
    axis.tick_params(length=0, colors=MUTED)
figure.colorbar(image, ax=heat, label="log2 ratio, centred", shrink=0.5, pad=0.02)
figure.legend(
    [plt.Rectangle((0, 0), 1, 1, color=COLOURS[kind]) for kind in kinds],
    kinds,
    title="tumour (only used for these colours)",
    loc="outside lower center",
    ncols=4,
    frameon=False,
)


def share_alike(order):
    """How often two samples next to each other are of one kind."""
    return float(np.mean(tumour[order][1:] == tumour[order][:-1]))


rng = np.random.default_rng(0)
by_chance = np.mean([share_alike(rng.permutation(len(X))) for _ in range(1000)])
figure.suptitle(
    f"Next to each other, samples are of one kind in {share_alike(samples):.0%} of cases "
    f"({by_chance:.0%} in random order)",
    x=0.01,
    ha="left",
)
plt.show()

# %%
# For comparison, the order by all genes:

centred = X - X.mean(axis=0)
by_all = dendrogram(
    linkage(centred, "average", metric="cosine", optimal_ordering=True), no_plot=True
)["leaves"]
print(
    f"Ordered by all {X.shape[1]} genes, neighbours are of one kind in {share_alike(by_all):.0%}."
)

# %%
# Before and after
# ----------------
#
# The two leading principal components of all genes, and of the kept genes. The silhouette, from -1
# to 1, measures how well the types are separated in each table (not only in the plane).

figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.5))
for axis, table, title in (
    (axes[0], X, f"All {X.shape[1]} genes"),
    (axes[1], selector.transform(X), f"The {KEPT} kept"),
):
    plane = PCA(2).fit_transform(table)
    for kind in kinds:
        axis.scatter(
            *plane[tumour == kind].T,
            color=COLOURS[kind],
            marker=MARKS[kind],
            s=34,
            edgecolor="white",
            linewidth=0.6,
            label=kind,
        )
    axis.set(xlabel="component 1", ylabel="component 2", xticks=[], yticks=[])
    axis.set_title(f"{title}: silhouette {silhouette_score(table, tumour):.2f}")
    axis.spines[["top", "right"]].set_visible(False)
axes[1].legend(
    title="tumour\n(not used)", loc="center left", bbox_to_anchor=(1, 0.5), frameon=False
)
plt.show()
