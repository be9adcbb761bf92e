"""Tasks, studies and readings run, resume, and record what goes wrong."""

import os
import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp
from keepers_studies import run, runner, worker
from keepers_studies.plan import FitTask, timed_task
from keepers_studies.runner import run_study
from keepers_studies.specification import StudySpec
from keepers_studies.worker import judge_columns, run_task
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

from keepers import MCFS, SPCAFS, RandomScore
from keepers.exceptions import DataError


@pytest.fixture
def blobs():
    random = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 20)
    X = random.standard_normal((60, 6))
    X[:, 3] += 20 * y
    return X, y


def outcome_of_task(task, X=None, y=None, limit=60.0):
    return run_task(task, X, y, limit, os.getpid())[1]


def test_the_column_that_holds_the_classes_is_clustered_perfectly(blobs):
    judgement = judge_columns(*blobs, np.array([3]), n_repeats=4, seed=0)
    assert max(judgement.acc) == 1.0
    assert len(judgement.acc) == len(judgement.nmi) == 4


def test_each_repeat_is_a_clustering_of_the_kept_columns_with_its_seed(blobs):
    X, y = blobs
    judgement = judge_columns(X, y, np.array([5, 0]), n_repeats=3, seed=10)
    for repeat, nmi in enumerate(judgement.nmi):
        found = KMeans(3, n_init=1, random_state=10 + repeat).fit_predict(X[:, [0, 5]])
        assert nmi == pytest.approx(normalized_mutual_info_score(y, found, average_method="max"))


def test_sparse_and_dense_tables_are_judged_alike_in_any_order_of_columns(blobs):
    X, y = blobs
    X = np.where(X > 0.5, X, 0)
    dense = judge_columns(X, y, np.array([3, 1]), n_repeats=2, seed=0)
    sparse = judge_columns(sp.csr_matrix(X), y, np.array([1, 3]), n_repeats=2, seed=0)
    assert dense.acc == sparse.acc


def test_a_fit_past_the_limit_ends_as_a_timeout():
    X = np.random.default_rng(0).standard_normal((80, 900))
    task = FitTask("d", "f", "SOGFS", {"n_components": 40}, (5,), 1, 0)
    began = time.monotonic()
    outcome = outcome_of_task(task, X, np.repeat([0, 1], 40), 0.3)
    assert (outcome.status, outcome.reason) == ("timeout", "ran past the limit of 0.3 s")
    assert time.monotonic() - began < 20


def test_fits_made_together_have_the_results_of_each(blobs):
    task = FitTask("d", "together", "MCFS", {"n_clusters": 3}, (2, 4), 3, 0, halves=(2, 4))
    outcome = outcome_of_task(task, *blobs)
    assert outcome.status == "ok", outcome.reason
    for judged, k in zip(outcome.judgements, (2, 4), strict=True):
        kept = MCFS(k, n_clusters=3).fit(blobs[0]).top(k).indices
        assert judged["acc"] == judge_columns(*blobs, kept, n_repeats=3, seed=0).acc
        assert -1.0 <= judged["stability"][0] <= 1.0


def test_columns_that_were_judged_before_are_not_clustered_again(blobs, monkeypatch):
    tasks = [FitTask("d", "twice", "VarianceScore", {}, (2,), repeats, 0) for repeats in (3, 3, 4)]
    first = outcome_of_task(tasks[0], *blobs)
    asked = []

    def judge(*_, **how):
        asked.append(how)
        return worker.Judgement((), (), 0.0)

    monkeypatch.setattr(worker, "judge_columns", judge)
    assert outcome_of_task(tasks[1], *blobs).judgements == first.judgements
    outcome_of_task(tasks[2], *blobs)
    assert asked == [{"n_repeats": 4, "seed": 0}]


def test_growth_times_one_fit_of_the_stated_size():
    outcome = outcome_of_task(timed_task("VarianceScore", {}, 50, 20, 0))
    assert outcome.status == "ok"
    assert 0 < outcome.fit_seconds < 10


