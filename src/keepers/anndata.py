"""AnnData objects, as scanpy users expect: the selection is written into ``adata.var``.

`select` takes the place of ``scanpy.pp.highly_variable_genes``, with the same arguments where it
does the same. anndata is not imported: any object with its attributes will do.
"""

import re
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from keepers._packages import package_versions
from keepers._protocols import BoolArray
from keepers._wording import some_of
from keepers.catalogue import find_method
from keepers.exceptions import (
    DataError,
    DataWarning,
    NoStructureWarning,
    ParameterError,
    shorten,
    warn_caller,
)
from keepers.linalg.ordering import drawn_rows
from keepers.methods.auto import MOST_ROWS, AutoSelector
from keepers.methods.base import RankingSelector
from keepers.methods.parameters import FeatureCount, read_control
from keepers.prepare.check import describe_counts
from keepers.tables.objects import from_store, is_anndata, is_dask, values_of
from keepers.tables.table import NamedValues, refuse_absent

__all__ = ["select"]

FEWEST_CELLS = 3
"""Fewest cells of a batch; fewer have no neighbours to compare."""
# Batches share the rows that AutoSelector looks at, but have at least the second number each. In
# simulated counts of 8 batches (8 kinds of cells, 3,000 genes, three seeds) the first 100 genes
# separate the kinds as well with 250 cells a batch as with 1,000 (.51 and .43 of the best possible
# on average), in an eighth of the time.
ROWS_OF_BATCHES, FEWEST_DRAWN = 2000, 250
# Only the sentence about stability is kept, and two halves are enough for a mean over genes.
N_HALVES = 2
_N_BATCHES = "keepers_n_batches"


def select(
    adata: Any,
    n_features: FeatureCount = None,
    *,
    layer: str | None = None,
    batch_key: str | None = None,
    exclude: str | None = None,
    method: str | RankingSelector = "auto",
    inplace: bool = True,
) -> Any:
    """Select the variables of an AnnData object that are worth keeping; no labels are used.

    Parameters
    ----------
    adata : AnnData
        Observations are samples, variables are features. X, or the layer, may be dense, sparse,
        backed by a file or a Dask array; it is not changed. Batches are read into memory.
    n_features : int, float in (0, 1] or None, default=None
        Number or share of variables to keep. With None, `AutoSelector` chooses the number; other
        methods keep half.
    layer : str or None, default=None
        Fit ``adata.layers[layer]`` instead of ``adata.X``.
    batch_key : str or None, default=None
        Column of ``adata.obs``. Variables are ranked within each batch, and the ranks are combined
        as ``scanpy.pp.highly_variable_genes`` does with ``flavor="seurat_v3_paper"``: variables
        among the first ``n_features`` of more batches come first, then those with the lower median
        rank. If ``n_features`` is None, the batch that needs the most variables sets it. Batches
        without structure do not count, unless no batch has structure.
    exclude : str or None, default=None
        Regular expression. Variables whose names match (``re.search``) are never kept and have no
        influence: ``r"^(MT-|RP[SL])"`` for mitochondrial and ribosomal genes of humans.
    method : str or selector, default="auto"
        Name of a method, as on the command line, or a selector with your settings (a copy of it is
        fitted). "auto" is `AutoSelector` with ``n_halves=2``.
    inplace : bool, default=True
        Write the result into ``adata``. False returns the result and does not change ``adata``.

    Returns
    -------
    DataFrame or None
        With ``inplace=False``, the columns below. Otherwise None, and these fields are set:

        ``adata.var["keepers_score"]`` : float
            Higher is better; the mean over the batches that count.
        ``adata.var["keepers_rank"]`` : float
            0 is the best, as in scanpy's ``highly_variable_rank``. With ``batch_key``, the median
            rank; NaN if the variable is not among the first in any batch.
        ``adata.var["keepers_selected"]`` : bool
            Whether the variable is kept.
        ``adata.var["keepers_n_batches"]`` : int
            With ``batch_key``: the number of batches in which it is among the first.
        ``adata.uns["keepers"]`` : dict
            The settings, ``n_obs_used`` (number of observations used), ``batches_left_out``
            (without structure), ``summary``, ``doubts`` and ``versions``. ``write_h5ad`` keeps
            these values.

    Warns
    -----
    NoStructureWarning
        No variable shows structure, in all observations or in some batches.
    DataWarning
        The values are raw counts with a long tail, or ``exclude`` matches no variable.

    Notes
    -----
    `AutoSelector` uses at most 1,000 observations. With ``batch_key``, it uses 2,000 in total and
    at least 250 of each batch, and stability is not measured.

    Examples
    --------
    >>> import keepers.anndata
    >>> keepers.anndata.select(adata, 200, batch_key="donor")  # doctest: +SKIP
    >>> adata[:, adata.var["keepers_selected"]]  # doctest: +SKIP
    """
    if not is_anndata(adata):
        raise ParameterError(
            f"keepers.anndata.select takes an AnnData object; got {shorten(type(adata).__name__)}. "
            "For other tables use keepers.AutoSelector().fit(X)."
        )
    asked = _selector(method, n_features)
    table = values_of(adata, layer)
    selector = asked if exclude is None else _without(asked, exclude, table.names)
    batches = {"": np.ones(adata.n_obs, dtype=bool)}
    if batch_key is not None:
        batches = _batches(adata, batch_key)
        if isinstance(selector, AutoSelector):
            selector = clone(selector).set_params(n_halves=0)
            batches = _draw_rows(batches, selector)
    fitted = {name: _fit(clone(selector), table, rows, name) for name, rows in batches.items()}
    left_out = [] if batch_key is None else _batches_without_structure(fitted)
    counted = [found for name, found in fitted.items() if name not in left_out]
    columns = _columns_of(counted, in_batches=batch_key is not None)
    _warn_of_raw_counts(table.values, layer)
    if not inplace:
        return adata.var[[]].assign(**columns)
    if _N_BATCHES in adata.var:
        del adata.var[_N_BATCHES]  # of an earlier call
    for name, values in columns.items():
        adata.var[name] = values
    named = [(f"{name}: " if name else "", found) for name, found in fitted.items()]
    texts = [(start, getattr(found, "summary_", "")) for start, found in named]
    doubts = [start + doubt for start, found in named for doubt in getattr(found, "doubts_", [])]
    used = [getattr(fitted[name], "n_rows_used_", rows.sum()) for name, rows in batches.items()]
    record: dict[str, Any] = {
        "method": type(asked).__name__,
        "params": _plain(asked.get_params(deep=False)),
        "n_features": int(columns["keepers_selected"].sum()),
        "n_obs": int(adata.n_obs),
        "n_obs_used": int(sum(used)),
        "layer": layer,
        "batch_key": batch_key,
        "exclude": exclude,
        "batches_left_out": np.array(left_out),
        "summary": "\n".join(start + text for start, text in texts if text),
        "doubts": np.array(doubts),
        "versions": package_versions(),
    }
    # A file holds no None and no empty list.
    adata.uns["keepers"] = {
        name: v for name, v in record.items() if v is not None and np.size(np.asarray(v))
    }
    return None


