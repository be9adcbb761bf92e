"""What is said of a table before a selection, and what is not."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris

from keepers import check_table
from keepers.data.mixed import as_mixed_table
from keepers.data.table import LabelledTable
from keepers.preparation.facts import TableFacts
from keepers.preparation.table_check import check_facts
from people_tables import bikes, colleges, flights, gene_counts


def said(check, about):
    """The sentence about something; empty if there is none."""
    return next((str(finding) for finding in check.findings if finding.about == about), "")


def numbers(n=200, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.standard_normal((n, d)), columns=list("abcdefghijklmnop"[:d]))


def test_a_sound_table_needs_nothing():
    check = check_table(numbers(), name="sound")
    assert str(check) == "sound: 200 rows, 6 columns (6 numbers).\nNothing to do."
    assert check.options == []


def genes_in_rows(kind, n_genes, n_samples, named):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_genes, n_samples))
    if kind == "expression":
        X = np.abs(X * 0.4 + rng.gamma(2.0, 2.0, (n_genes, 1)))
    frame = pd.DataFrame(X, columns=[f"sample {j}" for j in range(n_samples)])
    names = [f"ENSG{at:011d}" for at in range(n_genes)]
    if named == "column":
        frame.insert(0, "gene", names)
    else:
        frame.index = names
    return frame


@pytest.mark.parametrize("kind", ["expression", "plain numbers"])
@pytest.mark.parametrize("named", ["column", "index"])
@pytest.mark.parametrize("gaps", [False, True])
def test_genes_in_rows_are_noticed(kind, named, gaps):
    frame = genes_in_rows(kind, 20_000, 100, named)
    if gaps:
        frame.iloc[3:2000:7, 5:20] = np.nan
    sentence = said(check_table(frame), "orientation")
    assert sentence.startswith("Features seem to be rows: 20,000 rows, named ")
    assert sentence.endswith("[--transpose]")


@pytest.mark.parametrize(
    "frame", [colleges(), flights(), bikes(), load_iris(as_frame=True).data, numbers(5000, 8)]
)
def test_samples_in_rows_are_left_alone(frame):
    assert said(check_table(frame), "orientation") == ""


def test_copies_of_columns_are_named():
    frame = numbers()
    frame["copy"] = frame["b"]
    frame["near"] = -2.0 * frame["c"] + 0.02 * frame["d"]
    check = check_table(frame)
    assert said(check, "duplicates") == "Duplicated columns: 'copy' = 'b'. [--drop copy]"
    r = np.corrcoef(frame["c"], frame["near"])[0, 1]
    expected = f"Nearly duplicated columns: 'near' ~ 'c' (r = {r:+.3f}). [--drop near]"
    assert said(check, "near duplicates") == expected


def test_columns_that_differ_in_a_row_that_is_not_drawn_are_no_copies():
    frame = numbers(30_000, 4)
    frame["e"] = frame["d"]
    drawn = set(TableFacts.of(as_mixed_table(frame)).sample_rows.tolist())
    frame.loc[next(at for at in range(30_000) if at not in drawn), "e"] = 77.0
    check = check_table(frame)
    assert said(check, "duplicates") == ""
    assert "'e' ~ 'd'" in said(check, "near duplicates")


def test_constant_columns_of_numbers_and_text():
    frame = numbers().assign(one=1.0, word="x", nearly=np.r_[np.ones(199), 2.0])
    expected = "Constant columns, ranked last: 'one', 'word'. [--drop one,word]"
    assert said(check_table(frame), "constant columns") == expected


def test_gaps_are_counted_by_column_and_row():
    frame = numbers(400)
    frame.loc[:99, "a"] = np.nan
    frame.loc[50:149, "b"] = np.nan
    frame.loc[7, "c"] = np.nan
    expected = (
        "Gaps in 3 columns, in 150 of 400 rows: 'a' (25%), 'b' (25%), 'c' (under 1%). "
        "[--missing model]"
    )
    assert said(check_table(frame), "gaps") == expected


def test_words_for_nothing_count_as_gaps_and_set_aside_columns_do_not():
    frame = numbers(100)
    frame.insert(0, "name", [f"n{at}" if at % 2 else None for at in range(100)])
    frame["score"] = ["?" if at < 20 else str(at % 7) for at in range(100)]
    frame.loc[10:29, "a"] = np.nan
    expected = "Gaps in 2 columns, in 30 of 100 rows: 'a' (20%), 'score' (20%). [--missing model]"
    assert said(check_table(frame), "gaps") == expected


def test_mixed_units_are_told_by_the_variances():
    frame = numbers(300).assign(e=lambda t: 1e4 * t["e"])
    sentence = said(check_table(frame), "units")
    ratio = frame["e"].var() / frame["a"].var()
    assert "to 'e'): the columns have different units" in sentence
    assert float(sentence.split("factor of ")[1].split()[0]) == pytest.approx(ratio, rel=0.3)
    assert said(check_table(numbers(300)), "units") == ""
    assert "different units" in " ".join(check_table(frame).to_say("SPCAFS"))
    assert check_table(frame).to_say("AutoSelector") == []


def test_logarithms_are_recommended_until_they_are_taken():
    check = check_table(gene_counts(100, 500))
    assert "--log" in " ".join(check.to_say("AutoSelector"))
    assert "--log" not in " ".join(check.to_say("AutoSelector", log=True))


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_rows_of_zeros(storage):
    X = np.random.default_rng(0).poisson(3.0, (50, 8)).astype(float)
    X[[3, 9]] = 0.0
    expected = "Rows of zeros only: 2 of 50. [--drop-zero-rows]"
    assert said(check_table(storage(X)), "zero rows") == expected


def test_zeros_beside_text_are_values():
    frame = pd.DataFrame(
        {"flag": np.arange(100) % 2, "town": np.array(["a", "b", "c"])[np.arange(100) % 3]}
    )
    assert said(check_table(frame), "zero rows") == ""


@pytest.mark.parametrize("d", [6, 300])
def test_a_row_that_is_a_component_by_itself(d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, d))
    X[41] += 40.0
    assert said(check_table(X), "outliers").startswith("Outliers: row 42 (")
    assert said(check_table(X), "outliers").endswith("[--drop-samples 42]")
    names = np.array([f"s{at}" for at in range(100)], dtype=object)
    features = np.array([f"x{j}" for j in range(d)], dtype=object)
    named = check_table(LabelledTable(X, features, names))
    assert said(named, "outliers").startswith("Outliers: sample s41 (")
    assert said(check_table(np.delete(X, 41, axis=0)), "outliers") == ""


def test_a_wide_sparse_table_is_not_made_dense_as_a_whole():
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 2000, 160_000), rng.integers(0, 40_000, 160_000)
    X = sp.csr_matrix((rng.uniform(1, 2, 160_000), (rows, columns)), shape=(2001, 40_000))
    X = sp.hstack([X[:, :7], X[:, [3]], X[:, 8:]]).tocsr()
    tracemalloc.start()
    check = check_table(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert said(check, "zero rows") == "Rows of zeros only: 1 of 2,001. [--drop-zero-rows]"
    assert "'x7' = 'x3'" in said(check, "duplicates") + said(check, "near duplicates")
    assert peak < 2.5 * 2000 * 40_000 * 8 / 2


def images(n=100, seed=0):
    """Dark pictures: many dim pixels, and some at the top of the scale."""
    rng = np.random.default_rng(seed)
    return np.minimum(rng.exponential(6.0, (n, 400)) ** 1.8, 255).astype(int)


@pytest.mark.parametrize(
    ("X", "is_counts"),
    [
        (gene_counts(12, 3000), True),
        (gene_counts(100, 500), True),
        (sp.csr_matrix(gene_counts(60, 400)), True),
        (np.log1p(gene_counts(60, 400)), False),
        (load_digits().data, False),
        (images(), False),
        (np.random.default_rng(0).integers(0, 256, (100, 400)), False),
        (np.random.default_rng(0).integers(1, 6, (500, 80)), False),
        (colleges(), False),
        (bikes(), False),
    ],
)
def test_logarithms_are_proposed_for_counts_only(X, is_counts):
    sentence = said(check_table(X), "counts")
    assert sentence.endswith("[--log]") == is_counts
    assert bool(sentence) == is_counts


def test_infinite_values_are_named():
    frame = numbers()
    frame.loc[3, ["b", "d"]] = np.inf
    assert (
        said(check_table(frame), "infinite values") == "Infinite values in 'b', 'd'. [--drop b,d]"
    )


def test_options_are_written_as_the_shell_takes_them():
    frame = numbers().assign(**{"my copy": lambda t: t["b"], "a,b": lambda t: t["c"]})
    check = check_table(frame)
    assert "--drop 'my copy'" in check.options
    named = pd.DataFrame({"the id": [f"x{at}" for at in range(200)], "x": numbers()["a"]})
    assert check_table(named).command("t.csv") == "keepers select t.csv --id 'the id'"
    assert check_table(named).needed(["--id"]) == []


def test_one_pass_over_parts_says_the_same():
    frame = flights(5000)
    whole = as_mixed_table(frame, name="flights")
    facts = TableFacts(whole.feature_names.tolist())
    for at in range(0, 5000, 777):
        part = as_mixed_table(frame.iloc[at : at + 777])
        facts.add(part.X, part.others)
    assert str(check_facts(facts, whole)) == str(check_table(frame, name="flights"))


@pytest.mark.parametrize(
    "X",
    [
        np.full((30, 3), 1e200) * np.random.default_rng(0).standard_normal((30, 3)),
        np.full((30, 3), 1e-200) * np.random.default_rng(0).standard_normal((30, 3)),
        np.full((30, 3), 0.1),
        np.full((30, 3), np.nan),
        np.full((30, 3), np.inf),
        np.zeros((1, 1)),
        np.eye(2),
        sp.csr_matrix((30, 5)),
        np.where(np.eye(30) > 0, np.nan, 1.0),
        pd.DataFrame({"only": ["text", "here"]}),
    ],
)
def test_any_table_is_described(X):
    assert str(check_table(X)).startswith("table: ")
