"""The results of a study in one small file, to keep beside its tables and to give to others.

``results.jsonl.xz`` has a line for the format, one for each run and one for each result, as JSON.
It is what `keepers reproduce --earlier` needs and no more: numbers with eight decimals (tables have
six), and without the list of the best features of every fit, which is about half of a store.
"""

import json
import lzma
from pathlib import Path
from typing import Any, NamedTuple

from keepers.data.replacing import whole_file
from keepers.exceptions import DataError

PACKED = "results.jsonl.xz"
MOST_BYTES = 1 << 30
"""Unpacked, a file is at most this large: that of the suite has 16 MB."""

_FORMAT = {"format": "keepers results"}
_DECIMALS = 8


class StoredRows(NamedTuple):
    """The two tables of a store, all values as text."""

    results: list[tuple[str, str, str, str]]
    """Key, task, outcome and when it was finished."""
    runs: list[tuple[str, str]]
    """When it was started, and its facts."""
    layout: object


def write_packed(path: Path, rows: StoredRows) -> None:
    """Write the rows of a store; a reader sees the old file or the new one."""
    lines: list[dict[str, Any]] = [{**_FORMAT, "layout": rows.layout}]
    lines += [{"started": started, "facts": json.loads(facts)} for started, facts in rows.runs]
    for key, task, outcome, finished in rows.results:
        small = {**_rounded(json.loads(outcome)), "top": []}
        lines.append({"key": key, "task": json.loads(task), "outcome": small, "finished": finished})
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    with whole_file(path, force=True) as temporary:
        temporary.write_bytes(lzma.compress(text.encode(), preset=4))


def read_packed(path: Path) -> StoredRows:
    """Read what `write_packed` wrote, or raise an error that says what the file is not."""
    try:
        with lzma.open(path) as stream:
            content = stream.read(MOST_BYTES + 1)
    except (lzma.LZMAError, EOFError, OSError) as error:
        raise DataError(f"{path} cannot be read as packed results: {error}.") from error
    if len(content) > MOST_BYTES:
        raise DataError(
            f"{path} holds more than {MOST_BYTES >> 20} MiB, which no results of keepers do."
        )
    try:
        head, *lines = [json.loads(line) for line in content.splitlines()]
        if head["format"] != _FORMAT["format"]:
            raise ValueError("its first line is not that of a file of results")
        return StoredRows(
            [
                (row["key"], json.dumps(row["task"]), json.dumps(row["outcome"]), row["finished"])
                for row in lines
                if "key" in row
            ],
            [(row["started"], json.dumps(row["facts"])) for row in lines if "started" in row],
            head["layout"],
        )
    except (ValueError, TypeError, KeyError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise DataError(f"{path} is not a results file of keepers: {reason}.") from error


def _rounded(value: Any) -> Any:
    """Every number of nested lists and tables with a few decimals."""
    if isinstance(value, float):
        return round(value, _DECIMALS)
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value
