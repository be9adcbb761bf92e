"""The edge of the null spectrum against closed forms and simulation."""

import numpy as np
import pytest

from keepers.linalg.null_spectrum import null_edge


@pytest.mark.parametrize(("n", "d"), [(100, 20), (100, 100), (50, 2000)])
@pytest.mark.parametrize("variance", [1.0, 1e-8, 1e8])
def test_equal_variances_give_the_marchenko_pastur_edge(n, d, variance):
    expected = variance * (1 + np.sqrt(d / n)) ** 2
    assert null_edge(np.full(d, variance), n) == pytest.approx(expected, rel=1e-9)


def test_unequal_variances_agree_with_shuffled_data():
    rng = np.random.default_rng(0)
    n, d = 400, 300
    variances = rng.uniform(0.2, 5.0, d)
    largest = [
        np.linalg.eigvalsh(np.cov((rng.standard_normal((n, d)) * np.sqrt(variances)).T))[-1]
        for _ in range(20)
    ]
    # Finite samples stay a little below the limit (the Tracy-Widom mean is negative).
    assert null_edge(variances, n - 1) == pytest.approx(np.mean(largest), rel=0.04)
