"""From the options of `keepers select` to a fit."""

import inspect
import json

import numpy as np
import pandas as pd
import pytest

from keepers import SPCAFS, AutoSelector, DenoisedLaplacian, VarianceScore
from keepers.cli.fit import HAS_AN_OPTION, NOT_FOR_A_COMMAND, StepsLeft
from keepers.cli.options import METHOD_NAMES
from keepers.methods import find_method

COLUMNS = ("--id", "sample", "--labels", "class")
BY_SPCAFS = (*COLUMNS, "--method", "spcafs")


def test_other_methods_and_their_settings_can_be_named(quick_keepers, table):
    done = quick_keepers("select", table, "-k", 2, *COLUMNS, "--method", "variance", "--json")
    frame = pd.read_csv(table).iloc[:, 2:]
    expected = set(VarianceScore(2).fit(frame).get_feature_names_out())
    assert {f["name"] for f in json.loads(done.stdout)["features"]} == expected
    done = quick_keepers(
        "select",
        table,
        "-k",
        2,
        *BY_SPCAFS,
        "--set",
        "gamma=2.5",
        "--set",
        "n_components=2",
        "--json",
    )
    params = json.loads(done.stdout)["params"]
    assert (params["gamma"], params["n_components"]) == (2.5, 2)


@pytest.mark.filterwarnings("ignore::keepers.exceptions.NoStructureWarning")
@pytest.mark.parametrize("method", [AutoSelector, DenoisedLaplacian, SPCAFS])
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


def test_a_method_that_cannot_be_told_what_to_keep_names_those_that_can(quick_keepers, table):
    done = quick_keepers("select", table, "-k", 3, *COLUMNS, "--keep", "g1", "--method", "mcfs")
    assert done.returncode == 2
    assert (
        "one of the methods auto, denoised-laplacian, spcafs, fspca; MCFS takes neither"
        in done.stderr
    )


@pytest.mark.parametrize("method", ["auto", "spcafs", "variance", "mcfs"])
def test_kept_features_can_be_held_apart_with_every_method(quick_keepers, table, method):
    done = quick_keepers(
        *("select", table, "-k", 2, *COLUMNS, "--method", method),
        *("--set", "max_correlation=0.8", "--json"),
    )
    assert done.returncode == 0, done.stderr
    kept = [feature["name"] for feature in json.loads(done.stdout)["features"]]
    assert abs(pd.read_csv(table)[kept].corr().iloc[0, 1]) <= 0.8
    assert not {"g0", "g1"} <= set(kept)  # they tell the classes, and correlate with 0.95


def test_missing_values_are_named(quick_keepers, tmp_path):
    (tmp_path / "gaps.csv").write_text("a,b,c\n1,2,3\n4,,6\n7,8,1\n")
    done = quick_keepers("select", "gaps.csv", "-k", 1)
    assert done.returncode == 1
    assert "1 of 3 rows have gaps, in 1 of 3 columns (how many): 'b' (1)." in done.stderr
    assert done.stderr.splitlines()[-1] == "keepers select gaps.csv --missing model"


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_settings_outside_their_rules_are_refused_before_the_data_are_read(quick_keepers, method):
    for name in inspect.signature(find_method(method).load()).parameters:
        if name in (*HAS_AN_OPTION, *NOT_FOR_A_COMMAND):
            continue
        for value in ("-1", "1e999", "-" * 5000 + "1"):
            done = quick_keepers(
                "select", "absent.csv", "-k", 1, "--method", method, "--set", f"{name}={value}"
            )
            assert (done.returncode, name in done.stderr) == (2, True), done.stderr
            assert "must" in done.stderr
            assert len(done.stderr) < 1000


def test_tol_of_zero_is_no_error(quick_keepers, table):
    settings = ("--set", "tol=0", "--set", "max_iter=20")
    done = quick_keepers("select", table, "-k", 2, *BY_SPCAFS, *settings)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("method", "memory"),
    [
        ("auto", ()),
        ("spcafs", ()),
        ("variance", ()),
        ("lapscore", ()),
        ("auto", ("--memory", "1G")),
        ("spcafs", ("--memory", "1G")),
    ],
)
def test_columns_set_aside_are_called_by_their_names(quick_keepers, tmp_path, method, memory):
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((30, 3)), columns=list("abc"))
    frame.insert(1, "always the same", 1.0)
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = quick_keepers("select", "t.csv", "-k", 1, "--method", method, *memory)
    assert done.returncode == 0, done.stderr
    assert "set aside and ranked last: 'always the same'." in done.stderr


def test_settings_call_columns_by_their_names(quick_keepers, table):
    groups = ("--set", "groups=[['g0','g5']]")
    done = quick_keepers("select", table, "-k", 2, *BY_SPCAFS, *groups, "--json")
    assert done.returncode == 0, done.stderr
    frame = pd.read_csv(table).iloc[:, 2:]
    by_hand = SPCAFS(2, groups=[["g0", "g5"]], random_state=0).fit(frame).top().names.tolist()
    assert [feature["name"] for feature in json.loads(done.stdout)["features"]] == by_hand
    done = quick_keepers("select", table, "-k", 2, *BY_SPCAFS, "--set", "groups=[['g0'],['g0']]")
    assert "Groups must not overlap; 'g0'" in done.stderr


def test_fewer_active_rows_than_features_asked_for_are_said_once(quick_keepers, table):
    done = quick_keepers("select", table, "-k", 5, *BY_SPCAFS, "--set", "gamma=1e6")
    assert done.returncode == 0, done.stderr
    said = "Only 1 of the 5 kept features has an active (non-zero) row of W"
    assert " ".join(done.stderr.split()).count(said) == 1
    quiet = quick_keepers("select", table, "-k", 5, *BY_SPCAFS, "--set", "gamma=1e6", "--quiet")
    assert quiet.stderr == ""


def test_the_end_of_an_iteration_is_guessed_from_how_its_steps_shrink(monkeypatch):
    """One step a second, each a tenth of the one before: from 9e-9 to 9e-14 it takes five more."""
    clock = iter(range(100))
    monkeypatch.setattr("keepers.cli.fit.time.monotonic", lambda: next(clock))
    steps = StepsLeft(tol=9e-14)
    left = [steps.after(1 + 10.0**-power) for power in range(10)]
    assert left[:8] == [None] * 8  # too few steps to tell
    assert left[9] == pytest.approx(5, abs=0.1)


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


def test_a_baseline_that_keeps_everything_is_refused(quick_keepers, table):
    done = quick_keepers("select", table, "-k", 2, *COLUMNS, "--method", "all-features")
    assert done.returncode == 2
    assert "keeps every feature" in done.stderr


@pytest.mark.parametrize("scale", ["raw", "unit-samples", "standardize-features"])
@pytest.mark.parametrize("k", [("-k", 1), ()])
def test_missing_values_are_named_with_every_scaling(quick_keepers, tmp_path, scale, k):
    (tmp_path / "gaps.csv").write_text("a,b,c\n1,2,3\n4,,6\n7,8,1\n")
    done = quick_keepers("select", "gaps.csv", *k, "--scale", scale)
    assert done.returncode == 1
    assert "1 of 3 rows have gaps, in 1 of 3 columns (how many): 'b' (1)." in done.stderr
    assert "--missing" in done.stderr
