"""Text tables as people have them: every file is read as written by hand, whole and in blocks.

`messy_files.json` has one file a line: its text (``stored`` in UTF-8 unless said otherwise), the
options to open it with, and the columns (None for a gap), sample names and labels that must come of
it, or a word of the ``error``. The values were written by hand from the content of the files; no
reader of keepers computed them. Large files are made here by a rule.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from keepers.datasets import open_table
from keepers.exceptions import DataError
from tables.both_ways import in_blocks

Column = list[Any]


@dataclass(frozen=True)
class MessyFile:
    """A file, the options to open it with, and the table or the error that must come of it."""

    name: str
    content: bytes
    columns: dict[str, Column] = field(default_factory=dict)
    ids: list[str] | None = None
    labels: list[Any] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    error: str | None = None

    def __post_init__(self) -> None:
        """Make sure that a message cannot hold the word only because it names the file."""
        assert self.error is None or self.error not in self.name


def messy_files() -> list[MessyFile]:
    """Return all files; names differ."""
    listed = json.loads(Path(__file__).with_name("messy_files.json").read_text(encoding="utf-8"))
    for each in listed:
        each["content"] = each.pop("text").encode(each.pop("stored", "utf-8"))
    return [*(MessyFile(**each) for each in listed), *_large_and_binary(), *_late_surprises()]


def _large_and_binary() -> list[MessyFile]:
    names = [f"transcript_{at:08d}" for at in range(60_000)]
    rows = [
        [f"{row + at % 97}.{at % 8 * 125:03d}00000000000000" for at in range(60_000)]
        for row in (0, 1, 2)
    ]
    wide = "\n".join(map(",".join, (names, *rows))) + "\n"
    values = [[row + at % 97 + at % 8 / 8 for row in (0.0, 1.0, 2.0)] for at in range(60_000)]
    dna = "ACGT" * 300_000
    refused = {
        "late-short-row.csv": (b"a,b,c\n" + b"1,2,3\n" * 6000 + b"4\n1,2,3\n", "line 6002"),
        "late-unclosed.csv": (b"t,a\n" + b"u,1\n" * 9000 + b'"v,2\n' + b"w,3\n", "quotation"),
        "late-long-row.csv": (b"a,b\n" + b"1,2\n" * 6000 + b"4,5,6\n1,2\n", "line 6002"),
        "binary.csv": (bytes(range(256)) * 8, "text"),
        "binary.txt": (b"\x00\x01\x02\x00\xfe" * 200, "text"),
        "picture.csv": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0\0\0\1\0\x08\x06", "text"),
    }
    return [
        MessyFile("wide.csv", wide.encode(), dict(zip(names, values, strict=True))),
        MessyFile(
            "long-cell.csv",
            f"dna,a\n{dna},1\nACGT,2\n".encode(),
            {"dna": [dna, "ACGT"], "a": [1.0, 2.0]},
        ),
        *(MessyFile(name, content, error=word) for name, (content, word) in refused.items()),
    ]


N_EARLY = 5_000
NOTE = "n" * 240
"""The text of a column that puts the late rows beyond the first megabyte of a file."""


def _late(name: str, early: str, late: str, column: Column, sep: str = ",") -> MessyFile:
    """5,000 rows with the cell ``early``, then those between '~'; the column is named "a"."""
    cells = [early] * N_EARLY + late.split("~")
    text = f"a{sep}b{sep}note\n"
    text += "".join(f"{cell}{sep}{at}{sep}{NOTE}\n" for at, cell in enumerate(cells))
    others = {"b": [float(at) for at in range(len(cells))], "note": [NOTE] * len(cells)}
    return MessyFile(name, text.encode(), {"a": [column[0]] * N_EARLY + column[1:], **others})


def _late_surprises() -> list[MessyFile]:
    return [
        _late("late-word.csv", "1.50", "many~2", ["1.50", "many", "2"]),
        _late("late-fraction.csv", "7", "0.5~8", [7.0, 0.5, 8.0]),
        _late("late-gap.csv", "7", "NA~~8", [7.0, None, None, 8.0]),
        _late("late-maybe.csv", "TRUE", "maybe~FALSE", ["TRUE", "maybe", "FALSE"]),
        _late("late-false.csv", "true", "false~", [True, False, None]),
        _late("late-text.csv", "", "x~~y", [None, "x", None, "y"]),
        _late("late-number.csv", "", "1.5~~-2", [None, 1.5, None, -2.0]),
        _late("late-large-integer.csv", "12", f"{2**53 + 1}", ["12", f"{2**53 + 1}"]),
        _late("late-decimal-comma.csv", "3", "1,5~2", [3.0, 1.5, 2.0], sep=";"),
        _late("late-quoted-comma.csv", "3", '"1,5"~2', [3.0, 1.5, 2.0]),
        _late("late-quotes.csv", "x", '"y, ""z"""~5" disk', ["x", 'y, "z"', '5" disk']),
        _late("late-line-break.csv", "x", '"y\nz"~x', ["x", "y\nz", "x"]),
        _late("late-umlaut.csv", "x", "Köln~基因", ["x", "Köln", "基因"]),
    ]


FILES = messy_files()
PAIRS = [(file, open_table) for file in FILES]
PAIRS += [(file, in_blocks) for file in FILES[::4] if not file.options.get("transpose")]


def cells(values):
    """Values of a column in one form: NaN is a gap, -0.0 is not 0.0, and True counts as 1."""
    listed = [None if cell != cell else cell for cell in values]
    return [cell if isinstance(cell, str | None) else repr(float(cell)) for cell in listed]


@pytest.mark.filterwarnings("ignore::keepers.exceptions.DataWarning")
@pytest.mark.parametrize(
    ("file", "read"), PAIRS, ids=[f"{file.name} {read.__name__}" for file, read in PAIRS]
)
def test_a_messy_file_is_read_as_it_is_meant_or_refused_in_a_sentence(file, read, tmp_path):
    path = tmp_path / file.name
    path.write_bytes(file.content)
    if file.error is None:
        table = read(path, **file.options)
        columns = dict(zip(table.names, table.values.T, strict=True))
        columns |= {name: table.frame[name] for name in table.others}
        found = {name: cells(columns[name]) for name in table.columns}
        assert found == {name: cells(values) for name, values in file.columns.items()}
        assert list(found) == list(file.columns)
        for part, expected in ((table.ids, file.ids), (table.labels, file.labels)):
            assert (None if part is None else part.tolist()) == expected
        return
    with pytest.raises(DataError) as raised:
        read(path, **file.options)
    assert file.error.casefold() in str(raised.value).casefold()
    assert file.name in str(raised.value)
