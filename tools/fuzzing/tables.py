"""Odd tables, the files made of them, and whether what was read is what was written."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator

from keepers.exceptions import KeepersWarning

PLAIN = ("g{}", "gene {}", "ENSG{:05d}", "x{}")
ODD = (
    *("größe {}", "基因{}", "a,b {}", "p;q {}", 'say "{}"', "it's {}", "{} %", "μ±{}", "#{}"),
    *("-{}", "two\nlines {}", "a\tb {}", "\N{SLIGHTLY SMILING FACE}{}", "NA{}", "true {}"),
    *("=SUM({})", '5" {}'),
)
CLASSES = ("BL", "EWS", "größe", "a,b", 'say "x"', "p;q", "NA_", "True story", "-", "1a", "x\ny")


@dataclass(frozen=True)
class Case:
    """A file, what its writer was given, and how to ask for it."""

    writer: str
    path: Path
    X: Any
    names: list[str] | None = None
    samples: list[str] | None = None
    labels: Any = None
    arguments: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of `open_table`."""


@dataclass(frozen=True)
class Odd:
    """A table to be written."""

    X: np.ndarray[Any, Any]
    names: list[str]
    samples: list[str]
    labels: np.ndarray[Any, Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""
        return self.X.shape[0], self.X.shape[1]


def choose(rng: Generator, *options: Any) -> Any:
    """One of the options."""
    return options[int(rng.integers(len(options)))]


def chance(rng: Generator, probability: float) -> bool:
    """True, with this probability."""
    return bool(rng.random() < probability)


def odd_table(rng: Generator, *, missing: bool = True, kinds: tuple[str, ...] = ()) -> Odd:
    """A table of a random shape, kind of values and kind of names."""
    n_rows, n_columns = choose(rng, 1, 2, 3, 8, 21, 64, 65, 130), choose(rng, 1, 2, 3, 5, 9, 31)
    kind = choose(rng, *(kinds or ("f8", "f8", "f8", "scales", "whole", "f4", "i8", "u1", "bool")))
    X = values_of_kind(rng, (n_rows, n_columns), kind)
    if X.dtype.kind == "f" and n_rows > 2 and missing and chance(rng, 0.4):
        holes = rng.random(X.shape) < 0.15
        holes[int(rng.integers(n_rows))] = False  # a column without a value is refused
        X[holes] = np.nan
    return Odd(X, names(rng, n_columns), names(rng, n_rows, "s{}"), classes(rng, n_rows))


def values_of_kind(rng: Generator, shape: tuple[int, int], kind: str) -> np.ndarray[Any, Any]:
    """Random values; kind is a dtype or "scales" (all exponents) or "whole" (integral floats)."""
    if kind == "scales":
        X = np.asarray(rng.normal(size=shape) * 10.0 ** rng.integers(-320, 300, size=shape))
        X[rng.random(shape) < 0.1] = choose(rng, 0.0, -0.0, np.inf, -np.inf, 5e-324)
        return X
    if kind == "whole":
        return rng.integers(-(10**6), 10**6, size=shape).astype(float)
    dtype = np.dtype("?" if kind == "bool" else kind)
    if dtype.kind == "f":
        scale = 10.0 ** float(rng.integers(-3, 4))
        return np.asarray(rng.normal(size=shape) * scale, dtype=dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    info = np.iinfo(dtype)
    low, high = max(info.min, -(2**53)), min(info.max, 2**53)
    return rng.integers(low, high, size=shape, endpoint=True).astype(dtype)


def sparse_values(rng: Generator, kind: str = "f8") -> Any:
    """A CSR matrix whose outer columns are not empty."""
    shape = (choose(rng, 2, 3, 8, 21, 65), choose(rng, 2, 3, 5, 9, 31))
    X = np.where(rng.random(shape) < 0.3, values_of_kind(rng, shape, kind), 0)
    X[0, 0] = X[-1, -1] = 1
    return sp.csr_matrix(X.astype(np.float64 if kind == "f8" else kind))


def names(rng: Generator, count: int, plain: str | None = None) -> list[str]:
    """Names of which no two are alike."""
    if chance(rng, 0.5):
        pattern = plain or choose(rng, *PLAIN)
        return [pattern.format(at) for at in range(count)]
    return [choose(rng, *ODD).format(at) for at in range(count)]


def classes(rng: Generator, count: int) -> np.ndarray[Any, Any]:
    """Labels: integers, halves, or text of which the first is no number."""
    kind = int(rng.integers(3))
    if kind == 0:
        return rng.integers(-3, 4, size=count)
    if kind == 1:
        return np.asarray(rng.integers(-3, 4, size=count) / 2)
    return np.array([choose(rng, *CLASSES) for _ in range(count)], dtype=object)


def difference(case: Case, table: Any) -> str | None:
    """What a table in memory and the written one differ in, if they do."""
    found = values_difference(case.X, table.values)
    if found is None and case.names is not None:
        found = _list_difference("feature names", case.names, table.names)
    if found is None and case.samples is not None:
        found = _list_difference("sample names", case.samples, table.ids)
    if found is None and case.labels is not None:
        found = _list_difference("labels", np.asarray(case.labels).tolist(), table.labels)
    return found


def values_difference(given: Any, read: Any) -> str | None:
    """Where two matrices differ, if they do; missing values are alike, -0.0 and 0.0 are not."""
    has_signed_zeros = not sp.issparse(given) and not sp.issparse(read)
    given, read = (X.toarray() if sp.issparse(X) else np.asarray(X) for X in (given, read))
    if given.shape != read.shape:
        return f"shape {read.shape}, not {given.shape}"
    # Text holds the shortest number that single precision takes for the same.
    target = given.dtype if given.dtype.kind == "f" else np.dtype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        expected, got = given.astype(target), read.astype(target)
    alike = (expected == got) | (np.isnan(expected) & np.isnan(got))
    if has_signed_zeros:
        alike &= (np.signbit(expected) == np.signbit(got)) | np.isnan(expected)
    if alike.all():
        return None
    row, column = np.argwhere(~alike)[0].tolist()
    return f"value [{row}, {column}] is {read[row, column]!r}, not {given[row, column]!r}"


def _list_difference(what: str, given: list[Any], read: Any) -> str | None:
    if read is None:
        return f"{what} are absent"
    got = np.asarray(read).tolist()
    if len(got) != len(given):
        return f"{len(got)} {what}, not {len(given)}"
    for at, (one, other) in enumerate(zip(given, got, strict=True)):
        if one != other or isinstance(one, str) != isinstance(other, str):
            return f"{what}[{at}] is {other!r}, not {one!r}"
    return None


def stacked(blocks: Any) -> Any:
    """The rows of a table in blocks as one array."""
    parts = [block.values for block in blocks.blocks()] or [np.empty((blocks.n_samples, 0))]
    return np.vstack([part.toarray() if sp.issparse(part) else part for part in parts])


@contextmanager
def strict_warnings() -> Iterator[None]:
    """Ignore warnings of keepers and of casts of damaged values; any other is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("ignore", KeepersWarning)
        yield
