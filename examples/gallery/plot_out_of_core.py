"""
A table larger than the memory you allow
========================================

A table may be larger than the memory. SPCAFS can read it in blocks of rows; the memory it needs
depends on the number of columns, not of rows. You set a limit on the memory; the result is the
same.
"""

# %%
# To get a large table without a download, we use every square of 10 x 10 pixels in the two
# photographs of scikit-learn as a row, subtract its mean brightness, and write the rows to a file
# block by block.

import tempfile
import time
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import PowerNorm
from sklearn.datasets import load_sample_images

from keepers import SPCAFS

RED, BLUE, INK, MUTED = "#c8341b", "#0072b2", "#1f242a", "#59626d"
plt.rcParams.update(
    {"figure.constrained_layout.use": True, "axes.titlelocation": "left", "text.color": INK}
)

SIDE, LIMIT_MB = 10, 200
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "squares.npy"

views = [
    np.lib.stride_tricks.sliding_window_view(photograph.mean(axis=2), (SIDE, SIDE))
    for photograph in load_sample_images().images
]
n_rows = sum(view.shape[0] * view.shape[1] for view in views)
table = np.lib.format.open_memmap(path, "w+", np.float64, (n_rows, SIDE * SIDE))
row = 0
for strip in (strip for view in views for strip in view):  # a line of the photograph at a time
    squares = strip.reshape(len(strip), -1)
    table[row : row + len(strip)] = squares - squares.mean(axis=1, keepdims=True)
    row += len(strip)
table.flush()
del table
print(f"{n_rows} rows x {SIDE * SIDE} columns, {path.stat().st_size / 1e6:.0f} MB on disk")

# %%
# ``n_passes_`` is the number of passes over the file; ``route_`` is how the table was read.

selector = SPCAFS(20, n_components=10, memory_limit=f"{LIMIT_MB}MB").fit_blocks(path)
print(f"passes over the file: {selector.n_passes_}; route: {selector.route_}")

# %%
# Memory and time against rows
# ----------------------------
#
# The same fit on the first rows, in blocks and in memory. Time and memory are measured from opening
# the file to the end of the fit; memory is the peak allocated by Python and NumPy.


def measure(fit):
    """The fitted selector, its peak memory in MB and its seconds of computing."""
    tracemalloc.start()
    started = time.process_time()
    fitted = fit()
    seconds = time.process_time() - started
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return fitted, peak, seconds


def in_blocks(rows):
    """Fit without ever holding the table."""
    some = np.load(path, mmap_mode="r")[:rows]
    return SPCAFS(20, n_components=10, memory_limit=f"{LIMIT_MB}MB").fit_blocks(some)


def in_memory(rows):
    """Fit as usual, on the table in memory."""
    with path.open("rb") as stream:
        shape = (rows, SIDE * SIDE)
        stream.seek(path.stat().st_size - 8 * n_rows * SIDE * SIDE)  # behind the header
        held = np.fromfile(stream, np.float64, rows * SIDE * SIDE).reshape(shape)
    return SPCAFS(20, n_components=10).fit(held)


counts = [n_rows // 8, n_rows // 4, n_rows // 2, n_rows]
blocks = [measure(lambda rows=rows: in_blocks(rows)) for rows in counts]
memory = [measure(lambda rows=rows: in_memory(rows)) for rows in counts]

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2))
thousands = np.array(counts) / 1000
for axis, which, label in ((left, 1, "peak memory, MB"), (right, 2, "seconds of computing")):
    for results, name, colour, marker in (
        (memory, "in memory", BLUE, "s"),
        (blocks, "in blocks", RED, "o"),
    ):
        values = [result[which] for result in results]
        axis.plot(thousands, values, color=colour, marker=marker, linewidth=2.2, label=name)
    axis.set(xlabel="rows, thousands", ylabel=label, ylim=(0, None), xlim=(0, None))
    axis.spines[["top", "right"]].set_visible(False)
left.axhline(LIMIT_MB, color=MUTED, linestyle=(0, (4, 3)), linewidth=1)
left.text(
    thousands[-1], LIMIT_MB, f"memory_limit, {LIMIT_MB} MB", va="bottom", ha="right", color=MUTED
)
left.set_title(
    f"All {n_rows // 1000} thousand rows: {blocks[-1][1]:.0f} MB instead of {memory[-1][1]:.0f}"
)
right.set_title(f"and {blocks[-1][2]:.1f} s instead of {memory[-1][2]:.1f}")
right.legend(frameon=False)
plt.show()

# %%
# The same result
# ---------------

one, other = blocks[-1][0], memory[-1][0]
figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.9))
for axis, fitted, title in ((axes[0], one, "in blocks"), (axes[1], other, "in memory")):
    axis.imshow(fitted.scores_.reshape(SIDE, SIDE), cmap="cividis", norm=PowerNorm(0.5))
    at_row, at_column = np.unravel_index(fitted.top().indices, (SIDE, SIDE))
    axis.scatter(at_column, at_row, s=60, color=RED, edgecolor="white", linewidth=1)
    axis.set_title(f"Scores {title}; red: kept", fontsize=10)
    axis.set_axis_off()
same = len(set(one.top().indices) & set(other.top().indices))
figure.suptitle(
    f"{same} of {len(one.top())} kept pixels are the same; scores differ by at most "
    f"{np.abs(one.scores_ - other.scores_).max():.0e}",
    x=0.01,
    ha="left",
)
plt.show()
folder.cleanup()
