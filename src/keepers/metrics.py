"""How well a clustering agrees with known classes: the two measures of the paper.

Both compare partitions, so the names of the labels do not matter, and both lie in [0, 1].
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from keepers._protocols import FloatArray
from keepers.exceptions import DataError

__all__ = ["clustering_accuracy", "normalized_mutual_information"]


def clustering_accuracy(labels_true: Any, labels_pred: Any) -> float:
    """Share of samples that fall in their own class under the best matching of clusters to classes.

    The matching is one to one (Kuhn-Munkres). With more clusters than classes the clusters left
    over match nothing; with fewer, so do the classes left over.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        The classes; numbers or strings.
    labels_pred : array-like of shape (n_samples,)
        The clusters.

    Returns
    -------
    float
        1 if the partitions are the same.

    Examples
    --------
    >>> from keepers.metrics import clustering_accuracy
    >>> clustering_accuracy(["a", "a", "b", "b"], [1, 1, 0, 1])
    0.75
    """
    counts = _contingency(labels_true, labels_pred)
    matched = linear_sum_assignment(counts, maximize=True)
    return float(counts[matched].sum() / counts.sum())


def normalized_mutual_information(labels_true: Any, labels_pred: Any) -> float:
    """Mutual information over the larger of the two entropies, max(H, H').

    This is the paper's normalisation; scikit-learn calls it ``average_method="max"``. Two
    partitions of one part each agree perfectly and give 1.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        The classes; numbers or strings.
    labels_pred : array-like of shape (n_samples,)
        The clusters.

    Returns
    -------
    float
        1 if the partitions are the same, 0 if they are independent.

    Examples
    --------
    >>> from keepers.metrics import normalized_mutual_information
    >>> normalized_mutual_information([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    joint = _contingency(labels_true, labels_pred)
    joint = joint / joint.sum()
    true, pred = joint.sum(axis=1), joint.sum(axis=0)
    larger = max(_entropy(true), _entropy(pred))
    if larger == 0:
        return 1.0
    seen = joint > 0
    information = float(
        (joint * np.log(joint / np.outer(true, pred), where=seen, out=joint * 0)).sum()
    )
    return min(1.0, max(0.0, information / larger))


def _entropy(shares: FloatArray) -> float:
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum())


def _contingency(labels_true: Any, labels_pred: Any) -> FloatArray:
    """How many samples each class (row) shares with each cluster (column)."""
    true, pred = _codes(labels_true, "labels_true"), _codes(labels_pred, "labels_pred")
    if len(true) != len(pred):
        raise DataError(
            f"labels_true and labels_pred must have the same length; got {len(true)} and "
            f"{len(pred)}. Pass one label per sample in both."
        )
    counts = np.zeros((true.max() + 1, pred.max() + 1))
    np.add.at(counts, (true, pred), 1)
    return counts


def _codes(labels: Any, name: str) -> NDArray[np.intp]:
    """Labels -> 0, 1, ... in the order of their sorted values."""
    values = np.asarray(labels)
    if values.ndim != 1 or not len(values):
        raise DataError(
            f"{name} must be a list of at least one label; got an array of shape {values.shape}. "
            "Pass one label per sample."
        )
    return np.unique(values, return_inverse=True)[1]
