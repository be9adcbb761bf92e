"""
Marker genes of single cells, without knowing the cells
=======================================================

Single-cell sequencing measures thousands of genes in every cell. Marker genes of cell types are
usually identified *after* the cells were clustered and annotated. Here they are selected before,
from the expression values alone. The annotations are only used to check the result.
"""

# %%
# The table is scanpy's ``pbmc68k_reduced``, which comes with that package: 700 blood cells, a small
# part of the 68,000 of Zheng et al. (2017), and 765 genes that vary among them, as log-normalised
# counts in a sparse matrix.
# ``pip install scanpy`` is all it needs; nothing is downloaded.

import matplotlib.pyplot as plt
import numpy as np
import scanpy

from keepers import SPCAFS

INK = "#1f242a"
COLOURS = (
    "#332288", "#2e93cc", "#117733", "#d99000", "#c8341b", "#aa4499", "#44aa99", "#7f7a1c",
    "#6d7580", "#1f242a",
)  # fmt: skip
plt.rcParams.update(
    {"figure.constrained_layout.use": True, "axes.titlelocation": "left", "text.color": INK}
)

cells = scanpy.datasets.pbmc68k_reduced()
X = cells.raw.X.astype(np.float64)
genes = np.array(cells.raw.var_names)
types = np.array(cells.obs["bulk_labels"], dtype=str)
umap = cells.obsm["X_umap"]  # only to draw on
print(f"{X.shape[0]} cells, {X.shape[1]} genes, {len(set(types))} types of cells")

# %%
# The kept genes and where they are expressed
# -------------------------------------------
#
# We keep sixteen genes, with no correlation above 0.8 between them. Each panel is the same map of
# all cells; dark cells express the gene strongly.

KEPT = 16
selector = SPCAFS(KEPT, max_correlation=0.8, random_state=0).fit(X)
kept = selector.top().indices
expression = X[:, kept].toarray()

figure, axes = plt.subplots(4, 4, figsize=(9.6, 8.4))
for axis, values, gene in zip(axes.ravel(), expression.T, genes[kept], strict=True):
    order = np.argsort(values)  # the strongest on top
    axis.scatter(*umap[order].T, c=values[order], s=6, cmap="magma_r")
    axis.set_title(gene, fontsize=10)
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
figure.suptitle(f"{KEPT} of {X.shape[1]} genes kept without labels", x=0.01, ha="left")
plt.show()

# %%
# How many of the known markers of blood cells are among them?

TEXTBOOK = {
    *("CD3D", "IL7R", "CD8A", "CD14", "LYZ", "FCGR3A", "MS4A1", "CD79A", "CD79B", "GNLY", "NKG7"),
    *("FCER1A", "CST3", "PPBP"),
}
measured = TEXTBOOK & set(genes)
hit = [gene for gene in genes[kept] if gene in TEXTBOOK]
print(f"{len(measured)} textbook markers are in the table; kept are {', '.join(hit) or 'none'}.")

# %%
# Are they markers?
# -----------------
#
# Only now do we use the annotations. Left: the types on the map. Right: the mean of each kept gene
# in each type, scaled from its lowest to its highest. A marker is a row with few dark fields.

names, sizes = np.unique(types, return_counts=True)
names = names[np.argsort(-sizes)]
means = np.array([expression[types == name].mean(axis=0) for name in names])
scaled = (means - means.min(axis=0)) / np.ptp(means, axis=0)
rows = np.lexsort((-scaled.max(axis=0), scaled.argmax(axis=0)))

figure, (plane, heat) = plt.subplots(1, 2, figsize=(10.6, 5.4), width_ratios=(1.1, 1))
for name, colour in zip(names, COLOURS, strict=True):
    chosen = types == name
    plane.scatter(
        *umap[chosen].T,
        s=8,
        color=colour,
        edgecolor="white",
        linewidth=0.2,
        label=name,
    )
plane.set(xticks=[], yticks=[])
plane.spines[:].set_visible(False)
plane.set_title(f"{len(names)} types (not used)")
plane.legend(
    loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False, fontsize=8, markerscale=2
)
heat.imshow(scaled[:, rows].T, cmap="magma_r", aspect="auto", vmin=0, vmax=1)
heat.set_yticks(range(KEPT), genes[kept][rows], fontsize=9)
heat.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=8)
heat.tick_params(length=0)
heat.spines[:].set_visible(False)


def variance_between_types(columns):
    """Share of the variance of each column that the types explain."""
    values = X[:, columns].toarray()
    fitted = np.zeros_like(values)
    for name in names:
        fitted[types == name] = values[types == name].mean(axis=0)
    spread = values.var(axis=0)
    return fitted.var(axis=0)[spread > 0] / spread[spread > 0]


ours = np.median(variance_between_types(kept))
every = np.median(variance_between_types(np.arange(X.shape[1])))
heat.set_title(
    f"The types explain {ours:.0%} of the variance of a kept gene,\n{every:.0%} of any gene "
    "(medians)"
)
plt.show()

# sphinx_gallery_thumbnail_number = 2
