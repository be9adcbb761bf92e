"""The numbers of a leaderboard, on made-up studies whose scores are known beforehand."""

from typing import Any

import pytest

from keepers.studies.leaderboard import Leaderboard, board_rows, leaderboards, set_rows, told
from keepers.studies.results import StudyResults
from keepers.studies.specification import MethodChoice
from studies.made_up_study import study

DATA = [
    {"source": "a", "kind": "genes"},
    {"source": "b", "kind": "genes"},
    {"source": "c", "kind": "images"},
    {"source": "flat", "kind": "images"},
]
SIZES = dict.fromkeys(("a", "b", "c", "flat"), (50, 100, 3))
METHODS: list[dict[str, Any]] = [
    {"name": "SPCAFS", "label": "Good", "grid": {"gamma": [1.0, 2.0]}, "default": {}},
    {"name": "MCFS", "label": "Fails", "fixed": {"n_clusters": "classes"}, "default": {}},
    {"name": "LaplacianScore", "label": "Bad", "default": {}},
    {"name": "RandomScore", "label": "Random", "draws": 2},
    {"name": "AllFeatures", "label": "All", "default": {}},
]
CONTENT = {"ks": [10, 20], "data": DATA, "methods": METHODS}
# ACC at both k. Random has 0.5 everywhere; on "flat" nothing is ahead of it.
ACC = {
    "Good": {"a": 0.9, "b": 0.7, "c": 0.6, "flat": 0.5},
    "Fails": {"a": 0.7, "b": None, "c": 0.7, "flat": 0.5},
    "Bad": {"a": 0.4, "b": 0.4, "c": 0.5, "flat": 0.3},
    "Random": dict.fromkeys("abc", 0.5) | {"flat": 0.5},
    "All": {"a": 0.5, "b": 0.5, "c": 0.5, "flat": 0.4},
}


def judge(entry: Any, k: int) -> tuple[float, float] | None:
    acc = ACC[entry.method][entry.data]
    if acc is None:
        return None
    # The second grid point is the better one.
    better = 0.05 if entry.role == "grid" and entry.params.get("gamma") == 2.0 else 0.0
    return acc + better, acc / 2


@pytest.fixture(scope="module")
def boards() -> tuple[Leaderboard, ...]:
    return leaderboards(StudyResults(study(CONTENT, judge, sizes=SIZES)))


@pytest.fixture(scope="module")
def default(boards: tuple[Leaderboard, ...]) -> Leaderboard:
    return boards[0]


def row(board: Leaderboard, method: str, kind: str = "all") -> Any:
    return next(found for found in board.rows(kind) if found.method == method)


def test_random_columns_are_at_0_and_the_best_method_of_each_set_at_1(default: Leaderboard) -> None:
    for data in default.with_scale:
        scaled = [default.cells[data, method].scaled for method in default.comparison.methods]
        assert max(s for s in scaled if s is not None) == 1.0  # a number over itself
        assert default.cells[data, "Random"].scaled == 0.0  # no computation: nothing minus nothing


def test_the_scaled_score_is_the_gain_over_that_of_the_best(default: Leaderboard) -> None:
    assert default.cells["a", "Fails"].scaled == pytest.approx(0.2 / 0.4)
    assert default.cells["c", "Good"].scaled == pytest.approx(0.1 / 0.2)
    assert default.cells["a", "Bad"].scaled == pytest.approx(-0.1 / 0.4)
    assert row(default, "Good").scaled == pytest.approx((1 + 1 + 0.5) / 3)


def test_a_set_without_result_counts_as_0(default: Leaderboard) -> None:
    found = row(default, "Fails")
    assert found.n_sets == 3
    assert found.scaled == pytest.approx((0.5 + 0 + 1) / 3)
    assert default.cells["b", "Fails"].reason == "failed: DataError: made to fail"
    assert found.above_random["acc"] == 2


def test_sets_on_which_nothing_is_ahead_have_no_scale(default: Leaderboard) -> None:
    assert default.without_scale == ("flat",)
    assert default.with_scale == ("a", "b", "c")
    assert all(default.cells["flat", m].scaled is None for m in default.comparison.methods)


def test_the_worst_set_is_the_one_that_loses_most_even_without_scale(default: Leaderboard) -> None:
    data, gain = row(default, "Bad").worst
    assert (data, round(gain, 6)) == ("flat", -0.2)
    data, gain = row(default, "Good").worst
    assert (data, round(gain, 6)) == ("flat", 0.0)


def test_rows_are_ordered_by_scaled_score(default: Leaderboard) -> None:
    methods = [found.method for found in default.rows()]
    assert methods == ["Good", "Fails", "Random", "All", "Bad"]


