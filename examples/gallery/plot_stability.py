"""
Are the same genes selected from other samples?
===============================================

Every selector returns the requested number of features, even from noise. Without labels, one check
is whether the selection is repeatable: split the samples into halves, select from each half, and
count. Features that are selected again and again can be reported; the others may be chance.
"""

# %%
# ``StabilitySelector`` works with any selector. Here SPCAFS selects 20 of 2308 genes from 50 random
# halves of 83 tumour samples. The same is done with a table in which the values of each gene are
# shuffled over the samples: every gene has the same values, but the genes are unrelated.

import matplotlib.pyplot as plt
import numpy as np

from keepers import SPCAFS, RandomScore, StabilitySelector, VarianceScore, datasets

RED, INK, MUTED, PALE = "#c8341b", "#1f242a", "#59626d", "#b9c0c8"
plt.rcParams.update(
    {"figure.constrained_layout.use": True, "axes.titlelocation": "left", "text.color": INK}
)

ratios, names, _ = datasets.load("srbct")
X = np.log2(ratios)
KEPT, HALVES = 20, 50


def repeat(selector, table):
    """The selector on random halves of the table."""
    return StabilitySelector(selector, n_resamples=HALVES, random_state=0).fit(table)


stable = repeat(SPCAFS(KEPT, n_components=3), X)
print(stable.stability_)
print(stable.expected_false_selections_)

# %%
# Selection frequencies
# ---------------------
#
# The share of halves in which each gene was selected. The bars are 95 % intervals for these shares
# after so many halves; they do not describe other tables (:doc:`/stability` explains what is
# guaranteed).

SHOWN = 40
best = stable.top(SHOWN).indices
low, high = stable.frequency_intervals_[best].T
frequency = stable.frequencies_[best]
reached = stable.stable_[best]

figure, axis = plt.subplots(figsize=(9.6, 4.6))
for mask, colour, label in (
    (reached, RED, f"stable: in at least {stable.threshold:.0%} of the halves"),
    (~reached, MUTED, "not stable"),
):
    where = np.flatnonzero(mask)
    axis.vlines(where, low[mask], high[mask], color=colour, alpha=0.35, linewidth=4)
    axis.scatter(where, frequency[mask], color=colour, s=30, zorder=3, label=label)
axis.axhline(stable.threshold, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
axis.axvline(KEPT - 0.5, color=PALE, linewidth=1)
axis.text(KEPT - 0.7, 0.02, f"the {KEPT} requested ", ha="right", color=MUTED, fontsize=9)
axis.set_xticks(range(SHOWN), names[best], rotation=90, fontsize=7)
axis.set(ylim=(0, 1.03), xlim=(-0.8, SHOWN - 0.2), ylabel="share of halves that select the gene")
axis.set_title(
    f"{KEPT} genes were requested; {stable.stable_.sum()} of them are selected again and again"
)
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="upper right")
plt.show()

# %%
# Compared with noise and with other selectors
# --------------------------------------------
#
# The index of Nogueira, Sechidis and Brown is 1 if the halves always agree and 0 if they agree as
# random sets would. Shuffling does not change the variance of a gene, so the ranking by variance
# can be as stable as before, although nothing is left to find. SPCAFS uses what genes
# share, and should become unstable if they share nothing.

rng = np.random.default_rng(0)
shuffled = rng.permuted(X, axis=0)
trials = {
    "SPCAFS": (SPCAFS(KEPT, n_components=3), RED),
    "largest variance": (VarianceScore(KEPT), MUTED),
    "random": (RandomScore(KEPT), PALE),
}
figure, axis = plt.subplots(figsize=(9.6, 3.2))
indices = {}
for row, (name, (selector, colour)) in enumerate(trials.items()):
    for table, offset, fill in ((X, -0.17, colour), (shuffled, 0.17, "white")):
        fitted = stable if name == "SPCAFS" and table is X else repeat(selector, table)
        index, (lower, upper) = fitted.stability_.index, fitted.stability_.interval
        indices[name, table is X] = index
        axis.plot([lower, upper], [row + offset] * 2, color=colour, linewidth=5, alpha=0.4)
        axis.scatter(index, row + offset, s=70, color=fill, edgecolor=colour, linewidth=2, zorder=3)
        axis.text(
            max(upper, index) + 0.02,
            row + offset,
            f"{round(index, 2) + 0:.2f}",
            va="center",
            color=MUTED,
            fontsize=9,
        )
axis.scatter([], [], s=70, color=MUTED, label="the table")
axis.scatter([], [], s=70, color="white", edgecolor=MUTED, linewidth=2, label="genes shuffled")
axis.set_yticks(range(len(trials)), trials)
axis.set(xlim=(-0.05, 1), ylim=(2.6, -0.6), xlabel="stability index, with 95 % interval")
axis.set_title(
    f"Shuffled, SPCAFS falls from {indices['SPCAFS', True]:.2f} to {indices['SPCAFS', False]:.2f}, "
    f"variance from {indices['largest variance', True]:.2f} to "
    f"{indices['largest variance', False]:.2f}"
)
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="lower right")

more_stable = max(("SPCAFS", "largest variance"), key=lambda name: indices[name, True])
print(f"More stable on the table itself: {more_stable}. Stability does not imply usefulness.")
plt.show()
