"""Published methods of others, one file each, and what they share."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray
from keepers.exceptions import ConvergenceWarning, DataWarning, warn_caller
from keepers.linalg.graph import NeighbourList, union_graph
from keepers.linalg.scatter import as_array
from keepers.methods.base import RankingSelector
from keepers.methods.neighbours import BANDWIDTH, heat_graph, nearest_neighbours, warn_of_defect
from keepers.methods.parameters import (
    FeatureCount,
    cap_neighbors,
    positive,
    refuse_past_memory,
    whole,
)
from keepers.methods.reading import MemoryTable

EPS = float(np.finfo(np.float64).eps)


@dataclass(eq=False, repr=False, kw_only=True)
class Rival(RankingSelector):
    """A published method: common parameters and their rules, a common description of scores."""

    looks_for = "features that tell groups of samples apart, found without labels"
    score_means = (
        "how much the feature counts in the fitted model (the length of its row of weights)"
    )
    parameter_rules: ClassVar = {
        "n_clusters": whole(),
        "n_neighbors": whole(),
        "bandwidth": BANDWIDTH,
        "max_iter": whole(),
        "tol": positive(zero=True),
    }

    n_features_to_select: FeatureCount = field(default=None, kw_only=False)
    max_correlation: float | None = None

    def centred_values(self, table: MemoryTable) -> FloatArray:
        """The columns that vary, less their means, as an array of double precision."""
        return as_array(table.in_double()) - table.moments.mean

    def list_neighbours(self, values: FloatArray, spare: int = 1) -> NeighbourList:
        """The nearest other samples of each, at most n_samples - ``spare`` of them."""
        n_neighbors = cap_neighbors(self.n_neighbors, len(values), spare=spare)
        neighbours = nearest_neighbours(values, n_neighbors)
        warn_of_defect(union_graph(neighbours), neighbours)
        return neighbours

    def join_neighbours(self, X: Any, rng: np.random.Generator, unit: float = 1.0) -> sp.csr_array:
        """The graph of nearest neighbours with heat-kernel weights; X was divided by ``unit``."""
        n_neighbors = cap_neighbors(self.n_neighbors, X.shape[0])
        bandwidth = None if self.bandwidth is None else float(self.bandwidth) / unit
        return heat_graph(X, n_neighbors, bandwidth, rng)

    def refuse_past_memory(
        self,
        table: MemoryTable,
        *,
        tables: int = 0,
        of_side: int = 0,
        of_samples: int = 0,
        of_features: int = 0,
    ) -> None:
        """Raise if that many copies of the table, and matrices of its sides, exceed the memory.

        ``of_side``: matrices of the smaller side.
        """
        n, d = table.X.shape
        square = ((of_side, min(n, d)), (of_samples, n), (of_features, d))
        arrays = [(tables, n, d), *((count, side, side) for count, side in square)]
        needed = [each for each in arrays if each[0]]
        what = " and ".join(f"{count} arrays of {rows} x {width}" for count, rows, width in needed)
        n_bytes = 8.0 * sum(count * rows * width for count, rows, width in needed)
        refuse_past_memory(type(self).__name__, what, n_bytes)

    def warn_of_noise(self, n_active: int) -> None:
        """Store how many features have a score above noise; warn if more should be kept."""
        self.n_active_ = n_active
        if n_active < self.n_features_to_select_:
            warn_caller(
                f"{self.n_features_to_select_} features should be kept, but only {n_active} have a "
                "score above rounding noise; the others are ordered by their cost in M alone. A "
                "smaller gamma or more columns of W keeps more rows active.",
                DataWarning,
            )

    def warn_of_eigenvectors(self, converged: bool) -> None:
        """Warn if the eigenvectors of the graph of the samples are rough."""
        if not converged:
            warn_caller(
                "The eigenvectors of the graph did not converge: it is long and thin, or samples "
                "are nearly separate from the others. The scores are rough; more neighbours or a "
                "larger bandwidth may help.",
                ConvergenceWarning,
            )

    def store_run(self, result: Any, remedy: str | None = None) -> None:
        """Store the objective of every step, their number, and whether the last one converged.

        If it did not, warn with the ``remedy``.
        """
        if remedy is not None and not result.converged:
            warn_caller(remedy, ConvergenceWarning)
        self.objective_: FloatArray = result.objective
        self.n_iter_ = len(result.objective)
        self.converged_: bool = result.converged
