"""The worked example of docs/add-a-method.md keeps what the library promises."""

import importlib.util
import inspect
import itertools
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

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "add_a_method.py"


def load(path):
    spec = importlib.util.spec_from_file_location(f"{path.stem}_under_test", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # scikit-learn's checks pickle its classes
    spec.loader.exec_module(module)
    return module


example = load(EXAMPLE)
contract = load(Path(__file__).parent / "methods" / "test_contract.py")
NAME = "SharedVariance"
contract.SELECTORS = {NAME: example.SharedVariance}
contract.EQUIVARIANT = {NAME: ({}, 1e-8)}


def contract_cases():
    """Every test of the contract that SPCAFS has to pass, with its parameters but the name."""
    for title, function in inspect.getmembers(contract, inspect.isfunction):
        marks = [m for m in getattr(function, "pytestmark", []) if m.name == "parametrize"]
        choices = {m.args[0]: list(m.args[1]) for m in marks}
        if not title.startswith("test_") or "SPCAFS" not in choices.pop("name", ()):
            continue  # about some methods only
        if set(inspect.signature(function).parameters) - {"name", "table"} - _named(choices):
            continue
        for values in itertools.product(*choices.values()):
            given = {}
            for names, value in zip(choices, values, strict=True):
                given |= dict(zip(_listed(names), value if _many(names) else [value], strict=True))
            yield pytest.param(function, given, id=title)


def _listed(names):
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def _many(names):
    return len(_listed(names)) > 1


def _named(choices):
    return {name for names in choices for name in _listed(names)}


@pytest.fixture(scope="module")
def table():
    """50 x 14: four groups of samples in the first six features, noise in the rest."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 14))
    X[:, :6] += 3 * rng.standard_normal((4, 6))[rng.integers(0, 4, 50)]
    return X


@parametrize_with_checks([example.SharedVariance()])
def test_scikit_learn_accepts_it(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        warnings.filterwarnings("ignore", message=".*(Casting complex|overflow|invalid value).*")
        check(estimator)


@pytest.mark.parametrize(("claim", "given"), list(contract_cases()))
def test_it_keeps_the_contract_of_every_selector(claim, given, table):
    needed = {"name": NAME, "table": table, **given}
    claim(**{name: needed[name] for name in inspect.signature(claim).parameters})


def test_scores_are_the_shares_that_least_squares_on_the_components_explains(table):
    scores = example.SharedVariance(n_components=2).fit(table).scores_
    coordinates = PCA(2).fit_transform(table)
    expected = [LinearRegression().fit(coordinates, f).score(coordinates, f) for f in table.T]
    np.testing.assert_allclose(scores, expected, atol=1e-10)
