"""Files that are there whole or not at all, and that replace nothing but regular files."""

import errno
import hashlib
import os
import platform
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from keepers.data.wording import first_line
from keepers.exceptions import KeepersError, ParameterError, shorten

_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


@contextmanager
def whole_file(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Give a temporary file beside ``path`` that takes its place when the block ends well.

    An exception, an interruption included, removes the temporary file and leaves ``path`` as it
    was. A file that is replaced keeps its permissions; a link stays a link, and the file it points
    to is replaced. Temporary files that killed processes left for the same ``path`` are removed.
    """
    target = _target_of(path, force)
    temporary = _temporary_beside(target)
    try:
        remove_abandoned(target)
        _create(temporary, private=target.exists())
        yield temporary
        _flush(temporary)
        _target_of(path, force)  # what has appeared there meanwhile is not replaced either
        if target.exists():
            _take_permissions(temporary, target.stat())
        os.replace(temporary, target)
    except OSError as error:
        raise KeepersError(
            describe_os_error(path, error, "Choose another place, or make room.")
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def check_target(path: str | Path, *, force: bool = False) -> None:
    """Raise if `whole_file` could not write ``path`` now: before long work, not after it.

    Whether a folder takes new files is tried, because permissions do not tell it for every user
    and file system.
    """
    target = _target_of(path, force)
    probe = _temporary_beside(target)
    try:
        _create(probe, private=True)
        probe.unlink()
    except OSError as error:
        raise KeepersError(
            describe_os_error(path, error, "Choose another place, or make room.")
        ) from error


def describe_os_error(path: str | Path, error: OSError, way_out: str) -> str:
    """What to say if ``path`` cannot be written."""
    reason = error.strerror or first_line(error)
    if error.errno in _FULL:
        reason = f"the disk is full or a limit on file size was reached ({reason})"
    return f"{path} cannot be written: {reason}. {way_out}"


def leads_to_itself(path: Path) -> bool:
    """Whether this is a symbolic link in a circle, which is neither there nor absent."""
    try:
        os.stat(path)
    except (OSError, ValueError) as error:
        return getattr(error, "errno", None) == errno.ELOOP
    return False


def is_temporary(name: str) -> bool:
    """Whether a file has the name of a temporary file of `whole_file`."""
    return name.startswith(".keepers-") and name.endswith(".part")


def _target_of(path: str | Path, force: bool) -> Path:
    """The file that is written, links followed; raise if something else must not be replaced."""
    if "\0" in str(path):
        raise ParameterError(
            f"The name of a file cannot hold a null byte; got {shorten(str(path))}."
        )
    target = Path(os.path.realpath(path))
    try:
        mode = os.stat(path).st_mode  # not of target: /dev/stdout has no name to follow
    except (FileNotFoundError, NotADirectoryError):
        if not target.parent.is_dir():
            raise ParameterError(
                f"There is no folder {target.parent}; {path} cannot be written. Create it first."
            ) from None
        return target
    except OSError as error:
        raise ParameterError(describe_os_error(path, error, "Choose another place.")) from error
    if stat.S_ISDIR(mode):
        raise ParameterError(f"{path} is a folder; a file cannot replace it. Name a file.")
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "not a regular file")
        raise ParameterError(f"{path} is {kind}; only a regular file is replaced. Name a file.")
    if not force:
        raise ParameterError(
            f"{path} exists and is not overwritten. Choose another name, or force=True (--force)."
        )
    if not os.access(target, os.W_OK):
        raise ParameterError(
            f"{path} is read-only and is not overwritten. Choose another name, or make it writable."
        )
    return target


def _create(path: Path, *, private: bool) -> None:
    # Never more readable than what it becomes: a new file follows the umask at once, one that
    # replaces another is private until it gets the permissions of the other.
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666))


def _take_permissions(path: Path, before: os.stat_result) -> None:
    mode = stat.S_IMODE(before.st_mode) & 0o777
    if hasattr(os, "chown"):
        try:
            os.chown(path, -1, before.st_gid)
        except OSError:
            mode &= ~0o070  # what one group may read is not for another
        with suppress(OSError):
            os.chown(path, before.st_uid, -1)
    os.chmod(path, mode)


def _flush(path: Path) -> None:
    """Make sure that the bytes are on the disk before the name is."""
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def _temporary_beside(target: Path) -> Path:
    """A new name that tells which file it is for and which process writes it."""
    return target.with_name(f"{_prefix(target)}{os.getpid()}-{secrets.token_hex(4)}.part")


def _prefix(target: Path) -> str:
    return f".keepers-{_digest(target.name)}-{_machine()}-"


def remove_abandoned(target: Path) -> None:
    """Remove temporary files for ``target`` whose process, on this machine, is gone."""
    if os.name != "posix":
        return  # elsewhere os.kill does not ask but kill
    prefix = _prefix(target)
    for name in os.listdir(target.parent):
        if not (name.startswith(prefix) and is_temporary(name)):
            continue
        process = name.removeprefix(prefix).partition("-")[0]
        if process.isdecimal() and not _is_alive(int(process)):
            with suppress(OSError):
                target.with_name(name).unlink()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # another user's, or not to be told
    return True


@lru_cache(maxsize=1)
def _machine() -> str:
    """Tells apart where process numbers mean something: machines, and containers on them."""
    facts = [platform.node()]
    with suppress(OSError):
        facts.append(Path("/etc/machine-id").read_text(encoding="utf-8"))
    with suppress(OSError):
        facts.append(os.readlink("/proc/self/ns/pid"))
    return _digest("\n".join(facts))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:10]
