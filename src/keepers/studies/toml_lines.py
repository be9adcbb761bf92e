"""Where in a TOML file a value stands, so that an error about it can point at the line."""

import re

__all__ = ["line_of"]

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\-\"']+)\s*=")
_INLINE_KEY = r"(?:^|[{{,])\s*[\"']?{key}[\"']?\s*="

Path = tuple[str | int, ...]


def line_of(text: str, path: Path) -> int:
    """Return the line (from 1) of the value at ``path``, or of the nearest thing around it.

    ``path`` is made of keys and positions, as in ``("methods", 2, "grid", "gamma")``.
    """
    lines = text.splitlines()
    places = _places(lines)
    for length in range(len(path), 0, -1):
        if path[:length] in places:
            start = places[path[:length]]
            return _inside(lines, start, path[length:]) + 1
    return 1


def _places(lines: list[str]) -> dict[Path, int]:
    """Line of every table header and every key that begins a line."""
    places: dict[Path, int] = {}
    table: Path = ()
    counts: dict[Path, int] = {}
    for number, line in enumerate(lines):
        if header := _HEADER.match(line):
            table = _opened_table(header[2], header[1] == "[[", counts)
            places.setdefault(table, number)
            if isinstance(table[-1], int):
                places.setdefault(table[:-1], number)
        elif key := _KEY.match(line):
            places.setdefault((*table, *_split(key[1])), number)
    return places


def _opened_table(name: str, is_array: bool, counts: dict[Path, int]) -> Path:
    """Full path of a header; ``[[methods.reduced]]`` belongs to the last ``[[methods]]``."""
    path: Path = ()
    parts = _split(name)
    for position, part in enumerate(parts):
        path = (*path, part)
        is_last = position == len(parts) - 1
        if is_last and is_array:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _split(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


def _inside(lines: list[str], start: int, rest: Path) -> int:
    """Look for the keys of an inline table, which may go on over several lines."""
    for part in rest:
        if not isinstance(part, str):
            break
        wanted = re.compile(_INLINE_KEY.format(key=re.escape(part)))
        found = [n for n in range(start, min(start + 20, len(lines))) if wanted.search(lines[n])]
        if not found:
            break
        start = found[0]
    return start
