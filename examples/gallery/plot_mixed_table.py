"""
A table with names, gaps, words and copies
==========================================

Tables rarely come as clean numbers. This one has a code for every row, a column that never changes,
the same measurement in two units, a category in words, and gaps. A pipeline of three steps takes
it as it is, and gives a reason for every column it drops.
"""

# %%
# We take 178 wines with 13 measurements, and add what tables have: a code, a constant, alcohol in
# two units, a colour in words and gaps in two columns.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline

from keepers import AutoSelector, DropCorrelated, TablePreparer, check_table

BLUE, ORANGE, INK, MUTED = "#0072b2", "#d55e00", "#1f242a", "#8a929c"
plt.rcParams.update({"figure.constrained_layout.use": True, "text.color": INK})

rng = np.random.default_rng(0)
wines = load_wine(as_frame=True).data
wines.insert(0, "bottle", [f"wine {number:03}" for number in range(len(wines))])
wines["country"] = "Italy"
wines["alcohol_permille"] = (10 * wines["alcohol"]).round()
wines["colour"] = np.array(["light", "deep"])[(wines["color_intensity"] > 4.5).astype(int)]
for column in ("magnesium", "flavanoids"):
    wines.loc[rng.random(len(wines)) < 0.1, column] = np.nan
print(check_table(wines, name="wines"))

# %%
# Two steps before the selection
# ------------------------------
#
# The first leaves out the code and the constant, makes numbers of the rest and fills the gaps, the
# second drops copies (the one with the larger variance stays). Then a selector chooses.

steps = make_pipeline(
    TablePreparer(missing="model", kinds={"country": "drop"}),
    DropCorrelated(0.95),
    AutoSelector(),
).set_output(transform="pandas")
kept = steps.fit_transform(wines)
prepared, distinct, selector = (step for _, step in steps.steps)
print(*prepared.notes_, sep="\n")
for name, (better, r) in distinct.kept_instead_.items():
    print(f"{name}: {better} was kept, r = {r:.2f}")
print(selector.summary_)

# %%
# The reason for every column
# ---------------------------
#
# Blue: kept. Grey: ranked lower, because a better column is similar or neighbouring wines do not
# agree on it. Orange: dropped before the selection, with the step that dropped it.

names = list(selector.feature_names_in_)
ranked = [names[index] for index in np.argsort(selector.ranking_)]
scores = dict(zip(names, selector.scores_, strict=True))
dropped = dict.fromkeys(prepared.set_aside_, "TablePreparer")
dropped |= dict.fromkeys(distinct.kept_instead_, "DropCorrelated")
rows = [*ranked, *dropped][::-1]

figure, axis = plt.subplots(figsize=(7.6, 5.6))
lengths = [max(scores.get(name, 0.0), 0.0) for name in rows]
axis.barh(rows, lengths, color=[BLUE if name in kept else MUTED for name in rows])
for place, name in enumerate(rows):
    if name in dropped:
        axis.text(0.005, place, dropped[name], color=ORANGE, va="center", fontsize=9)
axis.set_title("Score of every column; blue: kept", loc="left")
axis.spines[["top", "right", "bottom"]].set_visible(False)
axis.tick_params(left=False)
plt.show()
