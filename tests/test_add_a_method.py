"""The worked example of docs/add-a-method.md."""

import importlib.util
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from keepers.exceptions import KeepersWarning

pytestmark = pytest.mark.slow


def load(path):
    spec = importlib.util.spec_from_file_location(f"{path.stem}_under_test", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # scikit-learn's checks pickle its classes
    spec.loader.exec_module(module)
    return module


example = load(Path(__file__).parents[1] / "examples" / "add_a_method.py")


@parametrize_with_checks([example.SharedVariance()])
def test_scikit_learn_accepts_it(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        warnings.filterwarnings("ignore", message=".*(Casting complex|overflow|invalid value).*")
        check(estimator)


def test_scores_are_the_shares_that_least_squares_on_the_components_explains():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((50, 14))
    table[:, :6] += 3 * rng.standard_normal((4, 6))[rng.integers(0, 4, 50)]
    scores = example.SharedVariance(n_components=2).fit(table).scores_
    coordinates = PCA(2).fit_transform(table)
    expected = [LinearRegression().fit(coordinates, f).score(coordinates, f) for f in table.T]
    np.testing.assert_allclose(scores, expected, atol=1e-10)
