"""The data sets that come with the package: enough to try everything without a download."""

from collections.abc import Callable
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import FloatArray
from keepers.exceptions import ParameterError, shortened

__all__ = ["Dataset", "load", "names"]


class Dataset(NamedTuple):
    """A table, the names of its columns, and (for judging a selection only) its labels.

    Attributes
    ----------
    X : array of shape (n_samples, n_features)
        The values.
    feature_names : array of str, length n_features
        Names of the columns.
    y : array of length n_samples
        Classes; no method looks at them.
    """

    X: FloatArray
    feature_names: NDArray[np.object_]
    y: NDArray[np.object_]


def load(name: str) -> Dataset:
    """Load a bundled data set.

    Parameters
    ----------
    name : {"srbct", "digits"}
        "srbct": 83 tumour samples x 2308 gene expression ratios, 4 kinds of small round blue cell
        tumours (Khan et al. 2001); what the paper calls SRBCTML. "digits": 1797 hand-written
        digits x 64 pixels, 10 classes (scikit-learn's copy of the UCI set).

    Returns
    -------
    Dataset
        ``X, feature_names, y``; unpack it or use the names.

    Examples
    --------
    >>> from keepers import datasets
    >>> X, feature_names, y = datasets.load("srbct")
    >>> X.shape
    (83, 2308)
    """
    if name not in _LOADERS:
        known = ", ".join(repr(known) for known in _LOADERS)
        raise ParameterError(f"The bundled data sets are {known}; got {shortened(name)}.")
    return _LOADERS[name]()


def names() -> list[str]:
    """Names that `load` knows."""
    return list(_LOADERS)


def _srbct() -> Dataset:
    with (files("keepers.data") / "files" / "srbct.npz").open("rb") as stream:
        stored = np.load(stream, allow_pickle=False)
        ratios, labels = np.exp(stored["log_ratio"]), stored["y"]
    tumours = np.array(["", "BL", "EWS", "NB", "RMS"], dtype=object)
    genes = np.array([f"gene{j}" for j in range(1, ratios.shape[1] + 1)], dtype=object)
    return Dataset(ratios, genes, tumours[labels])


def _digits() -> Dataset:
    from sklearn.datasets import load_digits  # slow to import, and only needed here

    bunch = load_digits()
    return Dataset(bunch.data, np.array(bunch.feature_names, dtype=object), bunch.target)


_LOADERS: dict[str, Callable[[], Dataset]] = {"srbct": _srbct, "digits": _digits}
