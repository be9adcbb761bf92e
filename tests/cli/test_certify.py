"""The command that certifies a list of features; values against NumPy's eigenvalues."""

import itertools
import json
import math
import re
import subprocess

import numpy as np
import pandas as pd
import pytest

from cli.conftest import COMMAND
from keepers import datasets
from keepers.cli.certify import as_components
from keepers.exceptions import ParameterError

# Standard deviations of the columns g0, g1, ...; g1 repeats part of g0.
SIZES = np.array([4.0, 3.5, 2.0, 1.5, 1.0, 0.5, 0.3, 0.2])
LISTED = ("g0", "g1", "g4")


@pytest.fixture(autouse=True)
def in_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def frame():
    X = np.random.default_rng(0).standard_normal((40, 8)) * SIZES
    X[:, 1] += X[:, 0]
    return pd.DataFrame(X, columns=[f"g{j}" for j in range(8)])


@pytest.fixture
def data(frame):
    frame.to_csv("t.csv", index=False)
    return "t.csv"


@pytest.fixture
def listed(tmp_path):
    (tmp_path / "list.txt").write_text("\n".join(LISTED) + "\n")
    return "list.txt"


def held(frame, names, m):
    """The variance that PCA of these columns explains with m components, by NumPy."""
    covariance = np.atleast_2d(np.cov(frame[list(names)].to_numpy(), rowvar=False, bias=True))
    return float(np.linalg.eigvalsh(covariance)[::-1][:m].sum())


def most_held(frame, k, m):
    """The most that any k columns hold, by trying them all."""
    return max(held(frame, names, m) for names in itertools.combinations(frame.columns, k))


