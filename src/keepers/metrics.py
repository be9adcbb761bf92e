"""How well a clustering agrees with known classes: the two measures of the paper.

Both compare partitions, so the names of the labels do not matter, and both lie in [0, 1].
"""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import entr

from keepers._protocols import FloatArray
from keepers.exceptions import DataError

__all__ = ["clustering_accuracy", "normalized_mutual_information"]


def clustering_accuracy(labels_true: Any, labels_pred: Any) -> float:
    """Share of samples that fall in their own class under the best matching of clusters to classes.

    The matching is one to one (Kuhn-Munkres); clusters or classes left over match nothing.

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

    scikit-learn calls this ``average_method="max"``. Two partitions of one part each give 1.

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
    # entr(x) = -x log x: entropies of the classes, of the clusters and of both together.
    h_true, h_pred, h_joint = (
        float(entr(shares).sum()) for shares in (joint.sum(axis=1), joint.sum(axis=0), joint)
    )
    larger = max(h_true, h_pred)
    return 1.0 if larger == 0 else min(1.0, max(0.0, (h_true + h_pred - h_joint) / larger))


def _contingency(labels_true: Any, labels_pred: Any) -> FloatArray:
    """How many samples each class (row) shares with each cluster (column).

    scikit-learn's measures take many times as long (docs/decisions/0013-metrics.md).
    """
    labels = {"labels_true": np.asarray(labels_true), "labels_pred": np.asarray(labels_pred)}
    for name, values in labels.items():
        if values.ndim != 1 or not len(values):
            raise DataError(
                f"{name} must be a list of at least one label; got an array of shape "
                f"{values.shape}. Pass one label per sample."
            )
    true, pred = labels.values()
    if len(true) != len(pred):
        raise DataError(
            f"labels_true and labels_pred must have the same length; got {len(true)} and "
            f"{len(pred)}. Pass one label per sample in both."
        )
    rows, columns = (np.unique(values, return_inverse=True)[1] for values in (true, pred))
    counts = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(counts, (rows, columns), 1)
    return counts
