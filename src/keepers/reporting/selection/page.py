"""From the summary and its figures to one HTML file that asks nobody for anything."""

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

import numpy as np

from keepers._protocols import FloatArray
from keepers.reporting.selection import wording
from keepers.reporting.selection.figures import COLOURS, Figure, Figures
from keepers.reporting.selection.plane import Planes
from keepers.reporting.selection.summary import SelectionSummary
from keepers.tuning.gamma_path import COLOURS as PATH_COLOURS

__all__ = ["page_data", "render", "script_safe_json"]

_DIGITS = 5
# What could end a script block, open a comment, or break a line of JavaScript.
_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def render(summary: SelectionSummary, figures: Figures) -> str:
    """The page as text; the same for the same input."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        count=wording.count,
        displayed=wording.displayed,
        duration=wording.duration,
        few=wording.significant,
        percent=wording.percent,
    )
    script = _template("page.js")
    return environment.from_string(_template("page.html.jinja")).render(
        summary=summary,
        figures=figures,
        colours=COLOURS,
        path_colours=PATH_COLOURS,
        svg=lambda figure: Markup(figure.svg),
        svg_text=Markup,
        style=Markup(_template("style.css")),
        script=Markup(script),
        script_hash=_hash(script),
        data=Markup(script_safe_json(page_data(summary, figures))),
    )


def page_data(summary: SelectionSummary, figures: Figures) -> dict[str, Any]:
    """What the script of the page works on: features best first, so that rank is position + 1."""
    ranked = summary.ranked
    prefix = _shared_beginning(ranked.names)
    data: dict[str, Any] = {
        "k": summary.k,
        "prefix": prefix,
        "names": [name[len(prefix) :] for name in ranked.names],
        "scores": _shortened(ranked.scores),
        "variances": _shortened(ranked.variances),
        "total": float(ranked.variances.sum()),
        "neighbours": ranked.neighbour.tolist(),
        "r": [None if np.isnan(r) else round(float(r), 3) for r in ranked.neighbour_r],
        "curve": _place(figures.scores),
    }
    if summary.stability is not None:
        data["intervals"] = {
            "halves": summary.stability.n_halves,
            "ends": summary.stability.by_count.round(3).tolist(),
        }
    if summary.image is not None:
        image = summary.image
        data["image"] = {
            "height": image.height,
            "width": image.width,
            "grey": image.grey.tolist(),
            "place": image.place.tolist(),
            "columns": ranked.columns.tolist(),
        }
    if summary.redundancy is not None and figures.redundancy is not None:
        hundredths = np.rint(100 * summary.redundancy.correlation).astype(int)
        data["map"] = {
            **_place(figures.redundancy),
            "shown": summary.redundancy.shown.tolist(),
            "hundredths": hundredths.tolist(),
        }
    if summary.planes is not None:
        data["samples"] = _samples(summary, summary.planes, figures)
    return data


def _samples(summary: SelectionSummary, planes: Planes, figures: Figures) -> dict[str, Any]:
    """What to say of the dots: their numbers, and their names and labels if there are any."""
    data: dict[str, Any] = {
        "index": planes.samples.tolist(),
        "before": _dots(figures.before),
        "after": _dots(figures.after),
    }
    if summary.sample_names is not None:
        data["names"] = [summary.sample_names[i] for i in planes.samples]
    if summary.labels is not None:
        data["words"] = sorted(set(summary.labels))
        place = {word: position for position, word in enumerate(data["words"])}
        data["labels"] = [place[summary.labels[i]] for i in planes.samples]
    return data


def _dots(figure: Figure | None) -> list[float]:
    """x, y, x, y, ... in units of the figure."""
    if figure is None or figure.points is None:
        return []
    return [float(value) for value in figure.points.round(1).ravel()]


def _place(figure: Figure) -> dict[str, Any]:
    return {"frame": [round(side, 2) for side in figure.frame], "span": list(figure.span)}


def _shared_beginning(names: tuple[str, ...]) -> str:
    """What all names begin with: the first and the last in the alphabet agree on no more."""
    first, last = min(names), max(names)
    length = 0
    while length < len(first) and first[length] == last[length]:
        length += 1
    return first[:length]


def _shortened(values: FloatArray) -> dict[str, Any]:
    """Five significant digits, as multiples of a power of ten that takes most leading zeros."""
    largest = float(np.max(np.abs(values), initial=0.0))
    exponent = int(np.floor(np.log10(largest))) - _DIGITS + 1 if largest > 0 else 0
    scaled = values * 10.0**-exponent
    short = [float(f"{value:.{_DIGITS}g}") for value in scaled]
    return {
        "exponent": exponent,
        "values": [int(value) if value.is_integer() else value for value in short],
    }


def script_safe_json(data: Any) -> str:
    """JSON that means the same to a JavaScript parser and is inert to an HTML parser."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)


def _template(name: str) -> str:
    folder = files("keepers.reporting.selection") / "templates"
    return (folder / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
