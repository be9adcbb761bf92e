"""A selection as JSON, in a pipe and in words."""

import json

import pandas as pd
import pytest

from keepers import SPCAFS

COLUMNS = ("--id", "sample", "--labels", "class")


def kept_by_hand(table, k=3):
    frame = pd.read_csv(table, index_col="sample").drop(columns="class")
    return set(SPCAFS(k).fit(frame).get_feature_names_out())


def test_json_is_for_machines(quick_keepers, table):
    done = quick_keepers("select", table, "-k", 3, *COLUMNS, "--json")
    result = json.loads(done.stdout)
    assert {feature["name"] for feature in result["features"]} == kept_by_hand(table)
    assert [feature["rank"] for feature in result["features"]] == [1, 2, 3]
    assert result["method"] == "SPCAFS"
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
