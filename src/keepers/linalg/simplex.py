"""Euclidean projection onto the unit simplex {s >= 0, sum s = 1}."""

import numpy as np

from keepers._protocols import FloatArray

__all__ = ["project_rows_onto_simplex"]


def project_rows_onto_simplex(V: FloatArray) -> FloatArray:
    """The nearest point of the unit simplex to every row of V.

    The projection is max(v - tau, 0) with the one tau that makes the sum 1. With u the entries in
    descending order, tau = (u_1 + ... + u_r - 1) / r for the largest r with u_r > tau.
    """
    shifted = V - V.max(axis=1, keepdims=True)  # the projection does not see it; sums keep digits
    descending = -np.sort(-shifted, axis=1)
    places = np.arange(1, V.shape[1] + 1)
    thresholds = (np.cumsum(descending, axis=1) - 1.0) / places
    last = np.count_nonzero(descending > thresholds, axis=1) - 1
    tau = np.take_along_axis(thresholds, last[:, np.newaxis], axis=1)
    return np.maximum(shifted - tau, 0.0)
