"""
Marker genes of single cells, without knowing the cells
=======================================================

Single-cell sequencing measures thousands of genes in every cell. Marker genes of cell types are
usually identified *after* the cells were clustered and annotated. Here they are selected before,
from the expression values alone. The annotations are only used to check the result.
"""

# %%
# If scanpy is installed, this example uses its 700 blood cells (a small part of the 68,000 of Zheng
# et al., 2017), as log-normalised counts in a sparse matrix. Otherwise it uses bundled data: gene
# expression of 83 tumours, whole samples instead of cells. The output shows which data were used.

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
    """The bundled tumours, on the map of their principal components."""
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
# The kept genes and where they are expressed
# -------------------------------------------
#
# We keep sixteen genes, with no correlation above 0.8 between them. Each panel is the same map of
# all cells; dark cells express the gene strongly.

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
# How many of the known markers of blood cells are among them?

TEXTBOOK = {
    *("CD3D", "IL7R", "CD8A", "CD14", "LYZ", "FCGR3A", "MS4A1", "CD79A", "CD79B", "GNLY", "NKG7"),
    *("FCER1A", "CST3", "PPBP"),
}
measured = TEXTBOOK & set(cells.genes)
hit = [gene for gene in cells.genes[kept] if gene in TEXTBOOK]
print(f"{len(measured)} textbook markers are in the table; kept are {', '.join(hit) or 'none'}.")

# %%
# Are they markers?
# -----------------
#
# Only now do we use the annotations. Left: the types on the map. Right: the mean of each kept gene
# in each type, scaled from its lowest to its highest. A marker is a row with few dark fields.

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
    f"The kinds explain {ours:.0%} of the variance of a kept gene,\n{every:.0%} of any gene "
    "(medians)"
)
plt.show()

# sphinx_gallery_thumbnail_number = 2
