"""A study from Python: readings, shares, metrics, drawn samples, and faults that are named."""

import numpy as np
import pytest

from keepers.exceptions import ParameterError
from keepers.studies import run
from keepers.studies.specification import Reading, StudySpec
from keepers.studies.study_run import run_with_readings

STUDY = {
    "title": "small",
    "ks": [2],
    "shares": [0.25, 0.5],
    "tuned_ks": [2],
    "stability_ks": [2],
    "repeats": 2,
    "metrics": [{"name": "forest", "metric": "forest", "ks": [2], "draws": 1}],
    "methods": [
        {"name": "SPCAFS", "grid": {"gamma": [1e-2, 1e2]}, "default": {}},
        {"name": "LaplacianScore", "default": {}},
        {"name": "RandomScore", "label": "Random", "draws": 3, "repeats": 1},
        {"name": "AllFeatures", "label": "All features", "default": {}},
    ],
}


@pytest.fixture
def content(clusters):
    return {**STUDY, "data": [{"source": str(clusters), "name": "clusters"}]}


def test_shares_metrics_and_stability_are_in_the_results(content, tmp_path):
    results = run(content, tmp_path / "out", report=False)
    default = results.default
    assert default.ks["clusters"] == (2, 3, 6)  # 2, and a quarter and a half of 12
    assert set(results.tuned.ks["clusters"]) == {2}
    score = default.score("clusters", "SPCAFS", 2)
    assert 0.9 <= score.numbers["forest_mean"] <= 1.0  # two columns tell three clusters apart
    assert -1.0 <= score.numbers["stability_mean"] <= 1.0
    assert "forest_mean" not in default.score("clusters", "SPCAFS", 6).numbers
    random = [e for e in results.run.entries if e.role == "draw"]
    assert [bool(e.task.metrics) for e in random] == [True, False, False]
    assert {e.task.repeats for e in random} == {1}
    assert default.score("clusters", "All features", 2).numbers["forest_mean"] > 0.5


def test_a_method_without_a_grid_is_fitted_once_and_stands_in_both_tables(content, tmp_path):
    results = run(content, tmp_path / "out", report=False)
    entries = [e for e in results.run.entries if e.method == "LaplacianScore"]
    assert [e.role for e in entries] == ["default"]
    both = results.default, results.tuned
    default, tuned = (c.at("clusters", "LaplacianScore", 2, "acc") for c in both)
    assert default == tuned  # the same fit


def test_tuning_can_try_the_default_too(content, tmp_path):
    only_worse = {"name": "SPCAFS", "grid": {"gamma": [1e8]}, "default": {}}
    content = {**content, "methods": [only_worse, *content["methods"][1:]]}
    plain = run(content, tmp_path / "out", report=False)
    tried = run({**content, "tune_from_default": True}, tmp_path / "out", report=False)
    grid, default = (c.score("clusters", "SPCAFS", 2) for c in (plain.tuned, plain.default))
    tuned = tried.tuned.score("clusters", "SPCAFS", 2)
    assert (grid.settings_tried, tuned.settings_tried) == (1, 2)
    best = max(grid.numbers["acc_mean"], default.numbers["acc_mean"])
    assert tuned.numbers["acc_mean"] == best
    plans = [{entry.task.key for entry in study.run.entries} for study in (plain, tried)]
    assert plans[0] == plans[1]  # nothing further is fitted


def test_a_reading_that_changes_nothing_is_not_run_again(content, tmp_path):
    readings = [{"name": "as they are", "scaling": "raw"}, {"name": "grey", "scaling": "0-255"}]
    spec = StudySpec.model_validate({**content, "readings": readings})
    fits = []
    results = run_with_readings(
        spec, tmp_path / "out", on_progress=lambda done, total, last: fits.append((done, last))
    )
    n_tasks = len({e.task.key for e in results.run.entries})
    assert sum("as they are: " in last and len(last) > 13 for _, last in fits) == 0
    assert sum("grey: " in last and len(last) > 6 for _, last in fits) == n_tasks
    main, raw = results.default, results.readings["as they are"].default
    assert main.curve("clusters", "SPCAFS", "acc") == raw.curve("clusters", "SPCAFS", "acc")


def test_a_reading_scales_every_table_and_can_reduce_a_grid(content):
    reading = Reading.model_validate(
        {
            "name": "unit",
            "scaling": "unit-samples",
            "repeats": 1,
            "reduced": [
                {"methods": ["SPCAFS"], "grid": {"gamma": [1.0]}, "reason": "to save time"}
            ],
            "sweep_data": {"convergence": []},
        }
    )
    sweep = {"method": "SPCAFS", "data": ["clusters"], "vary": "gamma", "values": [1.0]}
    sweeps = [{"name": "convergence", **sweep}, {"name": "gamma", **sweep}]
    spec = StudySpec.model_validate({**content, "sweeps": sweeps, "readings": [reading]})
    spec = spec.under(reading)
    assert {sweep.name: sweep.data for sweep in spec.sweeps} == {
        "convergence": [],
        "gamma": ["clusters"],
    }
    assert [c.scaling for c in spec.data] == ["unit-samples"]
    assert spec.repeats == 1
    assert spec.methods[0].reduction_for("clusters").grid == {"gamma": [1.0]}
    assert not spec.readings


def test_a_reading_with_fewer_repeats_has_fewer_of_each_draw_in_proportion(content):
    draws = {"name": "RandomScore", "label": "Random", "draws": 3, "repeats": 4}
    reading = {"name": "unit", "scaling": "unit-samples", "repeats": 5}
    spec = StudySpec.model_validate(
        {**content, "repeats": 20, "methods": [draws], "readings": [reading]}
    )
    assert spec.under(spec.readings[0]).methods[0].repeats == 1
    same = spec.readings[0].model_copy(update={"repeats": None})
    assert spec.under(same).methods[0].repeats == 4


def test_a_reading_names_sweeps_and_data_sets_that_are_there(content):
    reading = {"name": "unit", "scaling": "unit-samples", "sweep_data": {"nothing": ["clusters"]}}
    with pytest.raises(ValueError, match="names the sweep 'nothing'"):
        StudySpec.model_validate({**content, "readings": [reading]})


def test_of_a_large_table_some_samples_are_drawn_always_the_same(content, tmp_path):
    spec = {**content, "max_samples": 20}
    first, second = (run(spec, tmp_path / name, report=False) for name in ("a", "b"))
    assert first.run.tables["clusters"].n_samples == 20
    assert first.run.tables == second.run.tables


def test_every_fault_of_a_mapping_is_named(content):
    with pytest.raises(ParameterError) as refusal:
        run({**content, "ks": [0], "metrics": [{"name": "a", "metric": "b"}]}, "nowhere")
    assert "ks.0" in str(refusal.value)
    assert "no metric 'b'" in str(refusal.value)


def test_log_counts_are_rows_of_equal_totals(tmp_path):
    from keepers.data.scaling import transform_values

    counts = np.array([[1.0, 3.0], [10.0, 10.0], [0.0, 0.0]])
    expected = np.log1p(np.array([[3.0, 9.0], [6.0, 6.0], [0.0, 0.0]]))
    np.testing.assert_allclose(transform_values(counts, "log-counts"), expected)
    np.testing.assert_allclose(transform_values(np.array([[4.0, 32.0]]), "log2"), [[4.0, 5.0]])
