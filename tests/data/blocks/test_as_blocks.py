"""Whatever holds a table is seen as blocks, a block table of the user's own included."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from keepers import SPCAFS
from keepers.exceptions import DataError, ParameterError

SCALING_PAGE = Path(__file__).parents[3] / "docs" / "scaling.md"


@pytest.fixture
def Readings():
    """The class that the page "How it scales" shows."""
    code = re.search(r"```python\n(import numpy.*?class .*?)```", SCALING_PAGE.read_text(), re.S)
    found = {}
    exec(code.group(1), found)
    return found["Readings"]


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6)) @ rng.standard_normal((6, 6))
    return [X[:100], X[100:130], X[130:]]


@pytest.mark.parametrize("route", ["scatter", "memory", "stream"])
def test_an_object_that_follows_the_protocol_is_accepted(Readings, parts, route, monkeypatch):
    monkeypatch.setattr("keepers.selectors.block_tables.choose_route", lambda *_: route)
    found = SPCAFS(3, n_components=2).fit_blocks(Readings(parts))
    assert found.route_ == route
    expected = SPCAFS(3, n_components=2).fit(np.vstack(parts))
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-7)
    assert list(found.feature_names_in_) == [f"sensor {at}" for at in range(6)]


def test_what_it_hands_over_may_be_whole_numbers_or_sparse(Readings, parts):
    whole = [np.round(10 * part).astype(int) for part in parts]
    expected = SPCAFS(3, n_components=2).fit(np.vstack(whole).astype(float))
    for given in (whole, [sp.coo_array(part) for part in whole]):
        found = SPCAFS(3, n_components=2).fit_blocks(Readings(given))
        np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda parts: [parts[0], parts[1][:, :4]], "same 6 columns; part 2 has 4"),
        (lambda parts: [parts[0], parts[1][:0]], "part 2 holds none"),
        (lambda parts: [parts[0], parts[1] * np.nan], "part 2 holds NaN"),
    ],
)
def test_a_block_it_should_not_hand_over_is_named(Readings, parts, change, message):
    with pytest.raises(DataError, match=message):
        SPCAFS(3, n_components=2).fit_blocks(Readings(change(parts)))


def test_an_object_that_lacks_a_part_of_the_protocol_is_told_which(parts):
    class Half:
        n_features = 6

        def total(self, begin, columns=None):
            return begin()

    with pytest.raises(ParameterError, match=r"Half given lacks name, n_samples"):
        SPCAFS(3).fit_blocks(Half())


def test_a_total_that_is_no_sum_is_refused(Readings, parts):
    table = Readings(parts)
    table.total = lambda begin, columns=None: None
    with pytest.raises(ParameterError, match="must return a sum made by begin"):
        SPCAFS(3).fit_blocks(table)


def test_rows_other_than_declared_are_refused(Readings, parts):
    table = Readings(parts)
    table.n_samples = 299
    with pytest.raises(DataError, match="declares 299 and gave 300"):
        SPCAFS(3, n_components=2).fit_blocks(table)