def _selector(method: Any, n_features: FeatureCount) -> Any:
    """A new unfitted selector."""
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
    refuse_absent([key], [str(name) for name in adata.obs])
    batch_of = adata.obs[key]
    n_missing = int(batch_of.isna().sum())
    if n_missing:
        raise DataError(
            f"Every observation needs a batch; {n_missing} of obs[{shorten(key)}] are missing. "
            "Fill them in, or leave those observations out."
        )
    names = batch_of.astype(str).to_numpy()
    batches = {name: names == name for name in sorted(set(names))}
    sizes = {name: int(rows.sum()) for name, rows in batches.items() if rows.sum() < FEWEST_CELLS}
    small = [f"{shorten(name)} ({size})" for name, size in sizes.items()]
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


def _fit(selector: Any, table: NamedValues, rows: BoolArray, batch: str) -> Any:
    """The selector, fitted to all rows or to those of a batch."""
    values = table.values
    if not batch:
        values = values if hasattr(selector, "fit_blocks") else from_store(values)
        return selector.fit(NamedValues(values, table.names))
    values = values[np.flatnonzero(rows)]
    with warnings.catch_warnings():
        # Many variables are constant in some batch; missing structure is reported once for all.
        warnings.simplefilter("ignore", DataWarning)
        try:
            return selector.fit(NamedValues(values, table.names))
        except DataError as error:
            raise DataError(f"In batch {shorten(batch)}: {error}") from error


def _batches_without_structure(fitted: dict[str, Any]) -> list[str]:
    """Batches whose ranks are random and do not count, after a warning; none if all are."""
    without = [n for n, found in fitted.items() if not getattr(found, "structure_found_", True)]
    if not without:
        return []
    all_are = len(without) == len(fitted)
    rest = "The ranking is about as good as a random one." if all_are else ""
    names = some_of([shorten(name) for name in without])
    warn_caller(
        f"No structure found in {len(without)} of {len(fitted)} batches: {names}. "
        f"{rest or 'Their ranks are not counted.'}",
        NoStructureWarning,
    )
    return [] if all_are else without


def _columns_of(selectors: list[Any], *, in_batches: bool) -> dict[str, Any]:
    """Variables by the batches in which they are among the first, then by median rank."""
    if not in_batches:
        (found,) = selectors
        columns = {"keepers_score": found.scores_, "keepers_rank": found.ranking_ - 1.0}
        return {**columns, "keepers_selected": found.support_}
    count = max(found.n_features_to_select_ for found in selectors)
    ranks = np.array([found.ranking_ - 1.0 for found in selectors])
    n_batches = (ranks < count).sum(axis=0)
    somewhere = n_batches > 0
    median = np.full(len(n_batches), np.nan)
    among = np.where(ranks < count, ranks, np.nan)
    median[somewhere] = np.nanmedian(among[:, somewhere], axis=0)
    selected = np.zeros(len(median), dtype=bool)
    selected[np.lexsort((median, -n_batches))[:count]] = True
    return {
        "keepers_score": np.mean([found.scores_ for found in selectors], axis=0),
        "keepers_rank": median,
        "keepers_selected": selected,
        _N_BATCHES: n_batches,
    }


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as numbers, texts or arrays of them; other objects as text, None left out."""
    arrays = {name: np.asarray(value) for name, value in settings.items() if value is not None}
    return {
        name: array[()] if array.size and array.dtype.kind in "biufU" else shorten(settings[name])
        for name, array in arrays.items()
    }