def test_a_method_that_takes_no_sparse_table_gets_a_dense_one_where_memory_allows(
    blobs, monkeypatch
):
    X, y = blobs
    task = FitTask("d", "s", "UDFS", {"n_clusters": 3}, (2,), 2, 0)
    dense, sparse = (outcome_of_task(task, table, y) for table in (X, sp.csr_matrix(X)))
    assert sparse.top == dense.top
    monkeypatch.setattr(worker, "DENSE_BYTES", 8 * X.size - 1)
    refused = outcome_of_task(task, sp.csr_matrix(X), y)
    assert "does not accept a sparse matrix" in refused.reason


def outcomes_of(study_run, method, role="default"):
    found = [e for e in study_run.entries if (e.method, e.role) == (method, role)]
    return [study_run.outcomes[entry.task.key] for entry in found]


@pytest.mark.slow
def test_a_study_gives_what_its_parts_give_by_hand_and_does_nothing_again(
    small_study, clusters, tmp_path
):
    told = []
    first = run_study(
        small_study, tmp_path / "out", n_jobs=2, on_progress=lambda *news: told.append(news)
    )
    archive = np.load(clusters)
    top = SPCAFS(n_components=2, gamma="scale").fit(archive["X"]).top(4).indices
    expected = judge_columns(archive["X"], archive["y"], top, n_repeats=3, seed=0)
    (outcome,) = outcomes_of(first, "SPCAFS")
    assert outcome.judgements[1]["acc"] == pytest.approx(list(expected.acc))
    assert max(outcome.judgements[0]["acc"]) == 1.0  # the two columns that hold the clusters
    by_hand = RandomScore(4, random_state=2).fit(archive["X"]).top(4).indices
    assert outcomes_of(first, "Random", "draw")[2].top == tuple(by_hand)
    assert {outcome.status for outcome in first.outcomes.values()} == {"ok"}
    assert [(done, total) for done, total, _ in told] == [(done, 9) for done in range(10)]
    assert "on clusters" in told[-1][2]
    (facts,) = first.runs
    assert facts["versions"]["numpy"] == np.__version__
    assert {"cpu", "cores", "python", "commit", "started", "seed"} <= facts.keys()
    told.clear()
    second = run_study(small_study, tmp_path / "out", on_progress=lambda *news: told.append(news))
    assert second.outcomes == first.outcomes
    assert told == [(9, 9, "")]
    assert len(second.runs) == 1  # no work, no new run


def test_missing_fits_can_be_left_out(small_study, tmp_path):
    found = run_study(small_study, tmp_path / "out", run_missing=False)
    assert {found.outcome(entry).status for entry in found.entries} == {"missing"}


def test_failures_are_results_and_tried_again_only_when_asked(small_study, tmp_path):
    fixed = small_study.methods[0].model_copy(update={"fixed": {"p": 7.0}, "default": None})
    broken = small_study.model_copy(update={"methods": [fixed]})
    failed = outcomes_of(run_study(broken, tmp_path / "out", n_jobs=2), "SPCAFS", "grid")
    assert [outcome.status for outcome in failed] == ["failed", "failed"]
    assert "(0, 1]; got 7.0" in failed[0].reason
    few = small_study.model_copy(update={"methods": small_study.methods[1:2]})
    slow = few.model_copy(update={"time_limit": 1e-6})
    assert outcomes_of(run_study(slow, tmp_path / "out"), "MCFS")[0].status == "timeout"
    assert outcomes_of(run_study(few, tmp_path / "out"), "MCFS")[0].status == "timeout"
    mended = run_study(few, tmp_path / "out", retry_unsuccessful=True)
    assert outcomes_of(mended, "MCFS")[0].status == "ok"


@pytest.mark.posix
@pytest.mark.slow
def test_a_worker_that_is_killed_takes_no_other_task_with_it(small_study, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "run_task", die_on_mcfs)
    found = run_study(small_study, tmp_path / "out", n_jobs=2)
    (killed,) = [o for o in found.outcomes.values() if o.status == "killed"]
    assert "memory" in killed.reason
    assert sum(o.status == "ok" for o in found.outcomes.values()) == 8


def die_on_mcfs(task, *rest):
    if task.method == "MCFS":
        os.kill(os.getpid(), signal.SIGKILL)
    return run_task(task, *rest)


def test_a_table_without_classes_is_refused(small_study, tmp_path):
    np.savez(tmp_path / "bare.npz", X=np.eye(4))
    choice = small_study.data[0].model_copy(update={"source": str(tmp_path / "bare.npz")})
    with pytest.raises(DataError, match="has no classes"):
        run_study(small_study.model_copy(update={"data": [choice]}), tmp_path / "out")


