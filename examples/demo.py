"""Select genes of 83 tumour samples, without labels and without settings."""

import textwrap
import time
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

from keepers import AutoSelector, datasets

matplotlib.use("Agg")
import matplotlib.pyplot as plt

OUTPUT = Path("demo-output")
SHOWN = 20


def leading_plane(X: np.ndarray) -> np.ndarray:
    """The samples in the plane of their first two principal components."""
    centred = X - X.mean(axis=0)
    left, singular, _ = np.linalg.svd(centred, full_matrices=False)
    return left[:, :2] * singular[:2]


def print_table(selector: AutoSelector, X: np.ndarray) -> None:
    """Rank, name, score, variance and most correlated kept gene of the best genes."""
    top = selector.top()
    likeness = np.abs(np.corrcoef(X[:, top.indices].T)) - np.eye(len(top))
    print(f"{'rank':>4}  {'gene':<9} {'score':>6}  {'variance':>8}  most correlated of the kept")
    for row, index in enumerate(top.indices[:SHOWN]):
        twin = int(np.argmax(likeness[row]))
        print(
            f"{row + 1:>4}  {top.names[row]:<9} {top.scores[row]:>6.3f}  "
            f"{X[:, index].var():>8.2f}  {top.names[twin]} (|r| = {likeness[row, twin]:.2f})"
        )
    if len(top) > SHOWN:
        print(f"      and {len(top) - SHOWN} more")


def draw(selector: AutoSelector, table: pd.DataFrame, y: np.ndarray, path: Path) -> None:
    """How many are enough, the best genes over the samples, and the samples before and after."""
    X = table.to_numpy()
    kept, best = selector.n_features_to_select_, selector.top(SHOWN)
    tumours = sorted(set(y))
    colours = dict(zip(tumours, ("#0072b2", "#d55e00", "#009e73", "#cc79a7"), strict=True))
    figure, axes = plt.subplots(2, 2, figsize=(8.4, 7.4), layout="constrained")
    curve, heat, before, after = axes.ravel()

    curve.plot(selector.counts_, selector.agreement_, color="#0072b2", label="the best genes")
    curve.axhline(
        selector.random_agreement_.mean(), color="grey", ls=":", label=f"{kept} random genes"
    )
    curve.axvline(kept, color="#56b4e9", label=f"the {kept} kept")
    curve.set(xlabel="number of genes", ylabel="share of neighbours preserved", ylim=(0, 1))
    curve.set_title("How many genes are enough")
    curve.legend(frameon=False, loc="lower right")

    order = np.argsort(y, kind="stable")
    columns = X[:, best.indices]
    standardised = ((columns - columns.mean(axis=0)) / columns.std(axis=0))[order].T
    image = heat.imshow(standardised, aspect="auto", cmap="RdBu_r", vmin=-3, vmax=3)
    heat.set_yticks(range(SHOWN), best.names, fontsize=9)
    edges = np.flatnonzero(np.diff(np.searchsorted(tumours, y[order]))) + 0.5
    for edge in edges:
        heat.axvline(edge, color="black", linewidth=0.8)
    bounds = np.concatenate([[0], edges + 0.5, [len(y)]])
    heat.set_xticks((bounds[:-1] + bounds[1:]) / 2 - 0.5, tumours)
    heat.set_title(f"The best {SHOWN} genes, samples by tumour")
    figure.colorbar(image, ax=heat, label="standard deviations from the mean", aspect=30)

    for axis, values, title in (
        (before, X, f"All {X.shape[1]} genes"),
        (after, selector.transform(table).to_numpy(), f"The {kept} kept genes"),
    ):
        plane = leading_plane(values)
        for tumour in tumours:
            of_kind = y == tumour
            axis.scatter(*plane[of_kind].T, color=colours[tumour], s=22, label=tumour)
        axis.set(xlabel="component 1", ylabel="component 2", title=title)
    handles, labels = after.get_legend_handles_labels()
    title = "tumour (not used for the selection)"
    figure.legend(handles, labels, title=title, frameon=False, ncols=4, loc="outside lower center")
    figure.savefig(path, dpi=130)


def main() -> None:
    """Fit, print, draw."""
    X, names, y = datasets.load("srbct")
    started = time.perf_counter()
    table = pd.DataFrame(X, columns=names)
    selector = AutoSelector().set_output(transform="pandas").fit(table)
    took = time.perf_counter() - started
    print(f"AutoSelector on {X.shape[0]} samples x {X.shape[1]} genes, {took:.1f} s\n")
    print(textwrap.fill(selector.summary_, 90))
    for doubt in selector.doubts_:
        print(textwrap.fill(f"- {doubt}", 90, subsequent_indent="  "))
    print()
    print_table(selector, table.to_numpy())
    OUTPUT.mkdir(exist_ok=True)
    picture = OUTPUT / "srbct.png"
    draw(selector, table, y, picture)
    print(f"\nPicture: {picture}")


main()
