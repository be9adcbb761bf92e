"""Inf-FS as a scikit-learn selector."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from keepers._blas_threads import one_blas_thread_for
from keepers._protocols import FloatArray
from keepers.exceptions import DataWarning, warn_caller
from keepers.selectors.fitted_table import Table
from keepers.selectors.memory import memory_budget, refuse_past_memory
from keepers.selectors.parameters import FeatureCount, check_choice, check_positive
from keepers.selectors.ranking import RankingSelector
from keepers.solvers.inffs import EdgeMatrix, score_paths, unit_ranks


@dataclass(eq=False, repr=False)
class InfFS(RankingSelector):
    """Infinite feature selection, unsupervised: all paths through a graph of the features.

    Two features are joined by a heavy edge if one of them varies much and they are not
    redundant::

        A_ij = alpha max(s_i, s_j) + (1 - alpha) (1 - |rho_ij|),

    s the standard deviations scaled to run from 0 to 1, rho Spearman's rank correlation. A feature
    scores the weight of all paths that start at it: the row sums of bA + (bA)^2 + ... = (I - bA)^-1
    - I. After Roffo, Melzi and Cristani (ICCV 2015), Roffo et al. (TPAMI 2020) and version 5.1 of
    the program the authors released.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None keeps half. It does not influence
        the fit: ``top(k)`` gives the best k for any k afterwards.
    alpha : float in [0, 1], default=0.5
        Weight of the deviations; 1 - alpha is that of the rank correlations. 1 ranks by standard
        deviation; 0 prefers whatever resembles nothing else, pure noise above all.
    coupling : "release" or float in (0, 0.999], default="release"
        What an edge of a path is multiplied by. A number is the share of the largest value for
        which the sum over all paths converges (one over the largest eigenvalue of A): 0.9 in the
        first paper, and long paths count. "release" is about 1 / rho^2 with rho the largest row
        sum of A, as in the released version 5.1: paths of one edge are nearly all of the score.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None ranks by score alone.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Weight of all paths of one edge or more; higher is better. The released program adds 1,
        the path of no edge. Constant columns hold 0.
    ranking_ : array of shape (n_features,)
        1 is the best feature. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_features_to_select_ : int
        How many features are kept.
    coupling_ : float
        The b that was used.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    Notes
    -----
    Ranks are a dense table, also of a sparse X. A (d x d) is stored if it takes no more than a
    quarter of the machine's memory; otherwise its rows are made again, in blocks, for each of the
    few products with it.

    See Also
    --------
    VarianceScore : What remains of it with alpha=1.
    RSR : Features by which all others can be rebuilt.

    Examples
    --------
    >>> from keepers import InfFS, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = InfFS(50).fit(X)
    >>> selector.transform(X).shape
    (83, 50)
    """

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    alpha: float = 0.5
    coupling: float | str = "release"
    max_correlation: float | None = None

    def score_features(self, table: Table) -> FloatArray:
        """Weights of all paths."""
        n_samples, n_usable = table.X.shape
        what = f"the ranks of {n_samples} x {n_usable} values"
        refuse_past_memory("InfFS", what, 16.0 * n_samples * n_usable)
        fits = 8.0 * n_usable**2 <= memory_budget(None).n_bytes
        with one_blas_thread_for(2.0 * n_samples * n_usable**2):
            edges = EdgeMatrix(
                unit_ranks(table.X), np.sqrt(table.moments.variance), self.alpha, stored=fits
            )
            result = score_paths(
                edges, None if isinstance(self.coupling, str) else float(self.coupling)
            )
        if n_usable > 1 and not result.scores.any():
            warn_caller(
                "All features rank the samples alike and have the same deviation, as far as "
                f"alpha={self.alpha:g} looks at either: no edge has any weight, and the scores are "
                "0.",
                DataWarning,
            )
        self.coupling_ = result.coupling
        return table.to_all_columns(result.scores)

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_positive("alpha", self.alpha, at_most=1.0, zero=True)
        if isinstance(self.coupling, str):
            check_choice("coupling", self.coupling, ("release",), "Or give a number.")
        else:
            check_positive("coupling", self.coupling, at_most=0.999, hint="Or 'release'.")
