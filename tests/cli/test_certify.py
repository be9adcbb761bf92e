"""The command that certifies a list of features, against NumPy's eigenvalues, and such lists."""

import io
import itertools
import json
import re
import sys

import numpy as np
import pandas as pd
import pytest

from keepers.cli.console import read_feature_list
from keepers.exceptions import DataError

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


@pytest.mark.parametrize("m", [1, 3])
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
    best = max(itertools.combinations(frame.columns, 3), key=lambda names: held(frame, names, m))
    assert set(found["proved_in_names"]) <= set(best)
    assert not set(found["proved_out_names"]) & set(best)
    assert found["proved_in_names"]
    assert found["proved_out_names"]


@pytest.mark.parametrize("word", ["0", "1.5", "nan", "two", "9" * 5000, "4"])
def test_other_numbers_of_components_are_refused(quick_keepers, data, listed, word):
    done = quick_keepers("certify", data, "--features", listed, f"--components={word}")
    assert done.returncode == 2
    assert ("at most" if word == "4" else "--components") in done.stderr
    assert len(done.stderr) < 400
    assert done.stdout == ""


def test_a_folder_gives_what_the_single_file_gives(quick_keepers, frame, data, listed, tmp_path):
    (tmp_path / "parts").mkdir()
    for start in range(0, len(frame), 15):
        frame[start : start + 15].to_parquet(tmp_path / "parts" / f"part-{start}.parquet")
    options = ("--features", listed, "-m", 2, "--json")
    whole = found_by(quick_keepers("certify", data, *options))
    for parts in ("parts", "parts/part-*.parquet"):
        found = found_by(quick_keepers("certify", parts, *options))
        assert found["value"] == pytest.approx(held(frame, LISTED, 2))
        for number in ("upper_bound", "best_known", "share"):
            assert found[number] == pytest.approx(whole[number])
        for names in ("features_names", "proved_in_names", "proved_out_names"):
            assert found[names] == whole[names]


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("list.txt", "a\nb c\nd,e\n"),
        ("list", "  a \r\n\r\n# from the paper\r\nb c\r\nd,e"),
        ("list.txt", "\ufeffa\nb c\nd,e\n"),
    ],
)
def test_names_are_read_from_text(tmp_path, name, content):
    assert read_feature_list(written(tmp_path, name, content)) == ["a", "b c", "d,e"]


def test_the_standard_input_is_read(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo\n")))
    assert read_feature_list("-") == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.txt", "", "names none"),
        ("comments.txt", "# nothing\n\n", "names none"),
        ("recipe.json", "{", "recipe"),
    ],
)
def test_what_is_no_list_is_refused_in_a_sentence(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message):
        read_feature_list(written(tmp_path, name, content))
