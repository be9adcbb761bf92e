"""Tasks, studies and readings run, resume, and record what goes wrong."""

import os
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from keepers_studies import run, runner
from keepers_studies.plan import FitTask, timed_task
from keepers_studies.runner import run_study
from keepers_studies.specification import as_spec
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


def test_each_repeat_is_a_clustering_of_the_kept_columns_with_its_seed(blobs):
    X, y = blobs
    judgement = judge_columns(X, y, np.array([5, 0]), n_repeats=3, seed=10)
    for repeat, nmi in enumerate(judgement.nmi):
        found = KMeans(3, n_init=1, random_state=10 + repeat).fit_predict(X[:, [0, 5]])
        assert nmi == pytest.approx(normalized_mutual_info_score(y, found, average_method="max"))


def test_a_fit_past_the_limit_ends_as_a_timeout():
    X = np.random.default_rng(0).standard_normal((80, 900))
    task = FitTask("d", "f", "SOGFS", {"n_components": 40}, (5,), 1, 0)
    outcome = outcome_of_task(task, X, np.repeat([0, 1], 40), 0.3)
    assert (outcome.status, outcome.reason) == ("timeout", "ran past the limit of 0.3 s")


def test_fits_made_together_have_the_results_of_each(blobs):
    task = FitTask("d", "together", "MCFS", {"n_clusters": 3}, (2, 4), 3, 0, halves=(2, 4))
    outcome = outcome_of_task(task, *blobs)
    assert outcome.status == "ok", outcome.reason
    for judged, k in zip(outcome.judgements, (2, 4), strict=True):
        kept = MCFS(k, n_clusters=3).fit(blobs[0]).top(k).indices
        assert judged["acc"] == judge_columns(*blobs, kept, n_repeats=3, seed=0).acc
        assert -1.0 <= judged["stability"][0] <= 1.0


def test_growth_times_one_fit_of_the_stated_size():
    outcome = outcome_of_task(timed_task("VarianceScore", {}, 50, 20, 0))
    assert (outcome.status, outcome.judgements) == ("ok", ())
    assert outcome.fit_seconds > 0


def test_a_method_that_takes_no_sparse_table_gets_a_dense_one(blobs):
    X, y = blobs
    task = FitTask("d", "s", "UDFS", {"n_clusters": 3}, (2,), 2, 0)
    dense, sparse = (outcome_of_task(task, table, y) for table in (X, sp.csr_matrix(X)))
    assert sparse.top == dense.top


@pytest.fixture
def content(clusters):
    return {
        "title": "small",
        "ks": [2, 4, 12],
        "repeats": 3,
        "time_limit": 60,
        "data": [{"source": str(clusters), "name": "clusters"}],
        "methods": [
            {"name": "SPCAFS", "grid": {"gamma": [1e-2, 1e2]}, "default": {"gamma": "scale"}},
            {"name": "MCFS", "fixed": {"n_clusters": "classes"}, "default": {}},
            {"name": "RandomScore", "label": "Random", "draws": 4},
            {"name": "AllFeatures", "label": "All features", "default": {}},
        ],
    }


@pytest.fixture
def run_in(content, tmp_path):
    """Run the study, changed a little, in a folder."""

    def run_changed(folder="out", changes=None, **settings):
        return run_study(as_spec({**content, **(changes or {})}), tmp_path / folder, **settings)

    return run_changed


def outcomes_of(study_run, method, role="default"):
    found = [e for e in study_run.entries if (e.method, e.role) == (method, role)]
    return [study_run.outcomes[entry.task.key] for entry in found]


@pytest.mark.slow
def test_a_study_gives_what_its_parts_give_by_hand_and_does_nothing_again(run_in, clusters):
    news = []
    first = run_in(n_jobs=2, on_progress=lambda *of_task: news.append(of_task))
    archive = np.load(clusters)
    top = SPCAFS(gamma="scale").fit(archive["X"]).top(4).indices
    expected = judge_columns(archive["X"], archive["y"], top, n_repeats=3, seed=0)
    (outcome,) = outcomes_of(first, "SPCAFS")
    assert outcome.judgements[1]["acc"] == pytest.approx(list(expected.acc))
    assert max(outcome.judgements[0]["acc"]) == 1.0  # the two columns that hold the clusters
    by_hand = RandomScore(4, random_state=2).fit(archive["X"]).top(4).indices
    assert outcomes_of(first, "Random", "draw")[2].top == tuple(by_hand)
    assert [(done, total) for done, total, _ in news] == [(done, 9) for done in range(10)]
    (facts,) = first.runs
    assert facts["versions"]["numpy"] == np.__version__
    second = run_in(on_progress=lambda *of_task: news.append(of_task))
    assert second.outcomes == first.outcomes
    assert news[10:] == [(9, 9, "")]
    assert len(second.runs) == 1  # no work, no new run


