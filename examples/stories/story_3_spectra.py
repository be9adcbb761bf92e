"""
Spectra: which wavenumbers follow a fermentation?
=================================================

A probe in a fermenter takes an infrared spectrum every minute or so: a thousand numbers, most of
them near-copies of their neighbours, some of them noise. A cheap instrument with a few filters
could replace it, if you knew which filters. There are no labels: the contents of the broth are
unknown. This tutorial goes from the raw file to a list of wavenumbers, and then compares it with
the laboratory.
"""

# %%
# The data are from a real fermentation of lignocellulose to ethanol (Cabaneros Lopez et al.) and
# come with the package chemotools. To run it yourself, install keepers (:doc:`/install`) and
#
# ``pip install pandas chemotools``
#
# The file
# --------
#
# We write a CSV file as a logger does: a column with the minutes, and one column per wavenumber.
# (The package has no times for the spectra. We spread them evenly over the 34 hours in which the
# laboratory took samples.) We use the laboratory's measurements of 34 samples only at the end.

import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from chemotools.datasets import load_fermentation_test
from scipy.signal import savgol_filter
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import keepers
from keepers import AutoSelector

folder = tempfile.TemporaryDirectory()
here = Path(folder.name)

spectra, laboratory = load_fermentation_test()
spectra.columns = [f"{wavenumber:.0f}" for wavenumber in spectra.columns]
spectra.insert(0, "minutes", 1.25 * np.arange(len(spectra)))
spectra.to_csv(here / "spectra.csv", index=False)
print(spectra.iloc[:3, :8].round(3).to_string(index=False))

# %%
# Look at it
# ----------
#
# ``keepers check`` is a command for the terminal. This function runs a command and prints what
# the terminal would show, wrapped to fit on this page.


def terminal(command, most_lines=40):
    """Run a command of keepers and print the first lines of its output."""
    program, *arguments = command.split()
    found = shutil.which(program, path=Path(sys.executable).parent) or program
    done = subprocess.run(
        [found, *arguments],
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    print(f"$ {command}")
    for line in lines[:most_lines]:
        print(
            line.expandtabs(15) if "\t" in line else textwrap.fill(line, 96, subsequent_indent="  ")
        )
    if len(lines) > most_lines:
        print(f"... and {len(lines) - most_lines} more lines")


terminal("keepers check spectra.csv")

# %%
# Two of these lines are suspicious. All columns of a spectrum have the same unit, so their
# variances should not span eight powers of ten. And two wavenumbers of a working detector never
# give exactly the same numbers. A picture shows why:

wavenumbers = spectra.columns[1:].astype(float).to_numpy()
values = spectra.drop(columns="minutes").to_numpy()
spread = values.std(axis=0)
flat = np.flatnonzero(values.std(axis=1) == 0)

figure, axis = plt.subplots(figsize=(9.6, 3.6), layout="constrained")
axis.semilogy(wavenumbers, np.maximum(spread, 1e-4), color="#c8341b", linewidth=1)
axis.axvspan(950, 1550, color="#2e93cc", alpha=0.15)
axis.text(1250, 30, "used from here on", ha="center", color="#1c6a96")
axis.set(xlabel="wavenumber (1/cm)", ylabel="standard deviation")
axis.set_title(
    "Below 900 the numbers are noise; near 1800 they jump and then stand still", loc="left"
)
axis.spines[["top", "right"]].set_visible(False)
plt.show()
print(f"Spectra that are the same number throughout: rows {flat.tolist()} of {len(values)}.")

# %%
# Clean it
# --------
#
# Below 900 the file holds noise with huge values: presumably no light passes the probe there.
# The last spectra are flat, as if the probe had been switched off. keepers cannot judge what is
# physically possible, but you can. So we keep 950 to 1550, where sugars and ethanol absorb, and
# drop the flat spectra. We also take the slope (Savitzky-Golay), as is usual with spectra,
# because bubbles and temperature shift the whole curve.

usable = (wavenumbers >= 950) & (wavenumbers <= 1550)
slopes = savgol_filter(np.delete(values, flat, axis=0), 25, 2, deriv=1, axis=1)[:, usable]
mended = pd.DataFrame(1000 * slopes, columns=spectra.columns[1:][usable])
mended.insert(0, "minutes", spectra["minutes"].drop(index=flat).to_numpy())
mended.to_csv(here / "slopes.csv", index=False)
terminal("keepers check slopes.csv")

# %%
# The remaining finding is normal for spectra: neighbours are near-copies. The selection handles
# this, because it ranks a column lower if it resembles a better one.
#
# Select
# ------

terminal(
    "keepers select slopes.csv --id minutes --out kept.csv --report report.html", most_lines=22
)

# %%
# The same in Python, with the report:

table = mended.drop(columns="minutes")
selector = AutoSelector(random_state=0).fit(table)
kept = list(selector.top().names)
by_command = set(pd.read_csv(here / "kept.csv").columns) - {"minutes"}
print(f"Python and the command kept {len(by_command & set(kept))} wavenumbers in common.")
keepers.report(selector, table, title="Slopes of infrared spectra")

# %%
# Why these wavenumbers
# ---------------------
#
# The picture shows the slopes of some spectra, from the first hour (dark) to the last (light).
# The kept wavenumbers are spread over the range: each represents its neighbourhood. The ten best
# have longer marks.

figure, axis = plt.subplots(figsize=(9.6, 4.2), layout="constrained")
x = wavenumbers[usable]
for row in np.linspace(0, len(table) - 1, 14).astype(int):
    axis.plot(x, table.iloc[row], color=plt.cm.viridis(row / len(table)), linewidth=0.9)
low, high = axis.get_ylim()
for rank, wavenumber in enumerate(kept):
    length = 0.16 if rank < 10 else 0.07
    axis.vlines(float(wavenumber), low, low + length * (high - low), color="#c8341b", linewidth=1.6)
axis.set(xlabel="wavenumber (1/cm)", ylabel="slope", ylim=(low, high))
axis.set_title(f"{len(kept)} of {table.shape[1]} wavenumbers are kept (red marks)", loc="left")
axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Check it with what was not used
# -------------------------------
#
# The laboratory measured glucose, xylose and ethanol 34 times. Do the kept wavenumbers predict
# them? For each sample we take the median of the nine spectra around it, and predict it by a
# ridge regression on the other 33. R² is 1 for an exact prediction, and 0 if the mean does as
# well.

minutes = mended["minutes"].to_numpy()
around = [np.argsort(abs(minutes - 60 * hour), kind="stable")[:9] for hour in laboratory["time"]]
sampled = pd.DataFrame([table.iloc[rows].median() for rows in around])
truth = laboratory[["glucose", "xylose", "ethanol"]]
model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 7), alpha_per_target=True))


