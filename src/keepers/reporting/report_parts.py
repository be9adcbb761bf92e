"""What reports share: safe text, figures as small and inert SVG, a file or a notebook to be in.

Matplotlib draws; here its output is made small and follows the light or dark theme of the report
(docs/decisions/0012-figures-and-progress.md).
"""

import base64
import hashlib
import io
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from keepers._packages import optional
from keepers.data.replacing import whole_file

LONGEST_SHOWN = 60
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
# Overrides and isolates can turn the text around them; marks (200E, 200F) only serve their own.
_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")
_NO_BREAK = "\u00a0"
# What could end a script block, open a comment, or break a line of JavaScript.
_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})
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


def display_name(text: str, longest: int = LONGEST_SHOWN) -> str:
    """A name as shown: control and direction-changing characters replaced, long ones shortened."""
    if not text.strip():
        return "(unnamed)"
    shown = text[: longest + 1]
    shown = _DIRECTION.sub("\ufffd", _CONTROL.sub("\ufffd", shown))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def count(number: int) -> str:
    """2308 -> 2,308."""
    return f"{number:,}"


def percent(share: float) -> str:
    """0.3121 -> 31.2 %."""
    return f"{100 * share:.1f}{_NO_BREAK}%"


def significant(value: float, digits: int = 4) -> str:
    """A number with a few significant digits."""
    return f"{value:.{digits}g}"


def duration(seconds: float) -> str:
    """A time in words, with two significant digits."""
    if seconds < 0.01:
        return f"{1000 * seconds:.1f}{_NO_BREAK}ms"
    if seconds < 60:
        return f"{seconds:.2g}{_NO_BREAK}s" if seconds < 10 else f"{seconds:.0f}{_NO_BREAK}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}{_NO_BREAK}min {rest}{_NO_BREAK}s"


def script_safe_json(data: Any) -> str:
    """JSON that means the same to a JavaScript parser and is inert to an HTML parser."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)


def script_hash(script: str) -> str:
    """What a Content-Security-Policy allows a script by."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


class HtmlReport(ABC):
    """A report: save it, or let a notebook show it."""

    @property
    @abstractmethod
    def html(self) -> str:
        """The whole report, one HTML file that needs no other."""

    def save(self, path: str | os.PathLike[str], force: bool = False) -> Path:
        """Write the report, all of it or nothing.

        Parameters
        ----------
        path : str or path
            Where to; its folder must exist.
        force : bool, default=False
            Replace a file that is already there.

        Returns
        -------
        Path
            Where it was written.
        """
        target = Path(path)
        with whole_file(target, force=force) as temporary:
            # A name may hold bytes that are no UTF-8; the report shows them as escapes.
            temporary.write_text(self.html, encoding="utf-8", errors="backslashreplace")
        return target

    def _repr_html_(self) -> str:
        """The report in a frame of its own, shut off from the notebook around it."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" title="Selection report"'
            ' style="width: 100%; height: 720px; border: 1px solid #8884; border-radius: 6px">'
            "</iframe>"
        )


def fill_template(name: str, **content: Any) -> str:
    """A page from a template of the package; what is not marked as safe is escaped."""
    jinja2 = optional("jinja2", "Reports")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(template),
    )
    environment.filters.update(
        count=count, display_name=display_name, few=significant, percent=percent
    )
    return str(environment.get_template(name).render(**content))


def template(name: str) -> str:
    """The text of a file in the folder of templates."""
    folder = files("keepers.reporting") / "templates"
    return (folder / name).read_text(encoding="utf-8").replace("\r\n", "\n")


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


def inline_svg(figure: Any, label: str, style: str = "") -> str:
    """The figure as an ``<svg>`` element; to be called while the style is in force."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    return tidy_svg(stream.getvalue(), label, _REPORT_COLOURS, style=style)


def tidy_svg(
    svg: str, label: str, colours: Mapping[str, str], *, prefix: str = "", style: str = ""
) -> str:
    """The bare element of a Matplotlib SVG: small, with the colours and fonts of the report.

    ``prefix`` keeps ids of several figures in one report apart; ``style`` is for the element.
    """
    text = svg[svg.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.S)
    view = re.search(r'viewBox="([^"]*)"', text)
    opening = f'<svg viewBox="{view[1] if view else ""}" role="img" aria-label="{escape(label)}"'
    opening += f' style="{style}">' if style else ">"
    text = re.sub(r"^<svg[^>]*>", lambda _: opening, text)
    # The first patch is the background of the figure; the report has its own.
    text = re.sub(r'<g id="patch_1">.*?</g>', "", text, count=1, flags=re.S)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    # Only inside tags: the text between them is shown as it is.
    text = re.sub(r"<[^>]+>", lambda tag: _tidy_tag(tag.group(), colours, prefix, used), text)
    return re.sub(r"\s*\n\s*", "\n", text)


def _tidy_tag(tag: str, colours: Mapping[str, str], prefix: str, used: set[str]) -> str:
    tag = re.sub(r"font: ((?:[a-z0-9]+ )?)([\d.]+)px [^;\"]*", _font, tag)  # Matplotlib < 3.11
    tag = re.sub(r"font-family: [^;\"]*; ?", "", tag).replace(
        "font-weight: 700", "font-weight: 650"
    )
    tag = re.sub(r' d="([^"]*)"', _shorten_path, tag)
    tag = re.sub(r"-?\d+\.\d{3,}", _two_decimals, tag)
    tag = re.sub(r' id="class-(\d+)"', r' data-class="\1"', tag)  # groups of points
    tag = re.sub(r' id="([^"]+)"', lambda m: f' id="{prefix}{m[1]}"' if m[1] in used else "", tag)
    tag = re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}", tag)
    return re.sub("#[0-9a-f]{6}", lambda colour: colours.get(colour[0], colour[0]), tag)


def _font(match: re.Match[str]) -> str:
    weight = "font-weight: 650; " if match[1].strip() in ("bold", "700") else ""
    return f"{weight}font-size: {match[2]}px"


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
