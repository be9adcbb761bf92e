"""keepers: which features of an unlabelled table are worth keeping.

Names are imported when they are first used: a command that only prints its help should not wait for
scikit-learn.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keepers import anndata, datasets, extending, metrics
    from keepers.methods import all_selectors
    from keepers.preparation.table_check import check_table
    from keepers.preparation.table_preparer import TablePreparer
    from keepers.reporting.selection_report import make_report as report
    from keepers.selection import Selection, describe_selection
    from keepers.selectors import (
        CUR,
        DGUFS,
        EUFS,
        FSPCA,
        JELSR,
        MCFS,
        NDFS,
        RNE,
        RSR,
        SOGFS,
        SPCAFS,
        SPEC,
        U2FS,
        UDFS,
        AllFeatures,
        AutoSelector,
        Certificate,
        ColumnSubset,
        DenoisedLaplacian,
        DropCorrelated,
        DropUninformative,
        ExactSelection,
        InfFS,
        KnownSpectrum,
        LaplacianScore,
        RandomScore,
        TopFeatures,
        VarianceScore,
        as_score_function,
        certify,
        prune_redundant,
        solve_exactly,
    )
    from keepers.tuning import (
        SPCAFSCV,
        StabilitySelector,
        select_method,
        select_settings,
        spcafs_path,
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
    "DenoisedLaplacian",
    "DropCorrelated",
    "DropUninformative",
    "ExactSelection",
    "InfFS",
    "KnownSpectrum",
    "LaplacianScore",
    "RandomScore",
    "Selection",
    "StabilitySelector",
    "TablePreparer",
    "TopFeatures",
    "VarianceScore",
    "all_selectors",
    "anndata",
    "as_score_function",
    "certify",
    "check_table",
    "datasets",
    "describe_selection",
    "extending",
    "metrics",
    "prune_redundant",
    "report",
    "select_method",
    "select_settings",
    "solve_exactly",
    "spcafs_path",
]

_ELSEWHERE = {
    "anndata": ("keepers.anndata", None),
    "datasets": ("keepers.datasets", None),
    "extending": ("keepers.extending", None),
    "metrics": ("keepers.metrics", None),
    "report": ("keepers.reporting.selection_report", "make_report"),
    "TablePreparer": ("keepers.preparation.table_preparer", "TablePreparer"),
    "check_table": ("keepers.preparation.table_check", "check_table"),
    "all_selectors": ("keepers.methods", "all_selectors"),
    "SPCAFSCV": ("keepers.tuning", "SPCAFSCV"),
    "StabilitySelector": ("keepers.tuning", "StabilitySelector"),
    "Selection": ("keepers.selection", "Selection"),
    "describe_selection": ("keepers.selection", "describe_selection"),
    "select_method": ("keepers.tuning", "select_method"),
    "select_settings": ("keepers.tuning", "select_settings"),
    "spcafs_path": ("keepers.tuning", "spcafs_path"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'keepers' has no attribute {name!r}")
    module_name, attribute = _ELSEWHERE.get(name, ("keepers.selectors", name))
    module = importlib.import_module(module_name)
    found = module if attribute is None else getattr(module, attribute)
    globals()[name] = found  # asked for once
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