def predict(columns):
    """Each sample, predicted from the others."""
    return cross_val_predict(model, sampled[columns], truth, cv=LeaveOneOut())


def explained(columns):
    """The R² of each substance."""
    error = ((truth - predict(columns)) ** 2).sum()
    return (1 - error / ((truth - truth.mean()) ** 2).sum()).to_numpy()


rng = np.random.default_rng(0)
rows = {f"all {table.shape[1]}": explained(list(table.columns))}
for number in (len(kept), 10, 5):
    drawn = [explained(list(rng.choice(table.columns, number, replace=False))) for _ in range(8)]
    rows[f"first {number}"] = explained(list(selector.top(number).names))
    rows[f"{number} at random, mean"] = np.mean(drawn, axis=0)
    rows[f"{number} at random, worst"] = np.min(drawn, axis=0)
print(pd.DataFrame(rows, index=truth.columns).T.round(2).to_string())

# %%
# The course of the fermentation, predicted from the first ten wavenumbers (lines) and measured in
# the laboratory (points):

TEN = list(selector.top(10).names)
figure, axis = plt.subplots(figsize=(9.6, 4), layout="constrained")
predicted = predict(TEN).T
colours = ("#c8341b", "#d99000", "#2e93cc")
for substance, line, colour in zip(truth, predicted, colours, strict=True):
    axis.plot(laboratory["time"], line, color=colour, label=substance)
    axis.scatter(laboratory["time"], laboratory[substance], color=colour, s=18)
axis.set(xlabel="hours", ylabel="grams per litre")
axis.set_title("Glucose is eaten first, then xylose, and ethanol appears", loc="left")
axis.legend(frameon=False)
axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Conclusion
# ----------
#
# - A few wavenumbers instead of a thousand follow this fermentation, glucose best of all. They
#   were chosen without any laboratory measurement. The number that the command kept loses nothing.
# - **Interchangeable:** random wavenumbers do about as well on average, for some substances
#   better, but some draws are clearly worse. Nearly everything in this range follows the
#   fermentation, so a filter near a kept wavenumber will do. The useful answer here is how many
#   filters you need, not which ones.
# - **Uncertain:** this is one fermentation, in which everything changes with time. A wavenumber
#   that only drifts would look good too, and the times of the spectra are our assumption. Before
#   you build an instrument, repeat the last check on another batch.
# - The most important step was yours: to see that part of the file was not a measurement. The
#   check could only show that something was odd.

folder.cleanup()

# sphinx_gallery_thumbnail_number = 2
