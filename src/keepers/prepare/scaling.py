"""The scalings of a whole table that ``--scale`` and studies offer, by scikit-learn."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import norm as sparse_norm

from keepers._wording import closest
from keepers.exceptions import DataError, ParameterError, shorten

SCALINGS = (
    "raw",
    "unit-samples",
    "standardize-samples",
    "unit-features",
    "standardize-features",
    "min-max-features",
    "0-255",
)


def scale_samples(X: Any, scaling: str) -> Any:
    """Return X on the scale that ``scaling`` names; X itself is never changed.

    Parameters
    ----------
    X : ndarray or CSR/CSC matrix of shape (n_samples, n_features)
        The table.
    scaling : str
        "raw": as it is. "unit-samples", "unit-features": every row or column divided by its
        Euclidean norm. "standardize-samples", "standardize-features": to mean 0 and standard
        deviation 1 (divisor n). "min-max-features": every column to 0 (its smallest value) to 1
        (its largest). "0-255": the whole table by one shift and one factor, as grey levels are
        stored. Rows and columns of zeros stay; constant ones become 0 when standardised or put
        between 0 and 1. Standardising features makes all variances equal, which leaves nothing to
        methods that look for variance (SPCAFS, VarianceScore).

    Returns
    -------
    ndarray or sparse matrix
        Same kind and precision; X itself for "raw".

    Examples
    --------
    >>> import numpy as np
    >>> scale_samples(np.array([[3.0, 4.0], [0.0, 0.0]]), "unit-samples")
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    # Slow to import, and only needed here.
    from sklearn.preprocessing import StandardScaler, minmax_scale

    if scaling not in SCALINGS:
        known = ", ".join(repr(name) for name in SCALINGS)
        meant = closest(str(scaling), SCALINGS)
        raise ParameterError(f"scaling must be one of {known}; got {shorten(scaling)}.{meant}")
    if scaling == "raw":
        return X
    axis = 1 if scaling.endswith("samples") else 0
    if scaling.startswith("unit"):
        # By the largest entry first: squares cannot overflow.
        scaled = _divide(_divide(X, np.inf, axis), 2, axis)
        return scaled.asformat(X.format) if sp.issparse(X) else scaled
    if sp.issparse(X):
        if scaling == "0-255" and X.min() == 0:
            return X * X.dtype.type(255.0 / (X.max() or 1.0))
        raise DataError(
            f"Subtracting fills a sparse matrix; {scaling!r} needs a dense table. Use 'raw', "
            "'unit-samples' or 'unit-features', or pass X.toarray() if it fits in memory."
        )
    if scaling == "0-255":
        return minmax_scale(X.ravel(), (0, 255)).reshape(X.shape)
    if scaling == "min-max-features":
        return minmax_scale(X)
    standardised = StandardScaler().fit_transform(X.T if axis else X)
    return standardised.T if axis else standardised


def _divide(X: Any, order: float, axis: int) -> Any:
    """Every row (axis 1) or column (axis 0) over its norm of this order; zeros stay."""
    norms = (sparse_norm if sp.issparse(X) else np.linalg.norm)(X, order, axis=axis)
    factors = sp.diags_array(1.0 / np.where(norms == 0.0, 1.0, norms), dtype=X.dtype)
    return factors @ X if axis == 1 else X @ factors
