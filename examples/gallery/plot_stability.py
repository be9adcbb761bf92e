"""
Would another sample have chosen the same genes?
================================================

Every selector returns as many features as it is asked for, on noise as well. Without labels one of
the few honest questions is whether the answer repeats itself: split the samples into halves, select
from each, and count. Features that keep coming back can be reported; the others were luck.
"""

# %%
# ``StabilitySelector`` wraps any selector. Here SPCAFS picks 20 genes of 2308 from 50 random halves
# of 83 tumour samples. The same is done to a table in which each gene's values are shuffled over
# the samples on their own: every gene keeps its numbers, but nothing belongs together any more.

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
# Which genes come back
# ---------------------
#
# The share of halves that chose each gene. The lines show how far these shares are settled after so
# many halves (95 % intervals); they make no promise about another table
# (:doc:`/stability` says what is promised).

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
axis.text(KEPT - 0.7, 0.02, f"the {KEPT} asked for ", ha="right", color=MUTED, fontsize=9)
axis.set_xticks(range(SHOWN), names[best], rotation=90, fontsize=7)
axis.set(ylim=(0, 1.03), xlim=(-0.8, SHOWN - 0.2), ylabel="share of halves that chose the gene")
axis.set_title(
    f"{KEPT} genes were asked for; {stable.stable_.sum()} of them would be chosen again and again"
)
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="upper right")
plt.show()

# %%
# Against noise, and against other selectors
# ------------------------------------------
#
# The index of Nogueira, Sechidis and Brown is 1 if the halves always agree and 0 if they agree as
# random sets would. Shuffling is the test: a gene keeps its variance when it is shuffled, so that
# the largest variance can be as steady as before while looking at nothing. SPCAFS looks at what
# genes share, and should lose its footing once they share nothing.

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

steadier = max(("SPCAFS", "largest variance"), key=lambda name: indices[name, True])
print(f"The steadier of the two on the table itself: {steadier}. Stability is not merit.")
plt.show()
