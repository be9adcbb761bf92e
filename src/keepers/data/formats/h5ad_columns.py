"""Some variables of an AnnData file as another file, with everything that belongs to them.

Groups that know nothing of the variables (obs, obsm, obsp, uns, raw) are copied as they are. X,
layers, var, varm and varp are cut, block by block where they are large, in the types and with the
compression they have: anndata is not needed, and what it adds to its files one day comes along.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keepers._packages import optional
from keepers._protocols import IndexArray
from keepers.data.blocks.local import BLOCK_BYTES
from keepers.data.formats.anndata_frame import (
    OLD_CATEGORIES,
    is_frame,
    is_group,
    is_stored_sparse,
)
from keepers.data.formats.h5ad import (
    STARTS_AT_ONCE,
    anndata_layout,
    checked_parts,
    row_cuts,
    sound_starts,
    variable_names,
)
from keepers.data.formats.hdf5 import (
    bands,
    open_hdf5,
    own_member,
    read_dataset,
    refuse_false_text,
    refuse_short_chunks,
    refuse_unsound,
)
from keepers.data.limits import SizeLimit
from keepers.data.table import ReadRequest
from keepers.exceptions import DataError, shorten

_AXES = {"X": (1,), "layers": (1,), "var": (0,), "varm": (0,), "varp": (0, 1)}
"""Which axes of an array are the variables, by the member of the file that holds it."""
_HOLDERS = ("layers", "varm", "varp")
_PARTS_OF_COLUMNS = ("codes", "values", "mask")
"""Of categorical and nullable columns: one entry a row. Their categories stay."""
_SPARSE_SHAPES = ("shape", "h5sparse_shape")


def copy_h5ad_columns(source: Path, target: Path, names: Sequence[str]) -> None:
    """Write the variables of these names, in this order, and all that goes with them."""
    with open_hdf5(source) as file, optional("h5py", ".h5ad files").File(target, "w") as copied:
        refuse_false_text(file)
        cutter = _Cutter.of(file, names)
        _copy_attributes(file, copied)
        for key in file:
            node = own_member(file, key)
            if key not in _AXES:
                file.copy(node, copied, key)
            elif key in _HOLDERS and is_group(node):
                holder = copied.create_group(key)
                _copy_attributes(node, holder)
                for name in node:
                    cutter.cut(own_member(node, name), holder, name, _AXES[key])
            else:
                cutter.cut(node, copied, key, _AXES[key])
        _restore_references(file, copied)


@dataclass(frozen=True)
class _Cutter:
    """The variables that are kept, and how many there are."""

    columns: IndexArray
    n_variables: int
    request: ReadRequest

    @classmethod
    def of(cls, file: Any, names: Sequence[str]) -> "_Cutter":
        request = ReadRequest(limit=SizeLimit.of(None))
        known = variable_names(file, request)
        position = {name: at for at, name in enumerate(known)}
        absent = [name for name in names if name not in position]
        if absent:
            raise DataError(
                f"It has no variable {shorten(absent[0])}; it was changed since it was read. Run "
                "the selection again."
            )
        columns = np.array([position[name] for name in names], dtype=np.intp)
        return cls(columns, len(known), request)

    def cut(self, node: Any, parent: Any, name: str, axes: tuple[int, ...]) -> None:
        """Write a member with the kept variables only."""
        if not is_group(node):
            self._cut_array(node, parent, name, axes)
        elif is_stored_sparse(node):
            self._cut_sparse(node, parent, name, axes)
        elif is_frame(node) or any(part in node for part in _PARTS_OF_COLUMNS):
            group = parent.create_group(name)
            _copy_attributes(node, group)
            for key in node:
                member = own_member(node, key)
                if key == OLD_CATEGORIES or not (is_frame(node) or key in _PARTS_OF_COLUMNS):
                    node.copy(member, group, key)
                else:
                    self.cut(member, group, key, axes)
        else:
            kind = shorten(node.attrs.get("encoding-type", "a group"))
            raise DataError(
                f"{shorten(node.name)} is stored as {kind}, of which columns cannot be taken. "
                "Remove it from the file, or write another format than .h5ad."
            )

    def _cut_array(self, node: Any, parent: Any, name: str, axes: tuple[int, ...]) -> None:
        if node.shape is None:  # nothing is stored: None, as anndata writes it
            node.parent.copy(node, parent, name)
            return
        self._refuse_other_length(node.name, node.shape, axes)
        if axes != (1,):
            values = read_dataset(node, self.request)
            for axis in axes:
                values = np.take(values, self.columns, axis=axis)
            _create_like(node, parent, name, values.shape)[...] = values
            return
        refuse_unsound(node, SizeLimit(2**62))  # read in blocks, whatever the size of the whole
        refuse_short_chunks(node)
        made = _create_like(node, parent, name, self._kept_shape(node.shape, axes))
        for start, stop in bands(range(node.shape[0]), node):
            made[start:stop] = node[start:stop][:, self.columns]

    def _cut_sparse(self, node: Any, parent: Any, name: str, axes: tuple[int, ...]) -> None:
        layout = anndata_layout(node)
        shape, by_rows = layout.shape, layout.by_rows
        self._refuse_other_length(node.name, shape, axes)
        parts = checked_parts(node, ReadRequest(limit=SizeLimit(2**62)), layout)
        for part in parts.values():
            refuse_short_chunks(part)
        major, minor = (0, 1) if by_rows else (1, 0)
        group = parent.create_group(name)
        _copy_attributes(node, group)
        for key in _SPARSE_SHAPES:
            if key in node.attrs:
                kept = np.asarray(self._kept_shape(shape, axes))
                group.attrs[key] = kept.astype(np.asarray(node.attrs[key]).dtype)
        made = {
            key: _create_like(parts[key], group, key, (0,), grows=True)
            for key in ("data", "indices")
        }
        pointers = [np.zeros(1, dtype=np.int64)]
        for first, lengths in self._stretches(parts, major in axes):
            entries = slice(first, first + int(lengths.sum()))
            data, indices = parts["data"][entries], parts["indices"][entries]
            if minor in axes:
                data, indices, lengths = self._of_kept(data, indices, lengths, shape[minor])
            for key, values in (("data", data), ("indices", indices)):
                before = made[key].shape[0]
                made[key].resize((before + len(values),))
                made[key][before:] = values
            pointers.append(pointers[-1][-1] + np.cumsum(lengths))
        starts = np.concatenate(pointers)
        _create_like(parts["indptr"], group, "indptr", starts.shape)[...] = starts

    def _stretches(self, parts: dict[str, Any], some: bool) -> Iterator[tuple[int, Any]]:
        """Where entries begin, and how many the rows (or columns) from there on have.

        Of the kept ones only, one at a time, if the axis along which they are stored is cut.
        """
        n_major = parts["indptr"].shape[0] - 1
        if some:
            starts = sound_starts(parts, 0, n_major)
            for at in self.columns:
                yield int(starts[at]), np.diff(starts[at : at + 2])
            return
        entry_bytes = parts["data"].dtype.itemsize + parts["indices"].dtype.itemsize
        for first in range(0, n_major, STARTS_AT_ONCE):
            starts = sound_starts(parts, first, min(first + STARTS_AT_ONCE, n_major))
            for top, bottom in row_cuts(starts, max(1, BLOCK_BYTES // entry_bytes)):
                yield int(starts[top]), np.diff(starts[top : bottom + 1])

    def _of_kept(self, data: Any, indices: Any, lengths: Any, n_minor: int) -> tuple[Any, Any, Any]:
        """The entries at kept variables, with their new indices, in order."""
        if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < n_minor:
            raise DataError(
                f"The indices of a sparse matrix must lie from 0 to {n_minor - 1}; here they do "
                "not: the file is damaged. Obtain or write it again."
            )
        place = np.full(n_minor, -1, dtype=np.int64)
        place[self.columns] = np.arange(len(self.columns))
        found = place[indices]
        kept = np.flatnonzero(found >= 0)
        rows = np.repeat(np.arange(len(lengths)), lengths)[kept]
        order = np.lexsort((found[kept], rows))
        counts = np.bincount(rows, minlength=len(lengths))
        return data[kept][order], found[kept][order], counts

    def _kept_shape(self, shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(len(self.columns) if at in axes else n for at, n in enumerate(shape))

    def _refuse_other_length(self, name: str, shape: tuple[int, ...], axes: Sequence[int]) -> None:
        if len(shape) <= max(axes) or any(shape[axis] != self.n_variables for axis in axes):
            raise DataError(
                f"{shorten(name)} must have an entry for each of the {self.n_variables} variables; "
                f"its shape is {shape}: the file is damaged. Obtain or write it again."
            )


def _create_like(
    node: Any, parent: Any, name: str, shape: tuple[int, ...], *, grows: bool = False
) -> Any:
    """An empty array of another shape with the type, the filters and the attributes of one."""
    settings: dict[str, Any] = {}
    if node.chunks is not None and (grows or 0 not in shape):
        settings = {
            "chunks": tuple(
                chunk if grows else min(chunk, length)
                for chunk, length in zip(node.chunks, shape, strict=True)
            ),
            "compression": node.compression,
            "compression_opts": node.compression_opts,
            "shuffle": node.shuffle,
            "fletcher32": node.fletcher32,
        }
        settings["maxshape"] = tuple(
            None if longest is None else length
            for longest, length in zip(node.maxshape, shape, strict=True)
        )
    if grows:
        settings["maxshape"] = (None,)
    made = parent.create_dataset(name, shape=shape, dtype=node.dtype, **settings)
    _copy_attributes(node, made)
    return made


def _copy_attributes(node: Any, made: Any) -> None:
    for key in node.attrs:
        stored = node.attrs.get_id(key)
        if not _holds_reference(stored.dtype):
            made.attrs.create(key, node.attrs[key], shape=stored.shape, dtype=stored.dtype)


def _restore_references(file: Any, copied: Any) -> None:
    """Point attributes that refer to another member, as those of anndata 0.7 do, to its copy."""

    def look(name: str, node: Any) -> None:
        for key in node.attrs:
            if _holds_reference(node.attrs.get_id(key).dtype) and node.attrs[key]:
                copied[name].attrs[key] = copied[file[node.attrs[key]].name].ref

    file.visititems(look)


def _holds_reference(dtype: Any) -> bool:
    return optional("h5py", ".h5ad files").check_ref_dtype(dtype) is not None
