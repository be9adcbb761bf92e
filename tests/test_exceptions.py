"""Errors, warnings, and how they quote what they found."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers import SPCAFS
from keepers.exceptions import DataError, KeepersError, ParameterError, shorten

SHORT = [None, 0, -1.5, True, "a", "it's", b"a", [], (), {}, [1, 2], (1,), (1, 2), {"a": 1}, {1}]


@pytest.mark.parametrize("value", SHORT, ids=repr)
def test_a_short_value_is_quoted_as_python_does(value):
    assert shorten(value) == repr(value)


def test_a_long_string_is_cut_and_its_length_stated():
    text = shorten("x" * 30_000_000)
    assert len(text) < 200
    assert text.startswith("'xxx")
    assert text.endswith("...' (30000000 characters)")
    assert shorten(b"x" * 1000).endswith("(1000 bytes)")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (np.zeros((300, 400)), "<ndarray of shape (300, 400)>"),
        (pd.DataFrame(np.zeros((300, 4))), "<DataFrame of shape (300, 4)>"),
        (pd.Series(np.zeros(300)), "<Series of shape (300,)>"),
        (sp.csr_array((5, 6)), "<csr_array of shape (5, 6)>"),
    ],
)
def test_a_table_is_quoted_as_its_type_and_shape(value, told):
    assert shorten(value) == told


def test_a_long_or_deep_collection_is_cut_and_its_length_stated():
    assert shorten(list(range(1000))) == "[0, 1, 2, 3, 4, ...] (1000 items)"
    assert shorten(dict.fromkeys(range(9))).endswith("...} (9 items)")
    circle = [1]
    circle.append(circle)
    for value in (circle, ["x" * 10**6] * 1000, {"x" * 10**6: np.zeros(9)}):
        assert len(shorten(value)) < 600


def test_a_value_whose_repr_fails_or_is_too_long_is_quoted_all_the_same():
    class Broken:
        def __repr__(self):
            raise RuntimeError("no")

    assert shorten(Broken()) == "<Broken>"
    assert shorten(10**5000) == "<int>"  # past the digits that Python prints
    assert len(shorten(10**1000)) < 200


@pytest.mark.parametrize(
    "settings",
    [
        {"gamma": "x" * 10**6},
        {"p": np.zeros((500, 500))},
        {"n_components": list(range(10**5))},
        {"solver": pd.DataFrame(np.zeros((500, 50)))},
        {"max_iter": 10**4000},
        {"must_keep": ["x" * 10**6]},
        {"penalty_weights": "x" * 10**6},
        {"groups": "x" * 10**6},
        {"callback": "x" * 10**6},
        {"memory_limit": "x" * 10**6},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_messages_do_not_print_whole_tables_or_names(settings):
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((20, 4)), columns=list("abcd"))
    selector = SPCAFS(2, **settings)
    with pytest.raises(KeepersError) as caught:
        selector.fit_blocks([frame]) if "memory_limit" in settings else selector.fit(frame)
    assert len(str(caught.value)) < 1000


def test_names_of_columns_are_cut_in_messages():
    frame = pd.DataFrame({"x" * 10**6: ["text"] * 5, "y": np.arange(5.0)})
    with pytest.raises(DataError, match="must be numeric") as caught:
        SPCAFS(1).fit(frame)
    assert len(str(caught.value)) < 1000


def test_each_argument_of_an_error_is_a_line_of_its_message():
    assert str(ParameterError("one")) == "one"
    assert str(DataError("one", "two")) == "one\ntwo"
