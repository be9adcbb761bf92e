"""Errors, warnings, and how they quote what they found."""

import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_backend
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from keepers import SPCAFS
from keepers._wording import closest, first_line, some_of
from keepers.exceptions import InactiveRowsWarning, KeepersError, shorten

SHORT = [None, 0, -1.5, True, "a", "it's", b"a", [], (), {}, [1, 2], (1,), (1, 2), {"a": 1}, {1}]


@pytest.mark.parametrize("value", SHORT, ids=repr)
def test_a_short_value_is_quoted_as_python_does(value):
    assert shorten(value) == repr(value)


def test_long_texts_and_long_or_deep_collections_are_cut():
    text = shorten("x" * 30_000_000)
    assert len(text) < 200
    assert text.startswith("'xxx")
    assert len(shorten(b"x" * 1000)) < 200
    assert shorten(list(range(1000))) == "[0, 1, 2, 3, 4, ...]"
    circle = [1]
    circle.append(circle)
    for value in (circle, ["x" * 10**6] * 1000, {"x" * 10**6: np.zeros(9)}):
        assert len(shorten(value)) < 600


@pytest.mark.parametrize(
    "settings",
    [
        {"gamma": "x" * 10**6},
        {"p": np.zeros((500, 500))},
        {"n_components": list(range(10**5))},
        {"must_keep": ["x" * 10**6]},
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


def test_a_list_of_names_and_the_first_line_of_an_exception_are_cut():
    assert some_of(["a", "b"]) == "a, b"
    assert some_of(list("abcdefg")) == "a, b, c, d, e and 2 more"
    assert len(some_of(["x" * 10**6] * 9)) < 800
    assert first_line(ValueError("one.\ntwo")) == "one"
    assert len(first_line(ValueError("x" * 10**6))) == 200


def test_the_nearest_name_is_not_sought_among_very_long_ones():
    assert closest("gamm", ["gamma", "tol"]) == " Did you mean 'gamma'?"
    assert closest("x" * 10**6, ["x" * (10**6 - 1)]) == ""


@pytest.mark.parametrize("how", ["search", "cross-validation"])
def test_a_search_of_scikit_learn_warns_once_and_every_fit_of_its_own(how):
    X = np.random.default_rng(0).normal(size=(40, 12))
    pipeline = make_pipeline(SPCAFS(9, n_components=2, gamma=1e4), LogisticRegression())
    y = X[:, 0] > 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if how == "search":
            GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0]}, cv=3).fit(X, y)
        else:
            cross_val_score(pipeline, X, y, cv=3)
    assert [each.category for each in caught] == [InactiveRowsWarning]
    assert caught[0].filename == __file__
    for _ in range(2):
        with pytest.warns(InactiveRowsWarning):
            pipeline.fit(X, y)


def test_workers_of_a_search_warn_once_each():
    X = np.random.default_rng(0).normal(size=(40, 12))
    pipeline = make_pipeline(SPCAFS(9, n_components=2, gamma=1e4), LogisticRegression())
    with warnings.catch_warnings(record=True) as caught, parallel_backend("threading", n_jobs=2):
        warnings.simplefilter("always")
        GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0]}, cv=3).fit(X, X[:, 0] > 0)
    assert 1 <= len(caught) <= 2  # of six fits, and of the last one
