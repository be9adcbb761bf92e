"""The fuzz of file readers counts every file once, and can fail."""

import sys
import tempfile
from pathlib import Path

import pytest

for package in ("pandas", "polars", "pyarrow", "h5py", "resource"):
    pytest.importorskip(package)

TOOLS = Path(__file__).parent.parent / "tools"

# A child that does as the file says, instead of reading it.
STAND_IN = """
import os, sys, time
from fuzzing import reading

def obey(path, **arguments):
    word = path.read_text()
    obey.n_read += 1
    if word == "crash" or (word == "crash second" and obey.n_read == 2):
        os.abort()
    if word == "hang":
        time.sleep(600)
    if word == "memory":
        raise MemoryError
    raise ValueError(word) if word == "other" else reading.KeepersError(word)

obey.n_read = 0
reading.open_table = obey
reading.LONGEST_SECONDS = 1
reading.serve(sys.stdin, sys.stdout)
"""


@pytest.fixture
def fuzz(monkeypatch, tmp_path):
    """The tool, whose temporary folders are the test's."""
    monkeypatch.syspath_prepend(str(TOOLS))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    import fuzz_files

    return fuzz_files


def _totals(lines, outcomes):
    """The last row of a table of counts."""
    numbers = next(line for line in lines if line.startswith("all ")).split()[1:]
    return dict(zip(outcomes, map(int, numbers), strict=True))


def test_nothing_fails_and_the_counts_add_up(fuzz, capsys, tmp_path):
    valid, mutated = 40, 100
    code = fuzz.main(["--valid", str(valid), "--mutated", str(mutated), "--seed", "3"])
    printed = capsys.readouterr().out
    assert code == 0, printed
    first, second = (part.splitlines() for part in printed.split("Mutated files"))
    totals = _totals(first, fuzz.VALID_OUTCOMES)
    assert totals["different"] == totals["other exception"] == 0
    assert totals["same"] > valid
    assert sum(_totals(second, fuzz.OUTCOMES).values()) == mutated
    assert not list(tmp_path.iterdir())


def test_every_valid_file_is_counted_once_each_way(fuzz, tmp_path):
    tally = fuzz.Tally(tmp_path / "kept")
    fuzz.try_valid(40, 3, tmp_path / "valid", tally)
    as_tables = {kind: n for kind, n in tally.counts.items() if not kind.endswith(", blocks")}
    assert sum(counts.total() for counts in as_tables.values()) == 40
    in_blocks = sum(counts.total() for counts in tally.counts.values()) - 40
    assert in_blocks == sum(map(fuzz.has_blocks, (tmp_path / "valid").iterdir()))


def test_the_same_seed_makes_the_same_files(fuzz, tmp_path):
    for name in ("one", "two"):
        fuzz.try_valid(12, 5, tmp_path / name, fuzz.Tally(tmp_path / "kept"))
    files = [sorted((tmp_path / name).iterdir()) for name in ("one", "two")]
    assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]


def test_a_reader_that_changes_one_value_is_reported_as_different(
    fuzz, monkeypatch, capsys, tmp_path
):
    read = fuzz.datasets.open_table

    def read_wrongly(path, **arguments):
        table = read(path, **arguments)
        if path.suffix == ".npy":
            table.X[-1, -1] += 1
        return table

    monkeypatch.setattr(fuzz.datasets, "open_table", read_wrongly)
    code = fuzz.main(["--valid", "32", "--mutated", "0", "--seed", "3"])
    printed = capsys.readouterr().out
    assert code == 1
    failures = [line for line in printed.splitlines() if line.startswith("FAILED different")]
    assert len(failures) == 1
    assert "(numpy save): value [" in failures[0]
    assert "--seed 3" in printed
    assert list(tmp_path.glob("keepers-fuzz-*/failed/*.npy"))


def test_an_error_that_a_reader_did_not_foresee_is_no_refusal(fuzz, monkeypatch, tmp_path):
    def stumble(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("keepers.data.formats.numpy_files.read_header", stumble)
    case = fuzz.Case("numpy save", tmp_path / "a.npy", fuzz.np.ones((2, 2)))
    fuzz.np.save(case.path, case.X)
    assert next(outcome for _, outcome, _ in fuzz.judge(case)) == "other exception"


def test_a_crash_or_a_hang_ends_one_process_and_names_the_right_file(fuzz, tmp_path):
    from fuzzing.reading import Reader

    folder = tmp_path / "files"
    folder.mkdir()
    reader = Reader(folder, (sys.executable, "-c", STAND_IN))
    outcomes = []
    words = ["refuse", "crash", "refuse", "hang", "other", "memory", "refuse"]
    for number, word in enumerate(words):
        path = folder / f"{number}.npz"
        path.write_text(word)
        reader.start(path, {})
        outcomes.append(reader.outcome(path, {})[0])
        reader.rest()
    reader.stop()
    assert outcomes == [
        *("refused", "crash", "refused", "hang", "other exception", "out of memory", "refused")
    ]


def test_a_crash_that_needs_earlier_files_is_told_apart(fuzz, tmp_path):
    from fuzzing.reading import Reader

    folder = tmp_path / "files"
    folder.mkdir()
    reader = Reader(folder, (sys.executable, "-c", STAND_IN))
    told = []
    for number in range(2):
        path = folder / f"{number}.npz"
        path.write_text("crash second")
        reader.start(path, {})
        told.append(reader.outcome(path, {}))
    reader.stop()
    assert told[0][0] == "refused"
    assert told[1][0] == "crash"
    assert "not alone, but after 1 other" in told[1][1]
