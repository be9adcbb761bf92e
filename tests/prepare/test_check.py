"""Findings on a table before a selection."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_digits, load_iris

from keepers.prepare.check import check_table
from keepers.tables.table import Table
from people_tables import bikes, colleges, flights, gene_counts


def said(table, about):
    """The sentence about something; empty if there is none."""
    return next((str(each) for each in check_table(table).findings if each.about == about), "")


def numbers(n=200, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.standard_normal((n, d)), columns=list("abcdefghijklmnop"[:d]))


@pytest.mark.parametrize(("spread", "named"), [(0.4, "column"), (0.0, "index"), (0.4, "index")])
def test_genes_in_rows_are_noticed(spread, named):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 40))
    X = np.abs(X * spread + rng.gamma(2.0, 2.0, (2000, 1))) if spread else X
    frame = pd.DataFrame(X, columns=[f"sample {j}" for j in range(40)])
    frame.iloc[3 : 900 if named == "column" else 3 : 7, 5:20] = np.nan
    names = [f"ENSG{at:011d}" for at in range(2000)]
    frame = frame.set_axis(names) if named == "index" else frame
    if named == "column":
        frame.insert(0, "gene", names)
    sentence = said(frame, "orientation")
    assert sentence.startswith("Features seem to be in rows: 2,000 rows")
    assert sentence.endswith("[--transpose]")
    named = load_diabetes(as_frame=True).data.rename(index=lambda at: f"person {at}")
    iris = load_iris(as_frame=True).data
    for frame in (colleges(), flights(), bikes(), iris, numbers(5000, 8), named):
        assert said(frame, "orientation") == ""


def holed():
    frame = numbers(400)
    frame.insert(0, "name", [f"n{at}" if at % 2 else None for at in range(400)])
    frame["score"] = ["?" if at < 20 else str(at % 7) for at in range(400)]
    frame.loc[10:109, "a"], frame.loc[7, "c"] = np.nan, np.nan
    return frame


COPIES = numbers().assign(copy=lambda t: t["b"], near=lambda t: -2 * t["c"] + 0.02 * t["d"])
R = np.corrcoef(COPIES["c"], COPIES["near"])[0, 1]
INFINITE = numbers()
INFINITE.loc[3, ["b", "d"]] = np.inf
FLAGS = pd.DataFrame({"flag": np.arange(99) % 2, "town": np.array([*"abc"])[np.arange(99) % 3]})
ROWS = "(how many): 'a' (100), 'score' (20), 'c' (1)."


@pytest.mark.parametrize(
    ("frame", "about", "expected"),
    [
        (COPIES, "duplicates", "Duplicated columns: 'copy' = 'b'. [--drop copy]"),
        (COPIES, "near duplicates", f"Nearly duplicated columns: 'near' ~ 'c' (r = {R:+.3f}). [-"),
        (
            numbers().assign(one=1.0, word="x", nearly=np.r_[np.ones(199), 2.0]),
            "constant columns",
            "Constant columns, ranked last: 'one', 'word'. [--drop one,word]",
        ),
        (holed(), "gaps", f"Missing values in 3 columns {ROWS} The default method scores"),
        (INFINITE, "infinite values", "Infinite values in 'b', 'd'. [--drop b,d]"),
        (
            pd.concat([numbers(), numbers(30)]),
            "repeated rows",
            "Rows that repeat another: 30 of 230.",
        ),
    ],
)
def test_findings(frame, about, expected):
    assert said(frame, about).startswith(expected)
    assert said(numbers(), about) == said(FLAGS, about) == ""


def test_a_sound_table_is_ready_and_units_matter_to_some_methods():
    check = check_table(numbers(), name="sound")
    assert str(check) == "sound: 200 rows, 6 columns (6 numbers).\nThe table is ready."
    frame = numbers(300).assign(e=lambda t: 1e4 * t["e"])
    sentence, ratio = said(frame, "units"), frame["e"].var() / frame["a"].var()
    assert "to 'e'), so the columns have different units" in sentence
    assert float(sentence.split("factor of ")[1].split()[0]) == pytest.approx(ratio, rel=0.3)
    assert "different units" in " ".join(check_table(frame).to_say("SPCAFS"))
    assert check_table(frame).to_say("AutoSelector") == []
    named = pd.DataFrame({"the id": [f"x{at}" for at in range(200)], "x": numbers()["a"]})
    assert check_table(named).needed() == ["--id 'the id'"], "as the shell takes it"
    assert check_table(named).needed(["--id"]) == []
    odd = numbers(40).rename(columns={"a": "x,y", "b": "*", "c": "c d"})
    odd.loc[0, ["x,y", "*", "c d", "d"]] = np.inf
    assert check_table(odd).needed() == ["--drop 'c d,d' --drop x,y --drop '*'"]
    counts = check_table(gene_counts(100, 500))
    assert "--log" in " ".join(counts.to_say("AutoSelector"))
    assert "--log" not in " ".join(counts.to_say("AutoSelector", log=True))


@pytest.mark.parametrize("d", [6, 300])
def test_a_row_that_is_a_component_by_itself(d):
    X = np.random.default_rng(0).standard_normal((100, d))
    X[41] += 40.0
    assert said(X, "outliers").startswith("Outliers: row 42 (")
    assert said(X, "outliers").endswith("[--drop-samples 42]")
    names, features = ([f"{mark}{at}" for at in range(n)] for mark, n in (("s", 100), ("x", d)))
    named = Table(X, np.array(features, dtype=object), np.array(names, dtype=object))
    assert said(named, "outliers").startswith("Outliers: sample s41 (")
    assert said(np.delete(X, 41, axis=0), "outliers") == ""


DARK = np.minimum(np.random.default_rng(0).exponential(6.0, (100, 400)) ** 1.8, 255).astype(int)


@pytest.mark.parametrize(
    ("X", "is_counts"),
    [
        (gene_counts(12, 3000), True),
        (sp.csr_matrix(gene_counts(60, 400)), True),
        (np.log1p(gene_counts(60, 400)), False),
        (load_digits().data, False),
        (DARK, False),
        (colleges(), False),
    ],
)
def test_logarithms_are_proposed_for_counts_only(X, is_counts):
    sentence = said(X, "counts")
    assert sentence.endswith("[--log]") == bool(sentence) == is_counts


@pytest.mark.parametrize(
    "X",
    [
        *(numbers(30, 3).to_numpy() * size for size in (1e200, 1e-200)),
        *(np.full((30, 3), value) for value in (0.1, np.nan, np.inf)),
        *(np.zeros((1, 1)), np.eye(2), sp.csr_matrix((30, 5))),
        np.where(np.eye(30) > 0, np.nan, 1.0),
        pd.DataFrame({"only": ["text", "here"]}),
    ],
)
def test_any_table_is_described(X):
    assert str(check_table(X)).startswith("table: ")


def test_gaps_count_as_the_mean_of_their_column():
    frame = numbers(400) + 1e4
    frame.iloc[17, :3] = np.nan
    assert [each.about for each in check_table(frame).findings] == ["gaps"]


def test_counts_have_a_long_tail_only_where_more_than_a_few_columns_do():
    rng = np.random.default_rng(0)
    X = rng.poisson(3.0, (200, 60))
    for n_large, expected in ((1, ""), (4, ""), (6, "Counts with a long tail")):
        X[:, :n_large] = rng.integers(20_000, 90_000, (200, n_large))  # such as incomes
        assert said(pd.DataFrame(X).add_prefix("answer "), "counts")[:23] == expected


def test_of_few_rows_numbered_columns_are_samples_and_words_are_measurements():
    rng = np.random.default_rng(0)
    levels = rng.gamma(2.0, 2.0, (300, 1))
    X = np.abs(levels + 0.4 * rng.standard_normal((300, 12)))
    frame = pd.DataFrame(X, columns=[f"sample {j}" for j in range(12)])
    frame.insert(0, "gene", [f"ENSG{at:011d}" for at in range(300)])
    assert said(frame, "orientation").startswith("Features seem to be in rows: 300 rows")
    words = [
        "chest",
        "waist",
        "hip",
        "thigh",
        "knee",
        "ankle",
        "calf",
        "wrist",
        "neck",
        "arm",
        "foot",
        "ear",
    ]
    assert said(frame.set_axis(["gene", *words], axis=1), "orientation") == ""
