"""`keepers-studies reproduce` and `leaderboard`, as a user runs them."""

import signal
import sqlite3
import time

import numpy as np
import pandas as pd
import pytest

STUDY = """\
title = "two methods"
ks = [2, 4]
repeats = 2
[[data]]
source = "clusters.npz"
[[methods]]
name = "SPCAFS"
grid = { gamma = [1e-2, 1.0] }
default = {}
[[methods]]
name = "AllFeatures"
default = {}
"""
MORE = '[[methods]]\nname = "RandomScore"\nlabel = "Random"\ndraws = 3\n'
OWN = "from keepers import VarianceScore\nclass Mine(VarianceScore):\n    pass\n"


@pytest.fixture
def study_file(clusters):
    path = clusters.with_name("mine.toml")
    path.write_text(STUDY)
    return path


@pytest.mark.slow
def test_reproduce_runs_a_study_resumes_it_and_reports_part_of_it(studies, study_file, tmp_path):
    done = studies("reproduce", "mine.toml", "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "# ACC, clusters, default settings" in done.stdout
    assert "SPCAFS\t1.000" in done.stdout
    folder = tmp_path / "keepers-mine"
    assert len(pd.read_csv(folder / "tuned.csv")) == 3  # two k, and all features
    study_file.write_text(STUDY + '[[methods]]\nname = "MCFS"\ndefault = {}\n')
    done = studies("reproduce", "mine.toml", "--report-only")
    assert done.exit_code == 0, done.stderr
    found = pd.read_csv(folder / "default.csv").groupby("method").status.first()
    assert dict(found) == {"SPCAFS": "ok", "AllFeatures": "ok", "MCFS": "missing"}
    taken = studies("reproduce", "mine.toml", "--earlier", folder, "--report-only", "--out", "two")
    assert taken.exit_code == 0, taken.stderr
    for name in ("tuned.csv", "default.csv"):
        assert (tmp_path / "two" / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.slow
def test_a_leaderboard_prints_its_methods(studies, study_file, tmp_path):
    study_file.write_text(f'page = "leaderboard"\n{STUDY}{MORE}')
    done = studies("reproduce", "mine.toml")
    assert done.exit_code == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert ["# Leaderboard, default settings"] in lines
    own = next(line for line in lines if line[0] == "SPCAFS")
    assert own[:5] == ["SPCAFS", "1.000", "1", "1", "clusters"]
    board = pd.read_csv(tmp_path / "keepers-mine" / "leaderboard.csv")
    assert set(board.method) == {"SPCAFS", "AllFeatures", "Random"}


@pytest.mark.slow
def test_a_method_of_ones_own_can_be_named_in_a_study(start, study_file, tmp_path):
    (tmp_path / "my_method.py").write_text(OWN)
    study_file.write_text(STUDY + '[[methods]]\nname = "my_method:Mine"\nlabel = "M"\n')
    assert start("reproduce", "mine.toml").wait(timeout=100) == 0
    found = pd.read_csv(tmp_path / "keepers-mine" / "tuned.csv")
    assert list(found.status[found.method == "M"]) == ["ok", "ok"]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["reproduce", "faulty.toml"], 1, "kz: unknown setting"),
        (["reproduce", "no-such-study"], 1, "paper, quick, suite"),
        (["reproduce", "paper"], 1, "--skip-absent"),
        (["reproduce", "quick", "--out", "mine"], 2, "holds other files"),
        (["nonsense"], 2, "nonsense"),
        (["reproduce", "--help"], 0, ""),
    ],
)
def test_exit_codes_separate_misuse_from_failure(
    studies, tmp_path, monkeypatch, arguments, code, text
):
    monkeypatch.setenv("KEEPERS_DATA", str(tmp_path))
    (tmp_path / "faulty.toml").write_text(STUDY.replace("ks =", "kz ="))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("my page")
    done = studies(*arguments)
    assert done.exit_code == code, done.stderr
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.read_text() for path in (tmp_path / "mine").iterdir()] == ["my page"]


def results_in(folder):
    path = folder / "results.sqlite"
    if not path.exists():
        return 0
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        try:
            return int(database.execute("SELECT count(*) FROM results").fetchone()[0])
        except sqlite3.OperationalError:  # killed before the tables were made
            return 0


@pytest.mark.posix
@pytest.mark.slow
def test_killed_and_interrupted_a_study_ends_with_the_same_tables(start, tmp_path):
    X = np.random.default_rng(0).standard_normal((300, 40))
    np.savez(tmp_path / "clusters.npz", X=X, y=np.arange(300) % 5)
    gammas = ", ".join(f"{10.0**power:g}" for power in range(-15, 15))
    (tmp_path / "long.toml").write_text(STUDY.replace("1e-2, 1.0", gammas))
    command = ("reproduce", "long.toml", "--threads", 2, "--out")
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    assert start(*command, whole).wait(timeout=200) == 0
    for stop in (signal.SIGKILL, signal.SIGINT):
        before = results_in(torn)
        process = start(*command, torn)
        while results_in(torn) == before and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(stop)
        process.wait(timeout=60)
        assert results_in(torn) > before, "a result was lost"
    assert process.returncode == 130
    assert "the same command resumes" in (tmp_path / "errors.txt").read_text()
    assert start(*command, torn).wait(timeout=200) == 0
    assert results_in(torn) == results_in(whole)
    for name in ("tuned.csv", "default.csv", "ranks.csv"):
        assert (torn / name).read_bytes() == (whole / name).read_bytes()
