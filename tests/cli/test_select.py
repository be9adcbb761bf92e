"""`keepers select` and `keepers apply`, as a user runs them."""

import html
import inspect
import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest

from cli.test_malformed_files import options_of
from data.test_malformed_files import SOUND
from keepers import SPCAFS, VarianceScore, select_settings
from keepers.cli.settings import HAS_AN_OPTION, METHODS, NOT_FOR_A_COMMAND, selector_class
from keepers.data import open_table

COLUMNS = ("--id", "sample", "--labels", "class")


def kept_by_hand(table, k=3):
    frame = pd.read_csv(table, index_col="sample").drop(columns="class")
    return set(SPCAFS(k).fit(frame).get_feature_names_out())


def chosen_by_hand(grouped):
    X = open_table(grouped, identifier="sample", labels="class").X
    return select_settings(X, random_state=0)


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
def test_the_suffix_says_the_format(quick_keepers, table, tmp_path, suffix):
    out = tmp_path / f"kept{suffix}"
    done = quick_keepers("select", table, "-k", 3, *COLUMNS, "--out", out)
    assert done.returncode == 0, done.stderr
    again = quick_keepers("select", out, "-k", 3, "--json", *(() if suffix in PLAIN else COLUMNS))
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["n_features"] == 3


PLAIN = (".npz", ".npy", ".mtx", ".h5ad")


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
        *COLUMNS,
        "--set",
        "gamma=2.5",
        "--set",
        "n_components=2",
        "--json",
    )
    params = json.loads(done.stdout)["params"]
    assert (params["gamma"], params["n_components"]) == (2.5, 2)


def test_features_stay_and_go_by_name(quick_keepers, table):
    chosen = ("--keep", "g7", "--never", "g0", "--never", "g1")
    done = quick_keepers("select", table, "-k", 3, *COLUMNS, *chosen, "--json")
    assert done.returncode == 0, done.stderr
    frame = pd.read_csv(table).iloc[:, 2:]
    by_hand = SPCAFS(3, must_keep=["g7"], never_keep=["g0", "g1"], random_state=0).fit(frame)
    names = [feature["name"] for feature in json.loads(done.stdout)["features"]]
    assert names == by_hand.top().names.tolist()
    assert names[0] == "g7"


@pytest.mark.parametrize("method", ["spcafs", "variance", "mcfs"])
def test_kept_features_can_be_held_apart_with_every_method(quick_keepers, table, method):
    done = quick_keepers(
        *("select", table, "-k", 2, *COLUMNS, "--method", method),
        *("--set", "max_correlation=0.8", "--json"),
    )
    assert done.returncode == 0, done.stderr
    kept = [feature["name"] for feature in json.loads(done.stdout)["features"]]
    assert abs(pd.read_csv(table)[kept].corr().iloc[0, 1]) <= 0.8
    assert not {"g0", "g1"} <= set(kept)  # they tell the classes, and correlate with 0.95


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


def test_the_page_is_written_with_features_that_must_go(quick_keepers, grouped, tmp_path):
    chosen = ("-k", 4, "--keep", "g7", "--never", "g2", "--report", "page.html")
    done = quick_keepers("select", grouped, *COLUMNS, *chosen)
    assert done.returncode == 0, done.stderr
    assert "Asked for 4, it keeps" in (tmp_path / "page.html").read_text(encoding="utf-8")


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


def test_a_recipe_keeps_the_same_columns_of_new_data(quick_keepers, table, tmp_path):
    assert (
        quick_keepers("select", table, "-k", 3, *COLUMNS, "--save", "recipe.json").returncode == 0
    )
    new = pd.read_csv(table).iloc[::-1, ::-1]
    new.to_csv(tmp_path / "new.csv", index=False)
    done = quick_keepers("apply", "recipe.json", "new.csv", *COLUMNS, "--out", "kept.csv")
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


def test_pixels_are_drawn_when_the_image_shape_is_given(quick_keepers, tmp_path):
    done = quick_keepers("select", "digits", "-k", 20, "--image", "8x8", "--report", "page.html")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "page.html").exists()


