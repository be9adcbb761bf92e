"""Bundled sets are what they claim to be."""

import numpy as np
import pytest

from keepers.datasets import load, names
from keepers.exceptions import ParameterError


def test_the_bundled_sets_have_their_published_shapes_and_classes():
    X, genes, y = load("srbct")
    assert (X.shape, X.dtype, len(set(genes))) == ((83, 2308), np.float64, 2308)
    kinds, counts = np.unique(y.astype(str), return_counts=True)
    assert dict(zip(kinds, counts, strict=True)) == {"BL": 11, "EWS": 29, "NB": 18, "RMS": 25}
    assert X.min() > 0  # ratios, not their logarithms
    X, pixels, y = load("digits")
    assert (X.shape, pixels[0], sorted(set(y))) == ((1797, 64), "pixel_0_0", list(range(10)))
    assert names() == ["srbct", "digits"]
    with pytest.raises(ParameterError, match=r"'srbct', 'digits'; got 'iris'"):
        load("iris")
