"""Blocks shared out among threads: the same sums, in a fixed order; and shares for workers."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from keepers._protocols import RowBlock
from keepers.data.blocks.local import add_blocks, even_ranges, shares, usable_threads


class Order:
    """Remembers which blocks it was given, and in which thread."""

    n_bytes = 8.0

    def __init__(self):
        self.seen = []
        self.threads = set()

    def add(self, block):
        if block.origin == "bad":
            raise ValueError("block refused")
        self.seen.append(block.origin)
        self.threads.add(threading.get_ident())

    def merge(self, other):
        self.seen += other.seen


def blocks(*origins):
    return iter([RowBlock(np.zeros((1, 1)), origin) for origin in origins])


@pytest.mark.parametrize("n_threads", [1, 2, 3, 5])
def test_the_ith_block_goes_to_the_same_sum_every_time(n_threads):
    for _ in range(20):
        sums = [Order() for _ in range(n_threads)]
        add_blocks(blocks(*map(str, range(11))), sums)
        for first, one in enumerate(sums):
            assert one.seen == [str(i) for i in range(first, 11, n_threads)]


def test_several_threads_work():
    sums = [Order(), Order()]
    add_blocks(blocks(*map(str, range(10))), sums)
    assert sums[0].threads.isdisjoint(sums[1].threads)


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_an_error_in_any_thread_arrives(n_threads):
    for place in range(5):
        origins = ["fine"] * 5
        origins[place] = "bad"
        with pytest.raises(ValueError, match="block refused"):
            add_blocks(blocks(*origins), [Order() for _ in range(n_threads)])


def test_an_error_of_the_reader_arrives():
    def reader():
        yield RowBlock(np.zeros((1, 1)), "first")
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        add_blocks(reader(), [Order(), Order()])


def test_large_sums_and_sums_in_order_have_one_thread():
    assert usable_threads(float("inf")) == 1
    assert usable_threads(1e9) == 1


def test_two_fits_at_once_leave_the_number_of_blas_threads_as_it_was():
    """The first to begin ends first: the second must not restore what the first had set."""
    events = {name: threading.Event() for name in ("first in", "second in", "first out")}

    def waiting(mine, awaited):
        def reader():
            events[mine].set()
            events[awaited].wait(10)
            yield from blocks("a", "b", "c")

        return reader()

    def first():
        add_blocks(waiting("first in", "second in"), [Order(), Order()])
        events["first out"].set()

    def second():
        events["first in"].wait(10)
        add_blocks(waiting("second in", "first out"), [Order(), Order()])

    before = limits()
    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert limits() == before


def limits():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


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
