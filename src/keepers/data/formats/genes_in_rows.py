"""Tables that hold a feature a row and a sample a column, as those of gene expression do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

import numpy as np

from keepers.data.formats.text import TextStart, number_blocks
from keepers.data.formats.text_cells import as_classes, decode, read_line, read_records
from keepers.data.table import ColumnPlan, LabelledTable, Matrix, ReadRequest, to_table
from keepers.data.wording import closest, some_of
from keepers.exceptions import DataError, shorten

DELIMITER = "\t"


def read_cells(stream: IO[bytes], line: int) -> list[str]:
    """The cells of the next line, the number of which is for messages.

    Descriptions are written with single quotation marks, so these need not come in pairs.
    """
    text = decode(read_line(stream, (DELIMITER,)))
    if not text:
        raise DataError(f"It ends before line {line}: it is cut off. Obtain or write it again.")
    try:
        cells = next(read_records([text], DELIMITER, line))[1]
    except DataError:
        cells = [cell.strip().removeprefix('"').removesuffix('"') for cell in text.split(DELIMITER)]
    return [cell.strip() for cell in cells]


@dataclass(frozen=True)
class GeneRows:
    """Where the rows of features begin, and what is known of the samples."""

    columns: list[str]
    """Names of all columns: of the features, of what else is told of them, of the samples."""
    n_before: int
    """Columns before the first sample."""
    first_line: int
    metadata: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What is told of every sample, by name."""
    names_at: int = 0
    """The column that names the features."""

    def read(
        self,
        stream: IO[bytes],
        request: ReadRequest,
        name: str,
        check: Callable[[int], None],
    ) -> LabelledTable:
        """The table, samples as rows; ``check`` gets the number of features that were there."""
        samples = self.columns[self.n_before :]
        if not samples:
            raise DataError(
                "A table needs at least one sample; this one has no columns of values. Obtain or "
                "write it again."
            )
        start = TextStart(self.columns, DELIMITER, 0, b"", self.first_line, None, decimal=".")
        plan = ColumnPlan(list(range(self.n_before, len(self.columns))), None, self.names_at)
        values, names = [], []
        for block, cells in number_blocks(stream, start, plan):
            values.append(block)
            names += cells.texts[self.names_at]
            request.limit.refuse_shape((len(samples), len(names)), 8, "The table")
        check(len(names))
        labels = self._metadata_of(request.labels, "labels", names)
        called = self._metadata_of(request.identifier, "identifier", names)
        # A transposed view: the values are not copied once more.
        X = np.concatenate(values).T if values else np.empty((len(samples), 0))
        return to_table(
            Matrix(
                X,
                feature_names=np.array(names, dtype=object),
                sample_names=np.array(samples if called is None else called, dtype=object),
                labels=None if labels is None else as_classes(labels),
            ),
            request,
            name,
        )

    def _metadata_of(
        self, asked: str | None, role: str, features: Sequence[str]
    ) -> Sequence[str] | None:
        """What was asked for of every sample; None for a feature, which `to_table` will take."""
        if asked is None or asked in self.metadata:
            return None if asked is None else self.metadata[asked]
        if asked in features and role == "labels":
            return None
        told = some_of([repr(name) for name in self.metadata], shown=12) or "nothing"
        raise DataError(
            f"{role}= names something that the file tells of its samples; {shorten(asked)} is not "
            f"there.{closest(asked, self.metadata)} It tells {told}."
        )
