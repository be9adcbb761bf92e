"""Fits of `keepers select` to tables that are read in blocks, here or on a cluster."""

import glob
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keepers._protocols import BlockTable, IndexArray, RowBlock
from keepers.cli.console import as_unicode, progress_line
from keepers.cli.fit import (
    choose_open,
    fit_progress,
    methods_that,
    refuse_noise,
    told_of_choice,
)
from keepers.cli.fitted import FittedInBlocks
from keepers.cli.prepared import all_findings, refuse_transposed_blocks, say_notes
from keepers.cli.reading import ReadingOptions
from keepers.data.blocks.local import LocalBlocks
from keepers.data.dask_blocks import DaskBlocks
from keepers.data.dask_cluster import dask_client
from keepers.data.limits import as_n_bytes
from keepers.data.table_files import open_blocks, open_table
from keepers.exceptions import ParameterError
from keepers.preparation.prepared_blocks import (
    LearnedBlocks,
    PreparedBlocks,
    learn_from_blocks,
    learn_from_table,
)
from keepers.preparation.table_check import TableCheck, check_facts
from keepers.preparation.table_preparer import TablePreparer
from keepers.selection import describe_fit
from keepers.selectors.block_tables import ROUTES
from keepers.selectors.parameters import check_choice

PARTS_PER_WORKER = 4
SECONDS_BETWEEN = 0.2


@dataclass(frozen=True)
class BlockRequest:
    """How a table is to be read in blocks: with how much memory, by which workers."""

    memory: str | None
    workers: int | None
    scheduler: str | None
    checkpoint: Path | None
    route: str | None


def refuse_in_memory(
    selector: Any,
    request: BlockRequest,
    scaling: str,
    reading: ReadingOptions,
    *,
    certify: bool | None,
) -> None:
    """Refuse what only a table in memory, or only another method, can give."""
    name, settings = type(selector).__name__, selector.get_params()
    if not hasattr(selector, "fit_blocks"):
        able = methods_that(lambda method: hasattr(method, "fit_blocks"))
        raise ParameterError(
            f"The methods that read a table in blocks are {able}; {name} has to hold it in memory. "
            "Use rows of it (--sample 5000), or name a single file, without --memory, --workers, "
            "--scheduler, --checkpoint or --route."
        )
    if request.checkpoint is not None and "checkpoint" not in settings:
        if "route" in settings:
            raise ParameterError(
                f"--checkpoint is for methods that can resume a fit; {name} cannot. Leave it out, "
                "or use --method spcafs."
            )
        raise ParameterError(
            f"--checkpoint is for a fit that reads the table many times; {name} reads it once, so "
            "there is nothing to resume. Leave it out, or use --method spcafs."
        )
    if request.route is not None:
        if "route" not in settings:
            raise ParameterError(
                f"--route is for a fit that can read the table in several ways; {name} reads it "
                "once, whatever its size. Leave it out, or use --method spcafs."
            )
        check_choice("--route", request.route, ("auto", *ROUTES))
    if "scaling" in settings:
        refuse_scaling(scaling, "For features of equal variance use --set scaling=1.")
    refuse_scaling(scaling)
    refuse_other_rows(reading)
    if certify:
        raise ParameterError(
            "--certify needs the table in memory; this one is read in blocks. Write the kept "
            "features (--save recipe.json), then: keepers certify DATA --features recipe.json."
        )


def refuse_scaling(
    scaling: str, way_out: str = "Use rows of it (--sample 5000), or scale the files first."
) -> None:
    """Raise if a table in blocks is to be scaled."""
    if scaling != "raw":
        raise ParameterError(f"--scale {scaling} needs the table in memory. {way_out}")


def refuse_other_rows(reading: ReadingOptions) -> None:
    """Raise if the rows of a table in blocks are to be columns, or some of them left out."""
    refuse_transposed_blocks(reading.transpose)
    if reading.drop_samples or reading.drop_zero_rows:
        raise ParameterError(
            "--drop-samples and --drop-zero-rows need the table in memory. Use rows of it "
            "(--sample 5000), or leave them out of the files."
        )


