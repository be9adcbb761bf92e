"""For your own methods: what `keepers` uses for its own.

A method is a class that inherits ``RankingSelector`` and implements ``score_features(table)``. The
guide "How to add a method" shows a whole one. These names change only with a deprecation, like the
other public names of `keepers`; what other modules hold may change at any time.
"""

from keepers._protocols import BoolArray, FloatArray, IndexArray, SymmetricOperator
from keepers.exceptions import (
    ConvergenceWarning,
    DataError,
    DataWarning,
    ParameterError,
    shorten,
    warn_caller,
)
from keepers.linalg.graph import NeighbourList, laplacian, union_graph
from keepers.linalg.scatter import ColumnMoments, as_scatter, column_moments
from keepers.linalg.spectrum import Spectrum, Subspace, leading_spectrum, principal_subspace
from keepers.methods.base import RankingSelector, TopFeatures
from keepers.methods.neighbours import binary_graph, heat_graph, nearest_neighbours
from keepers.methods.parameters import (
    FLAG,
    FUNCTION,
    FeatureCount,
    Rule,
    Seed,
    cap_clusters,
    cap_neighbors,
    check_value,
    count_features,
    one_of,
    positive,
    refuse_past_memory,
    whole,
)
from keepers.methods.reading import FittedTable, MemoryTable, read_table

__all__ = [
    "FLAG",
    "FUNCTION",
    "BoolArray",
    "ColumnMoments",
    "ConvergenceWarning",
    "DataError",
    "DataWarning",
    "FeatureCount",
    "FittedTable",
    "FloatArray",
    "IndexArray",
    "MemoryTable",
    "NeighbourList",
    "ParameterError",
    "RankingSelector",
    "Rule",
    "Seed",
    "Spectrum",
    "Subspace",
    "SymmetricOperator",
    "TopFeatures",
    "as_scatter",
    "binary_graph",
    "cap_clusters",
    "cap_neighbors",
    "check_value",
    "column_moments",
    "count_features",
    "heat_graph",
    "laplacian",
    "leading_spectrum",
    "nearest_neighbours",
    "one_of",
    "positive",
    "principal_subspace",
    "read_table",
    "refuse_past_memory",
    "shorten",
    "union_graph",
    "warn_caller",
    "whole",
]
