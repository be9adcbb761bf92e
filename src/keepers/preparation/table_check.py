"""`check_table`: all there is to know of a table before a selection, with what helps."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from keepers._protocols import FloatArray, IndexArray
from keepers.data.mixed import as_mixed_table
from keepers.data.table import LabelledTable
from keepers.data.wording import some_of
from keepers.linalg.moments import variance_span
from keepers.linalg.near_duplicates import similar_columns
from keepers.preparation.column_kinds import ColumnKind, Kind, count_gaps, kinds_in_order
from keepers.preparation.facts import TableFacts

NEARLY_ONE = 0.99
UNIT_FREE = ("AutoSelector", "DenoisedLaplacian")
"""Methods that do not depend on the units of columns."""
_SAID = (
    *("orientation", "zero rows", "outliers", "counts", "infinite values"),
    *("duplicates", "near duplicates"),
)
_FEWEST_ROWS = 20
_FEWEST_ALIKE = 10
"""In fewer rows, columns go together by chance."""
_FEWEST_MEASURED = 5
_MOST_COLUMNS = 1000
_MOST_VALUES, _MOST_DENSE = 2**21, 2**25
_LARGEST_SHARE = 0.5
_FEWEST_COUNTED, _FEWEST_LARGE = 50, 5
_LARGE_COUNT, _LONG_TAIL = 30, 20
_BRIGHTEST = 255
"""The largest value of an image, which counts nothing."""


@dataclass(frozen=True)
class Finding:
    """One thing to know of a table."""

    about: str
    """What it concerns: "orientation", "identifiers", "gaps", ..."""
    sentence: str
    option: str = ""
    """The option of the command that acts on it; empty if nothing needs to be done."""
    columns: tuple[str, ...] = ()
    matters: bool = True
    """Whether its option belongs to the command that is proposed."""

    def __str__(self) -> str:
        return f"{self.sentence} [{self.option}]" if self.option else self.sentence


@dataclass(frozen=True)
class TableCheck:
    """What `check_table` found."""

    name: str
    n_rows: int
    n_columns: int
    kinds: Mapping[str, ColumnKind]
    findings: tuple[Finding, ...]

    @property
    def summary(self) -> str:
        """Size and kinds of columns in a sentence."""
        counts: dict[Kind, int] = {}
        for kind in self.kinds.values():
            counts[kind.kind] = counts.get(kind.kind, 0) + 1
        told = ", ".join(f"{n} {_called(kind, n)}" for kind, n in counts.items())
        return f"{self.name}: {self.n_rows:,} rows, {self.n_columns:,} columns ({told})."

    @property
    def options(self) -> list[str]:
        """The options of all findings, as they are given to the command."""
        return [finding.option for finding in self.findings if finding.option]

    def to_say(self, method: str = "", *, log: bool = False) -> list[str]:
        """Findings that matter to a selection by the class of this name, beside what was done.

        With ``log``, logarithms have been taken, and need not be recommended.
        """
        said = [finding for finding in self.findings if finding.about in _SAID]
        if log:
            said = [finding for finding in said if finding.about != "counts"]
        if method and method not in UNIT_FREE:
            said += [finding for finding in self.findings if finding.about == "units"]
        return [str(finding) for finding in said]

    def command(self, data: str) -> str:
        """The command line that acts on the findings; ``data`` as the shell takes it."""
        return " ".join(["keepers select", data, *self.needed()])

    def needed(self, given: Sequence[str] = ()) -> list[str]:
        """The options that act on what matters, but for those that were given."""
        options = [f.option for f in self.findings if f.option and f.matters]
        return [option for option in options if option.split()[0] not in given]

    def __str__(self) -> str:
        lines = [self.summary]
        lines += [f"- {finding}" for finding in self.findings]
        return "\n".join(lines if self.findings else [*lines, "Nothing to do."])


def _called(kind: Kind, count: int) -> str:
    plural = {
        "number": "numbers",
        "boolean": "yes or no",
        "category": "categories",
        "ordered": "ordered categories",
        "date": "dates",
        "identifier": "identifiers",
        "text": "free text",
        "empty": "empty",
        "drop": "left out",
    }
    singular = {"number": "number", "category": "category", "date": "date"}
    singular["identifier"] = "identifier"
    return plural[kind] if count != 1 else singular.get(kind, plural[kind])


def check_table(X: Any, *, name: str = "table") -> TableCheck:
    """Look at a table once and say all there is to know before a selection.

    Parameters
    ----------
    X : data frame, array, sparse matrix or LabelledTable
        The table.
    name : str
        What it is called.

    Returns
    -------
    TableCheck
        ``findings``, each with the option of the command that acts on it; ``str()`` shows them.

    Examples
    --------
    >>> import pandas as pd
    >>> from keepers import check_table
    >>> bikes = pd.DataFrame({
    ...     "instant": range(1, 41),
    ...     "dteday": [f"2011-01-{1 + day % 28:02d}" for day in range(40)],
    ...     "temp": [0.2 + 0.01 * (day % 7) for day in range(40)],
    ...     "count": [980.0 * (1 + day % 5) for day in range(40)],
    ... })
    >>> print(check_table(bikes, name="bikes"))
    bikes: 40 rows, 4 columns (1 identifier, 1 date, 2 numbers).
    - Identifier, set aside: 'instant' (distinct integers in order, 1 to 40). [--id instant]
    - Dates, set aside: 'dteday' (dates as text). Seconds as a feature: --as dteday=number.
    - Variances span a factor of 5e+09 ('temp' to 'count'): the columns have different units. \
