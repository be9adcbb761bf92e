"""Ctrl-C reaches every process of a terminal; only the one that the user started should answer."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_kept_from_children() -> Iterator[None]:
    """Hide Ctrl-C from threads and processes started inside: this process ends them.

    They inherit that the signal is blocked; it interrupts this process at the end of the block.
    """
    if sys.platform == "win32":  # Ctrl-C reaches all processes of a console there
        yield
        return
    from multiprocessing import resource_tracker

    # Python starts this process with the first of all, and unblocks the signal in doing so.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
