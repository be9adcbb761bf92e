"""Kept features on a terminal, in a pipe, and as JSON."""

import json
import math
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

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
        print("rank\tfeature\tscore\tvariance\tneighbour\tcorrelation")
        for rank, feature in enumerate(kept, 1):
            print(rank, *_cells(feature, width=None), sep="\t")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("rank", "feature", "score", "variance", "nearest kept", "r"):
        table.add_column(heading, justify="left" if heading in _TEXTS else "right")
    for rank, feature in enumerate(kept[:ON_A_TERMINAL], 1):
        table.add_row(str(rank), *(Text(cell) for cell in _cells(feature, LONGEST_NAME)))
    console = Console()
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


def printable(name: str, width: int | None = None) -> str:
    """A name that cannot steer a terminal or break a line; shortened to ``width``."""
    safe = "".join(_visible(character) for character in name)
    return safe if width is None or len(safe) <= width else safe[: width - 1] + "…"


def _visible(character: str) -> str:
    # Cc: control, Cf: format (such as right-to-left marks), Cs: lone surrogates, Zl/Zp: new lines.
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character.encode("unicode_escape", "surrogatepass").decode("ascii")
    return character


def print_json(content: dict[str, Any]) -> None:
    """Plain ASCII JSON; what is not a number becomes null."""
    print(json.dumps(_without_nan(content), indent=1, allow_nan=False))


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
