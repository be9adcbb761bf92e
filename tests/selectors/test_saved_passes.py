"""Passes that were interrupted resume from files beside the checkpoint."""

import json
import os
import random
import signal
import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest

from keepers import SPCAFS, datasets
from keepers.data.blocks import local
from keepers.data.blocks.as_blocks import ArrayBlocks, as_blocks
from keepers.exceptions import DataError, KeepersWarning
from keepers.linalg.streamed import CountedPasses
from keepers.linalg.sums import ProductSum, RowCollection, ScatterSum, SketchSum
from keepers.selectors import saved_passes
from keepers.selectors.saved_passes import SavedPasses

N_FILES, N_ROWS = 12, 40
SETTINGS = {"n_components": 2, "random_state": 0, "solver": "block"}

# Saves after every round of blocks, and dies when a block that was counted to is read.
CHILD = """
import json, os, signal, sys
import numpy as np
from keepers import SPCAFS
from keepers.data.blocks import local
from keepers.linalg.sums import SketchSum
from keepers.selectors import saved_passes

saved_passes.SECONDS_BETWEEN = saved_passes.REST = 0.0
source, checkpoint, settings, last = *sys.argv[1:3], json.loads(sys.argv[3]), int(sys.argv[4])
counts = {"blocks": 0, "sketched": 0}
check, sketch = local.refuse_misshapen, SketchSum.add

def count(block, width):
    counts["blocks"] += 1
    if counts["blocks"] == last:
        os.kill(os.getpid(), signal.SIGKILL)
    check(block, width)

def count_sketched(self, block):
    counts["sketched"] += 1
    sketch(self, block)

local.refuse_misshapen, SketchSum.add = count, count_sketched
found = SPCAFS(checkpoint=checkpoint, **settings).fit_blocks(source)
np.savez(checkpoint + ".result.npz", scores=found.scores_, n_passes=found.n_passes_, **counts)
"""


def table(seed=0, n_columns=30):
    random_numbers = np.random.default_rng(seed)
    X = random_numbers.standard_normal((N_FILES * N_ROWS, n_columns))
    X[:, :5] += 3 * X[:, [7]]
    X[:, 10:14] += 2 * X[:, [20]]
    return X + 100.0


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def write_npy(path, rows):
    np.save(f"{path}.npy", rows)


def write_csv(path, rows):
    frame = pd.DataFrame(rows).add_prefix("c")
    frame.to_csv(f"{path}.csv", index=False, float_format="%.17g")


def write_parquet(path, rows):
    pytest.importorskip("pyarrow")
    pd.DataFrame(rows).add_prefix("c").to_parquet(f"{path}.parquet", row_group_size=15)


def write_folder(folder, X, write=write_npy):
    folder.mkdir(exist_ok=True)
    for number, rows in enumerate(np.split(X, N_FILES)):
        write(folder / f"part-{number:02d}", rows)
    return folder


def run_child(folder, checkpoint, route, last=0):
    settings = json.dumps({**SETTINGS, "route": route})
    command = [sys.executable, "-W", "ignore", "-c", CHILD, str(folder), str(checkpoint)]
    done = subprocess.run(
        [*command, settings, str(last)], capture_output=True, text=True, check=False
    )
    if last:
        assert done.returncode == -signal.SIGKILL, done.stderr
        return None
    assert done.returncode == 0, done.stderr
    with np.load(f"{checkpoint}.result.npz") as result:
        return dict(result)


def pass_files(checkpoint):
    return sorted(checkpoint.parent.glob(f"{checkpoint.name}.pass*"))


def left_in(checkpoint):
    """Names of all files beside a checkpoint but its own and that of the result."""
    known = {checkpoint.name, f"{checkpoint.name}.result.npz"}
    return {path.name for path in checkpoint.parent.iterdir() if path.is_file()} - known


@pytest.mark.posix
@pytest.mark.parametrize("route", ["scatter", "stream"])
def test_a_first_pass_that_was_killed_is_not_read_again(tmp_path, route):
    X, checkpoint = table(), tmp_path / "fit"
    folder = write_folder(tmp_path / "parts", X)
    run_child(folder, checkpoint, route, last=8)
    assert len(pass_files(checkpoint)) == 1
    found = run_child(folder, checkpoint, route)
    # A thread for each of up to four sums, which are saved when all have as many blocks.
    assert found["sketched"] <= N_FILES - 4
    expected = SPCAFS(**SETTINGS).fit(X)
    close(found["scores"], expected.scores_)
    assert not left_in(checkpoint)


