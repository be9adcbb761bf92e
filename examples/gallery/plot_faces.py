"""
Faces from sixty pixels
=======================

Neighbouring pixels of a picture are strongly correlated, so a few pixels contain most of the
information. This example keeps sixty pixels and predicts all others from them. Faces are a good
test, because the quality of the prediction is easy to see.
"""

# %%
# The AR faces suit this best: 13 photographs of each of 100 people, with different expressions and
# lighting, sunglasses and scarves. They may not be redistributed. If you have them, set the
# environment variable ``KEEPERS_DATA`` to their folder (``keepers datasets`` lists the source).
# Otherwise the example uses 100 small faces of scikit-image or, without scikit-image, patches of
# the two photographs of scikit-learn. The output shows which data were used.

from importlib.util import find_spec
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import PowerNorm
from sklearn.datasets import load_sample_images

from keepers import SPCAFS, VarianceScore, datasets, prune_redundant

RED, INK, MUTED = "#c8341b", "#1f242a", "#59626d"
plt.rcParams.update({"axes.titlelocation": "left", "text.color": INK})


class Pictures(NamedTuple):
    """Grey pictures in rows, and how this example uses them."""

    name: str
    X: np.ndarray
    shape: tuple[int, int]
    held_back: np.ndarray
    shown: list[int]  # of those held back
    ridge: float  # stronger for few pictures


def ar_faces():
    """The first visit of everybody. Every fifth person is held back; nine of them are shown."""
    table = datasets.load_catalogued("AR")
    first_visit = np.arange(len(table.X)) % 26 < 13
    faces = table.X[first_visit].reshape(-1, 40, 55)  # column by column
    pixels = faces.transpose(0, 2, 1).reshape(len(faces), -1)
    shown = [13 * i + kind for i, kind in enumerate((0, 1, 3, 5, 7, 8, 10, 12, 3))]
    held_back = table.labels[first_visit].astype(int) % 5 == 0
    return Pictures("faces (AR)", np.float32(pixels), (55, 40), held_back, shown, 1e-3)


def small_faces():
    """The faces among scikit-image's 200 squares; every fifth is held back."""
    from skimage.data import lfw_subset

    pixels = np.float32(255 * lfw_subset()[:100].reshape(100, -1))
    held_back = np.arange(100) % 5 == 0
    return Pictures("faces (from LFW)", pixels, (25, 25), held_back, list(range(1, 19, 2)), 1.0)


def patches(size=16, step=8):
    """Squares with contrast from two photographs; those on the right are held back."""
    pixels, held_back = [], []
    for photograph in load_sample_images().images:
        grey = photograph.mean(axis=2)
        for top in range(0, grey.shape[0] - size, step):
            for left in range(0, grey.shape[1] - size, step):
                square = grey[top : top + size, left : left + size]
                if square.std() > 25:
                    pixels.append(square.ravel() - square.mean() + 128)
                    held_back.append(left > 0.75 * grey.shape[1])
    shown = np.linspace(0, sum(held_back) - 1, 11).astype(int)[1:-1].tolist()
    return Pictures("patches", np.float32(pixels), (size, size), np.array(held_back), shown, 1e-3)


if any(entry.name == "AR" and datasets.present(entry) for entry in datasets.catalogue()):
    pictures = ar_faces()
    print("Made with the AR faces.")
elif find_spec("skimage"):
    pictures = small_faces()
    print("The AR faces are not here: made with 100 faces that come with scikit-image.")
else:
    pictures = patches()
    print("No faces are here: made with patches of two photographs.")

X, shape = pictures.X, pictures.shape
learnt, unseen = X[~pictures.held_back], X[pictures.held_back]
mean = learnt.mean(axis=0)
print(f"{len(X)} pictures of {X.shape[1]} pixels; {len(unseen)} are held back.")

# %%
# Scores for three penalties
# --------------------------
#
# The default penalty is a tenth of the largest eigenvalue. On pictures that eigenvalue is mostly
# overall brightness, and this penalty leaves very few pixels active. With almost no penalty every
# pixel has a score.

default = SPCAFS(n_components=10, random_state=0).fit(learnt)
weaker, weakest = (
    SPCAFS(n_components=10, gamma=default.gamma_ / less, random_state=0).fit(learnt)
    for less in (10, 10_000)
)

