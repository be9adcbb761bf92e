"""What the package promises about itself."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import keepers

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_the_same_everywhere():
    assert keepers.__version__ == PROJECT["version"]
    assert f"version: {PROJECT['version']}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_core_needs_numpy_scipy_and_scikit_learn_only():
    names = {re.split(r"[<>=!\[ ]", requirement)[0] for requirement in PROJECT["dependencies"]}
    assert names == {"numpy", "scipy", "scikit-learn"}


def test_all_stands_for_every_user_facing_extra():
    extras = PROJECT["optional-dependencies"]
    named = set(extras["all"][0].removeprefix("keepers[").removesuffix("]").split(","))
    assert named == set(extras) - {"all", "docs", "dev"}


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


def test_a_wheel_carries_the_studies_and_the_pages():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    carried = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    studies = {path.relative_to(ROOT).as_posix() for path in (ROOT / "experiments").glob("*.toml")}
    assert set(carried) == studies
    assert all(target.startswith("keepers/evaluation/study_files/") for target in carried.values())


def test_every_public_name_exists_and_is_documented():
    for name in keepers.__all__:
        assert getattr(keepers, name).__doc__


def test_every_selector_has_a_page():
    pages = " ".join(path.read_text() for path in (ROOT / "docs" / "methods").glob("*.md"))
    for name in keepers.all_selectors():
        assert f"`{name}" in pages, name
