"""What the package promises about itself."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import keepers

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "keepers"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
# What a package is called where it is imported, if not by its own name.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "python_calamine": "python-calamine"}
# Folders of the command, which needs the extra "cli" anyway.
OF_THE_COMMAND = {"app.py", "cli", "studies"}


def required(*lists: list[str]) -> set[str]:
    """Names of the packages in lists of requirements."""
    found = {re.split(r"[<>=!\[. ]", requirement)[0] for names in lists for requirement in names}
    return found - {"keepers"}  # another extra


def imported(path: Path) -> tuple[set[str], set[str]]:
    """Packages from elsewhere that a file imports at once, and those it imports when needed."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_once: set[str] = set()
    later: set[str] = set()
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            ("import_module", "optional")
        ):
            names = [a.value for a in node.args[:1] if isinstance(a, ast.Constant)]
        roots = {name.split(".")[0] for name in names} - {"keepers"} - sys.stdlib_module_names
        (at_once if node in tree.body else later).update(
            DISTRIBUTIONS.get(root, root) for root in roots
        )
    return at_once, later


def test_the_version_is_the_same_everywhere():
    assert keepers.__version__ == PROJECT["version"]
    assert f"version: {PROJECT['version']}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text()


def test_everything_imported_is_declared_and_everything_required_is_imported():
    extras = PROJECT["optional-dependencies"]
    core = required(PROJECT["dependencies"])
    optional = required(*(extras[name] for name in set(extras) - {"all", "docs", "dev"}))
    used = set()
    for path in sorted(SOURCE.rglob("*.py")):
        at_once, later = imported(path)
        of_the_command = path.relative_to(SOURCE).parts[0] in OF_THE_COMMAND
        allowed = core | required(extras["cli"]) if of_the_command else core
        assert at_once <= allowed, f"{path.name}: {at_once - allowed} not declared"
        assert later <= core | optional, f"{path.name}: {later - core - optional} not declared"
        used |= at_once | later
    assert core | optional == used | {"matplotlib"}  # pages show how to draw with it


def test_the_core_works_where_no_optional_package_is_installed():
    optional = ["pandas", "polars", "pyarrow", "matplotlib", "dask", "anndata", "jinja2"]
    optional += ["typer", "rich", "pydantic", "h5py", "playwright"]
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.split('.')[0] in {optional}:\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import numpy as np, keepers\n"
        "X = np.random.default_rng(0).standard_normal((20, 6))\n"
        "print(keepers.SPCAFS(2).fit_transform(X).shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(20, 2)"
