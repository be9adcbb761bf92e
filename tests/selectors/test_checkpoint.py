"""A fit that is killed goes on where it was, and ends where it would have ended."""

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from keepers import SPCAFS, datasets
from keepers.exceptions import ConvergenceWarning, DataWarning, ParameterError

# Every step is slowed down, or the fit would be over before it can be killed.
FIT = """
import sys, time
import numpy as np
from keepers import SPCAFS, datasets
X = datasets.load("srbct").X
print("started", flush=True)
selector = SPCAFS(
    n_components=3, solver=sys.argv[2], checkpoint=sys.argv[1], gamma=float(sys.argv[3]),
    max_iter=int(sys.argv[4]), memory_limit=sys.argv[5], callback=lambda _: time.sleep(0.05),
)
(selector.fit if sys.argv[5] == "8G" else selector.fit_blocks)(X)
np.save(sys.argv[1] + ".scores.npy", selector.scores_)
np.save(sys.argv[1] + ".n_iter.npy", selector.n_iter_)
"""


@pytest.fixture(scope="module")
def X():
    return datasets.load("srbct").X


def gamma_of(X):
    centred = X - X.mean(axis=0)
    return 0.01 * float(np.linalg.norm(centred, 2)) ** 2


@pytest.mark.posix
@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "max_iter", "limit", "kills"),
    [("block", 1000, "8G", 10), ("block", 1000, "109M", 3), ("dense", 12, "8G", 3)],
    ids=["block", "streamed", "dense"],
)
def test_a_fit_killed_at_random_ends_with_the_same_scores(
    X, tmp_path, solver, max_iter, limit, kills
):
    if solver == "dense":
        X = X[:, :300]
    gamma = gamma_of(X)
    code = FIT if solver == "block" else FIT.replace(".X\n", ".X[:, :300]\n")
    settings = {"n_components": 3, "solver": solver, "gamma": gamma, "max_iter": max_iter}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = SPCAFS(**settings).fit(X)
    checkpoint = tmp_path / "fit.checkpoint"
    command = [sys.executable, "-W", "ignore", "-c", code, str(checkpoint), solver]
    command += [repr(gamma), str(max_iter), limit]
    draw = random.Random(0)
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        time.sleep(draw.uniform(0.02, 0.3))
        assert process.poll() is None, "the fit was over before it could be killed"
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    subprocess.run(command, check=True, capture_output=True)
    scores = np.load(str(checkpoint) + ".scores.npy")
    np.testing.assert_allclose(scores, expected.scores_, atol=1e-7)
    assert abs(np.load(str(checkpoint) + ".n_iter.npy") - expected.n_iter_) <= 1


