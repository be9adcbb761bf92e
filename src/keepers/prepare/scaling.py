"""The scalings of a whole table that ``--scale`` offers, by scikit-learn."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import norm as sparse_norm

from keepers._wording import closest
from keepers.exceptions import DataError, ParameterError, shorten

SCALINGS = ("raw", "unit-samples", "standardize-features")


def scale_samples(X: Any, scaling: str) -> Any:
    """Return X on the scale that ``scaling`` names; X itself is never changed.

    Parameters
    ----------
    X : ndarray or CSR/CSC matrix of shape (n_samples, n_features)
        The table.
    scaling : str
        "raw": as it is. "unit-samples": every row divided by its Euclidean norm; rows of zeros
        stay. "standardize-features": every column to mean 0 and standard deviation 1 (divisor n);
        constant ones become 0. This makes all variances equal, which leaves nothing to methods
        that look for variance (SPCAFS, VarianceScore).

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
    from sklearn.preprocessing import StandardScaler  # slow to import, and only needed here

    if scaling not in SCALINGS:
        known = ", ".join(repr(name) for name in SCALINGS)
        meant = closest(str(scaling), SCALINGS)
        raise ParameterError(f"scaling must be one of {known}; got {shorten(scaling)}.{meant}")
    if scaling == "raw":
        return X
    if scaling == "unit-samples":
        # By the largest entry first: squares cannot overflow.
        scaled = _divide(_divide(X, np.inf), 2)
        return scaled.asformat(X.format) if sp.issparse(X) else scaled
    if sp.issparse(X):
        raise DataError(
            f"Subtracting fills a sparse matrix; {scaling!r} needs a dense table. Use 'raw' or "
            "'unit-samples', or pass X.toarray() if it fits in memory."
        )
    return StandardScaler().fit_transform(X)


def _divide(X: Any, order: float) -> Any:
    """Every row over its norm of this order; zeros stay."""
    norms = (sparse_norm if sp.issparse(X) else np.linalg.norm)(X, order, axis=1)
    return sp.diags_array(1.0 / np.where(norms == 0.0, 1.0, norms), dtype=X.dtype) @ X
