"""Kept features on a terminal, in a pipe, and as JSON."""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from keepers.cli.console import PlainConsole, as_unicode, printable, say

__all__ = ["KeptFeature", "print_json", "print_kept", "printable"]

ON_A_TERMINAL = 20
LONGEST_NAME = 48


@dataclass(frozen=True)
class KeptFeature:
    """One kept feature, as it is shown."""

    column: int
    name: str
    score: float
    variance: float
    neighbour: str | None
    """The kept feature it is most correlated with."""
    correlation: float


def print_kept(kept: Sequence[KeptFeature]) -> None:
    """The best on a terminal; all of them, separated by tabs, in a pipe."""
    if not sys.stdout.isatty():
        say("rank", "feature", "score", "variance", "neighbour", "correlation")
        for rank, feature in enumerate(kept, 1):
            say(str(rank), *_cells(feature, width=None))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("rank", "feature", "score", "variance", "nearest kept", "r"):
        table.add_column(heading, justify="left" if heading in _TEXTS else "right")
    for rank, feature in enumerate(kept[:ON_A_TERMINAL], 1):
        table.add_row(str(rank), *(Text(cell) for cell in _cells(feature, LONGEST_NAME)))
    console = PlainConsole()
    console.print(table)
    if len(kept) > ON_A_TERMINAL:
        console.print(f"... and {len(kept) - ON_A_TERMINAL} more", style="dim")


_TEXTS = ("feature", "nearest kept")


def _cells(feature: KeptFeature, width: int | None) -> tuple[str, ...]:
    known = not math.isnan(feature.correlation)
    return (
        printable(feature.name, width),
        f"{feature.score:.4g}",
        f"{feature.variance:.4g}",
        printable(feature.neighbour or "", width),
        f"{feature.correlation:+.2f}" if known else "",
    )


def print_json(content: dict[str, Any]) -> None:
    """Plain ASCII JSON; what is not a number becomes null, what is not Unicode an escape."""
    print(json.dumps(_as_json(content), indent=1, allow_nan=False))


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return as_unicode(value) if isinstance(value, str) else value
