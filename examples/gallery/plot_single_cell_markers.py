"""
Marker genes of single cells, without knowing the cells
=======================================================

A droplet sequencer reads thousands of genes in every cell, and the question is always the same:
which kinds of cells are there, and which genes give them away? Marker genes are usually sought
*after* the cells were clustered and named. Here they are kept beforehand, from the counts alone;
the names of the cells only serve to check.
"""

# %%
# If scanpy is installed, this page uses the 700 blood cells that come with it (a small part of the
# 68,000 of Zheng et al., 2017), as log-normalised counts in a sparse matrix. If not, the page is
# made with bundled data of another kind: gene expression of 83 tumours, whole samples instead of
# cells. What is printed below says which it was.

from importlib.util import find_spec
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from keepers import SPCAFS, datasets

INK, MUTED = "#1f242a", "#59626d"
COLOURS = (
    "#332288", "#2e93cc", "#117733", "#d99000", "#c8341b", "#aa4499", "#44aa99", "#7f7a1c",
    "#6d7580", "#1f242a",
)  # fmt: skip
plt.rcParams.update(
    {"figure.constrained_layout.use": True, "axes.titlelocation": "left", "text.color": INK}
)


class Cells(NamedTuple):
    """Expression, a map to draw it on, and names for checking."""

    what: str
    X: Any
    genes: np.ndarray
    kinds: np.ndarray
    plane: np.ndarray


def blood_cells():
    """Scanpy's pbmc68k_reduced, with the map that comes with it."""
    import scanpy

    cells = scanpy.datasets.pbmc68k_reduced()
    X = cells.raw.X.astype(np.float64)
    kinds = np.array(cells.obs["bulk_labels"], dtype=str)
    return Cells("cells", X, np.array(cells.raw.var_names), kinds, cells.obsm["X_umap"])


def tumours():
    """Our bundled tumours, on the map of their own principal components."""
    ratios, genes, kinds = datasets.load("srbct")
    X = np.log2(ratios)
    return Cells("tumour samples", X, genes, kinds.astype(str), PCA(2).fit_transform(X))


if find_spec("scanpy"):
    cells = blood_cells()
    print("Made with the blood cells that come with scanpy.")
else:
    cells = tumours()
    print("scanpy is not installed: made with the bundled tumours instead. pip install scanpy")
print(f"{cells.X.shape[0]} {cells.what}, {cells.X.shape[1]} genes, {len(set(cells.kinds))} kinds")

# %%
# Which genes are kept, and where they are on
# -------------------------------------------
#
# Sixteen genes, no two of which correlate above 0.8. Each panel is the same map of all cells; the
# darker, the more of that gene.

KEPT = 16
selector = SPCAFS(KEPT, max_correlation=0.8, random_state=0).fit(cells.X)
kept = selector.top().indices
expression = cells.X[:, kept]
expression = expression.toarray() if hasattr(expression, "toarray") else expression

figure, axes = plt.subplots(4, 4, figsize=(9.6, 8.4))
for axis, values, gene in zip(axes.ravel(), expression.T, cells.genes[kept], strict=True):
    order = np.argsort(values)  # the strongest on top
    axis.scatter(
        *cells.plane[order].T, c=values[order], s=1400 / (60 + len(values)) + 4, cmap="magma_r"
    )
    axis.set_title(gene, fontsize=10)
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
figure.suptitle(
    f"{KEPT} of {cells.X.shape[1]} genes kept without labels, drawn on the map of all {cells.what}",
    x=0.01,
    ha="left",
)
plt.show()

# %%
# Textbooks name markers of blood cells. How many of them were found without being asked for?

TEXTBOOK = {
    *("CD3D", "IL7R", "CD8A", "CD14", "LYZ", "FCGR3A", "MS4A1", "CD79A", "CD79B", "GNLY", "NKG7"),
    *("FCER1A", "CST3", "PPBP"),
}
measured = TEXTBOOK & set(cells.genes)
hit = [gene for gene in cells.genes[kept] if gene in TEXTBOOK]
print(f"{len(measured)} textbook markers are in the table; kept are {', '.join(hit) or 'none'}.")

# %%
# Do they mark anything?
# ----------------------
#
# Now the names come out. Left: the kinds on the map. Right: the mean of each kept gene in each
# kind, on a scale from its lowest to its highest. A marker is a row with few dark fields.

kinds, sizes = np.unique(cells.kinds, return_counts=True)
kinds = kinds[np.argsort(-sizes)]
means = np.array([expression[cells.kinds == kind].mean(axis=0) for kind in kinds])
scaled = (means - means.min(axis=0)) / np.ptp(means, axis=0)
rows = np.lexsort((-scaled.max(axis=0), scaled.argmax(axis=0)))

figure, (plane, heat) = plt.subplots(1, 2, figsize=(10.6, 5.4), width_ratios=(1.1, 1))
for kind, colour in zip(kinds, COLOURS, strict=False):
    chosen = cells.kinds == kind
    plane.scatter(
        *cells.plane[chosen].T,
        s=1400 / (60 + len(chosen)) + 6,
        color=colour,
        edgecolor="white",
        linewidth=0.2,
        label=kind,
    )
plane.set(xticks=[], yticks=[])
plane.spines[:].set_visible(False)
plane.set_title(f"{len(kinds)} kinds (not used)")
plane.legend(
    loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False, fontsize=8, markerscale=2
)
heat.imshow(scaled[:, rows].T, cmap="magma_r", aspect="auto", vmin=0, vmax=1)
heat.set_yticks(range(KEPT), cells.genes[kept][rows], fontsize=9)
heat.set_xticks(range(len(kinds)), kinds, rotation=40, ha="right", fontsize=8)
heat.tick_params(length=0)
heat.spines[:].set_visible(False)


def variance_between_kinds(columns):
    """Share of the variance of each column that the kinds explain."""
    values = cells.X[:, columns]
    values = values.toarray() if hasattr(values, "toarray") else values
    fitted = np.zeros_like(values)
    for kind in kinds:
        fitted[cells.kinds == kind] = values[cells.kinds == kind].mean(axis=0)
    spread = values.var(axis=0)
    return fitted.var(axis=0)[spread > 0] / spread[spread > 0]


ours = np.median(variance_between_kinds(kept))
every = np.median(variance_between_kinds(np.arange(cells.X.shape[1])))
heat.set_title(
    f"The kinds explain {ours:.0%} of a kept gene,\n{every:.0%} of genes at large (medians)"
)
plt.show()

# sphinx_gallery_thumbnail_number = 2
