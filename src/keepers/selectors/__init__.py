"""scikit-learn estimators, one per method, all with the same contract."""

from keepers.selectors.ranking import RankingSelector, TopFeatures
from keepers.selectors.spcafs import SPCAFS

__all__ = ["SPCAFS", "RankingSelector", "TopFeatures", "all_selectors"]


def all_selectors() -> dict[str, type[RankingSelector]]:
    """Every selector of the library, by the name of its method."""
    return {"spcafs": SPCAFS}
