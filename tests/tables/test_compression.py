"""Compressed streams: expanded within a limit, whole or refused."""

import bz2
import gzip
import lzma

import pytest

from keepers.exceptions import DataError
from keepers.tables.atomic import COMPRESSIONS, open_plain
from keepers.tables.opening import open_table, scan_table

TEXT = b"a,b\n" + b"".join(b"%d,%d\n" % (at, at * at) for at in range(2000))


def pack(kind, content=TEXT):
    return {".gz": gzip, ".bz2": bz2, ".xz": lzma}[kind].compress(content)


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_no_more_than_the_limit_is_expanded(tmp_path, kind):
    path = tmp_path / f"a.csv{kind}"
    path.write_bytes(pack(kind, b"0" * 4_000_000))
    assert path.stat().st_size < 50_000
    with open_plain(path, 1_000_000) as stream:
        with pytest.raises(DataError, match="expanded, needs"):
            stream.read()
        assert stream.raw._n_bytes < 2_500_000
    for read in (open_table, scan_table):
        with pytest.raises(DataError, match=r"a\.csv.*expanded, needs .*--max-size"):
            read(path, max_bytes=1_000_000)


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_a_whole_file_is_expanded_and_one_that_is_cut_off_or_damaged_refused(tmp_path, kind):
    path, content = tmp_path / f"a.csv{kind}", pack(kind)
    path.write_bytes(content)
    assert open_table(path).values[-1].tolist() == [1999, 1999**2]
    for length in (len(content) // 3, len(content) - 9):
        path.write_bytes(content[:length])
        with pytest.raises(DataError, match=r"a\.csv") as refusal:
            open_table(path)
        assert "\n" not in str(refusal.value)
    path.write_bytes(content[:20] + bytes(20) + content[40:])
    with pytest.raises(DataError, match=r"a\.csv"):
        open_table(path)
