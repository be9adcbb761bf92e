"""Plain HDF5 files: which of their arrays is the table, and reading it whole."""

from pathlib import Path
from typing import Any

from keepers.data.columns import Matrix, numbered_names, to_table
from keepers.data.formats.hdf5 import hard_linked, open_hdf5, read_dataset, refuse_unsound
from keepers.data.formats.hdf5_chunks import refuse_short_chunks
from keepers.data.limits import SizeLimit
from keepers.data.request import ReadRequest
from keepers.data.table import LabelledTable
from keepers.data.wording import closest, listed
from keepers.exceptions import DataError, shortened

__all__ = ["find_matrix", "is_vector", "member", "names_of", "read_hdf5"]

VALUES_ARRAY = "X"
LABEL_ARRAYS = ("y", "labels", "label", "target")
_PANDAS_VALUES, _PANDAS_NAMES = "_values", "_items"


def read_hdf5(path: Path, request: ReadRequest) -> LabelledTable:
    """Read the array X, or the only matrix, and y (or labels, label, target) if it is there."""
    with open_hdf5(path) as file:

        def first_vector(*names: str | None) -> Any:
            found = [name for name in names if name is not None and is_vector(file, name)]
            return read_dataset(member(file, found[0]), request) if found else None

        node = find_matrix(file, request.dataset, request.limit)
        usual = LABEL_ARRAYS if request.labels is None else ()
        matrix = Matrix(
            read_dataset(node, request),
            feature_names=names_of(node),
            sample_names=first_vector(request.identifier),
            labels=first_vector(request.labels, *usual),
        )
    return to_table(matrix, request, path.stem)


def find_matrix(file: Any, name: str | None, limit: SizeLimit) -> Any:
    """The array of values: the named one, else X, else the only one with two dimensions."""
    node = _only_matrix(file) if name is None else member(file, name)
    refuse_unsound(node, limit)
    if node.ndim != 2:
        raise DataError(
            f"A table has two dimensions (samples, features); {shortened(node.name)} has "
            f"{node.ndim}. "
            "Reshape it, or name another array (dataset=)."
        )
    return node


def member(file: Any, name: str) -> Any:
    """What stands at a path in the file; links to other files are not followed."""
    node = file
    for part in name.strip("/").split("/"):
        if not hasattr(node, "keys") or part not in node:
            known = list(_matrices(file))
            raise DataError(
                f"There is no array {shortened(name)}.{closest(name, known)} With two dimensions "
                "there are "
                f"{listed([repr(key) for key in known]) or 'none'}."
            )
        node = hard_linked(node, part)
    return node


def is_vector(file: Any, name: str) -> bool:
    """Whether an array of one dimension, or of one column, stands there: labels, say."""
    if name not in file:
        return False
    shape = getattr(member(file, name), "shape", None)
    return shape is not None and (len(shape) == 1 or (len(shape) == 2 and shape[1] == 1))


def names_of(node: Any) -> list[str]:
    """Names of the columns: pandas stores them beside the values of a frame."""
    name = str(node.name).rpartition("/")[2]
    beside = name.removesuffix(_PANDAS_VALUES) + _PANDAS_NAMES
    if name.endswith(_PANDAS_VALUES) and beside in node.parent:
        names = hard_linked(node.parent, beside)
        if getattr(names, "shape", None) == node.shape[1:] and names.dtype.kind == "S":
            refuse_short_chunks(names)
            return [text.decode("utf-8", errors="replace") for text in names[()].tolist()]
    return numbered_names(node.shape[1])


def _only_matrix(file: Any) -> Any:
    found = _matrices(file)
    if VALUES_ARRAY in found:
        return found[VALUES_ARRAY]
    wide = [node for node in found.values() if node.shape[1] != 1] or list(found.values())
    if len(wide) == 1:
        return wide[0]
    told = listed(
        [f"{shortened(name)} ({' x '.join(map(str, node.shape))})" for name, node in found.items()]
    )
    raise DataError(
        f"A file must hold an array {VALUES_ARRAY} or one array of numbers with two dimensions, or "
        f"its name must be given (dataset=); this one holds {told or 'none'}. Name one, or "
        f"store the values as {VALUES_ARRAY}."
    )


def _matrices(file: Any) -> dict[str, Any]:
    """All two-dimensional arrays of numbers in a file, in whatever group."""
    import h5py

    found = {}

    def look(name: str, node: Any) -> None:
        is_array = isinstance(node, h5py.Dataset) and node.shape is not None
        if is_array and node.ndim == 2 and node.dtype.kind in "biuf":
            found[name] = node

    file.visititems(look)  # follows no link to another file, and no circle
    return found
