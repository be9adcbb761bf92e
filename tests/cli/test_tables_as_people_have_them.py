"""Whole commands on files as other programs write them."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

from people_tables import MEASURED, houses

K_PLANTED = 40


@pytest.fixture
def expression(tmp_path):
    """Genes in rows: a comment line, NA, and one name twice; the first 40 tell three tissues."""
    random = np.random.default_rng(0)
    tissue = np.repeat([0, 1, 2], 8)
    level = random.gamma(2, 2, 1500)[:, None] + random.normal(0, 0.4, (1500, 24))
    level[:K_PLANTED] += 2.5 * np.array([random.normal(size=3)[tissue] for _ in range(K_PLANTED)])
    names = [f"GENE{at}" for at in range(1500)]
    names[700] = "GENE699"
    lines = ["# made by a core facility", "\t".join(["gene", *(f"S{at}" for at in range(24))])]
    for name, row in zip(names, level, strict=True):
        cells = [f"{value:.4f}" for value in row]
        if random.random() < 0.02:
            cells[3] = "NA"
        lines.append("\t".join([name, *cells]))
    (tmp_path / "expression.tsv").write_text("\n".join(lines) + "\n")
    return "expression.tsv"


def survey_frame(n=400):
    """Answers that depend on which of three groups somebody belongs to, and all that goes along."""
    random = np.random.default_rng(1)
    group = random.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "respondent_id": np.arange(100_000, 100_000 + n),
            "submitted": pd.date_range("2024-03-01", periods=n, freq="37min"),
            "town": np.array(["Rome", "Oslo", "Lima"])[group],
            "member": random.choice(["yes", "no"], n),
            "country": "Atlantis",
            "income": np.round(20_000 + 15_000 * group + random.normal(0, 4_000, n)),
            "remark": [f"remark number {number}" for number in random.integers(0, 10**9, n)],
        }
    )
    for question in range(12):
        shift = 1.2 * (group - 1) if question < 5 else 0.0
        answers = np.clip(np.round(3 + shift + random.normal(0, 0.9, n)), 1, 5)
        frame[f"q{question + 1}"] = answers
    frame.loc[random.random(n) < 0.08, "income"] = np.nan
    frame.loc[random.random(n) < 0.05, "q2"] = np.nan
    frame["blank"] = np.nan
    return frame


INFORMATIVE = {"town", "income", "q1", "q2", "q3", "q4", "q5"}


def kept(done):
    return [line.split("\t")[1] for line in done.stdout.splitlines()[1:]]


def test_genes_in_rows_are_recognised_and_transposed(quick_keepers, expression):
    checked = quick_keepers("check", expression)
    assert checked.returncode == 0, checked.stderr
    assert "Features seem to be in rows: 1,500 rows, named by 'gene'" in checked.stdout
    assert "--transpose" in checked.stdout.splitlines()[-1]
    refused = quick_keepers("select", expression, "--transpose", "-k", 20, "--missing", "model")
    assert refused.returncode == 1
    assert "'GENE699'" in refused.stderr
    assert "--make-unique" in refused.stderr
    done = quick_keepers(
        *("select", expression, "--transpose", "--make-unique", "--missing", "model"),
        *("-k", "1.3%", "--out", "kept.csv", "--drop", "GENE1499,GENE149[78]"),
    )
    assert done.returncode == 0, done.stderr
    planted = {f"GENE{at}" for at in range(K_PLANTED)}
    assert len(kept(done)) == 19
    assert len(planted & set(kept(done))) >= 17
    written = pd.read_csv("kept.csv")
    assert list(written["sample"]) == [f"S{at}" for at in range(24)]
    assert set(written.columns[1:]) == set(kept(done))


def test_the_command_that_a_check_of_a_turned_table_ends_with_runs(quick_keepers):
    values = np.random.default_rng(0).standard_normal((300, 20))
    values[7] = values[3]
    frame = pd.DataFrame(values, columns=[f"S{at}" for at in range(20)])
    frame.insert(0, "gene", [f"GENE{at}" for at in range(300)])
    frame.to_csv("copies.csv", index=False)
    checked = quick_keepers("check", "copies.csv", "--transpose")
    command = checked.stdout.splitlines()[-1].split()
    assert "'GENE7' = 'GENE3'. [--drop GENE7]" in checked.stdout
    assert command[-1] == "--transpose"  # a replicate is dropped only if somebody asks for it
    done = quick_keepers(*command[1:], "-k", 299, "--method", "variance", "--drop", "GENE7")
    assert done.returncode == 0, done.stderr
    assert set(kept(done)) == set(frame["gene"]) - {"GENE7"}


WRITE = {
    "survey.csv": lambda frame, name: frame.to_csv(name, index=False, sep=";", decimal=","),
    "survey.xlsx": lambda frame, name: frame.to_excel(name, index=False),
    "survey.parquet": lambda frame, name: frame.to_parquet(name, index=False),
}


@pytest.mark.parametrize("name", WRITE)
def test_a_survey_goes_through_without_its_ids_dates_and_remarks(quick_keepers, tmp_path, name):
    frame = survey_frame()
    WRITE[name](frame, name)
    checked = json.loads(quick_keepers("check", name, "--json").stdout)
    about = {finding["about"] for finding in checked["findings"]}
    assert {"identifiers", "dates", "empty columns", "categories", "gaps", "units"} <= about
    assert "--missing" not in checked["command"]
    refused = quick_keepers("select", name, "--method", "spcafs", "-k", 7)
    assert refused.returncode == 1
    assert "'income'" in refused.stderr
    assert "'q2'" in refused.stderr
    assert "'respondent_id'" in refused.stderr
    asked = f"{name} --method spcafs -k 7"
    command = checked["command"].replace(name, asked) + " --missing model"
    assert refused.stderr.splitlines()[-1] == command
    assert quick_keepers(*command.split()[1:]).returncode == 0
    done = quick_keepers("select", name, "-k", 7, "--scores", "s.csv")
    assert done.returncode == 0, done.stderr
    n_gaps = {column: frame[column].isna().sum() for column in ("income", "q2")}
    assert f"'income' ({n_gaps['income']}), 'q2' ({n_gaps['q2']})" in done.stderr
    assert f"{sum(n_gaps.values())} values are missing" in done.stderr
    assert set(kept(done)) == INFORMATIVE
    scores = pd.read_csv("s.csv", index_col="feature")
    assert set(scores.index) == set(frame.columns)
    assert scores.loc["respondent_id", "reason"].startswith("not used: identifier")
    assert scores.loc["submitted", "reason"].startswith("not used: date")
    assert scores.loc["country", "reason"] == "constant"
    assert scores.loc["town", "reason"].startswith("kept")
    assert list(scores["kept"].eq("yes")) == [name in INFORMATIVE for name in scores.index]


def test_a_recipe_asks_only_for_the_columns_it_needs_and_leaves_gaps(quick_keepers, tmp_path):
    frame = survey_frame()
    frame.to_csv("survey.csv", index=False)
    done = quick_keepers(
        *("select", "survey.csv", "--id", "respondent_id", "--missing", "median", "-k", 7),
        *("--save", "recipe.json", "--out", "kept.csv"),
    )
    assert done.returncode == 0, done.stderr
    written = pd.read_csv("kept.csv")
    assert written.columns[0] == "respondent_id"
    pd.testing.assert_series_equal(written["income"], frame["income"])
    assert list(written["town"]) == list(frame["town"])
    new = frame.head(50)[["respondent_id", *sorted(INFORMATIVE)]]
    new.to_csv("new.csv", index=False)
    applied = quick_keepers("apply", "recipe.json", "new.csv", "--out", "new-kept.csv")
    assert applied.returncode == 0, applied.stderr
    again = pd.read_csv("new-kept.csv")
    assert set(again.columns) == {"respondent_id", *INFORMATIVE}
    assert list(again["respondent_id"]) == list(new["respondent_id"])
    assert new["income"].isna().any()
    pd.testing.assert_series_equal(again["income"], new["income"])
    assert f"'income' ({new['income'].isna().sum()})" in applied.stderr


@pytest.fixture
def in_parts(tmp_path):
    """A survey as a file, and as a folder of three."""
    frame = survey_frame(1500)
    (tmp_path / "parts").mkdir()
    for at in range(3):
        part = frame[500 * at : 500 * (at + 1)]
        part.to_parquet(tmp_path / "parts" / f"part-{at}.parquet", index=False)
    frame.to_parquet(tmp_path / "whole.parquet", index=False)
    return frame


FILLED = ("--missing", "mean", "--id", "respondent_id")


@pytest.mark.usefixtures("in_parts")
def test_a_folder_is_checked_as_a_file_is(quick_keepers):
    folder, whole = (quick_keepers("check", name, "--json") for name in ("parts", "whole.parquet"))
    assert json.loads(folder.stdout)["kinds"] == json.loads(whole.stdout)["kinds"]


def test_what_is_kept_of_a_folder_is_written_and_applied(quick_keepers, in_parts, tmp_path):
    frame = in_parts
    done = quick_keepers(
        *("select", "parts", *FILLED, "--out", "kept.parquet", "--save", "r.json"),
        *("--report", "r.html", "--scores", "s.csv"),
    )
    assert done.returncode == 0, done.stderr
    assert set(kept(done)) <= INFORMATIVE
    written = pd.read_parquet("kept.parquet")
    assert len(written) == 1500
    assert list(written["respondent_id"].astype(int)) == list(frame["respondent_id"])
    if "income" in written:
        pd.testing.assert_series_equal(written["income"], frame["income"])
    assert "submitted" in (tmp_path / "r.html").read_text()
    applied = quick_keepers("apply", "r.json", "parts", "--out", "again.parquet")
    assert applied.returncode == 0, applied.stderr
    pd.testing.assert_frame_equal(pd.read_parquet("again.parquet"), written, check_dtype=False)


@pytest.mark.usefixtures("in_parts")
def test_of_a_folder_is_kept_what_is_kept_of_a_file(quick_keepers):
    folder, whole = (quick_keepers("select", x, *FILLED) for x in ("parts", "whole.parquet"))
    assert folder.returncode == 0, folder.stderr
    assert set(kept(folder)) == set(kept(whole))


@pytest.mark.usefixtures("in_parts")
def test_some_rows_of_a_folder_are_enough_for_a_selection(quick_keepers):
    sampled = quick_keepers("select", "parts", *FILLED, "--sample", 500, "-k", 7)
    assert sampled.returncode == 0, sampled.stderr
    assert "500 rows of parts are used, drawn at random" in sampled.stderr
    assert len(INFORMATIVE & set(kept(sampled))) >= 6


def test_outliers_can_be_left_out(quick_keepers, tmp_path):
    random = np.random.default_rng(4)
    X = random.normal(size=(60, 8)) + 3 * random.normal(size=(60, 1))
    X[17] += 60 * random.normal(size=8)
    frame = pd.DataFrame(X).add_prefix("v")
    frame.insert(0, "name", [f"s{at}" for at in range(60)])
    frame.to_csv("odd.csv", index=False)
    checked = quick_keepers("check", "odd.csv", "--id", "name")
    assert "Outliers: sample s17" in checked.stdout
    done = quick_keepers(
        *("select", "odd.csv", "--id", "name", "-k", 3, "--drop-samples", "s17"),
        *("--out", "kept.csv"),
    )
    assert done.returncode == 0, done.stderr
    left = [f"s{at}" for at in range(60) if at != 17]
    assert list(pd.read_csv("kept.csv")["name"]) == left
    absent = quick_keepers("select", "odd.csv", "--id", "name", "--drop-samples", "s99,s1")
    assert absent.returncode == 1
    assert "'s99'" in absent.stderr


READ = {
    ".csv": pd.read_csv,
    ".xlsx": partial(pd.read_excel, engine="openpyxl"),
    ".parquet": pd.read_parquet,
}


@pytest.mark.parametrize("suffix", READ)
def test_written_values_are_those_that_were_read(quick_keepers, suffix):
    frame, name = houses(), f"houses{suffix}"
    WRITE[f"survey{suffix}"](frame, name)
    if suffix == ".csv":
        frame.to_csv(name, index=False)
    assert "--missing" not in quick_keepers("check", name).stdout.splitlines()[-1]
    done = quick_keepers("select", name, "--out", f"kept{suffix}", "--save", "r.json")
    assert done.returncode == 0, done.stderr
    assert set(kept(done)) <= set(MEASURED)
    n_gaps = frame.drop(columns="PoolQC").isna().sum().sum()  # too few values for a category
    assert f"{n_gaps:,} values are missing" in done.stderr
    assert "fewer than 10 values were observed: 'PoolArea' (6)" in done.stderr
    assert "1 unusable (too few values)" in done.stderr
    applied = quick_keepers("apply", "r.json", name, "--out", f"again{suffix}")
    assert applied.returncode == 0, applied.stderr
    with_gap = next(column for column in kept(done) if frame[column].isna().any())
    read = READ[suffix](name)
    for written in (READ[suffix](f"kept{suffix}"), READ[suffix](f"again{suffix}")):
        assert set(written.columns) == set(kept(done))
        assert written[with_gap].isna().any()
        pd.testing.assert_frame_equal(written, read[written.columns], check_dtype=False)
    # r with a category has no sign.
    lines = [line.split("\t") for line in done.stdout.splitlines()[1:]]
    words = {"ExterQual", "KitchenQual", "Foundation", "FireplaceQu"}
    assert all((line[5][0] in "+-") != bool({line[1], line[4]} & words) for line in lines)
