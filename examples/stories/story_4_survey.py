"""
A survey: gaps, categories, and codes that are not answers
==========================================================

You have a survey: a row per person, a column per question, codes instead of words, gaps, and a
code book in another file. You want to know which questions matter before you decide what to
predict. This tutorial shows what goes wrong if you take the file literally, how the check reveals
it, and what you find after cleaning.
"""

# %%
# 1629 smokers answered this survey in 1971 and again in 1982 (National Health and
# Nutrition Examination Survey, follow-up; public data of the United States, as used in the
# textbook of Hernán and Robins). They come with the package causaldata. To run it yourself,
# install keepers (:doc:`/install`) and
#
# ``pip install causaldata statsmodels``
#
# The file
# --------

import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from causaldata import nhefs, nhefs_codebook
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import keepers
from keepers import AutoSelector, TablePreparer

folder = tempfile.TemporaryDirectory()
here = Path(folder.name)

survey = nhefs.load_pandas().data
survey.to_csv(here / "survey.csv", index=False)
print(survey.shape)
print(survey.iloc[:4, :14].to_string(index=False))

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


terminal("keepers check survey.csv")

# %%
# Gaps, different units and an identifier are common, and each comes with an option. But one line
# is strange: ``pica`` (eating clay or starch) is nearly the same as ``diabetes``. Drop one of the
# two anyway, and see what the selection finds:

terminal("keepers select survey.csv --id id --missing model --drop pica", most_lines=10)

# %%
# The best column of the survey is ``diabetes``, and its closest relative is ``seqn``, the serial
# number of the questionnaire. Diabetes cannot depend on a serial number. The code book explains
# it:

book = nhefs_codebook.load_pandas().data.set_index("variable")["description"]
for question in ("diabetes", "pica", "hbp"):
    print(f"{question}: {book[question].strip()}")
codes = {0: "0 never", 1: "1 ever", 2: "2 missing"}
print(survey["diabetes"].map(codes).value_counts().to_string())
unasked = (survey["diabetes"] == 2).groupby(pd.qcut(survey["seqn"], 8), observed=True).mean()

figure, axis = plt.subplots(figsize=(9.6, 3), layout="constrained")
places = [f"{part.left:,.0f}\nto {part.right:,.0f}" for part in unasked.index]
axis.bar(places, unasked, color="#c8341b")
axis.set(ylabel="share with code 2", xlabel="serial number of the questionnaire")
axis.set_title("About half never got the question: code 2 is not an answer", loc="left")
axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Clean it
# --------
#
# The strongest structure in this file is which form people were given. Only you can judge that it
# is of no interest. So:
#
# - code 2 ("missing") becomes a gap, and so does "unknown";
# - codes without an order become words, so they are read as categories;
# - we drop serial numbers, questions for women only (for men, the gap is not a missing answer),
#   and tobacco prices and taxes, which describe the state and not the person;
# - we drop everything after 1971, because we want to use the first interview only. Who had died
#   by 1992 is used at the end.

person = survey.astype(dict.fromkeys(survey.select_dtypes("category"), float))
dead = person["death"].astype(int)
asked = ["hbp", "diabetes", "pica", "hbpmed", "boweltrouble", "alcoholpy"]
person[asked] = person[asked].replace(2, np.nan)
person["alcoholfreq"] = person["alcoholfreq"].replace(5, np.nan)
words = {
    "sex": {0: "male", 1: "female"},
    "race": {0: "white", 1: "black or other"},
    "marital": {2: "married", 3: "widowed", 4: "never married", 5: "divorced", 6: "separated"},
    "alcoholtype": {1: "beer", 2: "wine", 3: "liquor", 4: "other"},
}
for question, meaning in words.items():
    person[question] = person[question].map(meaning)
person["birthplace"] = "state " + person["birthplace"].map("{:.0f}".format, na_action="ignore")
later = ["death", "yrdth", "modth", "dadth", "censored", "older", "wt82", "wt82_71", "qsmk"]
later += ["smkintensity82_71", "sbp", "dbp"]
of_the_state = [name for name in person if name.startswith(("price", "tax", "hightax"))]
person = person.drop(columns=["seqn", "birthcontrol", "pregnancies", *later, *of_the_state])
person.to_csv(here / "mended.csv", index=False)

