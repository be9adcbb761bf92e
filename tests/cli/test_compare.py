"""`keepers compare`: every method without the classes, then k-means against them."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine

from keepers.metrics import clustering_accuracy

ROLES = ("--id", "sample", "--labels", "class")


def test_every_method_and_the_baselines_have_a_row_a_count(quick_keepers, table):
    asked = ("--methods", "auto,variance", "--ks", "2,4", "--repeats", 2, "--threads", 1)
    done = quick_keepers("compare", table, *ROLES, *asked)
    assert done.returncode == 0, done.stderr
    assert "ACC / NMI on table" in done.stdout
    assert "tuned" not in (done.stdout + done.stderr).lower()
    rows = json.loads(quick_keepers("compare", table, *ROLES, *asked, "--json").stdout)["results"]
    found = {(row["method"], row["k"]) for row in rows}
    assert {("AutoSelector", 2), ("AutoSelector", 4), ("Variance", 2), ("Random", 4)} <= found
    assert ("All features", 8) in found
    auto = next(row for row in rows if row["method"] == "AutoSelector" and row["k"] == 2)
    assert auto["acc"] == 1.0  # the first two columns tell the classes


def test_all_features_have_the_accuracy_of_scikit_learns_k_means(quick_keepers, table):
    asked = ("--methods", "variance", "--ks", "3", "--repeats", 3, "--threads", 1)
    done = quick_keepers("compare", table, *ROLES, *asked, "--json")
    frame = pd.read_csv(table)
    X = frame.drop(columns=["sample", "class"]).to_numpy()
    runs = [KMeans(2, n_init=1, random_state=seed).fit_predict(X) for seed in range(3)]
    expected = np.mean([clustering_accuracy(frame["class"], run) for run in runs])
    results = json.loads(done.stdout)["results"]
    found = next(each for each in results if each["method"] == "All features")
    assert found["acc"] == pytest.approx(expected)


def test_columns_of_different_units_are_standardised_and_it_is_said(quick_keepers, table, tmp_path):
    frame = pd.read_csv(table)
    numbers = frame.columns.drop(["sample", "class"])
    frame[numbers[-1]] *= 1e6
    frame.to_csv(tmp_path / "units.csv", index=False)
    asked = ("--methods", "variance", "--ks", "2", "--repeats", 1, "--threads", 1, "--json")
    done = quick_keepers("compare", "units.csv", *ROLES, *asked)
    assert json.loads(done.stdout)["scaling"] == "standardize-features"
    assert "different units: all are standardised" in done.stderr
    done = quick_keepers("compare", table, *ROLES, *asked)
    assert json.loads(done.stdout)["scaling"] == "raw"


def test_every_number_is_printed_once(quick_keepers, tmp_path):
    wine = load_wine(as_frame=True).frame.rename(columns={"target": "cultivar"})
    wine.to_csv(tmp_path / "wine.csv", index=False)
    asked = ("--methods", "variance,lapscore", "--ks", "3,8,13,50", "--repeats", 2, "--threads", 1)
    command = ("compare", "wine.csv", "--labels", "cultivar", *asked)
    done = quick_keepers(*command)
    assert "There are 13 features, so --ks 13 and more would keep all" in done.stderr
    heading, *rows = done.stdout.splitlines()[1:]
    assert [heading.count(f"k = {k}") for k in (3, 8, 13, 50)] == [1, 1, 1, 0]
    results = pd.DataFrame(json.loads(quick_keepers(*command, "--json").stdout)["results"])
    assert not results.duplicated(["method", "k"]).any()
    for row in rows:
        mine = results[[row.startswith(name) for name in results["method"]]]
        assert row.count(" / ") == len(mine)
        for acc in mine["acc"]:
            assert f"{acc:.3f} / " in row


def test_a_method_that_fails_is_told_and_the_others_go_on(quick_keepers, table, tmp_path):
    (tmp_path / "broken.py").write_text(
        "from keepers.exceptions import DataError\n"
        "from keepers import VarianceScore\n"
        "class Broken(VarianceScore):\n"
        "    def fit(self, X, y=None):\n"
        "        raise DataError('It cannot.')\n"
    )
    asked = ("--methods", "broken:Broken", "--ks", "2", "--repeats", 1, "--threads", 1)
    done = quick_keepers("compare", table, *ROLES, *asked)
    assert done.returncode == 0
    assert "Broken has no result. It cannot." in done.stderr
    assert "All features" in done.stdout


@pytest.mark.parametrize("ks", ["0", "ten", ",", "2,-1"])
def test_numbers_of_features_are_refused_before_the_data_are_read(quick_keepers, ks):
    done = quick_keepers("compare", "absent.csv", "--labels", "class", "--ks", ks)
    assert done.returncode == 2
    assert "--ks must be an integer >= 1, or a share" in done.stderr
