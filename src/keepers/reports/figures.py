"""The figures of a report, as small SVG that follows the light or dark theme of the page.

They are written here, without a plotting library: a few lines, dots and pictures need none, and a
report is made in a tenth of the time.
"""

import base64
import struct
import zlib
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

import numpy as np

from keepers._protocols import FloatArray, IndexArray
from keepers.reports.words import count, display_name, percent

# Ten hues that part on white and on near-black.
COLOURS = (
    "#3b82c4", "#e8853a", "#3fa66b", "#d4524e", "#8d6cc3",
    "#b08a3e", "#d873b0", "#2aa5b0", "#8fae2e", "#8a929c",
)  # fmt: skip
WARM = "#d9702b"
"""Above the mean, in the heat map; below it is the first of the colours."""
MOST_CURVE_POINTS = 800
LONGEST_LABEL = 24
LETTER = 11.0
"""Height of labels, in pixels."""
NARROWEST_ROW, WIDEST_ROW = 13.0, 38.0
HEAT_WIDTH = 1040.0
_SHADES = 12
_MOST_OF_LETTER = 0.62
_LEFT, _BOTTOM, _TOP = 46.0, 38.0, 10.0
Frame = tuple[float, float, float, float]


@dataclass(frozen=True)
class Figure:
    """An ``<svg>`` element, and where things stand in it (in units of its viewBox)."""

    svg: str
    frame: Frame
    """Left, top, right, bottom of the axes."""
    span: tuple[float, float] = (0.0, 1.0)
    """Horizontal data values at the left and right of the frame."""
    points: FloatArray | None = None


def svg_element(width: float, height: float, label: str, body: str, natural: bool = False) -> str:
    """An ``<svg>`` element; a ``natural`` one keeps its size, others fill their place."""
    style = f' style="--natural: {width:.0f}px"' if natural else ""
    box = f'viewBox="0 0 {width:.1f} {height:.1f}" role="img" aria-label="{escape(label)}"'
    return f"<svg {box}{style}>{body}</svg>"


def svg_text(x: float, y: float, anchor: str, text: str, more: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="label" {place}{more}>{escape(text)}</text>'


def draw_curve(
    label: str,
    axes: tuple[str, str],
    x: FloatArray | IndexArray,
    y: FloatArray,
    *,
    from_zero: bool = False,
    level: float | None = None,
    mark: tuple[float, float, str] | None = None,
) -> Figure:
    """A line over numbers of features; a dotted ``level``, and a point to ``mark``."""
    width, height = 340.0, 215.0
    left, top, right, bottom = frame = (_LEFT, _TOP, width - 8, height - _BOTTOM)
    x_ends = (min(0.0 if from_zero else 1.0, float(x[0])), max(float(x[-1]), 2.0))
    y_ticks = _ticks(0.0 if from_zero else float(y.min()), float(y.max()), 4)
    y_ends = (min(y_ticks[0], float(y.min())), max(y_ticks[-1], float(y.max())))

    def at(x_value: float, y_value: float) -> tuple[float, float]:
        across = (x_value - x_ends[0]) / (x_ends[1] - x_ends[0])
        up = (y_value - y_ends[0]) / ((y_ends[1] - y_ends[0]) or 1.0)
        return left + across * (right - left), bottom - up * (bottom - top)

    body = ""
    for tick in y_ticks:
        _, height_of = at(x_ends[0], tick)
        body += f'<path class="grid" d="M{left:.1f} {height_of:.1f}H{right:.1f}"/>'
        body += svg_text(left - 6, height_of + 4, "end", f"{tick:g}")
    for tick in _ticks(*x_ends, 5, whole=True):
        body += svg_text(at(tick, 0.0)[0], bottom + 15, "middle", count(round(tick)))
    if level is not None:
        _, height_of = at(x_ends[0], level)
        body += f'<path class="level" d="M{left:.1f} {height_of:.1f}H{right:.1f}"/>'
    places = [at(float(a), float(b)) for a, b in zip(x, y, strict=True)]
    line = "L".join(f"{a:.1f} {b:.1f}" for a, b in places)
    body += f'<path class="curve" d="M{line}"/>'
    if mark is not None:
        a, b = at(*mark[:2])
        body += f'<circle class="mark" cx="{a:.1f}" cy="{b:.1f}" r="4"/>'
        before = a > (left + right) / 2
        anchor, aside = ("end", -8) if before else ("start", 8)
        body += svg_text(a + aside, b + 16, anchor, mark[2])
    middle = (top + bottom) / 2
    body += svg_text((left + right) / 2, height - 6, "middle", axes[0])
    body += svg_text(12, middle, "middle", axes[1], f' transform="rotate(-90 12 {middle:.1f})"')
    return Figure(svg_element(width, height, label, body), frame, x_ends)


def _ticks(low: float, high: float, most: int, whole: bool = False) -> list[float]:
    """At most about ``most`` round numbers from ``low`` to ``high``."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** np.floor(np.log10(rough))
    step = float(power * next(size for size in (1, 2, 5, 10) if size * power >= rough * 0.999))
    step = max(step, 1.0) if whole else step
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [round(i * step, 12) for i in range(first, last + 1)]


def evenly(n: int, most: int) -> IndexArray:
    """At most ``most`` of the integers below n, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp))


