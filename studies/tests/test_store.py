"""Results are stored one by one, in folders that are new, empty or made by keepers."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from keepers_studies.plan import FitTask, Outcome, timed_task
from keepers_studies.runner import run_study
from keepers_studies.store import MARKER, Store, claim_folder

from keepers.exceptions import DataError, KeepersError, ParameterError

TASK = FitTask("d", "f", "SPCAFS", {"gamma": 1.0}, (5, 10), 2, 0)
OUTCOME = Outcome(
    "ok",
    fit_seconds=0.5,
    judgements=({"n_features": 5, "acc": [0.5, 0.25], "nmi": [0.1, 0.2]},),
    objective=(3.0, 2.0),
    n_iter=2,
    top=(4, 1),
)


def test_what_was_added_is_there_for_the_next_process(tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        store.add(TASK, OUTCOME)
    with Store(path) as store:
        assert store.outcomes() == {TASK.key: OUTCOME}


def test_results_of_an_earlier_run_are_taken_over_once(tmp_path):
    other = replace(TASK, seed=1)
    with Store(tmp_path / "then" / "results.sqlite") as store:
        store.add(TASK, OUTCOME)
        store.add(other, Outcome("failed", "then"))
        store.add_run({"machine": "then"})
    before = (tmp_path / "then" / "results.sqlite").read_bytes()
    with Store(tmp_path / "now" / "results.sqlite") as store:
        store.add(other, OUTCOME)  # what is there already stays
        assert store.add_results_of(tmp_path / "then") == 1
        assert store.add_results_of(tmp_path / "then" / "results.sqlite") == 0
        assert store.outcomes() == {TASK.key: OUTCOME, other.key: OUTCOME}
        assert [run["machine"] for run in store.runs()] == ["then"]
    assert (tmp_path / "then" / "results.sqlite").read_bytes() == before


def test_earlier_results_that_are_absent_foreign_or_damaged_are_refused_whole(tmp_path):
    with Store(tmp_path / "now" / "results.sqlite") as store:
        with pytest.raises(DataError, match=r"results\.jsonl\.xz; .* is not there"):
            store.add_results_of(tmp_path / "nowhere")
        (tmp_path / "notes.txt").write_text("not a database, whatever its name")
        with pytest.raises(DataError, match="not a results file of keepers"):
            store.add_results_of(tmp_path / "notes.txt")
        with Store(tmp_path / "then" / "results.sqlite") as then:
            then.add(TASK, OUTCOME)
        with closing(sqlite3.connect(tmp_path / "then" / "results.sqlite")) as database:
            database.execute("INSERT INTO results VALUES ('k', '{}', '{\"unknown\": 1}', 'now')")
            database.commit()
        with pytest.raises(DataError, match="damaged"):
            store.add_results_of(tmp_path / "then")
        with closing(sqlite3.connect(tmp_path / "then" / "results.sqlite")) as database:
            database.execute("UPDATE layout SET version = 99")
            database.commit()
        with pytest.raises(DataError, match="layout 99"):
            store.add_results_of(tmp_path / "then")
        assert store.outcomes() == {}


def test_packed_results_hold_everything_but_the_lists_of_features(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        store.add(TASK, replace(OUTCOME, fit_seconds=1 / 3))
        store.add_run({"machine": "then"})
        store.write_packed(tmp_path / "results.jsonl.xz")
    with Store(tmp_path / "now" / "results.sqlite") as store:
        assert store.add_results_of(tmp_path / "results.jsonl.xz") == 1
        assert store.outcomes() == {TASK.key: replace(OUTCOME, fit_seconds=0.33333333, top=())}
        assert [run["machine"] for run in store.runs()] == ["then"]
        (tmp_path / "bad.jsonl.xz").write_bytes(b"not compressed")
        with pytest.raises(DataError, match="is not a results file"):
            store.add_results_of(tmp_path / "bad.jsonl.xz")


def test_the_kept_results_of_the_paper_can_be_read(tmp_path):
    kept = Path(__file__).parents[1] / "results" / "paper"
    with Store(tmp_path / "results.sqlite") as store:
        assert store.add_results_of(kept) > 1000


def test_results_of_a_setting_that_became_the_only_one_keep_their_place(tmp_path):
    now = FitTask("d", "f", "DGUFS", {"n_clusters": 3, "beta": 0.5}, (5,), 2, 0)
    then = replace(now, params={**now.params, "solver": "bcd"})
    with Store(tmp_path / "then" / "results.sqlite") as store:
        store.add(then, OUTCOME)
    with Store(tmp_path / "now" / "results.sqlite") as store:
        store.add_results_of(tmp_path / "then")
        assert list(store.outcomes()) == [now.key]


def test_a_task_has_one_result(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        store.add(TASK, OUTCOME)
        with pytest.raises(sqlite3.IntegrityError):
            store.add(TASK, OUTCOME)


def test_only_unsuccessful_results_are_forgotten(tmp_path):
    growth = timed_task("MCFS", {}, 10, 10, 0)
    with Store(tmp_path / "results.sqlite") as store:
        store.add(TASK, OUTCOME)
        store.add(growth, Outcome("timeout", "ran past"))
        assert store.delete_unsuccessful() == 1
        assert list(store.outcomes()) == [TASK.key]


def test_a_second_run_in_the_same_folder_is_refused(tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path) as one, Store(path) as other:
        refused = pytest.raises(KeepersError, match="Another run is using")
        with one.only_one_run(), refused, other.only_one_run():
            pass
        with other.only_one_run():
            pass


def filled(path, n_results=60):
    with Store(path) as store:
        for number in range(n_results):
            store.add(timed_task("MCFS", {}, number, 10, 0), OUTCOME)
    return path


def cut(content):
    return content[: len(content) // 2]


def overwrite_the_middle(content):
    half = len(content) // 2
    return content[:half] + b"\xff" * 4096 + content[half + 4096 :]


@pytest.mark.parametrize("harm", [cut, overwrite_the_middle, lambda content: b"junk" * 999])
def test_a_damaged_store_is_told_when_it_is_opened(tmp_path, harm):
    path = filled(tmp_path / "results.sqlite")
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(DataError, match=r"is (damaged|not a results file).*[Mm]ove"):
        Store(path)


FULL_DISK = """
import resource, sys
from pathlib import Path
from keepers_studies.store import Store
from keepers.exceptions import KeepersError
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    with Store(Path(sys.argv[1])) as store:
        while True:
            store.add_run({"text": "x" * 1000})
