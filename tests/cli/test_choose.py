"""`keepers select` without -k: the number of features, and for SPCAFS the settings, are chosen."""

import html
import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest

from keepers import AutoSelector, select_settings
from keepers.datasets import open_table

COLUMNS = ("--id", "sample", "--labels", "class")
BY_SPCAFS = (*COLUMNS, "--method", "spcafs")


def chosen_by_hand(grouped):
    X = open_table(grouped, identifier="sample", labels="class").X
    return select_settings(X, random_state=0)


def test_without_k_it_keeps_what_tune_recommends(quick_keepers, grouped, tmp_path):
    done = quick_keepers("select", grouped, *BY_SPCAFS, "--json", "--save", "recipe.json")
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
    done = keepers("select", grouped, *BY_SPCAFS, "--report", "page.html", "--out", "one.csv")
    assert done.returncode == 0, done.stderr
    page = html.unescape((tmp_path / "page.html").read_text())
    command = re.search(r"keepers select -k [^<]*", page)[0]
    again = keepers(*shlex.split(command.replace("one.csv", "two.csv"))[1:], "--force")
    assert again.returncode == 0, again.stderr
    assert "Chosen without labels" not in again.stderr
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "two.csv").read_text()


def test_without_k_settings_that_are_given_are_held(quick_keepers, grouped):
    held = ("--set", "n_components=2", "--set", "max_correlation=0.5", "--set", "max_iter=50")
    done = quick_keepers("select", grouped, *BY_SPCAFS, *held, "--json")
    assert done.returncode == 0, done.stderr
    params = json.loads(done.stdout)["params"]
    assert (params["n_components"], params["max_correlation"], params["max_iter"]) == (2, 0.5, 50)
    assert params["gamma"] != "scale"


def test_without_k_more_components_than_the_table_has_are_refused(quick_keepers, grouped):
    done = quick_keepers("select", grouped, *BY_SPCAFS, "--set", "n_components=99")
    assert done.returncode == 2
    assert "n_components must be an integer from 1 to 12; got 99" in done.stderr


def test_without_k_other_methods_keep_as_many_features_as_carry_structure(quick_keepers, grouped):
    done = quick_keepers("select", grouped, *COLUMNS, "--method", "variance", "--json")
    assert done.returncode == 0, done.stderr
    choice = chosen_by_hand(grouped)
    assert json.loads(done.stdout)["k"] == choice.n_features_to_select


@pytest.mark.parametrize("method", [(), ("--method", "spcafs"), ("--method", "denoised-laplacian")])
def test_without_k_what_must_stay_and_go_is_obeyed(quick_keepers, grouped, method):
    chosen = ("--keep", "g5", "--keep", "g6", "--keep", "g7", "--keep", "g4", "--never", "g2")
    done = quick_keepers("select", grouped, *COLUMNS, *chosen, *method, "--json")
    assert done.returncode == 0, done.stderr
    names = {feature["name"] for feature in json.loads(done.stdout)["features"]}
    assert names >= {"g4", "g5", "g6", "g7"}
    assert "g2" not in names


def write_noise(folder):
    noise = np.random.default_rng(0).standard_normal((60, 20))
    pd.DataFrame(noise).add_prefix("g").to_csv(folder / "noise.csv", index=False)


@pytest.mark.parametrize("method", ["auto", "spcafs", "variance"])
def test_without_k_noise_is_refused_with_the_way_out(quick_keepers, tmp_path, method):
    write_noise(tmp_path)
    done = quick_keepers("select", "noise.csv", "--method", method, "--out", "kept.csv")
    assert done.returncode == 1
    assert "No structure found in noise" in done.stderr
    assert "-k" in done.stderr
    assert not (tmp_path / "kept.csv").exists()


@pytest.mark.parametrize("blocks", [(), ("--memory", "1G")])
def test_noise_without_k_is_refused_in_the_words_of_the_selector(quick_keepers, tmp_path, blocks):
    write_noise(tmp_path)
    done = quick_keepers("select", "noise.csv", *blocks)
    name = "noise.csv" if blocks else "noise"
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line == (
        f"keepers: No structure found in {name}: on none of the 20 features do neighbouring "
        "samples agree by more than chance, so nothing in the table says which to keep. Say with "
        "-k how many to keep nevertheless."
    )


def test_noise_with_k_is_selected_from_with_a_note(quick_keepers, tmp_path):
    write_noise(tmp_path)
    done = quick_keepers("select", "noise.csv", "-k", 3, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("No structure found") == 1
    assert "keepers: note: The ranking is about as good as a random one." in done.stderr
    result = json.loads(done.stdout)
    assert (result["structure_found"], result["n_carrying_structure"], result["k"]) == (False, 0, 3)


def test_without_a_method_and_k_the_front_door_chooses_and_says_why(
    quick_keepers, grouped, monkeypatch
):
    def searched(*_, **__):
        raise AssertionError("settings of SPCAFS were searched")

    monkeypatch.setattr("keepers.cli.choose.search", searched)
    done = quick_keepers("select", grouped, *COLUMNS, "--json")
    assert done.returncode == 0, done.stderr
    by_hand = AutoSelector().fit(open_table(grouped, identifier="sample", labels="class"))
    result = json.loads(done.stdout)
    assert result["method"] == "AutoSelector"
    assert result["params"]["n_features_to_select"] is None
    names = [feature["name"] for feature in result["features"]]
    assert names == by_hand.top().names.tolist()
    assert result["summary"] == by_hand.summary_
    assert result["doubts"] == by_hand.doubts_
    assert result["structure_found"] is True
    assert result["n_carrying_structure"] == by_hand.carries_structure_.sum()
    told = done.stderr.splitlines()
    assert told == [by_hand.summary_, *(f"keepers: note: {doubt}" for doubt in by_hand.doubts_)]


def test_the_seed_draws_for_the_front_door(quick_keepers, grouped):
    done = quick_keepers("select", grouped, *COLUMNS, "--seed", 7, "--json")
    assert json.loads(done.stdout)["params"]["random_state"] == 7
