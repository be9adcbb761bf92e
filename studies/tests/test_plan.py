"""From a study to tasks."""

import sys

from keepers_studies.plan import TableFacts, plan_tasks, resolve_params, with_version
from keepers_studies.specification import COMPARISON, StudySpec

FACTS = {"a": TableFacts(50, 30, 4, "fa"), "b": TableFacts(60, 8, 3, "fb")}
METHODS = [
    {"name": "SPCAFS", "grid": {"gamma": [1, 10], "p": [0.5, 1.0]}, "default": {}},
    {"name": "MCFS"},
    {"name": "DGUFS"},
    {"name": "RandomScore", "label": "Random", "draws": 3},
    {"name": "AllFeatures", "label": "All"},
]


def plan(**changes):
    data = [{"source": "a"}, {"source": "b"}]
    content = {"title": "t", "ks": [5, 10, 20], "data": data, "methods": METHODS}
    return plan_tasks(StudySpec.model_validate({**content, **changes}), FACTS)


def on(entries, data, method):
    return [entry for entry in entries if (entry.data, entry.method) == (data, method)]


def test_a_grid_is_the_product_of_its_lists_and_the_default_comes_on_top():
    entries = on(plan(), "a", "SPCAFS")
    assert [(entry.role, entry.params) for entry in entries] == [
        ("grid", {"gamma": 1, "p": 0.5}),
        ("grid", {"gamma": 1, "p": 1.0}),
        ("grid", {"gamma": 10, "p": 0.5}),
        ("grid", {"gamma": 10, "p": 1.0}),
        ("default", {}),
    ]


def test_one_fit_serves_every_k_unless_the_ranking_depends_on_k():
    entries = plan()
    assert [entry.task.ks for entry in on(entries, "a", "SPCAFS")] == [(5, 10, 20)] * 5
    assert [entry.task.ks for entry in on(entries, "a", "DGUFS")] == [(5,), (10,), (20,)]
    # Each k needs a fit of its own, but one call makes them all.
    assert [entry.task.ks for entry in on(entries, "a", "MCFS")] == [(5, 10, 20)]


def test_a_slow_method_may_be_run_at_some_k_only():
    slow = {"name": "DGUFS", "grid": {"beta": [0.1, 0.5]}, "default": {}, "ks": [10, 20]}
    entries = plan(methods=[slow], tuned_ks=[5, 20])
    asked = [(entry.role, entry.task.ks) for entry in on(entries, "a", "DGUFS")]
    assert asked == [("grid", (20,)), ("grid", (20,)), ("default", (10,)), ("default", (20,))]
    # A table that has none of them is not left out.
    assert {entry.task.ks for entry in on(entries, "b", "DGUFS")} == {(5,)}


def test_ks_stay_below_the_number_of_features_and_all_features_is_its_own_row():
    entries = plan()
    assert on(entries, "b", "SPCAFS")[0].task.ks == (5,)
    assert [entry.task.ks for entry in on(entries, "b", "All")] == [(8,)]


def test_random_rankings_are_drawn_with_one_seed_each():
    entries = on(plan(seed=7), "a", "Random")
    assert [entry.task.params for entry in entries] == [{"random_state": s} for s in (7, 8, 9)]
    assert {entry.role for entry in entries} == {"draw"}


def test_a_reduction_replaces_the_grid_or_skips_the_data_set():
    reduced = [
        {"data": ["a"], "reason": "slow", "grid": {"gamma": [3]}},
        {"data": ["b"], "reason": "slower", "skip": True},
    ]
    method = {"name": "SPCAFS", "grid": {"gamma": [1, 10]}, "default": {}, "reduced": reduced}
    assert [(entry.data, entry.role, entry.params) for entry in plan(methods=[method])] == [
        ("a", "grid", {"gamma": 3}),
        ("a", "default", {}),
    ]


def test_a_sweep_shares_its_tasks_with_the_comparison():
    sweep = {"name": "s", "method": "SPCAFS", "data": ["a"], "vary": "gamma", "values": [1, 99]}
    method = {"name": "SPCAFS", "grid": {"gamma": [1, 10]}}
    entries = plan(methods=[method], sweeps=[sweep])
    keys = {s: {e.task.key for e in entries if e.section == s} for s in (COMPARISON, "s")}
    assert len(keys["s"] & keys[COMPARISON]) == 1


def test_growth_is_measured_along_both_sizes_once_each():
    growth = {"samples": [50, 100], "at_features": 20, "features": [20, 40], "at_samples": 50}
    entries = [e for e in plan(growth=growth, methods=[METHODS[1]]) if e.role == "growth"]
    assert [entry.data for entry in entries] == ["50 x 20", "50 x 40", "100 x 20"]


def test_classes_stand_for_their_number_and_never_for_less_than_one():
    params = {"n_clusters": "classes", "n_components": "classes - 1", "gamma": "scale"}
    assert resolve_params(params, 4) == {"n_clusters": 4, "n_components": 3, "gamma": "scale"}
    assert resolve_params({"n_components": "classes - 5"}, 3) == {"n_components": 1}


CODE = "from keepers import VarianceScore\nclass Mine(VarianceScore):\n    pass\n"


def test_a_changed_file_is_another_method_with_results_of_its_own(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    versions = []
    for code in (CODE, CODE, CODE + "    # changed\n"):
        with_version.cache_clear()
        monkeypatch.delitem(sys.modules, "a_method_of_mine", raising=False)
        (tmp_path / "a_method_of_mine.py").write_text(code)
        versions.append(with_version("a_method_of_mine:Mine"))
    with_version.cache_clear()
    assert versions[0] == versions[1] != versions[2]
