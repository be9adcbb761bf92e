"""When do features that repeat each other hurt? Runs the study of docs/redundancy.md.

python tools/study_redundancy.py    studies/results/redundancy/redundancy.csv

The 50 best features of SPCAFS with next to no penalty, the 50 best that correlate below 0.6, and 50
at random: how many directions they span, how much of the variance they hold, and the accuracy of
k-means on them.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from keepers_studies.worker import judge_columns
from study_without_labels import load

from keepers import SPCAFS
from keepers.exceptions import KeepersWarning
from keepers.tables.atomic import whole_file

TARGET = Path(__file__).parents[1] / "studies" / "results" / "redundancy" / "redundancy.csv"
DATA = ("Yale", "Isolet", "COIL20", "PalmData25", "Imm40", "warpPIE10P")
DATA += ("AR", "PIE", "LEUML", "SRBCTML", "colon", "GLIOMA")
MANY_CLASSES = ("AR", "PalmData25")
K, LIMIT, DRAWS, REPEATS, DRAW_REPEATS = 50, 0.6, 8, 20, 5
SHARE = 1e-5


def effective_rank(X: np.ndarray) -> float:
    """The exponential of the entropy of the eigenvalues of the scatter."""
    values = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    shares = values[values > 0] / values.sum()
    return float(np.exp(-np.sum(shares * np.log(shares))))


def described(X: np.ndarray, classes: np.ndarray, columns: np.ndarray, repeats: int) -> list[float]:
    """Effective rank, share of the variance, accuracy."""
    judged = judge_columns(X, classes, columns, n_repeats=repeats, seed=0)
    spread = X.var(axis=0)
    share = float(spread[columns].sum() / spread.sum())
    return [effective_rank(X[:, columns]), share, float(np.mean(judged.acc))]


def rows_of(name: str) -> list[dict[str, object]]:
    """Top, pruned and random features of one data set."""
    X, y = load(name)
    classes = np.unique(y, return_inverse=True)[1]
    width = min(30 if name in MANY_CLASSES else 10, len(X) - 1)
    probe = SPCAFS(n_components=width, gamma="scale", max_iter=1).fit(X)
    gamma = SHARE * 10 * probe.gamma_  # "scale" is a tenth of the leading eigenvalue
    settings = {"n_components": width, "gamma": gamma, "random_state": 0}
    top = SPCAFS(K, **settings).fit(X).top().indices
    pruned = SPCAFS(K, max_correlation=LIMIT, **settings).fit(X).top().indices
    usable = np.flatnonzero(X.var(axis=0) > 0)
    draws = [np.random.default_rng(draw).permutation(usable)[:K] for draw in range(DRAWS)]
    found = {
        "top": described(X, classes, top, REPEATS),
        "pruned": described(X, classes, pruned, REPEATS),
        "random": np.mean([described(X, classes, d, DRAW_REPEATS) for d in draws], axis=0),
    }
    return [
        {"data": name, "features": kind, "effective rank": values[0]}
        | {"variance share": values[1], "acc": values[2]}
        for kind, values in found.items()
    ]


def main() -> None:
    """All data sets, written at once."""
    warnings.simplefilter("ignore", KeepersWarning)
    rows: list[dict[str, object]] = []
    for name in DATA:
        rows += rows_of(name)
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(TARGET, force=True) as temporary:
        pd.DataFrame(rows).to_csv(temporary, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
