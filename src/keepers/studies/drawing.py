"""How a study is drawn: a look for each method, and figures as SVG for the report and as files.

Figures are drawn in the colours of the light theme. Inside the report each colour is replaced by a
variable of the style sheet, which has a value for the dark theme as well.
"""

import io
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keepers.reporting.report_parts import clean_style, tidy_svg
from keepers.studies.specification import StudySpec
from keepers.studies.store import make_folder, write_bytes, write_text

INK, MUTED, LINE, PAPER = "#1f242a", "#59626d", "#dcdfe4", "#ffffff"
_REPORT_COLOURS = {INK: "ink", MUTED: "muted", LINE: "line", PAPER: "panel"}

# Light theme, dark theme (hues that remain distinct in any kind of colour vision), marker.
_HUES = {
    "AutoSelector": ("#1559b3", "#7db4ff", "*"),
    "DenoisedLaplacian": ("#b0457a", "#f08fbd", "p"),
    "SPCAFS": ("#c8341b", "#ff7d5e", "o"),
    "FSPCA": ("#8c4a2f", "#d9a081", ">"),
    "ColumnSubset": ("#4b5aa3", "#a3b1f0", "d"),
    "CUR": ("#96345f", "#e58fb4", "p"),
    "LaplacianScore": ("#332288", "#a79cf5", "s"),
    "SPEC": ("#882255", "#dd7fae", "p"),
    "MCFS": ("#2e93cc", "#6cc4f2", "^"),
    "UDFS": ("#117733", "#4cc273", "D"),
    "NDFS": ("#00708a", "#56bcd6", "h"),
    "JELSR": ("#4a6fb5", "#93b2ee", "*"),
    "EUFS": ("#44aa99", "#7fdccd", "v"),
    "DGUFS": ("#d99000", "#f2c14e", "P"),
    "SOGFS": ("#aa4499", "#e58bd6", "X"),
    "RNE": ("#7f7a1c", "#c9c45e", "<"),
    "U2FS": ("#a8572a", "#e8a378", "*"),
    "InfFS": ("#5d7a1f", "#a9c95e", "D"),
    "RSR": ("#1f5f6b", "#6fb3c0", "8"),
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
_DARK_RAMP = (
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
    """Another variant of a method: hollow markers on a dashed line."""
    on_top: bool = False
    alpha: float = 1.0


FAINT = Look(_OTHER[0], "", "solid", 0.8, alpha=0.4)
"""Of a method that stands for many, where naming all would hide what a figure shows."""


def looks_of(spec: StudySpec) -> dict[str, Look]:
    """A look for each method of a study; the same method looks the same in every study."""
    seen: set[str] = set()
    looks = {}
    for method in spec.methods:
        colour, _, marker = _HUES.get(method.name, _OTHER)
        again = method.name in seen
        seen.add(method.name)
        leads = method.name == spec.highlight and not again
        line = _LINES.get(method.name, (0, (4.0, 2.0)) if again else "solid")
        width = 2.6 if leads else 1.3
        looks[method.title] = Look(colour, marker, line, width, hollow=again, on_top=leads)
    return looks


def style_variables() -> tuple[dict[str, str], dict[str, str]]:
    """Variables of the figures' colours, in the light and in the dark theme."""
    pairs = [(light, dark) for light, dark, _ in (*_HUES.values(), _OTHER)]
    pairs += list(zip(RAMP, _DARK_RAMP, strict=True))
    light = {f"--c-{light[1:]}": light for light, _ in pairs}
    dark = {f"--c-{light[1:]}": dark for light, dark in pairs}
    return light, dark


_VARIABLES = {colour: f"var(--{name})" for colour, name in _REPORT_COLOURS.items()}
_VARIABLES |= {colour: f"var({name})" for name, colour in style_variables()[0].items()}

PIXELS_PER_POINT = 2
_FILES = {"png": "Software", "pdf": "CreationDate"}
"""Kinds of files besides SVG, and what of each would differ from run to run."""
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 11,
    "text.color": INK,
    "text.parse_math": False,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 11,
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.7,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "legend.frameon": False,
    "legend.fontsize": 11,
    "lines.solid_capstyle": "round",
}


def our_style() -> AbstractContextManager[None]:
    """The style in which the figures of studies are drawn and saved."""
    return clean_style(STYLE)


@dataclass(frozen=True)
class Picture:
    """One figure: inline for a page, and what its files are made of."""

    name: str
    label: str
    inline: str
    svg: str
    figure: Any


def render(figure: Any, name: str, label: str) -> Picture:
    """Render a figure as SVG; the same text on every run."""
    svg = io.StringIO()
    with _fonts_lack_letters():
        figure.savefig(svg, format="svg", metadata={"Date": None}, facecolor=PAPER)
    figure.set_layout_engine(None)  # the layout is final; "none" would draw twice
    width = 72 * figure.get_figwidth()
    limits = f"max-width: {1.1 * width:.0f}px; min-width: {0.65 * width:.0f}px"
    inline = tidy_svg(svg.getvalue(), label, _VARIABLES, prefix=f"{name}-", style=limits)
    return Picture(name, label, inline, svg.getvalue(), figure)


def save(picture: Picture, folder: Path) -> None:
    """Write a picture as SVG, PNG and PDF; the same bytes on every run inside `our_style`."""
    make_folder(folder)
    write_text(folder / f"{picture.name}.svg", picture.svg)
    with _fonts_lack_letters():
        for suffix, facts in _FILES.items():
            content = io.BytesIO()
            picture.figure.savefig(
                content,
                format=suffix,
                dpi=72 * PIXELS_PER_POINT,
                metadata={facts: None},
                facecolor=PAPER,
            )
            write_bytes(folder / f"{picture.name}.{suffix}", content.getvalue())


@contextmanager
def _fonts_lack_letters() -> Iterator[None]:
    """Matplotlib's font lacks the letters of many languages; the browser's fonts have them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield
