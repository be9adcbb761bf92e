"""`keepers select` and `keepers apply`, as a user runs them."""

import json

import numpy as np
import pandas as pd
import pytest

from cli.test_malformed_files import options_of
from data.test_malformed_files import SOUND
from keepers import SPCAFS, VarianceScore

COLUMNS = ("--id", "sample", "--labels", "class")


def kept_by_hand(table, k=3):
    frame = pd.read_csv(table, index_col="sample").drop(columns="class")
    return set(SPCAFS(k).fit(frame).get_feature_names_out())


def test_a_csv_becomes_a_smaller_csv_with_rows_and_classes_kept(keepers, table, tmp_path):
    done = keepers("select", table, "-k", 3, *COLUMNS, "--out", "kept.csv")
    assert done.returncode == 0, done.stderr
    kept, whole = (pd.read_csv(path, dtype=str) for path in (tmp_path / "kept.csv", table))
    features = [name for name in kept.columns if name not in ("sample", "class")]
    assert set(features) == kept_by_hand(table)
    assert kept[["sample", "class"]].equals(whole[["sample", "class"]])
    for name in features:  # Python's float reads every digit, which not every pandas does
        assert list(map(float, kept[name])) == list(map(float, whole[name]))


@pytest.mark.parametrize(
    "suffix", [".tsv", ".csv.gz", ".parquet", ".feather", ".npz", ".npy", ".mtx", ".h5ad"]
)
def test_the_suffix_says_the_format(keepers, table, tmp_path, suffix):
    out = tmp_path / f"kept{suffix}"
    done = keepers("select", table, "-k", 3, *COLUMNS, "--out", out)
    assert done.returncode == 0, done.stderr
    again = keepers("select", out, "-k", 3, "--json", *(() if suffix in PLAIN else COLUMNS))
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["n_features"] == 3


PLAIN = (".npz", ".npy", ".mtx", ".h5ad")


def test_json_is_for_machines(keepers, table):
    done = keepers("select", table, "-k", 3, *COLUMNS, "--json")
    result = json.loads(done.stdout)
    assert {feature["name"] for feature in result["features"]} == kept_by_hand(table)
    assert [feature["rank"] for feature in result["features"]] == [1, 2, 3]
    assert result["method"] == "SPCAFS"
    frame = pd.read_csv(table)
    for feature in result["features"]:
        assert feature["variance"] == pytest.approx(frame[feature["name"]].var(ddof=0))
    share = sum(f["variance"] for f in result["features"]) / frame.iloc[:, 2:].var(ddof=0).sum()
    assert result["variance_share"] == pytest.approx(share)


def test_the_nearest_redundant_neighbour_is_the_most_correlated_kept_feature(keepers, table):
    done = keepers("select", table, "-k", 3, *COLUMNS, "--json")
    features = {feature["name"]: feature for feature in json.loads(done.stdout)["features"]}
    correlation = pd.read_csv(table)[list(features)].corr()
    for name, feature in features.items():
        others = correlation[name].drop(name)
        assert feature["neighbour"] == others.abs().idxmax()
        assert feature["correlation"] == pytest.approx(others[feature["neighbour"]])


def test_in_a_pipe_every_kept_feature_is_a_line(keepers, table):
    done = keepers("select", table, "-k", 5, *COLUMNS)
    lines = done.stdout.splitlines()
    assert lines[0].split("\t")[:3] == ["rank", "feature", "score"]
    assert len(lines) == 6


def test_other_methods_and_their_settings_can_be_named(keepers, table):
    done = keepers("select", table, "-k", 2, *COLUMNS, "--method", "variance", "--json")
    frame = pd.read_csv(table).iloc[:, 2:]
    expected = set(VarianceScore(2).fit(frame).get_feature_names_out())
    assert {f["name"] for f in json.loads(done.stdout)["features"]} == expected
    done = keepers(
        "select",
        table,
        "-k",
        2,
        *COLUMNS,
        "--set",
        "gamma=2.5",
        "--set",
        "n_components=2",
        "--json",
    )
    params = json.loads(done.stdout)["params"]
    assert (params["gamma"], params["n_components"]) == (2.5, 2)