def draw_map(correlation: FloatArray, names: list[str]) -> Figure:
    """Correlations as squares: the accent colour, as opaque as |r|, so it reads on any ground."""
    size = len(correlation)
    labels = [display_name(name, LONGEST_LABEL) for name in names]
    side = size * float(np.clip(300 / size, NARROWEST_ROW, WIDEST_ROW))
    left = _label_width(labels)
    frame = (left, 4.0, left + side, 4.0 + side)
    strength = np.nan_to_num(np.abs(correlation))
    picture = _picture(_tint(COLOURS[0], strength), frame)
    body = picture + _row_labels(labels, frame)
    label = "Correlations, similar features side by side"
    return Figure(svg_element(left + side + 4, side + 8, label, body, natural=True), frame)


def draw_heat(
    z: FloatArray,
    farthest: float,
    names: list[str],
    ends: list[str],
    strips: list[tuple[int, int, str]],
) -> str:
    """Features over samples: orange above the mean of a feature, blue below.

    ``ends`` are the values at both ends of the colours; ``strips`` the classes from the left:
    colour, number of samples, name.
    """
    n_rows, n_columns = z.shape
    labels = [display_name(name, LONGEST_LABEL) for name in names]
    row = float(np.clip(260 / n_rows, NARROWEST_ROW, 22.0))
    left, top = _label_width(labels), 26.0 if strips else 4.0
    right = HEAT_WIDTH - (_label_width(ends) if any(ends) else 4.0)
    frame = (left, top, right, top + n_rows * row)
    # A few shades: the picture in the file is a third of the size.
    strength = np.nan_to_num(np.rint(_SHADES * np.abs(z) / farthest) / _SHADES)
    cells = np.where(z[..., None] > 0, _tint(WARM, strength), _tint(COLOURS[0], strength))
    body = _picture(cells, frame) + _row_labels(labels, frame)
    for at, end in enumerate(ends):
        body += svg_text(right + 4, top + (at + 0.5) * row + 4, "start", end)
    begin, step = left, (right - left) / n_columns
    for colour, n_samples, name in strips:
        wide = n_samples * step
        place = f'x="{begin:.1f}" y="{top - 6:.1f}" width="{max(wide - 1, 0.5):.1f}" height="4"'
        body += f'<rect {place} fill="{COLOURS[colour]}"/>'
        label = display_name(name, LONGEST_LABEL)
        if _MOST_OF_LETTER * LETTER * _columns_wide(label) <= wide:
            body += svg_text(begin + wide / 2, top - 11, "middle", label)
        begin += wide
    height = frame[3] + 4
    return svg_element(HEAT_WIDTH, height, "Kept features over samples", body, natural=True)


def draw_plane(
    name: str, points: FloatArray, shares: tuple[float, float], colour_of: IndexArray
) -> Figure:
    """Samples as dots; the classes with the last colour are drawn first, beneath the others."""
    width, height = 330.0, 280.0
    frame = (22.0, 4.0, width - 4, height - 22)
    room = np.array([frame[2] - frame[0], frame[3] - frame[1]])
    low, high = points.min(axis=0), points.max(axis=0)
    scale = 0.94 * float(np.min(room / np.maximum(high - low, 1e-300)))  # the same both ways
    placed = (points - (low + high) / 2) * [scale, -scale]
    placed += [(frame[0] + frame[2]) / 2, (frame[1] + frame[3]) / 2]
    size = 5.0 if len(points) <= 500 else 3.4
    body = ""
    for group in sorted(set(colour_of.tolist()), reverse=True):
        dots = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in placed[colour_of == group])
        look = f'stroke="{COLOURS[group]}" stroke-width="{size}" opacity="0.8"'
        body += f'<path class="dots" data-class="{group}" {look} d="{dots}"/>'
    middle = (frame[1] + frame[3]) / 2
    body += svg_text(width / 2, height - 6, "middle", f"component 1 ({percent(shares[0])})")
    turned = f' transform="rotate(-90 12 {middle:.1f})"'
    body += svg_text(12, middle, "middle", f"component 2 ({percent(shares[1])})", turned)
    label = f"Samples on the first two components, {name} selection"
    return Figure(svg_element(width, height, label, body), frame, points=placed)


def _label_width(labels: list[str]) -> float:
    return 8 + _MOST_OF_LETTER * LETTER * max(map(_columns_wide, labels))


def _row_labels(labels: list[str], frame: Frame) -> str:
    left, top, _, bottom = frame
    step = (bottom - top) / len(labels)
    return "".join(
        svg_text(left - 4, top + (row + 0.5) * step + 4, "end", label)
        for row, label in enumerate(labels)
    )


def _columns_wide(text: str) -> int:
    """Width of a text in letters: those of East Asia take two."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _tint(colour: str, strength: FloatArray) -> FloatArray:
    rgb = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return np.dstack([np.broadcast_to(rgb, (*strength.shape, 3)), strength])


def _picture(rgba: FloatArray, frame: Frame) -> str:
    """Cells as an image in the frame; each stays a sharp rectangle."""
    left, top, right, bottom = frame
    place = f'x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}"'
    source = f"data:image/png;base64,{base64.b64encode(as_png(rgba)).decode('ascii')}"
    return f'<image class="cells" {place} preserveAspectRatio="none" href="{source}"/>'


def as_png(rgba: FloatArray) -> bytes:
    """A picture as a PNG file: rows of red, green, blue and opacity from 0 to 1."""
    height, width, _ = rgba.shape
    pixels = np.rint(255 * rgba).astype(np.uint8).reshape(height, -1)
    rows = np.hstack([np.zeros((height, 1), np.uint8), pixels])  # each row without a filter

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")
