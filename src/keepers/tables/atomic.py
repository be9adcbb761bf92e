"""Files as bytes: written whole or not at all, compressed ones read with a limit.

What libraries raise about a file becomes one sentence.
"""

import bz2
import gzip
import io
import lzma
import os
import secrets
import stat
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from keepers._wording import first_line
from keepers.exceptions import DataError, KeepersError, ParameterError
from keepers.tables.table import refuse_size

COMPRESSIONS = {".gz": gzip, ".bz2": bz2, ".xz": lzma}
"""Modules that expand, by suffix."""
_MAGIC = {b"\x1f\x8b": gzip, b"\xfd7zXZ\0": lzma}
_MAGIC |= {b"BZh%d1AY&SY" % level: bz2 for level in range(1, 10)}
"""The same by the first bytes of a file."""
_BUFFER = 2**20
_WAY_OUT = "Choose another place, or make room."


@contextmanager
def whole_file(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary file in the same folder that replaces ``path`` when the block ends well.

    An exception or an interruption leaves ``path`` as it was. A replaced file keeps its
    permissions; a link stays a link.
    """
    target = _target_of(path, force)
    with _temporary_for(path, target) as temporary:
        yield temporary
        with temporary.open("rb+") as stream:  # the bytes are on the disk before the name is
            os.fsync(stream.fileno())
        _target_of(path, force)  # what has appeared there meanwhile is not replaced either
        if target.exists():
            _take_permissions(temporary, target.stat())
        os.replace(temporary, target)


def check_target(path: str | Path, *, force: bool = False) -> None:
    """Raise if `whole_file` could not write ``path`` now: before long work, not after it."""
    # By trying: permissions do not decide for every user and file system.
    with _temporary_for(path, _target_of(path, force)):
        pass


def describe_os_error(path: str | Path, error: OSError, way_out: str = _WAY_OUT) -> str:
    """A sentence about a file that cannot be written."""
    return f"{path} cannot be written: {error.strerror or first_line(error)}. {way_out}"


def is_same_file(one: Path, other: Path) -> bool:
    """True if two names lead to one file, which need not be there yet."""
    if one.exists() and other.exists():
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def _target_of(path: str | Path, force: bool) -> Path:
    """The file that is written, links followed; raise if something else must not be replaced."""
    target = Path(os.path.realpath(path))
    try:
        mode = os.stat(path).st_mode  # not of target: /dev/stdout has no name to follow
    except (FileNotFoundError, NotADirectoryError):
        if target.parent.is_dir():
            return target
        reason = f"There is no folder {target.parent}; {path} cannot be written. Create it first."
        raise ParameterError(reason) from None
    except OSError as error:
        raise ParameterError(describe_os_error(path, error, "Choose another place.")) from error
    if stat.S_ISDIR(mode):
        reason = "is a folder; a file cannot replace it. Name a file."
    elif not stat.S_ISREG(mode):
        reason = "is a pipe or a device; only a regular file is replaced. Name a file."
    elif not force:
        reason = "exists and is not overwritten. Choose another name, or force=True (--force)."
    elif not os.access(target, os.W_OK):
        reason = "is read-only and is not overwritten. Choose another name, or make it writable."
    else:
        return target
    raise ParameterError(f"{path} {reason}")


@contextmanager
def _temporary_for(path: str | Path, target: Path) -> Iterator[Path]:
    """An empty file next to ``target``, removed at the end."""
    temporary = target.with_name(f".keepers-{secrets.token_hex(8)}.part")
    # Never more readable than the final file: private until it gets the permissions of the old one.
    mode = 0o600 if target.exists() else 0o666
    try:
        temporary.touch(mode, exist_ok=False)
        yield temporary
    except OSError as error:
        raise KeepersError(describe_os_error(path, error)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _take_permissions(path: Path, before: os.stat_result) -> None:
    mode = stat.S_IMODE(before.st_mode) & 0o777
    if path.stat().st_gid != before.st_gid:
        mode &= ~0o070  # what one group may read is not for another
    path.chmod(mode)


def is_compressed(path: Path) -> bool:
    """True if the first bytes of a file are those of a compressed one."""
    return _module_of(path) is not None


def _module_of(path: Path) -> Any:
    with path.open("rb") as stream:
        start = stream.read(max(map(len, _MAGIC)))
    return next((module for magic, module in _MAGIC.items() if start.startswith(magic)), None)


def open_plain(path: Path, max_bytes: int | None = None) -> IO[bytes]:
    """The bytes of a file, expanded; reading more than ``max_bytes`` of them raises DataError."""
    module = _module_of(path)
    if module is None:
        return io.BufferedReader(io.FileIO(path), _BUFFER)
    return io.BufferedReader(_Watched(module.open(path), path.name, max_bytes), _BUFFER)


class _Watched(io.RawIOBase):
    """A stream that counts the bytes read from it."""

    def __init__(self, expanded: Any, name: str, max_bytes: int | None) -> None:
        self._expanded, self._name, self._max_bytes, self._n_bytes = expanded, name, max_bytes, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self._expanded.readinto(buffer))
        self._n_bytes += count
        refuse_size(self._n_bytes, f"{self._name}, expanded,", self._max_bytes)
        return count

    def close(self) -> None:
        self._expanded.close()
        super().close()


@contextmanager
def reading(path: Path, title: str) -> Iterator[None]:
    """Put the path in front of errors of ours; make a `DataError` of those of libraries.

    An exception that was raised in the code of keepers itself, and is not one of ours, is a bug
    and passes as it is.
    """
    try:
        yield
    except KeepersError as error:
        if str(error).startswith(str(path)) or isinstance(error, ImportError):
            raise
        raise type(error)(f"{path}: {error}") from error
    except MemoryError as error:
        raise DataError(
            f"{path} does not fit in memory. Read a part of the table, or use a larger machine."
        ) from error
    except BaseException as error:
        if not raised_outside(error):
            raise
        raise DataError(
            f"{path} is not a readable {title} file: {first_line(error)}. Check that it is "
            "complete and that its suffix fits its format, or write it again."
        ) from error


def raised_outside(error: BaseException) -> bool:
    """True if a library or the system raised it; not the code of keepers, nor an interruption."""
    if not isinstance(error, Exception):
        return type(error).__name__ == "PanicException"  # of polars
    if isinstance(error, (OSError, UnicodeError, EOFError)):
        return True
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).partition(".")[0] != "keepers"
