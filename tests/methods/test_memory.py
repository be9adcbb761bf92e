"""How much memory there is, and work that does not fit into it."""

import pytest

from keepers.exceptions import DataError, ParameterError
from keepers.methods.parameters import (
    memory_budget,
    refuse_past_memory,
    refuse_quadratic_form,
    refuse_weighted_ridge,
)


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


def test_a_quadratic_form_is_measured_by_its_cheaper_storage():
    with pytest.raises(DataError, match="two 30000 x 30000 matrices"):
        refuse_quadratic_form("UDFS", 40_000, 30_000)
    with pytest.raises(DataError, match="four 10000 x 30000 tables"):
        refuse_quadratic_form("UDFS", 10_000, 30_000)
    refuse_quadratic_form("UDFS", 1000, 30_000)


def test_ridges_are_measured_by_their_smaller_matrix_and_two_tables():
    with pytest.raises(DataError, match=r"needs about 33\.6 GB for two 30000 x 30000 matrices"):
        refuse_weighted_ridge("NDFS", 40_000, 30_000)
    refuse_weighted_ridge("NDFS", 1000, 300_000)
