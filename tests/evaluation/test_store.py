"""Results stay, one transaction each."""

import sqlite3

import pytest

from keepers.evaluation.store import Store
from keepers.evaluation.tasks import Growth, Outcome, Task
from keepers.exceptions import DataError, KeepersError

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
