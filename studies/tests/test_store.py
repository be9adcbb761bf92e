"""Results are stored one by one, in folders that are new, empty or made by keepers."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from keepers_studies.plan import FitTask, Outcome, timed_task
from keepers_studies.store import Store, claim_folder

from keepers.exceptions import DataError, KeepersError

TASK = FitTask("d", "f", "SPCAFS", {"gamma": 1.0}, (5, 10), 2, 0)
OUTCOME = Outcome(
    "ok",
    fit_seconds=1 / 3,
    judgements=({"n_features": 5, "acc": [0.5, 0.25], "nmi": [0.1, 0.2]},),
    objective=(3.0, 2.0),
    n_iter=2,
    top=(4, 1),
)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "now" / "results.sqlite") as store:
        yield store


@pytest.fixture
def earlier(tmp_path):
    """The folder of an earlier run with one result."""
    with Store(tmp_path / "then" / "results.sqlite") as then:
        then.add(TASK, OUTCOME)
        then.add_run({"machine": "then"})
    return tmp_path / "then"


def test_results_of_an_earlier_run_are_taken_over_once(store, earlier):
    other = replace(TASK, seed=1)
    with Store(earlier / "results.sqlite") as then:
        then.add(other, Outcome("failed", "then"))
    before = (earlier / "results.sqlite").read_bytes()
    store.add(other, OUTCOME)  # what is there already stays
    assert store.add_results_of(earlier) == 1
    assert store.add_results_of(earlier / "results.sqlite") == 0
    assert store.outcomes() == {TASK.key: OUTCOME, other.key: OUTCOME}
    assert [run["machine"] for run in store.runs()] == ["then"]
    assert (earlier / "results.sqlite").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("INSERT INTO results VALUES ('k', '{}', '{\"unknown\": 1}', 'now')", "damaged"),
        ("UPDATE layout SET version = 99", "layout 99"),
    ],
)
def test_earlier_results_that_are_damaged_or_of_another_version_add_nothing(
    store, earlier, change, message
):
    with closing(sqlite3.connect(earlier / "results.sqlite")) as database:
        database.execute(change)
        database.commit()
    with pytest.raises(DataError, match=message):
        store.add_results_of(earlier)
    assert store.outcomes() == {}


@pytest.mark.parametrize("name", ["notes.txt", "bad.jsonl.xz"])
def test_earlier_results_that_are_absent_or_foreign_are_refused(store, tmp_path, name):
    with pytest.raises(DataError, match="is not there"):
        store.add_results_of(tmp_path / name)
    (tmp_path / name).write_text("not a store, whatever its name")
    with pytest.raises(DataError, match="not a results file of keepers"):
        store.add_results_of(tmp_path / name)


def test_packed_results_hold_everything_but_the_lists_of_features(store, earlier, tmp_path):
    with Store(earlier / "results.sqlite") as then:
        then.write_packed(tmp_path / "results.jsonl.xz")
    assert store.add_results_of(tmp_path / "results.jsonl.xz") == 1
    assert store.outcomes() == {TASK.key: replace(OUTCOME, fit_seconds=0.33333333, top=())}
    assert [run["machine"] for run in store.runs()] == ["then"]


def test_the_kept_results_of_the_paper_can_be_read(store):
    assert store.add_results_of(Path(__file__).parents[1] / "results" / "paper") > 1000


def test_results_of_a_setting_that_became_the_only_one_keep_their_place(store, earlier):
    now = FitTask("d", "f", "DGUFS", {"n_clusters": 3, "beta": 0.5}, (5,), 2, 0)
    with Store(earlier / "results.sqlite") as then:
        then.add(replace(now, params={**now.params, "solver": "bcd"}), OUTCOME)
    store.add_results_of(earlier)
    assert now.key in store.outcomes()


def test_a_second_run_in_the_same_folder_is_refused(store):
    with Store(store.path) as other:
        refused = pytest.raises(KeepersError, match="Another run is using")
        with store.only_one_run(), refused, other.only_one_run():
            pass
        with other.only_one_run():
            pass


def overwrite_the_middle(content):
    half = len(content) // 2
    return content[:half] + b"\xff" * 4096 + content[half + 4096 :]


@pytest.mark.parametrize("harm", [overwrite_the_middle, lambda content: b"junk" * 999])
def test_damage_to_a_store_is_noticed_when_it_is_opened(tmp_path, harm):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        for number in range(60):
            store.add(timed_task("MCFS", {}, number, 10, 0), OUTCOME)
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(DataError, match=r"cannot be read or written.*move it away"):
        Store(path)


def test_new_and_empty_folders_can_be_used_and_those_with_results_used_again(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new/below"):
        claim_folder(tmp_path / name)
        (tmp_path / name / "index.html").touch()
        with pytest.raises(KeepersError, match=r"other files \('?index\.html'?\)"):
            claim_folder(tmp_path / name)
        (tmp_path / name / "results.sqlite").touch()
        claim_folder(tmp_path / name)
    with pytest.raises(KeepersError, match=r"html cannot be written: .* Choose another folder"):
        claim_folder(tmp_path / "empty" / "index.html")
