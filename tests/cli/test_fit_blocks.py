"""`keepers select` on folders and patterns, within a memory, and on a cluster."""

import subprocess
import sys

import distributed
import numpy as np
import pandas as pd
import polars as pl
import pytest

from keepers import SPCAFS, AutoSelector


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


@pytest.fixture
def with_a_gap(parts, tmp_path):
    path = tmp_path / "parts" / "part-2.parquet"
    rows = pd.read_parquet(path)
    rows.loc[7, "g3"] = np.nan
    rows.to_parquet(path, index=False)


def kept(done):
    return [line.split("\t")[1] for line in done.stdout.splitlines()[1:]]


@pytest.mark.parametrize(
    ("data", "method"), [("parts", AutoSelector), ("parts/part-*.parquet", SPCAFS)]
)
def test_a_folder_and_a_pattern_give_what_the_whole_table_gives(quick_keepers, parts, data, method):
    named = ("--id", "sample", "--method", method.__name__)
    done = quick_keepers("select", data, "-k", 5, *named)
    assert done.returncode == 0, done.stderr
    assert kept(done) == list(method().fit(parts).top(5).names)
    assert "900 samples" in done.stderr
    one = ("select", "parts/part-1.parquet", "-k", 3, "--drop", "sample", *named[2:])
    assert kept(quick_keepers(*one)) == kept(quick_keepers(*one, "--memory", "200M"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-k", 3, "--method", "lapscore"), "auto, spcafs, fspca;"),
        (("-k", 3, "--scale", "unit-samples"), "needs the table in memory"),
        (("-k", 3, "--transpose"), "needs the table in memory"),
        (("-k", 3, "--drop-samples", "a"), "needs the table in memory"),
        (("-k", 3, "--out", "kept.h5ad"), "whole"),
        (("-k", 3, "--memory", "lots"), "takes a size like 500M"),
        (("-k", 3, "--set", "memory_limit=3"), "--set takes NAME=VALUE with a setting"),
        (("-k", 3, "--method", "spcafs", "--memory", "1M"), "must fit into memory_limit"),
    ],
)
def test_what_blocks_cannot_give_is_refused_in_a_sentence(quick_keepers, parts, options, message):
    done = quick_keepers("select", "parts", "--drop", "sample", *options)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("with_a_gap")
@pytest.mark.parametrize(
    ("options", "note"), [((), "'g3' (1)"), (("--missing", "mean"), "")], ids=["open", "filled"]
)
def test_a_cluster_gives_the_same_with_gaps_open_and_filled(quick_keepers, options, note):
    command = ("select", "parts", "-k", 3, "--drop", "sample", *options)
    workers = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    where = {"protocol": "tcp://", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**workers, **where) as cluster:
        done = quick_keepers(*command, "--scheduler", cluster.scheduler_address)
    assert done.returncode == 0, done.stderr
    assert note in done.stderr
    assert kept(done) == kept(quick_keepers(*command))


PEAK = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "keepers", *sys.argv[1:]], capture_output=True)
assert done.returncode == 0, done.stderr.decode()
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere ru_maxrss has other units")
def test_a_memory_is_kept_to_within_a_third(tmp_path):
    X = np.random.default_rng(0).normal(size=(30_000, 1_500)).round(3)  # 360 MB
    pl.DataFrame(X, schema=[f"g{at}" for at in range(1_500)]).write_csv(tmp_path / "t.csv")
    asked = ["select", "t.csv", "-k", "5", "--method", "spcafs", "--memory", "600M", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *asked],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 1.3 * 600 * 2**20
