"""Versions that a recipe and a study keep."""

import platform

import numpy as np
import scipy
import sklearn

from keepers._versions import package_versions


def test_versions_are_those_of_the_packages_themselves():
    versions = package_versions()
    assert versions["python"] == platform.python_version()
    assert versions["numpy"] == np.__version__
    assert versions["scipy"] == scipy.__version__
    assert versions["scikit-learn"] == sklearn.__version__


def test_a_package_that_is_not_installed_is_unknown(monkeypatch):
    monkeypatch.setattr("keepers._versions._PACKAGES", ("a-package-that-nobody-wrote",))
    assert package_versions()["a-package-that-nobody-wrote"] == "unknown"
