"""A fit that is killed goes on where it was, and ends where it would have ended."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

from keepers import SPCAFS, datasets
from keepers.exceptions import ConvergenceWarning, ParameterError

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
    np.testing.assert_array_equal(again.scores_, first.scores_)
    np.testing.assert_array_equal(again.objective_, first.objective_)


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
    with pytest.raises(ParameterError, match=r"must belong to this fit.*Remove it"):
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


def test_a_damaged_checkpoint_never_gives_another_error(X, tmp_path):
    path = tmp_path / "fit"
    settings = {"n_components": 2, "checkpoint": path}
    SPCAFS(**settings).fit(X[:, :30])
    whole = path.read_bytes()
    draw = random.Random(1)
    for _ in range(60):
        damaged = bytearray(whole[: draw.choice([len(whole), draw.randrange(len(whole))])])
        for _ in range(3):
            if damaged:
                damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(ParameterError):
                SPCAFS(**settings).fit(X[:, :30])
        path.unlink(missing_ok=True)


def test_a_place_that_cannot_be_written_is_refused(X, tmp_path):
    with pytest.raises(ParameterError, match="no folder"):
        SPCAFS(checkpoint=tmp_path / "absent" / "fit").fit(X[:, :60])
