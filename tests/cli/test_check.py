"""The command that looks at a table."""

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")


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
    assert "Yes or no, as 1 and 0: 'Private'." in done.stdout
    assert "the columns have different units" in done.stdout
    assert "Identifier" not in done.stdout  # the names were read as the names of the rows


def test_a_table_without_findings_says_so_and_how_to_go_on(quick_keepers):
    random = np.random.default_rng(1)
    pd.DataFrame(random.normal(size=(50, 4)), columns=list("abcd")).to_csv("t.csv", index=False)
    done = quick_keepers("check", "t.csv")
    assert done.stdout.splitlines() == [
        "t: 50 rows, 4 columns (4 numbers).",
        "Nothing stands in the way of a selection.",
        "keepers select t.csv",
    ]


def test_findings_for_machines(quick_keepers, college):
    found = json.loads(quick_keepers("check", college, "--json").stdout)
    assert found["n_rows"] == 120
    assert found["kinds"]["Private"] == "boolean"
    assert {"about", "sentence", "option", "columns", "matters"} == set(found["findings"][0])


def test_names_cannot_steer_the_terminal_or_break_the_command(quick_keepers):
    frame = pd.DataFrame({"a": range(30), "b\x1b[2J": [1.5, np.nan] * 15})
    frame.to_csv("odd name;rm.csv", index=False)
    done = quick_keepers("check", "odd name;rm.csv")
    assert "\x1b" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("keepers select 'odd name;rm.csv'")


def test_a_column_is_what_the_user_says(quick_keepers):
    frame = pd.DataFrame({"id": range(40), "x": np.random.default_rng(2).normal(size=40)})
    frame.to_csv("t.csv", index=False)
    assert "Identifier" in quick_keepers("check", "t.csv").stdout
    assert "Identifier" not in quick_keepers("check", "t.csv", "--as", "id=number").stdout
    unknown = quick_keepers("check", "t.csv", "--as", "idd=number")
    assert unknown.returncode == 1
    assert "Did you mean 'id'?" in unknown.stderr


def test_a_broken_file_is_one_sentence(quick_keepers, tmp_path):
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    done = quick_keepers("check", "broken.parquet")
    assert done.returncode == 1
    assert "broken.parquet" in done.stderr
    assert "Traceback" not in done.stderr
