"""`keepers compare`, `reproduce` and `datasets`, as a user runs them."""

import csv
import os
import random
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.conftest import COMMAND, QUICK

STUDY = """\
title = "two methods"
ks = [2, 4]
repeats = 2
[[data]]
source = "{table}"
name = "patients"
labels = "class"
identifier = "sample"
[[methods]]
name = "SPCAFS"
grid = {{ gamma = [1e-2, 1.0] }}
default = {{}}
[[methods]]
name = "AllFeatures"
default = {{}}
"""


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_compare_judges_every_method_on_ones_own_table(keepers, table, tmp_path):
    methods = ("--methods", "spcafs,mcfs", "--ks", "2,4", "--repeats", 3)
    done = keepers("compare", table, "--labels", "class", "--id", "sample", *methods)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "keepers-compare-table"
    found = {(r["method"], r["k"]): r for r in rows_of(folder / "default.csv")}
    assert {method for method, _ in found} == {
        "SPCAFS",
        "MCFS",
        "Random",
        "Variance",
        "All features",
    }
    assert float(found["SPCAFS", "2"]["acc_mean"]) == 1.0
    assert "SPCAFS\t1.000" in done.stdout
    assert (folder / "index.html").stat().st_size > 10_000
    assert "index.html" in done.stderr