def found_by(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def percent_in(sentence):
    return float(re.search(r"at least ([\d.]+) %", sentence).group(1))


def test_the_sentence_is_the_result_and_the_numbers_behind_it_go_to_the_error_stream(
    quick_keepers, frame, data, listed
):
    done = quick_keepers("certify", data, "--features", listed, "-m", 2)
    assert done.returncode == 0, done.stderr
    value, best = held(frame, LISTED, 2), most_held(frame, 3, 2)
    (sentence,) = done.stdout.splitlines()
    assert sentence.startswith("These 3 features hold at least ")
    assert "of the variance that any 3 features could hold (2 components" in sentence
    # A guarantee never says more than the truth; here the bound is tight, so it says no less.
    assert percent_in(sentence) <= 100 * value / best
    assert percent_in(sentence) == pytest.approx(100 * value / best, abs=0.2)
    numbers = re.search(
        r"Variance held: (\S+)\. No 3 features hold more than (\S+) \(.*?\); (\S+) is", done.stderr
    )
    assert [float(number) for number in numbers.groups()] == pytest.approx(
        [value, best, best], rel=2e-3
    )
    assert "In every best set: 'g0', 'g1', 'g2'.\n" in done.stderr
    assert "In the list, but in no best set: 'g4'.\n" in done.stderr


def test_quiet_leaves_the_sentence_alone(quick_keepers, data, listed):
    done = quick_keepers("certify", data, "--features", listed, "-m", 2, "--quiet")
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


@pytest.mark.parametrize("m", [1, 2, 3])
def test_json_has_the_values_of_numpy(quick_keepers, frame, data, listed, m):
    found = found_by(quick_keepers("certify", data, "--features", listed, "-m", m, "--json"))
    best = most_held(frame, 3, m)
    assert found["data"] == "t"
    assert (found["n_features"], found["n_components"]) == (3, m)
    assert found["features_names"] == list(LISTED)
    assert found["value"] == pytest.approx(held(frame, LISTED, m))
    assert found["best_known"] == pytest.approx(best)
    assert found["best_known"] == pytest.approx(held(frame, found["best_features_names"], m))
    assert best * (1 - 1e-9) <= found["upper_bound"] <= best * 1.01
    assert found["share"] == pytest.approx(found["value"] / found["upper_bound"])


@pytest.mark.parametrize("m", [1, 2, 3])
def test_what_is_proved_holds_for_the_best_of_all_sets(quick_keepers, frame, data, listed, m):
    found = found_by(quick_keepers("certify", data, "--features", listed, "-m", m, "--json"))
    best = max(itertools.combinations(frame.columns, 3), key=lambda names: held(frame, names, m))
    assert set(found["proved_in_names"]) <= set(best)
    assert not set(found["proved_out_names"]) & set(best)
    assert found["proved_in_names"]
    assert found["proved_out_names"]


def test_a_list_may_have_any_form(quick_keepers, tmp_path, frame, data):
    (tmp_path / "windows.txt").write_bytes(b"\xef\xbb\xbfg0\r\ng1\r\n\r\n# old\r\ng4\r\n")
    (tmp_path / "scores.csv").write_text("feature,rank,kept\ng0,1,yes\ng1,2,yes\ng4,3,yes\ng2,4,no")
    (tmp_path / "genes.tsv").write_text("gene\tp\ng0\t1\ng1\t1\ng4\t1\n")
    for path in ("windows.txt", "scores.csv", "genes.tsv"):
        found = found_by(quick_keepers("certify", data, "--features", path, "-m", 2, "--json"))
        assert found["features_names"] == list(LISTED), path
        assert found["value"] == pytest.approx(held(frame, LISTED, 2))


def test_the_list_may_come_from_the_standard_input(frame, data):

    done = subprocess.run(
        [str(COMMAND), "certify", data, "--features", "-", "-m", "2", "--json"],
        input="g0\ng1\ng4\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found_by(done)["value"] == pytest.approx(held(frame, LISTED, 2))


@pytest.mark.parametrize("saved", ["--save", "--scores"])
def test_a_recipe_and_a_file_of_scores_give_what_was_kept(quick_keepers, frame, data, saved):
    path = "kept.json" if saved == "--save" else "kept.csv"
    kept = quick_keepers("select", data, "-k", 3, "--method", "variance", saved, path, "--json")
    names = [feature["name"] for feature in found_by(kept)["features"]]
    found = found_by(quick_keepers("certify", data, "--features", path, "-m", 2, "--json"))
    assert found["features_names"] == names
    assert found["value"] == pytest.approx(held(frame, names, 2))


def test_components_may_be_a_share_of_the_variance(quick_keepers, frame, data, listed):
    values = np.linalg.eigvalsh(np.cov(frame, rowvar=False, bias=True))[::-1]
    m = int(np.argmax(np.cumsum(values) / values.sum() >= 0.8)) + 1
    assert 1 < m <= 3
    found = found_by(quick_keepers("certify", data, "--features", listed, "-m", 0.8, "--json"))
    assert found["n_components"] == m
    assert found["value"] == pytest.approx(held(frame, LISTED, m))


@pytest.mark.parametrize("given", [(), ("-m", "auto"), ("--components", " auto ")])
def test_components_may_be_left_to_the_table(quick_keepers, frame, data, listed, given):
    found = found_by(quick_keepers("certify", data, "--features", listed, *given, "--json"))
    m = found["n_components"]
    assert 1 <= m <= 3
    assert found["value"] == pytest.approx(held(frame, LISTED, m))


@pytest.mark.parametrize(
    "word", ["0", "-1", "1.0", "1.5", "nan", "inf", "two", "", "²", "3 4", "0.0", "9" * 5000]
)
def test_other_numbers_of_components_are_refused(quick_keepers, data, listed, word):
    done = quick_keepers("certify", data, "--features", listed, f"--components={word}")
    assert done.returncode == 2
    assert "--components must be an integer >= 1, a share in (0, 1), or auto; got" in done.stderr
    assert len(done.stderr) < 400
    assert done.stdout == ""


def test_words_become_components():
    assert (as_components(" 12 "), as_components("0.8"), as_components("auto")) == (12, 0.8, "auto")
    with pytest.raises(ParameterError, match="got 'Auto'"):
        as_components("Auto")


def test_the_tight_bound_is_lower_and_both_are_valid(quick_keepers, data, frame, listed):
    options = ("certify", data, "--features", listed, "-m", 2, "--json")
    tight, loose = (found_by(quick_keepers(*options, which)) for which in ("--tight", "--no-tight"))
    best = most_held(frame, 3, 2)
    assert tight["bound"] == "tight"
    assert loose["bound"] != "tight"
    assert best * (1 - 1e-9) <= tight["upper_bound"] < loose["upper_bound"]
    assert tight["value"] == pytest.approx(loose["value"])


def test_scaling_is_that_of_the_columns(quick_keepers, frame, data, listed):
    done = quick_keepers(
        *("certify", data, "--features", listed, "-m", 2, "--scale", "standardize-features"),
        "--json",
    )
    scaled = frame / frame.std(ddof=0)
    found = found_by(done)
    assert found["value"] == pytest.approx(held(scaled, LISTED, 2))
    best = most_held(scaled, 3, 2)
    assert found["best_known"] <= best * (1 + 1e-9)
    assert found["upper_bound"] >= best * (1 - 1e-9)


def test_a_table_is_prepared_as_for_a_selection(quick_keepers, frame, listed):
    gaps = frame.copy()
    gaps.loc[[3, 17], "g4"] = np.nan
    given = gaps.assign(sample=[f"s{i}" for i in range(40)], group=["a", "b"] * 20)
    given.to_csv("given.csv", index=False)
    refused = quick_keepers("certify", "given.csv", "--features", listed, "-m", 2)
    assert refused.returncode == 1
    assert "--missing" in refused.stderr
    options = ("--id", "sample", "--labels", "group", "--missing", "mean", "--json")
    found = found_by(quick_keepers("certify", "given.csv", "--features", listed, "-m", 2, *options))
    assert found["value"] == pytest.approx(held(gaps.fillna(gaps.mean()), LISTED, 2))


def test_identifiers_are_set_aside_and_that_is_said(quick_keepers, frame, listed):
    frame.assign(sample=[f"s{i}" for i in range(40)]).to_csv("given.csv", index=False)
    done = quick_keepers("certify", "given.csv", "--features", listed, "-m", 2)
    assert done.returncode == 0
    assert "Set aside as identifier: 'sample'" in done.stderr


def test_features_may_be_rows(quick_keepers, frame, listed):
    turned = frame.T
    turned.columns = [f"s{i}" for i in range(40)]
    turned.to_csv("turned.csv", index_label="gene")
    options = ("-m", 2, "--transpose", "--id", "gene", "--json")
    found = found_by(quick_keepers("certify", "turned.csv", "--features", listed, *options))
    assert found["value"] == pytest.approx(held(frame, LISTED, 2))


def test_a_bundled_data_set_goes_by_its_name(quick_keepers, tmp_path):
    X, names, _ = datasets.load("srbct")
    chosen = [str(name) for name in names[:20]]
    (tmp_path / "genes.txt").write_text("\n".join(chosen))
    found = found_by(
        quick_keepers("certify", "srbct", "--features", "genes.txt", "-m", 3, "--json")
    )
    assert found["value"] == pytest.approx(held(pd.DataFrame(X, columns=names), chosen, 3))


def write_parts(frame, suffix, folder):
    for number, start in enumerate(range(0, len(frame), 15)):
        rows = frame[start : start + 15]
        path = folder / f"part-{number}{suffix}"
        rows.to_csv(path, index=False) if suffix == ".csv" else rows.to_parquet(path, index=False)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_folder_gives_what_the_single_file_gives(
    quick_keepers, frame, data, listed, tmp_path, suffix
):
    pytest.importorskip("pyarrow")
    (tmp_path / "parts").mkdir()
    write_parts(frame, suffix, tmp_path / "parts")
    options = ("--features", listed, "-m", 2, "--json")
    whole = found_by(quick_keepers("certify", data, *options))
    for parts in ("parts", f"parts/part-*{suffix}"):
        found = found_by(quick_keepers("certify", parts, *options))
        assert found["value"] == pytest.approx(held(frame, LISTED, 2))
        for number in ("upper_bound", "best_known", "share"):
            assert found[number] == pytest.approx(whole[number])
        for names in ("features_names", "proved_in_names", "proved_out_names"):
            assert found[names] == whole[names]


def test_gaps_of_a_folder_are_filled(quick_keepers, frame, listed, tmp_path):
    pytest.importorskip("pyarrow")
    gaps = frame.copy()
    gaps.loc[[3, 17], "g4"] = np.nan
    (tmp_path / "parts").mkdir()
    write_parts(gaps, ".parquet", tmp_path / "parts")
    options = ("--features", listed, "-m", 2, "--missing", "mean", "--json")
    found = found_by(quick_keepers("certify", "parts", *options))
    assert found["value"] == pytest.approx(held(gaps.fillna(gaps.mean()), LISTED, 2))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--scale", "unit-features"), "--scale unit-features needs the table in memory"),
        (("--transpose",), "--transpose needs the table in memory"),
        (("--drop-samples", "1"), "--drop-samples and --drop-zero-rows need the table in memory"),
        (("--drop-zero-rows",), "--drop-samples and --drop-zero-rows need the table in memory"),
    ],
)
def test_what_blocks_cannot_give_is_refused(
    quick_keepers, frame, listed, tmp_path, option, message
):
    pytest.importorskip("pyarrow")
    (tmp_path / "parts").mkdir()
    write_parts(frame, ".parquet", tmp_path / "parts")
    done = quick_keepers("certify", "parts", "--features", listed, *option)
    assert done.returncode == 2
    assert message in done.stderr


