"""`keepers select` without -k: the number of features and the settings are chosen."""

import html
import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest

from keepers import select_settings
from keepers.datasets import open_table

COLUMNS = ("--id", "sample", "--labels", "class")


def chosen_by_hand(grouped):
    X = open_table(grouped, identifier="sample", labels="class").X
    return select_settings(X, random_state=0)


def test_without_k_it_keeps_what_tune_recommends(quick_keepers, grouped, tmp_path):
    done = quick_keepers("select", grouped, *COLUMNS, "--json", "--save", "recipe.json")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("Chosen without labels:")
    assert "carry structure" in done.stderr
    choice = chosen_by_hand(grouped)
    result = json.loads(done.stdout)
    params = json.loads((tmp_path / "recipe.json").read_text())["params"]
    for name, value in choice.params.items():
        assert result["params"][name] == params[name] == value
    assert len(result["features"]) == choice.n_features_to_select


def test_without_k_the_report_holds_a_command_that_names_everything(keepers, grouped, tmp_path):
    done = keepers("select", grouped, *COLUMNS, "--report", "page.html", "--out", "one.csv")
    assert done.returncode == 0, done.stderr
    page = html.unescape((tmp_path / "page.html").read_text())
    command = re.search(r"keepers select -k [^<]*", page)[0]
    again = keepers(*shlex.split(command.replace("one.csv", "two.csv"))[1:], "--force")
    assert again.returncode == 0, again.stderr
    assert "Chosen without labels" not in again.stderr
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "two.csv").read_text()


def test_without_k_settings_that_are_given_are_held(quick_keepers, grouped):
    held = ("--set", "n_components=2", "--set", "max_correlation=0.5", "--set", "max_iter=50")
    done = quick_keepers("select", grouped, *COLUMNS, *held, "--json")
    assert done.returncode == 0, done.stderr
    params = json.loads(done.stdout)["params"]
    assert (params["n_components"], params["max_correlation"], params["max_iter"]) == (2, 0.5, 50)
    assert params["gamma"] != "scale"


def test_without_k_more_components_than_the_table_has_are_refused(quick_keepers, grouped):
    done = quick_keepers("select", grouped, *COLUMNS, "--set", "n_components=99")
    assert done.returncode == 2
    assert "n_components must be an integer from 1 to 12; got 99" in done.stderr


def test_without_k_other_methods_keep_as_many_features_as_carry_structure(quick_keepers, grouped):
    done = quick_keepers("select", grouped, *COLUMNS, "--method", "variance", "--json")
    assert done.returncode == 0, done.stderr
    choice = chosen_by_hand(grouped)
    assert json.loads(done.stdout)["k"] == choice.n_features_to_select


def test_without_k_what_must_stay_and_go_is_obeyed(quick_keepers, grouped):
    chosen = ("--keep", "g5", "--keep", "g6", "--keep", "g7", "--keep", "g4", "--never", "g2")
    done = quick_keepers("select", grouped, *COLUMNS, *chosen, "--json")
    assert done.returncode == 0, done.stderr
    names = {feature["name"] for feature in json.loads(done.stdout)["features"]}
    assert names >= {"g4", "g5", "g6", "g7"}
    assert "g2" not in names


@pytest.mark.parametrize("method", ["spcafs", "variance"])
def test_without_k_noise_is_refused_with_the_way_out(quick_keepers, tmp_path, method):
    noise = np.random.default_rng(0).standard_normal((60, 20))
    pd.DataFrame(noise, columns=[f"g{j}" for j in range(20)]).to_csv(
        tmp_path / "noise.csv", index=False
    )
    done = quick_keepers("select", "noise.csv", "--method", method, "--out", "kept.csv")
    assert done.returncode == 1
    assert "No structure found in noise" in done.stderr
    assert "-k" in done.stderr
    assert not (tmp_path / "kept.csv").exists()