def test_failures_are_results_and_tried_again_only_when_asked(run_in, content):
    wrong = {"name": "SPCAFS", "fixed": {"p": 7.0}}
    few = {"methods": [wrong, content["methods"][1]]}
    found = run_in(changes={**few, "time_limit": 1e-6})
    assert outcomes_of(found, "MCFS")[0].status == "timeout"
    for retry, status in ((False, "timeout"), (True, "ok")):
        found = run_in(changes=few, retry_unsuccessful=retry)
        assert outcomes_of(found, "MCFS")[0].status == status
    (failed,) = outcomes_of(found, "SPCAFS", "grid")
    assert failed.status == "failed"
    assert "(0, 1]; got 7.0" in failed.reason


@pytest.mark.posix
@pytest.mark.slow
def test_a_worker_that_is_killed_takes_no_other_task_with_it(run_in, monkeypatch):
    monkeypatch.setattr(runner, "run_task", die_on_mcfs)
    found = run_in(n_jobs=2)
    (killed,) = [o for o in found.outcomes.values() if o.status == "killed"]
    assert "memory" in killed.reason
    assert sum(o.status == "ok" for o in found.outcomes.values()) == 8


def die_on_mcfs(task, *rest):
    if task.method == "MCFS":
        os.kill(os.getpid(), signal.SIGKILL)
    return run_task(task, *rest)


def test_a_table_without_classes_is_refused(run_in, tmp_path):
    np.savez(tmp_path / "bare.npz", X=np.eye(4))
    with pytest.raises(DataError, match="has no classes"):
        run_in(changes={"data": [{"source": str(tmp_path / "bare.npz")}]})


MEASURED = {
    "ks": [2],
    "shares": [0.25, 0.5],
    "tuned_ks": [2],
    "stability_ks": [2],
    "metrics": [{"name": "forest", "ks": [2], "draws": 1}],
}


@pytest.mark.slow
def test_shares_forest_stability_and_tuning_from_the_default(content, tmp_path):
    results = run({**content, **MEASURED}, tmp_path / "out", report=False)
    default = results.default
    assert default.ks["clusters"] == (2, 3, 6)  # 2, and a quarter and a half of 12
    assert results.tuned.ks["clusters"] == (2,)
    rows = default.scores.set_index(["method", "k"])
    assert 0.9 <= rows.loc[("SPCAFS", 2), "forest_mean"] <= 1.0
    assert -1.0 <= rows.loc[("SPCAFS", 2), "stability_mean"] <= 1.0
    assert np.isnan(rows.loc[("SPCAFS", 6), "forest_mean"])
    random = [e for e in results.run.entries if e.role == "draw"]
    assert [bool(e.task.metrics) for e in random] == [True, False, False, False]
    # A method without a grid is fitted once and stands in both tables.
    assert [e.role for e in results.run.entries if e.method == "MCFS"] == ["default"]
    assert "MCFS" in results.tuned.methods
    changed = {**content, **MEASURED, "tune_from_default": True}
    more = run(changed, tmp_path / "out", report=False)
    tried = more.tuned.scores.set_index(["method", "k"]).settings_tried
    assert tried[("SPCAFS", 2)] == 3
    assert len(more.run.runs) == 1  # nothing further is fitted


@pytest.mark.slow
def test_a_reading_that_changes_nothing_is_not_run_again(content, tmp_path):
    readings = [{"name": "as they are", "scaling": "raw"}, {"name": "grey", "scaling": "0-255"}]
    results = run({**content, "readings": readings}, tmp_path / "out", report=False)
    as_they_are, grey = (results.readings[name].run for name in ("as they are", "grey"))
    assert results.run.outcomes == as_they_are.outcomes
    assert len(grey.outcomes) == 2 * len(as_they_are.outcomes)


def test_of_a_large_table_some_samples_are_drawn_always_the_same(run_in):
    changes = {"max_samples": 20}
    first, second = (run_in(name, changes, run_missing=False) for name in ("a", "b"))
    assert first.tables["clusters"].n_samples == 20
    assert first.tables == second.tables
    assert {first.outcome(entry).status for entry in first.entries} == {"missing"}


def test_a_table_of_logarithms_is_known_by_its_values_before_them(run_in, tmp_path, monkeypatch):
    """Their last digit depends on the CPU, and a run resumes on another machine too."""
    random = np.random.default_rng(0)
    np.savez(tmp_path / "raw.npz", X=random.lognormal(5, 2, (30, 6)), y=np.repeat([0, 1], 15))
    changes = {"data": [{"source": str(tmp_path / "raw.npz"), "transform": "log2"}]}
    exact = run_in("a", changes, run_missing=False)
    logarithm = np.log2
    monkeypatch.setattr(np, "log2", lambda X: logarithm(X) * (1 + 2**-52))
    other = run_in("b", changes, run_missing=False)
    assert [e.task.key for e in exact.entries] == [e.task.key for e in other.entries]
