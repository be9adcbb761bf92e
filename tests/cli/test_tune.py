"""`keepers tune`, as a user runs it."""

import json
import os
import shlex
import signal
import subprocess
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from cli.conftest import COMMAND, QUICK
from keepers import select_method
from keepers.datasets import open_table
from keepers.tuning import method_choice
from keepers.tuning.evidence import NeighbourEvidence

COLUMNS = ("--id", "sample", "--labels", "class")


def write_csv(path, X):
    names = [f"g{j}" for j in range(X.shape[1])]
    pd.DataFrame(X, columns=names).to_csv(path, index=False)


def clustered(n_samples=90, n_features=30, n_informative=10):
    """Three groups of samples that differ in the first features."""
    random = np.random.default_rng(1)
    X = random.standard_normal((n_samples, n_features))
    X[:, :n_informative] += 3 * random.standard_normal((3, n_informative))[np.arange(n_samples) % 3]
    return X


def recommended(keepers, *arguments):
    done = keepers("tune", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_recommendation_is_that_of_the_library(quick_keepers, grouped):
    result = recommended(quick_keepers, grouped, *COLUMNS, "--resamples", 0)
    X = open_table(grouped, identifier="sample", labels="class").X
    choice = select_method(X, random_state=0)
    assert result["k"] == choice.n_features_to_select > 0
    assert (result["method"], result["params"]) == (choice.best.method, choice.best.params)
    assert (result["why"], result["left_out"]) == (choice.why, {})
    rows = [{key: row[key] for key in row if key != "columns"} for row in result["trials"]]
    assert rows + result["random"] == choice.rows()
    assert [row["columns"] for row in result["trials"]] == [
        trial.columns.tolist() for trial in choice.trials
    ]
    assert result["structure_found"]
    kept = choice.selector().fit(X).top().indices
    assert [feature["column"] for feature in result["features"]] == kept.tolist()


@pytest.mark.parametrize("method", ["lapscore", "mcfs", "spcafs"])
def test_a_method_that_is_clearly_ahead_is_recommended_with_its_command(
    quick_keepers, grouped, tmp_path, monkeypatch, method
):
    """Held ahead here: whatever the table says, no lead is within chance, and the others fail."""
    everything = method_choice._weigh_all

    def only(settings, kept):
        trials = everything(settings, kept)
        wanted = [trial for trial in trials if trial.method == method]
        front = [trial for trial in trials if trial.method == "auto"]
        ahead = replace(wanted[0], evidence=NeighbourEvidence(1.0, 2.0))
        return (ahead, *wanted[1:], *front)

    monkeypatch.setattr(method_choice, "_weigh_all", only)
    result = recommended(quick_keepers, grouped, *COLUMNS, "-k", 4)
    assert result["method"] == method
    assert f"--method {method} -k 4" in result["command"]
    assert result["stability"]["n_sets"] == 20
    done = quick_keepers(*shlex.split(result["command"])[1:])
    assert done.returncode == 0, done.stderr
    kept = pd.read_csv(tmp_path / "kept.csv").columns.drop(["sample", "class"], errors="ignore")
    assert sorted(kept) == sorted(feature["name"] for feature in result["features"])


def test_the_command_keeps_exactly_the_recommended_features(quick_keepers, tmp_path):
    write_csv(tmp_path / "a table.csv", clustered())
    options = ("--drop", "g0", "--scale", "unit-samples", "--seed", 3, "--resamples", 0)
    result = recommended(quick_keepers, "a table.csv", *options)
    program, *words = shlex.split(result["command"])
    assert program == "keepers"
    done = quick_keepers(*words)
    assert done.returncode == 0, done.stderr
    kept = pd.read_csv(tmp_path / "kept.csv").columns
    assert sorted(kept) == sorted(feature["name"] for feature in result["features"])
    assert len(kept) == result["k"]
    assert "g0" not in kept


def test_names_and_classes_go_into_the_command(quick_keepers, grouped):
    command = recommended(quick_keepers, grouped, *COLUMNS, "--resamples", 0)["command"]
    assert "--id sample --labels class" in command


def test_classes_make_no_difference(quick_keepers, grouped, tmp_path):
    one = recommended(quick_keepers, grouped, *COLUMNS, "--resamples", 0)
    frame = pd.read_csv(
        grouped, dtype=str
    )  # digit by digit, which not every pandas reads as numbers
    frame["class"] = np.random.default_rng(0).permutation(frame["class"])
    frame.to_csv(tmp_path / "shuffled.csv", index=False)
    other = recommended(quick_keepers, "shuffled.csv", *COLUMNS, "--resamples", 0)
    assert one["features"] == other["features"]
    assert one["trials"] == other["trials"]


def test_people_are_told_how_many_why_how_sure_and_what_to_run(keepers, grouped):
    done = keepers("tune", grouped, *COLUMNS)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    for said in ("12 features, ", "carry structure", "Method: ", "random", "fidelity", "score"):
        assert said in text
    for said in ("halves of the samples, stability", "times one fit of the winner"):
        assert said in text
    names = text.split("Features, best first\n")[1].splitlines()[0].split(", ")
    assert set(names) <= {f"g{j}" for j in range(12)}
    assert text.startswith(f"grouped: 60 samples, 12 features\n\nKeep {len(names)} features. ")
    last = text.splitlines()[-1]
    assert last.startswith("keepers select ")
    assert " -k " in last
    assert last.endswith("--out kept.csv")


def test_how_sure_it_is_comes_from_halves_of_the_samples(quick_keepers, grouped):
    result = recommended(quick_keepers, grouped, *COLUMNS)
    stability = result["stability"]
    assert stability["n_sets"] == 20
    assert stability["interval"][0] <= stability["index"] <= stability["interval"][1]
    assert result["why_no_stability"] is None
    assert result["seconds"]["all"] >= result["seconds"]["search"] > 0


def test_a_number_of_features_can_be_given(quick_keepers, grouped):
    result = recommended(quick_keepers, grouped, *COLUMNS, "-k", 5, "--resamples", 0)
    assert result["k"] == len(result["features"]) == 5
    assert result["k_was_given"]
    assert " -k 5 " in result["command"]


def test_noise_has_no_structure_and_gets_no_command(quick_keepers, tmp_path):
    write_csv(tmp_path / "noise.csv", np.random.default_rng(0).standard_normal((60, 20)))
    done = quick_keepers("tune", "noise.csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("No structure found in noise")
    assert "-k" in done.stdout
    assert "keepers select" not in done.stdout
    result = recommended(quick_keepers, "noise.csv")
    assert (result["structure_found"], result["k"]) == (False, 0)
    assert result["command"] is None
    assert result["features"] == result["trials"] == []


def test_noise_with_a_number_is_tuned_with_a_warning(quick_keepers, tmp_path):
    write_csv(tmp_path / "noise.csv", np.random.default_rng(0).standard_normal((60, 20)))
    done = quick_keepers("tune", "noise.csv", "-k", 4, "--resamples", 0)
    assert done.returncode == 0, done.stderr
    assert "Keep 4 features, as asked, but expect little. No structure found" in done.stdout
    assert "keepers select noise.csv --method " in done.stdout
    assert " -k 4 " in done.stdout


@pytest.mark.parametrize("n_samples", [2, 3, 4, 5])
def test_a_handful_of_samples_is_no_reason_for_a_traceback(quick_keepers, tmp_path, n_samples):
    write_csv(tmp_path / "few.csv", np.random.default_rng(0).standard_normal((n_samples, 6)))
    done = quick_keepers("tune", "few.csv", "-k", 2)
    assert done.returncode == 0, done.stderr
    assert ("too few to halve" in done.stdout) == (n_samples < 4)
    assert "nan" not in done.stdout


def test_sparse_tables_and_constant_columns_are_welcome(quick_keepers, tmp_path):
    X = np.where(clustered() > 1, clustered(), 0.0)
    X[:, 12] = 0.0
    sp.save_npz(tmp_path / "sparse.npz", sp.csr_matrix(X))
    done = quick_keepers("tune", "sparse.npz", "--json", "--resamples", 4)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("do not vary") == 1
    result = json.loads(done.stdout)
    assert 12 not in [feature["column"] for feature in result["features"]]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["table.csv", *COLUMNS, "--resamples", "3"], 2, "even"),
        (["table.csv", *COLUMNS, "-k", "0"], 2, "-k"),
        (["table.csv", *COLUMNS, "-k", "99"], 2, "8"),
        (["table.csv", *COLUMNS, "--scale", "up"], 2, "unit-samples"),
        (["table.csv", "--id", "sampel"], 1, "sampel"),
        (["gaps.csv"], 1, "'b' (1)"),
        (["single.csv"], 1, "at least 2 samples"),
        (["constant.csv"], 1, "must vary"),
        (["absent.csv"], 1, "absent.csv"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    quick_keepers, table, tmp_path, arguments, code, said
):
    (tmp_path / "gaps.csv").write_text("a,b,c\n1,2,3\n4,,6\n7,8,1\n")
    (tmp_path / "single.csv").write_text("a,b,c\n1,2,3\n")
    (tmp_path / "constant.csv").write_text("a,b,c\n1,2,3\n1,2,3\n1,2,3\n")
    done = quick_keepers("tune", *arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.posix
def test_an_interruption_ends_the_workers_without_a_traceback(tmp_path):
    write_csv(tmp_path / "wide.csv", clustered(100, 4000))
    with subprocess.Popen(
        [COMMAND, "tune", "wide.csv", "--threads", "2"],
        cwd=tmp_path,
        env={**os.environ, **QUICK},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        time.sleep(4)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to everyone
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert said.strip() == "keepers: Interrupted."