def test_a_recipe_keeps_the_same_columns_of_new_data(keepers, table, tmp_path):
    assert keepers("select", table, "-k", 3, *COLUMNS, "--save", "recipe.json").returncode == 0
    new = pd.read_csv(table).iloc[::-1, ::-1]
    new.to_csv(tmp_path / "new.csv", index=False)
    done = keepers("apply", "recipe.json", "new.csv", *COLUMNS, "--out", "kept.csv")
    assert done.returncode == 0, done.stderr
    kept = pd.read_csv(tmp_path / "kept.csv")
    assert set(kept.columns) == {"sample", "class"} | kept_by_hand(table)
    np.testing.assert_array_equal(kept["sample"], new["sample"])


def test_a_report_is_written_for_people(keepers, table, tmp_path):
    done = keepers("select", table, "-k", 3, *COLUMNS, "--report", "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    assert "keepers select" in page
    assert all(name in page for name in kept_by_hand(table))


def test_pixels_are_drawn_when_the_image_shape_is_given(keepers, tmp_path):
    done = keepers("select", "digits", "-k", 20, "--image", "8x8", "--report", "page.html")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "page.html").exists()


def test_existing_files_are_left_alone_without_force(keepers, table, tmp_path):
    for option in ("--out", "--report", "--save"):
        (tmp_path / "mine.csv").write_text("mine")
        done = keepers("select", table, "-k", 3, *COLUMNS, option, "mine.csv")
        assert done.returncode == 2
        assert "--force" in done.stderr
        assert (tmp_path / "mine.csv").read_text() == "mine"
    assert (
        keepers("select", table, "-k", 3, *COLUMNS, "--out", "mine.csv", "--force").returncode == 0
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "DATA"),
        (["table.csv"], 2, "-k"),
        (["table.csv", "-k", "0", *COLUMNS], 2, "-k"),
        (["table.csv", "-k", "99", *COLUMNS], 2, "8"),
        (["table.csv", "-k", "3"], 1, "--labels"),
        (["table.csv", "-k", "3", "--id", "sampel"], 1, "sampel"),
        (["table.csv", "-k", "3", *COLUMNS, "--method", "spca"], 2, "Did you mean 'spcafs'"),
        (["table.csv", "-k", "3", *COLUMNS, "--set", "gama=1"], 2, "gamma"),
        (["table.csv", "-k", "3", *COLUMNS, "--set", "gamma=-1"], 2, "gamma"),
        (["table.csv", "-k", "3", *COLUMNS, "--image", "3x3", "--report", "p.html"], 2, "3x3"),
        (["table.csv", "-k", "3", *COLUMNS, "--image", "big"], 2, "32x32"),
        (["table.csv", "-k", "3", *COLUMNS, "--out", "kept.docx"], 2, ".csv"),
        (["table.csv", "-k", "3", *COLUMNS, "--out", "no/such/kept.csv"], 2, "folder"),
        (["table.csv", "-k", "3", *COLUMNS, "--max-size", "10"], 1, "--max-size"),
        (["absent.csv", "-k", "3"], 1, "absent.csv"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence_with_the_way_out(
    keepers, table, tmp_path, arguments, code, said
):
    before = sorted(tmp_path.iterdir())
    done = keepers("select", *arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_missing_values_are_named(keepers, tmp_path):
    (tmp_path / "gaps.csv").write_text("a,b,c\n1,2,3\n4,,6\n7,8,1\n")
    done = keepers("select", "gaps.csv", "-k", 1)
    assert done.returncode == 1
    assert "NaN or infinity is in 1 of 3 columns (how often): b (1)" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_traceback_is_shown_only_with_debug(keepers):
    done = keepers("select", "absent.csv", "-k", 3, "--debug")
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_names_cannot_steer_the_terminal(keepers, tmp_path):
    (tmp_path / "t.csv").write_text('"\x1b[31mred","\u202ereversed",c\n1,2,3\n4,9,6\n7,8,1\n')
    done = keepers("select", "t.csv", "-k", 3)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "\\x1b[31mred" in done.stdout


@pytest.mark.parametrize("name", SOUND)
def test_a_file_of_every_format_is_read_by_the_installed_command(keepers, tmp_path, name):
    make, roles = SOUND[name]
    path = tmp_path / name
    path.write_bytes(make(np.random.default_rng(0)))
    done = keepers("select", path, "-k", 2, "--method", "variance", "--json", *options_of(roles))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["n_samples"], len(result["features"])) == (12, 2)
