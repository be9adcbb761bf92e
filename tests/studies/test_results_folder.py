"""Results go to folders that are new, empty or ours; whatever else is there is never touched."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from keepers.exceptions import KeepersError, ParameterError
from keepers.studies.csv_tables import write_tables
from keepers.studies.paper_claims.judging import Evidence
from keepers.studies.results_folder import MARKER, claim_folder
from keepers.studies.runner import run_study
from keepers.studies.store import Store


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
        write_tables(Evidence(run), [], folder)
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
from keepers.studies import results_folder
moment, folder = sys.argv[1:]
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if moment == "before the marker":
    results_folder.write_text = die
elif moment == "while the marker is written":
    os.fsync = die
results_folder.claim_folder(Path(folder))
die()
"""


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


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ParameterError, match="file is not a folder"):
        claim_folder(tmp_path / "file")
    with pytest.raises(KeepersError, match=r"below cannot be written: .* Choose another folder"):
        claim_folder(tmp_path / "file" / "below")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ParameterError, match="link is not a folder"):
        claim_folder(tmp_path / "link")


def test_a_folder_that_cannot_be_written_is_told_before_any_fit(tmp_path, small_study, monkeypatch):
    with pytest.raises(KeepersError, match=r"cannot be written: .* Choose another folder"):
        run_study(small_study, Path("/proc/keepers-results"))
    monkeypatch.setattr("keepers.studies.runner.do", None)
    run_study_in = tmp_path / "out"
    claim_folder(run_study_in)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KeepersError, match=r"disk is full .*make room"):
        run_study(small_study, run_study_in)


@pytest.mark.parametrize("error", [OSError(28, "No space left"), OSError("9 requested and 1 done")])
def test_a_disk_that_is_full_when_tables_are_prepared_is_told(
    tmp_path, small_study, monkeypatch, error
):
    def full(*_):
        raise error

    monkeypatch.setattr("keepers.studies.worker.np.save", full)
    with pytest.raises(KeepersError, match=r"prepared cannot be written: .* Make room"):
        run_study(small_study, tmp_path / "out")
