"""Clusters by k-means, for methods that start from them."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning

from keepers._protocols import IndexArray
from keepers.exceptions import DataWarning, warn_caller

N_STARTS = 10


def kmeans_labels(X: Any, n_clusters: int, random: np.random.RandomState) -> tuple[IndexArray, int]:
    """The cluster of every sample, from 0 on, and how many there are; none of them is empty.

    Fewer clusters than asked for, with a warning, where there are fewer distinct samples.
    """
    n_samples = X.shape[0]
    with warnings.catch_warnings():
        # Fewer distinct samples than clusters: said below, in our words.
        warnings.simplefilter("ignore", SklearnConvergenceWarning)
        kmeans = KMeans(min(n_clusters, n_samples), n_init=N_STARTS, random_state=random)
        labels = kmeans.fit(_with_short_indices(X)).labels_
        found, labels = np.unique(labels, return_inverse=True)
    if len(found) < n_clusters:
        warn_caller(
            f"n_clusters={n_clusters} needs as many distinct samples; k-means found "
            f"{len(found)} clusters in the {n_samples} there are, and {len(found)} are used.",
            DataWarning,
        )
    return labels, len(found)


def _with_short_indices(X: Any) -> Any:
    """A sparse matrix with the 32-bit indices that scikit-learn's k-means asks for."""
    if not sp.issparse(X) or X.indices.dtype == np.int32:
        return X
    short = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return type(X)(short, shape=X.shape)
