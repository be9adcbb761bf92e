"""Series matrices of the Gene Expression Omnibus (GSE..._series_matrix.txt): probes in rows."""

import re
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import IO

from keepers.data.formats.genes_in_rows import GeneRows, read_cells
from keepers.data.formats.text import open_text
from keepers.data.formats.text_filters import in_whole_lines
from keepers.data.table import LabelledTable, ReadRequest, number_repeated
from keepers.exceptions import DataError

_MARK, _SAMPLE = "!", "!Sample_"
_BEGIN, _END = "!series_matrix_table_begin", "!series_matrix_table_end"
_CHARACTERISTICS = re.compile(r"characteristics_ch[0-9]+")


def read_geo(path: Path, request: ReadRequest) -> LabelledTable:
    """Read samples x features.

    ``labels`` and ``identifier`` may name what a line beginning with "!Sample_" tells, with or
    without that beginning, or one of the characteristics, such as "tissue".
    """
    with open_text(path, request) as stream:
        told, line = _read_metadata(stream)
        header = read_cells(stream, line + 1)
        body = _Body()
        rows = GeneRows(header, 1, line + 2, _of_samples(told, len(header) - 1))
        name = re.split(r"(?:_series_matrix)?\.", path.name, flags=re.IGNORECASE)[0]
        request = replace(
            request,
            labels=_without_prefix(request.labels),
            identifier=_without_prefix(request.identifier),
        )
        return rows.read(in_whole_lines(stream, body.change), request, name, body.check)


def _without_prefix(name: str | None) -> str | None:
    return None if name is None else name.removeprefix(_SAMPLE)


def _read_metadata(stream: IO[bytes]) -> tuple[list[list[str]], int]:
    """The lines above the table that tell something of samples, and the number of the last line."""
    told: list[list[str]] = []
    for line in count(1):
        cells = read_cells(stream, line)
        key = cells[0] if cells else ""
        if key.casefold() == _BEGIN:
            return told, line
        if key.startswith(_SAMPLE):
            told.append(cells)
        elif key and not key.startswith(_MARK):
            break
    raise DataError(
        f"A series matrix holds a table below a line {_BEGIN}; there is none. Obtain it again, or "
        "name the format (format=, --format) if it is another."
    )


def _of_samples(told: list[list[str]], n_samples: int) -> dict[str, list[str]]:
    """What is told of every sample, by name; characteristics also by theirs."""
    lines = [cells for cells in told if len(cells) == n_samples + 1]
    kinds = [cells[0].removeprefix(_SAMPLE) for cells in lines]
    metadata = {name: cells[1:] for name, cells in zip(number_repeated(kinds), lines, strict=True)}
    # A line of characteristics may hold another one for every sample.
    for kind, cells in zip(kinds, lines, strict=True):
        if _CHARACTERISTICS.fullmatch(kind) is None:
            continue
        for at, cell in enumerate(cells[1:]):
            name, colon, value = (part.strip() for part in cell.partition(":"))
            if colon and name and name not in kinds:
                metadata.setdefault(name, [""] * n_samples)[at] = value
    return metadata


class _Body:
    """The lines of the table, up to the one that ends it."""

    def __init__(self) -> None:
        self._has_ended = False

    def change(self, lines: bytes) -> bytes:
        """Empty the lines of metadata; names without quotation marks are faster to read."""
        return b"\n".join(map(self._change_line, lines.split(b"\n")))

    def _change_line(self, line: bytes) -> bytes:
        if line.startswith(_MARK.encode()):
            self._has_ended |= line.strip().lower() == _END.encode()
            return b""
        name, mark, values = line[1:].partition(b'"')
        return name + values if mark and line.startswith(b'"') and b"\t" not in name else line

    def check(self, n_features: int) -> None:
        """Raise for a table that is cut off, or empty."""
        if not self._has_ended:
            raise DataError(
                f"The table must end in a line {_END}, and does not: it is cut off. Obtain it "
                "again."
            )
        if not n_features:
            raise DataError(
                "Its table holds no values: those of sequencing studies are in supplementary "
                "files, which the lines !Series_supplementary_file name."
            )
