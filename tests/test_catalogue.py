"""The one registry of methods, and methods of the user's own."""

import inspect
import sys

import pytest

import keepers
from keepers.catalogue import METHODS, all_selectors, find_method
from keepers.exceptions import ParameterError
from keepers.methods.base import RankingSelector

MODULE = """
import numpy as np
from keepers.extending import RankingSelector

class Backwards(RankingSelector):
    def __init__(self, n_features_to_select=None):
        self.n_features_to_select = n_features_to_select

    def score_features(self, table):
        return np.arange(table.n_features, dtype=float)

NOT_A_CLASS = 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The folder of a module with a method."""
    (tmp_path / "of_my_own.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("of_my_own", None)


def test_every_public_selector_is_registered_once_by_its_class():
    public = {name: getattr(keepers, name) for name in keepers.__all__}
    named = {
        name
        for name, found in public.items()
        if inspect.isclass(found) and issubclass(found, RankingSelector)
    }
    named -= {"SPCAFSCV", "StabilitySelector"}  # they choose, or repeat, another one
    assert {method.class_name for method in METHODS} == named == set(all_selectors())
    assert len({method.name for method in METHODS}) == len(METHODS)
    assert all(method.load().__name__ == method.class_name for method in METHODS)
    assert keepers.all_selectors is all_selectors


@pytest.mark.parametrize("name", ["lapscore", "LAPSCORE", "LaplacianScore", "laplacianscore"])
def test_a_method_is_found_by_its_name_or_that_of_its_class(name):
    assert find_method(name).load() is keepers.LaplacianScore


@pytest.mark.usefixtures("module")
def test_a_class_of_the_users_own_is_found_by_module_and_class():
    found = find_method("of_my_own:Backwards").load()
    assert issubclass(found, RankingSelector)
    X = [[1.0, 2.0, 3.0], [2.0, 1.0, 1.0], [0.0, 1.0, 5.0]]
    assert found(1).fit(X).top().indices.tolist() == [2]


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("spcfs", "no method 'spcfs'. Did you mean 'spcafs'"),
        ("absent_module:Method", "cannot be imported .ModuleNotFoundError"),
        ("of_my_own:Absent", "cannot be imported .AttributeError"),
        ("of_my_own:NOT_A_CLASS", "must be a subclass of RankingSelector"),
        ("builtins:dict", "must be a subclass of RankingSelector"),
    ],
)
def test_what_is_no_method_is_refused_with_the_reason(name, message):
    with pytest.raises(ParameterError, match=message):
        find_method(name)
