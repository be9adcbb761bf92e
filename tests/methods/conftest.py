"""A table with eight features to be found."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="module")
def planted():
    """60 x 40, the first eight features move together in four groups of samples."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 40))
    X[:, :8] += 3 * rng.standard_normal((4, 8))[rng.integers(0, 4, 60)]
    return X


@pytest.fixture(scope="module")
def frame(planted):
    return pd.DataFrame(planted, columns=[f"feature {j}" for j in range(40)])
