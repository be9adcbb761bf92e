"""
Every method on the same digits
===============================

All selectors have the same interface, so that trying another one is changing one word. Here each
of them keeps 16 of the 64 pixels of hand-written digits, with its default settings and without
knowing which image shows which digit.
"""

# %%
# Three hundred images are enough to see the differences, and let the slowest method finish in
# seconds. Some pixels are white on all of them; we silence the warning about them.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from keepers import (
    CUR,
    DGUFS,
    EUFS,
    FSPCA,
    JELSR,
    MCFS,
    NDFS,
    RNE,
    RSR,
    SOGFS,
    SPCAFS,
    SPEC,
    U2FS,
    UDFS,
    AllFeatures,
    AutoSelector,
    ColumnSubset,
    DenoisedLaplacian,
    InfFS,
    LaplacianScore,
    RandomScore,
    VarianceScore,
    datasets,
)
from keepers.exceptions import KeepersWarning
from keepers.metrics import clustering_accuracy

BLUE, INK, MUTED = "#0072b2", "#1f242a", "#8a929c"
plt.rcParams.update({"figure.constrained_layout.use": True, "text.color": INK})
warnings.filterwarnings("ignore", category=KeepersWarning)

X, _, digit = datasets.load("digits")
X, digit = X[:300], digit[:300]
KEPT = 16
selectors = [
    AutoSelector(KEPT),
    DenoisedLaplacian(KEPT),
    SPCAFS(KEPT),
    FSPCA(KEPT, random_state=0),
    ColumnSubset(KEPT),
    CUR(KEPT),
    LaplacianScore(KEPT),
    SPEC(KEPT),
    MCFS(KEPT),
    UDFS(KEPT),
    NDFS(KEPT, random_state=0),
    JELSR(KEPT),
    EUFS(KEPT, random_state=0),
    DGUFS(KEPT),
    SOGFS(KEPT, random_state=0),
    RNE(KEPT, random_state=0),
    U2FS(KEPT),
    InfFS(KEPT),
    RSR(KEPT),
    VarianceScore(KEPT),
    RandomScore(KEPT, random_state=0),
    AllFeatures(),
]
for selector in selectors:
    selector.fit(X)
print(f"{len(selectors)} selectors, fitted to {X.shape[0]} images of {X.shape[1]} pixels")

# %%
# Which pixels they keep
# ----------------------
#
# Blue pixels are kept; the grey behind them is the mean of all images. Methods that follow variance
# (VarianceScore, FSPCA, SPCAFS, InfFS) keep a block in the middle. Others spread their pixels. UDFS
# and RNE keep the margins here, which are white on nearly every image.

figure, axes = plt.subplots(4, 6, figsize=(9.6, 7.2))
for axis in axes.ravel()[len(selectors) :]:
    axis.set_axis_off()
for axis, selector in zip(axes.ravel(), selectors, strict=False):
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_color(MUTED)
    axis.imshow(X.mean(axis=0).reshape(8, 8), cmap="Greys", vmin=0, vmax=40)
    kept = np.where(selector.get_support(), 1.0, np.nan).reshape(8, 8)
    axis.imshow(kept, cmap="Blues", vmin=0, vmax=1.2)
    axis.set_title(type(selector).__name__, fontsize=11)
plt.show()

# %%
# Do they distinguish the digits?
# -------------------------------
#
# Only now do we use the labels: k-means on the kept pixels, 20 times, and the share of images that
# it puts with their digit. One table says little about which method is best; the leaderboard has
# 46.


def accuracy(values):
    """Mean of 20 runs of k-means."""
    starts = [KMeans(10, n_init=1, random_state=seed) for seed in range(20)]
    return np.mean([clustering_accuracy(digit, start.fit_predict(values)) for start in starts])


names = np.array([type(selector).__name__ for selector in selectors])
reached = np.array([accuracy(selector.transform(X)) for selector in selectors])
order = np.argsort(reached)
baseline = np.isin(names[order], ("AllFeatures", "RandomScore", "VarianceScore"))

figure, axis = plt.subplots(figsize=(7.6, 6.2))
bars = axis.barh(names[order], reached[order], color=np.where(baseline, MUTED, BLUE))
axis.bar_label(bars, fmt="%.2f", padding=3, fontsize=9)
axis.set_title(f"Accuracy of k-means on {KEPT} of 64 pixels; grey: baselines", loc="left")
axis.spines[["top", "right", "bottom"]].set_visible(False)
axis.tick_params(bottom=False, labelbottom=False, left=False)
plt.show()
