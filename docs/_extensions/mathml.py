"""Formulas as MathML, which browsers draw by themselves: no script, nothing fetched."""

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def _mathml(node: nodes.Element, as_block: bool) -> str:
    tex = node.astext().strip()
    try:
        return str(tex2mathml(tex, as_block=as_block))
    except MathError as error:
        logger.warning("this formula cannot be drawn: %s", error, location=node)
        return f"<code>{nodes.unescape(tex)}</code>"


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(writer.starttag(node, "div", CLASS="math-block"))
    if node.get("number"):
        writer.body.append(f'<span class="eqno">({node["number"]})</span>')
    writer.body.append(_mathml(node, as_block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer the renderer that conf.py chooses."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
