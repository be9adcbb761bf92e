"""From a Matplotlib figure to a picture for the page and two files, the same on every run."""

import io
import re
import warnings
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from keepers.studies.atomic import make_folder, write_bytes, write_text
from keepers.studies.palette import INK, LINE, MUTED, PAPER, as_variables

__all__ = ["STYLE", "Picture", "finish", "save"]

PIXELS_PER_POINT = 2
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


@dataclass(frozen=True)
class Picture:
    """One figure: inline for the page, and as bytes of its two files."""

    name: str
    label: str
    inline: str
    svg: str
    png: bytes


def finish(figure: Any, name: str, label: str) -> Picture:
    """Render, in the style in which the figure was made."""
    svg, png = io.StringIO(), io.BytesIO()
    with warnings.catch_warnings():
        # Matplotlib's font lacks the letters of many languages; the page's fonts have them.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(svg, format="svg", metadata={"Date": None}, facecolor=PAPER)
        figure.set_layout_engine(None)  # everything has its place now; "none" would draw twice
        figure.savefig(
            png,
            format="png",
            dpi=72 * PIXELS_PER_POINT,
            metadata={"Software": None},
            facecolor=PAPER,
        )
    return Picture(
        name, label, _inline(svg.getvalue(), name, label), svg.getvalue(), png.getvalue()
    )


def save(picture: Picture, folder: Path) -> None:
    """Write both files of a picture."""
    make_folder(folder)
    write_text(folder / f"{picture.name}.svg", picture.svg)
    write_bytes(folder / f"{picture.name}.png", picture.png)


def _inline(svg: str, name: str, label: str) -> str:
    """The bare element: no prologue, page colours and fonts, ids that no other figure has."""
    text = svg[svg.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.S)
    found = re.search(r'viewBox="([^"]*)"', text)
    view = found.group(1) if found else "0 0 1 1"
    width = float(view.split()[2])
    limits = f"max-width: {1.1 * width:.0f}px; min-width: {0.65 * width:.0f}px"
    opening = f'<svg viewBox="{view}" role="img" aria-label="{escape(label)}" style="{limits}">'
    text = re.sub(r"^<svg[^>]*>", lambda _: opening, text)
    # The first patch is the ground of the whole figure; in the page that is the page's.
    text = re.sub(r'<g id="patch_1">.*?</g>', "", text, count=1, flags=re.S)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    # Only inside tags: what stands between them are names, to be shown as they are.
    text = re.sub(r"<[^>]+>", lambda tag: _tidy_tag(tag.group(), name, used), text)
    return re.sub(r"\s*\n\s*", "\n", text)


def _tidy_tag(tag: str, name: str, used: set[str]) -> str:
    tag = re.sub(r"font: ((?:[a-z0-9]+ )?)([\d.]+)px [^;\"]*", _font, tag)
    tag = re.sub(r"-?\d+\.\d{3,}", lambda m: f"{float(m.group()):.2f}", tag)
    tag = re.sub(r' id="([^"]+)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", tag)
    tag = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", tag)
    return as_variables(tag)


def _font(match: re.Match[str]) -> str:
    weight = "font-weight: 650; " if match[1].strip() in ("bold", "700") else ""
    return f"{weight}font-size: {match[2]}px"
