"""Workbooks (.xlsx, .xls, .xlsb, .ods): one sheet is one table."""

import csv
import re
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from keepers._packages import optional
from keepers._wording import closest, first_line, some_of
from keepers.exceptions import DataError, DataWarning, shorten, warn_caller
from keepers.tables.columnar import read_text
from keepers.tables.table import ReadRequest, Table, refuse_shape, refuse_size

_CELL_BYTES = 40
"""Memory of a cell, empty or not: 32 in calamine, 8 for the reference to its value."""
_DIMENSION = re.compile(rb"<(?:\w+:)?dimension ref=\"[A-Z]+\d+:([A-Z]+)(\d+)\"")


def read_excel(path: Path, request: ReadRequest) -> Table:
    """The cells of a sheet, read as those of a text table are; error cells are gaps."""
    calamine = optional("python_calamine", "Excel workbooks")
    if zipfile.is_zipfile(path):
        _refuse_too_large(path, request)
    try:
        with calamine.load_workbook(path) as book:
            title = _choose_sheet(book, request.sheet, path.name)
            rows = book.get_sheet_by_name(title).to_python()
    except calamine.CalamineError as error:
        raise DataError(
            f"It cannot be read ({first_line(error)}): it is damaged, has a password, or is no "
            "workbook. Save it as .xlsx in a spreadsheet program."
        ) from error
    words = [[_word(cell) for cell in row] for row in rows[request.skip_rows or 0 :]]
    # Rows and columns without a value are parts of the rectangle, not of the table.
    used = [at for at, column in enumerate(zip(*words, strict=True)) if any(column)]
    if not used:
        raise DataError(f"Sheet {shorten(title)} is empty. Name another (sheet=, --sheet).")
    with tempfile.TemporaryDirectory(prefix="keepers-") as folder:
        text = Path(folder) / path.name
        with text.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([row[at] for at in used] for row in words if any(row))
        skipped = None if request.skip_rows is None else 0
        asked = replace(request, format="csv", sep=",", encoding="utf-8", skip_rows=skipped)
        return read_text(text, asked)


def _refuse_too_large(path: Path, request: ReadRequest) -> None:
    """Raise if a workbook, or the rectangle between the cells of a sheet, is beyond the limit."""
    with zipfile.ZipFile(path) as archive:
        n_bytes = sum(member.file_size for member in archive.infolist())
        refuse_size(n_bytes, "The workbook, expanded,", request.max_bytes)
        for name in archive.namelist():
            with archive.open(name) as stream:
                found = "worksheets/" in name and _DIMENSION.search(stream.read(2**12))
            if found:
                n_columns = 0
                for letter in found[1]:
                    n_columns = 26 * n_columns + letter - ord("A") + 1
                shape = (int(found[2][:9]), n_columns)
                refuse_shape(shape, shorten(name), request.max_bytes, _CELL_BYTES)


def _choose_sheet(book: Any, asked: str | int | None, file_name: str) -> str:
    """The name of the requested sheet, by name or number from 1, else of the first."""
    titles = [sheet.name for sheet in book.sheets_metadata if str(sheet.typ).endswith("WorkSheet")]
    shown = some_of([repr(title) for title in titles]) or "not there"
    wanted = "1" if asked is None else str(asked)
    if asked is None and len(titles) > 1:
        warn_caller(
            f"{file_name} has {len(titles)} sheets ({shown}); the first is read. Name another "
            "with sheet= (--sheet).",
            DataWarning,
        )
    if isinstance(asked, str) and asked in titles:
        return asked
    if wanted.isdecimal() and 1 <= int(wanted) <= len(titles):
        return str(titles[int(wanted) - 1])
    near = closest(wanted, titles)
    raise DataError(f"There is no sheet {shorten(wanted)}.{near} The sheets are {shown}.")


def _word(cell: Any) -> str:
    """A cell as a text table has it: whole numbers without a point, days without an hour."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()
