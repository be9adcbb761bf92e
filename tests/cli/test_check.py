"""The command that looks at a table."""

import json
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def college(tmp_path):
    """As the table of US colleges is written by R: names in the first column, mixed units."""
    random = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame(
        {
            "Private": random.choice(["Yes", "No"], n),
            "Apps": random.integers(80, 48_000, n),
            "Accept": random.integers(70, 26_000, n),
            "Outstate": random.integers(2_000, 21_000, n),
            "S.F.Ratio": random.normal(14, 4, n).round(1),
            "Grad.Rate": random.integers(20, 100, n),
        },
        index=[f"College number {at} of {at % 7}" for at in range(n)],
    )
    frame.to_csv("college.csv", index_label="")
    return "college.csv"


@pytest.fixture(autouse=True)
def in_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_colleges_are_samples_and_their_names_no_features(quick_keepers, college):
    done = quick_keepers("check", college)
    assert done.returncode == 0, done.stderr
    assert "Features seem to be rows" not in done.stdout
    assert "Yes or no, read as 1 and 0: 'Private'." in done.stdout
    assert "the columns have different units" in done.stdout
    assert "Identifier" not in done.stdout  # the names were read as the names of the rows


def test_a_table_without_findings_says_so_and_how_to_go_on(quick_keepers):
    random = np.random.default_rng(1)
    pd.DataFrame(random.normal(size=(50, 4)), columns=list("abcd")).to_csv("t.csv", index=False)
    done = quick_keepers("check", "t.csv")
    assert done.stdout.splitlines() == [
        "t: 50 rows, 4 columns (4 numbers).",
        "The table is ready.",
        "keepers select t.csv",
    ]


def test_findings_for_machines(quick_keepers, college):
    found = json.loads(quick_keepers("check", college, "--json").stdout)
    assert found["n_rows"] == 120
    assert found["kinds"]["Private"] == "boolean"
    assert {"about", "sentence", "option", "columns", "matters"} == set(found["findings"][0])


def test_a_column_is_what_the_user_says(quick_keepers):
    frame = pd.DataFrame({"id": range(40), "x": np.random.default_rng(2).normal(size=40)})
    frame.to_csv("t.csv", index=False)
    assert "Identifier" in quick_keepers("check", "t.csv").stdout
    assert "Identifier" not in quick_keepers("check", "t.csv", "--as", "id=number").stdout
    unknown = quick_keepers("check", "t.csv", "--as", "idd=number")
    assert unknown.returncode == 1
    assert "Did you mean 'id'?" in unknown.stderr


@pytest.mark.parametrize("names", [list("abcdef"), ["reading", "writing", "algebra", "logic"]])
def test_people_with_several_measurements_that_agree_are_not_turned(quick_keepers, names):
    random = np.random.default_rng(0)
    X = 3 * random.integers(0, 3, 60)[:, None] + random.normal(size=(60, len(names)))
    frame = pd.DataFrame(X, columns=names)
    frame.insert(0, "name", [f"p{at}" for at in range(60)])
    frame.to_csv("people.csv", index=False)
    assert "--transpose" not in quick_keepers("check", "people.csv").stdout


RNG = np.random.default_rng(0)
IMPOSSIBLE = {
    "one row": pd.DataFrame({"a": [1.0], "b": [2.0]}),
    "nothing varies": pd.DataFrame({"a": [1.0] * 30, "b": [2.0] * 30}),
    "no feature": pd.DataFrame({"id": range(1, 31), "day": ["2024-01-02"] * 30}),
    "infinite values in all that varies": pd.DataFrame(
        {"a": [*RNG.normal(size=29), np.inf], "b": [3.5] * 30}
    ),
    "infinite values in all columns": pd.DataFrame(
        {"a": [*RNG.normal(size=29), np.inf], "b": [np.inf, *RNG.normal(size=29)]}
    ),
}


@pytest.mark.parametrize("why", IMPOSSIBLE)
def test_no_command_is_shown_where_all_must_fail(quick_keepers, why):
    IMPOSSIBLE[why].to_csv("t.csv", index=False)
    done = quick_keepers("check", "t.csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("No selection is possible")
    assert "keepers select" not in done.stdout
    assert json.loads(quick_keepers("check", "t.csv", "--json").stdout)["command"] is None
    assert quick_keepers("select", "t.csv").returncode == 1


@pytest.mark.parametrize("names", [["*", "c"], ["x,y", "c"], ["[a]", "-k"], ["it's", "?"]])
def test_columns_with_odd_names_are_left_out_by_the_command(quick_keepers, names):
    frame = pd.DataFrame(RNG.normal(size=(30, 6)), columns=["p", "q", "r", "s", *names])
    frame.loc[3, names] = np.inf
    frame.to_csv("t.csv", index=False)
    words = shlex.split(quick_keepers("check", "t.csv").stdout.splitlines()[-1])
    done = quick_keepers(*words[1:], "--method", "variance", "-k", 4)
    assert done.returncode == 0, done.stderr
    kept = [line.split("\t")[1] for line in done.stdout.splitlines()[1:]]
    assert sorted(kept) == ["p", "q", "r", "s"]


def test_the_command_drops_no_row_and_no_copy_by_itself(quick_keepers):
    X = RNG.normal(size=(60, 8)) + 3 * RNG.normal(size=(60, 1))
    X[17] += 60 * RNG.normal(size=8)
    X[40:43] = 0.0
    frame = pd.DataFrame(X).add_prefix("v").assign(copy=X[:, 0], near=X[:, 1] + 1e-3 * X[:, 2])
    frame.to_csv("t.csv", index=False)
    *findings, command = quick_keepers("check", "t.csv").stdout.splitlines()
    shown = "\n".join(findings)
    assert "Nearly duplicated columns" in shown
    for option in ("--drop-samples 18", "--drop copy"):
        assert f"[{option}]" in shown
    assert command == "keepers select t.csv"


def test_a_folder_gets_no_option_that_folders_do_not_take(quick_keepers, tmp_path):
    (tmp_path / "parts").mkdir()
    profile = RNG.gamma(2.0, 2.0, (400, 1))
    frame = pd.DataFrame(profile + 0.3 * RNG.normal(size=(400, 6))).add_prefix("s")
    frame.iloc[5] = 0.0
    frame.insert(0, "gene", [f"G{at}x" for at in range(400)])
    frame.to_csv("one.csv", index=False)
    frame.to_csv("parts/1.csv", index=False)
    assert "--transpose" in quick_keepers("check", "one.csv").stdout.splitlines()[-1]
    done = quick_keepers("check", "parts")
    assert "Features seem to be in rows" in done.stdout
    assert "[--transpose" not in done.stdout
    assert quick_keepers(*done.stdout.splitlines()[-1].split()[1:], "-k", 2).returncode == 0


def test_it_does_not_wait_for_libraries_that_it_does_not_use():
    pd.DataFrame({"a": [1, 2, 3], "b": [2, 3, 1]}).to_csv("t.csv", index=False)
    code = """
import sys
from keepers.app import app
try:
    app(["check", "t.csv"])
except SystemExit:
    pass
unused = {"sklearn", "scipy.linalg", "scipy.stats", "narwhals", "pandas", "matplotlib", "dask"}
print(unused & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "The table is ready." in done.stdout
    assert done.stdout.splitlines()[-1] == "set()"
