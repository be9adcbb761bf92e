"""Files that hold a bare matrix, whose rows can be read from anywhere."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keepers._protocols import IndexArray
from keepers.data.blocks.files import FileBlocks
from keepers.data.blocks.local import LocalBlocks
from keepers.data.blocks.splitting import even_ranges
from keepers.data.columns import plan_columns
from keepers.data.request import ReadRequest
from keepers.data.values import as_values
from keepers.exceptions import DataError

__all__ = ["MatrixBlocks"]


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

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        request: ReadRequest,
        n_rows: int,
        stored: np.dtype[Any],
        n_stored: int | None = None,
    ) -> None:
        features = plan_columns(names, request).features if names else []
        if not features:
            raise DataError(
                f"A table needs at least one feature column; this one has {n_rows} rows and none. "
                "Leave it out, or write it again."
            )
        none_yet = as_values(np.empty((0, len(names)), dtype=stored), path.name)
        super().__init__(
            path, [names[at] for at in features], none_yet.dtype, range(n_rows), n_stored
        )
        self._layout = (len(names), None if len(features) == len(names) else features)

    @abstractmethod
    def _raw(self, chosen: IndexArray | None) -> Iterator[Any]:
        """The rows ``rows``, all columns or the ``chosen`` ones of the file, as stored."""

    def _values(self, columns: IndexArray | None) -> Iterator[Any]:
        names = self.feature_names if columns is None else self.feature_names[columns]
        for raw in self._raw(self._chosen(columns)):
            yield as_values(raw, self.name, names).astype(self.dtype, copy=False)

    def _chosen(self, columns: IndexArray | None) -> IndexArray | None:
        """Positions in the file of the wanted features; None for all columns."""
        features = self._layout[1]
        if features is None:
            return columns
        positions = np.array(features, dtype=np.intp)
        return positions if columns is None else positions[columns]

    @property
    def _width(self) -> int:
        """Columns in the file."""
        return int(self._layout[0])

    @property
    def _here(self) -> range:
        assert self.rows is not None
        return self.rows

    def parts(self, n_parts: int) -> list[LocalBlocks]:
        """The same rows as ``n_parts`` ranges of them."""
        return [self.of_rows(rows) for rows in even_ranges(self._here, n_parts)]
