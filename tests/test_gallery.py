"""The gallery's examples are whole, and the quickest of them run without a screen."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import keepers

GALLERY = Path(__file__).resolve().parents[1] / "examples" / "gallery"
EXAMPLES = sorted(GALLERY.glob("plot_*.py"))
# The others run when the documentation is built.
QUICKEST = ("plot_digits_pixels", "plot_gamma_path", "plot_redundancy")
MOST_SECONDS = 120  # each takes about five alone; machines that run tests are busy

by_name = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)


def test_there_are_at_least_nine_examples_and_a_page_before_them():
    assert len(EXAMPLES) >= 9
    title, line = (GALLERY / "README.rst").read_text().splitlines()[:2]
    assert line == "=" * len(title)


@by_name
def test_an_example_compiles_and_starts_with_a_title_and_a_reason(example):
    docstring = ast.get_docstring(ast.parse(example.read_text()), clean=True)
    assert docstring is not None
    title, line, empty, *reason = docstring.splitlines()
    assert title
    assert line == "=" * len(title)
    assert empty == ""
    assert len(" ".join(reason).split()) > 30
    compile(example.read_text(), example.name, "exec")


@by_name
def test_a_cell_leaves_nothing_on_the_page_but_what_it_prints_and_draws(example):
    cells = [ast.parse(cell).body for cell in example.read_text().split("\n# %%\n")[1:]]
    assert len(cells) >= 2
    # The value of a last expression, a legend say, would be written out below the cell.
    last = [cell[-1].value for cell in cells if cell and isinstance(cell[-1], ast.Expr)]
    assert {ast.unparse(call.func) for call in last} <= {"print", "plt.show", "folder.cleanup"}
    assert "plt.show()" in example.read_text()


@by_name
def test_an_example_reads_no_file_of_its_own_and_no_label_before_it_selects(example):
    assert not [path for path in GALLERY.iterdir() if path.suffix in {".npz", ".npy", ".csv"}]
    tree = ast.parse(example.read_text())
    with_labels = [
        call
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in {"fit", "fit_transform", "fit_blocks"}
        and len(call.args) > 1
    ]
    assert with_labels == []


def test_every_selector_and_every_step_is_used_by_an_example():
    """Sphinx-Gallery links a class to the examples that import it by name."""
    imported = {
        alias.name
        for example in EXAMPLES
        for node in ast.walk(ast.parse(example.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "keepers"
        for alias in node.names
    }
    public = {name: getattr(keepers, name) for name in keepers.__all__}
    estimators = {name for name, value in public.items() if hasattr(value, "get_params")}
    assert "SPCAFS" in estimators
    assert estimators <= imported


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICKEST)
def test_an_example_runs_without_a_screen_and_without_a_warning(name, tmp_path):
    pytest.importorskip("matplotlib")
    example = GALLERY / f"{name}.py"
    quiet = {
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        # Agg has nothing to show on; everything else would be a line on the page.
        "PYTHONWARNINGS": "error::UserWarning,error::RuntimeWarning,"
        "ignore:FigureCanvasAgg is non-interactive",
    }
    done = subprocess.run(
        [sys.executable, example],
        cwd=tmp_path,
        env={**os.environ, **quiet},
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
