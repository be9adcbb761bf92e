"""Values as files hold them: long lines, codes, durations; text is parsed once."""

import datetime

import numpy as np
import polars as pl
import pytest

from keepers.datasets import open_table, scan_table
from keepers.prepare.preparer import TablePreparer
from keepers.tables import sniffing
from tables.both_ways import both_ways

WRITE = {
    "csv": pl.DataFrame.write_csv,
    "parquet": pl.DataFrame.write_parquet,
    "feather": pl.DataFrame.write_ipc,
    "xlsx": pl.DataFrame.write_excel,
}


@both_ways
def test_lines_longer_than_a_megabyte_are_read(tmp_path, read):
    X = np.random.default_rng(0).normal(size=(3, 80_000))
    names = ",".join(f"gene{at}" for at in range(X.shape[1]))
    rows = "\n".join(",".join(map(repr, row.tolist())) for row in X)
    assert min(map(len, rows.split("\n"))) > 1_000_000
    (tmp_path / "wide.csv").write_text(f"{names}\n{rows}\n")
    np.testing.assert_array_equal(read(tmp_path / "wide.csv").values, X)


@pytest.mark.parametrize("suffix", WRITE)
def test_codes_with_leading_zeros_are_text_from_every_format(tmp_path, suffix):
    codes = [f"{at:05}" for at in range(1000, 1040)]
    frame = pl.DataFrame({"postcode": codes, "a": np.arange(40.0) ** 2, "b": [1.5, 2.0] * 20})
    WRITE[suffix](frame, tmp_path / f"t.{suffix}")
    table = open_table(tmp_path / f"t.{suffix}")
    assert table.others == ["postcode"]
    assert table.frame["postcode"].to_list() == codes
    assert TablePreparer().fit(table).kinds_["postcode"].kind == "identifier"


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_durations_in_files_are_numbers_in_seconds(tmp_path, suffix):
    spans = [datetime.timedelta(minutes=at * at) for at in range(30)]
    frame = pl.DataFrame({"took": spans, "a": np.arange(30.0) % 7})
    WRITE[suffix](frame, tmp_path / f"t.{suffix}")
    found = TablePreparer().fit_transform(open_table(tmp_path / f"t.{suffix}"))
    np.testing.assert_allclose(np.asarray(found)[:, 0], [span.total_seconds() for span in spans])


def test_text_in_blocks_is_parsed_once_and_every_pass_reads_what_was_made_of_it(tmp_path):
    path = tmp_path / "t.csv"
    X = np.arange(400.0).reshape(100, 4)
    pl.DataFrame(X, schema=list("abcd")).write_csv(path)
    scan = scan_table(path)
    path.unlink()
    for _ in range(3):
        np.testing.assert_array_equal(np.vstack([b.values for b in scan.blocks()]), X)


@pytest.mark.parametrize("read", [open_table, scan_table])
def test_an_error_of_our_own_code_is_not_called_an_unreadable_file(tmp_path, monkeypatch, read):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    monkeypatch.setattr(sniffing, "_kinds", None)  # calling it is a TypeError in our own code
    with pytest.raises(TypeError, match="not callable"):
        read(tmp_path / "t.csv")
