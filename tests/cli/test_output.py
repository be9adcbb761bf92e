"""A selection as JSON, in words and as an AnnData file from which nothing but genes is lost."""

import io
import json
import re
from dataclasses import replace

import anndata
import numpy as np
import pandas as pd
import pytest

from keepers import SPCAFS, AutoSelector, datasets, describe_selection
from keepers.cli.selections import print_selection

COLUMNS = ("--id", "sample", "--labels", "class")
BY_SPCAFS = (*COLUMNS, "--method", "spcafs")


def test_json_is_for_machines(quick_keepers, table):
    done = quick_keepers("select", table, "-k", 3, *BY_SPCAFS, "--json")
    result = json.loads(done.stdout)
    frame = pd.read_csv(table)
    by_hand = SPCAFS(3).fit(frame.iloc[:, 2:]).top().names.tolist()
    assert [feature["name"] for feature in result["features"]] == by_hand
    assert [feature["rank"] for feature in result["features"]] == [1, 2, 3]
    assert result["method"] == "SPCAFS"
    assert (result["summary"], result["doubts"], result["structure_found"]) == (None, [], None)
    for feature in result["features"]:
        assert feature["variance"] == pytest.approx(frame[feature["name"]].var(ddof=0))
    share = sum(f["variance"] for f in result["features"]) / frame.iloc[:, 2:].var(ddof=0).sum()
    assert result["variance_share"] == pytest.approx(share)


@pytest.mark.parametrize("blocks", [(), ("--memory", "1G")])
def test_copies_and_noise_are_told_apart(quick_keepers, tmp_path, blocks):
    random = np.random.default_rng(0)
    X = random.standard_normal((120, 9))
    centres = np.array([[-8, 0, -8, 0], [0, 0, 8, -8], [8, 0, 0, 8]])  # any two tell all groups
    X[:, :4] += centres[np.arange(120) % 3]
    X[:, 4] = X[:, 0] + 0.001 * random.standard_normal(120)
    pd.DataFrame(X).add_prefix("g").to_csv("copies.csv", index=False)
    options = ("-k", 3, *blocks, "--never", "g1")
    done = quick_keepers("select", "copies.csv", *options, "--json")
    result = json.loads(done.stdout)
    assert {feature["name"] for feature in result["features"]} - {"g0", "g4"} == {"g2", "g3"}
    dropped = {feature["name"]: feature for feature in result["dropped_features"]}
    assert result["dropped"] == {"redundant": 1, "no structure": 4, "never_keep": 1}
    (copy,) = {"g0", "g4"} & dropped.keys()
    assert dropped[copy]["reason"] == "redundant"
    assert dropped[copy]["neighbour"] == ({"g0", "g4"} - {copy}).pop()
    assert dropped[copy]["correlation"] > 0.999
    said = quick_keepers("select", "copies.csv", *options).stderr
    words = "1 same as a kept one, 4 no structure beyond chance, 1 excluded."
    assert f"Not kept: {words}" in said


@pytest.fixture
def cells(tmp_path):
    """A file with an object that has more than a table."""
    rng = np.random.default_rng(0)
    kinds = np.arange(60) % 3
    counts = rng.poisson(2.0, size=(60, 20)) + 9 * (rng.random((3, 20)) < 0.3)[kinds]
    obs = pd.DataFrame({"kind": pd.Categorical.from_codes(kinds, ["b", "m", "t"])})
    obs.index = [f"cell{at}" for at in range(60)]
    full = anndata.AnnData(counts.astype(np.int64), obs=obs)
    full.var_names = [f"gene{at}" for at in range(20)]
    full.raw = full.copy()
    full.layers["counts"] = counts
    full.obsm["X_umap"] = rng.standard_normal((60, 2))
    full.uns["note"] = "kept"
    full.write_h5ad(tmp_path / "cells.h5ad")
    return full


def test_select_and_apply_keep_the_rest_of_the_file(quick_keepers, cells, tmp_path):
    done = quick_keepers(
        *("select", "cells.h5ad", "-k", 5, "--labels", "kind", "--drop", "gene3"),
        *("--out", "kept.h5ad", "--save", "recipe.json"),
    )
    assert done.returncode == 0, done.stderr
    done = quick_keepers("apply", "recipe.json", "cells.h5ad", "--out", "applied.h5ad")
    assert done.returncode == 0, done.stderr
    kept = anndata.read_h5ad(tmp_path / "kept.h5ad")
    assert kept.n_vars == 5
    assert "gene3" not in kept.var_names
    for found in (kept, anndata.read_h5ad(tmp_path / "applied.h5ad")):
        expected = cells[:, found.var_names]
        assert set(found.var_names) == set(kept.var_names)
        assert found.X.dtype == np.int64
        np.testing.assert_array_equal(found.X, expected.X)
        np.testing.assert_array_equal(found.layers["counts"], expected.layers["counts"])
        np.testing.assert_array_equal(found.obsm["X_umap"], cells.obsm["X_umap"])
        pd.testing.assert_series_equal(found.obs["kind"], cells.obs["kind"], check_names=False)
        assert found.raw.shape == (60, 20)
        assert found.uns["note"] == "kept"


def test_a_layer_is_read_instead_of_x(quick_keepers, cells, tmp_path):
    cells.layers["boosted"] = cells.X * np.where(cells.var_names == "gene7", 100, 1)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    asked = ("select", "cells.h5ad", "-k", 1, "--method", "variance", "--quiet")
    assert quick_keepers(*asked, "--layer", "boosted").stdout.splitlines()[1].split()[1] == "gene7"
    assert quick_keepers(*asked).stdout.splitlines()[1].split()[1] != "gene7"
    done = quick_keepers(*asked, "--layer", "bosted")
    assert done.returncode == 1
    assert "Did you mean 'boosted'" in done.stderr


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_the_answer_and_ten_features_with_their_reasons(monkeypatch, capsys):
    X, names, _ = datasets.load("srbct")
    selector = AutoSelector(n_halves=2).fit(X)
    selection = describe_selection(selector, X, feature_names=names, source="genes")
    selection = replace(selection, seconds=1.0)
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    print_selection(selection, {}, {"day": "date"})
    printed = re.sub("\x1b\\[[0-9;]*m", "", terminal.getvalue())
    lines = printed.splitlines()
    assert lines[0].split() == ["rank", "feature", "score", "why"]
    best = [str(name) for name in names[selector.top(10).indices]]
    assert [line.split()[1] for line in lines if line.split()[0].isdigit()] == best
    assert "closest kept: " in printed
    assert f"and {selection.k - 10} more" in printed
    said = " ".join(capsys.readouterr().err.split())
    assert f"Keep {selection.k} of 2,308 features. Found in 1.0 s from genes (83 samples)." in said
    assert said.count(str(selector.stability_)) == 1
    assert "Not used: 'day' (date)." in said


def test_categories_have_correlations_without_a_sign(quick_keepers):
    random = np.random.default_rng(0)
    group = random.integers(0, 3, 90)
    frame = pd.DataFrame(random.standard_normal((90, 4)) + 3 * group[:, None], columns=list("abcd"))
    frame["kind"] = np.array(["oak", "elm", "fir"])[group]
    frame["e"] = -frame["a"] + random.standard_normal(90)
    frame.to_csv("trees.csv", index=False)
    lines = quick_keepers("select", "trees.csv").stdout.splitlines()[1:]
    rows = {line.split("\t")[1]: line.split("\t") for line in lines}
    for name, row in rows.items():
        with_category = "kind" in (name, row[4])
        assert row[5][0] in ("0" if with_category else "+-")
