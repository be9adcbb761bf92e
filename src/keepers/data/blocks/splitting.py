"""How rows and files are shared among workers: consecutive shares, about equally large."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

__all__ = ["even_ranges", "shares"]


def even_ranges(rows: range, n_parts: int) -> list[range]:
    """Cut consecutive rows into at most ``n_parts`` ranges, none of them empty."""
    n_parts = max(1, min(n_parts, len(rows)))
    cuts = [rows.start + len(rows) * part // n_parts for part in range(n_parts + 1)]
    return [range(start, stop) for start, stop in pairwise(cuts)]


def shares(weights: Sequence[int], n_parts: int) -> list[range]:
    """Cut things in a row, of these weights, into at most ``n_parts`` ranges of positions."""
    n_parts = max(1, min(n_parts, len(weights)))
    ends = np.cumsum(np.asarray(weights, dtype=np.float64))
    middles = ends - np.asarray(weights) / 2
    part_of = np.minimum((middles * n_parts / max(ends[-1], 1)).astype(np.intp), n_parts - 1)
    starts = np.flatnonzero(np.diff(part_of, prepend=-1)).tolist()
    return [range(start, stop) for start, stop in pairwise([*starts, len(weights)])]
