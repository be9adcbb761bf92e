"""How well a few columns keep the neighbours that the whole table gives every sample.

The whole table is represented by a weighted neighbour graph W. For a set of columns, at the same
variance, every sample names its nearest others; the agreement is the weight that W gives to those,
over the largest weight that as many could have. It is 1 if the columns name the best neighbours of
all samples, and about 0 if they have nothing to do with W.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.graph import nearest_in_cloud
from keepers.linalg.unit_free import UnitFreeColumns


def neighbour_agreement(
    columns: UnitFreeColumns, chosen: Sequence[IndexArray], graph: sp.csr_array, n_neighbors: int
) -> FloatArray:
    """The agreement of each of the sets of columns with the graph."""
    weights = graph.toarray()
    best = np.partition(weights, -n_neighbors, axis=1)[:, -n_neighbors:].sum()
    found = np.empty(len(chosen))
    for at, kept in enumerate(chosen):
        cloud = np.ascontiguousarray(columns.standardised(kept).T)
        nearest = nearest_in_cloud(cloud, n_neighbors).indices
        found[at] = np.take_along_axis(weights, nearest, axis=1).sum() / best
    return found


def growing_counts(most: int, fewest: int = 5, ratio: float = 1.25) -> list[int]:
    """Numbers of features to try: from a few to ``most``, each a quarter more than the last."""
    counts = [min(fewest, most)]
    while counts[-1] < most:
        counts.append(min(most, max(counts[-1] + 1, round(counts[-1] * ratio))))
    return counts
