"""Check a built site: every link inside it leads somewhere, and no page asks another host.

The links of llms.txt, the site's contents for language models, are checked too, and every page of
the gallery and of the stories must offer its notebook.

``python tools/check_site.py docs/_build/html`` prints what is wrong, one line each, and ends with 1
if anything is. Links to other sites are counted, not followed.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LINKS = {"href", "src", "poster", "data", "srcset"}
# A reader follows these; everything else with an address is fetched as the page opens.
FOLLOWED = {"a", "area"}
IN_MARKDOWN = re.compile(r"\]\(([^()\s]+)\)")


@dataclass
class Page(HTMLParser):
    """The links and anchors of one page."""

    links: list[tuple[int, str, str]] = field(default_factory=list)
    anchors: set[str] = field(default_factory=lambda: {"", "top"})

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where a tag points, and what it is called."""
        named = dict(attrs)
        if tag == "base" or (tag == "link" and named.get("rel") in ("canonical", "alternate")):
            return
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value or "")
            elif name == "srcset" and value:
                for candidate in value.split(","):
                    self.links.append((self.getpos()[0], tag, candidate.split()[0]))
            elif name in LINKS and value is not None:
                self.links.append((self.getpos()[0], tag, value))


@cache
def read(path: Path) -> Page:
    """Parse a page, once."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def fault_of(path: Path, site: Path, tag: str, link: str) -> str | None:
    """What is wrong with a link, if anything."""
    address = urlsplit(link)
    if address.scheme in ("data", "mailto", "javascript"):
        return None
    if address.scheme or address.netloc:
        return None if tag in FOLLOWED else "is fetched from another host"
    target = (path.parent / unquote(address.path)).resolve() if address.path else path
    if not target.is_relative_to(site):
        return "leaves the site"
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return "leads to no file"
    anchored = target.suffix == ".html" and tag in FOLLOWED
    if anchored and unquote(address.fragment) not in read(target).anchors:
        return "leads to a page without that anchor"
    return None


def pages_of(site: Path) -> list[Path]:
    """All pages; the theme keeps a template among its scripts, which is none."""
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def faults(site: Path) -> Iterator[str]:
    """Every broken link of a site: page, line, link, what is wrong."""
    for path in pages_of(site):
        for line, tag, link in read(path).links:
            fault = fault_of(path, site, tag, link)
            if fault:
                yield f"{path.relative_to(site)}:{line}: <{tag}> {link} {fault}"


def faults_of_contents(site: Path) -> Iterator[str]:
    """What is wrong with llms.txt: it is absent, has no links, or some are broken."""
    path = site / "llms.txt"
    if not path.is_file():
        yield "llms.txt is not there"
        return
    links = IN_MARKDOWN.findall(path.read_text(encoding="utf-8"))
    if not links:
        yield "llms.txt has no links"
    for link in links:
        fault = fault_of(path, site, "a", link)
        if fault:
            yield f"llms.txt: {link} {fault}"


def pages_without_notebook(site: Path) -> Iterator[str]:
    """Examples and stories that cannot be downloaded as a notebook."""
    for pattern in ("auto_gallery/plot_*.html", "auto_stories/story_*.html"):
        for path in sorted(site.glob(pattern)):
            notebook = f"/{path.stem}.ipynb"
            if not any(link.endswith(notebook) for _, _, link in read(path).links):
                yield f"{path.relative_to(site)}: offers no notebook {notebook[1:]}"


def main() -> int:
    """Check the folder that the command line names."""
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_build/html").resolve()
    if not (site / "index.html").is_file():
        print(f"{site} holds no index.html; build the site first (make docs).")
        return 2
    found = [*faults(site), *faults_of_contents(site), *pages_without_notebook(site)]
    for fault in found:
        print(fault)
    pages = [read(path) for path in pages_of(site)]
    kinds = Counter(bool(urlsplit(link).netloc) for page in pages for _, _, link in page.links)
    print(
        f"{len(pages)} pages, {kinds[False]} links inside, {kinds[True]} to other sites (not "
        f"followed): {len(found) or 'none'} broken"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
