"""How the paper judges a selection: k-means on the kept columns, again and again, against classes.

Every method is judged on the same footing: the kept columns in the order of the table, as many
clusters as there are classes, and the same seeds.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from keepers._protocols import IndexArray
from keepers.metrics import clustering_accuracy, normalized_mutual_information

__all__ = ["Judgement", "judge_columns"]


@dataclass(frozen=True)
class Judgement:
    """ACC and NMI of each repeat of k-means on one set of columns."""

    n_features: int
    acc: tuple[float, ...]
    nmi: tuple[float, ...]
    seconds: float


def judge_columns(
    X: Any, classes: NDArray[Any], columns: IndexArray, *, n_repeats: int, seed: int
) -> Judgement:
    """Cluster X[:, columns] ``n_repeats`` times, with seeds ``seed``, ``seed`` + 1, ..."""
    began = time.perf_counter()
    kept = X[:, np.sort(columns)]
    n_clusters = len(np.unique(classes))
    clusterings = [
        KMeans(n_clusters, n_init=1, random_state=seed + repeat).fit_predict(kept)
        for repeat in range(n_repeats)
    ]
    return Judgement(
        n_features=len(columns),
        acc=tuple(clustering_accuracy(classes, found) for found in clusterings),
        nmi=tuple(normalized_mutual_information(classes, found) for found in clusterings),
        seconds=time.perf_counter() - began,
    )
