"""Names of methods: those of keepers, and classes of one's own."""

import sys

import pytest

from keepers import SPCAFS
from keepers.evaluation.comparison import METHODS
from keepers.evaluation.methods import find_selector, versioned, without_version
from keepers.exceptions import ParameterError
from keepers.methods import all_selectors

CODE = "from keepers import VarianceScore\nclass Mine(VarianceScore):\n    pass\n"


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Write a module that can be imported; it is forgotten after the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    versioned.cache_clear()

    def write(code, name="a_method_of_mine"):
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / f"{name}.py").write_text(code)
        return f"{name}:Mine"

    yield write
    versioned.cache_clear()


def test_names_of_keepers_stand_for_its_selectors():
    assert find_selector("SPCAFS") is SPCAFS
    assert versioned("SPCAFS") == "SPCAFS"  # the keys of results that exist stay as they are
    with pytest.raises(ParameterError, match=r"there is no method 'SPCA'.* or MODULE:CLASS"):
        find_selector("SPCA")


def test_compare_knows_every_selector():
    assert {choice["name"] for choice in METHODS.values()} == set(all_selectors())


def test_a_class_of_ones_own_is_found_with_and_without_its_version(modules):
    name = modules(CODE)
    assert find_selector(name).__name__ == "Mine"
    assert find_selector(versioned(name)) is find_selector(name)
    assert without_version(versioned(name)) == name


def test_a_changed_file_is_another_method_so_that_old_results_are_not_taken_for_its_own(modules):
    first = versioned(modules(CODE))
    versioned.cache_clear()
    again = versioned(modules(CODE))
    versioned.cache_clear()
    assert again == first
    assert versioned(modules(CODE + "    # changed\n")) != first
