"""
Which pixels distinguish hand-written digits?
=============================================

Often some measurements can be left out without losing information: cells of a sensor, fields of a
form, inputs of a model. On images the result can be seen directly. Here 20 of the 64 pixels of
hand-written digits are kept. The method does not know which image shows which digit.
"""

# %%
# The table has 1797 digits of 8 x 8 pixels. ``SPCAFS`` scores every pixel by its contribution to a
# few components. The labels are not used. Three pixels are white on every digit; we silence the
# warning about them.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

from keepers import SPCAFS, datasets
from keepers.exceptions import DataWarning

RED, INK, MUTED = "#c8341b", "#1f242a", "#59626d"
plt.rcParams.update(
    {"figure.constrained_layout.use": True, "axes.titlelocation": "left", "text.color": INK}
)

X, _, digit = datasets.load("digits")
warnings.filterwarnings("ignore", "Columns that do not vary", DataWarning)
KEPT = 20
selector = SPCAFS(n_features_to_select=KEPT, random_state=0).fit(X)
kept = selector.get_support()

# %%
# Where the kept pixels are
# -------------------------
#
# Left: the spread of each pixel. Right: its score. The margins are white on nearly every digit.

figure, axes = plt.subplots(1, 2, figsize=(8.4, 4.3))
for axis, values, title in (
    (axes[0], X.std(axis=0), "Spread of each pixel"),
    (axes[1], selector.scores_, f"Score of each pixel; framed: the {KEPT} kept"),
):
    image = axis.imshow(values.reshape(8, 8), cmap="cividis")
    axis.set_title(title)
    axis.set_axis_off()
    figure.colorbar(image, ax=axis, shrink=0.8)
for row, column in np.argwhere(kept.reshape(8, 8)):
    axes[1].add_patch(
        Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, fill=False, edgecolor=RED, linewidth=2.2)
    )
plt.show()

# %%
# Predicting the other pixels
# ---------------------------
#
# If the kept pixels are sufficient, the others can be predicted from them. The prediction below is
# a least squares fit on one half of the digits, shown on typical digits of the other half.

fitted_on, shown = np.arange(0, len(X), 2), np.arange(1, len(X), 2)


def predict_all_pixels(columns):
    """Every pixel of the unseen half, from some of its columns."""
    mean = X[fitted_on].mean(axis=0)
    centred = X[fitted_on] - mean
    weights = np.linalg.lstsq(centred[:, columns], centred, rcond=None)[0]
    return (X[shown] - mean)[:, columns] @ weights + mean


def share_explained(predicted):
    """Share of the variance of the unseen half that the prediction explains."""
    return 1 - np.sum((X[shown] - predicted) ** 2) / np.sum((X[shown] - X[shown].mean(axis=0)) ** 2)


predicted = predict_all_pixels(kept)


def most_typical(kind):
    """The unseen digit of that kind that is nearest to the mean of its kind."""
    of_kind = np.flatnonzero(digit[shown] == kind)
    images = X[shown][of_kind]
    return of_kind[np.argmin(np.sum((images - images.mean(axis=0)) ** 2, axis=1))]


one_of_each = [most_typical(kind) for kind in range(10)]

figure, axes = plt.subplots(3, 10, figsize=(9.6, 3.5))
only_kept = np.where(kept, X[shown], np.nan)
rows = (
    (X[shown], "as written"),
    (only_kept, f"{KEPT} pixels"),
    (predicted, "predicted\nfrom these"),
)
grey = plt.get_cmap("gray_r").with_extremes(bad="#e7edf3")
for line, (images, name) in zip(axes, rows, strict=True):
    for axis, sample in zip(line, one_of_each, strict=True):
        axis.imshow(images[sample].reshape(8, 8), cmap=grey, vmin=0, vmax=16)
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    line[0].set_ylabel(name, rotation=0, ha="right", va="center", color=MUTED)
figure.suptitle(
    f"{KEPT} of {X.shape[1]} pixels explain {share_explained(predicted):.0%} of the variance of "
    "unseen digits",
    x=0.01,
    ha="left",
)
plt.show()

# %%
# Two baselines for comparison: twenty random pixels, and the twenty pixels of largest variance.

rng = np.random.default_rng(0)
draws = [
    share_explained(predict_all_pixels(rng.choice(X.shape[1], KEPT, replace=False)))
    for _ in range(200)
]
largest = np.argsort(-X.var(axis=0), kind="stable")[:KEPT]
by_variance, by_spcafs = share_explained(predict_all_pixels(largest)), share_explained(predicted)

figure, axis = plt.subplots(figsize=(8.4, 2.8))
axis.hist(draws, bins=24, color="#c9cdd3")
for value, name, colour in (
    (by_variance, "largest variance", MUTED),
    (by_spcafs, "SPCAFS", RED),
):
    axis.axvline(value, color=colour, linewidth=2.4, label=f"{name}: {value:.3f}")
axis.set(
    xlabel=f"share of the variance of unseen digits explained by {KEPT} pixels",
    ylabel="random draws",
    title=f"SPCAFS explains more than {np.sum(by_spcafs > np.array(draws))} of {len(draws)} random "
    f"choices, and {by_spcafs - by_variance:+.3f} against variance",
)
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="upper left")
plt.show()
