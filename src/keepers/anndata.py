"""AnnData objects, as scanpy users expect: the selection is written into ``adata.var``.

`select` stands where ``scanpy.pp.highly_variable_genes`` stands, and takes the same arguments where
it does the same. anndata is not imported: whatever has its attributes will do.
"""

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from keepers._packages import package_versions
from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.data.annotated import values_of
from keepers.data.blocks.as_blocks import as_blocks
from keepers.data.dask_blocks import selected_rows
from keepers.data.in_memory import comes_in_blocks, from_store, is_anndata, is_dask
from keepers.data.table import NamedValues
from keepers.data.wording import closest, some_of
from keepers.exceptions import (
    DataError,
    DataWarning,
    NoStructureWarning,
    ParameterError,
    shorten,
    warn_caller,
)
from keepers.methods import find_method
from keepers.selectors import RankingSelector
from keepers.selectors.parameters import FeatureCount, check_flag

__all__ = ["select"]

FEWEST_CELLS = 3
"""Of a batch: with fewer there are no neighbours to compare."""
_KEY = "keepers"
_N_BATCHES = "keepers_n_batches"


def select(
    adata: Any,
    n_features: FeatureCount = None,
    *,
    layer: str | None = None,
    batch_key: str | None = None,
    subset: bool = False,
    method: str | RankingSelector = "auto",
    inplace: bool = True,
) -> Any:
    """Select the variables of an AnnData object that are worth keeping; no labels are used.

    Parameters
    ----------
    adata : AnnData
        One observation a sample, one variable a feature. X, or the layer, may be dense or sparse,
        backed by a file or a Dask array; it is not changed. Methods that read in blocks ("auto",
        "denoised-laplacian", "spcafs") take a file or a Dask array as it is, others take a file
        into memory.
    n_features : int, float in (0, 1] or None, default=None
        How many variables to keep, or which share. None: the number that `AutoSelector` finds
        enough; other methods keep half.
    layer : str or None, default=None
        Fit ``adata.layers[layer]`` instead of ``adata.X``.
    batch_key : str or None, default=None
        Column of ``adata.obs``. Variables are ranked within each batch, and the ranks are combined
        as ``scanpy.pp.highly_variable_genes`` does with ``flavor="seurat_v3"``: by the median rank
        over the batches in which a variable is among the first ``n_features``; ties go to the one
        that is so in more batches, then by index. If ``n_features`` is None, the largest number
        that a batch needs is taken.
    subset : bool, default=False
        Keep the selected variables only, in place; the rest of ``adata`` follows.
    method : str or selector, default="auto"
        Name of a method (`keepers.all_selectors`, or as on the command line), or a selector with
        settings of its own, which is copied and not fitted itself.
    inplace : bool, default=True
        Write the result into ``adata``. False returns it and leaves ``adata`` as it is, a view a
        view.

    Returns
    -------
    DataFrame or None
        The columns below with ``inplace=False``, of the selected variables only with ``subset``;
        otherwise None, and these are set:

        ``adata.var["keepers_score"]`` : float
            Higher is better; the mean over batches.
        ``adata.var["keepers_rank"]`` : float
            0 is the best, as in scanpy's ``highly_variable_rank``. With ``batch_key`` the median
            described there, NaN for a variable that is among the first in no batch.
        ``adata.var["keepers_selected"]`` : bool
            Whether the variable is kept.
        ``adata.var["keepers_n_batches"]`` : int
            With ``batch_key``: in how many batches it is among the first.
        ``adata.uns["keepers"]`` : dict
            How it was done: ``method``, ``params`` (without those that are None), ``n_features``,
            ``layer``, ``batch_key``, ``summary`` and ``doubts`` where the method gives them,
            ``versions``. Plain values, which ``write_h5ad`` keeps.

    Raises
    ------
    DataError
        The values cannot be used, a layer or a column of obs is absent, or a batch is too small.

    Warns
    -----
    NoStructureWarning
        Nothing says which variables to keep, in the whole or in some batches.

    See Also
    --------
    keepers.AutoSelector : The default method; its ``fit`` accepts an AnnData object too.

    Notes
    -----
    Variables that do not vary within a batch are ranked last in it.

    Examples
    --------
    >>> import keepers.anndata
    >>> keepers.anndata.select(adata, 200, batch_key="donor")  # doctest: +SKIP
    >>> adata[:, adata.var["keepers_selected"]]  # doctest: +SKIP
    """
    _check(adata, subset=subset, inplace=inplace)
    selector = _selector(method, n_features)
    table = values_of(adata, layer)
    batches = None if batch_key is None else _batches(adata, batch_key)
    if not hasattr(selector, "fit_blocks"):
        table = NamedValues(from_store(table.X), table.feature_names)
    if batches is None:
        result = _result_of(selector.fit(table))
    else:
        fitted = {
            name: _fit_batch(clone(selector), table, rows, name) for name, rows in batches.items()
        }
        _warn_of_batches_without_structure(fitted)
        result = _combine(fitted)
    frame = adata.var[[]].assign(**result.columns())
    if not inplace:
        return frame[result.selected] if subset else frame
    if subset:  # first, so that of a view the kept columns alone are copied
        adata._inplace_subset_var(result.selected)
        frame = frame[result.selected]
    if _N_BATCHES in adata.var and _N_BATCHES not in frame:
        del adata.var[_N_BATCHES]  # of an earlier call
    for column in frame:
        adata.var[column] = frame[column].to_numpy()
    adata.uns[_KEY] = {
        **_description(selector, result),
        **({} if layer is None else {"layer": layer}),
        **({} if batch_key is None else {"batch_key": batch_key}),
    }
    return None