def test_all_faults_of_a_list_are_told_at_once(quick_keepers, data, tmp_path):
    (tmp_path / "bad.txt").write_text("g0\ng0\nnone\nG1\n")
    done = quick_keepers("certify", data, "--features", "bad.txt", "-m", 4)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "keepers: features must name columns of the table; none of its 8 is called 'none', 'G1' "
        "(did you mean 'g1'?).",
        "features must hold every feature once; repeated: 'g0'.",
        "n_components must be at most the number of features in the set, 3; got 4. Give fewer "
        "components, or more features.",
    ]
    assert done.stdout == ""


def test_a_component_more_than_features_is_refused(quick_keepers, data, listed):
    done = quick_keepers("certify", data, "--features", listed, "-m", 4)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "at most the number of features in the set, 3; got 4" in line


@pytest.mark.parametrize(
    ("data_name", "list_name"), [("t.csv", "no.txt"), ("no.csv", "list.txt"), ("t.csv", "no.json")]
)
def test_a_missing_file_is_named(quick_keepers, data, listed, data_name, list_name):
    done = quick_keepers("certify", data_name, "--features", list_name)
    assert done.returncode == 1
    missing = data_name if data_name.startswith("no") else list_name
    (line,) = done.stderr.splitlines()
    assert line.startswith("keepers: ")
    assert missing in line


