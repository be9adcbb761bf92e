"""`keepers select` and `keepers apply`, as a user runs them."""

import itertools
import json
import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

from keepers import AutoSelector

COLUMNS = ("--id", "sample", "--labels", "class")
BY_SPCAFS = (*COLUMNS, "--method", "spcafs")


def kept_by_hand(table, k=3):
    frame = pd.read_csv(table, index_col="sample").drop(columns="class")
    return set(AutoSelector(k).fit(frame).get_feature_names_out())


@pytest.mark.filterwarnings("ignore::keepers.exceptions.NoStructureWarning")
def test_a_csv_becomes_a_smaller_csv_with_rows_and_classes_kept(quick_keepers, table, tmp_path):
    written = ("--out", "kept.csv", "--report", "page.html")
    done = quick_keepers("select", table, "-k", 3, *COLUMNS, *written)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert all(name in page for name in kept_by_hand(table))
    kept, whole = (pd.read_csv(path, dtype=str) for path in (tmp_path / "kept.csv", table))
    features = [name for name in kept.columns if name not in ("sample", "class")]
    assert set(features) == kept_by_hand(table)
    assert kept[["sample", "class"]].equals(whole[["sample", "class"]])
    for name in features:  # Python's float reads every digit, which not every pandas does
        assert list(map(float, kept[name])) == list(map(float, whole[name]))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".h5ad"])
def test_the_suffix_says_the_format(quick_keepers, table, tmp_path, suffix):
    out = tmp_path / f"kept{suffix}"
    done = quick_keepers("select", table, "-k", 3, *COLUMNS, "--out", out)
    assert done.returncode == 0, done.stderr
    again = quick_keepers("select", out, "-k", 3, "--json", *(() if suffix == ".h5ad" else COLUMNS))
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["n_features"] == 3


@pytest.fixture
def people(tmp_path):
    """Gaps, a category, an identifier, a constant, and columns in different units."""
    rng = np.random.default_rng(0)
    group = np.arange(90) % 3
    frame = pd.DataFrame(5 * rng.standard_normal((3, 6))[group] + rng.standard_normal((90, 6)))
    frame = frame.add_prefix("g")
    frame["g5"] *= 1e5
    frame.loc[[3, 50], "g1"] = np.nan
    frame["always"] = 1
    frame["colour"] = np.array(["red", "green", "blue"])[rng.integers(0, 3, 90)]
    frame["note"] = [f"person number {number} said so" for number in range(90)]
    frame["kind"] = np.array(["a", "b", "c"])[group]
    frame.to_csv(tmp_path / "people.csv", index=False)
    return "people.csv"


def test_a_report_tells_what_was_filled_and_set_aside(quick_keepers, people, tmp_path):
    done = quick_keepers(
        "select", people, "--labels", "kind", "--missing", "median", "--report", "page.html"
    )
    assert done.returncode == 0, done.stderr
    page = unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    watch = re.search(r"<dt>What to watch</dt>.*?</dl>", page, re.S).group()
    assert "Missing values filled (median) in 1 column: 'g1' (2)." in watch
    read = re.search(r'<details class="note" id="table">.*?</details>', page, re.S).group()
    assert "Identifiers, not used: 'note'" in read
    assert "Not used: <bdi>note</bdi> (<bdi>identifier: distinct text</bdi>)" in read


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
        (["table.csv", *COLUMNS, "--set", "gamma=2"], 2, "a setting of auto (n_neighbors,"),
        (["table.csv", *BY_SPCAFS], 2, "-k is needed with --method spcafs"),
        (["table.csv", *BY_SPCAFS, "-k", "2", "--set", "scaling=big"], 2, "got 'big'"),
        (["table.csv", *COLUMNS, "--set", "n_neighbors=0"], 2, "n_neighbors must be"),
        (["table.csv", "-k", "3", *COLUMNS, "--set", "must_keep=[1]"], 2, "a setting of auto"),
        (["table.csv", "-k", "3", *COLUMNS, "--keep", "G1"], 2, "Did you mean 'g1'?"),
        (["table.csv", "-k", "3", *COLUMNS, "--never", "class"], 2, "never_keep must name columns"),
        (["table.csv", "-k", "3", *COLUMNS, "--keep", "g1", "--method", "mcfs"], 2, "spcafs"),
        (["table.csv", "-k", "1", *COLUMNS, "--keep", "g1", "--keep", "g2"], 2, "at least 2"),
        *((["table.csv", "-k", word, *COLUMNS], 2, "-k must") for word in ("0", "²", "9" * 5000)),
        (["table.csv", "-k", "99", *COLUMNS], 2, "8"),
        (["table.csv", "-k", "3", "--id", "sampel"], 1, "sampel"),
        (["table.csv", "-k", "3", *COLUMNS, "--method", "spcaf"], 2, "Did you mean 'spcafs'"),
        (["table.csv", "-k", "3", *BY_SPCAFS, "--set", "gamma=-1"], 2, "gamma"),
        (["table.csv", "-k", "3", *COLUMNS, "--out", "kept.docx"], 2, ".csv"),
        (["table.csv", "-k", "3", *COLUMNS, "--out", "no/such/kept.csv"], 2, "folder"),
        (["table.csv", "-k", "3", *COLUMNS, "--max-size", "10"], 1, "--max-size"),
        (["absent.csv", "-k", "3"], 1, "absent.csv"),
        (["table.csv", "-k", "3", *COLUMNS, "--method", "all-features"], 2, "every feature"),
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


@pytest.mark.parametrize("seed", ["-1", "4294967296", "1.5"])
@pytest.mark.parametrize("command", ["select", "compare"])
def test_a_seed_outside_its_range_is_refused_before_the_data_are_read(quick_keepers, command, seed):
    done = quick_keepers(command, "absent.csv", "--seed", seed)
    assert done.returncode == 2
    assert "--seed" in done.stderr
    assert "absent.csv" not in done.stderr


def variance_held(frame, names, m):
    """What PCA of these columns explains with m components, by NumPy."""
    covariance = np.atleast_2d(np.cov(frame[list(names)].to_numpy(), rowvar=False, bias=True))
    return float(np.linalg.eigvalsh(covariance)[::-1][:m].sum())


def certified(done):
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found["certificate"], [feature["name"] for feature in found["features"]]


SENTENCE = "of the variance that any 3 features could hold"


@pytest.mark.parametrize("method", ["spcafs", "fspca", "variance"])
def test_methods_that_look_for_variance_tell_how_much_they_found(quick_keepers, table, method):
    options = ("select", table, "-k", 3, *COLUMNS, "--method", method)
    done = quick_keepers(*options)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(SENTENCE) == 1
    assert SENTENCE not in done.stdout
    found, kept = certified(quick_keepers(*options, "--json"))
    assert found["sentence"] in done.stderr
    assert sorted(found["features_names"]) == sorted(kept)
    frame = pd.read_csv(table)
    m = found["n_components"]
    assert found["value"] == pytest.approx(variance_held(frame, kept, m))
    features = [f"g{j}" for j in range(8)]
    most = max(variance_held(frame, names, m) for names in itertools.combinations(features, 3))
    assert found["upper_bound"] >= most * (1 - 1e-9)
    assert found["share"] <= found["value"] / most * (1 + 1e-9)
