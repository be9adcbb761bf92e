"""Links from a page to files of the repository that are not pages.

The pages are read in two places: in a clone, where ``../LICENSE`` is simply there, and on the site,
which is separate from the repository. So linked files are copied to ``repository/``: programs and
settings as pages with colours, folders as lists of files, everything else as it is. Decisions are
not copied: the site names the file instead.
"""

import shutil
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

SHOWN = {".py": "python", ".md": "markdown", ".toml": "toml", ".cff": "yaml", ".sh": "bash"}
FOLDER_PAGE = "files"
Page = tuple[str, dict[str, Any], str]


def _linked(env: BuildEnvironment) -> dict[str, set[str]]:
    """Linked paths of the repository, by page."""
    if not hasattr(env, "repository_links"):
        env.repository_links = {}  # type: ignore[attr-defined]
    return env.repository_links  # type: ignore[attr-defined]


def _address(root: Path, path: Path) -> str:
    """Return the address of a file or folder of the repository on the site."""
    inside = f"repository/{path.relative_to(root).as_posix()}"
    if path.is_dir():
        return f"{inside}/{FOLDER_PAGE}.html"
    return f"{inside}.html" if path.suffix in SHOWN else inside


class RepositoryLinks(SphinxTransform):
    """Point links that leave the folder of pages at what is copied for them."""

    default_priority = 5  # before anything takes such a link for a download or a missing page

    def apply(self, **_: Any) -> None:
        """Go through the links that MyST could not find among the pages."""
        for node in list(self.document.findall(addnodes.download_reference)):
            self._replace(node)
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node.get("refdomain") in (None, "", "doc", "std"):
                self._replace(node)

    def _replace(self, node: nodes.Element) -> None:
        docs = Path(self.env.srcdir).resolve()
        here = docs / Path(self.env.docname).parent
        target, _, anchor = node.get("reftarget", "").partition("#")
        # MyST may have cut the suffix off, and made the path absolute or relative to the pages.
        places = [(folder / target.lstrip("/")).resolve() for folder in (here, docs)]
        places.append(Path(target))
        places = [
            found for place in places for found in (place, place.with_name(f"{place.name}.md"))
        ]
        path = next((place for place in places if place.exists()), places[0])
        is_page = path.is_relative_to(docs) and not path.is_relative_to(docs / "decisions")
        if not target or is_page or not path.is_relative_to(docs.parent):
            return
        pages = self.config.repository_pages
        inside = path.relative_to(docs.parent).as_posix()
        page = pages.get(inside)
        if page is not None:
            node["reftarget"] = f"/{page}"
            node["refdomain"], node["reftype"], node["refexplicit"] = "std", "doc", True
        elif path.is_relative_to(docs / "decisions"):
            place = [nodes.Text(" ("), nodes.literal("", inside), nodes.Text(")")]
            node.replace_self([*node.children, *place])
        elif path.exists():
            _linked(self.env).setdefault(self.env.docname, set()).add(inside)
            up = "../" * self.env.docname.count("/")
            address = up + _address(docs.parent, path) + (f"#{anchor}" if anchor else "")
            node.replace_self(nodes.reference("", "", *node.children, refuri=address))


def _listing(root: Path, folder: Path) -> str:
    """List a folder as a table with links."""
    base = _address(root, folder).removesuffix(f"{FOLDER_PAGE}.html")
    rows = []
    for path in sorted(folder.iterdir()):
        name = path.name + ("/" if path.is_dir() else "")
        size = "" if path.is_dir() else f"{max(1, round(path.stat().st_size / 1024)):,} kB"
        link = f'<a href="{escape(_address(root, path).removeprefix(base))}">{escape(name)}</a>'
        rows.append(f"<tr><td>{link}</td><td>{size}</td></tr>")
    return f'<table class="table"><tbody>{"".join(rows)}</tbody></table>'


def _everything(root: Path, linked: set[str]) -> list[Path]:
    """Linked files, and all files in linked folders."""
    found = {root / inside for inside in linked}
    found |= {below for path in found if path.is_dir() for below in path.rglob("*")}
    return sorted(found)


def _collect_pages(app: Sphinx) -> Iterator[Page]:
    """Pages for what is shown in the frame of the site; copies of everything else."""
    root = Path(app.srcdir).resolve().parent
    highlight = app.builder.highlighter.highlight_block  # type: ignore[attr-defined]
    for path in _everything(root, set().union(*_linked(app.env).values())):
        if path.is_dir():
            yield _page(root, path, _listing(root, path))
        elif path.suffix in SHOWN:
            yield _page(root, path, highlight(path.read_text("utf-8"), SHOWN[path.suffix]))
        else:
            target = Path(app.outdir) / _address(root, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def _page(root: Path, path: Path, body: str) -> Page:
    title = path.relative_to(root).as_posix() + ("/" if path.is_dir() else "")
    heading = f"<h1><code>{escape(title)}</code></h1>"
    name = _address(root, path).removesuffix(".html")
    return name, {"title": title, "body": f"{heading}\n{body}"}, "page.html"


def _forget(_: Sphinx, env: BuildEnvironment, docname: str) -> None:
    _linked(env).pop(docname, None)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform and the pages."""
    app.add_config_value("repository_pages", {}, "env")
    app.add_transform(RepositoryLinks)
    app.connect("env-purge-doc", _forget)
    app.connect("html-collect-pages", _collect_pages)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
