"""Files that are there whole or not at all."""

from pathlib import Path

from keepers.data.writing import whole_file

__all__ = ["write_bytes", "write_text"]


def write_text(path: Path, text: str) -> None:
    """Write text (UTF-8, newlines as they are); a reader sees the old file or the new one."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes; a reader sees the old file or the new one."""
    with whole_file(path, force=True) as temporary:
        temporary.write_bytes(content)
