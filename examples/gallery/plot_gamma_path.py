"""
From PCA to a handful of features
=================================

The weight gamma of the penalty decides how many features are used. Instead of choosing one value,
this example computes the whole path. At one end every feature is used, as in PCA. At the other end
only as many features are left as there are components. Between them you see which features stay
active, and how much variance is lost.
"""

# %%
# ``spcafs_path`` finds both ends from the data. The first table contains genes of tumour samples:
# every line is a gene, and the last active genes are named.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import PowerNorm

from keepers import datasets, spcafs_path
from keepers.exceptions import DataWarning

INK, MUTED = "#1f242a", "#59626d"
plt.rcParams.update({"axes.titlelocation": "left", "text.color": INK})

X, names, _ = datasets.load("srbct")
path = spcafs_path(X, n_components=3)
upper, lower = path.plot(feature_names=names)

half = int(np.argmax(path.n_live <= X.shape[1] / 2))
upper.set_title(
    f"Half of the {X.shape[1]} genes are inactive at gamma = "
    f"{path.gammas[half] / path.largest_eigenvalue:.2g} of the largest eigenvalue,\nand "
    f"{path.explained_variance[half] / path.explained_variance[0]:.0%} of PCA's variance is left",
    fontsize=10,
)
plt.show()

# %%
# The path on images
# ------------------
#
# Each picture shows the scores of the 64 pixels of hand-written digits at one point of the path.
# Black pixels are inactive.

warnings.filterwarnings("ignore", "Columns that do not vary", DataWarning)
digits, _, _ = datasets.load("digits")
film = spcafs_path(digits, n_components=5, n_gammas=40)

even_steps = np.linspace(film.n_live[0], film.n_live[-1], 8)
moments = [int(np.argmin(np.abs(film.n_live - wanted))) for wanted in even_steps]
figure, axes = plt.subplots(2, len(moments) // 2, figsize=(9.6, 5.6), layout="compressed")
for axis, moment in zip(axes.ravel(), moments, strict=True):
    scores = film.scores[moment]
    shade = plt.get_cmap("magma").with_extremes(bad="black")
    axis.imshow(
        np.where(scores > 1e-6, scores, np.nan).reshape(8, 8),
        cmap=shade,
        norm=PowerNorm(0.7, vmin=0, vmax=1),
    )
    axis.set_axis_off()
    axis.set_title(
        f"{film.n_live[moment]} pixels, {film.explained_variance[moment]:.0%} explained\n"
        f"gamma = {film.gammas[moment] / film.largest_eigenvalue:.2g}",
        fontsize=9,
    )
figure.suptitle(
    f"From {film.n_live[0]} pixels to {film.n_live[-1]} as the penalty grows",
    x=0.01,
    ha="left",
)
plt.show()

# %%
# How many features are enough?
# -----------------------------
#
# The variance kept against the number of active features shows where more features add little.
# See also :doc:`/path`.

figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
for line, name, colour, marker in (
    (path, f"{X.shape[1]} genes", "#0072b2", "o"),
    (film, f"{digits.shape[1]} pixels", "#d55e00", "s"),
):
    axis.plot(
        line.n_live / line.scores.shape[1],
        line.explained_variance / line.explained_variance[0],
        color=colour,
        marker=marker,
        markersize=5,
        label=name,
    )
axis.plot([0, 1], [0, 1], color="#dcdfe4", zorder=0)
axis.set(
    xlabel="share of active features",
    ylabel="variance kept, as a share of PCA's",
    xlim=(0, 1.02),
    ylim=(0, 1.05),
)


def needed(line, share):
    """The smallest share of the features with which that share of PCA's variance is kept."""
    enough = line.explained_variance >= share * line.explained_variance[0]
    return line.n_live[enough].min() / line.scores.shape[1]


axis.set_title(
    f"90% of PCA's variance takes {needed(path, 0.9):.0%} of the genes and "
    f"{needed(film, 0.9):.0%} of the pixels"
)
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()

# sphinx_gallery_thumbnail_number = 2
