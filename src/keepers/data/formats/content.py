"""What a writer is handed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers.data.limits import SizeLimit


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
