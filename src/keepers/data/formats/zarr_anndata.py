"""AnnData in Zarr (a folder .zarr, as adata.write_zarr writes it), versions 2 and 3 of the format.

Zarr finds the code that expands an array by a name in the file, and one of the names is "pickle",
which runs what the file says. Only codecs that do nothing but expand are let through.
"""

import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from keepers._packages import optional
from keepers.data.formats.anndata_frame import (
    SPARSE_PARTS,
    StoredFrame,
    is_group,
    is_stored_sparse,
    refuse_absent_parts,
    refuse_other_count,
    sparse_layout,
)
from keepers.data.formats.stored_sparse import build_compressed
from keepers.data.limits import SizeLimit
from keepers.data.table import LabelledTable, Matrix, ReadRequest, to_table
from keepers.data.values import as_names
from keepers.data.wording import some_of
from keepers.exceptions import DataError, shorten

# fmt: off
_CODECS = frozenset({
    "adler32", "astype", "bitround", "blosc", "bytes", "bz2", "crc32", "crc32c", "delta", "endian",
    "fixedscaleoffset", "gzip", "lz4", "lzma", "packbits", "quantize", "sharding_indexed",
    "shuffle", "transpose", "vlen-bytes", "vlen-utf8", "zlib", "zstd",
})
# fmt: on
"""Those of Zarr and numcodecs that hold numbers and text."""


def read_zarr(path: Path, request: ReadRequest) -> LabelledTable:
    """Read X with the names of obs and var; labels and sample names are columns of obs."""
    zarr = optional("zarr", "Zarr folders")
    with warnings.catch_warnings():
        # Zarr warns of parts of the format that other programs may not know; these are only read.
        warnings.simplefilter("ignore")
        store = zarr.open_group(str(path), mode="r")
        refuse_absent_parts(store)
        read = partial(_read_array, request.limit)
        obs, var = (StoredFrame(store[part], _member, read) for part in ("obs", "var"))
        names = list(as_names(var.column(var.index_name), "var"))
        X = _read_matrix(store["X"], request.limit)
        refuse_other_count(names, X.shape[1])
        samples = obs.column(request.identifier or obs.index_name)
        labels = None if request.labels is None else obs.column(request.labels)
    return to_table(Matrix(X, names, samples, labels), request, path.name.removesuffix(".zarr"))


def _member(group: Any, name: str) -> Any:
    return group[name]


def _read_matrix(node: Any, limit: SizeLimit) -> Any:
    if not is_stored_sparse(node):
        return _read_array(limit, node)
    shape, by_rows = sparse_layout(node, node["indptr"])
    data, indices, pointers = (_read_array(limit, node[part]) for part in SPARSE_PARTS)
    return build_compressed(data, indices, pointers, shape, by_rows=by_rows, what="X")


def _read_array(limit: SizeLimit, node: Any, field: str | None = None) -> Any:
    """All values of an array, whose size and codecs were seen to be sound."""
    if is_group(node):
        raise DataError(f"{shorten(node.name)} must be an array; it is a group.")
    strange = sorted(set(_codec_names(node.metadata.to_dict())) - _CODECS)
    if strange:
        raise DataError(
            f"Array {shorten(node.name)} must be stored with codecs that hold numbers or text; it "
            f"needs {some_of([repr(name) for name in strange])}. Write it again with anndata."
        )
    what = f"array {shorten(node.name)}"
    itemsize = max(int(node.dtype.itemsize), 8)
    limit.refuse_shape(node.shape, itemsize, what)
    limit.refuse_past(itemsize * int(np.prod(node.chunks, dtype=object)), f"A chunk of {what}")
    values = node[...] if field is None else node[...][field]
    values = np.asarray(values)
    return values.astype(object) if values.dtype.kind == "T" else values


def _codec_names(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Names of what expands an array, in the words of versions 2 and 3; codecs may be nested."""
    found = [metadata.get("compressor"), *(metadata.get("filters") or ())]
    found += metadata.get("codecs") or ()
    found += metadata.get("index_codecs") or ()
    for codec in filter(None, found):
        name = codec.get("id") or codec.get("name")
        yield str(name).removeprefix("numcodecs.")
        yield from _codec_names(codec.get("configuration") or {})
