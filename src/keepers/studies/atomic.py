"""Files that are there whole or not at all."""

from pathlib import Path

from keepers.data.replacing import describe_os_error, whole_file
from keepers.exceptions import KeepersError

__all__ = ["make_folder", "write_bytes", "write_text"]


def write_text(path: Path, text: str) -> None:
    """Write text (UTF-8, newlines as they are); a reader sees the old file or the new one."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes; a reader sees the old file or the new one."""
    with whole_file(path, force=True) as temporary:
        temporary.write_bytes(content)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, if need be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise KeepersError(
            describe_os_error(path, error, "Choose another folder, or make room.")
        ) from error