@pytest.mark.posix
def test_a_resumed_pass_gives_the_scores_of_one_that_was_not_interrupted(tmp_path):
    folder = write_folder(tmp_path / "parts", table())
    straight = run_child(folder, tmp_path / "straight", "scatter")
    assert straight["blocks"] == straight["sketched"] == N_FILES
    resumed = tmp_path / "resumed"
    for last in (6, 6):  # killed twice; the second time among the blocks that are left
        run_child(folder, resumed, "scatter", last=last)
    found = run_child(folder, resumed, "scatter")
    assert found["blocks"] < N_FILES - 4
    np.testing.assert_allclose(found["scores"], straight["scores"], rtol=1e-12, atol=1e-15)


@pytest.mark.posix
@pytest.mark.parametrize("last", [N_FILES + 7, 6 * N_FILES + 7])
def test_a_fit_that_was_killed_in_a_later_pass_does_not_repeat_the_first(tmp_path, last):
    X, checkpoint = table(), tmp_path / "fit"
    folder = write_folder(tmp_path / "parts", X)
    run_child(folder, checkpoint, "stream", last=last)
    assert pass_files(checkpoint)
    found = run_child(folder, checkpoint, "stream")
    assert found["sketched"] == 0
    expected = SPCAFS(**SETTINGS).fit(X)
    close(found["scores"], expected.scores_)
    assert not left_in(checkpoint)


@pytest.mark.posix
@pytest.mark.parametrize("route", ["scatter", "stream"])
def test_a_table_that_changed_after_the_kill_is_read_anew(tmp_path, route):
    X, checkpoint = table(), tmp_path / "fit"
    folder = write_folder(tmp_path / "parts", X)
    run_child(folder, checkpoint, route, last=8)
    first = folder / "part-00.npy"
    before = first.stat()
    X[3, 4] += 1000.0
    write_npy(folder / "part-00", X[:N_ROWS])
    os.utime(first, ns=(before.st_atime_ns, before.st_mtime_ns))  # as rsync and cp -p do
    found = run_child(folder, checkpoint, route)
    assert found["sketched"] == N_FILES
    expected = SPCAFS(**SETTINGS).fit(X)
    close(found["scores"], expected.scores_)
    assert not left_in(checkpoint)


# In this process, with an interruption instead of a kill


class Interrupted(BaseException):
    """Raised where a process would be killed."""


