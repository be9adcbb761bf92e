"""Optional packages, and the versions that a recipe and a study keep."""

import platform
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import scipy
import sklearn

from keepers._packages import EXTRAS, optional, package_versions
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

    monkeypatch.setattr("keepers._packages.import_module", fail)
    with pytest.raises(MissingDependencyError, match="Plots need matplotlib"):
        optional("matplotlib.figure", "Plots")


@pytest.mark.parametrize(("package", "extra"), EXTRAS.items())
def test_every_extra_installs_its_package(package, extra):
    required = PROJECT["optional-dependencies"][extra]
    distribution = package.replace("_", "-")  # as PyPI spells it
    assert any(line.partition(">")[0].partition("[")[0] == distribution for line in required)


def test_versions_are_those_of_the_packages_themselves():
    versions = package_versions()
    assert versions["python"] == platform.python_version()
    assert versions["numpy"] == np.__version__
    assert versions["scipy"] == scipy.__version__
    assert versions["scikit-learn"] == sklearn.__version__


def test_a_package_that_is_not_installed_is_unknown(monkeypatch):
    monkeypatch.setattr("keepers._packages._VERSIONED", ("a-package-that-nobody-wrote",))
    assert package_versions()["a-package-that-nobody-wrote"] == "unknown"
