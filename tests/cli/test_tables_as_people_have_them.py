"""Whole commands on files as other programs write them."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

pytest.importorskip("pyarrow")

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
NEVER = {"respondent_id", "submitted", "country", "remark", "blank"}


def kept(done):
    return [line.split("\t")[1] for line in done.stdout.splitlines()[1:]]


def test_genes_in_rows_are_recognised_and_transposed(quick_keepers, expression):
    checked = quick_keepers("check", expression)
    assert checked.returncode == 0, checked.stderr
    assert "Features seem to be rows: 1,500 rows, named by 'gene'" in checked.stdout
    assert "--transpose" in checked.stdout.splitlines()[-1]
    refused = quick_keepers("select", expression, "--transpose", "-k", 20, "--missing", "model")
    assert refused.returncode == 1
    assert "'GENE699'" in refused.stderr
    assert "--make-unique" in refused.stderr
    done = quick_keepers(
        *("select", expression, "--transpose", "--make-unique", "--missing", "model"),
        *("-k", 20, "--out", "kept.csv"),
    )
    assert done.returncode == 0, done.stderr
    planted = {f"GENE{at}" for at in range(K_PLANTED)}
    assert len(planted & set(kept(done))) >= 18
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
    assert command[-2:] == ["--drop", "GENE7"]
    done = quick_keepers(*command[1:], "-k", 299, "--method", "variance")
    assert done.returncode == 0, done.stderr
    assert set(kept(done)) == set(frame["gene"]) - {"GENE7"}


def test_samples_in_rows_are_said_to_be_genes_in_a_selection_too(quick_keepers, expression):
    done = quick_keepers("select", expression, "-k", 3, "--missing", "median")
    assert "Features seem to be rows" in done.stderr


@pytest.mark.parametrize("written_as", ["csv", "semicolons", "xlsx", "parquet", "polars"])
def test_a_survey_goes_through_without_its_ids_dates_and_remarks(
    quick_keepers, tmp_path, written_as
):
    frame = survey_frame()
    name = "survey.csv"
    if written_as == "csv":
        frame.to_csv(name, index=False)
    elif written_as == "semicolons":
        frame.to_csv(name, index=False, sep=";", decimal=",")
    elif written_as == "xlsx":
        pytest.importorskip("python_calamine")
        pytest.importorskip("openpyxl")
        name = "survey.xlsx"
        frame.to_excel(name, index=False)
    elif written_as == "parquet":
        name = "survey.parquet"
        frame.to_parquet(name, index=False)
    else:
        name = "survey.parquet"
        pl.DataFrame(frame.to_dict("list")).write_parquet(name)
    checked = json.loads(quick_keepers("check", name, "--json").stdout)
    about = {finding["about"] for finding in checked["findings"]}
    assert {"identifiers", "dates", "empty columns", "categories", "gaps", "units"} <= about
    refused = quick_keepers("select", name)
    assert refused.returncode == 1
    assert "'income'" in refused.stderr
    assert "'q2'" in refused.stderr
    assert "'respondent_id'" in refused.stderr
    assert refused.stderr.splitlines()[-1] == checked["command"]
    assert "--missing model" in checked["command"]
    done = quick_keepers("select", name, "--missing", "model", "-k", 7, "--scores", "s.csv")
    assert done.returncode == 0, done.stderr
    assert set(kept(done)) == INFORMATIVE
    scores = pd.read_csv("s.csv", index_col="feature")
    assert set(scores.index) == set(frame.columns)
    assert scores.loc["respondent_id", "reason"].startswith("set aside: identifier")
    assert scores.loc["submitted", "reason"].startswith("set aside: date")
    assert scores.loc["country", "reason"] == "constant"
    assert scores.loc["town", "reason"] == "kept"
    assert list(scores["kept"].eq("yes")) == [name in INFORMATIVE for name in scores.index]


def test_a_recipe_asks_only_for_the_columns_it_needs_and_fills_as_before(quick_keepers, tmp_path):
    frame = survey_frame()
    frame.to_csv("survey.csv", index=False)
    done = quick_keepers(
        *("select", "survey.csv", "--id", "respondent_id", "--missing", "median", "-k", 7),
        *("--save", "recipe.json", "--out", "kept.csv"),
    )
    assert done.returncode == 0, done.stderr
    written = pd.read_csv("kept.csv")
    assert written.columns[0] == "respondent_id"
    assert written["income"].isna().sum() == 0
    filled = frame["income"].isna()
    assert set(written.loc[filled, "income"]) == {frame["income"].median()}
    assert list(written["town"]) == list(frame["town"])
    new = frame.head(50)[["respondent_id", *sorted(INFORMATIVE)]]
    new.to_csv("new.csv", index=False)
    applied = quick_keepers("apply", "recipe.json", "new.csv", "--out", "new-kept.csv")
    assert applied.returncode == 0, applied.stderr
    again = pd.read_csv("new-kept.csv")
    assert set(again.columns) == {"respondent_id", *INFORMATIVE}
    assert list(again["respondent_id"]) == list(new["respondent_id"])
    np.testing.assert_allclose(again["income"], new["income"].fillna(frame["income"].median()))


def test_types_survive_from_parquet_to_parquet(quick_keepers, tmp_path):
    frame = survey_frame().drop(columns=["blank"])
    frame["q1"] = frame["q1"].astype("int64")
    frame["ok"] = frame["q3"] > 3
    frame.to_parquet("survey.parquet", index=False)
    done = quick_keepers(
        *("select", "survey.parquet", "--missing", "model", "--as", "submitted=number"),
        *("--set", "random_state=0", "-k", 16, "--out", "kept.parquet"),
    )
    assert done.returncode == 0, done.stderr
    written = pd.read_parquet("kept.parquet")
    for name in set(written.columns) & {"q1", "ok", "town"}:
        assert written[name].dtype == frame[name].dtype
    assert written["q1"].dtype == np.int64
    assert list(written["town"]) == list(frame["town"])


def test_a_share_of_features_and_patterns_of_columns(quick_keepers, tmp_path):
    frame = survey_frame()
    frame.to_csv("survey.csv", index=False)
    done = quick_keepers(
        *("select", "survey.csv", "--missing", "mean", "-k", "50%", "--drop", "q1*,member"),
        *("--drop", "country"),
    )
    assert done.returncode == 0, done.stderr
    names = kept(done)
    assert not {"q1", "q10", "q11", "q12", "member", "country"} & set(names)
    assert len(names) == 5  # of ten


def test_a_folder_gets_what_a_file_gets(quick_keepers, tmp_path):
    frame = survey_frame(3000)
    (tmp_path / "parts").mkdir()
    for at in range(3):
        part = frame[1000 * at : 1000 * (at + 1)]
        part.to_parquet(tmp_path / "parts" / f"part-{at}.parquet", index=False)
    frame.to_parquet("whole.parquet", index=False)
    folder, whole = (quick_keepers("check", name, "--json") for name in ("parts", "whole.parquet"))
    assert json.loads(folder.stdout)["kinds"] == json.loads(whole.stdout)["kinds"]
    options = ("--missing", "mean", "--id", "respondent_id")
    done = quick_keepers(
        *("select", "parts", *options, "--out", "kept.parquet", "--save", "r.json"),
        *("--report", "r.html", "--scores", "s.csv"),
    )
    assert done.returncode == 0, done.stderr
    assert set(kept(done)) <= INFORMATIVE
    assert set(kept(done)) == set(kept(quick_keepers("select", "whole.parquet", *options)))
    written = pd.read_parquet("kept.parquet")
    assert len(written) == 3000
    assert list(written["respondent_id"].astype(int)) == list(frame["respondent_id"])
    if "income" in written:
        np.testing.assert_allclose(
            written["income"], frame["income"].fillna(frame["income"].mean()), rtol=1e-10
        )
    assert "submitted" in (tmp_path / "r.html").read_text()
    applied = quick_keepers("apply", "r.json", "parts", "--out", "again.parquet")
    assert applied.returncode == 0, applied.stderr
    pd.testing.assert_frame_equal(pd.read_parquet("again.parquet"), written, check_dtype=False)
    sampled = quick_keepers("select", "parts", *options, "--sample", 500, "-k", 7)
    assert sampled.returncode == 0, sampled.stderr
    assert "500 rows of parts are used, drawn at random" in sampled.stderr
    assert len(INFORMATIVE & set(kept(sampled))) >= 6
    for method in ("spcafs", "lapscore"):
        more = ("--sample", "800") if method == "lapscore" else ()
        chosen = quick_keepers("select", "parts", *options, "--method", method, *more)
        assert chosen.returncode == 0, chosen.stderr
    tuned = quick_keepers("tune", "parts", *options, "--sample", 400, "--resamples", 0)
    assert tuned.returncode == 0, tuned.stderr


def test_counts_ask_for_a_logarithm_and_get_it(quick_keepers, tmp_path):
    random = np.random.default_rng(3)
    mean = np.exp(random.normal(2, 2, 300))
    counts = random.poisson(mean * random.gamma(2, 0.5, (60, 300)))
    pd.DataFrame(counts).add_prefix("g").to_csv("counts.csv", index=False)
    checked = quick_keepers("check", "counts.csv")
    assert "[--log]" in checked.stdout
    assert quick_keepers("select", "counts.csv", "-k", 5, "--log").returncode == 0


def test_outliers_and_rows_of_zeros_can_be_left_out(quick_keepers, tmp_path):
    random = np.random.default_rng(4)
    X = random.normal(size=(60, 8)) + 3 * random.normal(size=(60, 1))
    X[17] += 60 * random.normal(size=8)
    X[40:43] = 0.0
    frame = pd.DataFrame(X).add_prefix("v")
    frame.insert(0, "name", [f"s{at}" for at in range(60)])
    frame.to_csv("odd.csv", index=False)
    checked = quick_keepers("check", "odd.csv", "--id", "name")
    assert "Outliers: sample s17" in checked.stdout
    assert "Rows of zeros only: 3 of 60." in checked.stdout
    done = quick_keepers(
        *("select", "odd.csv", "--id", "name", "-k", 3, "--drop-samples", "s17"),
        *("--drop-zero-rows", "--out", "kept.csv"),
    )
    assert done.returncode == 0, done.stderr
    left = [f"s{at}" for at in range(60) if at != 17 and not 40 <= at < 43]
    assert list(pd.read_csv("kept.csv")["name"]) == left
    absent = quick_keepers("select", "odd.csv", "--id", "name", "--drop-samples", "s99,s1")
    assert absent.returncode == 1
    assert "'s99'" in absent.stderr


@pytest.mark.slow
def test_two_million_rows_with_gaps_in_a_folder(quick_keepers, tmp_path):
    """One pass to look, one to fit; the mean is that of all rows."""
    random = np.random.default_rng(5)
    (tmp_path / "parts").mkdir()
    total, count = 0.0, 0
    for part in range(8):
        group = random.integers(0, 4, 250_000)
        frame = pd.DataFrame({"id": np.arange(250_000) + 250_000 * part})
        for column in range(12):
            shift = 3.0 * np.array([-1, 0, 1, 2])[(group + column) % 4] if column < 5 else 0.0
            frame[f"x{column}"] = shift + random.standard_normal(250_000)
        frame.loc[random.random(250_000) < 0.2, "x0"] = np.nan
        frame["kind"] = np.array(list("abcd"))[group]
        total, count = total + frame["x0"].sum(), count + frame["x0"].notna().sum()
        frame.to_parquet(tmp_path / "parts" / f"{part}.parquet", index=False)
    done = quick_keepers(
        *("select", "parts", "--missing", "mean", "--save", "r.json", "--out", "kept.parquet")
    )
    assert done.returncode == 0, done.stderr
    assert set(kept(done)) <= {"kind", *(f"x{column}" for column in range(5))}
    written = pd.read_parquet("kept.parquet")
    assert len(written) == 2_000_000
    if "x0" in written:
        stored = json.loads((tmp_path / "r.json").read_text())["preparation"]["preparer"]
        names = [column["name"] for column in stored["columns"]]
        value = stored["fill_values"][names.index("x0")]
        assert value == pytest.approx(total / count, rel=1e-10, abs=1e-10)
