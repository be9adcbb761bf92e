"""AnnData objects, as scanpy users expect: the selection is written into ``adata.var``.

`select` stands where ``scanpy.pp.highly_variable_genes`` stands, and takes the same arguments where
it does the same. anndata is not imported: whatever has its attributes will do.
"""

import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from keepers._packages import package_versions
from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers._wording import closest, some_of
from keepers.blocks.dask import selected_rows
from keepers.blocks.sources import as_blocks
from keepers.catalogue import find_method
from keepers.exceptions import (
    DataError,
    DataWarning,
    NoStructureWarning,
    ParameterError,
    shorten,
    warn_caller,
)
from keepers.linalg.reservoir import drawn_rows
from keepers.methods.auto import MOST_ROWS, AutoSelector
from keepers.methods.base import RankingSelector
from keepers.methods.control import read_control
from keepers.methods.parameters import FLAG, FeatureCount, check_value
from keepers.prepare.check import describe_counts
from keepers.tables.objects import (
    comes_in_blocks,
    from_store,
    is_anndata,
    is_dask,
    values_of,
)
from keepers.tables.table import NamedValues

__all__ = ["select"]

FEWEST_CELLS = 3
"""Of a batch: with fewer there are no neighbours to compare."""
# Batches share the rows that AutoSelector looks at, but have at least the second number each. In
# simulated counts of 8 batches (8 kinds of cells, 3,000 genes, three seeds) the first 100 genes
# separate the kinds as well with 250 cells a batch as with 1,000 (.51 and .43 of the best possible
# on average), in an eighth of the time.
ROWS_OF_BATCHES, FEWEST_DRAWN = 2000, 250
# Only the sentence about stability is kept, and two halves are enough for a mean over genes.
N_HALVES = 2
_KEY = "keepers"
_N_BATCHES = "keepers_n_batches"