@pytest.fixture(autouse=True)
def saving_at_once(monkeypatch):
    monkeypatch.setattr(saved_passes, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(saved_passes, "REST", 0.0)


def counted(call, last=None):
    """What a call returns (None if it was interrupted at block ``last``), and the blocks read."""
    n_blocks, check = 0, local.refuse_misshapen

    def count(block, width):
        nonlocal n_blocks
        n_blocks += 1
        if n_blocks == last:
            raise Interrupted
        check(block, width)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        patch.setattr(local, "refuse_misshapen", count)
        if last is None:
            return call(), n_blocks
        with pytest.raises(Interrupted):
            call()
    return None, n_blocks


def fit(checkpoint, source, **settings):
    return SPCAFS(checkpoint=checkpoint, **SETTINGS, **settings).fit_blocks(source)


@pytest.mark.parametrize("write", [write_csv, write_parquet])
@pytest.mark.parametrize("route", ["scatter", "stream"])
def test_other_formats_are_resumed_as_well(tmp_path, write, route):
    X, checkpoint = table(), tmp_path / "fit"
    folder = write_folder(tmp_path / "parts", X, write)
    counted(partial(fit, checkpoint, folder, route=route), last=8)
    straight, n_straight = counted(partial(fit, tmp_path / "straight", folder, route=route))
    found, n_blocks = counted(partial(fit, checkpoint, folder, route=route))
    assert n_blocks <= n_straight - 4
    close(found.scores_, straight.scores_)
    assert not pass_files(checkpoint)


def test_small_tables_never_pay(tmp_path, monkeypatch):
    monkeypatch.setattr(saved_passes, "SECONDS_BETWEEN", 30.0)
    folder = write_folder(tmp_path / "parts", table())
    _, n_blocks = counted(partial(fit, tmp_path / "fit", folder), last=8)
    assert n_blocks == 8
    assert not pass_files(tmp_path / "fit")


def test_saving_takes_a_small_share_of_the_time(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(saved_passes.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(saved_passes, "SECONDS_BETWEEN", 30.0)
    monkeypatch.setattr(saved_passes, "REST", 20.0)
    files = SavedPasses(tmp_path / "fit", as_blocks(write_folder(tmp_path / "parts", table())))
    one = files.open(ScatterSum(30), None)
    whole_file = saved_passes.whole_file

    def slow(*args, **settings):
        clock[0] += 5.0
        return whole_file(*args, **settings)

    monkeypatch.setattr(saved_passes, "whole_file", slow)
    assert not one.is_due()
    clock[0] += 31.0
    assert one.is_due()
    one.save([ScatterSum(30)])
    clock[0] += 99.0
    assert not one.is_due()
    clock[0] += 2.0
    assert one.is_due()


def test_a_damaged_file_is_read_anew_and_never_gives_another_result(tmp_path):
    X, checkpoint = table(), tmp_path / "fit"
    folder = write_folder(tmp_path / "parts", X)
    straight = SPCAFS(**SETTINGS, route="scatter").fit_blocks(folder)
    counted(partial(fit, checkpoint, folder, route="scatter"), last=8)
    (path,) = pass_files(checkpoint)
    whole = path.read_bytes()
    draw = random.Random(1)
    for at in range(40):
        damaged = bytearray(whole[: draw.choice([len(whole), draw.randrange(len(whole))])])
        for _ in range(at % 4):
            if damaged:
                damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        found, n_blocks = counted(partial(fit, checkpoint, folder, route="scatter"))
        assert n_blocks <= N_FILES
        np.testing.assert_allclose(found.scores_, straight.scores_, rtol=1e-12, atol=1e-15)
        assert not pass_files(checkpoint)
        checkpoint.unlink()


class Armed:
    """Whoever unpickles it leaves a trace."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


CHANGES = {
    "absent": lambda a: None,
    "longer": lambda a: np.concatenate([a, a], axis=-1) if a.ndim else np.array([a, a]),
    "single": lambda a: a.astype(np.float32),
    "text": lambda a: a.astype(str),
    "records": lambda a: np.zeros(3, dtype=[("a", float)]),
}


@pytest.mark.parametrize("change", [*CHANGES, "pickled"])
def test_a_file_with_another_array_is_read_anew(tmp_path, change):
    X, checkpoint, trace = table(), tmp_path / "fit", tmp_path / "trace"
    folder = write_folder(tmp_path / "parts", X)
    counted(partial(fit, checkpoint, folder, route="scatter"), last=8)
    (path,) = pass_files(checkpoint)
    with np.load(path) as archive:
        arrays = dict(archive)
    for name in sorted(set(arrays) - {"header"}):
        other = np.array([Armed(trace)], dtype=object)
        if change != "pickled":
            other = CHANGES[change](arrays[name])
        kept = {**arrays, name: other}
        with path.open("wb") as stream:
            np.savez(stream, **{n: a for n, a in kept.items() if a is not None})
        found, n_blocks = counted(partial(fit, checkpoint, folder, route="scatter"))
        assert n_blocks == N_FILES, name
        expected = SPCAFS(**SETTINGS).fit(X)
        close(found.scores_, expected.scores_)
        checkpoint.unlink()
    assert not trace.exists()


def test_a_file_of_other_threads_is_read_anew(tmp_path, monkeypatch):
    folder = write_folder(tmp_path / "parts", table())
    monkeypatch.setattr(local, "usable_threads", lambda n_bytes: 2)
    counted(partial(fit, tmp_path / "fit", folder, route="scatter"), last=8)
    monkeypatch.setattr(local, "usable_threads", lambda n_bytes: 3)
    found, n_blocks = counted(partial(fit, tmp_path / "fit", folder, route="scatter"))
    assert n_blocks == N_FILES
    expected = SPCAFS(**SETTINGS).fit(table())
    close(found.scores_, expected.scores_)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_threads_are_resumed_as_well(tmp_path, monkeypatch, n_threads):
    folder = write_folder(tmp_path / "parts", table())
    monkeypatch.setattr(local, "usable_threads", lambda n_bytes: n_threads)
    straight, _ = counted(partial(fit, tmp_path / "straight", folder, route="scatter"))
    counted(partial(fit, tmp_path / "fit", folder, route="scatter"), last=8)
    found, n_blocks = counted(partial(fit, tmp_path / "fit", folder, route="scatter"))
    assert n_blocks <= N_FILES - 4
    np.testing.assert_allclose(found.scores_, straight.scores_, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("source", [list, np.concatenate, lambda parts: lambda: iter(parts)])
def test_the_first_pass_of_what_is_not_in_files_is_read_again(tmp_path, source, monkeypatch):
    monkeypatch.setattr("keepers.data.blocks.as_blocks.rows_at_once", lambda *_: N_ROWS)
    given = source(np.split(table(), N_FILES))
    checkpoint = tmp_path / "fit"
    for route in ("scatter", "stream"):
        counted(partial(fit, checkpoint, given, route=route), last=8)
        assert not pass_files(checkpoint)
    counted(partial(fit, checkpoint, given, route="stream"), last=N_FILES + 8)
    assert pass_files(checkpoint)
    found, _ = counted(partial(fit, checkpoint, given, route="stream"))
    expected = SPCAFS(**SETTINGS).fit(table())
    close(found.scores_, expected.scores_)
    assert not pass_files(checkpoint)


def test_dask_and_tables_of_ones_own_are_not_resumed(tmp_path):
    da = pytest.importorskip("dask.array")
    source = as_blocks(da.from_array(table(), chunks=(N_ROWS, -1)))
    assert SavedPasses(tmp_path / "fit", source).open(ScatterSum(30), None) is None
    fit(tmp_path / "fit", source, route="scatter")
    assert not pass_files(tmp_path / "fit")


# One pass of each kind


def product_of(X):
    V = np.random.default_rng(5).standard_normal((X.shape[1], 3))
    return partial(ProductSum, X.mean(axis=0), V, False, X.dtype)


def counted_passes(tmp_path, X, monkeypatch):
    monkeypatch.setattr("keepers.data.blocks.as_blocks.rows_at_once", lambda *_: N_ROWS)
    source = ArrayBlocks(X, "X")
    passes = CountedPasses(source, SavedPasses(tmp_path / "fit", source))
    passes.know(source.total(partial(SketchSum, np.arange(X.shape[1]))).sketch)
    return passes


@pytest.mark.parametrize("columns", [None, np.array([3, 1, 4, 15, 9])], ids=["all", "some"])
@pytest.mark.parametrize("kind", ["product", "scatter"])
def test_a_product_and_a_scatter_go_on_where_they_were(tmp_path, monkeypatch, kind, columns):
    X = table()
    Y = X if columns is None else X[:, columns]
    begin = product_of(Y) if kind == "product" else partial(ScatterSum, Y.shape[1])

    def total():
        return counted_passes(tmp_path, X, monkeypatch).total(begin, columns)

    counted(total, last=N_FILES + 9)  # after the sketch, by which the table is known
    found, n_blocks = counted(total)
    assert n_blocks <= 2 * N_FILES - 4
    centred = Y - Y.mean(axis=0)
    expected = centred.T @ centred
    if kind == "product":
        np.testing.assert_allclose(found.product, expected @ begin().V, rtol=1e-9)
    else:
        np.testing.assert_allclose(found.scatter, expected, rtol=1e-9, atol=1e-9)
    assert found.n_samples == len(X)


def test_a_pass_that_was_finished_is_not_read_again_and_does_not_count(tmp_path, monkeypatch):
    X = table()
    first = counted_passes(tmp_path, X, monkeypatch).total(product_of(X))
    passes = counted_passes(tmp_path, X, monkeypatch)
    again, n_blocks = counted(lambda: passes.total(product_of(X)))
    assert (n_blocks, passes.n_passes) == (0, 0)
    np.testing.assert_array_equal(again.product, first.product)  # copied


@pytest.mark.parametrize("what", ["V", "mean", "columns", "table"])
def test_another_pass_is_not_taken_for_it(tmp_path, monkeypatch, what):
    X = table()
    mean, V = X.mean(axis=0), np.random.default_rng(5).standard_normal((30, 3))
    begin, columns = partial(ProductSum, mean, V, False, X.dtype), np.arange(30)
    counted_passes(tmp_path, X, monkeypatch).total(begin, columns)
    if what == "V":
        begin = partial(ProductSum, mean, np.nextafter(V, 9.0), False, X.dtype)
    elif what == "mean":
        begin = partial(ProductSum, np.nextafter(mean, 999.0), V, False, X.dtype)
    elif what == "columns":
        columns = columns[::-1].copy()
    else:
        X = X.copy()
        X[0, 0] += 1e-9
    passes = counted_passes(tmp_path, X, monkeypatch)
    _, n_blocks = counted(lambda: passes.total(begin, columns))
    assert (n_blocks, passes.n_passes) == (N_FILES, 1)


def test_a_saved_step_makes_its_own_passes_superfluous_and_no_others(tmp_path, monkeypatch):
    X = table()
    interrupted = counted_passes(tmp_path, X, monkeypatch)
    interrupted.total(product_of(X))
    (left,) = pass_files(tmp_path / "fit")
    resumed = counted_passes(tmp_path, X, monkeypatch)
    resumed.files.forget_step()  # the step it starts from, saved once more
    assert pass_files(tmp_path / "fit") == [left]
    resumed.total(product_of(X))
    resumed.total(partial(ScatterSum, 4), np.arange(4))
    resumed.files.forget_step()
    (scatter,) = pass_files(tmp_path / "fit")  # of the columns in the work: wanted by all steps
    assert scatter != left
    resumed.files.forget()
    assert not pass_files(tmp_path / "fit")


def test_rows_to_be_held_are_not_saved(tmp_path, monkeypatch):
    counted_passes(tmp_path, table(), monkeypatch).total(RowCollection)
    assert not pass_files(tmp_path / "fit")


def test_rows_that_changed_behind_the_same_identity_are_found_by_the_next_pass(
    tmp_path, monkeypatch
):
    """As if a disk forgot that it was written to: an error, and the fit after it is right."""
    X, checkpoint = table(), tmp_path / "fit"
    folder = write_folder(tmp_path / "parts", X)
    monkeypatch.setattr("keepers.data.blocks.files._identity", lambda table, paths: "the same")
    counted(partial(fit, checkpoint, folder, route="stream"), last=8)
    X[3, 4] += 1000.0
    write_npy(folder / "part-00", X[:N_ROWS])
    with pytest.raises(DataError, match="must give the same rows every time it is read"):
        fit(checkpoint, folder, route="stream")
    assert not pass_files(checkpoint)
    found = fit(checkpoint, folder, route="stream")
    expected = SPCAFS(**SETTINGS).fit(X)
    close(found.scores_, expected.scores_)


def test_a_file_that_cannot_be_written_costs_a_warning_and_not_the_fit(tmp_path, monkeypatch):
    folder = write_folder(tmp_path / "parts", table())
    (tmp_path / "fit.pass-new").mkdir()
    with pytest.warns(KeepersWarning, match=r"could not be saved.*The fit continues") as caught:
        found = fit(tmp_path / "fit", folder, route="scatter")
    assert len([one for one in caught if one.category is KeepersWarning]) == 1
    assert found.n_passes_ == 1


def test_files_with_other_names_are_left(tmp_path):
    folder = write_folder(tmp_path / "parts", table())
    names = ["fit.passwords", "fit.pass", "fit.pass-1", "other.pass-0123456789abcdef"]
    for name in names:
        (tmp_path / name).write_text("mine")
    fit(tmp_path / "fit", folder, route="scatter")
    assert all((tmp_path / name).read_text() == "mine" for name in names)


# What tells a table in files from another


IDENTITY = """
import sys
from keepers.cli.fit_blocks import WatchedBlocks
from keepers.datasets import open_blocks
from keepers.preparation.prepared_blocks import PreparedBlocks, learn_from_blocks
from keepers.preparation.table_preparer import TablePreparer
print(open_blocks(sys.argv[1]).identity())
learned = learn_from_blocks(open_blocks(sys.argv[1], mixed=True))
for missing in ("mean", "median"):
    preparer = TablePreparer(missing=missing).fit_facts(learned.facts)
    print(WatchedBlocks(PreparedBlocks(learned.source, preparer), print).identity())
"""


def identities(folder, hash_seed):
    command = [sys.executable, "-c", IDENTITY, str(folder)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.split()


@pytest.mark.parametrize("write", [write_npy, write_csv, write_parquet])
def test_files_are_recognised_by_another_process(tmp_path, write):
    folder = write_folder(tmp_path / "parts", table(), write)
    first = identities(folder, hash_seed="1")
    assert len(set(first)) == 3  # as it is, and prepared in two ways
    assert "None" not in first
    assert identities(folder, hash_seed="2") == first
    assert as_blocks(str(folder)).identity() == first[0]
    write(folder / "part-03", table()[:N_ROWS])
    assert as_blocks(str(folder)).identity() != first[0]


def test_how_a_file_is_read_is_part_of_what_it_is(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b;c\n1,5;2;3\n4;5;6,5\n")
    opened = [
        datasets.open_blocks(path, decimal=",", sep=";"),
        datasets.open_blocks(path, decimal=",", sep=";", drop=["a"]),
    ]
    assert len({one.identity() for one in opened}) == 2
    path.unlink()
    assert opened[0].identity() is None
