"""
Skip similar features with ``max_correlation``
==============================================

The features with the best scores are often nearly copies of each other: neighbouring pixels, probes
of one gene, the same sensor twice. Ten copies of a good feature contain no more information than
one. With ``max_correlation`` a selector skips features that are too strongly correlated with a
better one.
"""

# %%
# On images the effect is visible. The two photographs of scikit-learn are cut into patches of 16 x
# 16 pixels, each with the same mean brightness; 24 of the 256 positions are kept.

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from sklearn.datasets import load_sample_images

from keepers import SPCAFS, RandomScore, datasets

RED, INK, MUTED = "#c8341b", "#1f242a", "#59626d"
plt.rcParams.update({"axes.titlelocation": "left", "text.color": INK})

SIZE, STEP, KEPT = 16, 8, 24


def patches_of(photograph):
    """Overlapping squares with some contrast, each with its mean removed."""
    grey = photograph.mean(axis=2)
    squares = [
        grey[top : top + SIZE, left : left + SIZE].ravel()
        for top in range(0, grey.shape[0] - SIZE, STEP)
        for left in range(0, grey.shape[1] - SIZE, STEP)
    ]
    return np.array([square - square.mean() for square in squares if square.std() > 15])


patches = np.vstack([patches_of(photograph) for photograph in load_sample_images().images])
print(f"{len(patches)} patches of {patches.shape[1]} pixels")


def effective_rank(columns):
    """How many directions the columns span: exp of the entropy of their spectrum."""
    share = np.linalg.svd(columns - columns.mean(axis=0), compute_uv=False) ** 2
    share = share[share > 0] / share.sum()
    return float(np.exp(-np.sum(share * np.log(share))))


# %%
# Pixels
# ------
#
# The lower the limit, the further apart the kept pixels (red; yellow background: a high score). The
# effective rank is the number of directions that they span together. The penalty is a thousandth of
# the default, so that every pixel has a visible score. (If a limit leaves too few features, the
# best of the skipped ones are added.)

gamma = SPCAFS(n_components=10, random_state=0).fit(patches).gamma_ / 1000
LIMITS = (None, 0.6, 0.4)
figure, axes = plt.subplots(1, len(LIMITS), figsize=(9.4, 3.7), layout="compressed")
for axis, limit in zip(axes, LIMITS, strict=True):
    selector = SPCAFS(
        KEPT, n_components=10, gamma=gamma, max_correlation=limit, random_state=0
    ).fit(patches)
    axis.imshow(selector.scores_.reshape(SIZE, SIZE), cmap="cividis")
    row, column = np.unravel_index(selector.top().indices, (SIZE, SIZE))
    axis.scatter(column, row, marker="s", s=95, color=RED, edgecolor="white", linewidths=0.8)
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    name = "no limit" if limit is None else f"max_correlation = {limit}"
    axis.set_title(f"{name}\neffective rank {effective_rank(selector.transform(patches)):.1f}")
plt.show()

# %%
# Genes
# -----
#
# In gene expression similar genes are not neighbours, but the correlations of the kept genes show
# them: genes with similar expression form dark blocks.

ratios, _, _ = datasets.load("srbct")
X = np.log2(ratios)
GENES = 40


def distance(one, other):
    """Between genes: 0 if one is a copy of the other, upside down or not."""
    return 1 - abs(np.corrcoef(one, other)[0, 1])


figure, axes = plt.subplots(1, 2, figsize=(9.4, 4.6), layout="compressed")
for axis, limit in zip(axes, (None, 0.6), strict=True):
    selector = SPCAFS(n_components=3, max_correlation=limit).fit(X)
    kept = selector.top(GENES).indices
    in_blocks = leaves_list(linkage(X[:, kept].T, "average", metric=distance))
    alike = np.abs(np.corrcoef(X[:, kept[in_blocks]].T))
    image = axis.imshow(alike, cmap="magma_r", vmin=0, vmax=1)
    axis.set(xticks=[], yticks=[], xlabel=f"the {GENES} kept genes, alike ones side by side")
    axis.spines[:].set_visible(False)
    name = "No limit" if limit is None else f"max_correlation = {limit}"
    pairs = alike[np.triu_indices(GENES, 1)]
    axis.set_title(
        f"{name}: {np.sum(pairs > 0.6)} of {len(pairs)} pairs above 0.6,\n"
        f"effective rank {effective_rank(X[:, kept]):.1f}"
    )
figure.colorbar(image, ax=axes, label="absolute correlation", shrink=0.8)
plt.show()

# %%
# The cost of a limit
# -------------------
#
# A limit gives more diverse features with less variance. This is a disadvantage if the signal is in
# a few similar features. :doc:`/redundancy` describes such tables; ``SPCAFSCV`` chooses a limit
# from the table itself.

limits = np.array([1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
rank, strength = [], []
for limit in limits:
    kept = SPCAFS(n_components=3, max_correlation=limit).fit(X).top(GENES).indices
    rank.append(effective_rank(X[:, kept]))
    strength.append(X[:, kept].var(axis=0).sum() / X.var(axis=0).sum())
by_chance = np.mean(
    [effective_rank(RandomScore(GENES, random_state=seed).fit_transform(X)) for seed in range(20)]
)

figure, axis = plt.subplots(figsize=(8.4, 3.4), layout="constrained")
axis.plot(limits, rank, color=RED, marker="o", linewidth=2)
axis.axhline(by_chance, color="#9aa3ad", linestyle=(0, (1.2, 2.2)))
axis.text(1.0, by_chance, f"{GENES} genes at random", va="top", color=MUTED)
axis.set_ylabel("effective rank", color=RED)
axis.set(xlabel="max_correlation", xlim=(1.02, 0.38))
other = axis.twinx()
other.plot(limits, 100 * np.array(strength), color="#0072b2", marker="s", linestyle="--")
other.set_ylabel("variance held, % of all genes", color="#0072b2")
other.set_ylim(0, None)
axis.set_title(
    f"From no limit to {limits[-1]}: {rank[-1] / rank[0]:.1f} times the directions, "
    f"{strength[-1] / strength[0]:.0%} of the variance"
)
for side in (axis, other):
    side.spines["top"].set_visible(False)
plt.show()
