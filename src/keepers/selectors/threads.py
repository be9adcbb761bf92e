"""Keeping two BLAS thread pools from working against each other."""

from contextlib import AbstractContextManager, nullcontext

from keepers._blas_threads import one_blas_thread

__all__ = ["quiet_threads"]

# Up to this size of matrix a second thread gains less than the pools lose by waiting.
SMALL_MATRIX = 2000


def quiet_threads(size: int) -> AbstractContextManager[object]:
    """One BLAS thread while matrices of ``size`` rows are decomposed again and again.

    NumPy and SciPy each bring their own BLAS, and the idle threads of one keep spinning while the
    other works. Where small calls to both alternate that costs far more than threads can gain:
    UDFS on 2000 x 1000 took 29 s with two threads and 6 s with one.
    """
    return one_blas_thread() if size <= SMALL_MATRIX else nullcontext()
