"""The number of BLAS threads is what it was, however fits in several threads overlap."""

import threading

import pytest

from keepers import _blas_threads
from keepers._blas_threads import one_blas_thread, one_blas_thread_if_small


class Process:
    """A number of threads for all, which whoever likes may set: as in OpenBLAS."""

    def __init__(self, n_threads):
        self.n_threads = n_threads

    def limit(self, *, limits, user_api):
        return Limits(self, limits)

    def info(self):
        return [{"user_api": "blas", "num_threads": self.n_threads}]


class Limits:
    """As threadpoolctl did up to 3.7: sets at once, and restores what it had found."""

    def __init__(self, process, n_threads):
        self.process, self.before = process, process.n_threads
        process.n_threads = n_threads

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.n_threads = self.before


@pytest.fixture
def process(monkeypatch):
    process = Process(8)
    monkeypatch.setattr(_blas_threads, "_pools", lambda: process)
    return process


def both(first, second):
    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


@pytest.mark.parametrize("fails", [False, True], ids=["both end well", "the first one raises"])
@pytest.mark.parametrize("leaves_first", ["first", "second"])
def test_two_overlapping_fits_leave_the_limit_as_it_was(process, leaves_first, fails):
    first_in, second_in, one_out = (threading.Event() for _ in range(3))
    seen = []

    def first():
        try:
            with one_blas_thread():
                seen.append(process.n_threads)
                first_in.set()
                (second_in if leaves_first == "first" else one_out).wait(10)
                if fails:
                    raise ValueError("the fit failed")
        except ValueError:
            pass
        one_out.set()

    def second():
        first_in.wait(10)
        with one_blas_thread():
            seen.append(process.n_threads)
            second_in.set()
            if leaves_first == "first":
                one_out.wait(10)
        one_out.set()

    both(first, second)
    assert seen == [1, 1]
    assert process.n_threads == 8


@pytest.mark.parametrize(("size", "n_threads"), [(2000, 1), (2001, 8)])
def test_only_small_matrices_are_left_to_one_thread(process, size, n_threads):
    with one_blas_thread_if_small(size):
        assert process.n_threads == n_threads
    assert process.n_threads == 8
