"""What `keepers select` does with tables that are read in blocks, here or on a cluster."""

import glob
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keepers._protocols import BlockTable, IndexArray, RowBlock
from keepers.cli.console import waiting
from keepers.cli.fitting import showing_steps
from keepers.cli.output import KeptFeature
from keepers.cli.selecting import Selection
from keepers.data.blocks.as_blocks import ArrayBlocks
from keepers.data.blocks.local import LocalBlocks
from keepers.data.dask_blocks import DaskBlocks
from keepers.data.dask_cluster import dask_client
from keepers.data.opening import open_blocks, open_table
from keepers.exceptions import ParameterError

__all__ = ["BlockRequest", "select_in_blocks"]

PARTS_PER_WORKER = 4
SECONDS_BETWEEN = 0.2


@dataclass(frozen=True)
class BlockRequest:
    """How a table is to be read: in which memory, by whom."""

    memory: str | None
    workers: int | None
    scheduler: str | None
    checkpoint: Path | None

    def concerns(self, data: str) -> bool:
        """Whether this table is to be read in blocks."""
        asked = (self.memory, self.workers, self.scheduler, self.checkpoint)
        if any(setting is not None for setting in asked):
            return True
        return os.path.isdir(data) or (not os.path.exists(data) and glob.has_magic(data))

    def refuse(self, method: str, k: int | None, scaling: str, files: dict[str, Any]) -> None:
        """Raise for what only a table in memory can give."""
        if method.lower() != "spcafs":
            raise ParameterError(
                f"Only --method spcafs reads a table in blocks; {method} has to hold it in memory. "
                "Name a single file, without --memory, --workers, --scheduler or --checkpoint."
            )
        if k is None:
            raise ParameterError(
                "A table read in blocks needs -k: choosing the number of features takes many fits "
                "in memory. `keepers tune` on a sample of the rows gives one."
            )
        if scaling != "raw":
            raise ParameterError(
                f"--scale {scaling} needs the table in memory. For features of equal variance use "
                "--set scaling=1."
            )
        for option, path in files.items():
            if path is not None:
                raise ParameterError(
                    f"{option} needs the table in memory, and this one is read in blocks. Use "
                    "--save, and `keepers apply` on each file, or on a sample."
                )


@dataclass(frozen=True)
class BlockSelection(Selection):
    """From a table that was read in blocks."""

    source: BlockTable

    @property
    def name(self) -> str:
        """Name of the table."""
        return self.source.name

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""
        return self.selector.n_samples_seen_, self.source.n_features

    def checksum(self) -> str:
        """Of names, number of rows, means and variances: the values are not read again."""
        told = [[str(name) for name in _names(self.source)], self.selector.n_samples_seen_]
        digest = hashlib.sha256(json.dumps(told).encode())
        for values in (self.selector.mean_, self.selector.var_):
            digest.update(np.ascontiguousarray(values).data)
        return f"moments:{digest.hexdigest()}"


def select_in_blocks(
    data: str,
    selector: Any,
    request: BlockRequest,
    *,
    roles: dict[str, Any],
    decide: Callable[[Any, Sequence[str]], None],
    threads: int | None,
    quiet: bool,
    debug: bool,
) -> BlockSelection:
    """Open, fit, and describe each kept feature. ``decide`` is told the names of the features."""
    with waiting(f"opening {data}", quiet=quiet):
        local = _opened(data, roles)
    decide(selector, [str(name) for name in _names(local)])
    selector.set_params(memory_limit=request.memory, checkpoint=request.checkpoint)
    on_cluster = request.workers is not None or request.scheduler is not None
    cluster = (
        dask_client(request.scheduler, request.workers, show_log=debug)
        if on_cluster
        else nullcontext()
    )
    began = time.perf_counter()
    with (
        cluster as client,
        showing_steps(selector, f"reading {local.name}", threads=threads, quiet=quiet) as show,
    ):
        source: BlockTable = WatchedBlocks(local, show)
        if client is not None:
            n_workers = max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
            source = DaskBlocks.of_parts(local.parts(PARTS_PER_WORKER * n_workers), local.name)
        selector.fit_blocks(source)
    seconds = time.perf_counter() - began
    top = selector.top()
    names = _names(local)
    kept = tuple(
        KeptFeature(
            column=int(column),
            name=str(names[column]),
            score=float(top.scores[rank]),
            variance=float(selector.var_[column]),
            neighbour=None,
            correlation=float("nan"),
        )
        for rank, column in enumerate(top.indices)
    )
    share = float(selector.var_[top.indices].sum() / selector.var_.sum())
    return BlockSelection("raw", selector, kept, share, seconds, local)


def _opened(data: str, roles: dict[str, Any]) -> LocalBlocks:
    if os.path.exists(data) or glob.has_magic(data) or Path(data).suffix:
        return open_blocks(data, **roles)
    table = open_table(data, **roles)  # a bundled or catalogued set, by its name
    return ArrayBlocks(table.X, table.name, table.feature_names)


def _names(source: BlockTable) -> Sequence[Any]:
    if source.feature_names is not None:
        return list(source.feature_names)
    return [f"x{column}" for column in range(source.n_features)]


class WatchedBlocks(LocalBlocks):
    """A table that tells how far its reading is."""

    def __init__(self, watched: LocalBlocks, show: Callable[[str], None]) -> None:
        self._watched = watched
        self._show = show
        self._n_passes = 0
        for fact in ("name", "n_features", "dtype", "n_samples", "n_stored", "is_sparse"):
            setattr(self, fact, getattr(watched, fact))
        self.rereadable = watched.rereadable
        self.feature_names = watched.feature_names

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        """The blocks of the table."""
        self._n_passes += 1
        n_rows, last_shown = 0, 0.0
        for block in self._watched.blocks(columns):
            yield block
            n_rows += block.values.shape[0]
            now = time.monotonic()
            if now - last_shown > SECONDS_BETWEEN:
                self._show(f"pass {self._n_passes}: {self._so_far(n_rows)}")
                last_shown = now

    def _so_far(self, n_rows: int) -> str:
        if self.n_samples is None:
            return f"{n_rows:,} rows of {self.name}"
        return f"{n_rows:,} of {self.n_samples:,} rows ({n_rows / self.n_samples:.0%})"
