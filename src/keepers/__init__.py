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
    from keepers.reports.html import make_report as report
    from keepers.reports.selection import Selection, describe_selection
    from keepers.tuning import (
        SPCAFSCV,
        StabilitySelector,
        select_settings,
    )

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

# Where each name lives; None: it is a module.
_HOMES = {
    "AutoSelector": ("keepers.methods.auto", "AutoSelector"),
    "AllFeatures": ("keepers.methods.baselines", "AllFeatures"),
    "RandomScore": ("keepers.methods.baselines", "RandomScore"),
    "VarianceScore": ("keepers.methods.baselines", "VarianceScore"),
    "Certificate": ("keepers.proofs.certify", "Certificate"),
    "certify": ("keepers.proofs.certify", "certify"),
    "DropCorrelated": ("keepers.methods.drop", "DropCorrelated"),
    "DropUninformative": ("keepers.methods.drop", "DropUninformative"),
    "ExactSelection": ("keepers.proofs.exact", "ExactSelection"),
    "solve_exactly": ("keepers.proofs.exact", "solve_exactly"),
    "FSPCA": ("keepers.methods.fspca", "FSPCA"),
    "LaplacianScore": ("keepers.methods.laplacian", "LaplacianScore"),
    "prune_redundant": ("keepers.methods.drop", "prune_redundant"),
    "TopFeatures": ("keepers.methods.base", "TopFeatures"),
    "ColumnSubset": ("keepers.methods.rivals.columns", "ColumnSubset"),
    "CUR": ("keepers.methods.rivals.columns", "CUR"),
    "DGUFS": ("keepers.methods.rivals.dgufs", "DGUFS"),
    "EUFS": ("keepers.methods.rivals.eufs", "EUFS"),
    "InfFS": ("keepers.methods.rivals.inffs", "InfFS"),
    "JELSR": ("keepers.methods.rivals.jelsr", "JELSR"),
    "MCFS": ("keepers.methods.rivals.mcfs", "MCFS"),
    "NDFS": ("keepers.methods.rivals.ndfs", "NDFS"),
    "RNE": ("keepers.methods.rivals.rne", "RNE"),
    "RSR": ("keepers.methods.rivals.rsr", "RSR"),
    "SOGFS": ("keepers.methods.rivals.sogfs", "SOGFS"),
    "U2FS": ("keepers.methods.rivals.u2fs", "U2FS"),
    "UDFS": ("keepers.methods.rivals.udfs", "UDFS"),
    "SPCAFS": ("keepers.methods.spcafs", "SPCAFS"),
    "SPEC": ("keepers.methods.laplacian", "SPEC"),
    "anndata": ("keepers.anndata", None),
    "datasets": ("keepers.datasets", None),
    "extending": ("keepers.extending", None),
    "metrics": ("keepers.metrics", None),
    "explain": ("keepers.reports.explain", "explain"),
    "report": ("keepers.reports.html", "make_report"),
    "TablePreparer": ("keepers.prepare.preparer", "TablePreparer"),
    "check_table": ("keepers.prepare.check", "check_table"),
    "all_selectors": ("keepers.catalogue", "all_selectors"),
    "SPCAFSCV": ("keepers.tuning", "SPCAFSCV"),
    "StabilitySelector": ("keepers.tuning", "StabilitySelector"),
    "Selection": ("keepers.reports.selection", "Selection"),
    "describe_selection": ("keepers.reports.selection", "describe_selection"),
    "select_settings": ("keepers.tuning", "select_settings"),
    "spcafs_path": ("keepers.methods.path", "spcafs_path"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'keepers' has no attribute {name!r}")
    module_name, attribute = _HOMES[name]
    module = importlib.import_module(module_name)
    found = module if attribute is None else getattr(module, attribute)
    globals()[name] = found  # asked for once
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
