"""Tables out: the format by the suffix, and either the whole file or none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers.data.formats.registry import FORMATS, format_of
from keepers.data.replacing import check_target, whole_file
from keepers.data.table import WrittenTable
from keepers.data.wording import first_line
from keepers.exceptions import DataError, KeepersError, ParameterError, shortened

__all__ = ["check_writable", "whole_file", "write_table"]


def write_table(
    path: str | Path,
    X: Any,
    feature_names: Any,
    sample_names: Any = None,
    labels: Any = None,
    *,
    identifier_name: str = "sample",
    label_name: str = "label",
    force: bool = False,
) -> Path:
    """Write a table to a file whose suffix tells the format.

    Nothing is seen under ``path`` before all of it is written; if writing fails, what was there
    stays. In CSV and TSV, text that a spreadsheet could take for a formula (names and text labels
    that begin with ``= + - @``, tab or carriage return, and are no numbers) gets an apostrophe in
    front. Numbers are written with as many digits as it takes to read back the same number.

    Parameters
    ----------
    path : str or Path
        .csv, .tsv, .parquet, .feather, .npz and .h5ad hold everything; .svmlight holds values and
        numeric labels; .npy and .mtx hold the values alone. Text formats may end in .gz, .bz2,
        .xz or .zst as well.
    X : array or sparse matrix of shape (n_samples, n_features)
        Values.
    feature_names, sample_names, labels : sequences or None
        Names of columns and rows, and classes.
    identifier_name, label_name : str
        What the columns of sample names and labels are called.
    force : bool
        Replace the file if it exists.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ParameterError
        The file exists, or is a folder or a device, or cannot be written in this format.
    KeepersError
        Writing failed: the disk is full, or the folder is read-only.
    """
    path = Path(path)
    title, write = _writer(path)
    table = _check_table(X, feature_names, sample_names, labels, identifier_name, label_name)
    with whole_file(path, force=force) as temporary:
        try:
            write(temporary, table, path.name)
        except (KeepersError, OSError):
            raise
        except Exception as error:
            raise DataError(
                f"{path.name} could not be written as {title}: {first_line(error)}. "
                "Choose another format."
            ) from error
    return path


def check_writable(path: str | Path) -> None:
    """Raise if no table can be written to ``path``: before long work, not after it.

    An existing file is no obstacle here; `write_table` asks for ``force`` then.
    """
    _writer(Path(path))
    check_target(path, force=True)


def _writer(path: Path) -> tuple[str, Callable[[Path, WrittenTable, str], None]]:
    """What the format of ``path`` is called, and the function that writes it."""
    file_format = format_of(path)
    if file_format is None or file_format.write is None:
        known = ", ".join(kind.suffixes[0] for kind in FORMATS if kind.write is not None)
        raise ParameterError(
            f"The suffix of a written table tells its format, one of {known}; got "
            f"{shortened(path.name)}."
        )
    return file_format.title, file_format.write


def _check_table(
    X: Any,
    feature_names: Any,
    sample_names: Any,
    labels: Any,
    identifier_name: str,
    label_name: str,
) -> WrittenTable:
    X = sp.csr_matrix(X) if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise DataError(
            f"A written table has two dimensions and real numbers; got {X.ndim} and {X.dtype}."
        )
    names = [str(name) for name in feature_names]
    samples = None if sample_names is None else [str(name) for name in sample_names]
    classes = None if labels is None else np.asarray(labels)
    for what, values, expected in (
        ("feature_names", names, X.shape[1]),
        ("sample_names", samples, X.shape[0]),
        ("labels", classes, X.shape[0]),
    ):
        if values is not None and len(values) != expected:
            raise DataError(f"{what} must have {expected} entries; got {len(values)}.")
    added = [identifier_name] * (samples is not None) + [label_name] * (classes is not None)
    columns = [*added, *names]
    if len(set(columns)) < len(columns):
        raise ParameterError(
            f"Column names must differ; with {', '.join(map(shortened, added)) or 'the features'} "
            "some are duplicates. Choose another identifier_name or label_name, or rename features."
        )
    return WrittenTable(X, names, samples, classes, identifier_name, label_name)
