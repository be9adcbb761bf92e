"""
Eighty words that describe the topics of texts
==============================================

A table of texts is very wide and sparse: it has a column for every word, and nearly all values are
zero. With fewer words the topics are readable and every later step is cheap. The table stays sparse
throughout; it is never converted to a dense array.
"""

# %%
# To avoid a download, the texts are the docstrings of NumPy, SciPy and scikit-learn. Each
# documented function is a document. We use the summary and the notes of its docstring, without
# lists of parameters, code, formulas and sentences that occur in many places.

import importlib
import inspect
import re
import warnings
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from keepers import SPCAFS

INK, MUTED = "#1f242a", "#59626d"
COLOURS = (
    "#332288", "#2e93cc", "#117733", "#d99000", "#c8341b", "#aa4499", "#44aa99", "#7f7a1c",
)  # fmt: skip
plt.rcParams.update(
    {"figure.constrained_layout.use": True, "axes.titlelocation": "left", "text.color": INK}
)

MODULES = {
    "numpy": ". fft linalg polynomial random",
    "scipy": "cluster.hierarchy fft integrate interpolate linalg ndimage optimize signal sparse "
    "sparse.linalg spatial.distance special stats",
    "sklearn": "cluster decomposition ensemble feature_selection linear_model manifold metrics "
    "model_selection preprocessing tree",
}
MODULES = [
    f"{package}.{name}".rstrip(".")
    for package, all_of in MODULES.items()
    for name in all_of.split()
]


def documented(module_name):
    """Public names of a module, with their docstrings."""
    module = importlib.import_module(module_name)
    for name in sorted(getattr(module, "__all__", dir(module))):
        try:
            thing = getattr(module, name)
        except (AttributeError, ImportError):  # announced, but not there yet or any more
            continue
        if callable(thing) and inspect.getdoc(thing):
            yield thing, inspect.getdoc(thing)


def prose_of(docstring):
    """Summary and notes, without code, formulas and references."""
    without_signature = re.sub(r"^\w+\([^\n]*\n(?:[^\n]*\)\n)?\n", "", docstring)
    summary, *sections = re.split(r"\n([A-Z][\w ]+)\n-{3,}\n", without_signature)
    notes = [sections[i + 1] for i in range(0, len(sections), 2) if sections[i] == "Notes"]
    text = "\n".join([summary, *notes])
    return re.sub(r"``.*?``|:\w+:`.*?`|`.*?`|\.\. .*|>>>.*|\\\w+|\[\d+\]_?", " ", text)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # old names warn that they are old
    found = {}
    for module_name in MODULES:
        for thing, docstring in documented(module_name):
            found.setdefault(id(thing), (module_name, prose_of(docstring), thing))

lines = Counter(line.strip() for _, prose, _ in found.values() for line in prose.splitlines())
home, texts = [], []
for module_name, prose, _ in found.values():
    rare = " ".join(line for line in prose.splitlines() if lines[line.strip()] <= 3)
    if len(rare.split()) >= 12:
        home.append(module_name)
        texts.append(rare)
home = np.array(home)

words = TfidfVectorizer(
    stop_words="english", min_df=6, max_df=0.2, token_pattern=r"\b[a-z]{4,}\b", sublinear_tf=True
)
X = words.fit_transform(texts)
names = words.get_feature_names_out()
print(
    f"{X.shape[0]} documents, {X.shape[1]} words, {X.nnz / np.prod(X.shape):.1%} of the table is "
    "not zero"
)

# %%
# Words by component
# ------------------
#
# ``SPCAFS`` accepts the CSR matrix as it is. A rotation of its components changes neither variance
# nor scores, so we use the rotation that is easiest to read (the varimax of factor analysis, with
# which every word belongs to few components).

KEPT, TOPICS = 80, 8
default = SPCAFS(n_components=TOPICS, random_state=0).fit(X)
selector = SPCAFS(KEPT, n_components=TOPICS, gamma=default.gamma_ / 5, random_state=0).fit(X)


def varimax(loadings, steps=200):
    """The rotation that makes squared loadings as uneven as possible."""
    rotation = np.eye(loadings.shape[1])
    for _ in range(steps):
        turned = loadings @ rotation
        pull = loadings.T @ (turned**3 - turned * np.mean(turned**2, axis=0))
        left, _, right = np.linalg.svd(pull)
        rotation = left @ right
    return rotation


components = selector.components_.T @ varimax(selector.components_.T)
components *= np.sign(components[np.abs(components).argmax(axis=0), np.arange(TOPICS)])
kept = selector.top().indices
topic_of = np.argmax(components[kept], axis=1)

# Strength of each topic in a document, from the kept words only.
strength = X[:, kept] @ np.maximum(components[kept], 0)
modules = [name for name in MODULES if np.sum(home == name) >= 8]
by_module = np.array([strength[home == name].mean(axis=0) for name in modules])
strongest = [modules[row] for row in by_module.argmax(axis=0)]
order = np.argsort([modules.index(name) for name in strongest], kind="stable")

figure, axes = plt.subplots(2, TOPICS // 2, figsize=(10.5, 6.6))
for axis, topic, colour in zip(axes.ravel(), order, COLOURS, strict=True):
    best = [word for word in np.argsort(-components[:, topic]) if word in set(kept)][:9]
    axis.barh(range(len(best)), components[best, topic], color=colour, height=0.7)
    axis.set_yticks(range(len(best)), names[best], fontsize=10)
    axis.invert_yaxis()
    axis.set_xticks([])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.set_title(f"most in\n{strongest[topic]}", fontsize=9, color=colour)
figure.suptitle(
    f"{TOPICS} topics in {KEPT} of {X.shape[1]} words; the module of a text was not used",
    x=0.01,
    ha="left",
)
plt.show()

# %%
# Topics by module
# ----------------
#
# The mean strength of each topic in the documents of each module, from the kept words alone.

figure, axis = plt.subplots(figsize=(8.6, 7))
share = by_module[:, order] / by_module[:, order].max(axis=0)
axis.imshow(share, cmap="Greys", vmin=0, vmax=1, aspect="auto")
for column, (topic, colour) in enumerate(zip(order, COLOURS, strict=True)):
    row = modules.index(strongest[topic])
    axis.add_patch(
        plt.Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=colour, linewidth=3)
    )
headings = [" / ".join(names[np.argsort(-components[:, topic])[:2]]) for topic in order]
axis.set_xticks(range(TOPICS), headings, rotation=35, ha="left", rotation_mode="anchor")
axis.xaxis.tick_top()
axis.set_yticks(range(len(modules)), modules)
axis.tick_params(length=0)
axis.spines[:].set_visible(False)
homes = len({strongest[topic] for topic in order})
axis.set_title(f"The {TOPICS} topics are strongest in {homes} different modules", pad=12)
plt.show()
