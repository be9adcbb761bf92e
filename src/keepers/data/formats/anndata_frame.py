"""The layout that AnnData has in HDF5 and in Zarr: its data frames (obs, var), its sparse matrices.

Both libraries hand out groups and arrays with nearly the same methods. How a member is reached and
an array is read, with what has to be checked before, differs and is given.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from keepers.data.limits import refuse_columns
from keepers.data.values import as_names
from keepers.data.wording import closest, some_of
from keepers.exceptions import DataError, shorten

_USUAL_INDEX = "_index"
OLD_CATEGORIES = "__categories"
SPARSE_PARTS = ("data", "indices", "indptr")


@dataclass(frozen=True)
class StoredFrame:
    """obs or var of a file, as every version of anndata stored it."""

    node: Any
    member: Callable[[Any, str], Any]
    """(group, name) -> what lies there."""
    read: Callable[..., Any]
    """(array) -> its values; (array of records, field) -> those of the field."""

    @property
    def fields(self) -> list[str] | None:
        """Names of the columns if the frame is stored as one array of records."""
        names = getattr(getattr(self.node, "dtype", None), "names", None)
        return None if names is None else list(names)

    @property
    def index_name(self) -> str:
        """The column that holds the row names."""
        if self.fields is not None:  # anndata before 0.7: a table of records, row names first
            return self.fields[0]
        if is_group(self.node) and _USUAL_INDEX in self.node:
            return _USUAL_INDEX
        # Asked last: the HDF5 library believes any length that a damaged text attribute claims.
        if not is_group(self.node) or "_index" not in self.node.attrs:
            raise DataError(
                f"{shorten(self.node.name)} must be a data frame as anndata stores it; it names no "
                "column as its index. Read the file with anndata and write it again."
            )
        return _text(self.node.attrs["_index"])

    def refuse_absent(self, name: str) -> None:
        """Raise unless there is a column of this name."""
        shown = shorten(self.node.name)
        if self.fields is None and not is_group(self.node):
            raise DataError(f"{shown} must be a data frame; it is a plain array.")
        known = self.fields or sorted(key for key in self.node if key != OLD_CATEGORIES)
        if name not in known:
            raise DataError(
                f"There is no column {shorten(name)} in {shown}."
                f"{closest(name, known)} It holds {some_of([repr(key) for key in known])}."
            )

    def column(self, name: str) -> Any:
        """A column: plain, categorical, or nullable; a missing entry is None."""
        self.refuse_absent(name)
        if self.fields is not None:
            return self._with_categories_of_uns(name, self.read(self.node, name))
        node = self.member(self.node, name)
        if not is_group(node):
            values = self.read(node)
            if values.dtype.names is not None:
                raise DataError(
                    f"Column {shorten(name)} of {shorten(self.node.name)} is not a plain column."
                )
            if OLD_CATEGORIES in self.node and name in self.node[OLD_CATEGORIES]:  # anndata 0.7
                return self._categorical(values, self.node[OLD_CATEGORIES], name, name)
            return self._with_categories_of_uns(name, values)
        if "codes" in node:
            codes = self.read(self.member(node, "codes"))
            return self._categorical(codes, node, "categories", name)
        values = self.read(self.member(node, "values"))
        mask = self.read(self.member(node, "mask")).astype(bool)
        if mask.shape != values.shape:
            raise DataError(
                f"Column {shorten(name)} of {shorten(self.node.name)} is damaged: its mask does "
                "not fit."
            )
        return _missing_where(mask, values)

    def _categorical(self, codes: Any, holder: Any, part: str, name: str) -> Any:
        categories = self.read(self.member(holder, part))
        return _categories_by_code(codes, as_names(np.atleast_1d(categories), name), name)

    def _with_categories_of_uns(self, name: str, values: Any) -> Any:
        """Codes as the categories that anndata before 0.7 kept in uns, if it did; else as is."""
        key = f"{name}_categories"
        if values.dtype.kind not in "iu" or not hasattr(self.node, "parent"):
            return values
        uns = self.node.parent.get("uns")
        if not is_group(uns) or key not in uns:
            return values
        node = self.member(uns, key)
        if is_group(node):
            return values
        categories = as_names(np.atleast_1d(self.read(node)), key)
        # obs and var shared the name of the list: it may be the other's.
        if values.size and int(values.max()) >= len(categories):
            return values
        return _categories_by_code(values, categories, name)


def _categories_by_code(codes: Any, categories: Any, name: str) -> Any:
    fits = codes.dtype.kind in "biu" and codes.ndim == 1
    if not fits or (codes.size and int(codes.max()) >= len(categories)):
        raise DataError(
            f"The codes of column {shorten(name)} must be integers below its {len(categories)} "
            "categories; they are not: the file is damaged. Obtain or write it again."
        )
    missing = codes < 0
    if missing.all():
        return np.full(len(codes), None, dtype=object)
    return _missing_where(missing, categories[np.where(missing, 0, codes).astype(np.intp)])


def _missing_where(mask: Any, values: Any) -> Any:
    if not mask.any():
        return values
    holed = values.astype(object)
    holed[mask] = None
    return holed


def is_group(node: Any) -> bool:
    """Whether something in a file holds other things."""
    return hasattr(node, "keys")


def is_frame(node: Any) -> bool:
    """Whether a group holds the columns of a data frame."""
    return is_group(node) and (_USUAL_INDEX in node or _USUAL_INDEX in node.attrs)


def is_stored_sparse(node: Any) -> bool:
    """Whether a matrix is stored as the parts of a sparse one."""
    return is_group(node) and "indptr" in node


def sparse_layout(node: Any, pointers: Any) -> tuple[tuple[int, int], bool]:
    """The shape of a stored sparse matrix, and whether it is stored row by row."""
    shape = node.attrs.get("shape", node.attrs.get("h5sparse_shape"))
    n_rows, n_columns = (int(length) for length in np.asarray(shape).ravel())
    by_rows = pointers.shape == (n_rows + 1,)
    if n_rows == n_columns:
        kind = _text(node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", "")))
        if not kind.startswith(("csr", "csc")):
            raise DataError(
                "A square sparse X must say whether it is stored by rows (csr_matrix) or columns "
                f"(csc_matrix) in its attribute 'encoding-type'; here that is {shorten(kind)}. "
                "Write the file again with anndata."
            )
        by_rows = kind.startswith("csr")
    return (n_rows, n_columns), by_rows


def refuse_absent_parts(file: Any) -> None:
    """Raise unless there are X, obs and var."""
    absent = [part for part in ("X", "obs", "var") if part not in file]
    if absent:
        raise DataError(
            f"An AnnData file holds X, obs and var; this one has no {shorten(absent[0])}."
        )


def refuse_other_count(names: list[str], n_columns: int) -> None:
    """Raise unless var names every column of X."""
    refuse_columns(n_columns, "X")
    if len(names) != n_columns:
        raise DataError(
            f"var must name every column of X; it has {len(names)} names and X has {n_columns} "
            "columns: the file is damaged. Obtain or write it again."
        )


def _text(value: Any) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)
