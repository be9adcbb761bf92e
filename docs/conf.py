"""How the site is built: `make docs`.

The site is one folder that opens offline: no script, font or inventory is fetched, neither while it
is built nor while it is read.
"""

import shutil
import sys
from pathlib import Path

import matplotlib
from docutils import nodes
from sphinx.application import Sphinx

import keepers

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_extensions"), str(DOCS)]
matplotlib.use("Agg")

project = "keepers"
author = "The keepers developers"
copyright = author
version = release = keepers.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "own_members",
    "repository_files",
]
exclude_patterns = [
    *("_build", "_extensions", "_generated", "_templates", "**/*.ipynb"),
    "decisions",  # for contributors: in the repository, not on the site
]
templates_path = ["_templates"]
default_role = "autolink"  # `SPCAFS` in a docstring: a link where there is a page, else plain
highlight_language = "none"  # unless a block names its language
nitpicky = True
smartquotes = False  # "auto" is typed with straight ones
suppress_warnings = ["config.cache"]  # functions for templates cannot be cached: harmless

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

# Pages of the repository that are pages of the site as well, and where they are on it.
repository_pages = {
    "README.md": "index",
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
}

autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"  # the docstrings describe shapes and meanings, which the types do not
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "examples_dirs": [str(DOCS.parent / "examples" / kind) for kind in ("gallery", "stories")],
    "gallery_dirs": ["auto_gallery", "auto_stories"],
    "backreferences_dir": "auto_gallery/backreferences",  # reference pages list their examples
    "doc_module": ("keepers",),
    "filename_pattern": r"plot_|story_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "min_reported_time": 5,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "thumbnail_size": (420, 300),
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,  # its table would fetch scripts
}

copybutton_exclude = ".linenos, .gp, .go"  # neither prompts nor what was printed

html_theme = "pydata_sphinx_theme"
html_title = "keepers"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_extra_path = ["llms.txt"]  # for language models: llmstxt.org
html_show_sourcelink = False
html_math_renderer = "mathml"
html_theme_options = {
    "logo": {"text": "keepers"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "show_prev_next": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
LONGEST_ROW = 90  # of a table that a command prints; longer lines are sentences
html_sidebars = {"index": [], "quick-start": [], "cheat-sheet": []}


def make_figures(app: Sphinx) -> None:
    """Fill _generated/ with what pages include."""
    from figures.build import build_all  # in this folder

    build_all(app.srcdir)


def copy_leaderboard(app: Sphinx, exception: Exception | None) -> None:
    """Copy the pages of the leaderboard, as the study wrote them, to leaderboard/ on the site."""
    from figures.leaderboard import pages_of_leaderboard  # in this folder

    for path, inside in pages_of_leaderboard() if exception is None else ():
        target = Path(app.outdir) / "leaderboard" / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def mark_sentences(_: Sphinx, page: nodes.document) -> None:
    """Mark printed text with long lines: it breaks on a telephone (custom.css)."""
    for block in page.findall(nodes.literal_block):
        longest = max(map(len, block.astext().splitlines()), default=0)
        if block.get("language") == "text" and longest > LONGEST_ROW:
            block["classes"].append("sentences")


def setup(app: Sphinx) -> None:
    """Figures and tables are made before the pages are read."""
    app.connect("builder-inited", make_figures)
    app.connect("doctree-read", mark_sentences)
    app.connect("build-finished", copy_leaderboard)