def test_existing_files_are_left_alone_without_force(quick_keepers, table, tmp_path):
    for option in ("--out", "--report", "--save"):
        (tmp_path / "mine.csv").write_text("mine")
        done = quick_keepers("select", table, "-k", 3, *COLUMNS, option, "mine.csv")
        assert done.returncode == 2
        assert "--force" in done.stderr
        assert (tmp_path / "mine.csv").read_text() == "mine"
    assert (
        quick_keepers("select", table, "-k", 3, *COLUMNS, "--out", "mine.csv", "--force").returncode
        == 0
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "DATA"),
        (["table.csv", *COLUMNS, "--set", "gamma=2"], 2, "Give -k too, or leave gamma out"),
        (["table.csv", *COLUMNS, "--set", "scaling=big"], 2, "scaling must lie in [0, 1]"),
        (["table.csv", "-k", "3", *COLUMNS, "--set", "must_keep=[1]"], 2, "--keep"),
        (["table.csv", "-k", "3", *COLUMNS, "--keep", "G1"], 1, "Did you mean 'g1'?"),
        (["table.csv", "-k", "3", *COLUMNS, "--never", "class"], 1, "--never must name features"),
        (["table.csv", "-k", "3", *COLUMNS, "--keep", "g1", "--never", "g1"], 2, "'g1'"),
        (["table.csv", "-k", "3", *COLUMNS, "--keep", "g1", "--method", "mcfs"], 2, "spcafs"),
        (["table.csv", "-k", "1", *COLUMNS, "--keep", "g1", "--keep", "g2"], 2, "at least 2"),
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
    quick_keepers, table, tmp_path, arguments, code, said
):
    before = sorted(tmp_path.iterdir())
    done = quick_keepers("select", *arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_missing_values_are_named(quick_keepers, tmp_path):
    (tmp_path / "gaps.csv").write_text("a,b,c\n1,2,3\n4,,6\n7,8,1\n")
    done = quick_keepers("select", "gaps.csv", "-k", 1)
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
def test_a_file_of_every_format_is_read_by_the_command(quick_keepers, tmp_path, name):
    make, roles = SOUND[name]
    path = tmp_path / name
    path.write_bytes(make(np.random.default_rng(0)))
    done = quick_keepers(
        "select", path, "-k", 2, "--method", "variance", "--json", *options_of(roles)
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["n_samples"], len(result["features"])) == (12, 2)


@pytest.mark.parametrize("in_blocks", [(), ("--memory", "1G")])
def test_a_doubtful_first_line_is_told_and_can_be_decided(quick_keepers, tmp_path, in_blocks):
    X = np.random.default_rng(0).integers(0, 9, size=(30, 3))
    X[0] = 0, 1, 2
    np.savetxt(tmp_path / "a.csv", X, delimiter=",", fmt="%d")
    command = ("select", "a.csv", "-k", 1, "--json", *in_blocks)
    doubtful = quick_keepers(*command)
    assert "note: a.csv: The first line (0, 1, 2) is read as column names" in doubtful.stderr
    for option, n_samples in (("--header", 29), ("--no-header", 30)):
        decided = quick_keepers(*command, option)
        assert "first line" not in decided.stderr
        assert json.loads(decided.stdout)["n_samples"] == n_samples
    assert json.loads(doubtful.stdout)["n_samples"] == 29


@pytest.mark.parametrize("method", METHODS)
def test_settings_outside_their_rules_are_refused_before_the_data_are_read(quick_keepers, method):
    for name in inspect.signature(selector_class(method)).parameters:
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
    done = quick_keepers("select", table, "-k", 2, *COLUMNS, *settings)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("seed", ["-1", "4294967296", "1" + "0" * 30, "1.5"])
@pytest.mark.parametrize("command", ["select", "tune", "compare"])
def test_a_seed_outside_its_range_is_refused_before_the_data_are_read(quick_keepers, command, seed):
    done = quick_keepers(command, "absent.csv", "--seed", seed)
    assert done.returncode == 2
    assert "--seed" in done.stderr
    assert "absent.csv" not in done.stderr


def test_the_largest_seed_is_taken(quick_keepers, table):
    done = quick_keepers("select", table, "-k", 2, *COLUMNS, "--seed", "4294967295")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("method", "memory"),
    [("spcafs", ()), ("variance", ()), ("lapscore", ()), ("spcafs", ("--memory", "1G"))],
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
    done = quick_keepers("select", table, "-k", 2, *COLUMNS, *groups, "--json")
    assert done.returncode == 0, done.stderr
    frame = pd.read_csv(table).iloc[:, 2:]
    by_hand = SPCAFS(2, groups=[["g0", "g5"]], random_state=0).fit(frame).top().names.tolist()
    assert [feature["name"] for feature in json.loads(done.stdout)["features"]] == by_hand
    done = quick_keepers("select", table, "-k", 2, *COLUMNS, "--set", "groups=[['g0'],['g0']]")
    assert "Groups must not overlap; 'g0'" in done.stderr


def test_fewer_active_rows_than_features_asked_for_are_said_once(quick_keepers, table):
    done = quick_keepers("select", table, "-k", 5, *COLUMNS, "--set", "gamma=1e6")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("5 features are to be kept, but only 1 row of W is active") == 1
    quiet = quick_keepers("select", table, "-k", 5, *COLUMNS, "--set", "gamma=1e6", "--quiet")
    assert quiet.stderr == ""
