"""RNE and EUFS on shapes of the paper's study: each against its plainer form in the same run."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType

import numpy as np
from sklearn.datasets import make_blobs

from keepers import EUFS, RNE
from keepers.solvers import multiplicative_updates, row_combinations
from measure import benchmark_data, side_by_side


@contextmanager
def setting(module: ModuleType, name: str, value: float) -> Iterator[None]:
    """A constant of a module with another value inside the block."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def table(name: str, n_samples: int, n_features: int) -> np.ndarray:
    """A data set of the study, or clusters of its shape where it is not there."""
    X = benchmark_data(name)
    if X is not None:
        return X
    return make_blobs(n_samples, n_features, centers=10, cluster_std=20.0, random_state=0)[0]


def compare(
    selector: RNE | EUFS, X: np.ndarray, module: ModuleType, constant: str, value: float
) -> dict[str, float]:
    """Seconds of a fit, and with a constant that leaves only the plain form."""

    def plain() -> None:
        with setting(module, constant, value):
            selector.fit(X)

    measured = side_by_side(lambda: selector.fit(X), plain, repeats=3, warm=False)
    return {**measured, "faster": measured["theirs_s"] / measured["ours_s"]}


def rne(name: str, n_samples: int, n_features: int, alpha: float) -> dict[str, float]:
    """Only the entries of H that count, against whole products."""
    X = table(name, n_samples, n_features)
    selector = RNE(50, alpha=alpha, random_state=0)
    return compare(selector, X, multiplicative_updates, "CALLS", np.inf)


def eufs(name: str, n_samples: int, n_features: int, n_clusters: int) -> dict[str, float]:
    """Combinations of a few fits, against stored arrays."""
    X = table(name, n_samples, n_features)
    selector = EUFS(n_clusters=n_clusters, random_state=0)
    return compare(selector, X, row_combinations, "MOST_FITS", 0)


CASES = {
    "RNE: Imm40 240 x 1024, alpha = 1000": partial(rne, "Imm40", 240, 1024, 1e3),
    "RNE: Imm40 240 x 1024, alpha = 1": partial(rne, "Imm40", 240, 1024, 1.0),
    "RNE: SRBCTML 83 x 2308, alpha = 1000": partial(rne, "SRBCTML", 83, 2308, 1e3),
    "EUFS: Imm40 240 x 1024, 39 clusters": partial(eufs, "Imm40", 240, 1024, 39),
    "EUFS: SRBCTML 83 x 2308, 3 clusters": partial(eufs, "SRBCTML", 83, 2308, 3),
}
