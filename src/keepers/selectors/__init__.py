"""scikit-learn estimators, one per method, all with the same contract."""

from keepers.selectors.auto import AutoSelector
from keepers.selectors.baselines import AllFeatures, RandomScore, VarianceScore
from keepers.selectors.certificate import Certificate, KnownSpectrum, certify
from keepers.selectors.column_subset import ColumnSubset
from keepers.selectors.cur import CUR
from keepers.selectors.denoised_laplacian import DenoisedLaplacian
from keepers.selectors.dgufs import DGUFS
from keepers.selectors.drop_correlated import DropCorrelated
from keepers.selectors.drop_uninformative import DropUninformative
from keepers.selectors.eufs import EUFS
from keepers.selectors.exact_selection import ExactSelection, solve_exactly
from keepers.selectors.fspca import FSPCA
from keepers.selectors.inffs import InfFS
from keepers.selectors.jelsr import JELSR
from keepers.selectors.laplacian_score import LaplacianScore
from keepers.selectors.mcfs import MCFS
from keepers.selectors.ndfs import NDFS
from keepers.selectors.prune import prune_redundant
from keepers.selectors.ranking import RankingSelector, TopFeatures
from keepers.selectors.rne import RNE
from keepers.selectors.rsr import RSR
from keepers.selectors.score_function import as_score_function
from keepers.selectors.sogfs import SOGFS
from keepers.selectors.spcafs import SPCAFS
from keepers.selectors.spec import SPEC
from keepers.selectors.u2fs import U2FS
from keepers.selectors.udfs import UDFS

__all__ = [
    "CUR",
    "DGUFS",
    "EUFS",
    "FSPCA",
    "JELSR",
    "MCFS",
    "NDFS",
    "RNE",
    "RSR",
    "SOGFS",
    "SPCAFS",
    "SPEC",
    "U2FS",
    "UDFS",
    "AllFeatures",
    "AutoSelector",
    "Certificate",
    "ColumnSubset",
    "DenoisedLaplacian",
    "DropCorrelated",
    "DropUninformative",
    "ExactSelection",
    "InfFS",
    "KnownSpectrum",
    "LaplacianScore",
    "RandomScore",
    "RankingSelector",
    "TopFeatures",
    "VarianceScore",
    "as_score_function",
    "certify",
    "prune_redundant",
    "solve_exactly",
]
