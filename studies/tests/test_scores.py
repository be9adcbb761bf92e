"""Tuned and default scores, times, growth and ranks, from outcomes known beforehand."""

import numpy as np
import pandas as pd
import pytest
from keepers_studies.ranks import rank_test
from keepers_studies.scores import StudyResults
from made_up_study import study
from scipy import stats

SIZES = {"one": (50, 100, 3), "two": (60, 25, 2)}
SKIPPED = {"data": ["two"], "skip": True, "reason": "too slow"}
METHODS = [
    {"name": "SPCAFS", "grid": {"gamma": [1.0, 2.0, 3.0]}, "default": {"gamma": "scale"}},
    {"name": "RNE", "grid": {"alpha": [1.0, 2.0]}, "reduced": [SKIPPED]},
    {"name": "RandomScore", "label": "Random", "draws": 3},
    {"name": "AllFeatures", "label": "All features", "default": {}},
]
SWEEP = {"name": "power", "method": "SPCAFS", "data": ["one"], "vary": "p", "values": [0.25, 0.5]}
CONTENT = {
    "ks": [10, 20, 30],
    "data": [{"source": "one"}, {"source": "two", "scaling": "unit-samples"}],
    "methods": METHODS,
    "sweeps": [{**SWEEP, "grid": {"gamma": [1.0, 2.0]}}],
}


def judge(entry, k):
    """SPCAFS peaks at gamma = 2, where NMI is worst; RNE fails for alpha = 1."""
    if entry.method == "RNE" and entry.params["alpha"] == 1.0:
        return None
    if entry.role == "draw":
        return 0.3 + 0.1 * entry.params["random_state"], 0.2
    if entry.method == "All features":
        return 0.9, 0.8
    gamma = entry.params.get("gamma", 0)
    acc = {1.0: 0.5, 2.0: 0.6, 3.0: 0.55}.get(gamma, 0.4) + k / 1000
    if entry.section == "power":
        acc += 0.1 * entry.params["p"]
    return acc, {2.0: 0.3}.get(gamma, 0.7)


def results_of(judge, **made):
    return StudyResults(study(CONTENT, judge, sizes=SIZES, **made))


@pytest.fixture(scope="module")
def results():
    return results_of(judge)


def score(comparison, data, method, k):
    return comparison.scores.set_index(["data", "method", "k"]).loc[(data, method, k)]


def test_a_failure_is_a_row_with_its_reason_but_no_numbers(results):
    bad = results.fits[results.fits.status == "failed"]
    assert set(bad.method) == {"RNE"}
    assert bad.acc_mean.isna().all()
    (group,) = results.failures.to_dict("records")
    assert (group["settings"], group["ks"]) == (3, "10, 20, 30")
    failing = results_of(lambda entry, k: None if entry.method == "RNE" else (0.5, 0.5))
    row = score(failing.tuned, "one", "RNE", 10)
    assert (row.status, row.reason) == ("failed", "DataError: made to fail")


def test_tuned_is_the_grid_point_with_the_best_acc_and_default_never_looks_at_the_grid(results):
    best = score(results.tuned, "one", "SPCAFS", 20)
    assert best.params == {"gamma": 2.0}
    assert (best.acc_mean, best.nmi_mean) == pytest.approx((0.62, 0.3))
    assert best.settings_tried == 3
    row = score(results.default, "one", "SPCAFS", 20)
    assert row.params == {"gamma": "scale"}
    assert row.acc_mean == pytest.approx(0.42)
    assert "RNE" not in results.default.methods


def test_random_is_the_mean_over_draws_with_the_spread_of_all_repeats(results):
    values = np.array([0.29, 0.31, 0.39, 0.41, 0.49, 0.51])
    for comparison in (results.tuned, results.default):
        row = score(comparison, "one", "Random", 10)
        assert row.acc_mean == pytest.approx(values.mean())
        assert row.acc_std == pytest.approx(values.std())
        assert row.repeats == 6


def test_all_features_stand_for_every_k(results):
    curve = results.tuned.curve("one", "All features", "nmi")
    assert dict(curve) == {10: 0.8, 20: 0.8, 30: 0.8}
    assert results.tuned.means("acc").loc["All features", "one"] == pytest.approx(0.9)


def test_means_need_every_k_only_if_asked_and_gains_use_the_k_that_both_have(results):
    assert results.tuned.means("acc").loc["SPCAFS", "one"] == pytest.approx(0.62)
    assert np.isnan(results.tuned.means("acc").loc["RNE", "two"])
    tuned = results_of(lambda e, k: None if e.task.ks == (20,) else (k / 100, 0.5)).tuned
    assert np.isnan(tuned.means("acc", complete=True).loc["RNE", "one"])
    assert tuned.means("acc").loc["RNE", "one"] == pytest.approx(0.2)
    assert tuned.gains("RNE", "acc").loc["SPCAFS", "one"] == pytest.approx(0.0)
    assert np.isnan(tuned.gains("RNE", "acc").loc["SPCAFS", "two"])


