"""The scalings that a study may name: those of keepers, and those of published experiments."""

from typing import Any

import scipy.sparse as sp
from sklearn.preprocessing import minmax_scale

from keepers.datasets import SCALINGS as OF_KEEPERS
from keepers.datasets import scale_samples
from keepers.exceptions import DataError

SCALINGS = (*OF_KEEPERS, "unit-features", "standardize-samples", "min-max-features", "0-255")


def scale_data(X: Any, scaling: str) -> Any:
    """X on the scale that ``scaling`` names; X itself is never changed.

    "unit-features" and "standardize-samples" are those of keepers for the other axis.
    "min-max-features": every column to 0 (its smallest value) to 1 (its largest). "0-255": the
    whole table by one shift and one factor, as grey levels are stored; counts stay sparse.
    """
    if scaling == "unit-features":
        return scale_samples(X.T, "unit-samples").T
    if scaling == "standardize-samples":
        return scale_samples(X.T, "standardize-features").T
    if scaling not in ("min-max-features", "0-255"):
        return scale_samples(X, scaling)
    if sp.issparse(X):
        if scaling == "0-255" and X.min() == 0:
            return X * X.dtype.type(255.0 / (X.max() or 1.0))
        raise DataError(f"Subtracting fills a sparse matrix; {scaling!r} needs a dense table.")
    if scaling == "0-255":
        return minmax_scale(X.ravel(), (0, 255)).reshape(X.shape)
    return minmax_scale(X)
