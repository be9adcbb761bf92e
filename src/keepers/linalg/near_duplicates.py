"""Columns that say the same: pairs with a correlation near 1 or -1, without comparing all pairs.

Up to 2,000 columns are all compared. Of more, those are compared whose signs along 16 random
directions agree, in at least one of 12 draws of directions: two columns with |r| >= 0.99 are missed
once in a thousand times, and unrelated ones rarely meet.
"""

from collections.abc import Iterator

import numpy as np

from keepers._protocols import FloatArray, IndexArray

COMPARED_ALL = 2000
_BITS, _BANDS = 16, 12
_AT_ONCE = 512


def similar_columns(X: FloatArray, least: float) -> dict[int, tuple[int, float]]:
    """For columns that resemble an earlier one: that one, and their correlation.

    Parameters
    ----------
    X : array of shape (n_samples, n_columns)
        Finite values. Columns that do not vary resemble none.
    least : float
        The absolute correlation from which on columns resemble each other.

    Returns
    -------
    dict
        Column -> (the first column that it resembles and that itself resembles none, r).
    """
    centred = X - X.mean(axis=0)
    norms = np.sqrt(np.einsum("ij,ij->j", centred, centred))
    varies = np.flatnonzero(norms > 1e-10 * np.maximum(np.abs(X).max(axis=0), 1e-300))
    Z = centred[:, varies] / norms[varies]
    found: dict[int, tuple[int, float]] = {}
    pairs = _all_pairs(Z, least) if Z.shape[1] <= COMPARED_ALL else _likely_pairs(Z, least)
    for first, second, r in sorted(pairs):
        if first not in found and second not in found:
            found[second] = (first, r)
    return {int(varies[column]): (int(varies[other]), r) for column, (other, r) in found.items()}


def _all_pairs(Z: FloatArray, least: float) -> Iterator[tuple[int, int, float]]:
    d = Z.shape[1]
    for start in range(0, d, _AT_ONCE):
        r = Z[:, start : start + _AT_ONCE].T @ Z
        for i, j in zip(*np.nonzero(np.abs(r) >= least), strict=True):
            if start + i < j:
                yield int(start + i), int(j), float(r[i, j])


def _likely_pairs(Z: FloatArray, least: float) -> Iterator[tuple[int, int, float]]:
    """Pairs that share a code; of columns with one code each is compared with the first."""
    directions = np.random.default_rng(0).standard_normal((Z.shape[0], _BITS * _BANDS))
    signs = (Z.T @ directions > 0).reshape(-1, _BANDS, _BITS)
    # r and -r are alike: the first bit is always set.
    signs ^= ~signs[:, :, :1]
    codes = signs @ (1 << np.arange(_BITS))
    candidates: dict[tuple[int, int], None] = {}
    for band in range(_BANDS):
        for members in _equal_codes(codes[:, band]):
            candidates.update({(int(members[0]), int(other)): None for other in members[1:]})
            neighbours = zip(members[1:-1].tolist(), members[2:].tolist(), strict=True)
            candidates.update(dict.fromkeys(neighbours))
    if not candidates:
        return
    pairs = np.array(list(candidates), dtype=np.intp)
    for start in range(0, len(pairs), _AT_ONCE):
        i, j = pairs[start : start + _AT_ONCE].T
        r = np.einsum("ij,ij->j", Z[:, i], Z[:, j])
        for at in np.flatnonzero(np.abs(r) >= least):
            yield int(i[at]), int(j[at]), float(r[at])


def _equal_codes(codes: IndexArray) -> Iterator[IndexArray]:
    order = np.argsort(codes, kind="stable")
    cuts = np.flatnonzero(np.diff(codes[order])) + 1
    for members in np.split(order, cuts):
        if len(members) > 1:
            yield members
