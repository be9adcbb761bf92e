"""
Single cells: ten genes that identify the cells
===============================================

You have an ``.h5ad`` file with blood cells. Before you cluster or annotate them, you want to know
which genes carry the differences: for a panel with a few probes, or to make the analysis faster
and easier to read. This tutorial selects genes without cell types, and then compares them with
the textbook.
"""

# %%
# The data are 700 of the blood cells of Zheng et al. (2017) that come with scanpy. To run it
# yourself, install keepers (:doc:`/install`) and
#
# ``pip install scanpy``
#
# The file
# --------
#
# We write a file as it is after the usual first steps: logarithms of normalised counts in a
# sparse matrix. (In scanpy's copy they are in ``raw``, because X has been scaled.) The file has
# neither types nor clusters; we use those only at the end.

import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scanpy
from sklearn.cluster import KMeans
from sklearn.manifold import TSNE
from sklearn.metrics import normalized_mutual_info_score

import keepers
import keepers.anndata

folder = tempfile.TemporaryDirectory()
here = Path(folder.name)

original = scanpy.datasets.pbmc68k_reduced()
types = original.obs["bulk_labels"].astype(str).to_numpy()  # not in the file
cells = original.raw.to_adata()
cells = anndata.AnnData(cells.X, cells.obs[["n_genes", "n_counts", "percent_mito"]], cells.var[[]])
cells.write_h5ad(here / "cells.h5ad")
print(cells)
print(f"zeros: {1 - cells.X.nnz / np.prod(cells.shape):.0%}")

# %%
# Look at it
# ----------
#
# ``keepers check`` is a command for the terminal. This function runs a command and prints what
# the terminal would show, wrapped to fit on this page.


