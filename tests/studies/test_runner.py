"""Studies run, resume, and record what goes wrong."""

import os
import signal

import numpy as np
import pytest

from keepers import SPCAFS, RandomScore
from keepers.exceptions import DataError
from keepers.studies.plan import FitTask
from keepers.studies.runner import run_study
from keepers.studies.worker import judge_columns, run_task


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
    second = run_study(
        small_study, tmp_path / "out", n_jobs=2, on_progress=lambda *news: told.append(news)
    )
    assert second.outcomes == first.outcomes
    assert told == [(9, 9, "")]
    assert len(second.runs) == 1  # no work, no new run


def test_what_is_missing_can_be_left_so(small_study, tmp_path):
    told = []
    run = run_study(
        small_study,
        tmp_path / "out",
        run_missing=False,
        on_progress=lambda *news: told.append(news),
    )
    assert run.outcomes == {}
    assert {run.outcome(entry).status for entry in run.entries} == {"missing"}
    assert told == [(0, 9, "")]


def test_progress_counts_every_task_and_names_the_last(small_study, tmp_path):
    told = []
    run_study(small_study, tmp_path / "out", n_jobs=2, on_progress=lambda *news: told.append(news))
    assert [(done, total) for done, total, _ in told] == [(done, 9) for done in range(10)]
    assert "on clusters" in told[-1][2]


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


@pytest.mark.posix
@pytest.mark.slow
def test_a_worker_that_is_killed_takes_no_other_task_with_it(small_study, tmp_path, monkeypatch):
    """One task kills its process each time; all others still come to an end."""
    from keepers.studies import runner

    monkeypatch.setattr(runner, "_run_task", die_on_mcfs)
    run = run_study(small_study, tmp_path / "out", n_jobs=2)
    killed = [o for o in run.outcomes.values() if o.status == "killed"]
    assert len(killed) == 1
    assert "killed" in killed[0].reason
    assert sum(o.status == "ok" for o in run.outcomes.values()) == 8


def die_on_mcfs(task, prepared, time_limit, runner):
    if isinstance(task, FitTask) and task.method == "MCFS":
        os.kill(os.getpid(), signal.SIGKILL)
    return task, run_task(task, prepared, time_limit, runner)


def test_a_table_without_classes_is_refused(small_study, tmp_path):
    np.savez(tmp_path / "bare.npz", X=np.eye(4))
    choice = small_study.data[0].model_copy(update={"source": str(tmp_path / "bare.npz")})
    with pytest.raises(DataError, match="has no classes"):
        run_study(small_study.model_copy(update={"data": [choice]}), tmp_path / "out")
