"""The landing page's two pictures, of one table before and after selection, and its sentences.

The right answer is known: the table holds the measurements of 178 wines, among columns of the same
values in random order, which are unrelated to the wines.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA

from figures.drawing import BLUE, GREEN, ORANGE, board, keep_figure, keep_text
from keepers import AutoSelector
from keepers.metrics import clustering_accuracy

__all__ = ["Wines", "describe", "wines_among_noise", "write"]

N_SHUFFLED = 300
COLOURS = (BLUE, ORANGE, GREEN)
MARKS = ("o", "^", "s")
# Read on a telephone, where each picture is as wide as the screen.
SIZE, LARGE = (4.4, 3.5), 13.0


@dataclass(frozen=True)
class Wines:
    """The table, its answer and what is only used for checking."""

    values: NDArray[np.float64]
    kept: NDArray[np.float64]
    cultivar: NDArray[np.int64]
    n_measured: int
    n_with_structure: int
    n_shuffled_kept: int


def wines_among_noise() -> Wines:
    """Select from the wines' measurements and shuffled copies of them, without settings."""
    wines = load_wine()
    measured = (wines.data - wines.data.mean(axis=0)) / wines.data.std(axis=0)
    n_measured = measured.shape[1]
    copies = np.tile(measured, (1, -(-N_SHUFFLED // n_measured)))[:, :N_SHUFFLED]
    values = np.hstack([measured, np.random.default_rng(0).permuted(copies, axis=0)])
    selector = AutoSelector().fit(values)
    return Wines(
        values=values,
        kept=selector.transform(values),
        cultivar=wines.target,
        n_measured=n_measured,
        n_with_structure=int(np.sum(selector.carries_structure_)),
        n_shuffled_kept=int(np.sum(selector.top().indices >= n_measured)),
    )


def accuracy(values: NDArray[np.float64], classes: NDArray[np.int64]) -> float:
    """Share of the samples that k-means puts into the right class, mean of 20 starts."""
    starts = [KMeans(len(set(classes)), n_init=1, random_state=seed) for seed in range(20)]
    return float(np.mean([clustering_accuracy(classes, k.fit_predict(values)) for k in starts]))


def draw_plane(values: NDArray[np.float64], cultivar: NDArray[np.int64], title: str) -> Any:
    """The wines in the plane of their first two principal components."""
    figure, axis = board(1, 1, SIZE)
    plane = PCA(2, random_state=0).fit_transform(values)
    for kind, (colour, mark) in enumerate(zip(COLOURS, MARKS, strict=True)):
        axis.scatter(*plane[cultivar == kind].T, color=colour, marker=mark, s=30, linewidth=0)
    axis.set_title(title, fontsize=LARGE + 3)
    axis.set_xlabel("component 1", fontsize=LARGE)
    axis.set_ylabel("component 2", fontsize=LARGE)
    axis.set(xticks=[], yticks=[])
    return figure


def describe(wines: Wines) -> str:
    """The caption, with the numbers of this selection."""
    before, after = (accuracy(values, wines.cultivar) for values in (wines.values, wines.kept))
    n_columns, n_kept = wines.values.shape[1], wines.kept.shape[1]
    shuffled = wines.n_shuffled_kept or "none"
    return (
        f"*{len(wines.cultivar)} wines with {wines.n_measured} measurements, hidden among "
        f"{N_SHUFFLED} columns of the same values in random order. keepers finds structure in "
        f"{wines.n_with_structure} of the {n_columns} columns and keeps {n_kept}; {shuffled} of "
        f"them is shuffled. On the kept columns, k-means finds the cultivar of {after:.0%} of the "
        f"wines; on all columns, of {before:.0%}. Colours show the cultivar; the selection never "
        "saw it.*\n"
    )


def write(folder: Path) -> list[Path]:
    """Two pictures and a caption."""
    wines = wines_among_noise()
    pictures = (
        ("landing-before.svg", wines.values, f"All {wines.values.shape[1]} columns"),
        ("landing-after.svg", wines.kept, f"The {wines.kept.shape[1]} kept columns"),
    )
    drawn = [
        keep_figure(draw_plane(values, wines.cultivar, title), folder / name)
        for name, values, title in pictures
    ]
    return [*drawn, keep_text(folder / "landing.md", describe(wines))]
