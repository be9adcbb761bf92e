"""A fitted selection and what is written of it: kept columns, report, recipe, scores."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from keepers.cli.console import progress_line
from keepers.cli.options import limit_threads
from keepers.cli.prepared import PreparedData, complete_part
from keepers.cli.reading import ReadingOptions
from keepers.data.formats.text import text_line
from keepers.data.replacing import whole_file
from keepers.data.table import LabelledTable
from keepers.data.table_files import copy_features, write_selected
from keepers.preparation.prepared_blocks import LearnedBlocks
from keepers.preparation.table_preparer import TablePreparer
from keepers.recipe import Recipe, checksum, moments_checksum
from keepers.selection import Selection
from keepers.selectors.certificate import Certificate


@dataclass(frozen=True)
class FittedData(ABC):
    """A selection, and the table it was made on."""

    selection: Selection
    preparer: TablePreparer
    options: tuple[str, ...]
    """What the user left open, as options of the command."""
    notes: Sequence[str]
    """What was found and done before the fit."""

    @property
    def kept_names(self) -> list[str]:
        """The kept features, in the order of the table."""
        names = self.selection.feature_names
        return [str(names[column]) for column in self.selection.columns]

    @property
    @abstractmethod
    def rows(self) -> LabelledTable:
        """The rows that pictures are drawn of: all, or those drawn from a table in blocks."""

    @abstractmethod
    def checksum(self) -> str:
        """What the table is recognised by."""

    @abstractmethod
    def write_kept(self, data: str, out: Path, reading: ReadingOptions, *, force: bool) -> None:
        """Write the kept columns as they are in the table, but with gaps filled if asked for."""

    def write_report(
        self,
        path: Path,
        image_shape: tuple[int, int] | None,
        image_order: Literal["C", "F"],
        command: str,
        loading: Sequence[str] | None,
        certificate: Certificate | None,
        *,
        force: bool,
    ) -> None:
        """Write the report; ``command`` repeats the selection, ``loading`` is the same in Python,
        as far as the table.
        """
        from keepers.reporting.selection_report import SelectionReport

        SelectionReport.of(
            self.selection,
            sample_names=self.rows.sample_names,
            labels=self.rows.labels,
            image_shape=image_shape,
            image_order=image_order,
            command=command,
            notes=self.notes,
            set_aside=self.preparer.set_aside_,
            loading=loading,
            certificate=certificate,
        ).save(path, force=force)

    def write_recipe(self, path: Path, reading: ReadingOptions, *, force: bool) -> None:
        """Write what `keepers apply` needs."""
        preparation = {
            "id": reading.id,
            "labels": reading.labels,
            "drop": list(reading.drop or ()),
            "transpose": reading.transpose,
            "make_unique": reading.make_unique,
            "preparer": self.preparer.to_dict(self.kept_names),
        }
        Recipe.of(self.selection, self.checksum(), preparation).save(path, force=force)

    def write_scores(self, path: Path, *, force: bool) -> None:
        """Write every column with its rank, score and the reason why it was kept or not."""
        heading = ("feature", "rank", "score", "kept", "reason")
        lines = [text_line(heading, ",")]
        lines += [text_line(row, ",") for row in self.score_rows()]
        with whole_file(path, force=force) as temporary:
            temporary.write_text("\n".join([*lines, ""]), encoding="utf-8", errors="replace")

    def score_rows(self) -> list[tuple[str, ...]]:
        """Rows of the file of scores: features by rank, then the columns that were set aside."""
        selection = self.selection
        rows: list[tuple[str, ...]] = [
            (each.name, str(rank), repr(each.score), "yes", "kept")
            for rank, each in enumerate(selection.kept, 1)
        ]
        for rank, each in enumerate(selection.dropped, selection.k + 1):
            rows.append((each.name, str(rank), repr(each.score), "no", each.why))
        rows += [
            (name, "", "", "no", f"set aside: {why}")
            for name, why in self.preparer.set_aside_.items()
        ]
        return rows


def certificate_of(
    selection: Selection, asked: bool | None, *, threads: int | None, quiet: bool
) -> Certificate | None:
    """The certificate of a selection if it is asked for, or left open and of use."""
    wanted = selection.seeks_variance if asked is None else asked
    if not wanted:
        return None
    what = f"certifying {selection.k} of {selection.n_features} features"
    with progress_line(what, quiet=quiet), limit_threads(threads):
        return selection.certificate


@dataclass(frozen=True)
class FittedInMemory(FittedData):
    """A selection on a table in memory."""

    prepared: PreparedData

    @property
    def rows(self) -> LabelledTable:
        """All rows."""
        return self.prepared.table

    def checksum(self) -> str:
        """Of the values and names."""
        return checksum(self.prepared.table.X, self.prepared.table.feature_names)

    def write_kept(self, data: str, out: Path, reading: ReadingOptions, *, force: bool) -> None:
        """Write the kept columns."""
        source = self.preparer.fill_source(self.prepared.source)
        whole = source is self.prepared.source and not reading.transpose
        same_rows = whole and not (
            reading.sample
            or reading.drop_samples
            or reading.drop_zero_rows
            or self.preparer.missing == "drop-rows"
        )
        write_selected(
            out,
            data if same_rows else "",
            source,
            self.kept_names,
            identifier_name=reading.id or "sample",
            label_name=reading.labels or "label",
            force=force,
        )


@dataclass(frozen=True)
class FittedInBlocks(FittedData):
    """A selection on a table that was read in blocks."""

    learned: LearnedBlocks
    drawn: LabelledTable
    """The drawn rows as numbers."""

    @property
    def rows(self) -> LabelledTable:
        """The drawn rows."""
        return self.drawn

    def checksum(self) -> str:
        """Of the moments."""
        return moments_checksum(self.selection)

    def write_kept(self, data: str, out: Path, reading: ReadingOptions, *, force: bool) -> None:
        """Write the kept columns, block after block."""
        fills = self.preparer.missing != "error"
        copy_features(
            self.learned.source,
            out,
            self.kept_names,
            change=self._prepare_block if fills else None,
            identifier_name=reading.id or "sample",
            label_name=reading.labels or "label",
            force=force,
        )

    def _prepare_block(self, table: LabelledTable) -> LabelledTable | None:
        if self.preparer.missing == "drop-rows":
            return complete_part(self.preparer, table)
        return self.preparer.fill_source(table)