def fit_in_blocks(
    data: str,
    selector: Any,
    settings: dict[str, Any],
    request: BlockRequest,
    reading: ReadingOptions,
    decide: Callable[[Sequence[str]], None],
    *,
    seed: int,
    threads: int | None,
    quiet: bool,
    debug: bool,
) -> FittedInBlocks:
    """Learn, prepare, fit and describe. ``decide`` gets the names of the features."""
    prepared = prepare_blocks(data, reading, quiet=quiet)
    learned, preparer, local = prepared.learned, prepared.preparer, prepared.local
    notes = prepared.notes(type(selector).__name__)
    say_notes(notes, quiet=quiet)
    names = [str(name) for name in preparer.get_feature_names_out()]
    decide(names)
    drawn = preparer.prepare(learned.sample)
    choice = choose_open(selector, settings, drawn, seed=seed, threads=threads, quiet=quiet)
    if request.memory is not None:
        as_n_bytes(request.memory, "--memory")  # refused where it is no size, whoever takes it
    limits = {
        "memory_limit": request.memory,
        "route": request.route or "auto",
        "checkpoint": request.checkpoint,
    }
    taken = selector.get_params()
    selector.set_params(**{name: limits[name] for name in limits if name in taken})
    on_cluster = request.workers is not None or request.scheduler is not None
    cluster = (
        dask_client(request.scheduler, request.workers, show_log=debug)
        if on_cluster
        else nullcontext()
    )
    began = time.perf_counter()
    with (
        cluster as client,
        fit_progress(selector, f"reading {local.name}", threads=threads, quiet=quiet) as show,
    ):
        source: BlockTable = WatchedBlocks(local, show)
        if client is not None:
            n_workers = max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
            source = DaskBlocks.of_parts(local.parts(PARTS_PER_WORKER * n_workers), local.name)
        selector.fit_blocks(source)
    seconds = time.perf_counter() - began
    refuse_noise(selector, local.name)
    selection = describe_fit(
        selector,
        drawn.X,
        names,
        source=as_unicode(local.name),
        n_samples=int(selector.n_samples_seen_),
        **told_of_choice(choice, seconds),
    )
    options = () if choice is None else choice.options
    return FittedInBlocks(selection, preparer, options, notes, learned, drawn)


@dataclass(frozen=True)
class PreparedBlockData:
    """A table in blocks, as it was read and as a selector takes it."""

    learned: LearnedBlocks
    preparer: TablePreparer
    check: TableCheck
    local: PreparedBlocks
    """Numbers only."""

    def notes(self, method: str = "") -> list[str]:
        """What there is to say before a selection by the class of this name."""
        return [*self.check.to_say(method, log=self.preparer.log), *self.preparer.notes_]


def prepare_blocks(data: str, reading: ReadingOptions, *, quiet: bool) -> PreparedBlockData:
    """Look at all rows of a table once, and find how its columns become numbers."""
    learned = _learn(data, reading, quiet=quiet)
    kinds: Any = reading.asked_kinds
    preparer = TablePreparer(missing=reading.missing, kinds=kinds, log=reading.log)  # type: ignore[arg-type]
    check = check_facts(learned.facts, learned.sample, kinds)
    with all_findings(check, data, reading):
        preparer.fit_facts(learned.facts)
    local = PreparedBlocks(learned.source, preparer, is_fitted_table=True)
    return PreparedBlockData(learned, preparer, check, local)


def _learn(data: str, reading: ReadingOptions, *, quiet: bool) -> LearnedBlocks:
    """One pass over a table: what its columns are, and some of its rows."""
    with progress_line(f"looking at {data}", quiet=quiet) as show:
        if os.path.exists(data) or glob.has_magic(data) or Path(data).suffix:
            source = open_blocks(data, **reading.roles(), mixed=True)
            return learn_from_blocks(source, lambda n: show(f"looking at {data}: {n:,} rows"))
        table = open_table(data, **reading.roles())  # a bundled or catalogued set, by its name
        return learn_from_table(table)


class WatchedBlocks(LocalBlocks):
    """A table that shows how much of it was read."""

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
        return self._watch(self._watched.blocks(columns))

    def blocks_after(
        self, n_rows: int, columns: IndexArray | None = None
    ) -> Iterator[RowBlock] | None:
        """The blocks after the first ``n_rows`` rows; None if no block ends there."""
        rest = self._watched.blocks_after(n_rows, columns)
        return None if rest is None else self._watch(rest, n_rows)

    def identity(self) -> str | None:
        """That of the table."""
        return self._watched.identity()

    def _watch(self, blocks: Iterator[RowBlock], n_rows: int = 0) -> Iterator[RowBlock]:
        self._n_passes += 1
        last_shown = 0.0
        for block in blocks:
            yield block
            n_rows += block.values.shape[0]
            now = time.monotonic()
            if now - last_shown > SECONDS_BETWEEN:
                self._show(f"pass {self._n_passes}: {self._rows_read(n_rows)}")
                last_shown = now

    def _rows_read(self, n_rows: int) -> str:
        if self.n_samples is None:
            return f"{n_rows:,} rows of {self.name}"
        return f"{n_rows:,} of {self.n_samples:,} rows ({n_rows / self.n_samples:.0%})"
