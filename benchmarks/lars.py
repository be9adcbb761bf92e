"""Our lasso path against scikit-learn's, on the regressions that MCFS makes.

    OMP_NUM_THREADS=1 python benchmarks/lars.py

Behind docs/decisions/0011-own-lars.md. Five targets, the ridge of MCFS; all sides stop at the first
knot with the wanted number of non-zero coefficients, scikit-learn after as many steps as that took
ours. `lars_path` gets the ridge as d further rows, `lars_path_gram` the d x d Gram matrix, whose
forming is part of its time; ours forms the rows of it that it needs. Times are of the processor, so
that what else the machine does counts little.
"""

import statistics
import time
import warnings

import numpy as np
from sklearn.linear_model import lars_path, lars_path_gram

from keepers import MCFS, datasets
from keepers.methods.rivals.mcfs import Gram, first_knots_of_sizes

RIDGE, REPEATS = 1e-3, 5


def by_ours(X, Y, size, _steps):
    """Coefficients, and how many knots it took."""
    gram = Gram(X, RIDGE)
    coef = np.zeros((Y.shape[1], X.shape[1]))
    steps = []
    for row, y in zip(coef, Y.T, strict=True):
        ((knot, n_knots),) = first_knots_of_sizes(gram, X.T @ y, [size])
        row[knot.features] = knot.values
        steps.append(n_knots)
    return coef, steps


def by_lars_path_gram(X, Y, _size, steps):
    """scikit-learn from the Gram matrix."""
    gram = X.T @ X + RIDGE * np.eye(X.shape[1])
    return np.array(
        [
            lars_path_gram(X.T @ y, gram, n_samples=1, method="lasso", max_iter=k, alpha_min=0)[2][
                :, -1
            ]
            for y, k in zip(Y.T, steps, strict=True)
        ]
    )


def by_lars_path(X, Y, _size, steps):
    """scikit-learn from the data."""
    d = X.shape[1]
    stacked = np.vstack([X, np.sqrt(RIDGE) * np.eye(d)])
    return np.array(
        [
            lars_path(stacked, np.append(y, np.zeros(d)), Gram=False, method="lasso", max_iter=k)[
                2
            ][:, -1]
            for y, k in zip(Y.T, steps, strict=True)
        ]
    )


def tables():
    """SRBCT, and clusters of more samples than features."""
    yield "83 x 2308", datasets.load("srbct").X
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((6, 600))
    yield "1000 x 600", centres[rng.integers(6, size=1000)] + rng.standard_normal((1000, 600))


def main():
    """Print the table."""
    warnings.simplefilter("ignore")
    print("| X | non-zeros | ours s | lars_path_gram s (ratio) | lars_path s (ratio) | apart |")
    print("|---|---|---|---|---|---|")
    for name, X in tables():
        X = X - X.mean(axis=0)
        Y = MCFS(10, n_clusters=5, random_state=0).fit(X).embedding_
        for size in (50, 200):
            _, steps = by_ours(X, Y, size, None)
            sides = (by_ours, by_lars_path_gram, by_lars_path)
            times = {side: [] for side in sides}
            found = {}
            for _ in range(REPEATS):
                for side in sides:
                    started = time.process_time()
                    found[side] = side(X, Y, size, steps)
                    times[side].append(time.process_time() - started)
            ours, gram, path = (statistics.median(times[side]) for side in sides)
            coef = found[by_ours][0]
            apart = np.abs(coef - found[by_lars_path_gram]).max() / np.abs(coef).max()
            print(
                f"| {name} | {size} | {ours:.3f} | {gram:.3f} ({gram / ours:.1f}) "
                f"| {path:.3f} ({path / ours:.1f}) | {apart:.0e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