@dataclass(frozen=True)
class _Result:
    """What is known of every variable, and in words."""

    scores: FloatArray
    ranks: FloatArray
    selected: BoolArray
    summary: str
    doubts: list[str]
    n_batches: IndexArray | None = None

    def columns(self) -> dict[str, Any]:
        """The columns of var."""
        found: dict[str, Any] = {
            "keepers_score": self.scores,
            "keepers_rank": self.ranks,
            "keepers_selected": self.selected,
        }
        return found if self.n_batches is None else {**found, _N_BATCHES: self.n_batches}


def _check(adata: Any, *, subset: bool, inplace: bool) -> None:
    check_flag("subset", subset)
    check_flag("inplace", inplace)
    if not is_anndata(adata):
        raise ParameterError(
            f"keepers.anndata.select takes an AnnData object; got {shorten(type(adata).__name__)}. "
            "For other tables use keepers.AutoSelector().fit(X)."
        )
    if subset and inplace and getattr(adata, "isbacked", False):
        raise ParameterError(
            "subset=True changes adata, which cannot be done to one that is backed by a file. "
            "Leave it out, and take adata[:, adata.var['keepers_selected']].to_memory()."
        )


def _selector(method: Any, n_features: FeatureCount) -> Any:
    """An unfitted selector that is nobody else's."""
    if isinstance(method, str):
        return find_method(method).load()(n_features_to_select=n_features)
    if not isinstance(method, RankingSelector):
        raise ParameterError(
            "method must be the name of a method or a selector of keepers, such as "
            f"AutoSelector(); got {shorten(method)}."
        )
    selector = clone(method)
    return selector if n_features is None else selector.set_params(n_features_to_select=n_features)


def _batches(adata: Any, key: str) -> dict[str, BoolArray]:
    """The observations of each batch, in the order of their names."""
    columns = [str(name) for name in adata.obs]
    if key not in columns:
        raise DataError(
            f"There is no column {shorten(key)} in adata.obs.{closest(str(key), columns)} It has "
            f"{some_of([repr(name) for name in columns]) or 'none'}."
        )
    batch_of = adata.obs[key]
    n_missing = int(batch_of.isna().sum())
    if n_missing:
        raise DataError(
            f"Every observation needs a batch; {n_missing} of obs[{shorten(key)}] are missing. "
            "Fill them in, or leave those observations out."
        )
    names = batch_of.astype(str).to_numpy()
    batches = {name: names == name for name in sorted(set(names))}
    sizes = {name: int(rows.sum()) for name, rows in batches.items()}
    small = [f"{shorten(name)} ({size})" for name, size in sizes.items() if size < FEWEST_CELLS]
    if small:
        raise DataError(
            f"Every batch needs at least {FEWEST_CELLS} observations; these have fewer (how many): "
            f"{some_of(small)}. Merge them with others, or leave them out."
        )
    return batches


