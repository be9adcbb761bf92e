"""Selections that can be applied to other tables."""

import json

import numpy as np
import pytest

from keepers import SPCAFS, describe_selection
from keepers.exceptions import DataError
from keepers.reports.recipe import Recipe

RECIPE = Recipe(
    features=("b", "a"),
    scores=(2.0, 1.0),
    method="SPCAFS",
    params={"gamma": "scale", "random_state": None},
    scaling="raw",
    source="t",
    shape=(3, 4),
    versions={"keepers": "0.1.0"},
)


def test_what_was_saved_is_what_is_loaded(tmp_path):
    RECIPE.save(tmp_path / "r.json")
    assert Recipe.load(tmp_path / "r.json") == RECIPE
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_a_table_that_lacks_features_is_refused_with_their_names():
    with pytest.raises(DataError, match=r"lacks 1 of the 2 features .*'a'"):
        RECIPE.refuse_absent(["b", "c"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "null",
        '{"keepers_recipe": 2}',
        '{"keepers_recipe": 1}',
        "[" * 100_000,
        "\x00",
    ],
)
def test_anything_else_is_not_a_recipe(tmp_path, text):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(DataError, match="recipe"):
        Recipe.load(path)


@pytest.mark.parametrize(
    ("name", "value"), [("features", []), ("features", [1]), ("scores", 3), ("params", [])]
)
def test_a_damaged_recipe_is_refused_with_what_is_wrong(tmp_path, name, value):
    path = tmp_path / "r.json"
    RECIPE.save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    with pytest.raises(DataError, match=f"damaged recipe: '{name}'"):
        Recipe.load(path)


def test_the_recipe_of_a_selection_holds_what_another_table_needs(tmp_path):
    X = np.random.default_rng(0).standard_normal((20, 5))
    selector = SPCAFS(2, random_state=0, callback=lambda progress: None).fit(X)
    selection = describe_selection(selector, X, source="t")
    recipe = Recipe.of(selection)
    recipe.save(tmp_path / "r.json")
    loaded = Recipe.load(tmp_path / "r.json")
    assert loaded.features == tuple(selector.top().names)
    assert (loaded.shape, loaded.source, loaded.method) == ((20, 5), "t", "SPCAFS")
    assert loaded.params["n_features_to_select"] == 2
    assert "callback" not in loaded.params
    assert loaded.versions["numpy"] == np.__version__
