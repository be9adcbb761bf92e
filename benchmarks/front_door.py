"""The front door beside one PCA."""

import numpy as np
from sklearn.decomposition import PCA

from keepers import AutoSelector
from measure import side_by_side


def groups(n_informative: int, n_samples: int = 1000, n_features: int = 20_000) -> np.ndarray:
    """Ten groups of samples that differ in some of the features, rescaled at random."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features))
    means = 1.5 * rng.standard_normal((10, n_informative))
    X[:, :n_informative] += means[rng.integers(10, size=n_samples)]
    return X * np.exp(rng.standard_normal(n_features))


def against_pca(n_informative: int, repeats: int = 3) -> dict[str, object]:
    """AutoSelector() and PCA(50), threads equal."""
    X = groups(n_informative)
    selector = AutoSelector()
    result: dict[str, object] = side_by_side(
        lambda: selector.fit(X), lambda: PCA(50, random_state=0).fit(X), repeats=repeats
    )
    result["times_pca"] = result["ours_s"] / result["theirs_s"]
    result["structure_found"] = selector.structure_found_
    result["kept"] = selector.n_features_to_select_
    return result


CASES = {
    "front door 1,000 x 20,000": lambda: against_pca(8000),
    "front door 1,000 x 20,000, 200 informative": lambda: against_pca(200, repeats=1),
    "front door 1,000 x 20,000, noise": lambda: against_pca(0, repeats=1),
}
