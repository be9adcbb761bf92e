"""Measures beside the clustering: the forest, functions of one's own, and what is refused."""

import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score

from keepers.exceptions import ParameterError
from keepers.studies.plan import versioned_function
from keepers.studies.study_metrics import find_metric, forest_accuracy


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "my_metrics.py").write_text(
        "def spread(X, classes, seed):\n    return float(X.std())\n\nNUMBER = 3\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "my_metrics.py"
    sys.modules.pop("my_metrics", None)
    find_metric.cache_clear()
    versioned_function.cache_clear()


def test_the_forest_is_scikit_learns_over_five_stratified_folds():
    X, y = load_iris(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=3)
    expected = cross_val_score(RandomForestClassifier(100, random_state=3), X, y, cv=folds).mean()
    assert forest_accuracy(X, y, 3) == pytest.approx(expected)


def test_a_class_with_two_samples_does_not_stop_the_forest():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [10, 10, 2])
    X = rng.normal(size=(22, 3)) + 9 * y[:, np.newaxis]
    assert 0.8 < forest_accuracy(X, y, 0) <= 1.0


def test_a_function_of_ones_own_is_found_and_known_by_its_file(own_module):
    assert find_metric("my_metrics:spread")(np.array([[0.0], [2.0]]), np.array([0, 1]), 0) == 1.0
    before = versioned_function("my_metrics:spread")
    own_module.write_text(own_module.read_text() + "\n# changed\n")
    versioned_function.cache_clear()
    assert versioned_function("my_metrics:spread") != before


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("forrest", r"no metric 'forrest'.*Did you mean 'forest'"),
        ("my_metrics:nothing", r"MODULE:FUNCTION.*cannot be imported"),
        ("my_metrics:NUMBER", r"cannot be called"),
    ],
)
def test_what_is_no_metric_is_refused_in_one_sentence(own_module, target, message):
    with pytest.raises(ParameterError, match=message):
        find_metric(target)
