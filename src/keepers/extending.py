"""For people who write a method of their own: everything that `keepers` uses for its own.

A method is a class that inherits ``RankingSelector`` and implements
``score_features(table)``; the guide "How to add a method" shows one, whole. What this module names
is stable: it changes only with a deprecation, like the rest of the public names of `keepers`. What
other modules of the package hold may change at any time.

========================= =========================================================================
for                       names
========================= =========================================================================
the base class            ``RankingSelector``, `TopFeatures`
a table that was read     `MemoryTable`, `FittedTable`, `read_table`, `ColumnMoments`,
                          `column_moments`
rules of parameters       `Rule`, `whole`, `positive`, `one_of`, ``FLAG``, ``FUNCTION``, and
                          `check_value` for what is not a parameter; ``FeatureCount`` and ``Seed``
                          for annotations
a table that is too small `cap_neighbors`, `cap_clusters`, `count_features`, `refuse_past_memory`
operators                 `as_scatter`, `SymmetricOperator`, `leading_spectrum`, `Spectrum`,
                          `principal_subspace`, `Subspace`
graphs of the samples     `nearest_neighbours`, `NeighbourList`, `heat_graph`, `binary_graph`,
                          `union_graph`, `laplacian`
messages                  ``DataError``, ``ParameterError``, ``DataWarning``,
                          ``ConvergenceWarning``, `warn_caller`, `shorten`
annotations               ``FloatArray``, ``IndexArray``, ``BoolArray``
========================= =========================================================================
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
from keepers.linalg.moments import ColumnMoments, column_moments
from keepers.linalg.scatter import as_scatter
from keepers.linalg.spectrum import Spectrum, leading_spectrum, principal_subspace
from keepers.linalg.subspace import Subspace
from keepers.methods.base import RankingSelector, TopFeatures
from keepers.methods.memory import refuse_past_memory
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
