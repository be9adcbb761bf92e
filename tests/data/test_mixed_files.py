"""Files with text and dates beside the numbers, and files with features in rows."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from keepers.data.table_files import open_blocks, open_table
from keepers.exceptions import DataError, DataWarning, ParameterError

FRAME = pd.DataFrame(
    {
        "town": ["Rome", None, "Oslo", "Lima"],
        "a": [1.5, 2.0, np.nan, 4.0],
        "member": ["yes", "no", "no", "yes"],
        "b": [1, 2, 3, 4],
    }
)


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif path.suffix == ".feather":
        frame.to_feather(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.fixture(params=["csv", "tsv", "parquet", "feather"])
def path(request, tmp_path):
    return write(FRAME, tmp_path / f"t.{request.param}")


def test_text_stands_beside_the_numbers_in_its_place(path):
    table = open_table(path, mixed=True)
    assert table.feature_names.tolist() == ["a", "b"]
    np.testing.assert_array_equal(table.X, FRAME[["a", "b"]])
    assert [(c.name, c.position, c.kind) for c in table.others] == [
        ("town", 0, "text"),
        ("member", 2, "text"),
    ]
    assert table.others[0].values.tolist() == ["Rome", None, "Oslo", "Lima"]


def test_without_it_text_is_refused_by_name(path):
    with pytest.raises(DataError, match="these do not: 'town', 'member'"):
        open_table(path)


def test_roles_come_before_kinds(path):
    table = open_table(path, mixed=True, labels="member", identifier="b", drop=["town"])
    assert table.feature_names.tolist() == ["a"]
    assert table.others == ()
    assert table.labels.tolist() == ["yes", "no", "no", "yes"]
    assert table.sample_names.tolist() == ["1", "2", "3", "4"]


def test_a_table_of_text_alone_is_one(path):
    write(FRAME[["town", "member"]], path)
    table = open_table(path, mixed=True)
    assert table.X.shape == (4, 0)
    assert len(table.others) == 2


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_long_integers_are_text_wherever_they_are_stored(tmp_path, suffix):
    ids = [2**60 + at for at in range(5)]
    path = write(pd.DataFrame({"id": ids, "x": np.arange(5) / 2}), tmp_path / f"t.{suffix}")
    table = open_table(path, mixed=True)
    assert table.feature_names.tolist() == ["x"]
    assert table.others[0].values.tolist() == [str(each) for each in ids]
    with pytest.raises(DataError, match=r"exact|2\*\*53"):
        open_table(path)


def test_dates_categories_and_kinds_of_parquet(tmp_path):
    day = datetime.date(2020, 5, 1)
    frame = pl.DataFrame(
        {
            "day": [day, None, day],
            "moment": [datetime.datetime(2020, 5, 1, 12, tzinfo=datetime.UTC)] * 3,
            "kind": pl.Series(["p", "q", None], dtype=pl.Categorical),
            "flag": [True, None, False],
            "took": [datetime.timedelta(seconds=5)] * 3,
            "x": [1.0, 2.0, 3.0],
        }
    )
    frame.write_parquet(tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet", mixed=True)
    assert table.feature_names.tolist() == ["flag", "x"]
    np.testing.assert_array_equal(table.X[:, 0], [1, np.nan, 0])
    kinds = {column.name: (column.kind, column.position) for column in table.others}
    assert kinds == {
        "day": ("date", 0),
        "moment": ("date", 1),
        "kind": ("text", 2),
        "took": ("text", 4),
    }
    assert table.others[0].values.astype("M8[D]").tolist() == [day, None, day]
    assert table.others[1].values.astype("M8[s]")[0] == np.datetime64("2020-05-01T12:00:00")


def test_the_order_of_a_category_is_that_of_its_writer(tmp_path):
    sizes = pd.Categorical(["L", "S", None, "L"] * 50, ["S", "M", "L"], ordered=True)
    frame = pd.DataFrame({"size": sizes, "x": np.arange(200.0)})
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=7)
    frame.to_feather(tmp_path / "t.feather")
    for suffix in ("parquet", "feather"):
        (column,) = open_table(tmp_path / f"t.{suffix}", mixed=True).others
        assert (column.kind, column.levels) == ("ordered", ("S", "M", "L"))
        assert column.values.tolist() == ["L", "S", None, "L"] * 50


def test_text_far_down_is_found_when_it_comes(tmp_path):
    lines = ["a,b"] + [f"{at}.123456789,{at % 7}" for at in range(120_000)] + ["5,?"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    assert (tmp_path / "t.csv").stat().st_size > 2**20
    table = open_table(tmp_path / "t.csv", mixed=True)
    assert table.feature_names.tolist() == ["a"]
    assert table.others[0].values[-1] == "?"
    blocks = open_blocks(tmp_path / "t.csv", mixed=True)
    with pytest.raises(DataError, match="these do not: 'b'") as caught:
        list(blocks.blocks(annotated=True))
    told = blocks.with_texts(caught.value.names)
    assert told.text_columns == ("b",)
    assert sum(len(block.others[0].values) for block in told.blocks(annotated=True)) == 120_001


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_is_text_in_one_file_is_text_in_all(tmp_path, suffix):
    write(pd.DataFrame({"a": [1.5, 2.5], "k": [1, 2]}), tmp_path / f"p1.{suffix}")
    write(pd.DataFrame({"a": [3.5, 4.5], "k": ["x", None]}), tmp_path / f"p2.{suffix}")
    blocks = open_blocks(tmp_path, mixed=True)
    assert blocks.feature_names.tolist() == ["a"]
    words = [word for block in blocks.blocks(annotated=True) for word in block.others[0].values]
    assert words == ["1", "2", "x", None]


def genes(n=6, m=3):
    X = np.random.default_rng(0).standard_normal((n, m))
    frame = pd.DataFrame(X, columns=[f"s{j}" for j in range(m)])
    frame.insert(0, "gene", [f"g{at}" for at in range(n)])
    return frame


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "feather"])
def test_features_in_rows_are_turned(tmp_path, suffix):
    path = write(genes(), tmp_path / f"g.{suffix}")
    for given in ({}, {"identifier": "gene"}):
        table = open_table(path, transpose=True, **given)
        np.testing.assert_array_equal(table.X, genes().drop(columns="gene").to_numpy().T)
        assert table.feature_names.tolist() == [f"g{at}" for at in range(6)]
        assert table.sample_names.tolist() == ["s0", "s1", "s2"]
    assert open_table(path, transpose=True, drop=["s1"]).sample_names.tolist() == ["s0", "s2"]


@pytest.mark.parametrize(
    ("drop", "samples", "features"),
    [
        (["g1,g4"], [0, 1, 2], [0, 2, 3, 5]),
        (["s0", "g[0-3]"], [1, 2], [4, 5]),
        (["s*"], None, None),
        (["g?"], None, None),
    ],
)
def test_rows_of_a_turned_table_are_left_out_by_name_as_columns_are(
    tmp_path, drop, samples, features
):
    path = write(genes(), tmp_path / "g.csv")
    if samples is None:
        with pytest.raises(DataError, match="must remain"):
            open_table(path, transpose=True, drop=drop)
        return
    table = open_table(path, transpose=True, drop=drop)
    whole = genes().drop(columns="gene").to_numpy().T
    np.testing.assert_array_equal(table.X, whole[np.ix_(samples, features)])  # copied
    assert table.feature_names.tolist() == [f"g{at}" for at in features]
    assert table.sample_names.tolist() == [f"s{at}" for at in samples]


def test_what_a_turned_table_does_not_hold_cannot_be_left_out(tmp_path):
    path = write(genes(), tmp_path / "g.csv")
    with pytest.raises(DataError, match="There is no column 'g9'"):
        open_table(path, transpose=True, drop=["g9"])
    with pytest.raises(DataError, match="one role"):
        open_table(path, transpose=True, identifier="gene", drop=["gene"])


def test_numbers_alone_are_turned_with_names_of_their_own(tmp_path):
    X = np.random.default_rng(0).standard_normal((5, 2))
    np.save(tmp_path / "x.npy", X)
    table = open_table(tmp_path / "x.npy", transpose=True)
    np.testing.assert_array_equal(table.X, X.T)
    assert table.feature_names.tolist() == ["x0", "x1", "x2", "x3", "x4"]
    assert table.sample_names.tolist() == ["x0", "x1"]
    fewer = open_table(tmp_path / "x.npy", transpose=True, drop=["x1", "x4"])  # x1: a column first
    np.testing.assert_array_equal(fewer.X, X.T[:1, :4])


def test_further_text_is_left_out_with_a_note(tmp_path):
    frame = genes()
    frame.insert(1, "about", "some words")
    path = write(frame, tmp_path / "g.csv")
    with pytest.warns(DataWarning, match="no samples and are left out: 'about'"):
        table = open_table(path, transpose=True)
    assert table.X.shape == (3, 6)


def test_repeated_names_of_rows_are_refused_or_numbered(tmp_path):
    frame = genes().assign(gene=["p", "q", "p", "r", "s", "t"])
    path = write(frame, tmp_path / "g.csv")
    with pytest.raises(DataError, match="duplicates: 'p'"):
        open_table(path, transpose=True)
    table = open_table(path, transpose=True, make_unique=True)
    assert table.feature_names.tolist() == ["p", "q", "p.1", "r", "s", "t"]


def test_what_cannot_be_turned_is_refused(tmp_path):
    path = write(genes(), tmp_path / "g.csv")
    with pytest.raises(ParameterError, match="labels="):
        open_table(path, transpose=True, labels="gene")
    with pytest.raises(DataError, match="there is no"):
        open_table(tmp_path / "absent.csv", transpose=True)
    words = write(FRAME[["town", "member"]].fillna("x"), tmp_path / "w.csv")
    with pytest.warns(DataWarning), pytest.raises(DataError, match="at least one row"):
        open_table(words, transpose=True)
