"""Results stay, one transaction each."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from keepers.exceptions import DataError, KeepersError
from keepers.studies.store import Store
from keepers.studies.tasks import Growth, Outcome, Task

TASK = Task("d", "f", "SPCAFS", {"gamma": 1.0}, (5, 10), 2, 0)
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


def test_a_task_has_one_result(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        store.add(TASK, OUTCOME)
        with pytest.raises(sqlite3.IntegrityError):
            store.add(TASK, OUTCOME)


def test_only_unsuccessful_results_are_forgotten(tmp_path):
    growth = Growth("MCFS", {}, 10, 10, 0)
    with Store(tmp_path / "results.sqlite") as store:
        store.add(TASK, OUTCOME)
        store.add(growth, Outcome("timeout", "ran past"))
        assert store.forget_unsuccessful() == 1
        assert list(store.outcomes()) == [TASK.key]


def test_a_second_run_in_the_same_folder_is_refused(tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path) as one, Store(path) as other:
        refused = pytest.raises(KeepersError, match="Another run is at work")
        with one.only_one_run(), refused, other.only_one_run():
            pass
        with other.only_one_run():
            pass


def test_facts_of_each_run_are_kept_in_order(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        store.note_run({"cpu": "one"})
        store.note_run({"cpu": "two"})
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
            store.add(Growth("MCFS", {}, number, 10, 0), OUTCOME)
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
    "database or disk is full": "cannot be written: the disk is full .*Make room",
    "disk I/O error": "cannot be written: the disk is full or failing .*Make room",
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
        lambda: store.note_run({}),
        store.forget_unsuccessful,
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
            store.note_run({"text": "x" * 1000})
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