figure, axes = plt.subplots(
    1, 4, layout="compressed", figsize=(10.5, 0.6 + 2.4 * shape[0] / shape[1])
)
axes[0].imshow(mean.reshape(shape), cmap="gray")
axes[0].set_title("The mean picture")
for axis, fitted, title in (
    (axes[1], weakest, "Scores, almost no penalty"),
    (axes[2], weaker, "a tenth of the default"),
    (axes[3], default, "the default"),
):
    axis.imshow(fitted.scores_.reshape(shape), cmap="inferno", norm=PowerNorm(0.6))
    axis.set_title(f"{title}\n{fitted.n_active_} active pixels")
for axis in axes:
    axis.set_axis_off()
plt.show()

# %%
# Sixty pixels
# ------------
#
# The best pixels are next to each other and strongly correlated. ``max_correlation`` skips a pixel
# that is too similar to a better one. Every picture below is predicted, by ridge regression, from
# sixty pixels of a picture that was not used in the fit.

KEPT = 60


def infer(columns):
    """All pixels of the unseen pictures, from some of their columns."""
    known, everything = learnt[:, columns] - mean[columns], learnt - mean
    gram = known.T @ known
    gram += pictures.ridge * np.trace(gram) / len(gram) * np.eye(len(gram), dtype=gram.dtype)
    return (unseen - mean)[:, columns] @ np.linalg.solve(gram, known.T @ everything) + mean


def share_explained(columns):
    """Share of the variance of the unseen pictures that their inferred copies explain."""
    missed = np.sum((unseen - infer(columns)) ** 2)
    return float(1 - missed / np.sum((unseen - unseen.mean(axis=0)) ** 2))


spread_out = SPCAFS(KEPT, n_components=10, gamma=weaker.gamma_, max_correlation=0.7, random_state=0)
choices = {
    "largest variance": VarianceScore(KEPT).fit(learnt).top().indices,
    "SPCAFS": weaker.top(KEPT).indices,
    "SPCAFS,\nmax_correlation=0.7": spread_out.fit(learnt).top().indices,
}
shares = {name: share_explained(columns) for name, columns in choices.items()}
rng = np.random.default_rng(0)
by_chance = [share_explained(rng.choice(X.shape[1], KEPT, replace=False)) for _ in range(20)]

figure, axes = plt.subplots(
    4, 1 + len(pictures.shown), layout="compressed", figsize=(10.5, 0.9 + 3.5 * shape[0] / shape[1])
)
for axis in axes.ravel():
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
for axis, sample in zip(axes[0, 1:], pictures.shown, strict=True):
    axis.imshow(unseen[sample].reshape(shape), cmap="gray", vmin=0, vmax=255)
axes[0, 0].imshow(np.full(shape, np.nan))
axes[0, 0].set_ylabel("as taken", rotation=0, ha="right", va="center", color=MUTED)
for line, (name, columns) in zip(axes[1:], choices.items(), strict=True):
    at_row, at_column = np.unravel_index(columns, shape)
    line[0].imshow(mean.reshape(shape), cmap="gray", alpha=0.35)
    line[0].scatter(at_column, at_row, s=5, marker="s", color=RED, linewidths=0)
    line[0].set_ylabel(
        f"{name}\n{shares[name]:.0%} explained", rotation=0, ha="right", va="center", color=MUTED
    )
    for axis, picture in zip(line[1:], infer(columns)[pictures.shown], strict=True):
        axis.imshow(picture.reshape(shape), cmap="gray", vmin=0, vmax=255)
best = max(shares, key=shares.get)
figure.suptitle(
    f"{KEPT} of {X.shape[1]} pixels, red on the left, explain up to {shares[best]:.0%} of the "
    f"variance of unseen {pictures.name}",
    x=0.01,
    ha="left",
)
plt.show()

# %%
# Compared with random pixels
# ---------------------------
#
# Sixty random pixels are a strong baseline here, since they are spread out too. The limit of 0.7
# and the penalty were chosen for this example on the same pictures, which favours them. Other
# limits, compared with random pixels:

print(
    f"{KEPT} pixels at random explain {np.median(by_chance):.1%} (median of {len(by_chance)} "
    f"draws, from {min(by_chance):.1%} to {max(by_chance):.1%})."
)
for limit in (0.8, 0.7, 0.6, 0.5):
    columns = prune_redundant(learnt, weaker.ranking_, limit, n_features=KEPT)
    share = share_explained(columns)
    wins = int(np.sum(np.array(by_chance) < share))
    print(
        f"max_correlation={limit}: {share:.1%} with {len(columns)} pixels, more than {wins} of the "
        "draws."
    )

# sphinx_gallery_thumbnail_number = 2