def _fit_batch(selector: Any, table: NamedValues, rows: BoolArray, name: str) -> Any:
    """The selector, fitted to the rows of one batch."""
    chosen = _rows_of(table.X, rows)
    fit = selector.fit_blocks if callable(chosen) else selector.fit
    with warnings.catch_warnings():
        # Many variables are constant in some batch; missing structure is told of all batches.
        warnings.simplefilter("ignore", DataWarning)
        try:
            return fit(NamedValues(chosen, table.feature_names))
        except DataError as error:
            raise DataError(f"In batch {shorten(name)}: {error}") from error


def _rows_of(values: Any, rows: BoolArray) -> Any:
    """Some rows: of the same kind, or a function that gives them in blocks."""
    if is_dask(values):
        return selected_rows(values, rows)
    if comes_in_blocks(values):
        return partial(_blocks_of, values, rows)
    return values[np.flatnonzero(rows)]


def _blocks_of(values: Any, rows: BoolArray) -> Iterator[Any]:
    """Some rows of a table that is read in blocks, a pass over all of it."""
    start = 0
    for block in as_blocks(values).blocks():  # type: ignore[attr-defined]
        stop = start + block.values.shape[0]
        if rows[start:stop].any():
            yield block.values[rows[start:stop]]
        start = stop


def _warn_of_batches_without_structure(fitted: dict[str, Any]) -> None:
    without = [shorten(name) for name, selector in fitted.items() if not _found_structure(selector)]
    if without:
        warn_caller(
            f"No structure found in {len(without)} of {len(fitted)} batches: {some_of(without)}. "
            "Their rankings are about as good as random ones.",
            NoStructureWarning,
        )


def _found_structure(selector: Any) -> bool:
    return bool(getattr(selector, "structure_found_", True))


def _result_of(selector: Any) -> _Result:
    return _Result(
        scores=selector.scores_,
        ranks=selector.ranking_.astype(np.float64) - 1.0,
        selected=selector.support_,
        summary=getattr(selector, "summary_", ""),
        doubts=getattr(selector, "doubts_", []),
    )


def _combine(fitted: dict[str, Any]) -> _Result:
    """Median ranks over the batches in which a variable is among the first."""
    selectors = list(fitted.values())
    # Without structure everything was kept, unless a number was given.
    voting = [found for found in selectors if _found_structure(found)] or selectors
    count = max(found.n_features_to_select_ for found in voting)
    ranks = np.array([found.ranking_ - 1.0 for found in selectors])
    n_batches = (ranks < count).sum(axis=0)
    somewhere = n_batches > 0
    median = np.full(len(n_batches), np.nan)
    among = np.where(ranks < count, ranks, np.nan)
    median[somewhere] = np.nanmedian(among[:, somewhere], axis=0)
    order = np.lexsort((-n_batches, median))  # NaN comes last
    selected = np.zeros(len(median), dtype=bool)
    selected[order[:count]] = True
    summaries = [(name, getattr(found, "summary_", "")) for name, found in fitted.items()]
    return _Result(
        scores=np.mean([found.scores_ for found in selectors], axis=0),
        ranks=median,
        selected=selected,
        summary="\n".join(f"{name}: {summary}" for name, summary in summaries if summary),
        doubts=[
            f"{name}: {doubt}"
            for name, found in fitted.items()
            for doubt in getattr(found, "doubts_", [])
        ],
        n_batches=n_batches,
    )


def _description(selector: Any, result: _Result) -> dict[str, Any]:
    """How a selection was made, as values that an .h5ad file can hold: no None, no empty list."""
    params = {name: _plain(value) for name, value in selector.get_params(deep=False).items()}
    described: dict[str, Any] = {
        "method": type(selector).__name__,
        "params": {name: value for name, value in params.items() if value is not None},
        "n_features": int(result.selected.sum()),
        "versions": package_versions(),
    }
    if result.summary:
        described["summary"] = result.summary
    if result.doubts:
        described["doubts"] = np.array(result.doubts)
    return described


def _plain(value: Any) -> Any:
    """A setting as a number, a text or an array of them; other objects as text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple, np.ndarray)):
        values = np.asarray([str(item) if isinstance(item, str) else item for item in value])
        if values.dtype.kind in "biufU" and values.size:
            return values
    return shorten(value)
