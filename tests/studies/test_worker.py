"""One task: a fit, k-means on the kept columns, and what goes wrong."""

import os
import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

from keepers.selectors import MCFS
from keepers.studies import worker
from keepers.studies.plan import FitTask, GrowthTask, Outcome
from keepers.studies.repeated_kmeans import repeated_kmeans
from keepers.studies.worker import judge_columns, run_task, save_prepared


@pytest.fixture
def blobs():
    random = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 20)
    X = random.standard_normal((60, 6))
    X[:, 3] += 20 * y
    return X, y


def test_the_column_that_holds_the_classes_is_clustered_perfectly(blobs):
    X, y = blobs
    judgement = judge_columns(X, y, np.array([3]), n_repeats=4, seed=0)
    assert max(judgement.acc) == 1.0
    assert max(judgement.nmi) == pytest.approx(1.0)
    assert len(judgement.acc) == len(judgement.nmi) == 4


def test_each_repeat_is_a_clustering_of_the_kept_columns_with_its_seed(blobs):
    X, y = blobs
    judgement = judge_columns(X, y, np.array([5, 0]), n_repeats=3, seed=10)
    for repeat, nmi in enumerate(judgement.nmi):
        (found,) = repeated_kmeans(X[:, [0, 5]], 3, [10 + repeat])
        expected = normalized_mutual_info_score(y, found, average_method="max")
        assert nmi == pytest.approx(expected)


def test_the_order_in_which_a_method_ranks_columns_does_not_matter(blobs):
    X, y = blobs
    one, other = (judge_columns(X, y, np.array(c), n_repeats=5, seed=0) for c in ([4, 1], [1, 4]))
    assert one.acc == other.acc
    assert one.nmi == other.nmi


def test_sparse_and_dense_tables_are_judged_alike(blobs):
    X, y = blobs
    X = np.where(X > 0.5, X, 0)
    dense = judge_columns(X, y, np.array([1, 3]), n_repeats=2, seed=0)
    sparse = judge_columns(sp.csr_matrix(X), y, np.array([1, 3]), n_repeats=2, seed=0)
    assert dense.acc == pytest.approx(sparse.acc)


def test_a_fit_past_the_limit_ends_as_a_timeout(tmp_path):
    random = np.random.default_rng(0)
    save_prepared(tmp_path, "f", random.standard_normal((80, 900)), np.repeat([0, 1], 40))
    task = FitTask("d", "f", "SOGFS", {"n_components": 40}, (5,), 1, 0)
    began = time.monotonic()
    outcome = run_task(task, tmp_path, 0.5, os.getpid())
    assert outcome.status == "timeout"
    assert "0.5 s" in outcome.reason
    assert outcome.fit_seconds >= 0.5
    assert time.monotonic() - began < 20


def test_fits_made_together_have_the_time_of_as_many_and_the_results_of_each(blobs, tmp_path):
    save_prepared(tmp_path, "together", *blobs)
    assert worker._n_fits(FitTask("d", "f", "MCFS", {}, (2, 4), 1, 0)) == 2
    assert worker._n_fits(FitTask("d", "f", "SPCAFS", {}, (2, 4), 1, 0)) == 1
    task = FitTask("d", "together", "MCFS", {"n_clusters": 3}, (2, 4), 3, 0, halves=(2, 4))
    outcome = run_task(task, tmp_path, 60.0, os.getpid())
    assert outcome.status == "ok"
    for judged, k in zip(outcome.judgements, (2, 4), strict=True):
        kept = MCFS(k, n_clusters=3).fit(blobs[0]).top(k).indices
        expected = judge_columns(*blobs, kept, n_repeats=3, seed=0)
        assert judged["acc"] == expected.acc
        assert -1.0 <= judged["stability"][0] <= 1.0


def test_columns_that_were_judged_before_are_not_clustered_again(blobs, tmp_path, monkeypatch):
    save_prepared(tmp_path, "twice", *blobs)
    tasks = [FitTask("d", "twice", "VarianceScore", {}, (2,), repeats, 0) for repeats in (3, 3, 4)]
    first = run_task(tasks[0], tmp_path, 60.0, os.getpid())
    asked = []
    monkeypatch.setattr(worker, "judge_columns", lambda *_, **how: asked.append(how))
    assert run_task(tasks[1], tmp_path, 60.0, os.getpid()).judgements == first.judgements
    run_task(tasks[2], tmp_path, 60.0, os.getpid())
    assert asked == [{"n_repeats": 4, "seed": 0}]


def test_growth_times_one_fit_of_the_stated_size(tmp_path):
    outcome = run_task(GrowthTask("VarianceScore", {}, 50, 20, 0), tmp_path, 60, os.getpid())
    assert outcome.status == "ok"
    assert 0 < outcome.fit_seconds < 10


def test_warnings_of_a_fit_are_kept(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 12))
    save_prepared(tmp_path, "w", X, np.repeat([0, 1], 15))
    outcome: Outcome = run_task(
        FitTask("d", "w", "SPCAFS", {"max_iter": 1}, (2,), 1, 0), tmp_path, 60, os.getpid()
    )
    assert any(message.startswith("ConvergenceWarning") for message in outcome.warnings)


def test_a_method_that_takes_no_sparse_table_gets_a_dense_one_where_memory_allows(
    blobs, tmp_path, monkeypatch
):
    X, y = blobs
    save_prepared(tmp_path, "dense", X, y)
    save_prepared(tmp_path, "sparse", sp.csr_matrix(X), y)
    dense, sparse = (
        run_task(
            FitTask("d", name, "UDFS", {"n_clusters": 3}, (2,), 2, 0), tmp_path, 60, os.getpid()
        )
        for name in ("dense", "sparse")
    )
    assert sparse.status == "ok"
    assert sparse.top == dense.top
    monkeypatch.setattr(worker, "DENSE_BYTES", 8 * X.size - 1)
    task = FitTask("d", "sparse", "UDFS", {"n_clusters": 3}, (2,), 2, 0)
    refused = run_task(task, tmp_path, 60, os.getpid())
    assert refused.status == "failed"
    assert "UDFS does not accept a sparse matrix" in refused.reason
