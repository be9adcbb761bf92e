"""For your own methods: what `keepers` uses for its own.

A method is a class that inherits ``RankingSelector`` and implements ``score_features(table)``. The
guide "How to add a method" shows a whole one. These names change only with a deprecation, like the
other public names of `keepers`; what other modules hold may change at any time.
"""

from keepers._protocols import BoolArray as BoolArray
from keepers._protocols import FloatArray as FloatArray
from keepers._protocols import IndexArray as IndexArray
from keepers._protocols import SymmetricOperator as SymmetricOperator
from keepers.exceptions import ConvergenceWarning as ConvergenceWarning
from keepers.exceptions import DataError as DataError
from keepers.exceptions import DataWarning as DataWarning
from keepers.exceptions import ParameterError as ParameterError
from keepers.exceptions import shorten as shorten
from keepers.exceptions import warn_caller as warn_caller
from keepers.linalg.graph import NeighbourList as NeighbourList
from keepers.linalg.graph import laplacian as laplacian
from keepers.linalg.graph import union_graph as union_graph
from keepers.linalg.scatter import ColumnMoments as ColumnMoments
from keepers.linalg.scatter import as_scatter as as_scatter
from keepers.linalg.scatter import column_moments as column_moments
from keepers.linalg.spectrum import Subspace as Subspace
from keepers.linalg.spectrum import leading_spectrum as leading_spectrum
from keepers.linalg.spectrum import principal_subspace as principal_subspace
from keepers.methods.base import RankingSelector as RankingSelector
from keepers.methods.base import TopFeatures as TopFeatures
from keepers.methods.neighbours import binary_graph as binary_graph
from keepers.methods.neighbours import heat_graph as heat_graph
from keepers.methods.neighbours import nearest_neighbours as nearest_neighbours
from keepers.methods.parameters import FLAG as FLAG
from keepers.methods.parameters import FUNCTION as FUNCTION
from keepers.methods.parameters import FeatureCount as FeatureCount
from keepers.methods.parameters import Rule as Rule
from keepers.methods.parameters import Seed as Seed
from keepers.methods.parameters import cap_clusters as cap_clusters
from keepers.methods.parameters import cap_neighbors as cap_neighbors
from keepers.methods.parameters import check_value as check_value
from keepers.methods.parameters import count_features as count_features
from keepers.methods.parameters import one_of as one_of
from keepers.methods.parameters import positive as positive
from keepers.methods.parameters import refuse_past_memory as refuse_past_memory
from keepers.methods.parameters import whole as whole
from keepers.methods.reading import FittedTable as FittedTable
from keepers.methods.reading import MemoryTable as MemoryTable
from keepers.methods.reading import read_table as read_table
