"""keepers: which features of an unlabelled table are worth keeping.

Names are imported when they are first used: a command that only prints its help should not wait for
scikit-learn.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keepers import anndata as anndata
    from keepers import datasets as datasets
    from keepers import extending as extending
    from keepers import metrics as metrics
    from keepers.catalogue import all_selectors as all_selectors
    from keepers.methods.auto import AutoSelector as AutoSelector
    from keepers.methods.base import TopFeatures as TopFeatures
    from keepers.methods.baselines import AllFeatures as AllFeatures
    from keepers.methods.baselines import RandomScore as RandomScore
    from keepers.methods.baselines import VarianceScore as VarianceScore
    from keepers.methods.drop import DropCorrelated as DropCorrelated
    from keepers.methods.fspca import FSPCA as FSPCA
    from keepers.methods.laplacian import SPEC as SPEC
    from keepers.methods.laplacian import LaplacianScore as LaplacianScore
    from keepers.methods.path import spcafs_path as spcafs_path
    from keepers.methods.rivals.columns import CUR as CUR
    from keepers.methods.rivals.columns import ColumnSubset as ColumnSubset
    from keepers.methods.rivals.dgufs import DGUFS as DGUFS
    from keepers.methods.rivals.eufs import EUFS as EUFS
    from keepers.methods.rivals.inffs import InfFS as InfFS
    from keepers.methods.rivals.jelsr import JELSR as JELSR
    from keepers.methods.rivals.mcfs import MCFS as MCFS
    from keepers.methods.rivals.ndfs import NDFS as NDFS
    from keepers.methods.rivals.rne import RNE as RNE
    from keepers.methods.rivals.rsr import RSR as RSR
    from keepers.methods.rivals.sogfs import SOGFS as SOGFS
    from keepers.methods.rivals.u2fs import U2FS as U2FS
    from keepers.methods.rivals.udfs import UDFS as UDFS
    from keepers.methods.spcafs import SPCAFS as SPCAFS
    from keepers.prepare.check import check_table as check_table
    from keepers.prepare.preparer import TablePreparer as TablePreparer
    from keepers.proofs.certify import Certificate as Certificate
    from keepers.proofs.certify import certify as certify
    from keepers.proofs.exact import ExactSelection as ExactSelection
    from keepers.proofs.exact import solve_exactly as solve_exactly
    from keepers.reports.explain import explain as explain
    from keepers.reports.html import report as report
    from keepers.reports.selection import Selection as Selection
    from keepers.reports.selection import describe_selection as describe_selection
    from keepers.tuning import SPCAFSCV as SPCAFSCV
    from keepers.tuning import StabilitySelector as StabilitySelector
    from keepers.tuning import select_settings as select_settings

__version__ = "0.1.0"

_MODULES = {
    "catalogue": "all_selectors",
    "methods.auto": "AutoSelector",
    "methods.base": "TopFeatures",
    "methods.baselines": "AllFeatures RandomScore VarianceScore",
    "methods.drop": "DropCorrelated",
    "methods.fspca": "FSPCA",
    "methods.laplacian": "SPEC LaplacianScore",
    "methods.path": "spcafs_path",
    "methods.rivals.columns": "CUR ColumnSubset",
    "methods.rivals.dgufs": "DGUFS",
    "methods.rivals.eufs": "EUFS",
    "methods.rivals.inffs": "InfFS",
    "methods.rivals.jelsr": "JELSR",
    "methods.rivals.mcfs": "MCFS",
    "methods.rivals.ndfs": "NDFS",
    "methods.rivals.rne": "RNE",
    "methods.rivals.rsr": "RSR",
    "methods.rivals.sogfs": "SOGFS",
    "methods.rivals.u2fs": "U2FS",
    "methods.rivals.udfs": "UDFS",
    "methods.spcafs": "SPCAFS",
    "prepare.check": "check_table",
    "prepare.preparer": "TablePreparer",
    "proofs.certify": "Certificate certify",
    "proofs.exact": "ExactSelection solve_exactly",
    "reports.explain": "explain",
    "reports.html": "report",
    "reports.selection": "Selection describe_selection",
    "tuning": "SPCAFSCV StabilitySelector select_settings",
}
"""The names of each module; the other public names are modules."""
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = sorted([*_HOMES, "anndata", "datasets", "extending", "metrics"])


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'keepers' has no attribute {name!r}")
    module = importlib.import_module(f"keepers.{_HOMES.get(name, name)}")
    found = getattr(module, name) if name in _HOMES else module
    globals()[name] = found  # looked up once
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
