"""What goes wrong while a file is read, as errors of ours that name the file."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from keepers.data.wording import first_line
from keepers.exceptions import DataError, KeepersError


@dataclass
class Progress:
    """How far a reader has come."""

    rows: int = 0

    def __str__(self) -> str:
        """A piece of a message: nothing before the first row."""
        return f", after row {self.rows}" if self.rows else ""


@contextmanager
def reading(path: Path, title: str) -> Iterator[Progress]:
    """Put the path in front of errors of ours, once; make a `DataError` of every other one."""
    progress = Progress()
    try:
        yield progress
    except KeepersError as error:
        if str(error).startswith(str(path)):  # a reader inside this one has named it
            raise
        raise type(error)(f"{path}{progress}: {error}") from error
    except MemoryError as error:
        raise DataError(
            f"{path} does not fit in memory. Read a part of the table, or use a larger machine."
        ) from error
    except Exception as error:
        raise DataError(
            f"{path} is not a readable {title} file{progress}: {first_line(error)}. Check that it "
            "is complete and that its suffix tells its format, or write it again."
        ) from error
