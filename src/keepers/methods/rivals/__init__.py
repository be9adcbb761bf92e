"""Published methods of others, one file each, and what they share."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from keepers._protocols import FloatArray
from keepers.linalg.storage import as_array
from keepers.methods.base import RankingSelector
from keepers.methods.neighbours import BANDWIDTH
from keepers.methods.parameters import FeatureCount, positive, whole
from keepers.methods.reading import MemoryTable


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

    def store_run(self, result: Any) -> None:
        """Store the objective of every step, their number, and whether the last one converged."""
        self.objective_: FloatArray = result.objective
        self.n_iter_: int = result.n_iter
        self.converged_: bool = result.converged
