"""keepers: which features of an unlabelled table are worth keeping."""

from keepers import data as datasets
from keepers import metrics
from keepers.selectors import (
    DGUFS,
    EUFS,
    MCFS,
    RNE,
    SOGFS,
    SPCAFS,
    UDFS,
    AllFeatures,
    LaplacianScore,
    RandomScore,
    TopFeatures,
    VarianceScore,
    all_selectors,
)

__version__ = "0.1.0"

__all__ = [
    "DGUFS",
    "EUFS",
    "MCFS",
    "RNE",
    "SOGFS",
    "SPCAFS",
    "UDFS",
    "AllFeatures",
    "LaplacianScore",
    "RandomScore",
    "TopFeatures",
    "VarianceScore",
    "all_selectors",
    "datasets",
    "metrics",
]
