"""What the base class does for every method: the order of work, the ranking, what is kept."""

import numpy as np
import pytest

from keepers import UDFS, VarianceScore
from keepers.exceptions import ConvergenceWarning, DataWarning, ParameterError
from keepers.methods.base import RankingSelector

X = np.random.default_rng(0).standard_normal((30, 6)) * np.arange(6, 0, -1)


class Recorded(RankingSelector):
    """A method that notes in which order it is asked."""

    def __init__(self, n_features_to_select=None, asked=None, fails=False):
        self.n_features_to_select = n_features_to_select
        self.asked = asked
        self.fails = fails

    def check_parameters(self):
        super().check_parameters()
        self.asked.append("parameters")

    def score_features(self, table):
        self.asked.append(f"{self.n_features_to_select_} of {table.n_features}")
        self.half_done_ = True
        if self.fails:
            raise KeyboardInterrupt
        return np.arange(table.n_features, dtype=float)


def test_the_number_of_features_is_known_to_the_method_and_refused_before_it_works():
    asked = []
    assert Recorded(0.5, asked).fit(X).top().indices.tolist() == [5, 4, 3]
    assert asked == ["parameters", "3 of 6"]
    with pytest.raises(ParameterError, match="at most the number of features, 6; got 7"):
        Recorded(7, asked).fit(X)
    assert asked == ["parameters", "3 of 6", "parameters"]


def test_nothing_fitted_stays_behind_an_interrupted_fit():
    selector = Recorded(2, []).fit(X)
    selector.fails = True
    with pytest.raises(KeyboardInterrupt):
        selector.fit(X)
    assert not [name for name in vars(selector) if name.endswith("_")]


@pytest.mark.parametrize(
    ("selector", "category"),
    [(UDFS(2, n_neighbors=50), DataWarning), (UDFS(2, max_iter=1), ConvergenceWarning)],
)
def test_a_warning_points_to_the_line_that_called_fit(selector, category):
    with pytest.warns(category) as caught:
        selector.fit(X)
    assert {warning.filename for warning in caught} == {__file__}


def test_a_data_frame_comes_back_as_a_data_frame_with_its_rows():
    pd = pytest.importorskip("pandas")
    values = np.random.default_rng(0).standard_normal((20, 3)) * [1.0, 3.0, 2.0]
    frame = pd.DataFrame(values, columns=["a", "b", "c"], index=[f"s{at}" for at in range(20)])
    kept = VarianceScore(2).fit(frame).transform(frame)
    pd.testing.assert_frame_equal(kept, frame[["b", "c"]])


def test_only_a_fit_that_did_not_converge_is_in_doubt():
    with pytest.warns(ConvergenceWarning):
        stopped = UDFS(2, max_iter=1).fit(X)
    assert "had not converged" in stopped.fit_notes().doubts[0]
    assert VarianceScore(2).fit(X).fit_notes().doubts == ()
