"""Select 20 of 2308 genes of 83 tumour samples; labels are not used for the selection."""

import time
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

from keepers import SPCAFSCV, datasets

matplotlib.use("Agg")
import matplotlib.pyplot as plt

OUTPUT = Path("demo-output")
KEPT = 20


def leading_plane(X: np.ndarray) -> np.ndarray:
    """The samples in the plane of their first two principal components."""
    centred = X - X.mean(axis=0)
    left, singular, _ = np.linalg.svd(centred, full_matrices=False)
    return left[:, :2] * singular[:2]


def print_table(selector: SPCAFSCV, X: np.ndarray) -> None:
    """Rank, name, score, variance and most correlated kept gene of the best genes."""
    top = selector.top(KEPT)
    likeness = np.abs(np.corrcoef(X[:, top.indices].T)) - np.eye(KEPT)
    print(f"{'rank':>4}  {'gene':<9} {'score':>6}  {'variance':>8}  most correlated of these")
    for row, index in enumerate(top.indices):
        twin = int(np.argmax(likeness[row]))
        print(
            f"{row + 1:>4}  {top.names[row]:<9} {top.scores[row]:>6.3f}  "
            f"{X[:, index].var():>8.2f}  {top.names[twin]} (|r| = {likeness[row, twin]:.2f})"
        )


def draw(selector: SPCAFSCV, table: pd.DataFrame, y: np.ndarray, path: Path) -> None:
    """Score curve, the kept genes over the samples, and the samples before and after."""
    X = table.to_numpy()
    top = selector.top(KEPT)
    tumours = sorted(set(y))
    colours = dict(zip(tumours, ("#0072b2", "#d55e00", "#009e73", "#cc79a7"), strict=True))
    figure, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    curve, heat, before, after = axes.ravel()

    curve.plot(np.arange(1, 201), selector.top(200).scores, color="#0072b2")
    curve.axvspan(1, KEPT, color="#0072b2", alpha=0.12, label=f"the {KEPT} kept")
    curve.set(xlabel="rank of the gene", ylabel="score", title="Scores of the best 200 genes")
    curve.legend(frameon=False)

    order = np.argsort(y, kind="stable")
    centred = (X[:, top.indices] - X[:, top.indices].mean(axis=0))[order].T
    image = heat.imshow(centred, aspect="auto", cmap="RdBu_r", vmin=-4, vmax=4)
    heat.set_yticks(range(KEPT), top.names, fontsize=7)
    edges = np.flatnonzero(np.diff(np.searchsorted(tumours, y[order]))) + 0.5
    for edge in edges:
        heat.axvline(edge, color="black", linewidth=0.8)
    bounds = np.concatenate([[0], edges + 0.5, [len(y)]])
    heat.set_xticks((bounds[:-1] + bounds[1:]) / 2 - 0.5, tumours)
    heat.set_title(f"The {KEPT} kept genes; samples grouped by tumour")
    figure.colorbar(image, ax=heat, label="log2 ratio, centred")

    for axis, values, title in (
        (before, X, f"All {X.shape[1]} genes"),
        (after, selector.transform(table).to_numpy(), f"The {KEPT} kept genes"),
    ):
        plane = leading_plane(values)
        for tumour in tumours:
            of_kind = y == tumour
            axis.scatter(*plane[of_kind].T, color=colours[tumour], s=22, label=tumour)
        axis.set(xlabel="component 1", ylabel="component 2", title=title)
    after.legend(
        frameon=False, title="tumour\n(not used)", loc="center left", bbox_to_anchor=(1, 0.5)
    )
    figure.savefig(path, dpi=130)


def main() -> None:
    """Fit, print, draw."""
    X, names, y = datasets.load("srbct")
    started = time.perf_counter()
    table = pd.DataFrame(np.log2(X), columns=names)  # expression ratios are compared on a log scale
    selector = SPCAFSCV(KEPT, random_state=0).set_output(transform="pandas").fit(table)
    took = time.perf_counter() - started
    winner = selector.best_estimator_
    print(
        f"SPCAFS on {X.shape[0]} samples x {X.shape[1]} genes: the best of "
        f"{len(selector.choice_.trials)} settings, compared without labels, has "
        f"{winner.n_components_} components and gamma = {winner.gamma_:.3g}; {took:.1f} s\n"
    )
    print_table(selector, table.to_numpy())
    OUTPUT.mkdir(exist_ok=True)
    picture = OUTPUT / "srbct.png"
    draw(selector, table, y, picture)
    print(f"\nPicture: {picture}")


main()
