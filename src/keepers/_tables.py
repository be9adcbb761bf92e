"""Results as tables: a pandas data frame, or HTML where a notebook shows them."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from keepers._packages import optional

__all__ = ["AsTable", "as_frame", "as_html"]

Rows = Sequence[Mapping[str, Any]]

MOST_SHOWN = 30


class AsTable:
    """A result that is a table: ``rows`` as a data frame, and as HTML in a notebook."""

    def rows(self) -> list[dict[str, Any]]:
        """The table, one dict per row."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """The table as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            One row for each of ``rows()``.
        """
        return as_frame(self.rows())

    def _repr_html_(self) -> str:
        return as_html(self.rows(), self._caption())

    def _caption(self) -> str:
        return ""


def as_frame(rows: Rows) -> Any:
    """Rows as a pandas data frame."""
    return optional("pandas", "Data frames of results").DataFrame(list(rows))


def as_html(rows: Rows, caption: str = "") -> str:
    """Rows as an HTML table, the first of them if there are many.

    Everything in it is escaped: names come from files, and a notebook runs what it shows.

    Examples
    --------
    >>> as_html([{"feature": "<b>", "score": 0.123456}])
    '<table><thead><tr><th>feature</th><th>score</th></tr></thead><tbody><tr><td>&lt;b&gt;</td><td>0.1235</td></tr></tbody></table>'
    """
    headings = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name)}</th>" for name in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(row.get(name)))}</td>" for name in headings) + "</tr>"
        for row in rows[:MOST_SHOWN]
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    more = len(rows) - MOST_SHOWN
    rest = f"<p>and {more} more rows; to_frame() has them all.</p>" if more > 0 else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):  # np.float64 is one
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_cell(entry)}" for name, entry in value.items())
    return str(value)
