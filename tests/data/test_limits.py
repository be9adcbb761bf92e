"""Sizes are judged before memory is asked for."""

import numpy as np
import pytest

from keepers.data import limits
from keepers.data.limits import SizeLimit, as_n_bytes, largest_inexact, refuse_hollow
from keepers.exceptions import DataError, ParameterError


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (500, 500),
        ("500", 500),
        ("2K", 2048),
        ("1.5M", 1572864),
        ("4GB", 4 * 2**30),
        ("1 tib", 2**40),
    ],
)
def test_sizes_are_numbers_of_bytes_with_a_unit(size, expected):
    assert as_n_bytes(size, "memory") == expected


@pytest.mark.parametrize("size", [0, -1, True, "0", "4X", "", "G", float("nan"), None])
def test_what_is_no_size_is_refused_by_its_name(size):
    with pytest.raises(ParameterError, match="memory takes a size like 500M or 4G"):
        as_n_bytes(size, "memory")


def test_a_limit_is_never_more_than_the_memory_of_the_machine(monkeypatch):
    monkeypatch.setattr(limits, "physical_memory", lambda: 1000)
    assert SizeLimit.of(None) == SizeLimit(1000, by_machine=True)
    assert SizeLimit.of(999) == SizeLimit(999)
    with pytest.raises(DataError, match=r"more than the 1\.0 kB of memory of this machine"):
        SizeLimit.of(None).refuse_past(1001, "The table")


def test_shapes_are_held_against_the_limit_without_overflow():
    limit = SizeLimit(8_000)
    limit.refuse_shape((10, 100), 8, "The table")
    for shape in ((11, 100), (2**62, 2**62)):
        with pytest.raises(DataError, match="raise the limit"):
            limit.refuse_shape(shape, 8, "The table")
    with pytest.raises(DataError, match="negative length"):
        limit.refuse_shape((-1, 100), 8, "The table")


def test_rows_without_entries_are_believed_only_in_proportion():
    refuse_hollow(1_000_000, 0, "it")
    with pytest.raises(DataError, match="samples as rows"):
        refuse_hollow(1_000_201, 2, "it")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([2**53]), None),
        (np.array([2**53 + 1]), 2**53 + 1),
        (np.array([-(2**63)]), 2**63),
        (np.array([2**64 - 1], dtype=np.uint64), 2**64 - 1),
        (np.array([2.0**60]), None),
        (np.array([], dtype=int), None),
    ],
)
def test_integers_that_float64_rounds_are_found(values, expected):
    assert largest_inexact(values) == expected
