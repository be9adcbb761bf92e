"""A table in blocks, prepared as it is read, is the table prepared in memory."""

import pickle

import numpy as np
import pytest

from keepers.exceptions import DataError
from keepers.linalg.ordering import drawn_rows
from keepers.prepare.check import check_facts, check_table
from keepers.prepare.kinds import TableFacts, draw_table
from keepers.prepare.preparer import PreparedBlocks, TablePreparer
from keepers.tables.objects import table_of_object
from keepers.tables.opening import scan_table
from keepers.tables.scans import MemoryScan
from people_tables import flights


def people(n=1500, seed=0):
    """Categories, text, dates, truth, an ID beyond 2**53, and gaps in numbers and text."""
    frame = flights(n, seed)
    frame["account"], frame["truth"] = 2**62 + np.arange(n) * 7, frame["day"] % 3 == 0
    frame.loc[::17, "carrier"], frame.loc[::19, "air_time"] = None, np.nan
    return frame


def write_parts(frame, folder, suffix, n_parts=4):
    for part, rows in enumerate(np.array_split(np.arange(len(frame)), n_parts)):
        write = frame.iloc[rows].to_parquet if suffix == "parquet" else frame.iloc[rows].to_csv
        write(folder / f"part-{part}.{suffix}", index=False)


def stacked(blocks):
    return np.vstack([block.values for block in blocks.blocks()])


def both_ways(folder, frame, **settings):
    """Blocks of the folder, and the frame, each prepared by a fit of its own."""
    source = scan_table(folder)
    preparer = TablePreparer(**settings).fit_facts(TableFacts.of(source))
    blocks = PreparedBlocks(source, preparer)
    table = table_of_object(frame)
    return blocks, TablePreparer(**settings).fit(frame).prepare(table, first_row=0).values


@pytest.mark.parametrize(
    ("suffix", "missing"),
    [("parquet", "mean"), ("csv", "median"), ("parquet", "model")],
)
def test_files_in_blocks_are_the_table_in_memory(tmp_path, suffix, missing):
    write_parts(people(), tmp_path, suffix)
    blocks, expected = both_ways(tmp_path, people(), missing=missing)
    aside = {"tailnum", "dest", "time_hour", "account"}
    assert set(people()) - set(blocks.feature_names) == aside
    np.testing.assert_allclose(stacked(blocks), expected, rtol=1e-10, atol=1e-10)
    some = np.vstack([block.values for block in blocks.blocks(np.array([5, 0, 7]))])
    np.testing.assert_allclose(some, expected[:, [5, 0, 7]], rtol=1e-10, atol=1e-10)
    assert blocks.n_samples == 1500
    assert blocks.n_stored == expected.size
    for n_parts in (1, 6):
        parts = [stacked(pickle.loads(pickle.dumps(part))) for part in blocks.parts(n_parts)]
        np.testing.assert_allclose(np.vstack(parts), expected, rtol=1e-10, atol=1e-10)
    drawn, expected = draw_table(scan_table(tmp_path), 100), people().iloc[drawn_rows(1500, 100, 0)]
    assert drawn.frame["origin"].to_list() == expected["origin"].tolist()
    if suffix == "parquet":
        source = scan_table(tmp_path)
        found = str(check_facts(TableFacts.of(source)))
        assert found == str(check_table(people(), name=source.name))


def test_rows_that_cannot_be_prepared_raise():
    whole, holed = people(300).dropna(), table_of_object(people(50).assign(distance=np.nan))
    with pytest.raises(DataError, match=r"'air_time' \(\d+\), 'distance' \(50\)"):
        stacked(PreparedBlocks(MemoryScan(holed), TablePreparer().fit(whole)))
