"""A method of your own: rank features by how much of them the leading components explain."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from keepers.extending import MemoryTable, RankingSelector, principal_subspace, whole


# The mathematics: an operator in, arrays out.
def shared_variance(scatter, width, rng):
    """R^2 of every feature on the leading components: sum_k lambda_k v_jk^2 / S_jj."""
    leading = principal_subspace(scatter, width, rng)
    return (leading.vectors**2) @ leading.values / scatter.diagonal(), leading.vectors


# The estimator, in the same file: its parameters, their rules, and how to score.
@dataclass(eq=False, repr=False)
class SharedVariance(RankingSelector):
    """Features by the share of their variance that the leading components explain.

    A feature of large variance that has nothing to do with the others scores low.

    Parameters
    ----------
    {n_features_to_select}
    n_components : int, default=3
        Components that explain; fewer if X has fewer.
    {max_correlation}
    {random_state}

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Shares from 0 to 1; higher is better.
    components_ : array of shape (n_components, n_features)
        The components.
    {fitted}
    """

    n_features_to_select: int | float | None = None
    _: KW_ONLY
    n_components: int = 3
    max_correlation: float | None = None
    random_state: int | None = None

    parameter_rules: ClassVar = {"n_components": whole(at_least=1)}

    def score_features(self, table: MemoryTable):
        """The shares, of all columns of the user."""
        width = min(self.n_components, table.n_samples - 1, table.X.shape[1])
        shares, vectors = shared_variance(table.scatter(width), width, self.random_generator())
        self.components_ = table.to_all_columns(vectors.T)
        return table.to_all_columns(shares)


if __name__ == "__main__":
    from keepers import datasets

    X, names, _ = datasets.load("srbct")
    print(SharedVariance(20).fit(X).top(5))
