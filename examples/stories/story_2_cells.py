"""
Single cells: ten genes that name the cells
===========================================

You have an ``.h5ad`` file with cells from blood. Before anybody clusters or annotates them, you
want to know which genes carry the differences: for a panel with a few probes, or to make
everything after it faster and easier to read. This story selects genes without cell types, and
then compares them with the textbook.
"""

# %%
# The data are 700 of the blood cells of Zheng et al. (2017) that come with scanpy. To run it
# yourself:
#
# ``pip install "keepers[all]" scanpy``
#
# The file
# --------
#
# We write a file as it is after the usual first steps: normalised counts, as logarithms, in a
# sparse matrix. (In scanpy's copy they are in ``raw``, because X has been scaled.) The file has
# the measurements of each cell, but neither types nor clusters: those we keep aside for the end.

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
# ``keepers check`` is a command for the terminal. This function runs a command in our folder and
# prints what the terminal would show, broken into lines that fit on this page.


def terminal(command, most_lines=40):
    """Run a command of keepers, and print the first lines that it prints."""
    program, *arguments = command.split()
    beside = shutil.which(program, path=Path(sys.executable).parent) or program
    done = subprocess.run(
        [beside, *arguments],
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
# There are no gaps, no words and no copies among the genes: a matrix of expression is a clean
# table, and nothing has to be decided.
#
# Select
# ------
#
# On the command line, from file to file. ``kept.h5ad`` has the kept genes and everything else
# that was in the file.

terminal("keepers select cells.h5ad --out kept.h5ad --report report.html", most_lines=16)

# %%
# In a scanpy pipeline, one line stands where ``highly_variable_genes`` would stand. It writes
# columns into ``var``:

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
# The report shows the ranking, how the number was found, and the cells in a plane. Move the
# slider, or search for a gene.

selector = keepers.AutoSelector(random_state=0).fit(cells)
keepers.report(selector, cells.X, feature_names=cells.var_names, title="700 blood cells")

# %%
# What was kept, and why
# ----------------------
#
# The score of a gene says how smoothly it changes from a cell to the cells that are most alike in
# all genes. Noise scores low, and so does a gene that is the same everywhere. A gene that
# resembles a better one is skipped: of the many genes of monocytes, say, the first stands for the
# others.
#
# In which cells are the first ten expressed? The map is a t-SNE of the ten genes alone.

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
# First the textbook. These are genes by which blood cells are usually told apart. How many are in
# our file, how many are among the first ten, and how many would be among ten genes drawn at
# random?

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
# Then the types, which the authors found with other, purified cells. Left: the map of the ten
# genes, now with the types. Right: the mean of each gene in each type, from its lowest to its
# highest.

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
# And a number. Cluster the cells by k-means into as many groups as there are types, with the
# first 10, 20, ... genes, with as many genes at random, and with all. Normalised mutual
# information with the types is 1 if the groups are the types, and near 0 if they have nothing to
# do with them.

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
# - Ten genes, chosen without labels, group the cells about as well as all 765 do, and far better
#   than ten at random. Several of them are textbook markers.
# - **To use:** for a small panel the first ten or twenty; for an analysis that goes on, the
#   number that the command chose, or more. Between these numbers the agreement with the types
#   hardly changes.
# - **Uncertain:** the advantage shrinks with the number of genes. This file has only genes that
#   were chosen before as variable, so that a hundred of them at random are not bad either; in a
#   file with all genes the difference is larger (:doc:`/genes-without-labels`).
# - **Not found:** the kinds of T cells. In the map they lie in each other, and no gene of the ten
#   separates them. Whoever needs them should look at the T cells alone, and select again.
# - The types are themselves a computation, by likeness to purified cells. Where groups and types
#   disagree, either may be wrong.

folder.cleanup()

# sphinx_gallery_thumbnail_number = 2