def test_a_sweep_is_best_over_its_grid_at_each_k(results):
    curves = results.sweep("power", "one", "acc")
    assert dict(curves.loc[0.5]) == pytest.approx({10: 0.66, 20: 0.67, 30: 0.68})
    assert curves.loc[0.25, 30] == pytest.approx(0.655)


def test_seconds_are_summed_over_the_grid(results):
    rows = results.timing.set_index(["data", "method", "role"])
    own = rows.loc[("one", "SPCAFS", "grid")]
    assert (own.fits, own.fit_seconds, own.kmeans_seconds) == (3, 0.75, 2.25)
    assert own.share_of_selection == pytest.approx(0.25)
    assert tuple(rows.loc[("one", "RNE", "grid"), ["fits", "unsuccessful"]]) == (6, 3)


def grown(seconds, samples):
    features = [10, 60, 100, 200, 400]
    growth = {"samples": samples, "at_features": 50, "features": features, "at_samples": 60}
    made = study({**CONTENT, "growth": growth}, judge, sizes=SIZES, grown=seconds)
    return StudyResults(made).growth.set_index("method")


def test_growth_exponents_are_those_of_a_power_law():
    def seconds(task):
        if task.method == "RandomScore":
            return 0.001
        if task.method == "RNE" and task.n_features >= 100:
            return None
        return 1e-4 * task.n_samples**1.5 * task.n_features**0.5

    rows = grown(seconds, [100, 200, 400, 800])
    assert rows.loc["SPCAFS", "exponent_in_samples"] == pytest.approx(1.5)
    assert rows.loc["SPCAFS", "exponent_in_features"] == pytest.approx(0.5)
    assert np.isnan(rows.loc["Random", "exponent_in_samples"])
    assert np.isnan(rows.loc["RNE", "exponent_in_features"])
    assert "100: timeout" in rows.loc["RNE", "remark_features"]


def test_the_time_that_does_not_grow_is_not_part_of_an_exponent():
    rows = grown(lambda t: 0.3 + 1e-3 * t.n_samples, [100, 300, 6400, 12800, 25600])
    assert rows.loc["SPCAFS", "exponent_in_samples"] == pytest.approx(1.0, abs=0.05)
    assert rows.loc["SPCAFS", "remark_samples"].startswith("2 near the time")


def table(values):
    """Rows are methods, columns data sets."""
    return pd.DataFrame(values).rename(index="m{}".format, columns="d{}".format)


@pytest.mark.parametrize("digits", [8, 1])
def test_the_statistic_is_scipys_with_and_without_ties(digits):
    values = np.random.default_rng(3).random((5, 9)).round(digits)
    found, expected = rank_test(table(values)), stats.friedmanchisquare(*values)
    assert (found.chi_squared, found.p_value) == pytest.approx(tuple(expected))


def test_the_example_of_demsar_2006_comes_out():
    """Table 6 there: AUC of four variants of C4.5 on 14 data sets, and their average ranks.

    The last but one set has .975 twice in print, yet different ranks: a fourth digit parts them.
    """
    values = np.array(
        [
            [.763, .599, .954, .628, .882, .936, .661, .583, .775, 1.000, .940, .619, .972, .957],
            [.768, .591, .971, .661, .888, .931, .668, .583, .838, 1.000, .962, .666, .981, .978],
            [.771, .590, .968, .654, .886, .916, .609, .563, .866, 1.000, .965, .614, .9751, .946],
            [.798, .569, .967, .657, .898, .931, .685, .625, .875, 1.000, .962, .669, .975, .970],
        ]
    )  # fmt: skip
    found = rank_test(table(values))
    assert found.average_ranks == pytest.approx(
        {"m0": 3.143, "m1": 2.000, "m2": 2.893, "m3": 1.964}, abs=5e-4
    )
    assert found.critical_difference == pytest.approx(1.25, abs=5e-3)


def test_groups_are_the_longest_runs_within_the_critical_difference():
    found = rank_test(table(np.repeat(np.linspace(0.9, 0.1, 5)[:, None], 12, axis=1)))
    assert found.groups == (("m0", "m1"), ("m1", "m2"), ("m2", "m3"), ("m3", "m4"))


def test_methods_with_a_gap_are_left_out_and_empty_data_sets_are_not_counted():
    values = table(np.random.default_rng(1).random((4, 5)))
    values.loc["m2", "d3"] = np.nan
    values["empty"] = np.nan
    found = rank_test(values)
    assert found.left_out == {"m2": ["d3"]}
    assert set(found.average_ranks) == {"m0", "m1", "m3"}
    assert found.n_data == 5


def test_too_few_data_sets_or_methods_that_never_differ_are_not_tested():
    found = rank_test(table([[0.9, 0.8], [0.5, 0.4], [0.1, 0.3]]))
    assert found.average_ranks == {"m0": 1.0, "m1": 2.0, "m2": 3.0}
    assert "at least 3" in found.not_tested
    assert "equal" in rank_test(table(np.full((3, 4), 0.5))).not_tested
    assert rank_test(pd.DataFrame()).not_tested