@pytest.mark.slow
def test_reproduce_runs_a_study_and_prints_nothing_beside_with_quiet(keepers, table, tmp_path):
    (tmp_path / "mine.toml").write_text(STUDY.format(table=table))
    done = keepers("reproduce", "mine.toml", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(rows_of(tmp_path / "keepers-mine" / "tuned.csv")) == 3  # two k, and all features


def test_a_report_can_be_written_of_what_has_run_so_far(keepers, table, tmp_path):
    text = STUDY.format(table=table)
    (tmp_path / "mine.toml").write_text(text)
    assert keepers("reproduce", "mine.toml", "--out", "out").returncode == 0
    more = '[[methods]]\nname = "MCFS"\ndefault = {}\n'
    (tmp_path / "mine.toml").write_text(text + more)
    done = keepers("reproduce", "mine.toml", "--out", "out", "--report-only")
    assert done.returncode == 0, done.stderr
    found = {row["method"]: row["status"] for row in rows_of(tmp_path / "out" / "default.csv")}
    assert found == {"SPCAFS": "ok", "AllFeatures": "ok", "MCFS": "missing"}


def test_a_study_without_default_settings_prints_what_there_is(keepers, table, tmp_path):
    text = STUDY.format(table=table).replace("default = {}\n", "")
    (tmp_path / "grids.toml").write_text(text)
    done = keepers("reproduce", "grids.toml")
    assert done.returncode == 0, done.stderr
    titles = [line for line in done.stdout.splitlines() if line.startswith("#")]
    assert titles == ["# ACC, patients, tuned with the labels, as in the paper"]


def test_a_leaderboard_prints_its_methods_and_has_a_page_for_each_table(keepers, table, tmp_path):
    random = '[[methods]]\nname = "RandomScore"\nlabel = "Random"\ndraws = 3\n'
    text = f'page = "leaderboard"\n{STUDY.format(table=table)}{random}'
    (tmp_path / "mine.toml").write_text(text)
    done = keepers("reproduce", "mine.toml")
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert ["# Leaderboard, default settings"] in lines
    assert ["method", "scaled", "above random", "worst, points"] in lines
    own = next(line for line in lines if line[0] == "SPCAFS")
    assert own[:3] == ["SPCAFS", "1.00", "1 of 1"]
    assert own[3].startswith("patients +")
    folder = tmp_path / "keepers-mine"
    assert {row["method"] for row in rows_of(folder / "leaderboard.csv")} == {
        "SPCAFS",
        "AllFeatures",
        "Random",
    }
    assert (folder / "sets" / "patients.html").is_file()


def test_a_faulty_study_is_refused_with_its_line(quick_keepers, table, tmp_path):
    (tmp_path / "mine.toml").write_text(STUDY.format(table=table).replace("ks =", "kz ="))
    done = quick_keepers("reproduce", "mine.toml")
    assert done.returncode == 1
    assert "line 2: kz: there is no such setting" in done.stderr
    assert "Traceback" not in done.stderr


def test_absent_data_sets_are_named_with_the_way_out(quick_keepers, tmp_path):
    done = quick_keepers("reproduce", "paper", KEEPERS_DATA=str(tmp_path))
    assert done.returncode == 1
    assert "Imm40" in done.stderr
    assert "KEEPERS_DATA" in done.stderr
    assert "--skip-absent" in done.stderr


def test_datasets_lists_what_is_here_and_what_is_not(quick_keepers, tmp_path):
    done = quick_keepers("datasets", KEEPERS_DATA=str(tmp_path))
    assert done.returncode == 0
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line}
    assert "bundled" in lines["srbct"]
    assert " no " in lines["Imm40"]
    assert "KEEPERS_DATA" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["compare"], 2, "DATA"),
        (["compare", "srbct", "--ks", "ten"], 2, "--ks must be integers >= 1"),
        (["compare", "srbct", "--methods", "spca"], 2, "no method 'spca'"),
        (["compare", "srbct", "--scale", "big"], 2, "--scale must be one of"),
        (["compare", "no-such-table"], 1, "no-such-table"),
        (["reproduce", "no-such-study"], 1, "paper, quick, suite"),
        (["nonsense"], 2, "nonsense"),
        (["--version"], 0, ""),
        (["compare", "--help"], 0, ""),
    ],
)
def test_exit_codes_say_whether_it_was_misuse_or_could_not_be_done(
    quick_keepers, arguments, code, said
):
    done = quick_keepers(*arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


COMPARE = ("--labels", "class", "--id", "sample", "--methods", "lapscore", "--ks", 2)


@pytest.mark.parametrize("name", ["prepared/table.csv", "results.csv"])
@pytest.mark.parametrize("inside", [True, False])
def test_compare_and_reproduce_never_touch_a_folder_that_is_not_theirs(
    quick_keepers, table, tmp_path, name, inside
):
    mine = tmp_path / "mine"
    (mine / name).parent.mkdir(parents=True)
    (mine / name).write_bytes(table.read_bytes())
    (mine / "index.html").write_text("my page")
    source = mine / name if inside else table
    (tmp_path / "mine.toml").write_text(STUDY.format(table=source))
    for command in (("compare", source, *COMPARE), ("reproduce", "mine.toml")):
        done = quick_keepers(*command, "--out", mine)
        assert done.returncode == 2, done.stderr
        assert "holds other files" in done.stderr
        assert (mine / name).read_bytes() == table.read_bytes()
        assert (mine / "index.html").read_text() == "my page"
        assert sum(path.is_file() for path in mine.rglob("*")) == 2


@pytest.mark.slow
def test_a_finished_comparison_resumes_in_its_folder_but_not_over_its_own_input(
    quick_keepers, table, tmp_path
):
    for _ in range(2):
        done = quick_keepers("compare", table, *COMPARE, "--out", "out")
        assert done.returncode == 0, done.stderr
    inside = tmp_path / "out" / "tuned.csv"
    inside.write_bytes(table.read_bytes())
    done = quick_keepers("compare", inside, *COMPARE, "--out", "out")
    assert done.returncode == 2
    assert "must lie outside of the results folder" in done.stderr
    assert inside.read_bytes() == table.read_bytes()


@pytest.mark.parametrize("keep", [0.6, 0.0])
def test_a_damaged_store_is_an_error_with_a_way_out(quick_keepers, table, tmp_path, keep):
    assert quick_keepers("compare", table, *COMPARE, "--out", "out").returncode == 0
    store = tmp_path / "out" / "results.sqlite"
    content = store.read_bytes()
    store.write_bytes(content[: int(keep * len(content))] or b"junk" * 999)
    done = quick_keepers("compare", table, *COMPARE, "--out", "out")
    assert done.returncode == 1
    assert "results.sqlite is" in done.stderr
    assert "ove" in done.stderr  # move it away
    assert "Unexpected error" not in done.stderr


@pytest.mark.posix
@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", [1, 8, 24])
def test_a_full_disk_is_an_error_with_a_way_out(table, tmp_path, kilobytes):
    """The limit on file size strikes while the store is made, and while results are added."""
    command = shlex.join([str(COMMAND), "compare", str(table), *map(str, COMPARE)])
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f {kilobytes}; {command} --out out --repeats 2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **QUICK},
    )
    assert done.returncode == 1, done.stderr
    assert "cannot be written: the disk is full" in done.stderr
    assert "ree some space" in done.stderr
    assert "Traceback" not in done.stderr


