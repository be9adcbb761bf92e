"""A table in blocks, prepared on the way: one pass to learn, then blocks of numbers."""

import hashlib
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import IndexArray, RowBlock
from keepers.data.blocks.files import FileBlocks, FileSequence, Rows, read_knowing_texts
from keepers.data.blocks.local import LocalBlocks
from keepers.data.table import LabelledTable
from keepers.preparation.facts import TableFacts
from keepers.preparation.table_preparer import TablePreparer

Source = FileBlocks | FileSequence


@dataclass(frozen=True)
class LearnedBlocks:
    """A table in blocks, and what one pass over it told."""

    source: Source
    facts: TableFacts

    @property
    def sample(self) -> LabelledTable:
        """The drawn rows."""
        return self.facts.drawn.as_table(self.source)


def learn_from_blocks(
    source: Source, watch: Callable[[int], None] = lambda n_rows: None
) -> LearnedBlocks:
    """Read a table once; again if a column proves to hold text after having held numbers.

    ``watch`` gets the number of rows read so far.
    """

    def learn(source: Source) -> LearnedBlocks:
        facts = TableFacts([str(name) for name in _names(source)])
        for block in source.blocks(annotated=True):
            facts.add(block.values, block.others, block.labels, block.sample_names)
            watch(facts.n_rows)
        return LearnedBlocks(source, facts)

    return read_knowing_texts(source, learn)


def learn_from_table(table: LabelledTable) -> LearnedBlocks:
    """The same for a table in memory that is to be treated as one in blocks."""
    source = TableInBlocks(table)
    facts = TableFacts([str(name) for name in table.feature_names])
    facts.add(table.X, table.others, table.labels, table.sample_names)
    return LearnedBlocks(source, facts)


class TableInBlocks(FileBlocks):
    """A table in memory as one block."""

    title = "table"

    def __init__(self, table: LabelledTable) -> None:
        names = [str(name) for name in table.feature_names]
        super().__init__(Path(table.name), names, table.X.dtype, range(table.n_samples))
        self.is_sparse = table.is_sparse
        self.types = table.types
        self._table = table

    def _read(self, columns: IndexArray | None, annotated: bool) -> Iterator[Rows]:
        table = self._table
        values = table.X if columns is None else table.X[:, columns]
        yield Rows(values, table.labels, table.sample_names, table.others)


def _names(source: Source) -> NDArray[np.object_]:
    assert source.feature_names is not None  # as in every file
    return source.feature_names


class PreparedBlocks(LocalBlocks):
    """The features of a table as a preparer makes them, in blocks.

    Parameters
    ----------
    source : FileBlocks or FileSequence
        Opened with ``mixed=True``.
    preparer : TablePreparer
        Fitted.
    is_fitted_table : bool
        Whether these are all the rows of the fit, in their order.
    """

    def __init__(
        self, source: Source, preparer: TablePreparer, *, is_fitted_table: bool = False
    ) -> None:
        self._source, self._preparer = source, preparer
        # Where the rows stand in the table of the fit; None for other rows.
        self._first_row = 0 if is_fitted_table else None
        self.name = source.name
        names = preparer.get_feature_names_out()
        self.feature_names = names
        self.n_features = len(names)
        places = {str(name): at for at, name in enumerate(_names(source))}
        plain = all(c.name in places and c.kind != "category" for c in preparer.columns_)
        self._places = (
            np.array([places[c.name] for c in preparer.columns_], dtype=np.intp) if plain else None
        )
        self.dtype = source.dtype if plain else np.dtype(np.float64)
        self.is_sparse = source.is_sparse and plain
        self._drops_rows = preparer.missing == "drop-rows"
        self.n_samples = None if self._drops_rows else source.n_samples
        if self.n_samples is not None:
            stored = source.n_stored if self.is_sparse else None
            self.n_stored = stored or self.n_samples * self.n_features

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        """The rows, block after block, as numbers without gaps."""
        if self._places is None:
            return self._prepare_all(self._source.blocks(annotated=True), columns)
        return self._prepare_all(self._source.blocks(self._places), columns)

    def blocks_after(
        self, n_rows: int, columns: IndexArray | None = None
    ) -> Iterator[RowBlock] | None:
        """The blocks after the first ``n_rows`` rows; None if no block ends there."""
        if self._drops_rows:  # those of the source are more, and it is not known how many
            return super().blocks_after(n_rows, columns)
        annotated = self._places is None
        rest = self._source.blocks_after(n_rows, self._places, annotated=annotated)
        return None if rest is None else self._prepare_all(rest, columns, n_rows)

    def identity(self) -> str | None:
        """That of the files, and what the preparer makes of them."""
        source = self._source.identity()
        if source is None:
            return None
        # To be digested, never read back.
        prepared = pickle.dumps((self._preparer, self._first_row))
        return hashlib.sha256(source.encode() + prepared).hexdigest()

    def _prepare_all(
        self, blocks: Iterator[RowBlock], columns: IndexArray | None, row: int = 0
    ) -> Iterator[RowBlock]:
        """Blocks of the source as numbers; the first begins at ``row``."""
        names = _names(self._source)
        names = names if self._places is None else names[self._places]
        n_kept = row
        for block in blocks:
            table = LabelledTable(block.values, names, others=block.others)
            first_row = None if self._first_row is None else self._first_row + row
            row += table.n_samples
            values = self._prepare(table, columns, first_row)
            n_kept += values.shape[0]
            if values.shape[0]:
                yield RowBlock(values, block.origin)
        if row and not n_kept:
            self._preparer.refuse_no_rows(row)

    def _prepare(
        self, table: LabelledTable, columns: IndexArray | None, first_row: int | None
    ) -> Any:
        preparer = self._preparer
        X = preparer.encode(table, first_row=first_row)
        X = X[preparer.find_complete(X)] if self._drops_rows else preparer.fill(X)
        return X if columns is None else X[:, columns]

    def parts(self, n_parts: int) -> list["PreparedBlocks"]:
        """The same rows as tables of their own, for workers to share.

        The table itself where the numbers of categories depend on the place of a row, and the files
        do not tell how many rows stand before it.
        """
        by_place = any(column.numbers is not None for column in self._preparer.columns_)
        places_matter = self._first_row is not None and by_place
        pieces = self._source.parts(n_parts)
        if places_matter and any(piece.n_samples is None for piece in pieces):
            return [self]
        tables, first_row = [], self._first_row
        for piece in pieces:
            table = PreparedBlocks(piece, self._preparer)
            table._first_row = first_row if places_matter else None
            if first_row is not None:
                first_row += piece.n_samples or 0
            tables.append(table)
        return tables
