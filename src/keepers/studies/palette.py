"""Colours and marks: one look for each method, on light and on dark ground.

Figures are drawn in the colours for light ground. Inside the page every one of them is replaced by
a variable of the style sheet, which has a value for dark ground as well.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from keepers.studies.specification import MethodChoice

__all__ = ["INK", "LINE", "MUTED", "PAPER", "RAMP", "Look", "looks_of", "style_variables"]

INK, MUTED, LINE, PAPER = "#1f242a", "#59626d", "#dcdfe4", "#ffffff"
_PAGE = {INK: "ink", MUTED: "muted", LINE: "line", PAPER: "panel"}

# Light and dark ground; hues that people with any kind of colour vision can part, with the marks.
_HUES = {
    "SPCAFS": ("#c8341b", "#ff7d5e", "o"),
    "LaplacianScore": ("#332288", "#a79cf5", "s"),
    "MCFS": ("#2e93cc", "#6cc4f2", "^"),
    "UDFS": ("#117733", "#4cc273", "D"),
    "EUFS": ("#44aa99", "#7fdccd", "v"),
    "DGUFS": ("#d99000", "#f2c14e", "P"),
    "SOGFS": ("#aa4499", "#e58bd6", "X"),
    "RNE": ("#7f7a1c", "#c9c45e", "<"),
    "RandomScore": ("#6d7580", "#98a2ad", ""),
    "VarianceScore": ("#6d7581", "#98a2ae", ""),
    "AllFeatures": ("#3c434b", "#c8ced5", ""),
}
_OTHER = ("#5b6b8c", "#9fb0d3", "h")
_LINES: dict[str, str | tuple[int, tuple[float, ...]]] = {
    "RandomScore": (0, (1.2, 2.2)),
    "VarianceScore": (0, (6, 2.5)),
    "AllFeatures": "solid",
}

RAMP = (
    "#440154", "#46317e", "#365c8d", "#287f8e", "#1fa188", "#4ac16d", "#86c93c", "#b9b420",
)  # fmt: skip
"""From small to large values of a setting."""
_RAMP_ON_DARK = (
    "#a66bd0", "#7f86dd", "#5ea3d6", "#46b8c2", "#45cba0", "#79d978", "#b6e154", "#f3e64a",
)  # fmt: skip


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    colour: str
    marker: str
    line: str | tuple[int, tuple[float, ...]]
    width: float
    hollow: bool = False
    """A second variant of the same method: hollow marks on a dashed line."""
    on_top: bool = False


def looks_of(methods: Iterable[MethodChoice]) -> dict[str, Look]:
    """A look for each method of a study; the same method looks the same in every study."""
    seen: set[str] = set()
    looks = {}
    for method in methods:
        colour, _, marker = _HUES.get(method.name, _OTHER)
        again = method.name in seen
        seen.add(method.name)
        leads = method.name == "SPCAFS" and not again
        line = _LINES.get(method.name, (0, (4.0, 2.0)) if again else "solid")
        width = 2.6 if leads else 1.3
        looks[method.title] = Look(colour, marker, line, width, hollow=again, on_top=leads)
    return looks


def style_variables() -> tuple[dict[str, str], dict[str, str]]:
    """Variables of the figures' colours, for light and for dark ground."""
    pairs = [(light, dark) for light, dark, _ in (*_HUES.values(), _OTHER)]
    pairs += list(zip(RAMP, _RAMP_ON_DARK, strict=True))
    light = {f"--c-{light[1:]}": light for light, _ in pairs}
    dark = {f"--c-{light[1:]}": dark for light, dark in pairs}
    return light, dark


def as_variables(svg: str) -> str:
    """Replace colours by the variables that stand for them in the page."""
    return re.sub("#[0-9a-f]{6}", lambda colour: _VARIABLES.get(colour[0], colour[0]), svg)


_VARIABLES = {colour: f"var(--{name})" for colour, name in _PAGE.items()}
_VARIABLES |= {colour: f"var({name})" for name, colour in style_variables()[0].items()}