terminal("keepers check mended.csv")

# %%
# A place of birth with 49 values is read as free text and not used; that is fine here.
#
# Select
# ------

terminal("keepers select mended.csv --id id --missing model --out kept.csv --report report.html")

# %%
# In the output file, categories are still words. In Python, ``AutoSelector`` takes this table
# directly. We prepare it in a separate step here, because the check below needs numbers without
# gaps:

preparer = TablePreparer(missing="model").set_output(transform="pandas")
numbers = preparer.fit_transform(person)
for note in preparer.notes_:
    print(textwrap.fill(note, 96, subsequent_indent="  "))
selector = AutoSelector(random_state=0).fit(numbers)
kept = list(selector.top().names)
keepers.report(selector, numbers, title="Survey of smokers, 1971")

# %%
# Why these questions
# -------------------
#
# A question scores high if similar people give similar answers to it. Questions without structure
# are unrelated to everything else in the survey.

selection = keepers.describe_selection(selector, numbers)
reasons = pd.Series({item.name: item.reason for item in selection.dropped})
print(textwrap.fill(f"kept: {', '.join(kept)}", 96))
for reason, names in reasons.groupby(reasons).groups.items():
    print(textwrap.fill(f"{reason}: {', '.join(names)}", 96))

# %%
# Check it with what was not used
# -------------------------------
#
# 318 of these people had died by 1992. If the kept answers hold what matters about a person, they
# should predict this about as well as all answers. The area under the ROC curve is 0.5 for a
# guess and 1 for a perfect prediction; it is measured on people whom the model has not seen (ten
# folds).

model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def predicted(columns):
    """Area under the curve for deaths until 1992, by logistic regression."""
    return cross_val_score(model, numbers[columns], dead, scoring="roc_auc", cv=10).mean()


rng = np.random.default_rng(0)
drawn = [predicted(list(rng.choice(numbers.columns, len(kept), replace=False))) for _ in range(10)]
results = {
    f"all {numbers.shape[1]} answers": predicted(list(numbers.columns)),
    f"the {len(kept)} kept": predicted(kept),
    "the first 5": predicted(kept[:5]),
    "age alone": predicted(["age"]),
    "kept, without age": predicted([name for name in kept if name != "age"]),
    f"{len(kept)} at random": np.mean(drawn),
}
figure, axis = plt.subplots(figsize=(9.6, 3.2), layout="constrained")
axis.barh(list(results)[::-1], list(results.values())[::-1], color="#2e93cc")
axis.plot([min(drawn), max(drawn)], [0, 0], color="#1f242a", linewidth=2)
for place, share in enumerate(reversed(results.values())):
    axis.text(0.505, place, f"{share:.2f}", va="center", color="white")
axis.set(xlim=(0.5, 0.9), xlabel="area under the curve (line: lowest and highest of 10 draws)")
axis.set_title("Deaths until 1992, predicted from answers of 1971", loc="left")
axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Conclusion
# ----------
#
# - Fewer than half of the answers predict deaths as well as all of them. They were chosen without
#   knowing who died.
# - **Be modest:** age alone does nearly as well. The selection kept age, which a random choice may
#   miss, and dropped nothing that this prediction needs.
# - **The number is rough:** five questions do nearly as well in this check.
# - **Uncertain:** in five columns half of the people never got the question, and their answers were
#   estimated from the others. Use ``--drop`` to see the result without these columns.
# - Without labels, "matters" means "goes with other answers". An unrelated question, such as a
#   rare disease, ranks low even if it decides about life and death. If you know what you want to
#   predict, use a supervised method.
# - The most useful finding came before the selection: a code that was not an answer, revealed by
#   two columns that should not be alike.
#
# More on gaps and categories: :doc:`/prepare-your-table`.

folder.cleanup()

# sphinx_gallery_thumbnail_number = 2
