"""The one door for optional packages."""

import sys
import tomllib
from pathlib import Path

import pytest

from keepers._optional import EXTRAS, optional
from keepers.exceptions import MissingDependencyError

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]


def test_a_package_that_is_there_is_imported():
    assert optional("json.decoder", "Tests") is sys.modules["json.decoder"]


def test_a_package_that_is_absent_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    expected = r'Parquet files need pyarrow, .* pip install "keepers\[io\]"'
    with pytest.raises(MissingDependencyError, match=expected):
        optional("pyarrow", "Parquet files")


def test_an_import_that_fails_inside_the_package_is_reported_too(monkeypatch):
    def fail(name, *args, **kwargs):
        raise ImportError("a library is missing")

    monkeypatch.setattr("keepers._optional.import_module", fail)
    with pytest.raises(MissingDependencyError, match="Plots need matplotlib"):
        optional("matplotlib.figure", "Plots")


@pytest.mark.parametrize(("package", "extra"), EXTRAS.items())
def test_every_extra_installs_its_package(package, extra):
    required = PROJECT["optional-dependencies"][extra]
    assert any(line.partition(">")[0].partition("[")[0] == package for line in required)
