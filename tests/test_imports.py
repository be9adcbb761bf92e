"""Which packages each part of keepers may import, also inside functions and by name."""

import ast
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
MODULES = sorted((SOURCE / "keepers").rglob("*.py"))
NUMERICAL = [path for path in MODULES if path.relative_to(SOURCE).parts[1] == "linalg"]
ONLY_FILE_WITH_DASK = SOURCE / "keepers" / "blocks" / "dask.py"
ALLOWED_IN_NUMERICAL = {"keepers", "numpy", "scipy", "threadpoolctl"} | sys.stdlib_module_names


def packages_imported(code):
    """Packages that a module imports, by a statement or by a call with a constant name."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["keepers" if node.level else node.module]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func
            called = called.id if isinstance(called, ast.Name) else called
            imports = called in ("import_module", "__import__", "find_spec", "optional")
            names = [node.args[0].value] if imports else []
        else:
            continue
        found |= {name.split(".")[0] for name in names if isinstance(name, str)}
    return found


@pytest.mark.parametrize("path", NUMERICAL, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_linalg_imports_numpy_and_scipy_only(path):
    assert packages_imported(path.read_text(encoding="utf-8")) <= ALLOWED_IN_NUMERICAL


def test_dask_is_imported_in_one_file():
    importing = [
        path
        for path in MODULES
        if packages_imported(path.read_text(encoding="utf-8")) & {"dask", "distributed"}
    ]
    assert importing == [ONLY_FILE_WITH_DASK]
