"""`keepers select` on folders and patterns, within a memory, and by workers."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from keepers import SPCAFS, AutoSelector
from keepers.data import dask_cluster
from keepers.data.blocks import local
from keepers.linalg.reservoir import drawn_rows
from keepers.preparation.facts import MOST_ROWS
from keepers.recipe import Recipe
from keepers.selectors import saved_passes

pytest.importorskip("pyarrow")


@pytest.fixture
def parts(tmp_path):
    """Three Parquet files with names of samples, and the table they make together."""
    random = np.random.default_rng(0)
    X = random.standard_normal((900, 12))
    X[:, :4] += 3 * random.standard_normal((3, 4))[random.integers(0, 3, 900)]
    table = pd.DataFrame(X, columns=[f"g{j}" for j in range(12)])
    folder = tmp_path / "parts"
    folder.mkdir()
    for number in range(3):
        rows = table[300 * number : 300 * (number + 1)]
        named = rows.assign(sample=[f"s{i}" for i in rows.index])
        named.to_parquet(folder / f"part-{number}.parquet", index=False)
    return table


def kept(done):
    return [line.split("\t")[1] for line in done.stdout.splitlines()[1:]]


@pytest.mark.parametrize("data", ["parts", "parts/part-*.parquet"])
@pytest.mark.parametrize("method", [AutoSelector, SPCAFS])
def test_a_folder_and_a_pattern_give_what_the_whole_table_gives(quick_keepers, parts, data, method):
    named = ("--id", "sample", "--method", method.__name__)
    done = quick_keepers("select", data, "-k", 5, *named)
    assert done.returncode == 0, done.stderr
    assert kept(done) == list(method().fit(parts).top(5).names)
    assert "900 samples" in done.stderr


@pytest.mark.parametrize("options", [(), ("--method", "spcafs", "--checkpoint", "fit.state")])
def test_a_single_file_is_read_in_blocks_if_a_memory_is_given(quick_keepers, parts, options):
    where = ("parts/part-1.parquet", "-k", 3, "--drop", "sample")
    in_memory, in_blocks = (
        quick_keepers("select", *where, *options[:2]),
        quick_keepers("select", *where, *options, "--memory", "200M"),
    )
    assert in_blocks.returncode == 0, in_blocks.stderr
    assert kept(in_memory) == kept(in_blocks)


def test_features_stay_and_go_and_the_recipe_is_applied(quick_keepers, parts, tmp_path):
    chosen = ("-k", 4, "--drop", "sample", "--keep", "g11", "--never", "g0", "--save", "r.json")
    done = quick_keepers("select", "parts", *chosen, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    names = [feature["name"] for feature in found["features"]]
    assert names[0] == "g11"
    assert "g0" not in names
    assert (found["n_samples"], found["n_features"]) == (900, 12)
    assert Recipe.load(tmp_path / "r.json").features == tuple(names)
    apply = ("apply", "r.json", "parts/part-2.parquet", "--out", "kept.csv", "--id", "sample")
    assert quick_keepers(*apply).returncode == 0
    assert set(pd.read_csv(tmp_path / "kept.csv").columns) == {"sample", *names}


@pytest.mark.parametrize("method", [AutoSelector, SPCAFS])
def test_workers_give_the_same(keepers, parts, method):
    pytest.importorskip("distributed")
    options = ("-k", 5, "--drop", "sample", "--workers", 2, "--method", method.__name__)
    done = keepers("select", "parts", *options)
    assert done.returncode == 0, done.stderr
    assert kept(done) == list(method().fit(parts).top(5).names)


def test_in_blocks_the_front_door_chooses_the_number_too(quick_keepers, parts, tmp_path):
    options = ("--drop", "sample", "--json", "--save", "r.json")
    done = quick_keepers("select", "parts", *options)
    assert done.returncode == 0, done.stderr
    by_hand = AutoSelector().fit(parts)
    found = json.loads(done.stdout)
    assert [feature["name"] for feature in found["features"]] == by_hand.top().names.tolist()
    assert (found["k"], found["summary"]) == (by_hand.n_enough_, by_hand.summary_)
    assert Recipe.load(tmp_path / "r.json").features == tuple(by_hand.top().names)


def test_what_is_known_of_drawn_rows_only_is_said_so(quick_keepers, tmp_path):
    random = np.random.default_rng(0)
    X = random.standard_normal((2500, 6))
    X[:, :3] += 4 * random.standard_normal((3, 3))[random.integers(0, 3, 2500)]
    pd.DataFrame(X).add_prefix("g").to_csv("tall.csv", index=False)
    whole, blocks = (
        quick_keepers("select", "tall.csv", "-k", 2, *options)
        for options in ((), ("--memory", "1G"))
    )
    assert kept(whole) == kept(blocks)
    drawn = "(2500 samples, 1000 of them drawn at random)"
    assert drawn in whole.stderr
    assert drawn in blocks.stderr
    for done in (whole, blocks):  # all columns count the same, so there is no share to tell
        assert "of the variance" not in done.stderr
    by_variance = ("--method", "variance", "--no-certify")
    whole = quick_keepers("select", "tall.csv", "-k", 2, *by_variance)
    assert "of the variance." in whole.stderr
    found = json.loads(quick_keepers("select", "tall.csv", "-k", 2, "--json").stdout)
    for feature in found["features"]:  # in memory, of all rows
        assert feature["variance"] == pytest.approx(X[:, feature["column"]].var())
    blocks = quick_keepers("select", "tall.csv", "-k", 2, "--json", "--memory", "1G")
    found = json.loads(blocks.stdout)
    assert (found["n_samples"], found["n_rows_used"]) == (2500, 1000)
    looked_at = X[drawn_rows(2500, MOST_ROWS, 0)]
    for feature in found["features"]:
        assert feature["variance"] == pytest.approx(looked_at[:, feature["column"]].var())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("-k", 3, "--method", "lapscore"),
            "in blocks are auto, denoised-laplacian, spcafs, fspca;",
        ),
        (("-k", 3, "--scale", "unit-features"), "scale the files first"),
        (("-k", 3, "--scale", "unit-features", "--method", "spcafs"), "--set scaling=1"),
        (
            ("--checkpoint", "fit.state"),
            "AutoSelector reads it once, so there is nothing to resume",
        ),
        (("-k", 3, "--transpose"), "--transpose needs the table in memory"),
        (("-k", 3, "--drop-samples", "a"), "--drop-samples and --drop-zero-rows need the table"),
        (("-k", 3, "--out", "kept.npz"), "whole"),
        (("-k", 3, "--memory", "lots"), "takes a size like 500M"),
        (("-k", 3, "--set", "memory_limit=3"), "has an option of its own, --memory"),
        (("-k", 3, "--route", "stream"), "AutoSelector reads it once, whatever its size"),
        (("-k", 3, "--route", "disk", "--method", "spcafs"), "--route must be one of 'auto'"),
        (
            ("-k", 3, "--method", "spcafs", "--set", "route=stream"),
            "has an option of its own, --route",
        ),
        (
            ("-k", 3, "--method", "spcafs", "--route", "scatter", "--memory", "1M"),
            "route='scatter' must fit into memory_limit",
        ),
        (("-k", 3, "--workers", 2, "--scheduler", "tcp://127.0.0.1:1"), "workers"),
    ],
)
def test_what_blocks_cannot_give_is_refused_in_a_sentence(quick_keepers, parts, options, message):
    done = quick_keepers("select", "parts", "--drop", "sample", *options)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_file_is_named(quick_keepers, parts, tmp_path):
    path = tmp_path / "parts" / "part-1.parquet"
    path.write_bytes(path.read_bytes()[:-200])
    done = quick_keepers("select", "parts", "-k", 3, "--drop", "sample")
    assert done.returncode == 1
    assert "part-1.parquet" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_gap_is_named_with_the_command_that_fills_it(quick_keepers, parts, tmp_path):
    path = tmp_path / "parts" / "part-2.parquet"
    rows = pd.read_parquet(path)
    rows.loc[7, "g3"] = np.nan
    rows.to_parquet(path, index=False)
    done = quick_keepers("select", "parts", "-k", 3, "--drop", "sample")
    assert done.returncode == 1
    assert "'g3' (1)" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("--missing model")


def test_a_pattern_that_matches_nothing_says_so(quick_keepers, parts):
    done = quick_keepers("select", "parts/*.csv", "-k", 3)
    assert done.returncode in (1, 2)
    assert "matches none" in done.stderr


def test_gaps_are_filled_by_workers_too(keepers, parts, tmp_path):
    pytest.importorskip("distributed")
    path = tmp_path / "parts" / "part-2.parquet"
    rows = pd.read_parquet(path)
    rows.loc[7, "g3"] = np.nan
    rows.to_parquet(path, index=False)
    done = keepers("select", "parts", "-k", 3, "--drop", "sample", "--workers", 1)
    assert done.returncode == 1
    assert done.stderr.startswith("keepers: 1 of ")
    assert "Traceback" not in done.stderr
    filled = keepers(
        *("select", "parts", "-k", 3, "--drop", "sample", "--workers", 1, "--missing", "mean")
    )
    assert filled.returncode == 0, filled.stderr
    alone = keepers("select", "parts", "-k", 3, "--drop", "sample", "--missing", "mean")
    assert kept(filled) == kept(alone)


@pytest.fixture
def soon(monkeypatch):
    """Waiting for schedulers and workers is short."""
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_cluster, "SECONDS_TO_ANSWER", 0.5)
    monkeypatch.setattr(dask_cluster, "SECONDS_WITHOUT_WORKERS", 0.1)
    monkeypatch.setattr(dask_cluster, "SECONDS_BETWEEN_LOOKS", 0.02)


def test_a_server_that_never_answers_is_named_after_some_seconds(quick_keepers, parts, soon):
    with socket.create_server(("127.0.0.1", 0)) as server:  # the system accepts for it
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        where = ("select", "parts", "-k", 3, "--drop", "sample", "--scheduler", address)
        done = quick_keepers(*where)
    assert done.returncode == 2
    assert f"'{address}' does not within 0.5 s" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.fixture
def busy_cluster(tmp_path):
    """A cluster of one thread of this process, which is busy until the test is over."""
    distributed = pytest.importorskip("distributed")
    end = str(tmp_path / "end")

    def hold():
        deadline = time.monotonic() + 60
        while not os.path.exists(end) and time.monotonic() < deadline:
            time.sleep(0.02)

    where = {"host": "127.0.0.1", "protocol": "tcp://", "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, **where
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        holding = client.submit(hold, pure=False)
        yield cluster
        Path(end).touch()
        del holding


def has_work_of_others(cluster):
    return len(cluster.scheduler.tasks) > 1


def wait_until(condition, *arguments):
    deadline = time.monotonic() + 60
    while not condition(*arguments):
        assert time.monotonic() < deadline, "it did not come about within a minute"
        time.sleep(0.02)


def test_a_fit_whose_workers_are_all_gone_ends_with_a_sentence(
    quick_keepers, parts, soon, busy_cluster
):
    def dismiss():
        wait_until(has_work_of_others, busy_cluster)
        busy_cluster.scale(0)

    dismissing = threading.Thread(target=dismiss, daemon=True)
    dismissing.start()
    where = ("select", "parts", "-k", 3, "--drop", "sample")
    done = quick_keepers(*where, "--scheduler", busy_cluster.scheduler_address)
    dismissing.join()
    assert done.returncode == 1
    assert "has had none for 0.1 s" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def begin(*arguments, folder):
    """Start the command in a session of its own, as a terminal does."""
    return subprocess.Popen(
        [str(Path(sys.executable).with_name("keepers")), *map(str, arguments)],
        cwd=folder,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")


@on_linux
def test_an_interrupt_ends_a_fit_that_waits_for_a_cluster(parts, busy_cluster, tmp_path):
    where = ("select", "parts", "-k", 3, "--drop", "sample")
    command = begin(*where, "--scheduler", busy_cluster.scheduler_address, folder=tmp_path)
    wait_until(has_work_of_others, busy_cluster)
    command.send_signal(signal.SIGINT)
    _, told = command.communicate(timeout=60)
    assert (command.returncode, told) == (130, "keepers: Interrupted.\n")
    wait_until(lambda: not has_work_of_others(busy_cluster))


@on_linux
def test_an_interrupt_leaves_no_worker_behind_and_no_traceback(parts, tmp_path):
    pytest.importorskip("distributed")
    where = ("select", "parts", "-k", 3, "--drop", "sample", "--workers", 1)
    command = begin(*where, folder=tmp_path)
    wait_until(lambda: len(processes_of(command.pid)) >= 3)  # with the tracker of Python
    os.killpg(command.pid, signal.SIGINT)
    _, told = command.communicate(timeout=60)
    assert (command.returncode, told) == (130, "keepers: Interrupted.\n")
    wait_until(lambda: not processes_of(command.pid))


def processes_of(session):
    """Processes of a session, those aside that have ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_session) == session and state != "Z":
            found.append(stat.parent.name)
    return found


