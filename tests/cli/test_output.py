"""A selection as JSON, in a pipe and in words."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from keepers import SPCAFS

COLUMNS = ("--id", "sample", "--labels", "class")
BY_SPCAFS = (*COLUMNS, "--method", "spcafs")


def kept_by_hand(table, k=3):
    frame = pd.read_csv(table, index_col="sample").drop(columns="class")
    return set(SPCAFS(k).fit(frame).get_feature_names_out())


def test_json_is_for_machines(quick_keepers, table):
    done = quick_keepers("select", table, "-k", 3, *BY_SPCAFS, "--json")
    result = json.loads(done.stdout)
    assert {feature["name"] for feature in result["features"]} == kept_by_hand(table)
    assert [feature["rank"] for feature in result["features"]] == [1, 2, 3]
    assert result["method"] == "SPCAFS"
    assert (result["summary"], result["doubts"], result["structure_found"]) == (None, [], None)
    frame = pd.read_csv(table)
    for feature in result["features"]:
        assert feature["variance"] == pytest.approx(frame[feature["name"]].var(ddof=0))
    share = sum(f["variance"] for f in result["features"]) / frame.iloc[:, 2:].var(ddof=0).sum()
    assert result["variance_share"] == pytest.approx(share)


def test_the_nearest_redundant_neighbour_is_the_most_correlated_kept_feature(quick_keepers, table):
    done = quick_keepers("select", table, "-k", 3, *COLUMNS, "--json")
    features = {feature["name"]: feature for feature in json.loads(done.stdout)["features"]}
    correlation = pd.read_csv(table)[list(features)].corr()
    for name, feature in features.items():
        others = correlation[name].drop(name)
        assert feature["neighbour"] == others.abs().idxmax()
        assert feature["correlation"] == pytest.approx(others[feature["neighbour"]])


def test_in_a_pipe_every_kept_feature_is_a_line(quick_keepers, table):
    done = quick_keepers("select", table, "-k", 5, *COLUMNS)
    lines = done.stdout.splitlines()
    assert lines[0].split("\t")[:3] == ["rank", "feature", "score"]
    assert len(lines) == 6


def report_data(path):
    page = path.read_text(encoding="utf-8")
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(block.group(1))


@pytest.mark.parametrize("k", [5, 260])
def test_json_and_report_name_the_same_neighbours(quick_keepers, tmp_path, k):
    """More kept features than the report used to compare, and fewer."""
    X = np.random.default_rng(0).standard_normal((30, 300))
    pd.DataFrame(X).add_prefix("g").to_csv(tmp_path / "wide.csv", index=False)
    method = ("--method", "variance")
    done = quick_keepers(
        "select", "wide.csv", "-k", k, *method, "--json", "--report", "report.html"
    )
    features = json.loads(done.stdout)["features"]
    data = report_data(tmp_path / "report.html")
    names = [data["prefix"] + rest for rest in data["names"]]
    assert [feature["name"] for feature in features] == names[:k]
    last = [
        [pair for pair in zip(near[::2], near[1::2], strict=True) if pair[0] < k][-1]
        for near in data["near"][:k]
    ]
    assert [feature["neighbour"] for feature in features] == [names[at] for at, _ in last]
    rounded = [f"{feature['correlation']:.2f}" for feature in features]
    assert rounded == [f"{hundredths / 100:.2f}" for _, hundredths in last]


def test_it_is_said_why_features_were_dropped(quick_keepers, table):
    options = ("--never", "g7", "--set", "max_correlation=0.8", "--method", "spcafs")
    done = quick_keepers("select", table, "-k", 3, *COLUMNS, *options, "--json")
    result = json.loads(done.stdout)
    dropped = {feature["name"]: feature for feature in result["dropped_features"]}
    assert result["dropped"] == {"ranked below k": 3, "never_keep": 1, "max_correlation": 1}
    assert dropped["g7"]["reason"] == "never_keep"
    (similar,) = {"g0", "g1"} & dropped.keys()  # they correlate with 0.95
    assert dropped[similar]["neighbour"] == ({"g0", "g1"} - {similar}).pop()
    said = quick_keepers("select", table, "-k", 3, *COLUMNS, *options).stderr
    assert "Not kept: 3 ranked below 3, " in said
    assert "1 too similar to a kept one (max_correlation=0.8)" in said
    assert "1 excluded by --never" in said


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
    words = "1 redundant with a kept one, 4 without structure, 1 excluded by --never."
    assert f"Not kept: {words}" in said


def test_the_time_includes_the_choice_of_settings(quick_keepers, grouped):
    chosen = json.loads(quick_keepers("select", grouped, *BY_SPCAFS, "--json").stdout)
    assert chosen["seconds"] > chosen["seconds_choosing"] > 0
    given = json.loads(quick_keepers("select", grouped, "-k", 2, *BY_SPCAFS, "--json").stdout)
    assert given["seconds_choosing"] == 0


@pytest.mark.parametrize("blocks", [(), ("--memory", "1G")])
@pytest.mark.parametrize("json_wanted", [False, True])
def test_the_terminal_says_if_more_features_are_kept_than_are_active(
    quick_keepers, table, blocks, json_wanted
):
    method = ("--method", "spcafs", "--set", "n_components=2")
    settings = (*method, "--set", "gamma=1e5", *blocks)
    columns = ("--drop", "sample", "--drop", "class") if blocks else COLUMNS
    told = ("--json",) if json_wanted else ()
    done = quick_keepers("select", table, "-k", 5, *columns, *settings, *told)
    assert done.returncode == 0, done.stderr
    note = " ".join(done.stderr.split())
    assert note.count("active (non-zero)") == 1
    assert "Only 2 of the 5 kept features have active (non-zero) rows of W with gamma=1e+05" in note
    assert "or keep at most 2 features (-k 2)." in note
    gamma = re.search(r"\(--set gamma=(\S+) should be small enough", note).group(1)
    if json_wanted:
        result = json.loads(done.stdout)
        assert (result["n_active"], result["n_kept_inactive"]) == (2, 3)
    smaller = (*method, "--set", f"gamma={gamma}", *blocks)
    for way_out in (("-k", 5, *smaller), ("-k", 2, *settings)):
        done = quick_keepers("select", table, *way_out, *columns, "--json")
        assert "active" not in done.stderr
        assert json.loads(done.stdout)["n_kept_inactive"] == 0