def test_a_list_is_asked_for(quick_keepers, data):
    done = quick_keepers("certify", data)
    assert done.returncode == 2
    assert "--features" in done.stderr


def test_a_single_feature_is_spoken_of_as_one(quick_keepers, data, frame, tmp_path):
    (tmp_path / "one.txt").write_text("g0\n")
    done = quick_keepers("certify", data, "--features", "one.txt", "-m", 1)
    assert done.stdout.startswith("This feature holds at least ")
    # Floor of the true share: of one feature the bound is the largest variance.
    share = frame["g0"].var() / frame.var().max()
    assert percent_in(done.stdout) == math.floor(1000 * share - 1e-6) / 10
    assert "(1 component; it is in no best set, 1 other is in every best set" in done.stdout
    assert "No feature holds more than" in done.stderr


HOSTILE = "wiped\x1b[2J", "turned\u202earound", "title\x1b]0;x\x07", "[red]markup[/red]"


def test_names_cannot_steer_the_terminal(quick_keepers, tmp_path):
    X = np.random.default_rng(1).standard_normal((30, 8)) * SIZES
    names = [*HOSTILE, *(f"g{j}" for j in range(4))]
    pd.DataFrame(X, columns=names).to_csv("odd.csv", index=False)
    (tmp_path / "odd.txt").write_text("\n".join([*HOSTILE[:3], "g3"]), encoding="utf-8")
    (tmp_path / "bad.txt").write_text("\n".join([*HOSTILE, "no\x1b[2Jne"]), encoding="utf-8")
    told = quick_keepers("certify", "odd.csv", "--features", "odd.txt", "-m", 2)
    refused = quick_keepers("certify", "odd.csv", "--features", "bad.txt", "-m", 2)
    assert (told.returncode, refused.returncode) == (0, 2)
    for text in (told.stdout, told.stderr, refused.stderr):
        assert not any(character in text for character in "\x1b\x07\u202e")
    assert "wiped\\x1b[2J" in told.stderr
    assert "no\\x1b[2Jne" in refused.stderr
    found = found_by(quick_keepers("certify", "odd.csv", "--features", "odd.txt", "--json"))
    assert found["features_names"] == [*HOSTILE[:3], "g3"]


def test_genes_of_an_anndata_file(quick_keepers, frame, listed, tmp_path):
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(frame.to_numpy())
    cells.var_names = list(frame.columns)
    cells.obs_names = [f"cell{i}" for i in range(40)]
    cells.write_h5ad(tmp_path / "cells.h5ad")
    done = quick_keepers("certify", "cells.h5ad", "--features", listed, "-m", 2, "--json")
    assert found_by(done)["value"] == pytest.approx(held(frame, LISTED, 2))


def test_the_seed_and_the_threads_do_not_change_a_small_table(quick_keepers, data, listed):
    options = ("certify", data, "--features", listed, "-m", 2, "--json")
    first = found_by(quick_keepers(*options))
    other = found_by(quick_keepers(*options, "--seed", 7, "--threads", 1))
    assert other["value"] == pytest.approx(first["value"])
    assert other["upper_bound"] == pytest.approx(first["upper_bound"])