def test_a_checkpoint_of_another_table_with_the_same_moments_is_refused(quick_keepers, parts):
    rows = (parts - parts.mean()) / parts.std()
    rows.to_parquet("a.parquet", index=False)
    rows[rows.columns[::-1]].set_axis(rows.columns, axis=1).to_parquet("b.parquet", index=False)
    options = ("-k", 3, "--checkpoint", "fit.state", "--method", "spcafs", "--set", "tol=0.01")
    first, other, again = (
        quick_keepers("select", f"{name}.parquet", *options) for name in ("a", "b", "a")
    )
    assert first.returncode == again.returncode == 0, first.stderr + again.stderr
    assert kept(first) == kept(again)
    assert other.returncode != 0
    assert "was written by one on other data. Delete the file" in other.stderr
    assert "Traceback" not in other.stderr


@pytest.mark.parametrize("route", ["scatter", "stream"])
def test_a_fit_interrupted_in_a_pass_goes_on_from_there(quick_keepers, parts, monkeypatch, route):
    monkeypatch.setattr(saved_passes, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(saved_passes, "REST", 0.0)
    monkeypatch.setattr(local, "usable_threads", lambda n_bytes: 1)
    check, seen = local.refuse_misshapen, []

    def interrupt_at_the_third(block, width):
        seen.append(block.origin)
        if len(seen) == 3:
            raise KeyboardInterrupt
        check(block, width)

    monkeypatch.setattr(local, "refuse_misshapen", interrupt_at_the_third)
    options = ("-k", 4, "--id", "sample", "--method", "spcafs", "--route", route)
    saving = (*options, "--checkpoint", "fit.state")
    assert quick_keepers("select", "parts", *saving).returncode == 130
    again = quick_keepers("select", "parts", *saving)
    assert again.returncode == 0, again.stderr
    assert seen[3].startswith("part-2.parquet")  # the two files before it are in the sums
    assert kept(again) == list(SPCAFS().fit(parts).top(4).names)
    assert not list(Path.cwd().glob("fit.state.pass*"))


def test_in_blocks_nothing_is_certified_and_it_is_said_what_to_do(quick_keepers, parts):
    options = ("select", "parts", "-k", 4, "--drop", "sample", "--method", "spcafs")
    done = quick_keepers(*options, "--json", "--save", "recipe.json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["certificate"] is None
    refused = quick_keepers(*options, "--certify", "--out", "kept.csv")
    assert refused.returncode == 2
    (line,) = refused.stderr.splitlines()
    assert "--certify needs the table in memory; this one is read in blocks." in line
    assert "keepers certify DATA --features recipe.json" in line
    assert not Path("kept.csv").exists()
    # What it says to do.
    advised = quick_keepers(
        *("certify", "parts", "--drop", "sample", "--features", "recipe.json", "-m", 2, "--json")
    )
    assert advised.returncode == 0, advised.stderr
    kept = [feature["name"] for feature in found["features"]]
    values = np.linalg.eigvalsh(np.cov(parts[kept], rowvar=False, bias=True))
    assert json.loads(advised.stdout)["value"] == pytest.approx(values[-2:].sum())
