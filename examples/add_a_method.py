"""A method of your own: rank features by how much of them the leading components explain."""

from dataclasses import dataclass

import numpy as np

from keepers.extending import (
    FloatArray,
    RankingSelector,
    SymmetricOperator,
    Table,
    check_count,
    principal_subspace,
)


# The mathematics: an operator in, one frozen result out. In the library: solvers/shared_variance.py
@dataclass(frozen=True)
class SharedVarianceResult:
    """What was found."""

    shares: FloatArray
    components: FloatArray


def shared_variance(
    scatter: SymmetricOperator, width: int, rng: np.random.Generator
) -> SharedVarianceResult:
    """R^2 of every feature on the leading components: sum_k lambda_k v_jk^2 / S_jj."""
    leading = principal_subspace(scatter, width, rng)
    explained = (leading.vectors**2) @ leading.values
    return SharedVarianceResult(explained / scatter.diagonal(), leading.vectors)


# The estimator: what to check, and how to score. In the library: selectors/shared_variance.py
class SharedVariance(RankingSelector):
    """Features by the share of their variance that the leading components explain.

    Unlike the variance, it does not grow with the unit of one feature alone, and a loud feature
    that has nothing to do with the others scores low, unless it is a component by itself.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None keeps half.
    n_components : int, default=3
        Components that explain; fewer if X has fewer.
    max_correlation : float in (0, 1] or None, default=None
        Features more correlated than this with a better one are ranked behind all others.
    random_state : int, RandomState or None, default=None
        Seeds the eigensolver where both sides of X exceed 3000.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Shares from 0 to 1; higher is better.
    ranking_ : array of shape (n_features,)
        1 is the best feature.
    support_ : boolean array of shape (n_features,)
        The features kept.
    components_ : array of shape (n_components, n_features)
        The components.
    """

    def __init__(
        self,
        n_features_to_select=None,
        *,
        n_components=3,
        max_correlation=None,
        random_state=None,
    ):
        self.n_features_to_select = n_features_to_select
        self.n_components = n_components
        self.max_correlation = max_correlation
        self.random_state = random_state

    def check_parameters(self):
        """Refuse settings outside their rules."""
        super().check_parameters()
        check_count("n_components", self.n_components)

    def score_features(self, table: Table) -> FloatArray:
        """The shares, of all columns of the user."""
        width = min(self.n_components, table.n_samples - 1, table.X.shape[1])
        result = shared_variance(table.scatter(width), width, self.random_generator())
        self.components_ = table.to_all_columns(result.components.T)
        return table.to_all_columns(result.shares)


if __name__ == "__main__":
    from keepers import datasets

    X, names, _ = datasets.load("srbct")
    print(SharedVariance(20).fit(X).top(5))
