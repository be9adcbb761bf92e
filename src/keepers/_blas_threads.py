"""One BLAS thread inside a block; the former number of threads is restored after it.

The number of BLAS threads belongs to the process. If two fits in two threads each set and restored
it, the limit of the first could stay. So one thread at a time sets and restores it, and threads
that come in between change nothing.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache

from threadpoolctl import ThreadpoolController  # comes with scikit-learn

_lock = threading.Lock()
_limited = threading.Event()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """One BLAS thread inside the block."""
    with ExitStack() as mine:
        with _lock:
            if not _limited.is_set():
                _limited.set()
                mine.callback(_limited.clear)
                mine.enter_context(_pools().limit(limits=1, user_api="blas"))
        try:
            yield
        finally:
            with _lock:
                mine.close()


def one_blas_thread_if_small(size: int) -> AbstractContextManager[object]:
    """One BLAS thread while matrices of ``size`` rows are decomposed again and again.

    NumPy and SciPy each bring their own BLAS, and the idle threads of one keep spinning while the
    other works. Where small calls to both alternate that costs far more than threads can gain:
    UDFS on 2000 x 1000 took 29 s with two threads and 6 s with one.
    """
    return one_blas_thread() if size <= 2000 else nullcontext()


def one_blas_thread_for(flops: float) -> AbstractContextManager[object]:
    """One BLAS thread while products of ``flops`` operations are made again and again.

    Below the limit threads gain little, and lose much where other programs use the cores: with both
    of two cores busy, a fit of 72 x 3571 took 1900 ms with two threads and 95 ms with one.
    """
    return one_blas_thread() if flops <= 3e8 else nullcontext()


@cache
def _pools() -> ThreadpoolController:
    """The thread pools of this process, those of NumPy and SciPy among them.

    Finding them takes 5 to 12 ms, as long as a PCA of a small table, so it is done once. Pools of
    libraries that are loaded later are not limited.
    """
    return ThreadpoolController()