The default method does not mind; for others: [--scale standardize-features]
    """
    table = as_mixed_table(X, name=name)
    return check_facts(TableFacts.of(table), table)


def check_facts(
    facts: TableFacts, table: LabelledTable, asked: Mapping[str, Kind] | None = None
) -> TableCheck:
    """The findings of a table of which one pass told these facts.

    Of ``table`` only names are looked at, so that it may be a part of the whole.
    """
    kinds = kinds_in_order(facts, asked)
    sample, rows = facts.sample, facts.sample_rows
    if sp.issparse(sample):  # of a wide one fewer rows, which are made dense
        step = -(-sample.shape[0] * sample.shape[1] // _MOST_DENSE) or 1
        sample, rows = sample[::step].toarray(), rows[::step]
    dense = np.asarray(sample, dtype=np.float64)
    features = [at for at, name in enumerate(facts.feature_names) if kinds[name].is_feature]
    names = [facts.feature_names[at] for at in features]
    X = dense if len(features) == dense.shape[1] else dense[:, features]
    findings = [
        *_orientation(facts, kinds, X, table),
        *_set_aside(kinds),
        *_texts(kinds),
        *_gaps(facts, kinds),
        *_constant(facts, kinds),
        *_similar(X, names, facts, features),
        *_units(facts, features, names),
        *_zero_rows(facts, kinds),
        *_outliers(X, table, rows, facts.n_rows),
        *_counts(facts, features, X),
    ]
    n_columns = len(facts.feature_names) + len(facts.texts)
    return TableCheck(table.name, facts.n_rows, n_columns, kinds, tuple(findings))


def _quoted(names: Sequence[str]) -> str:
    return some_of([repr(name) for name in names])


def _option(option: str, names: Sequence[str]) -> str:
    """An option with names, as the shell takes it; patterns and commas would be read otherwise."""
    plain = [name for name in names if not any(mark in name for mark in ",*?[")]
    return f"{option} {shlex.quote(','.join(plain))}" if plain else ""


def _orientation(
    facts: TableFacts, kinds: Mapping[str, ColumnKind], X: FloatArray, table: LabelledTable
) -> list[Finding]:
    """Rows that are features: many rows with names of their own, columns all of one kind."""
    n_columns = X.shape[1]
    first = next((name for name, text in facts.texts.items() if text.position == 0), None)
    named_by = first if first and kinds[first].why.endswith("distinct text") else None
    if table.sample_names is not None and named_by is None:
        some = [str(name) for name in table.sample_names[:100]]
        named_by = "" if not all(word.lstrip("-").isdigit() for word in some) else None
    far_more = facts.n_rows >= max(5 * n_columns, 50)
    if named_by is None or n_columns < 3 or not far_more or len(kinds) > n_columns + 5:
        return []
    low, middle, high = np.quantile(_filled(X), [0.25, 0.5, 0.75], axis=0)
    spread = high - low
    if not np.all(np.isfinite(spread)) or float(np.median(spread)) <= 0.0:
        return []
    narrow, wide = np.quantile(spread, [0.1, 0.9])
    if wide > 5.0 * narrow or np.ptp(middle) > 3.0 * float(np.median(spread)):
        return []
    rows = f"named by {named_by!r}" if named_by else "named in the first column"
    sentence = (
        f"Features seem to be rows: {facts.n_rows:,} rows, {rows}, of {n_columns} columns that "
        "all hold the same kind of values. If so:"
    )
    repeated = named_by and kinds[named_by].why.startswith("nearly")
    option = "--transpose --make-unique" if repeated else "--transpose"
    return [Finding("orientation", sentence, option)]


def _set_aside(kinds: Mapping[str, ColumnKind]) -> list[Finding]:
    findings = []
    identifiers = [kind for kind in kinds.values() if kind.kind == "identifier"]
    if identifiers:
        told = some_of([f"{kind.name!r} ({kind.why})" for kind in identifiers])
        called = "Identifier" if len(identifiers) == 1 else "Identifiers"
        findings.append(
            Finding(
                "identifiers",
                f"{called}, set aside: {told}.",
                f"--id {shlex.quote(identifiers[0].name)}",
                tuple(kind.name for kind in identifiers),
            )
        )
    dates = [kind for kind in kinds.values() if kind.kind == "date"]
    if dates:
        told = some_of([f"{kind.name!r} ({kind.why})" for kind in dates])
        example = shlex.quote(f"{dates[0].name}=number")
        sentence = f"Dates, set aside: {told}. Seconds as a feature: --as {example}."
        findings.append(Finding("dates", sentence, "", tuple(kind.name for kind in dates)))
    empty = [kind.name for kind in kinds.values() if kind.kind == "empty"]
    if empty:
        sentence = f"Columns without a value, set aside: {_quoted(empty)}."
        findings.append(Finding("empty columns", sentence, _option("--drop", empty), tuple(empty)))
    free = [kind for kind in kinds.values() if kind.kind == "text"]
    if free:
        told = some_of([f"{kind.name!r} ({kind.why})" for kind in free])
        names = tuple(kind.name for kind in free)
        few = next((kind.name for kind in free if "more than" not in kind.why), None)
        way_out = f" As a category: --as {shlex.quote(f'{few}=category')}." if few else ""
        sentence = f"Free text, set aside: {told}.{way_out}"
        findings.append(Finding("free text", sentence, _option("--drop", names), names))
    return findings


def _texts(kinds: Mapping[str, ColumnKind]) -> list[Finding]:
    findings = []
    categories = [k for k in kinds.values() if k.kind == "category" and not k.asked]
    if categories:
        told = some_of([f"{k.name!r} ({k.why})" for k in categories])
        sentence = f"Categories, each one feature: {told}. If one holds classes: --labels."
        names = tuple(k.name for k in categories)
        findings.append(Finding("categories", sentence, "", names, matters=False))
    told_kinds: tuple[tuple[Kind, str], ...] = (
        ("boolean", "Yes or no, as 1 and 0"),
        ("ordered", "Ordered, as 0, 1, 2, ..."),
    )
    for kind, about in told_kinds:
        named = tuple(k.name for k in kinds.values() if k.kind == kind and not k.asked)
        if named:
            sentence = f"{about}: {_quoted(named)}."
            findings.append(Finding(_called(kind, 2), sentence, "", named, matters=False))
    numbers = [k for k in kinds.values() if k.why == "numbers as text"]
    if numbers:
        words = sorted({word for k in numbers for word in k.words_as_gaps})
        gaps = f"; {_quoted(words)} as gaps" if words else ""
        names = tuple(k.name for k in numbers)
        sentence = f"Numbers stored as text, read as numbers: {_quoted(names)}{gaps}."
        findings.append(Finding("numbers as text", sentence, "", names))
    return findings


def _gaps(facts: TableFacts, kinds: Mapping[str, ColumnKind]) -> list[Finding]:
    counted = count_gaps(facts, list(kinds.values()))
    gaps = counted.by_column
    infinite = {
        name: int(n) for name, n in zip(facts.feature_names, facts.n_infinite, strict=True) if n
    }
    findings = []
    if gaps:
        worst = sorted(gaps, key=lambda name: -gaps[name])
        told = some_of([f"{name!r} ({_share(gaps[name], facts.n_rows)})" for name in worst])
        rows = f", in {counted.n_rows:,} of {facts.n_rows:,} rows" if counted.n_rows else ""
        columns = "1 column" if len(gaps) == 1 else f"{len(gaps)} columns"
        sentence = f"Gaps in {columns}{rows}: {told}."
        findings.append(Finding("gaps", sentence, "--missing model", tuple(worst)))
    if infinite:
        sentence = f"Infinite values in {_quoted(list(infinite))}."
        findings.append(
            Finding("infinite values", sentence, _option("--drop", list(infinite)), tuple(infinite))
        )
    return findings


def _share(count: int, total: int) -> str:
    return f"{count / total:.0%}" if count >= 0.01 * total else "under 1%"


def _constant(facts: TableFacts, kinds: Mapping[str, ColumnKind]) -> list[Finding]:
    with np.errstate(invalid="ignore"):
        flat = (facts.n_present > 0) & (facts.maximum == facts.minimum)
    names = [name for name, is_flat in zip(facts.feature_names, flat, strict=True) if is_flat]
    names += [n for n, k in kinds.items() if k.kind == "category" and k.why.endswith("one value")]
    if not names:
        return []
    sentence = f"Constant columns, ranked last: {_quoted(names)}."
    option = _option("--drop", names) if len(names) <= 20 else ""
    return [Finding("constant columns", sentence, option, tuple(names), matters=False)]


def _similar(
    X: FloatArray, names: Sequence[str], facts: TableFacts, features: Sequence[int]
) -> list[Finding]:
    """Columns that repeat another; gaps count as the mean."""
    if X.shape[0] < _FEWEST_ALIKE or X.shape[1] < 2:
        return []
    X = _filled(X)
    pairs = similar_columns(X, NEARLY_ONE)
    whole = np.column_stack([facts.n_missing, facts.minimum, facts.maximum])[features]
    same = {
        j: i
        for j, (i, r) in pairs.items()
        if np.array_equal(X[:, i], X[:, j]) and np.array_equal(whole[i], whole[j])
    }
    findings = []
    if same:
        told = some_of([f"{names[j]!r} = {names[i]!r}" for j, i in same.items()])
        copies = tuple(names[j] for j in same)
        option = _option("--drop", copies) if len(copies) <= 20 else ""
        findings.append(Finding("duplicates", f"Duplicated columns: {told}.", option, copies))
    near = {j: pair for j, pair in pairs.items() if j not in same}
    if near:
        told = some_of(
            [f"{names[j]!r} ~ {names[i]!r} (r = {r:+.3f})" for j, (i, r) in near.items()]
        )
        copies = tuple(names[j] for j in near)
        option = _option("--drop", copies) if len(copies) <= 20 else ""
        sentence = f"Nearly duplicated columns: {told}."
        findings.append(Finding("near duplicates", sentence, option, copies))
    return findings


def _units(facts: TableFacts, features: list[int], names: Sequence[str]) -> list[Finding]:
    span = variance_span(facts.variances[features])
    if span is None or not span.has_mixed_units:
        return []
    sentence = (
        f"Variances span a factor of {span.ratio:.2g} ({names[span.low]!r} to "
        f"{names[span.high]!r}): the columns "
        "have different units. The default method does not mind; for others:"
    )
    option = "--scale standardize-features"
    return [Finding("units", sentence, option, (names[span.low], names[span.high]), matters=False)]


def _zero_rows(facts: TableFacts, kinds: Mapping[str, ColumnKind]) -> list[Finding]:
    """Rows that were not measured; beside text, or with few columns, zeros are values."""
    has_text = any(kinds[name].is_feature for name in facts.texts)
    if not facts.n_zero_rows or has_text or len(facts.feature_names) < _FEWEST_MEASURED:
        return []
    sentence = f"Rows of zeros only: {facts.n_zero_rows:,} of {facts.n_rows:,}."
    return [Finding("zero rows", sentence, "--drop-zero-rows")]


def _outliers(
    X: FloatArray, table: LabelledTable, numbers: IndexArray, n_rows: int
) -> list[Finding]:
    """Rows that make up most of a leading component by themselves."""
    n = X.shape[0]
    if n < _FEWEST_ROWS or X.shape[1] < 2:
        return []
    if X.shape[1] > _MOST_COLUMNS:
        X = X[:, np.linspace(0, X.shape[1] - 1, _MOST_COLUMNS).astype(np.intp)]
    X = _filled(X)
    centred = X - X.mean(axis=0)
    deviations = np.sqrt(np.einsum("ij,ij->j", centred, centred) / n)
    varies = deviations > 1e-10 * np.abs(X).max(axis=0)
    Z = centred[:, varies] / deviations[varies]
    if Z.shape[1] < 2:
        return []
    gram = Z @ Z.T if n <= Z.shape[1] else Z.T @ Z
    last = (max(0, len(gram) - 3), len(gram) - 1)
    values, vectors = eigh(gram, subset_by_index=last)
    components = vectors
    if n > Z.shape[1]:
        components = Z @ vectors / np.sqrt(np.maximum(values, 1e-300))
    shares = (components**2).max(axis=1)
    rows = np.flatnonzero(shares > _LARGEST_SHARE)
    if not len(rows):
        return []
    known = table.sample_names is not None and len(table.sample_names) == n_rows
    told = [
        str(table.sample_names[at]) if known and table.sample_names is not None else str(at + 1)
        for at in numbers[rows]
    ]
    what = "sample" if known else "row"
    shown = some_of([f"{t} ({s:.0%})" for t, s in zip(told, shares[rows], strict=True)])
    sentence = f"Outliers: {what} {shown} of a leading component alone."
    return [Finding("outliers", sentence, _option("--drop-samples", told))]


def _counts(facts: TableFacts, features: list[int], X: FloatArray) -> list[Finding]:
    """Counts with a long tail: the largest values decide unless logarithms are taken."""
    if len(features) < _FEWEST_COUNTED or not X.size:
        return []
    whole = facts.whole[features] & (facts.minimum[features] >= 0)
    largest = facts.maximum[features].max(initial=0.0)
    if whole.mean() < 0.9 or largest <= _LARGE_COUNT or largest == _BRIGHTEST:
        return []
    some = X[:: max(1, X.size // _MOST_VALUES)]
    positive = some[some > 0]
    if not len(positive):
        return []
    middle, high = np.quantile(positive, [0.5, 0.999])
    # One column of large numbers, such as an income among answers, is another unit.
    n_large = int(np.sum(facts.maximum[features] > _LONG_TAIL * middle))
    if high <= _LONG_TAIL * middle or n_large < max(_FEWEST_LARGE, 0.01 * len(features)):
        return []
    sentence = (
        f"Counts with a long tail (up to {largest:,.0f}, half of those above "
        f"0 up to {middle:g}): logarithms let more than the largest decide."
    )
    return [Finding("counts", sentence, "--log")]


def _filled(X: FloatArray) -> FloatArray:
    gaps = ~np.isfinite(X)
    if not gaps.any():
        return X
    n = np.maximum((~gaps).sum(axis=0), 1)
    return np.where(gaps, np.where(gaps, 0.0, X).sum(axis=0) / n, X)
