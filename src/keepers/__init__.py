"""keepers: which features of an unlabelled table are worth keeping.

Names are imported when they are first used: a command that only prints its help should not wait for
scikit-learn.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keepers import anndata, datasets, extending, metrics
    from keepers.catalogue import all_selectors
    from keepers.methods.auto import AutoSelector
    from keepers.methods.base import TopFeatures
    from keepers.methods.baselines import (
        AllFeatures,
        RandomScore,
        VarianceScore,
    )
    from keepers.methods.drop import DropCorrelated, DropUninformative, prune_redundant
    from keepers.methods.fspca import FSPCA
    from keepers.methods.laplacian import SPEC, LaplacianScore
    from keepers.methods.path import spcafs_path
    from keepers.methods.rivals.columns import CUR, ColumnSubset
    from keepers.methods.rivals.dgufs import DGUFS
    from keepers.methods.rivals.eufs import EUFS
    from keepers.methods.rivals.inffs import InfFS
    from keepers.methods.rivals.jelsr import JELSR
    from keepers.methods.rivals.mcfs import MCFS
    from keepers.methods.rivals.ndfs import NDFS
    from keepers.methods.rivals.rne import RNE
    from keepers.methods.rivals.rsr import RSR
    from keepers.methods.rivals.sogfs import SOGFS
    from keepers.methods.rivals.u2fs import U2FS
    from keepers.methods.rivals.udfs import UDFS
    from keepers.methods.spcafs import SPCAFS
    from keepers.prepare.check import check_table
    from keepers.prepare.preparer import TablePreparer
    from keepers.proofs.certify import Certificate, certify
    from keepers.proofs.exact import ExactSelection, solve_exactly
    from keepers.reports.explain import explain
    from keepers.reports.html import report
    from keepers.reports.selection import Selection, describe_selection
    from keepers.tuning import SPCAFSCV, StabilitySelector, select_settings

__version__ = "0.1.0"

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
    "SPCAFSCV",
    "SPEC",
    "U2FS",
    "UDFS",
    "AllFeatures",
    "AutoSelector",
    "Certificate",
    "ColumnSubset",
    "DropCorrelated",
    "DropUninformative",
    "ExactSelection",
    "InfFS",
    "LaplacianScore",
    "RandomScore",
    "Selection",
    "StabilitySelector",
    "TablePreparer",
    "TopFeatures",
    "VarianceScore",
    "all_selectors",
    "anndata",
    "certify",
    "check_table",
    "datasets",
    "describe_selection",
    "explain",
    "extending",
    "metrics",
    "prune_redundant",
    "report",
    "select_settings",
    "solve_exactly",
    "spcafs_path",
]

_MODULES = {
    "catalogue": "all_selectors",
    "methods.auto": "AutoSelector",
    "methods.base": "TopFeatures",
    "methods.baselines": "AllFeatures RandomScore VarianceScore",
    "methods.drop": "DropCorrelated DropUninformative prune_redundant",
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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'keepers' has no attribute {name!r}")
    module = importlib.import_module(f"keepers.{_HOMES.get(name, name)}")
    found = getattr(module, name) if name in _HOMES else module
    globals()[name] = found  # looked up once
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