def start(folder: Path, stderr: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """A comparison of some dozens of tasks, each a fraction of a second."""
    what = ["compare", "digits", "--methods", "spcafs,lapscore,mcfs,udfs,dgufs", "--tune"]
    how = ["--ks", "5,10,20,30", "--repeats", "5", "--threads", "2", "--out", str(folder)]
    return subprocess.Popen(
        [str(COMMAND), *what, *how],
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        env={**os.environ, **QUICK},
    )


def results_in(folder: Path) -> int:
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
def test_interrupted_it_says_how_to_resume_and_ends_with_130(tmp_path):
    process = start(tmp_path / "out", stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while results_in(tmp_path / "out") == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130
    assert "the same command resumes" in said
    assert "Traceback" not in said


@pytest.mark.posix
@pytest.mark.slow
def test_killed_ten_times_a_comparison_ends_with_the_same_tables(tmp_path):
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    assert start(whole).wait(timeout=200) == 0
    moments = random.Random(0)
    kept, kills = 0, 0
    while kills < 10:
        process = start(torn)
        time.sleep(moments.uniform(0.5, 4.0))
        process.send_signal(signal.SIGKILL)
        # -9: it was at work when it was killed. Else it had come to its end: begin anew.
        kills += process.wait(timeout=20) == -signal.SIGKILL
        now = results_in(torn)
        assert now >= kept, "a result was lost"
        kept = now
        if process.returncode == 0:
            torn = tmp_path / f"torn-{kills}"
            kept = 0
    assert start(torn).wait(timeout=200) == 0
    assert results_in(torn) == results_in(whole)
    for name in ("results.csv", "tuned.csv", "default.csv"):
        assert (torn / name).read_bytes() == (whole / name).read_bytes()


EXAMPLE = Path(__file__).parents[2] / "examples" / "add_a_method.py"
OWN = "my_method:SharedVariance"


def test_a_method_of_ones_own_is_compared(keepers, table, tmp_path):
    (tmp_path / "my_method.py").write_text(EXAMPLE.read_text())
    compare = ("compare", table, "--labels", "class", "--id", "sample", "--ks", 2, "--out", "out")
    done = keepers(*compare, "--methods", f"lapscore,{OWN}", "--repeats", 2)
    assert done.returncode == 0, done.stderr
    rows = {row["method"]: row for row in rows_of(tmp_path / "out" / "default.csv")}
    assert rows[OWN]["status"] == "ok", rows[OWN]["reason"]
    assert rows.keys() == {"LapScore", "Random", "Variance", "All features", OWN}


@pytest.mark.slow
def test_a_method_of_ones_own_can_be_named_in_a_study(keepers, table, tmp_path):
    (tmp_path / "my_method.py").write_text(EXAMPLE.read_text())
    (tmp_path / "mine.toml").write_text(
        STUDY.format(table=table)
        + f'[[methods]]\nname = "{OWN}"\nlabel = "Mine"\ngrid = {{ n_components = [1, 2] }}\n'
    )
    done = keepers("reproduce", "mine.toml")
    assert done.returncode == 0, done.stderr
    rows = [r for r in rows_of(tmp_path / "keepers-mine" / "tuned.csv") if r["method"] == "Mine"]
    assert [(row["status"], row["settings_tried"]) for row in rows] == [("ok", "2")] * 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module:Mine", "cannot be imported (ModuleNotFoundError"),
        ("json:Mine", "cannot be imported (AttributeError"),
        ("json:JSONDecoder", "must be a subclass of RankingSelector"),
        ("broken:Mine", "cannot be imported (ZeroDivisionError"),
        ("Mine", "MODULE:CLASS for one of your own"),
    ],
)
def test_a_method_that_cannot_be_used_is_misuse_and_no_folder_is_made(
    quick_keepers, table, tmp_path, monkeypatch, name, said
):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "broken.py").write_text("1 / 0\n")
    done = quick_keepers("compare", table, "--labels", "class", "--methods", name, "--out", "out")
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "out").exists()
