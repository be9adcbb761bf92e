"""From what the user hands in to values, names and labels that fit together."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers.data.in_memory import flat_name, numeric_input
from keepers.exceptions import DataError

__all__ = ["as_matrix", "as_texts", "names_of"]


def as_matrix(X: Any) -> Any:
    """X as a float array or CSR matrix; a sparse one is never densified."""
    X = numeric_input(X)
    if sp.issparse(X):
        matrix = sp.csr_matrix(X)
        values = matrix.data
    else:
        matrix = values = np.asarray(X)
    if matrix.ndim != 2:
        raise DataError(
            f"X must be a table of samples x features; got {matrix.ndim} dimension(s). Reshape it "
            "to two."
        )
    if values.dtype not in (np.float64, np.float32):
        try:
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                "Every column of X must be numeric; drop or encode the others, as for the fit."
            ) from error
        values = matrix.data if sp.issparse(matrix) else matrix
    if not np.all(np.isfinite(values)):
        raise DataError(
            "Values of X must be finite numbers; NaN or infinity found. Give the report the table "
            "that the selector was fitted on."
        )
    return matrix


def names_of(feature_names: Any, selector: Any, X: Any, n_features: int) -> list[str]:
    """The features' names: as given, as the selector saw them, as the frame has them, or x0..."""
    for candidate in (
        feature_names,
        getattr(selector, "feature_names_in_", None),
        getattr(X, "columns", None),
    ):
        if candidate is not None:
            flat = [flat_name(name) for name in candidate]
            return as_texts("feature_names", flat, n_features, "feature")
    return [f"x{column}" for column in range(n_features)]


def as_texts(name: str, values: Any, expected: int, what: str) -> list[str]:
    """One string per feature or sample; unpaired surrogates, which no file can hold, replaced."""
    listed = [str(value) for value in values]
    if len(listed) != expected:
        raise DataError(
            f"{name} must have one entry per {what}, {expected} in all; got {len(listed)}. Leave "
            "it out to go without."
        )
    return [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in listed]