@pytest.mark.parametrize("solver", ["block", "dense"])
def test_a_finished_fit_is_not_done_again(X, tmp_path, solver):
    steps = []
    settings = {"solver": solver, "checkpoint": tmp_path / "fit", "callback": steps.append}
    first = SPCAFS(5, n_components=2, **settings).fit(X[:, :200])
    n_steps = len(steps)
    again = SPCAFS(9, n_components=2, **settings).fit(X[:, :200])
    assert len(steps) - n_steps <= 1
    # Rounding differs with where the allocator puts the arrays.
    np.testing.assert_allclose(again.scores_, first.scores_, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(again.objective_, first.objective_, rtol=1e-12)


def test_more_steps_go_on_from_the_last_one(X, tmp_path):
    settings = {"n_components": 2, "gamma": gamma_of(X)}
    with pytest.warns(ConvergenceWarning):
        SPCAFS(max_iter=7, checkpoint=tmp_path / "fit", **settings).fit(X)
    seen = []
    went_on = SPCAFS(checkpoint=tmp_path / "fit", callback=seen.append, **settings).fit(X)
    assert seen[0].n_iter == 7
    straight = SPCAFS(**settings).fit(X)
    np.testing.assert_allclose(went_on.scores_, straight.scores_, atol=1e-7)


@pytest.mark.parametrize(
    "other",
    [
        {"gamma": 3.0},
        {"p": 0.5},
        {"n_components": 3},
        {"tol": 1e-3},
        {"scaling": 0.5},
        {"never_keep": [4]},
        {"penalty_weights": {3: 2.0}},
        {"groups": [[1, 2]]},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_checkpoint_of_another_fit_is_refused(X, tmp_path, other):
    part, path = X[:, :60], tmp_path / "fit"
    settings = {"n_components": 2, "checkpoint": path}
    SPCAFS(**settings).fit(part)
    before = path.read_bytes()
    with pytest.raises(ParameterError, match=r"must belong to this fit.*other settings.*Delete"):
        SPCAFS(**{**settings, **other}).fit(part)
    assert path.read_bytes() == before


def test_a_checkpoint_of_other_data_is_refused(X, tmp_path):
    path = tmp_path / "fit"
    SPCAFS(n_components=2, checkpoint=path).fit(X[:, :60])
    changed = X[:, :60].copy()
    changed[0, 0] += 1.0
    for other in (changed, X[:, :61], X[1:, :60]):
        with pytest.raises(ParameterError, match="must belong to this fit"):
            SPCAFS(n_components=2, checkpoint=path).fit(other)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"text"])
def test_a_file_that_is_no_checkpoint_is_refused_and_left(X, tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(ParameterError, match="is not a checkpoint of keepers"):
        SPCAFS(checkpoint=path).fit(X[:, :60])
    assert path.read_bytes() == content


@pytest.fixture(params=["block", "dense"])
def small(request, tmp_path):
    """A small table, a fit on it, and its checkpoint."""
    random_numbers = np.random.default_rng(0)
    X = random_numbers.standard_normal((40, 9)) @ random_numbers.standard_normal((9, 9))
    settings = {"n_components": 2, "solver": request.param, "checkpoint": tmp_path / "fit"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        SPCAFS(**settings, max_iter=9).fit(X)
    return X, settings


def outcome(X, settings):
    """None if the fit ended, or what it said; any other error fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            found = SPCAFS(**settings, max_iter=12).fit(X)
        except ParameterError as error:
            return str(error)
    assert np.isfinite(found.scores_).all()
    return None


def test_a_damaged_checkpoint_never_gives_another_error(small):
    X, settings = small
    path = settings["checkpoint"]
    whole = path.read_bytes()
    draw = random.Random(1)
    for _ in range(200):
        damaged = bytearray(whole[: draw.choice([len(whole), draw.randrange(len(whole))])])
        for _ in range(3):
            if damaged:
                damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        said = outcome(X, settings)
        assert said is None or "\n" not in said


STRANGE = {
    "absent": lambda a: None,
    "NaN": lambda a: a * np.nan,
    "infinite": lambda a: a + np.inf,
    "huge": lambda a: a * 1e300,
    "negative": lambda a: -1 - abs(a),
    "zero": lambda a: a * 0,
    "doubled": lambda a: a * 2,
    "empty": lambda a: a[..., :0] if a.ndim else np.empty(0),
    "longer": lambda a: np.concatenate([a, a], axis=-1) if a.ndim else np.array([a, a]),
    "another dimension": lambda a: a[np.newaxis],
    "single": lambda a: a.astype(np.float32),
    "whole": lambda a: a.astype(np.int8),
    "complex": lambda a: a.astype(complex),
    "text": lambda a: a.astype(str),
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
    "objects": lambda a: a.astype(object),
    "records": lambda a: np.zeros(3, dtype=[("a", float)]),
    "dates": lambda a: np.zeros(a.shape, dtype="M8[s]"),
}


@pytest.mark.parametrize("change", STRANGE.values(), ids=STRANGE)
def test_a_checkpoint_with_another_array_gives_one_sentence_or_the_same_fit(small, change):
    X, settings = small
    path = settings["checkpoint"]
    with np.load(path) as archive:
        arrays = dict(archive)
    for name in sorted(set(arrays) - {"header"}):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            changed = change(arrays[name])
        kept = arrays if changed is None else {**arrays, name: changed}
        with path.open("wb") as stream:
            np.savez(stream, **{n: a for n, a in kept.items() if changed is not None or n != name})
        said = outcome(X, settings)
        assert (
            said is None
            or "is not a checkpoint" in said
            or "on other data" in said
            or (name == "penalised" and "other settings" in said)
        )


def header_of(path):
    with np.load(path) as archive:
        arrays = dict(archive)
    return arrays, json.loads(str(arrays["header"]))


@pytest.mark.parametrize(
    "value", [None, -1, 0, 1e400, float("nan"), "x", [], {}, True, 10**30, 0.5]
)
@pytest.mark.parametrize("entry", ["settings", "n_samples", "gamma", "width", "solver", None])
def test_a_strange_header_gives_one_sentence(small, entry, value):
    X, settings = small
    path = settings["checkpoint"]
    arrays, header = header_of(path)
    header = value if entry is None else {**header, entry: value}
    arrays["header"] = np.array(json.dumps(header))
    with path.open("wb") as stream:
        np.savez(stream, **arrays)
    said = outcome(X, settings)
    assert said is None or "is not a checkpoint" in said or "must b" in said
    assert said is not None or (entry == "gamma" and value == 0.5)


def test_a_checkpoint_of_an_older_version_is_refused(small):
    X, settings = small
    path = settings["checkpoint"]
    arrays, header = header_of(path)
    del arrays["products"]
    arrays["header"] = np.array(json.dumps({**header, "layout": 1}))
    with path.open("wb") as stream:
        np.savez(stream, **arrays)
    assert "written by another one (layout 1; this one reads 3). Delete the file" in outcome(
        X, settings
    )


class Armed:
    """Whoever unpickles it leaves a trace."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("name", ["header", "mean", "vectors", "extra"])
def test_nothing_in_a_checkpoint_is_unpickled(small, tmp_path, name):
    X, settings = small
    path, trace = settings["checkpoint"], tmp_path / "trace"
    arrays, _ = header_of(path)
    arrays[name] = np.array([Armed(trace)], dtype=object)
    with path.open("wb") as stream:
        np.savez(stream, **arrays)
    assert "is not a checkpoint" in outcome(X, settings)
    assert not trace.exists()


def test_an_archive_that_would_fill_the_memory_is_refused(small):
    X, settings = small
    path = settings["checkpoint"]
    arrays, _ = header_of(path)
    with path.open("wb") as stream:
        np.savez_compressed(stream, **arrays, extra=np.zeros(10**6))
    assert "is not a checkpoint" in outcome(X, settings)
    header = io.BytesIO()
    declared = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    np.lib.format.write_array_header_1_0(header, declared)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mean.npy", header.getvalue())
    assert "is not a checkpoint" in outcome(X, settings)


# The checkpoint knows its data


def z_scored(seed, shape=(200, 30)):
    X = np.random.default_rng(seed).standard_normal(shape)
    X[:, :4] += 2 * X[:, [5]]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def in_memory(selector, X):
    return selector.fit(X)


def in_blocks(selector, X):
    return selector.fit_blocks([X[:17], X[17:90], X[90:]])


def streamed(selector, X):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keepers.selectors.block_tables.choose_route", lambda *_: "stream")
        return selector.fit_blocks(lambda: iter([X[:50], X[50:]]))


def held(selector, X):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keepers.selectors.block_tables.choose_route", lambda *_: "memory")
        return selector.fit_blocks([X])


def tall(selector, X):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keepers.selectors.fitted_table.TALL_SIZE", 1000)
        return selector.fit(X)


def sparse(selector, X):
    return selector.fit(sp.csc_array(X))


def by_dask(selector, X):
    da = pytest.importorskip("dask.array")
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        return selector.fit(da.from_array(X, chunks=(60, 11)))


FITS = [in_memory, in_blocks, streamed, held, tall, sparse, by_dask]


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(
    "other",
    [lambda X: z_scored(7), lambda X: X[:, ::-1].copy(), lambda X: X[:, [1, 0, *range(2, 30)]]],
    ids=["another table", "columns reversed", "two columns swapped"],
)
def test_another_table_with_the_same_moments_is_refused(tmp_path, fit, other):
    X, path = z_scored(0), tmp_path / "fit"
    settings = {"n_components": 2, "scaling": 1.0, "tol": 1e-2, "checkpoint": path}
    fit(SPCAFS(**settings), X)
    before = path.read_bytes()
    with pytest.raises(ParameterError, match=r"belong to this fit.*on other data. Delete the file"):
        fit(SPCAFS(**settings), other(X))
    assert path.read_bytes() == before


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fit", FITS)
def test_the_same_table_is_known_in_any_storage_and_with_its_rows_shuffled(tmp_path, fit, dtype):
    X, path = (z_scored(0) + 100.0).astype(dtype), tmp_path / "fit"
    X[:, 7] = 3.0
    settings = {"n_components": 2, "checkpoint": path, "solver": "block", "tol": 1e-2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        first = fit(SPCAFS(**settings), X)
        shuffled = X[np.random.default_rng(1).permutation(len(X))]
        for at, again in enumerate(FITS):
            steps = []
            found = again(SPCAFS(**settings, callback=steps.append), (X, shuffled)[at % 2])
            assert len(steps) <= 1, again.__name__
            np.testing.assert_allclose(found.scores_, first.scores_, atol=1e-5)


def test_a_streamed_fit_knows_its_data_without_another_pass(tmp_path):
    X = z_scored(0)
    settings = {"n_components": 2, "solver": "block", "tol": 1e-2}
    bare = streamed(SPCAFS(**settings), X)
    with_checkpoint = streamed(SPCAFS(**settings, checkpoint=tmp_path / "fit"), X)
    assert with_checkpoint.n_passes_ == bare.n_passes_


def test_partial_fit_keeps_no_checkpoint(tmp_path):
    selector = SPCAFS(checkpoint=tmp_path / "fit")
    with pytest.raises(ParameterError, match="partial_fit keeps no checkpoint"):
        selector.partial_fit(z_scored(0))
    assert not hasattr(selector, "scatter_sum_")


@pytest.mark.parametrize("path", [3, b"fit", "a\0b"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ParameterError, match="checkpoint must be the path of a file"):
        SPCAFS(checkpoint=path).fit(z_scored(0))


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="is a folder"):
        SPCAFS(checkpoint=tmp_path).fit(z_scored(0))


def test_a_place_that_cannot_be_written_is_refused(X, tmp_path):
    with pytest.raises(ParameterError, match="no folder"):
        SPCAFS(checkpoint=tmp_path / "absent" / "fit").fit(X[:, :60])
