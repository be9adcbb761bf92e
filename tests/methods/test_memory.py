"""How much memory there is, and work that does not fit into it."""

import numpy as np
import pytest

from keepers import DGUFS, RNE, RSR, UDFS
from keepers.exceptions import DataError, ParameterError
from keepers.methods.parameters import memory_budget, refuse_past_memory


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """A machine with 8 GB."""
    monkeypatch.setattr("keepers.methods.parameters.physical_memory", lambda: 8e9)


def test_the_budget_is_the_users_limit_or_a_quarter_of_the_machine():
    assert memory_budget("500MB").n_bytes == 500 * 2**20
    assert memory_budget(1000).n_bytes == 1000
    assert memory_budget(None).n_bytes == 2e9
    with pytest.raises(ParameterError, match="memory_limit"):
        memory_budget("much")


def test_a_machine_that_does_not_tell_has_a_default_budget(monkeypatch):
    monkeypatch.setattr("keepers.methods.parameters.physical_memory", lambda: None)
    assert memory_budget(None).n_bytes == 4e9
    refuse_past_memory("A method", "anything", 1e30)


def test_work_past_the_memory_is_refused_with_both_numbers_and_a_way_out():
    refuse_past_memory("MCFS", "rows of X'X", 7.9e9)
    with pytest.raises(
        DataError,
        match=r"^MCFS needs about 9\.0 GB for rows of X'X, more than the 8.* SPCAFS",
    ):
        refuse_past_memory("MCFS", "rows of X'X", 9e9)


@pytest.mark.parametrize(
    ("selector", "what"),
    [
        (UDFS(), "4 arrays of 30 x 40 and 2 arrays of 30 x 30"),
        (RSR(), "6 arrays of 30 x 40 and 4 arrays of 30 x 30"),
        (RNE(20), "3 arrays of 30 x 40 and 8 arrays of 40 x 40"),
        (DGUFS(), "4 arrays of 30 x 30"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_rival_is_refused_before_it_takes_the_memory(selector, what, monkeypatch):
    X = np.random.default_rng(0).standard_normal((30, 40))
    monkeypatch.setattr("keepers.methods.parameters.physical_memory", lambda: 1e4)
    with pytest.raises(DataError, match=f"{type(selector).__name__} needs .* GB for {what}, more"):
        selector.fit(X)
