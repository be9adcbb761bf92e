"""From a path or a name to a table, and from a slip to a hint."""

import numpy as np
import pandas as pd
import pytest

from keepers.datasets import open_table, scan_table
from keepers.exceptions import DataError, DataWarning, KeepersError
from keepers.tables.opening import FORMATS, format_of, reads_in_blocks
from tables.both_ways import dense
from tables.test_malformed_files import SOUND

both = pytest.mark.parametrize("read", [open_table, scan_table])
X = np.random.default_rng(2).normal(size=(9, 3))
PEOPLE = "who,height,kind,age\nann,1.5,x,30\nbob,1.75,y,40\ncyd,2,x,50\n"


@pytest.fixture
def people(tmp_path):
    (tmp_path / "people.csv").write_text(PEOPLE)
    return tmp_path / "people.csv"


def rows_of(source, **options):
    return np.vstack([block.values for block in scan_table(source, **options).blocks()])


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("srbtc", "Did you mean 'srbct'"),
        ("nonsense", "Known: srbct, digits"),
        ("", "is a folder"),
        ("x" * 5000, "neither a file nor"),
        ("people.csv/x", "There is no file"),
        ("poeple.csv", r"Did you mean 'people\.csv'"),
    ],
)
def test_a_name_that_is_nothing_gets_a_hint(people, source, hint, monkeypatch):
    monkeypatch.chdir(people.parent)
    with pytest.raises(DataError, match=hint):
        open_table(source)
    for scanned in (f"./{source}", [f"./{source}"]) if source else ():
        with pytest.raises(DataError, match=r"is not there|no file"):
            scan_table(scanned)


@both
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": "kinds"}, "no column 'kinds'. Did you mean 'kind'"),
        ({"identifier": "zzz"}, "The columns are 'who', 'height', 'kind', 'age'"),
        ({"drop": ["kind", "nothing"]}, "no column 'nothing'"),
        ({"labels": "kind", "identifier": "kind"}, "one role"),
        ({"labels": "kind", "drop": ["k*"]}, "one role"),
        ({"drop": ["who,height", "kind", "age"]}, "At least one feature column"),
        ({"format": "parket"}, r"got 'parket'.*Did you"),
        ({"dataset": "X"}, "dataset= .* HDF5"),
    ],
)
def test_options_that_cannot_be_are_refused(people, options, message, read):
    with pytest.raises(KeepersError, match=message):
        read(people, **options)


SUFFIXES = [(known, suffix) for known in FORMATS for suffix in known.suffixes]
SUFFIXES += [(known, f"{known.suffixes[0]}.gz") for known in FORMATS[:2]]
TEXTS = (".csv", ".tsv", ".gz", ".mtx", ".txt", ".dat", "unnamed")


@pytest.mark.parametrize(("known", "suffix"), SUFFIXES, ids=[suffix for _, suffix in SUFFIXES])
def test_a_suffix_stands_for_one_format(tmp_path, known, suffix):
    path = tmp_path / f"A{suffix.upper()}"
    path.write_bytes(b"")  # not a table of any format
    assert format_of(path) is known
    with pytest.raises(KeepersError, match="A" + suffix.upper()):
        open_table(path)
    with pytest.raises(DataError) as refusal:
        scan_table(path)
    assert ("cannot be read in blocks" in str(refusal.value)) == (not known.in_blocks)


@pytest.mark.filterwarnings("ignore::keepers.exceptions.DataWarning")
@pytest.mark.parametrize("name", [name for name in SOUND if name.endswith(TEXTS)])
def test_a_text_file_whose_name_shows_nothing_is_read_by_its_content(tmp_path, name):
    make, options = SOUND[name]
    content = make(np.random.default_rng(0))
    (tmp_path / name).write_bytes(content)
    named = open_table(tmp_path / name, **options)
    assert named.values.shape == (12, 3 if name == "quoted.csv" else 7)
    for other in ("a", "a.unknown", "a.txt"):
        (tmp_path / other).write_bytes(content)
        found = open_table(tmp_path / other, **options)
        np.testing.assert_array_equal(dense(found.values), dense(named.values))


GENES = pd.DataFrame(X[:6], columns=["s0", "s1", "s2"])
GENES.insert(0, "gene", [f"g{at}" for at in range(6)])


