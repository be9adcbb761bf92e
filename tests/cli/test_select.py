"""`keepers select` and `keepers apply`, as a user runs them."""

import itertools
import json
import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

from cli.test_malformed_files import options_of
from data.test_malformed_files import SOUND
from keepers import AutoSelector

COLUMNS = ("--id", "sample", "--labels", "class")
BY_SPCAFS = (*COLUMNS, "--method", "spcafs")


def kept_by_hand(table, k=3):
    frame = pd.read_csv(table, index_col="sample").drop(columns="class")
    return set(AutoSelector(k).fit(frame).get_feature_names_out())


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


def test_the_page_is_written_with_features_that_must_go(quick_keepers, grouped, tmp_path):
    chosen = ("-k", 4, "--keep", "g7", "--never", "g2", "--report", "page.html")
    done = quick_keepers("select", grouped, *COLUMNS, *chosen)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "AutoSelector keeps the 4 features asked for, of" in page


def test_a_report_is_written_for_people(keepers, table, tmp_path):
    done = keepers("select", table, "-k", 3, *COLUMNS, "--report", "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    assert "keepers select" in page
    assert all(name in page for name in kept_by_hand(table))


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


def python_of(page):
    """The Python that a report says repeats it."""
    return unescape(re.search(r'<code id="code-python">(.*?)</code>', page, re.S).group(1))


@pytest.mark.filterwarnings("ignore::keepers.exceptions.KeepersWarning")
@pytest.mark.parametrize(
    "options",
    [
        ("--missing", "median"),
        ("--missing", "drop-rows", "--method", "variance", "-k", "3"),
        ("--missing", "mean", "--method", "variance", "--scale", "standardize-features", "-k", "3"),
    ],
)
def test_the_python_in_a_report_reads_the_file_and_finds_the_same(
    quick_keepers, people, options, tmp_path, monkeypatch
):
    page = tmp_path / "page.html"
    done = quick_keepers("select", people, "--labels", "kind", *options, "--report", page)
    assert done.returncode == 0, done.stderr
    kept = [line.split("\t")[1] for line in done.stdout.splitlines()[1:]]
    monkeypatch.chdir(tmp_path)
    scope = {}
    exec(python_of(page.read_text(encoding="utf-8")), scope)
    assert scope["selector"].top(len(kept)).names.tolist() == kept
    assert (tmp_path / "report.html").exists()


def test_a_report_tells_what_was_filled_and_set_aside(quick_keepers, people, tmp_path):
    done = quick_keepers(
        "select", people, "--labels", "kind", "--missing", "median", "--report", "page.html"
    )
    assert done.returncode == 0, done.stderr
    page = unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    watch = re.search(r'<ul class="watch".*?</ul>', page, re.S).group()
    assert "Gaps filled (median) in 1 column: 'g1' (2)." in watch
    assert "Set aside as identifier: 'note'" in watch
    aside = re.search(r'<div class="note" id="set-aside">.*?</div>', page, re.S).group()
    assert "<bdi>note</bdi>: <bdi>identifier: distinct text</bdi>" in aside


def test_units_are_no_matter_once_the_features_are_on_one_scale(quick_keepers, people, tmp_path):
    options = ("--labels", "kind", "--missing", "mean", "--method", "variance", "-k", 3)
    raw = quick_keepers("select", people, *options, "--report", "raw.html")
    assert "different units" in raw.stderr
    assert "different units" in (tmp_path / "raw.html").read_text(encoding="utf-8")
    scaled = ("--scale", "standardize-features", "--report", "scaled.html")
    done = quick_keepers("select", people, *options, *scaled)
    assert done.returncode == 0, done.stderr
    assert "different units" not in done.stderr
    assert "different units" not in (tmp_path / "scaled.html").read_text(encoding="utf-8")
    assert "they hold" not in done.stderr  # the share of the columns, and no more


def test_after_a_choice_the_report_shows_its_evidence(quick_keepers, people, tmp_path):
    options = ("--labels", "kind", "--missing", "mean", "--method", "spcafs", "--threads", 1)
    done = quick_keepers("select", people, *options, "--report", "page.html")
    assert done.returncode == 0, done.stderr
    page = unescape((tmp_path / "page.html").read_text(encoding="utf-8")).replace("\xa0", " ")
    assert re.search(r"SPCAFS chose \d+ of the \d+ features", page)
    assert "asked for" not in re.search(r"<header>.*?</header>", page, re.S).group()
    assert re.search(r"It took [^.]*\.?[^.]* in all, of which .* to choose the number", page)
    trials = re.search(r'<figure id="trials">.*?</figure>', page, re.S).group()
    evidence = [float(found) for found in re.findall(r'number">([\d.]+)</td></tr>', trials)]
    assert len(evidence) == 5
    assert evidence == sorted(evidence, reverse=True)
    said = re.search(r"Chosen without labels: .*", done.stderr).group()
    assert said.replace("`", "") in page


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
        (["table.csv", *COLUMNS, "--set", "gamma=2"], 2, "a setting of auto (n_neighbors,"),
        (["table.csv", *BY_SPCAFS, "--set", "gamma=2"], 2, "Give -k too, or leave gamma out"),
        (["table.csv", *BY_SPCAFS, "--set", "scaling=big"], 2, "scaling must lie in [0, 1]"),
        (["table.csv", *COLUMNS, "--set", "n_neighbors=0"], 2, "n_neighbors must be"),
        (["table.csv", "-k", "3", *COLUMNS, "--set", "must_keep=[1]"], 2, "--keep"),
        (["table.csv", "-k", "3", *COLUMNS, "--keep", "G1"], 1, "Did you mean 'g1'?"),
        (["table.csv", "-k", "3", *COLUMNS, "--never", "class"], 1, "--never must name features"),
        (["table.csv", "-k", "3", *COLUMNS, "--keep", "g1", "--never", "g1"], 2, "'g1'"),
        (["table.csv", "-k", "3", *COLUMNS, "--keep", "g1", "--method", "mcfs"], 2, "spcafs"),
        (["table.csv", "-k", "1", *COLUMNS, "--keep", "g1", "--keep", "g2"], 2, "at least 2"),
        (["table.csv", "-k", "0", *COLUMNS], 2, "-k"),
        (["table.csv", "-k", "99", *COLUMNS], 2, "8"),
        (["table.csv", "-k", "3", "--id", "sampel"], 1, "sampel"),
        (["table.csv", "-k", "3", *COLUMNS, "--method", "spcaf"], 2, "Did you mean 'spcafs'"),
        (["table.csv", "-k", "3", *BY_SPCAFS, "--set", "gama=1"], 2, "gamma"),
        (["table.csv", "-k", "3", *BY_SPCAFS, "--set", "gamma=-1"], 2, "gamma"),
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


@pytest.mark.parametrize("method", ["auto", "lapscore"])
def test_other_methods_tell_it_if_they_are_asked(quick_keepers, table, method):
    options = ("select", table, "-k", 3, *COLUMNS, "--method", method)
    assert SENTENCE not in quick_keepers(*options).stderr
    assert certified(quick_keepers(*options, "--json"))[0] is None
    assert SENTENCE in quick_keepers(*options, "--certify").stderr
    found, kept = certified(quick_keepers(*options, "--certify", "--json"))
    expected = variance_held(pd.read_csv(table), kept, found["n_components"])
    assert found["value"] == pytest.approx(expected)


def test_nothing_is_certified_if_that_is_not_wanted(quick_keepers, table):
    options = ("select", table, "-k", 3, *COLUMNS, "--method", "variance", "--no-certify")
    assert SENTENCE not in quick_keepers(*options).stderr
    assert certified(quick_keepers(*options, "--json"))[0] is None


def test_quiet_leaves_the_certificate_out_too(quick_keepers, table):
    done = quick_keepers("select", table, "-k", 3, *COLUMNS, "--method", "variance", "--quiet")
    assert done.stderr == ""


def test_the_report_has_the_same_certificate(quick_keepers, table, tmp_path):
    options = ("select", table, "-k", 3, *COLUMNS, "--method", "variance", "--json")
    found, _ = certified(quick_keepers(*options, "--report", "r.html"))
    page = (tmp_path / "r.html").read_text(encoding="utf-8").replace("\xa0", " ")
    assert found["sentence"] in page
    certified(quick_keepers(*options, "--no-certify", "--report", "without.html"))
    assert SENTENCE not in (tmp_path / "without.html").read_text(encoding="utf-8")


def test_fewer_features_than_components_are_certified_with_as_many(quick_keepers, table):
    settings = ("--method", "spcafs", "--set", "n_components=3")
    found, kept = certified(quick_keepers("select", table, "-k", 2, *COLUMNS, *settings, "--json"))
    assert found["n_components"] == 2
    assert found["value"] == pytest.approx(pd.read_csv(table)[kept].var(ddof=0).sum())


def test_scaled_values_are_certified_as_they_were_fitted(quick_keepers, table):
    settings = ("--method", "variance", "--scale", "unit-features")
    found, kept = certified(quick_keepers("select", table, "-k", 3, *COLUMNS, *settings, "--json"))
    frame = pd.read_csv(table)[[f"g{j}" for j in range(8)]]
    scaled = frame / np.sqrt((frame**2).sum())
    assert found["value"] == pytest.approx(variance_held(scaled, kept, found["n_components"]))


@pytest.mark.parametrize("word", ["²", "9" * 5000])
def test_numbers_that_python_cannot_read_are_refused(quick_keepers, table, word):
    done = quick_keepers("select", table, "-k", word, *COLUMNS)
    assert done.returncode == 2
    assert "-k must be an integer >= 1" in done.stderr
