"""One type for every table that is read, and one for every table that is written."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers.data.limits import SizeLimit
from keepers.data.wording import duplicates, listed
from keepers.exceptions import DataError, shortened

Names = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A numeric table with the names of its columns and, where known, of its rows and classes.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        float64 or float32; NaN stands for a missing value.
    feature_names : object array of str, length n_features
        No two alike.
    sample_names : object array of str, length n_samples, or None
        Which sample each row is, where the source says so.
    labels : array of length n_samples or None
        Classes, for judging a selection; no method looks at them.
    name : str
        Short name for display.
    """

    X: Any
    feature_names: Names
    sample_names: Names | None = None
    labels: NDArray[Any] | None = None
    name: str = "table"

    def __post_init__(self) -> None:
        """Refuse a table whose parts do not fit together."""
        if self.X.ndim != 2 or 0 in self.X.shape:
            shape = " x ".join(str(length) for length in self.X.shape)
            raise DataError(
                f"A table needs at least one row and one feature column; {shortened(self.name)} "
                f"has shape {shape}. Check that the right file, variable or columns were named."
            )
        if self.X.dtype not in (np.float64, np.float32):
            raise DataError(f"Values must be float64 or float32; got {self.X.dtype}.")
        self._refuse_wrong_length("feature_names", self.feature_names, self.n_features)
        self._refuse_wrong_length("sample_names", self.sample_names, self.n_samples)
        self._refuse_wrong_length("labels", self.labels, self.n_samples)
        if len(set(self.feature_names)) < self.n_features:
            raise DataError(
                "Feature names must differ; there are duplicates: "
                f"{listed(duplicates(self.feature_names))}. Rename or drop all but one of each."
            )

    def _refuse_wrong_length(self, what: str, values: NDArray[Any] | None, expected: int) -> None:
        if values is not None and (values.ndim != 1 or len(values) != expected):
            raise DataError(
                f"{what} must have one entry each ({expected}); {shortened(self.name)} has an "
                f"array of shape {values.shape}. Check that samples are rows and features are "
                "columns."
            )

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether X is a CSR matrix."""
        return bool(sp.issparse(self.X))


@dataclass(frozen=True)
class WrittenTable:
    """A checked table on its way to a file."""

    X: Any
    feature_names: list[str]
    sample_names: list[str] | None
    labels: NDArray[Any] | None
    identifier_name: str
    label_name: str

    @property
    def is_sparse(self) -> bool:
        """Whether X is a CSR matrix."""
        return bool(sp.issparse(self.X))

    @property
    def has_numeric_labels(self) -> bool:
        """Whether there are labels, and they are numbers."""
        return self.labels is not None and self.labels.dtype.kind in "biuf"

    def text_labels(self) -> list[str]:
        """Labels as text."""
        return [] if self.labels is None else [str(label) for label in self.labels.tolist()]

    def dense(self) -> NDArray[Any]:
        """X as an array, if it fits in memory."""
        if not self.is_sparse:
            return np.asarray(self.X)
        shape = (int(self.X.shape[0]), int(self.X.shape[1]))
        SizeLimit.of(None).refuse_shape(shape, self.X.dtype.itemsize, "The table as dense columns")
        return np.asarray(self.X.toarray())


def row_entries(X: Any, at: int) -> Iterator[tuple[int, float]]:
    """Column and value of the entries of a CSR row."""
    entries = slice(X.indptr[at], X.indptr[at + 1])
    return zip(X.indices[entries].tolist(), X.data[entries].tolist(), strict=True)
