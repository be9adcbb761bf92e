"""
How near to the best? A bound on what any k features can hold
=============================================================

Which k pixels hold the most variance cannot be found by trying all sets: there are more than
10^18 sets of 30 pixels out of 64. An upper bound on what any of them holds is cheap all the same.
With it, every selection comes with a guarantee, whatever method made it, and single pixels are
proved to be in every best set, or in none. :doc:`/proofs` derives the bound.
"""

# %%
# ``selector.certificate(X)`` compares a selection with the bound. What k features hold is the
# variance that a PCA of these columns alone explains with m components.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.decomposition import PCA

from keepers import FSPCA, SPCAFS, VarianceScore, certify, datasets
from keepers.exceptions import KeepersWarning

RED, BLUE, INK, MUTED, PALE = "#c8341b", "#0072b2", "#1f242a", "#59626d", "#dcdfe4"
plt.rcParams.update({"axes.titlelocation": "left", "text.color": INK})
warnings.simplefilter("ignore", KeepersWarning)  # three pixels never vary

M = 3
X, names, _ = datasets.load("digits")
print(FSPCA(30, n_components=M, random_state=0).fit(X).certificate(X))

# %%
# The bound and the methods
# -------------------------
#
# FSPCA looks for the best set, the largest variances are the simplest guess, and SPCAFS solves the
# problem with a penalty in place of the number of features. The best set of k pixels lies in the
# grey band, between the best selection and the bound. What a method loses at most is its distance
# from the upper edge.

ks = np.array([3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 30, 35, 40, 45, 50, 55, 60])
in_all = PCA(M).fit(X).explained_variance_.sum() * (len(X) - 1) / len(X)
by_variance = VarianceScore().fit(X)
by_penalty = SPCAFS(n_components=M, random_state=0).fit(X)
certificates = [FSPCA(k, n_components=M, random_state=0).fit(X).certificate(X) for k in ks]


def held_by(selector):
    """Shares of what PCA explains with all pixels, by number of features."""
    values = [certify(X, selector.top(k).indices, M, tight=False).value for k in ks]
    return np.array(values) / in_all


bound = np.array([found.upper_bound for found in certificates]) / in_all
curves = {
    "FSPCA": (np.array([found.value for found in certificates]) / in_all, RED, "o"),
    "SPCAFS": (held_by(by_penalty), BLUE, "s"),
    "largest variances": (held_by(by_variance), MUTED, "^"),
}

figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.2), layout="constrained")
left.fill_between(ks, 100 * curves["FSPCA"][0], 100 * bound, color=PALE, linewidth=0)
left.plot(ks, 100 * bound, color=INK, linewidth=1.2, label="upper bound for any k pixels")
right.axhline(100, color=INK, linewidth=1.2)
right.fill_between(ks, 100 * curves["FSPCA"][0] / bound, 100, color=PALE, linewidth=0)
for name, (held, colour, marker) in curves.items():
    style = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.4}
    left.plot(ks, 100 * held, label=name, **style)
    right.plot(ks, 100 * held / bound, **style)
left.set(xlabel="k, pixels kept", ylabel="variance held, % of PCA of all pixels", ylim=(0, 103))
left.legend(frameon=False, loc="lower right")
left.set_title(f"What k pixels hold in {M} components")
right.set(xlabel="k, pixels kept", ylabel="% of the bound")
shares = {name: held / bound for name, (held, _, _) in curves.items()}
right.set_title(
    "At least so much of the best possible:\n"
    + ", ".join(f"{name} {share.min():.0%}" for name, share in shares.items())
    + " at worst",
    fontsize=10,
)
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Pixels that are proved
# ----------------------
#
# The same numbers prove something about single pixels: every best set has these, and none has
# those. Where the bound is near the best set, most pixels are decided; in between, where many sets
# are almost equally good, none may be.

SHOWN = (3, 5, 40, 50, 60)
STATES = {"in no best set": "#3f4a56", "open": "#f1f2f4", "in every best set": RED}


def state_of(certificate):
    """-1, 0 or 1 for every pixel, in the order of STATES."""
    state = np.zeros(X.shape[1])
    state[certificate.proved_out] = -1
    state[certificate.proved_in] = 1
    return state


states = np.array([state_of(found) for found in certificates])
figure = plt.figure(figsize=(10.4, 5.6), layout="constrained")
upper, lower = figure.subfigures(2, 1, height_ratios=(1, 1.25))
for axis, k in zip(upper.subplots(1, len(SHOWN)), SHOWN, strict=True):
    at = int(np.flatnonzero(ks == k)[0])
    axis.imshow(states[at].reshape(8, 8), cmap=ListedColormap(STATES.values()), vmin=-1, vmax=1)
    row, column = np.unravel_index(certificates[at].features, (8, 8))
    axis.scatter(column, row, s=7, color="black", linewidths=0)
    axis.set(xticks=np.arange(-0.5, 8), yticks=np.arange(-0.5, 8), xticklabels=[], yticklabels=[])
    axis.tick_params(length=0)
    axis.grid(color="white", linewidth=1)
    axis.spines[:].set_visible(False)
    axis.set_title(f"k = {k}", fontsize=10)
axis = lower.subplots()
counts = [np.sum(states == value, axis=1) for value in (1, 0, -1)]
names_of = list(STATES)[::-1]
axis.stackplot(ks, counts, labels=names_of, colors=[STATES[name] for name in names_of])
axis.plot(ks, ks, color=INK, linewidth=1, linestyle="--", label="k")
axis.set(xlabel="k, pixels kept", ylabel="pixels", xlim=(ks[0], ks[-1]), ylim=(0, X.shape[1]))
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
decided = {k: int(np.sum(state != 0)) for k, state in zip(ks, states, strict=True)}
upper.suptitle(
    f"Of 64 pixels, {decided[5]} are decided for k = 5, {decided[40]} for k = 40 and "
    f"{decided[50]} for k = 50 (dots: kept by FSPCA)",
    x=0.01,
    ha="left",
    fontsize=11,
)
plt.show()

# %%
# A certificate is about variance, not about classes: the selection with the most variance need not
# be the one that shows the groups of the samples best. :doc:`/proofs` has measurements of both.

# sphinx_gallery_thumbnail_number = 1
