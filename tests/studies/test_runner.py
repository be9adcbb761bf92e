"""Studies run, resume, and record what goes wrong."""

import os
import signal
import time

import numpy as np
import pytest

from keepers import SPCAFS, RandomScore
from keepers.exceptions import DataError
from keepers.studies.protocol import judge_columns
from keepers.studies.runner import run_study
from keepers.studies.tasks import Growth, Outcome, Task
from keepers.studies.worker import do, save_prepared


def outcome_of(run, method, role="default"):
    return [run.outcomes[e.task.key] for e in run.entries if (e.method, e.role) == (method, role)]


def test_a_study_gives_what_its_parts_give_by_hand(small_study, clusters, tmp_path):
    run = run_study(small_study, tmp_path / "out", n_jobs=2)
    archive = np.load(clusters)
    top = SPCAFS(n_components=2, gamma="scale").fit(archive["X"]).top(4).indices
    expected = judge_columns(archive["X"], archive["y"], top, n_repeats=3, seed=0)
    (outcome,) = outcome_of(run, "SPCAFS")
    assert outcome.judgements[1]["acc"] == pytest.approx(list(expected.acc))
    assert outcome.judgements[0]["n_features"] == 2
    assert max(outcome.judgements[0]["acc"]) == 1.0  # the two columns that hold the clusters
    draws = outcome_of(run, "Random", "draw")
    by_hand = RandomScore(4, random_state=2).fit(archive["X"]).top(4).indices
    assert draws[2].top == tuple(by_hand)
    assert {outcome.status for outcome in run.outcomes.values()} == {"ok"}


def test_a_finished_study_does_nothing_again(small_study, tmp_path):
    first = run_study(small_study, tmp_path / "out", n_jobs=2)
    told = []
    second = run_study(small_study, tmp_path / "out", n_jobs=2, on_progress=told.append)
    assert second.outcomes == first.outcomes
    assert [(progress.done, progress.total) for progress in told] == [(10, 10)]
    assert len(second.runs) == 1  # no work, no new run


def test_progress_counts_every_task_and_says_what_is_left(small_study, tmp_path):
    told = []
    run_study(small_study, tmp_path / "out", n_jobs=2, on_progress=told.append)
    assert [progress.done for progress in told] == list(range(11))
    assert told[-1].seconds_left == 0
    assert "on clusters" in told[-1].last


def test_the_environment_is_stored_with_the_results(small_study, tmp_path):
    (facts,) = run_study(small_study, tmp_path / "out", n_jobs=2).runs
    assert facts["seed"] == 0
    assert facts["versions"]["numpy"] == np.__version__
    assert {"cpu", "cores", "python", "commit", "started"} <= facts.keys()


def test_a_method_that_fails_is_an_outcome_with_its_reason(small_study, tmp_path):
    broken = small_study.model_copy(
        update={
            "methods": [
                small_study.methods[0].model_copy(update={"fixed": {"p": 7.0}, "default": None}),
                small_study.methods[3],
            ]
        }
    )
    run = run_study(broken, tmp_path / "out", n_jobs=2)
    failed = outcome_of(run, "SPCAFS", "grid")
    assert [outcome.status for outcome in failed] == ["failed", "failed"]
    assert "p must lie in (0, 1]" in failed[0].reason
    assert outcome_of(run, "All features")[0].status == "ok"


def test_failures_are_tried_again_only_when_asked(small_study, tmp_path):
    broken = small_study.model_copy(update={"time_limit": 1e-4})
    stopped = run_study(broken, tmp_path / "out", n_jobs=2)
    assert {outcome.status for outcome in stopped.outcomes.values()} == {"timeout"}
    again = run_study(small_study, tmp_path / "out", n_jobs=2)
    assert again.outcomes == stopped.outcomes
    mended = run_study(small_study, tmp_path / "out", n_jobs=2, retry_unsuccessful=True)
    assert {outcome.status for outcome in mended.outcomes.values()} == {"ok"}


def test_a_fit_past_the_limit_ends_as_a_timeout(tmp_path):
    random = np.random.default_rng(0)
    save_prepared(tmp_path, "f", random.standard_normal((80, 900)), np.repeat([0, 1], 40))
    task = Task("d", "f", "SOGFS", {"n_components": 40}, (5,), 1, 0)
    began = time.monotonic()
    outcome = do(task, tmp_path, 0.5, os.getpid())
    assert outcome.status == "timeout"
    assert "0.5 s" in outcome.reason
    assert outcome.fit_seconds >= 0.5
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_a_worker_that_is_killed_takes_no_other_task_with_it(small_study, tmp_path, monkeypatch):
    """One task kills its process each time; all others still come to an end."""
    from keepers.studies import runner

    monkeypatch.setattr(runner, "_do_and_tell", die_on_mcfs_with_two_features)
    run = run_study(small_study, tmp_path / "out", n_jobs=2)
    killed = [o for o in run.outcomes.values() if o.status == "killed"]
    assert len(killed) == 1
    assert "killed" in killed[0].reason
    assert sum(o.status == "ok" for o in run.outcomes.values()) == 9


def die_on_mcfs_with_two_features(task, prepared, time_limit, runner):
    if isinstance(task, Task) and task.method == "MCFS" and task.ks == (2,):
        os.kill(os.getpid(), signal.SIGKILL)
    return task, do(task, prepared, time_limit, runner)


def test_growth_times_one_fit_of_the_stated_size(tmp_path):
    outcome = do(Growth("VarianceScore", {}, 50, 20, 0), tmp_path, 60, os.getpid())
    assert outcome.status == "ok"
    assert 0 < outcome.fit_seconds < 10


def test_warnings_of_a_fit_are_kept(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 12))
    save_prepared(tmp_path, "w", X, np.repeat([0, 1], 15))
    outcome: Outcome = do(
        Task("d", "w", "SPCAFS", {"max_iter": 1}, (2,), 1, 0), tmp_path, 60, os.getpid()
    )
    assert any(message.startswith("ConvergenceWarning") for message in outcome.warnings)


def test_a_table_without_classes_is_refused(small_study, tmp_path):
    np.savez(tmp_path / "bare.npz", X=np.eye(4))
    choice = small_study.data[0].model_copy(update={"source": str(tmp_path / "bare.npz")})
    with pytest.raises(DataError, match="has no classes"):
        run_study(small_study.model_copy(update={"data": [choice]}), tmp_path / "out")
