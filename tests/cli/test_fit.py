"""From the options of `keepers select` to a fit."""

import inspect
import json

import numpy as np
import pandas as pd
import pytest

from keepers import SPCAFS, AutoSelector, VarianceScore
from keepers.catalogue import find_method
from keepers.cli.options import METHOD_NAMES
from keepers.cli.selections import NO_SETTINGS
from keepers.exceptions import NoStructureWarning
from keepers.linalg.scatter import FactoredScatter

COLUMNS = ("--id", "sample", "--labels", "class")


def test_fit_and_certificate_form_the_gram_matrix_once(quick_keepers, tmp_path, monkeypatch):
    X = np.random.default_rng(0).standard_normal((30, 80)) * np.linspace(1, 2, 80)
    pd.DataFrame(X).add_prefix("g").to_csv(tmp_path / "wide.csv", index=False)
    formed, form = [], FactoredScatter._sample_gram
    monkeypatch.setattr(
        FactoredScatter, "_sample_gram", lambda self: (formed.append(self), form(self))[1]
    )
    done = quick_keepers("select", "wide.csv", "-k", 3, "--method", "spcafs", "--json")
    assert json.loads(done.stdout)["certificate"]["share"] > 0.5
    assert len(formed) == 1


@pytest.mark.filterwarnings("ignore::keepers.exceptions.NoStructureWarning")
@pytest.mark.parametrize("method", [AutoSelector, SPCAFS])
def test_features_stay_and_go_by_name(quick_keepers, table, method):
    chosen = ("--keep", "g7", "--never", "g0", "--never", "g1", "--method", method.__name__)
    done = quick_keepers("select", table, "-k", 3, *COLUMNS, *chosen, "--json")
    assert done.returncode == 0, done.stderr
    frame = pd.read_csv(table).iloc[:, 2:]
    by_hand = method(3, must_keep=["g7"], never_keep=["g0", "g1"], random_state=0).fit(frame)
    names = [feature["name"] for feature in json.loads(done.stdout)["features"]]
    assert names == by_hand.top().names.tolist()
    assert names[0] == "g7"
    assert json.loads(done.stdout)["dropped"]["never_keep"] == 2


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_settings_outside_their_rules_are_refused_before_the_data_are_read(quick_keepers, method):
    for name in inspect.signature(find_method(method).load()).parameters:
        if name in NO_SETTINGS:
            continue
        for value in ("-1", "1e999"):
            done = quick_keepers(
                "select", "absent.csv", "-k", 1, "--method", method, "--set", f"{name}={value}"
            )
            assert (done.returncode, name in done.stderr) == (2, True), done.stderr
            assert "must" in done.stderr
            assert len(done.stderr) < 1000


def test_a_method_of_the_user_s_own_is_taken_by_module_and_class(quick_keepers, table, tmp_path):
    (tmp_path / "my_methods.py").write_text(
        "from keepers import VarianceScore\n\nclass Mine(VarianceScore):\n"
        "    def __init__(self, n_features_to_select=None, max_correlation=None, how=abs):\n"
        "        self.n_features_to_select = n_features_to_select\n"
        "        self.max_correlation = max_correlation\n"
        "        self.how = how\n"
    )
    options = ("--method", "my_methods:Mine", "--json", "--save", "recipe.json")
    done = quick_keepers("select", table, "-k", 2, *COLUMNS, *options)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    frame = pd.read_csv(table).iloc[:, 2:]
    assert result["method"] == "Mine"
    assert "function" in result["params"]["how"]  # what JSON does not know is named by its type
    by_hand = VarianceScore(2).fit(frame).top().names.tolist()
    assert [feature["name"] for feature in result["features"]] == by_hand


@pytest.mark.parametrize("scale", ["raw", "unit-samples", "standardize-features"])
def test_methods_that_take_no_gaps_name_them_with_every_scaling(quick_keepers, tmp_path, scale):
    (tmp_path / "gaps.csv").write_text("a,b,c\n1,2,3\n4,,6\n7,8,1\n")
    done = quick_keepers("select", "gaps.csv", "-k", 1, "--method", "spcafs", "--scale", scale)
    assert done.returncode == 1
    assert "'b' (1)" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("--missing model")


def test_scaling_and_gaps_do_not_go_together(quick_keepers, tmp_path):
    (tmp_path / "gaps.csv").write_text("a,b,c\n1,2,3\n4,,6\n7,8,1\n")
    done = quick_keepers("select", "gaps.csv", "-k", 1, "--scale", "unit-samples")
    assert done.returncode == 2
    assert "gaps has 1" in done.stderr
    assert "--missing model" in done.stderr


def test_noise_is_kept_whole_and_called_noise(quick_keepers):
    frame = pd.DataFrame(np.random.default_rng(1).standard_normal((70, 90)).round(3))
    frame.columns = [f"g{at}" for at in range(90)]
    frame.to_csv("noise.csv", index=False)
    done = quick_keepers("select", "noise.csv", "--out", "kept.csv", "--report", "r.html", "--json")
    assert done.returncode == 0, done.stderr
    assert "No structure found" in done.stderr
    assert "all 90 are kept" in done.stderr
    result = json.loads(done.stdout)
    assert (result["structure_found"], result["k"]) == (False, 90)
    pd.testing.assert_frame_equal(pd.read_csv("kept.csv"), frame)
    with pytest.warns(NoStructureWarning, match="all 90 are kept"):
        assert AutoSelector().fit(frame).support_.all()
