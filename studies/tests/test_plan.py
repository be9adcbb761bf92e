"""From a study to tasks."""

import sys
from collections import Counter

import pytest
from keepers_studies.plan import (
    TableFacts,
    plan_tasks,
    resolve_params,
    with_version,
)
from keepers_studies.specification import COMPARISON, StudySpec

FACTS = {"a": TableFacts(50, 30, 4, "fa"), "b": TableFacts(60, 8, 3, "fb")}


def study(**changes) -> StudySpec:
    content = {
        "title": "t",
        "ks": [5, 10, 20],
        "data": [{"source": "a"}, {"source": "b"}],
        "methods": [
            {"name": "SPCAFS", "grid": {"gamma": [1, 10], "p": [0.5, 1.0]}, "default": {}},
            {"name": "MCFS"},
            {"name": "DGUFS"},
            {"name": "RandomScore", "label": "Random", "draws": 3},
            {"name": "AllFeatures", "label": "All"},
        ],
    }
    return StudySpec.model_validate({**content, **changes})


def on(entries, data, method):
    return [entry for entry in entries if (entry.data, entry.method) == (data, method)]


def test_a_grid_is_the_product_of_its_lists_and_the_default_comes_on_top():
    entries = on(plan_tasks(study(), FACTS), "a", "SPCAFS")
    assert Counter(entry.role for entry in entries) == {"grid": 4, "default": 1}
    assert [entry.params for entry in entries][:4] == [
        {"gamma": 1, "p": 0.5},
        {"gamma": 1, "p": 1.0},
        {"gamma": 10, "p": 0.5},
        {"gamma": 10, "p": 1.0},
    ]


def test_one_fit_serves_every_k_unless_the_ranking_depends_on_k():
    entries = plan_tasks(study(), FACTS)
    assert [entry.task.ks for entry in on(entries, "a", "SPCAFS")] == [(5, 10, 20)] * 5
    assert [entry.task.ks for entry in on(entries, "a", "DGUFS")] == [(5,), (10,), (20,)]
    # Each k needs a fit of its own, but one walk makes them all.
    assert [entry.task.ks for entry in on(entries, "a", "MCFS")] == [(5, 10, 20)]


def test_a_slow_method_may_be_run_at_some_k_only():
    slow = {"name": "DGUFS", "grid": {"beta": [0.1, 0.5]}, "default": {}, "ks": [10, 20]}
    entries = plan_tasks(study(methods=[slow], tuned_ks=[5, 20]), FACTS)
    of = {
        role: [e.task.ks for e in on(entries, "a", "DGUFS") if e.role == role]
        for role in ("default", "grid")
    }
    assert of == {"default": [(10,), (20,)], "grid": [(20,), (20,)]}
    # A table that has none of them is not left out.
    assert {entry.task.ks for entry in on(entries, "b", "DGUFS")} == {(5,)}


def test_ks_stay_below_the_number_of_features_and_all_features_is_its_own_row():
    entries = plan_tasks(study(), FACTS)
    assert on(entries, "b", "SPCAFS")[0].task.ks == (5,)
    assert [entry.task.ks for entry in on(entries, "b", "All")] == [(8,)]


def test_random_rankings_are_drawn_with_one_seed_each():
    entries = on(plan_tasks(study(seed=7), FACTS), "a", "Random")
    assert [entry.task.params for entry in entries] == [{"random_state": s} for s in (7, 8, 9)]
    assert {entry.role for entry in entries} == {"draw"}


def test_a_reduction_replaces_the_grid_or_skips_the_data_set():
    reduced = [
        {"data": ["a"], "reason": "slow", "grid": {"gamma": [3]}},
        {"data": ["b"], "reason": "slower", "skip": True},
    ]
    method = {"name": "SPCAFS", "grid": {"gamma": [1, 10]}, "default": {}, "reduced": reduced}
    entries = plan_tasks(study(methods=[method]), FACTS)
    assert [(entry.data, entry.role, entry.params) for entry in entries] == [
        ("a", "grid", {"gamma": 3}),
        ("a", "default", {}),
    ]


def test_a_sweep_shares_its_tasks_with_the_comparison():
    sweep = {"name": "s", "method": "SPCAFS", "data": ["a"], "vary": "gamma", "values": [1, 99]}
    spec = study(
        methods=[{"name": "SPCAFS", "fixed": {"p": 1.0}, "grid": {"gamma": [1, 10]}}],
        sweeps=[{**sweep, "fixed": {"p": 1.0}}],
    )
    entries = plan_tasks(spec, FACTS)
    keys = {s: {e.task.key for e in entries if e.section == s} for s in (COMPARISON, "s")}
    assert len(keys["s"] & keys[COMPARISON]) == 1


def test_other_numbers_make_another_task():
    before = plan_tasks(study(), FACTS)[0].task
    after = plan_tasks(study(), {**FACTS, "a": TableFacts(50, 30, 4, "other")})[0].task
    assert before.key != after.key


def test_growth_is_measured_along_both_sizes_once_each():
    growth = {"samples": [50, 100], "at_features": 20, "features": [20, 40], "at_samples": 50}
    entries = plan_tasks(study(growth=growth, methods=[{"name": "MCFS"}]), {})
    assert [entry.data for entry in entries] == ["50 x 20", "50 x 40", "100 x 20"]


def test_classes_stand_for_their_number_and_never_for_less_than_one():
    params = {"n_clusters": "classes", "n_components": "classes - 1", "gamma": "scale", "p": 1.0}
    assert resolve_params(params, 4) == {
        "n_clusters": 4,
        "n_components": 3,
        "gamma": "scale",
        "p": 1.0,
    }
    assert resolve_params({"n_components": "classes - 5"}, 3) == {"n_components": 1}


CODE = "from keepers import VarianceScore\nclass Mine(VarianceScore):\n    pass\n"


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Write a module that can be imported; it is forgotten after the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    with_version.cache_clear()

    def write(code, name="a_method_of_mine"):
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / f"{name}.py").write_text(code)
        return f"{name}:Mine"

    yield write
    with_version.cache_clear()


def test_a_changed_file_is_another_method_so_that_old_results_are_not_taken_for_its_own(modules):
    first = with_version(modules(CODE))
    with_version.cache_clear()
    again = with_version(modules(CODE))
    with_version.cache_clear()
    assert again == first
    assert with_version(modules(CODE + "    # changed\n")) != first
