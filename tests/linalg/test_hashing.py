"""The mixing function against published numbers."""

import numpy as np

from keepers.linalg.hashing import GOLDEN_RATIO, mix


def test_the_numbers_are_those_of_splitmix64():
    # Rosetta Code, "Pseudo-random numbers/Splitmix64", seed 1234567.
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    states = np.uint64(1234567) + np.arange(1, 6, dtype=np.uint64) * GOLDEN_RATIO
    assert mix(states).tolist() == expected


def test_the_input_is_left_alone_and_no_number_occurs_twice():
    numbers = np.arange(100_000, dtype=np.uint64)
    assert len(np.unique(mix(numbers))) == 100_000
    np.testing.assert_array_equal(numbers, np.arange(100_000))
