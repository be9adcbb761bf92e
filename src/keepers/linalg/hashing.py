"""Numbers that look random and follow from integers, the same on every machine and for ever."""

import numpy as np
from numpy.typing import NDArray

GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)
"""The step of SplitMix64: its i-th number from the state s is ``mix(s + i * GOLDEN_RATIO)``."""
_ROUNDS = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)


def mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The mixing function of SplitMix64 (Steele, Lea and Flood, 2014), a bijection of 64 bits."""
    mixed = numbers
    for shift, factor in _ROUNDS:
        mixed = mixed ^ (mixed >> shift)
        mixed *= factor
    mixed ^= mixed >> np.uint64(31)
    return mixed
