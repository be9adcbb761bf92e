"""Matplotlib figures as SVG inside a report: small, inert, in its colours, the same on every run.

Matplotlib draws; here its output is made small and follows the light or dark theme of the report
(docs/decisions/0012-svg.md).
"""

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from keepers._optional import optional

# Colours that no figure uses for itself: each stands for a colour of the report, light or dark.
INK, MUTED, LINE, ACCENT = "#010203", "#010204", "#010205", "#010206"
_REPORT_COLOURS = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    LINE: "var(--line)",
    ACCENT: "var(--accent)",
}
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.image_inline": True,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "text.color": INK,
    "text.parse_math": False,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 9.5,
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "lines.solid_capstyle": "round",
    "path.simplify": False,
}


@contextmanager
def clean_style(settings: Mapping[Any, Any] | None = None) -> Iterator[None]:
    """Matplotlib's defaults and these settings (those of the report), for the figures drawn
    meanwhile; the user's own settings come back afterwards.
    """
    matplotlib = optional("matplotlib", "Reports")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS if settings is None else settings)
        yield


def new_figure(name: str, width: float, height: float) -> Any:
    """A figure of this size in points; until the next one, ids in an SVG follow from ``name``."""
    matplotlib = optional("matplotlib.figure", "Reports")
    optional("matplotlib", "Reports").rcParams["svg.hashsalt"] = f"keepers-{name}"
    return matplotlib.Figure(figsize=(width / 72, height / 72), dpi=72, layout="constrained")


def inline_svg(figure: Any, label: str) -> str:
    """The figure as an ``<svg>`` element; to be called while the style is in force."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.S)
    view = re.search(r'viewBox="([^"]*)"', text)
    opening = f'<svg viewBox="{view[1] if view else ""}" role="img" aria-label="{label}">'
    text = re.sub(r"^<svg[^>]*>", opening, text)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    for stand_in, colour in _REPORT_COLOURS.items():
        text = text.replace(stand_in, colour)
    text = re.sub(r' d="([^"]*)"', _shorten_path, text)
    return _drop_unused_ids(re.sub(r"\s*\n\s*", "\n", text))


def _shorten_path(match: re.Match[str]) -> str:
    """Coordinates with two decimals; a line of no length (a dot) written as short as it can be."""
    path = re.sub(r"-?\d+\.\d+", _two_decimals, " ".join(match.group(1).split()))
    path = re.sub(r"([MLQCz]) ", r"\1", path)
    return f' d="{re.sub(r"M([-.0-9]+ [-.0-9]+) L(?:[-.0-9]+ [-.0-9]+)(?= M|$)", _dot, path)}"'


def _two_decimals(match: re.Match[str]) -> str:
    return f"{float(match.group()):.2f}".rstrip("0").rstrip(".")


def _dot(match: re.Match[str]) -> str:
    start, end = match.group().split(" L")
    return f"{start}h0" if start[1:] == end else match.group()


def _drop_unused_ids(text: str) -> str:
    """Drop ids that nothing refers to, and make those of the classes of points attributes."""
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    text = re.sub(r' id="class-(\d+)"', r' data-class="\1"', text)
    return re.sub(
        r' id="([^"]+)"', lambda match: match.group() if match.group(1) in used else "", text
    )
