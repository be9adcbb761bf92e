"""Files that hold a bare matrix, whose rows can be read from anywhere."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers._protocols import IndexArray
from keepers.data.blocks.files import FileBlocks, Rows
from keepers.data.blocks.local import even_ranges
from keepers.data.columns import ColumnPlan, plan_columns
from keepers.data.request import ReadRequest
from keepers.data.values import as_labels, as_names, as_values
from keepers.exceptions import DataError, shortened


class MatrixBlocks(FileBlocks):
    """Rows of a matrix in a file; a format implements ``_raw``.

    Parameters
    ----------
    path : Path
        The file.
    names : sequence of str
        Names of all its columns.
    request : ReadRequest
        Which columns are no features.
    n_rows : int
        Rows of the matrix.
    stored : dtype
        Kind of the stored numbers.
    n_stored : int or None
        Stored values, if the matrix is sparse.
    """

    _read_vectors: Callable[[], tuple[Any, Any]] | None = None

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        request: ReadRequest,
        n_rows: int,
        stored: np.dtype[Any],
        n_stored: int | None = None,
    ) -> None:
        plan = plan_columns(names, request) if names else ColumnPlan([], None, None)
        if not plan.features:
            raise DataError(
                f"A table needs at least one feature column; this one has {n_rows} rows and none. "
                "Leave it out, or write it again."
            )
        none_yet = as_values(np.empty((0, len(names)), dtype=stored), path.name)
        super().__init__(
            path, [names[at] for at in plan.features], none_yet.dtype, range(n_rows), n_stored
        )
        self._layout = (len(names), plan)
        self._n_file_rows = n_rows
        self._label_name = request.labels or "labels"

    @abstractmethod
    def _raw(self, chosen: IndexArray | None) -> Iterator[Any]:
        """The rows ``rows``, all columns or the ``chosen`` ones of the file, as stored."""

    def annotate(self, read: Callable[[], tuple[Any, Any]], label_name: str | None) -> None:
        """Labels and sample names of all rows come from ``read``, not from columns of the matrix.

        Either may be None. ``read`` can be pickled and is called only where they are wanted.
        """
        self._read_vectors = read
        self._label_name = label_name or "labels"

    def _read(self, columns: IndexArray | None, annotated: bool) -> Iterator[Rows]:
        names = self.feature_names if columns is None else self.feature_names[columns]
        plan: ColumnPlan = self._layout[1]
        roles = [plan.labels, plan.identifier] if annotated else [None, None]
        read = self._read_vectors if annotated else None
        vectors = (None, None) if read is None else read()
        for what, vector in zip(("labels", "sample names"), vectors, strict=True):
            self._refuse_wrong_length(what, vector)
        beside = [at for at in roles if at is not None]
        start = self._here.start
        for raw in self._raw(self._chosen(columns, beside)):
            stop = start + raw.shape[0]
            notes = [None if vector is None else vector[start:stop] for vector in vectors]
            if beside:
                found = dict(zip(beside, _columns(raw, len(names)), strict=True))
                notes = [
                    note if at is None else found[at] for at, note in zip(roles, notes, strict=True)
                ]
                raw = raw[:, : len(names)]
            values = as_values(raw, self.name, names).astype(self.dtype, copy=False)
            yield Rows(values, *notes)
            start = stop

    def _refuse_wrong_length(self, what: str, vector: Any) -> None:
        if vector is not None and len(vector) != self._n_file_rows:
            raise DataError(
                f"{what} must have one entry each ({self._n_file_rows}); {shortened(self.name)} "
                f"has an array of shape {vector.shape}. Check that samples are rows."
            )

    def class_labels(self, pieces: Sequence[Any]) -> NDArray[Any]:
        """The labels of all blocks as classes."""
        return as_labels(np.concatenate(pieces), self._label_name)

    def row_names(self, pieces: Sequence[Any]) -> NDArray[np.object_]:
        """The sample names of all blocks as text; whole numbers without a decimal point."""
        names = np.concatenate(pieces)
        if self._layout[1].identifier is not None:
            names = as_labels(names, "identifier")
        return as_names(names, "sample names")

    def _chosen(self, columns: IndexArray | None, beside: Sequence[int] = ()) -> IndexArray | None:
        """Positions in the file of the wanted features and other columns; None for all columns."""
        n_columns, plan = self._layout
        if not beside and len(plan.features) == n_columns:
            return columns
        features = np.array(plan.features, dtype=np.intp)
        wanted = features if columns is None else features[columns]
        return np.append(wanted, np.array(beside, dtype=np.intp)) if beside else wanted

    @property
    def _width(self) -> int:
        """Columns in the file."""
        return int(self._layout[0])

    @property
    def _here(self) -> range:
        assert self.rows is not None
        return self.rows

    def parts(self, n_parts: int) -> list[Self]:
        """The same rows as ``n_parts`` ranges of them."""
        return [self.of_rows(rows) for rows in even_ranges(self._here, n_parts)]


def _columns(raw: Any, first: int) -> list[NDArray[Any]]:
    """The columns from ``first`` on, one by one."""
    beside = raw[:, first:]
    return list((beside.toarray() if sp.issparse(beside) else beside).T)
