"""Results are stored one by one, in folders that are new, empty or made by keepers."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from keepers.exceptions import DataError, KeepersError, ParameterError
from keepers.studies.csv_tables import write_tables
from keepers.studies.plan import FitTask, GrowthTask, Outcome
from keepers.studies.results import StudyResults
from keepers.studies.runner import run_study
from keepers.studies.store import MARKER, Store, claim_folder

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


def test_of_parts_of_a_study_that_ran_apart_the_run_they_start_from_is_listed_once(tmp_path):
    tasks = [replace(TASK, seed=seed) for seed in range(3)]
    with Store(tmp_path / "first" / "results.sqlite") as first:
        first.add(tasks[0], OUTCOME)
        first.add_run({"machine": "first"})
    for part in (1, 2):
        with Store(tmp_path / f"part {part}" / "results.sqlite") as store:
            store.add_results_of(tmp_path / "first")
            store.add(tasks[part], OUTCOME)
            store.add_run({"machine": f"part {part}"})
    with Store(tmp_path / "whole" / "results.sqlite") as whole:
        added = [whole.add_results_of(tmp_path / f"part {part}") for part in (1, 2)]
        assert added == [2, 1]
        assert [run["machine"] for run in whole.runs()] == ["first", "part 1", "part 2"]


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


def test_a_task_has_one_result(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        store.add(TASK, OUTCOME)
        with pytest.raises(sqlite3.IntegrityError):
            store.add(TASK, OUTCOME)


def test_only_unsuccessful_results_are_forgotten(tmp_path):
    growth = GrowthTask("MCFS", {}, 10, 10, 0)
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


def test_facts_of_each_run_are_kept_in_order(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        store.add_run({"cpu": "one"})
        store.add_run({"cpu": "two"})
        assert [run["cpu"] for run in store.runs()] == ["one", "two"]


def test_a_file_that_is_no_results_file_is_refused(tmp_path):
    path = tmp_path / "results.sqlite"
    path.write_bytes(b"name,score\n" * 200)
    with pytest.raises(DataError, match="not a results file"):
        Store(path)


def test_a_file_of_another_layout_is_refused(tmp_path):
    path = tmp_path / "results.sqlite"
    Store(path).close()
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE layout SET version = 99")
    database.close()
    with pytest.raises(DataError, match="layout 99"):
        Store(path)


def filled(path, n_results=60):
    with Store(path) as store:
        for number in range(n_results):
            store.add(GrowthTask("MCFS", {}, number, 10, 0), OUTCOME)
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


@pytest.mark.parametrize("outcome", ["{", "[]", '{"unknown": 1}', "7"])
def test_a_stored_result_that_cannot_be_read_is_damage(tmp_path, outcome):
    path = filled(tmp_path / "results.sqlite", 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE results SET outcome = ?", (outcome,))
    with Store(path) as store, pytest.raises(DataError, match=r"is damaged .* Move it away"):
        store.outcomes()


class Failing:
    """A connection that cannot write."""

    def __init__(self, said):
        self.said = said

    def execute(self, *_):
        raise sqlite3.OperationalError(self.said)

    executescript = execute

    def close(self):
        pass


WRITE_ERRORS = {
    "database or disk is full": "cannot be written: the disk is full .*Free some space",
    "disk I/O error": "cannot be written: the disk is full or failing .*Free some space",
    "attempt to write a readonly database": "must be writable: .*choose another folder",
    "unable to open database file": "must be writable: .*choose another folder",
    "database is locked": "in use by another program .*again",
}


@pytest.mark.parametrize(("said", "message"), WRITE_ERRORS.items())
def test_a_store_that_cannot_be_written_says_why_and_what_to_do(
    tmp_path, monkeypatch, said, message
):
    path = filled(tmp_path / "results.sqlite", 1)
    store = Store(path)
    store.close()
    store._database = Failing(said)
    actions = (
        lambda: store.add(TASK, OUTCOME),
        lambda: store.add_run({}),
        store.delete_unsuccessful,
        store.outcomes,
        store.runs,
    )
    for action in actions:
        with pytest.raises(KeepersError, match=message):
            action()
    monkeypatch.setattr(sqlite3, "connect", lambda *_, **__: Failing(said))
    with pytest.raises(KeepersError, match=message):  # while it is being made
        Store(tmp_path / "other.sqlite")


def test_a_lock_that_cannot_be_taken_for_another_reason_is_not_another_run(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        (tmp_path / "results.lock").write_bytes(b"junk" * 999)
        no_database = pytest.raises(DataError, match=r"results\.lock is not a results file")
        with no_database, store.only_one_run():
            pass
        (tmp_path / "results.lock").unlink()
        (tmp_path / "results.lock").mkdir()
        no_file = pytest.raises(KeepersError, match=r"results\.lock must be writable")
        with no_file, store.only_one_run():
            pass


FULL_DISK = """
import resource, sys
from pathlib import Path
from keepers.studies.store import Store
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
    assert "results.sqlite cannot be written: the disk is full or failing" in done.stdout
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