def test_a_kind_holds_its_own_data_sets_alone(default: Leaderboard) -> None:
    assert list(default.kinds) == ["all", "genes", "images"]
    assert row(default, "Good", "genes").scaled == pytest.approx(1.0)
    assert row(default, "Good", "images").scaled == pytest.approx(0.5)
    assert [found.method for found in default.rows("images")][:2] == ["Fails", "Good"]
    assert row(default, "Good", "images").means["acc"] == pytest.approx((0.6 + 0.5) / 2)


def test_average_ranks_share_equal_places_and_take_no_result_for_random(
    default: Leaderboard,
) -> None:
    # a: Good 1, Fails 2, All and Random 3.5, Bad 5; b: Good 1, three at 3, Bad 5;
    # c: Fails 1, Good 2, three at 4; flat: three at 2, All 4, Bad 5.
    ranks = default.ranks().average_ranks
    assert ranks["Good"] == pytest.approx((1 + 1 + 2 + 2) / 4)
    assert ranks["Fails"] == pytest.approx((2 + 3 + 1 + 2) / 4)
    assert ranks["Bad"] == pytest.approx((5 + 5 + 4 + 5) / 4)


def test_the_tuned_board_has_the_best_grid_points_and_the_time_of_every_method(
    boards: tuple[Leaderboard, ...],
) -> None:
    tuned = boards[1]
    assert tuned.cells["a", "Good"].gain == pytest.approx(0.45)
    assert tuned.cells["a", "Bad"].gain == pytest.approx(-0.1)  # no grid: as it is
    assert all(row(tuned, method).seconds == pytest.approx(0.25) for method in ACC)


def test_a_study_without_grids_has_one_board() -> None:
    methods = [{k: v for k, v in method.items() if k != "grid"} for method in METHODS]
    run = study({**CONTENT, "methods": methods}, judge, sizes=SIZES)
    assert [board.tuning for board in leaderboards(StudyResults(run))] == ["default"]


def test_what_a_method_is_told_is_said() -> None:
    plain = MethodChoice(name="SPCAFS", default={})
    counted = MethodChoice(name="MCFS", fixed={"n_clusters": "classes - 1"}, default={})
    tuned = MethodChoice(name="SPCAFS", grid={"gamma": [1.0]}, default={})
    assert told(plain, "default") == ""
    assert told(counted, "default") == "the number of classes"
    assert told(tuned, "default") == ""
    assert told(tuned, "tuned") == "the classes, to tune it"


def test_data_sets_that_have_not_run_count_nowhere() -> None:
    run = study(CONTENT, judge, sizes=SIZES, done=lambda entry: entry.data in "ab")
    board = leaderboards(StudyResults(run))[0]
    assert board.judged() == ("a", "b")
    assert board.without_scale == ()
    assert row(board, "Good").scaled == pytest.approx(1.0)
    assert board.ranks().data == ("a", "b")


def test_without_random_columns_there_is_no_score() -> None:
    content = {**CONTENT, "methods": METHODS[:3]}
    board = leaderboards(StudyResults(study(content, judge, sizes=SIZES)))[0]
    assert board.random == ""
    assert all(found.scaled is None and found.worst is None for found in board.rows())


def test_both_tables_have_a_row_for_everything(boards: tuple[Leaderboard, ...]) -> None:
    rows = board_rows(boards)
    assert len(rows) == 2 * 3 * 5  # boards, kinds, methods
    first = rows[0]
    assert (first["tuning"], first["kind"], first["place"]) == ("default", "all", 1)
    assert (first["method"], first["sets"], first["sets_of_kind"]) == ("Good", 4, 4)
    assert first["above_random_acc"] == 3
    assert first["scaled"] == pytest.approx(2.5 / 3, abs=1e-6)
    cells = set_rows(boards)
    assert len(cells) == 2 * 4 * 5
    failed = next(c for c in cells if c["data"] == "b" and c["method"] == "Fails")
    assert failed["gain"] is None
    assert failed["reason"].startswith("failed")


def test_a_loss_counts_at_most_as_much_as_the_best_gain_and_a_tiny_gain_makes_no_scale() -> None:
    acc = {"Good": {"a": 0.52, "b": 0.505}, "Bad": {"a": 0.1, "b": 0.1}}

    def of(entry: Any, k: int) -> tuple[float, float]:
        return acc.get(entry.method, {}).get(entry.data, 0.5), 0.5

    content = {**CONTENT, "data": DATA[:2]}
    board = leaderboards(StudyResults(study(content, of, sizes=SIZES)))[0]
    assert board.cells["a", "Bad"].scaled == -1.0  # a bound, not computed
    assert board.with_scale == ("a",)
    assert board.without_scale == ("b",)