@pytest.mark.parametrize(
    ("suffix", "options", "samples", "features"),
    [
        ("csv", {}, [0, 1, 2], range(6)),
        ("csv", {"identifier": "gene"}, [0, 1, 2], range(6)),
        ("parquet", {"drop": ["s1"]}, [0, 2], range(6)),
        ("feather", {"drop": ["g1,g4"]}, [0, 1, 2], [0, 2, 3, 5]),
        ("csv", {"drop": ["s0", "g[0-3]"]}, [1, 2], [4, 5]),
    ],
)
def test_features_in_rows_are_turned(tmp_path, suffix, options, samples, features):
    path = tmp_path / f"t.{suffix}"
    GENES.to_csv(path, index=False) if suffix == "csv" else getattr(GENES, f"to_{suffix}")(path)
    table = open_table(path, transpose=True, **options)
    np.testing.assert_array_equal(table.values, X[:6].T[np.ix_(samples, features)])
    assert table.names.tolist() == [f"g{at}" for at in features]
    assert table.ids.tolist() == [f"s{at}" for at in samples]
    path = tmp_path / "twice.csv"
    GENES.assign(gene=list("pqprst"), about="some words").to_csv(path, index=False)
    with pytest.warns(DataWarning, match="left out: 'about'"):
        table = open_table(path, transpose=True, make_unique=True)
    assert table.names.tolist() == ["p", "q", "p.1", "r", "s", "t"]


@pytest.fixture
def folder(tmp_path):
    for number in range(3):
        np.save(tmp_path / f"part-{number + 8}.npy", X[3 * number : 3 * number + 3])
    return tmp_path


def test_a_folder_a_pattern_or_a_list_is_one_table(folder, monkeypatch):
    np.save(folder / "_part-0.npy", np.ones((5, 7)))
    (folder / "notes.txt").write_text("a\tb\n1\t2\n")
    assert reads_in_blocks(folder)
    assert reads_in_blocks(str(folder / "part-*.npy"))
    for source in (folder, str(folder / "part-*.npy"), folder / "part-*.npy"):
        np.testing.assert_array_equal(rows_of(source), X)
    swapped = [folder / "part-10.npy", str(folder / "part-8.npy")]
    np.testing.assert_array_equal(rows_of(swapped), X[[6, 7, 8, 0, 1, 2]])
    monkeypatch.chdir(folder)
    scan = scan_table("part-*.npy")
    monkeypatch.chdir("/")
    assert scan.name == "part-*.npy"
    (folder / "day").mkdir()
    np.save(folder / "day" / "a[1].npy", X)
    for source in ("da*", "day/*.npy", "day/a[1].npy"):
        np.testing.assert_array_equal(rows_of(str(folder / source)), X)
    assert not reads_in_blocks(folder / "day" / "a[1].npy")
    np.testing.assert_array_equal(np.vstack([block.values for block in scan.blocks()]), X)


def test_folders_and_lists_that_are_not_one_table_are_refused(folder, tmp_path):
    (folder / "sub").mkdir()
    (folder / "sub" / "notes.md").write_text("")
    (folder / "a.csv").write_text("a,b,c\n1,2,3\n")
    for source, message in (
        (folder, r"holds CSV \(a\.csv\) and NumPy array \(part-10\.npy\)"),
        ([folder / "a.csv", folder / "part-8.npy"], "must have one format"),
        (folder / "sub", r"sub holds notes\.md"),
        (str(folder / "*.parquet"), "parquet holds nothing"),
        ([], "list of files is empty"),
        ([folder], "is a folder"),
    ):
        with pytest.raises(DataError, match=message):
            scan_table(source)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "xlsx", "npz"])
def test_annotation_is_neither_feature_nor_sample(tmp_path, suffix):
    frame = pd.DataFrame({"Start": [5.0, 6.0], "End": [7.0, 9.0], "a": [1.0, 2.0], "b": [3.0, 4.0]})
    path = tmp_path / f"t.{suffix}"
    if suffix == "npz":
        np.savez(path, X=frame.to_numpy(), feature_names=frame.columns.to_numpy(dtype=str))
    else:
        write = {"csv": frame.to_csv, "parquet": frame.to_parquet, "xlsx": frame.to_excel}[suffix]
        write(path, index=False)
    table = open_table(path, annotation=["Start,E*"])
    assert table.columns == ["a", "b"]
    turned = open_table(path, annotation=["Start,E*"], transpose=True)
    np.testing.assert_array_equal(turned.values, [[1, 2], [3, 4]])
    assert list(turned.ids) == ["a", "b"]
    with pytest.raises(DataError, match="no column 'Stop'"):
        open_table(path, annotation=["Stop"], transpose=True)
    if suffix in ("csv", "parquet"):
        assert scan_table(path, annotation=["Start,E*"]).features == ["a", "b"]