@pytest.mark.parametrize("name", ["index.html", "results.csv", "prepared/mine.csv", "notes.txt"])
def test_a_folder_with_files_of_others_is_refused_and_left_alone(tmp_path, small_study, name):
    folder = tmp_path / "mine"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text("mine")
    with pytest.raises(ParameterError, match=r"new or empty folder.* holds other files .*--out"):
        run_study(small_study, folder)
    assert files_in(folder) == {name: b"mine"}


def test_a_report_does_not_replace_files_of_others_either(tmp_path, small_study):
    run = run_study(small_study, tmp_path / "out", n_jobs=2)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "results.csv").write_text("mine")
    with pytest.raises(ParameterError, match="holds other files"):
        write_tables(StudyResults(run), [], folder)
    assert files_in(folder) == {"results.csv": b"mine"}


@pytest.mark.parametrize("content", ["", "keepers", "keepers results folders of mine\n"])
def test_a_file_with_the_name_of_the_marker_is_not_the_marker(tmp_path, content):
    (tmp_path / MARKER).write_text(content)
    with pytest.raises(ParameterError, match="holds other files"):
        claim_folder(tmp_path)
    assert files_in(tmp_path) == {MARKER: content.encode()}


def test_a_folder_of_a_version_without_markers_is_known_by_its_store(tmp_path):
    Store(tmp_path / "results.sqlite").close()
    (tmp_path / "index.html").touch()
    claim_folder(tmp_path)
    assert (tmp_path / MARKER).exists()


def test_a_database_of_others_is_not_taken_for_a_store(tmp_path):
    with closing(sqlite3.connect(tmp_path / "results.sqlite")) as database:
        database.execute("CREATE TABLE results (key TEXT)")
    before = files_in(tmp_path)
    with pytest.raises(ParameterError, match=r"holds other files \(results.sqlite\)"):
        claim_folder(tmp_path)
    assert files_in(tmp_path) == before


@pytest.mark.posix
@pytest.mark.parametrize("name", ["results.csv", "prepared/table.npz", "figures/table.npz"])
def test_a_table_inside_of_the_results_folder_is_refused_and_kept(tmp_path, small_study, name):
    folder = tmp_path / "out"
    run_study(small_study, folder, n_jobs=2)
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


def test_only_the_tables_of_a_run_are_cleared_away(tmp_path, small_study):
    folder = tmp_path / "out"
    claim_folder(folder)
    (folder / "prepared").mkdir()
    (folder / "prepared" / "mine.csv").write_text("mine")
    np.save(folder / "prepared" / f"{'0' * 24}.npy", np.eye(2))  # of a run that was killed
    run_study(small_study, folder, n_jobs=2)
    assert os.listdir(folder / "prepared") == ["mine.csv"]


KILLED = """
import os, signal, sys
from pathlib import Path
from keepers.studies import store
moment, folder = sys.argv[1:]
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if moment == "before the marker":
    store.write_text = die
elif moment == "while the marker is written":
    os.fsync = die
store.claim_folder(Path(folder))
die()
"""


@pytest.mark.posix
@pytest.mark.parametrize(
    "moment", ["before the marker", "while the marker is written", "after the marker"]
)
def test_a_run_killed_right_after_the_folder_was_made_can_be_resumed(tmp_path, moment):
    folder = tmp_path / "out"
    command = [sys.executable, "-c", KILLED, moment, str(folder)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert folder.is_dir()
    claim_folder(folder)
    assert os.listdir(folder) == [MARKER]


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


@pytest.mark.posix
def test_a_folder_that_cannot_be_written_is_told_before_any_fit(tmp_path, small_study, monkeypatch):
    with pytest.raises(KeepersError, match=r"cannot be written: .* Choose another folder"):
        run_study(small_study, Path("/proc/keepers-results"))
    monkeypatch.setattr("keepers.studies.runner.run_task", None)
    run_study_in = tmp_path / "out"
    claim_folder(run_study_in)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KeepersError, match=r"disk is full .*(make room|free some space)"):
        run_study(small_study, run_study_in)


@pytest.mark.parametrize("error", [OSError(28, "No space left"), OSError("9 requested and 1 done")])
def test_a_disk_that_is_full_when_tables_are_prepared_is_told(
    tmp_path, small_study, monkeypatch, error
):
    def full(*_):
        raise error

    monkeypatch.setattr("keepers.studies.worker.np.save", full)
    with pytest.raises(KeepersError, match=r"prepared cannot be written: .* Free some space"):
        run_study(small_study, tmp_path / "out")