def select(
    adata: Any,
    n_features: FeatureCount = None,
    *,
    layer: str | None = None,
    batch_key: str | None = None,
    exclude: str | None = None,
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
        "spcafs") take a file or a Dask array as it is, others take a file
        into memory.
    n_features : int, float in (0, 1] or None, default=None
        How many variables to keep, or which share. None: the number that `AutoSelector` finds
        enough; other methods keep half.
    layer : str or None, default=None
        Fit ``adata.layers[layer]`` instead of ``adata.X``.
    batch_key : str or None, default=None
        Column of ``adata.obs``. Variables are ranked within each batch, and the ranks are combined
        as ``scanpy.pp.highly_variable_genes`` does with ``flavor="seurat_v3_paper"``: variables
        that are among the first ``n_features`` of more batches come first, then those with the
        lower median rank in these batches, then by index. So what leads in all batches is kept. If
        ``n_features`` is None, the largest number that a batch needs is taken. Batches in which
        `AutoSelector` finds no structure do not count, unless it finds none in any batch.
    exclude : str or None, default=None
        Regular expression. Variables whose names match (``re.search``) are never kept and have no
        influence: ``r"^(MT-|RP[SL])"`` for mitochondrial and ribosomal genes of humans.
    subset : bool, default=False
        Keep the selected variables only, in place; the rest of ``adata`` follows.
    method : str or selector, default="auto"
        Name of a method (`keepers.all_selectors`, or as on the command line), or a selector with
        settings of its own, which is copied and not fitted itself. "auto" is `AutoSelector` with
        ``n_halves=2``.
    inplace : bool, default=True
        Write the result into ``adata``. False returns it and leaves ``adata`` as it is, a view a
        view.

    Returns
    -------
    DataFrame or None
        The columns below with ``inplace=False``, of the selected variables only with ``subset``;
        otherwise None, and these are set:

        ``adata.var["keepers_score"]`` : float
            Higher is better; the mean over the batches that count.
        ``adata.var["keepers_rank"]`` : float
            0 is the best, as in scanpy's ``highly_variable_rank``. With ``batch_key`` the median
            described there, NaN for a variable that is among the first in no batch.
        ``adata.var["keepers_selected"]`` : bool
            Whether the variable is kept.
        ``adata.var["keepers_n_batches"]`` : int
            With ``batch_key``: in how many batches it is among the first.
        ``adata.uns["keepers"]`` : dict
            How it was done: ``method``, ``params`` (without those that are None), ``n_features``,
            ``n_obs`` and ``n_obs_used`` (observations, and how many of them the method looked at),
            ``layer``, ``batch_key``, ``exclude``, ``batches_left_out`` (those without structure),
            ``summary`` and ``doubts`` where the method gives them, ``versions``. Plain values,
            which ``write_h5ad`` keeps.

    Raises
    ------
    DataError
        The values cannot be used, a layer or a column of obs is absent, or a batch is too small.

    Warns
    -----
    NoStructureWarning
        Nothing says which variables to keep, in the whole or in some batches.
    DataWarning
        The values are raw counts with a long tail, or ``exclude`` matches no variable.

    See Also
    --------
    keepers.AutoSelector : The default method; its ``fit`` accepts an AnnData object too.

    Notes
    -----
    `AutoSelector` looks at no more than 1,000 observations. With ``batch_key``, batches share 2,000
    (at least 250 each), and stability is not measured. Variables that do not vary within a batch
    are ranked last in it.

    Examples
    --------
    >>> import keepers.anndata
    >>> keepers.anndata.select(adata, 200, batch_key="donor")  # doctest: +SKIP
    >>> adata[:, adata.var["keepers_selected"]]  # doctest: +SKIP
    """
    _check(adata, subset=subset, inplace=inplace)
    asked = _selector(method, n_features)
    table = values_of(adata, layer)
    selector = asked if exclude is None else _without(asked, exclude, table.names)
    batches = None if batch_key is None else _batches(adata, batch_key)
    if not hasattr(selector, "fit_blocks"):
        table = NamedValues(from_store(table.values), table.names)
    if batches is None:
        result = _result_of(selector.fit(table), adata.n_obs)
    else:
        if isinstance(selector, AutoSelector):
            selector.set_params(n_halves=0)
            batches = _draw_rows(batches, selector)
        fitted = {
            name: _fit_batch(clone(selector), table, rows, name) for name, rows in batches.items()
        }
        result = _combine(fitted, sum(int(rows.sum()) for rows in batches.values()))
    _warn_of_raw_counts(table.values, layer)
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
    given = {"layer": layer, "batch_key": batch_key, "exclude": exclude}
    adata.uns[_KEY] = {
        **_description(asked, result),
        "n_obs": int(adata.n_obs),
        **{name: value for name, value in given.items() if value is not None},
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
    n_obs_used: int
    n_batches: IndexArray | None = None
    left_out: tuple[str, ...] = ()
    """Batches without structure."""

    def columns(self) -> dict[str, Any]:
        """The columns of var."""
        found: dict[str, Any] = {
            "keepers_score": self.scores,
            "keepers_rank": self.ranks,
            "keepers_selected": self.selected,
        }
        return found if self.n_batches is None else {**found, _N_BATCHES: self.n_batches}


def _check(adata: Any, *, subset: bool, inplace: bool) -> None:
    check_value("subset", subset, FLAG)
    check_value("inplace", inplace, FLAG)
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
        found = find_method(method).load()(n_features_to_select=n_features)
        return found.set_params(n_halves=N_HALVES) if isinstance(found, AutoSelector) else found
    if not isinstance(method, RankingSelector):
        raise ParameterError(
            "method must be the name of a method or a selector of keepers, such as "
            f"AutoSelector(); got {shorten(method)}."
        )
    selector = clone(method)
    return selector if n_features is None else selector.set_params(n_features_to_select=n_features)


def _without(selector: Any, pattern: str, names: Any) -> Any:
    """A copy of the selector that never keeps the variables whose names match."""
    if "never_keep" not in selector.get_params(deep=False):
        raise ParameterError(
            "exclude needs a method with never_keep, such as 'auto', 'spcafs' or 'fspca'; "
            f"{type(selector).__name__} has none. Select from adata[:, ~excluded] instead."
        )
    try:
        matches = np.array([re.search(pattern, str(name)) is not None for name in names])
    except (re.error, TypeError) as error:
        raise ParameterError(
            f"exclude must be a regular expression, such as '^MT-'; got {shorten(pattern)} "
            f"({error}). Put a backslash before characters that stand for themselves."
        ) from error
    if not matches.any():
        warn_caller(
            f"exclude={shorten(pattern)} matches none of the {len(names)} variables, such as "
            f"{some_of([repr(str(name)) for name in names[:3]])}. Upper and lower case differ: "
            "(?i) at the start of the pattern ignores that.",
            DataWarning,
        )
    never = read_control(len(names), names, never_keep=selector.never_keep).never
    return clone(selector).set_params(never_keep=never | matches)


def _warn_of_raw_counts(values: Any, layer: str | None) -> None:
    """Warn as the command does, by some of the rows."""
    some = values.blocks[0].compute() if is_dask(values) else values[:MOST_ROWS]
    X = sp.csc_array(some, dtype=np.float64)
    whole = np.ones(X.shape[1], dtype=bool)
    whole[X.tocoo().col[(X.data < 0) | (X.data != np.floor(X.data))]] = False
    sentence = describe_counts(whole, X.max(axis=0).toarray().ravel(), X.data)
    if sentence:
        where = "adata.X" if layer is None else f"adata.layers[{layer!r}]"
        warn_caller(
            f"{where}: {sentence}. Call scanpy.pp.normalize_total(adata) and "
            "scanpy.pp.log1p(adata) first, or name the layer that holds logarithms.",
            DataWarning,
        )


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


def _draw_rows(batches: dict[str, BoolArray], selector: Any) -> dict[str, BoolArray]:
    """Some observations of each batch: what AutoSelector looks at, shared among the batches."""
    most = min(MOST_ROWS, max(ROWS_OF_BATCHES // len(batches), FEWEST_DRAWN))
    seed = int(selector.random_generator().integers(2**63))
    drawn = {}
    for name, rows in batches.items():
        places = np.flatnonzero(rows)
        drawn[name] = np.zeros_like(rows)
        drawn[name][places[drawn_rows(len(places), most, seed)]] = True
    return drawn


def _fit_batch(selector: Any, table: NamedValues, rows: BoolArray, name: str) -> Any:
    """The selector, fitted to the rows of one batch."""
    chosen = _rows_of(table.values, rows)
    fit = selector.fit_blocks if callable(chosen) else selector.fit
    with warnings.catch_warnings():
        # Many variables are constant in some batch; missing structure is told of all batches.
        warnings.simplefilter("ignore", DataWarning)
        try:
            return fit(NamedValues(chosen, table.names))
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


def _warn_of_batches(without: tuple[str, ...], n_batches: int) -> None:
    listed = some_of([shorten(name) for name in without])
    if without:
        warn_caller(
            f"No structure found in {len(without)} of {n_batches} batches: {listed}. "
            + (
                "Their ranks are not counted."
                if len(without) < n_batches
                else "The ranking is about as good as a random one."
            ),
            NoStructureWarning,
        )


def _result_of(selector: Any, n_obs: int) -> _Result:
    return _Result(
        scores=selector.scores_,
        ranks=selector.ranking_.astype(np.float64) - 1.0,
        selected=selector.support_,
        summary=getattr(selector, "summary_", ""),
        doubts=getattr(selector, "doubts_", []),
        n_obs_used=int(getattr(selector, "n_rows_used_", n_obs)),
    )


def _combine(fitted: dict[str, Any], n_obs_used: int) -> _Result:
    """Batches in which a variable is among the first, then its median rank in these.

    Ranks of a batch without structure are random: it does not count, unless none has structure.
    """
    left_out = tuple(
        name for name, found in fitted.items() if not getattr(found, "structure_found_", True)
    )
    _warn_of_batches(left_out, len(fitted))
    if len(left_out) == len(fitted):
        left_out = ()
    selectors = [found for name, found in fitted.items() if name not in left_out]
    count = max(found.n_features_to_select_ for found in selectors)
    ranks = np.array([found.ranking_ - 1.0 for found in selectors])
    n_batches = (ranks < count).sum(axis=0)
    somewhere = n_batches > 0
    median = np.full(len(n_batches), np.nan)
    among = np.where(ranks < count, ranks, np.nan)
    median[somewhere] = np.nanmedian(among[:, somewhere], axis=0)
    order = np.lexsort((median, -n_batches))
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
        n_obs_used=n_obs_used,
        n_batches=n_batches,
        left_out=left_out,
    )


def _description(selector: Any, result: _Result) -> dict[str, Any]:
    """How a selection was made, as values that an .h5ad file can hold: no None, no empty list."""
    params = {name: _plain(value) for name, value in selector.get_params(deep=False).items()}
    described: dict[str, Any] = {
        "method": type(selector).__name__,
        "params": {name: value for name, value in params.items() if value is not None},
        "n_features": int(result.selected.sum()),
        "n_obs_used": result.n_obs_used,
        "versions": package_versions(),
    }
    if result.summary:
        described["summary"] = result.summary
    if result.doubts:
        described["doubts"] = np.array(result.doubts)
    if result.left_out:
        described["batches_left_out"] = np.array(result.left_out)
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
