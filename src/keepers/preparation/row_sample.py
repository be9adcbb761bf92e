"""Rows of a table that are drawn in one pass, with everything that stands beside the numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keepers._protocols import IndexArray
from keepers.data.blocks.files import FileBlocks, FileSequence, read_knowing_texts
from keepers.data.columns import OtherColumn, join_columns, take_rows
from keepers.data.table import LabelledTable
from keepers.linalg.reservoir import drawn_rows, row_keys
from keepers.linalg.storage import stack_rows

SEED = 0


class RowSample:
    """At most ``n_rows`` rows, drawn as everywhere in keepers: those with the smallest keys."""

    def __init__(self, n_rows: int, seed: int = SEED) -> None:
        self.n_rows, self.seed = n_rows, seed
        self.n_seen = 0
        self.numbers: IndexArray = np.empty(0, dtype=np.intp)
        """Of the rows in the table, from 0."""
        self._values: list[Any] = []
        self._others: list[tuple[OtherColumn, ...]] = []
        self._beside: tuple[list[Any], list[Any]] = ([], [])

    def add(self, X: Any, others: Sequence[OtherColumn] = (), *beside: Any) -> None:
        """Take consecutive rows in; ``beside`` are their labels and sample names, or None."""
        start, count = self.n_seen, X.shape[0]
        self.n_seen += count
        if start == 0:  # the common case: the whole table at once
            new = drawn_rows(count, self.n_rows, self.seed)
        else:
            keys = row_keys(np.arange(start, start + count, dtype=np.intp), self.seed)
            new = np.sort(np.argsort(keys, kind="stable")[: self.n_rows])
        everything = len(new) == count
        self._values.append(X if everything else X[new])
        self._others.append(tuple(others) if everything else take_rows(others, new))
        for held, vector in zip(self._beside, beside, strict=False):
            if vector is not None:
                held.append(np.asarray(vector, dtype=object)[new])
        self.numbers = np.concatenate([self.numbers, new + start])
        if len(self.numbers) > 2 * self.n_rows:
            self.sort_out()

    def sort_out(self) -> None:
        """Keep no more rows than are drawn, in their order."""
        kept = np.argsort(row_keys(self.numbers, self.seed), kind="stable")[: self.n_rows]
        kept = kept[np.argsort(self.numbers[kept])]
        joined = join_columns(self._others)
        values = self._values[0] if len(self._values) == 1 else stack_rows(self._values)
        everything = len(kept) == len(self.numbers)
        self._values = [values if everything else values[kept]]
        self._others = [joined if everything else take_rows(joined, kept)]
        for held in self._beside:
            if held:
                held[:] = [np.concatenate(held)[kept]]
        self.numbers = self.numbers[kept]

    @property
    def values(self) -> Any:
        """The numbers of the drawn rows: array or CSR matrix."""
        self.sort_out()
        return self._values[0]

    @property
    def others(self) -> tuple[OtherColumn, ...]:
        """The other columns of the drawn rows."""
        self.sort_out()
        return self._others[0]

    def as_table(self, source: FileBlocks | FileSequence) -> LabelledTable:
        """The drawn rows as a table."""
        self.sort_out()
        first = source.first_file
        labels, names = self._beside
        return LabelledTable(
            self._values[0],
            np.asarray(source.feature_names, dtype=object),
            first.row_names(names) if names else None,
            first.class_labels(labels) if labels else None,
            source.name,
            self._others[0],
            first.types,
        )


def draw_table(source: FileBlocks | FileSequence, n_rows: int, seed: int = SEED) -> LabelledTable:
    """At most ``n_rows`` rows of a table in blocks, drawn at random in one pass."""

    def draw(source: FileBlocks | FileSequence) -> LabelledTable:
        sample = RowSample(n_rows, seed)
        for block in source.blocks(annotated=True):
            sample.add(block.values, block.others, block.labels, block.sample_names)
        return sample.as_table(source)

    return read_knowing_texts(source, draw)