except KeepersError as error:
    print(error)
"""


@pytest.mark.parametrize("limit", [100, 40_000])
def test_a_disk_that_is_full_is_not_a_foreign_file(tmp_path, limit):
    pytest.importorskip("resource")
    path = tmp_path / "results.sqlite"
    command = [sys.executable, "-c", FULL_DISK, str(path), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "results.sqlite cannot be written: " in done.stdout
    assert "run the same command again" in done.stdout


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_new_and_empty_folders_are_claimed_and_can_be_claimed_again(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new/below"):
        claim_folder(tmp_path / name)
        assert os.listdir(tmp_path / name) == [MARKER]
        (tmp_path / name / "index.html").touch()
        claim_folder(tmp_path / name)


@pytest.mark.parametrize("name", ["index.html", "figures/mine.csv"])
def test_a_folder_with_files_of_others_is_refused_and_left_alone(tmp_path, small_study, name):
    folder = tmp_path / "mine"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text("mine")
    with pytest.raises(ParameterError, match=r"new or empty folder.* holds other files .*--out"):
        run_study(small_study, folder)
    assert files_in(folder) == {name: b"mine"}


@pytest.mark.posix
@pytest.mark.parametrize("name", ["results.csv", "figures/table.npz"])
def test_a_table_inside_of_the_results_folder_is_refused_and_kept(tmp_path, small_study, name):
    folder = tmp_path / "out"
    run_study(small_study, folder, run_missing=False)
    table = folder / name
    table.parent.mkdir(exist_ok=True)
    table.write_bytes(Path(small_study.data[0].source).read_bytes())
    (tmp_path / "link.npz").symlink_to(table)
    for source in (table, tmp_path / "link.npz"):
        choice = small_study.data[0].model_copy(update={"source": str(source)})
        study = small_study.model_copy(update={"data": [choice]})
        before = files_in(folder)
        with pytest.raises(ParameterError, match="must lie outside of the results folder"):
            run_study(study, folder)
        assert files_in(folder) == before


@pytest.mark.posix
def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ParameterError, match="file is not a folder"):
        claim_folder(tmp_path / "file")
    with pytest.raises(KeepersError, match=r"below cannot be written: .* Choose another folder"):
        claim_folder(tmp_path / "file" / "below")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ParameterError, match="link is not a folder"):
        claim_folder(tmp_path / "link")
