"""A list of features in a file, whoever made it: a colleague, another program, `keepers select`."""

import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from keepers.exceptions import DataError
from keepers.recipe import Recipe

MOST_BYTES = 64 * 2**20
TABLES = {".csv": ",", ".tsv": "\t"}
# Columns of tables of features, as keepers, scanpy and people call them.
NAMED = ("feature", "features", "gene", "genes", "name", "names", "")
CHOSEN = ("kept", "highly_variable")
YES = ("yes", "true", "1")


def read_feature_list(path: str) -> list[str]:
    """The names in a file; "-" is the standard input.

    One name a line; blank lines, and lines that begin with "#", do not count. Of a table (.csv,
    .tsv) the first column, without its heading; if a column "kept" or "highly_variable" tells which
    features were chosen, only those. Of a recipe (.json) the kept features.
    """
    if path == "-":
        raw = sys.stdin.buffer.read(MOST_BYTES + 1)
    elif Path(path).suffix.lower() == ".json":
        return list(Recipe.load(Path(path)).features)
    else:
        with open(path, "rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
    name = "the standard input" if path == "-" else path
    if len(raw) > MOST_BYTES:
        raise DataError(
            f"A list of features is at most {MOST_BYTES // 2**20} MB long; {name} is longer. Give "
            "a file with one name a line."
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"A list of features is text in UTF-8; {name} is not, at byte {error.start}. Save it "
            "as text with one name a line."
        ) from error
    delimiter = TABLES.get(Path(path).suffix.lower())
    features = _lines(text) if delimiter is None else _chosen(text, delimiter, name)
    if not features:
        raise DataError(f"A list must name at least one feature; {name} names none.")
    return features


def _lines(text: str) -> list[str]:
    stripped = (line.strip() for line in text.splitlines())
    return [line for line in stripped if line and not line.startswith("#")]


def _chosen(text: str, delimiter: str, name: str) -> list[str]:
    """Names in the first column of a table of features, of those that were chosen."""
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if any(row)]
    except csv.Error as error:
        raise DataError(
            f"A list of features as a table must have cells that can be told apart; {name} has "
            f"none ({error}). Save it as text with one name a line."
        ) from error
    heading = [cell.strip().lower() for cell in rows[0]] if rows else []
    if not heading or heading[0] not in NAMED:
        return [row[0].strip() for row in rows if row[0].strip()]
    place = _place_of_choice(heading)
    return [
        row[0].strip()
        for row in rows[1:]
        if row[0].strip() and (place is None or _says_yes(row, place))
    ]


def _place_of_choice(heading: Sequence[str]) -> int | None:
    return next((heading.index(word) for word in CHOSEN if word in heading), None)


def _says_yes(row: Sequence[str], place: int) -> bool:
    return place < len(row) and row[place].strip().lower() in YES
