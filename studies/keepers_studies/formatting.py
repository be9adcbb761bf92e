"""Numbers and names as figures and pages show them."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pandas as pd
from markupsafe import Markup

# Control characters, and those that turn the direction of the text around them.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
DASH = "–"


def short(name: Any, longest: int = 26) -> str:
    """A name from the data, made safe to show and not too long."""
    text = _UNSAFE.sub("\ufffd", str(name)) or "(unnamed)"
    return text if len(text) <= longest else text[: longest - 1] + "…"


short_text = partial(short, longest=300)


def value(share: float) -> str:
    """ACC or NMI with three decimals."""
    return f"{share:.3f}"


def points(share: float) -> str:
    """A difference of shares in percentage points, with its sign: 0.0312 is +3.1."""
    text = f"{100 * share:+.1f}".replace("-", "−")
    return text if text not in ("+0.0", "−0.0") else "0.0"


def seconds(time: float) -> str:
    """A time in a fitting unit."""
    if time < 120:
        return f"{1000 * time:.0f} ms" if time < 0.1 else f"{time:.1f} s"
    return f"{time / 60:.0f} min" if time < 7200 else f"{time / 3600:.1f} h"


def table_html(
    frame: pd.DataFrame,
    formats: Mapping[str, Callable[[Any], str]] | None = None,
    marked: Mapping[str, str] | None = None,
    *,
    sortable: bool = False,
) -> Markup:
    """A data frame as an HTML table: every name is escaped, gaps are dashes.

    ``formats`` gives a format by column, ``marked`` a class of the style sheet by the value of the
    first column. Clicks sort a sortable table, by the value in the attribute data-key.
    """
    kinds = ["number" if pd.api.types.is_numeric_dtype(frame[name]) else "" for name in frame]
    heads = [
        Markup('<th scope="col" class="{}">{}</th>').format(kind, short(name, 60))
        for name, kind in zip(frame, kinds, strict=True)
    ]
    rows = []
    for row in frame.itertuples(index=False):
        cells = []
        for name, kind, cell in zip(frame, kinds, row, strict=True):
            gap = pd.isna(cell)
            form: Any = (formats or {}).get(name, value if isinstance(cell, float) else short_text)
            text, key = (DASH, "") if gap else (form(cell), cell if kind else short(cell))
            kind += " below" * (kind != "" and not gap and cell < 0)
            cells.append(Markup('<td class="{}" data-key="{}">{}</td>').format(kind, key, text))
        mark = (marked or {}).get(row[0], "")
        rows.append(Markup('<tr class="{}">{}</tr>').format(mark, Markup("").join(cells)))
    head, body = Markup("").join(heads), Markup("\n").join(rows)
    table = Markup("<thead><tr>{}</tr></thead><tbody>{}</tbody>").format(head, body)
    kind = "sortable" if sortable else ""
    return Markup('<div class="scroll"><table class="{}">{}</table></div>').format(kind, table)