def terminal(command, most_lines=40):
    """Run a command of keepers and print the first lines of its output."""
    program, *arguments = command.split()
    found = shutil.which(program, path=Path(sys.executable).parent) or program
    done = subprocess.run(
        [found, *arguments],
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    print(f"$ {command}")
    for line in lines[:most_lines]:
        print(
            line.expandtabs(15) if "\t" in line else textwrap.fill(line, 96, subsequent_indent="  ")
        )
    if len(lines) > most_lines:
        print(f"... and {len(lines) - most_lines} more lines")


terminal("keepers check cells.h5ad")

# %%
# The genes have no gaps, no text and no copies, so the table is ready.
#
# Select
# ------
#
# On the command line, ``kept.h5ad`` gets the kept genes and everything else in the file.

terminal("keepers select cells.h5ad --out kept.h5ad --report report.html", most_lines=16)

# %%
# In a scanpy pipeline, one line replaces ``highly_variable_genes``. It writes columns into
# ``var``:

cells = anndata.read_h5ad(here / "cells.h5ad")
keepers.anndata.select(cells)
ranked = cells.var.sort_values("keepers_rank")
kept = list(ranked.index[ranked["keepers_selected"]])
print(cells.uns["keepers"]["summary"])
print(
    "the same genes as the command:",
    set(kept) == set(anndata.read_h5ad(here / "kept.h5ad").var_names),
)
print(ranked.head(10).round(2).to_string())

# %%
# The report shows the ranking, how the number was chosen, and the cells in two components. Move
# the slider, or search for a gene.

selector = keepers.AutoSelector(random_state=0).fit(cells)
keepers.report(selector, cells.X, feature_names=cells.var_names, title="700 blood cells")

# %%
# Why these genes
# ---------------
#
# A gene scores high if it takes similar values in similar cells. Noise scores low. A gene that
# resembles a better one ranks lower: one monocyte gene, for example, represents the others.
#
# Where are the first ten expressed? The map is a t-SNE of these ten genes alone.

TEN = kept[:10]
values = cells[:, TEN].to_df()
plane = TSNE(random_state=0, init="pca", perplexity=40).fit_transform(values)

figure, axes = plt.subplots(2, 5, figsize=(10.6, 4.8), layout="constrained")
for axis, gene in zip(axes.ravel(), TEN, strict=True):
    strongest_last = np.argsort(values[gene].to_numpy())
    axis.scatter(
        *plane[strongest_last].T, c=values[gene].to_numpy()[strongest_last], s=5, cmap="magma_r"
    )
    axis.set_title(gene, fontsize=11, loc="left")
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_color("#d5d9de")
figure.suptitle(
    "Every panel is the same map of 700 cells; dark cells express the gene", x=0.01, ha="left"
)
plt.show()

# %%
# Check it with what was not used
# -------------------------------
#
# First, the textbook. These genes are commonly used to distinguish blood cells. How many are in
# our file, how many are among the first ten, and how many would be among ten random genes?

TEXTBOOK = {
    *("CD3D", "IL7R", "CD8A", "CD14", "LYZ", "FCGR3A", "MS4A1", "CD79A", "CD79B", "GNLY", "NKG7"),
    *("FCER1A", "CST3", "PPBP"),
}
measured = TEXTBOOK & set(cells.var_names)
hits = [gene for gene in TEN if gene in TEXTBOOK]
print(f"{len(measured)} textbook markers are in the file.")
print(f"Among the first ten: {len(hits)} ({', '.join(hits)}).")
print(f"Expected among ten at random: {10 * len(measured) / cells.n_vars:.1f}")

# %%
# Next, the types, which the authors found by comparison with purified cells. Left: the map of the
# ten genes, now coloured by type. Right: the mean of each gene in each type, scaled from lowest
# to highest.

COLOURS = (
    "#c8341b", "#d99000", "#332288", "#117733", "#2e93cc", "#44aa99", "#aa4499", "#7f7a1c",
    "#1f242a", "#8a929c",
)  # fmt: skip
kinds = pd.Series(types).value_counts().index
means = values.groupby(types).mean().loc[kinds]
scaled = (means - means.min()) / (means.max() - means.min())

figure, (points, heat) = plt.subplots(
    1, 2, figsize=(10.6, 5.2), width_ratios=(1.15, 1), layout="constrained"
)
for kind, colour in zip(kinds, COLOURS, strict=True):
    points.scatter(*plane[types == kind].T, s=12, color=colour, label=kind)
points.set(xticks=[], yticks=[])
points.spines[:].set_visible(False)
points.set_title("Cell types (not used to select)", loc="left")
points.legend(
    loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False, fontsize=8, markerscale=2
)
heat.imshow(scaled.T, cmap="magma_r", aspect="auto", vmin=0, vmax=1)
heat.set_yticks(range(len(TEN)), TEN)
heat.set_xticks(range(len(kinds)), kinds, rotation=40, ha="right", fontsize=8)
heat.set_title("Mean expression, by type", loc="left")
heat.tick_params(length=0)
heat.spines[:].set_visible(False)
plt.show()

# %%
# Finally, a number. Cluster the cells by k-means, with one cluster per type, on the first 10,
# 20, ... genes, on the same number of random genes, and on all genes. Normalised mutual
# information is 1 if the clusters are the types, and near 0 if they are unrelated.

table = cells.to_df()


def agreement(genes):
    """Mean agreement of k-means with the types, over 10 starts."""
    starts = [KMeans(len(kinds), n_init=1, random_state=seed) for seed in range(10)]
    groups = [start.fit_predict(table[genes]) for start in starts]
    return np.mean([normalized_mutual_info_score(types, group) for group in groups])


rng = np.random.default_rng(0)
print("genes   first   at random")
for number in (10, 20, 50, len(kept)):
    drawn = [agreement(list(rng.choice(table.columns, number, replace=False))) for _ in range(5)]
    print(f"{number:5}   {agreement(list(ranked.index[:number])):.2f}    {np.mean(drawn):.2f}")
print(f"{table.shape[1]:5}   {agreement(list(table.columns)):.2f}")

# %%
# Conclusion
# ----------
#
# - Ten genes, chosen without labels, group the cells about as well as all 765, and far better
#   than ten random genes. Several of them are textbook markers.
# - **Use** the first ten or twenty for a small panel. For further analysis, use the number that
#   the command chose, or more. Between these numbers the agreement with the types hardly changes.
# - **Uncertain:** the advantage shrinks with the number of genes. This file contains only genes
#   that were preselected as variable, so a hundred random ones also do well. In a file with all
#   genes the difference is larger (:doc:`/genes-without-labels`).
# - **Not found:** the kinds of T cells. They overlap in the map, and none of the ten genes
#   separates them. If you need them, select again on the T cells alone.
# - The types were themselves computed, by similarity to purified cells. Where clusters and types
#   disagree, either may be wrong.

folder.cleanup()

# sphinx_gallery_thumbnail_number = 2
