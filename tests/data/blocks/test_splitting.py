"""Shares for workers: consecutive, complete, about equal."""

import pytest

from keepers.data.blocks.splitting import even_ranges, shares


@pytest.mark.parametrize("n_parts", [1, 2, 3, 7, 10, 50])
def test_ranges_cover_every_row_once_and_differ_by_one_at_most(n_parts):
    ranges = even_ranges(range(5, 15), n_parts)
    assert [row for rows in ranges for row in rows] == list(range(5, 15))
    assert len(ranges) == min(n_parts, 10)
    lengths = [len(rows) for rows in ranges]
    assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("n_parts", [1, 2, 3, 8, 50])
@pytest.mark.parametrize("weights", [[1] * 8, [100, 1, 1, 1], [1, 1, 1, 100], [7], [0, 0, 3]])
def test_shares_cover_every_position_once_and_none_is_empty(weights, n_parts):
    found = shares(weights, n_parts)
    assert [at for share in found for at in share] == list(range(len(weights)))
    assert all(len(share) > 0 for share in found)
    assert len(found) <= max(1, n_parts)


def test_equal_weights_are_shared_equally():
    assert [len(share) for share in shares([5] * 12, 4)] == [3, 3, 3, 3]
