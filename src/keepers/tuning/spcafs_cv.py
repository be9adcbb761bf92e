"""SPCAFS with its settings and the number of features chosen from X alone."""

import warnings
from typing import Any

import numpy as np

from keepers.exceptions import DataWarning, InactiveRowsWarning
from keepers.selectors.parameters import check_feature_count, check_seed
from keepers.selectors.ranking import RankingSelector
from keepers.selectors.spcafs import SPCAFS
from keepers.tuning.search import (
    COMPONENTS,
    EXPONENTS,
    GAMMA_SHARES,
    MAX_CORRELATIONS,
    SCALINGS,
    select_settings,
)


class SPCAFSCV(RankingSelector):
    """SPCAFS that chooses its settings, and how many features to keep, without labels.

    The sibling of scikit-learn's ``LassoCV`` for tables without labels: `select_settings` weighs
    every combination of settings by the features it keeps, and the winner is fitted. Instead of a
    held-out error, which needs something to predict, it looks at neighbours: those of a sample in
    the kept features should be those in the whole table, and nearer than without clusters.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them. None finds the number: the features that
        the others predict better than chance, up to the knee of their leverages. The settings are
        chosen for this number.
    n_components : value or sequence, default=(1, 10, 30, 100)
        Numbers of components to try, as in `SPCAFS`.
    gamma_shares : float or sequence of float, default=(1e-5, 1.0)
        Penalty weights to try, as shares of the leading eigenvalue.
    p : float or sequence of float, default=(1.0,)
        Exponents of the penalty to try.
    scaling : float or sequence of float, default=(0.0, 0.5, 1.0)
        Powers of the standard deviation to divide the features by, as in `SPCAFS`.
    max_correlation : float, None or sequence of them, default=(0.8, 0.6)
        Limits on the correlation between kept features to try, as in `SPCAFS`.
    random_state : int, RandomState or None, default=None
        Seeds folds and draws.
    n_jobs : int or None, default=None
        Processes, as in joblib; the result does not depend on it.
    callback : callable or None, default=None
        Called after each fit with the number done and the number of all.

    Attributes
    ----------
    best_params_ : dict
        Settings of the winner: ``SPCAFS(**best_params_)`` repeats it.
    best_estimator_ : SPCAFS
        The winner, fitted to all samples.
    choice_ : SettingsChoice
        The evidence: everything tried, best first, and where the number of features comes from.
        ``choice_.at(k)`` is the choice for another number.
    structure_found_ : bool
        False if no feature has more to do with the others than chance. Then all features are kept,
        with a warning, unless a number was given.
    scores_ : array of shape (n_features,)
        Scores of the winner; higher is better.
    ranking_ : array of shape (n_features,)
        1 is the best feature; features passed over for being too much like a better one come later
        than their scores say.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_features_to_select_ : int
        Their number.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    Examples
    --------
    >>> from keepers import SPCAFSCV, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = SPCAFSCV(50, n_components=[3, 10], random_state=0).fit(X)
    >>> selector.transform(X).shape
    (83, 50)
    """

    depends_on_k = True

    def __init__(
        self,
        n_features_to_select: Any = None,
        *,
        n_components: Any = COMPONENTS,
        gamma_shares: Any = GAMMA_SHARES,
        p: Any = EXPONENTS,
        scaling: Any = SCALINGS,
        max_correlation: Any = MAX_CORRELATIONS,
        random_state: Any = None,
        n_jobs: Any = None,
        callback: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_components = n_components
        self.gamma_shares = gamma_shares
        self.p = p
        self.scaling = scaling
        self.max_correlation = max_correlation
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback

    def check_parameters(self) -> None:
        """Refuse settings outside their rules; `select_settings` checks those to be tried."""
        check_feature_count(self.n_features_to_select)
        check_seed(self.random_state)

    def _fit(self, X: Any) -> None:
        choice = select_settings(
            X,
            self.n_features_to_select,
            n_components=self.n_components,
            gamma_shares=self.gamma_shares,
            p=self.p,
            scaling=self.scaling,
            max_correlation=self.max_correlation,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            callback=self.callback,
        )
        params = choice.params
        if choice.n_features_to_select == 0:
            warnings.warn(
                "No structure found: no feature has more to do with the others than chance. All "
                "features are kept; give n_features_to_select to keep fewer.",
                DataWarning,
                stacklevel=3,
            )
            params = {**params, "n_features_to_select": choice.n_features, "max_correlation": None}
        seed = self.random_state if isinstance(self.random_state, (int, np.integer)) else 0
        winner = SPCAFS(**params, random_state=seed)
        with warnings.catch_warnings():
            # Reading the table has already named the constant columns.
            warnings.filterwarnings("ignore", ".*do not vary.*", DataWarning)
            if choice.n_features_to_select == 0:
                # All features are kept, as was just said: nobody asked for so many.
                warnings.simplefilter("ignore", InactiveRowsWarning)
            winner.fit(X)
        self.best_params_ = params
        self.best_estimator_ = winner
        self.choice_ = choice
        self.structure_found_ = choice.structure_found
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(winner, name):
                setattr(self, name, getattr(winner, name))
        self.scores_ = winner.scores_
        self.n_features_to_select_ = winner.n_features_to_select_
        self.support_ = winner.support_
        self.ranking_ = winner.ranking_