@pytest.fixture
def content(clusters):
    return {
        "title": "small",
        "ks": [2],
        "shares": [0.25, 0.5],
        "tuned_ks": [2],
        "stability_ks": [2],
        "repeats": 2,
        "metrics": [{"name": "forest", "metric": "forest", "ks": [2], "draws": 1}],
        "data": [{"source": str(clusters), "name": "clusters"}],
        "methods": [
            {"name": "SPCAFS", "grid": {"gamma": [1e-2, 1e2]}, "default": {}},
            {"name": "LaplacianScore", "default": {}},
            {"name": "RandomScore", "label": "Random", "draws": 3, "repeats": 1},
            {"name": "AllFeatures", "label": "All features", "default": {}},
        ],
    }


@pytest.mark.slow
def test_shares_forest_stability_and_tuning_from_the_default(content, tmp_path):
    results = run(content, tmp_path / "out", report=False)
    default = results.default
    assert default.ks["clusters"] == (2, 3, 6)  # 2, and a quarter and a half of 12
    assert results.tuned.ks["clusters"] == (2,)
    rows = default.scores.set_index(["method", "k"])
    assert 0.9 <= rows.loc[("SPCAFS", 2), "forest_mean"] <= 1.0
    assert -1.0 <= rows.loc[("SPCAFS", 2), "stability_mean"] <= 1.0
    assert np.isnan(rows.loc[("SPCAFS", 6), "forest_mean"])
    random = [e for e in results.run.entries if e.role == "draw"]
    assert [bool(e.task.metrics) for e in random] == [True, False, False]
    # A method without a grid is fitted once and stands in both tables.
    assert [e.role for e in results.run.entries if e.method == "LaplacianScore"] == ["default"]
    assert "LaplacianScore" in results.tuned.methods
    more = run({**content, "tune_from_default": True}, tmp_path / "out", report=False)
    tried = more.tuned.scores.set_index(["method", "k"]).settings_tried
    assert tried[("SPCAFS", 2)] == 3
    assert len(more.run.runs) == 1  # nothing further is fitted


@pytest.mark.slow
def test_a_reading_that_changes_nothing_is_not_run_again(content, tmp_path):
    readings = [{"name": "as they are", "scaling": "raw"}, {"name": "grey", "scaling": "0-255"}]
    fits = []
    results = run(
        {**content, "readings": readings},
        tmp_path / "out",
        on_progress=lambda done, total, last: fits.append(last),
        report=False,
    )
    n_tasks = len({e.task.key for e in results.run.entries})
    assert sum("as they are: " in last and len(last) > 13 for last in fits) == 0
    assert sum("grey: " in last and len(last) > 6 for last in fits) == n_tasks
    raw = results.readings["as they are"].default
    assert raw.scores.equals(results.default.scores)


def test_of_a_large_table_some_samples_are_drawn_always_the_same(content, tmp_path):
    spec = StudySpec.model_validate({**content, "max_samples": 20})
    first, second = (run_study(spec, tmp_path / n, run_missing=False) for n in ("a", "b"))
    assert first.tables["clusters"].n_samples == 20
    assert first.tables == second.tables


def test_a_table_of_logarithms_is_known_by_its_values_before_them(tmp_path, monkeypatch):
    """Their last digit depends on the CPU, and a run resumes on another machine too."""
    random = np.random.default_rng(0)
    np.savez(tmp_path / "raw.npz", X=random.lognormal(5, 2, (30, 6)), y=np.repeat([0, 1], 15))
    given = {"source": str(tmp_path / "raw.npz"), "transform": "log2"}
    method = {"name": "VarianceScore", "default": {}}
    spec = StudySpec(title="t", ks=[2], data=[given], methods=[method], repeats=1)
    exact = run_study(spec, tmp_path / "a", n_jobs=1)
    logarithm = np.log2
    monkeypatch.setattr(np, "log2", lambda X: logarithm(X) * (1 + 2**-52))
    other = run_study(spec, tmp_path / "b", n_jobs=1)
    assert [e.task.key for e in exact.entries] == [e.task.key for e in other.entries]
