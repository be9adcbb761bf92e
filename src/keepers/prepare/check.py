"""`check_table`: what to know about a table before a selection, with the options that help."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers._tables import AsTable, as_html
from keepers._wording import some_of
from keepers.linalg.correlation import similar_columns
from keepers.linalg.ordering import mean_ranks, meet_by_chance
from keepers.linalg.scatter import as_array, mixed_units
from keepers.prepare.kinds import (
    AS_SET,
    DURATIONS,
    NOT_USED,
    NUMBERS_AS_TEXT,
    ColumnKind,
    Kind,
    TableFacts,
    count_gaps,
    find_kinds,
)

Kinds = Mapping[str, ColumnKind]

_NOTED = (
    *("orientation", "outliers", "counts", "infinite values"),
    *("duplicates", "near duplicates"),
)
"""Subjects of findings that `keepers select` prints."""
_FEWEST_ROWS = 20
"""With fewer rows, columns agree by chance."""
_AGREE, _AGREE_IN_ZEROS = 0.5, 0.3
"""In ten gene tables with their levels, samples agree by 0.52 (single cells) to 0.97; columns of
diabetes by 0.40, of wine 0.17, of colleges 0.01, all counted by `_agreement`. Where 80 % of the
values are 0, mouse bladder cells agree by 0.42 to 0.50, at a quarter of their depth too, and terms
by at most 0.19 over the documents of five collections."""
_MOST_COMPARED = 50
_SERIES = re.compile(r"[0-9.,]+")
"""Years and wavelengths name features, not samples."""
_MOST_VALUES, _MOST_DENSE = 2**21, 2**25
CALLED = {
    "boolean": "yes or no",
    "tick": "tick box",
    "choices": "several answers",
    "ordered": "ordered category",
    "drop": "left out",
    "text": "free text",
}
"""Plain words for kinds whose own name is not one."""
_COUNTABLE = {
    "tick": "tick boxes",
    "ordered": "ordered categories",
    "category": "categories",
    **{kind: f"{kind}s" for kind in ("number", "date", "identifier")},
}
_DESCRIBED = {
    "identifier": ("identifiers", "Identifiers, not used: {}.", True),
    "date": ("dates", "Dates, not used: {}. To use one as seconds, add --as {first}=number.", True),
    "empty": ("empty columns", "Empty columns, not used: {}.", True),
    "text": ("free text", "Free text, not used: {}. As a category: --as {first}=category.", True),
    "category": ("categories", "Categories, one feature each: {}. Classes? Add --labels.", False),
    "boolean": ("yes or no", "Yes or no, read as 1 and 0: {}.", False),
    "tick": ("tick boxes", "Tick boxes, blank is no: {}.", False),
    "choices": ("several answers", "Several answers in a cell, one feature each: {}.", False),
    "ordered": ("ordered categories", "Ordered, read as 0, 1, 2, ...: {}.", False),
    NUMBERS_AS_TEXT: ("numbers as text", "Numbers stored as text, read as numbers: {}.", True),
    DURATIONS: ("durations", "Durations, read as seconds: {}.", False),
}
"""By kind: the subject of a finding, its sentence, and whether it matters."""


@dataclass(frozen=True)
class Finding:
    """One thing to know about a table."""

    about: str
    """Its subject: "orientation", "identifiers", "gaps", ..."""
    sentence: str
    option: str = ""
    """The option of the command that acts on it; empty if nothing needs to be done."""
    columns: tuple[str, ...] = ()
    matters: bool = True
    """True if its option belongs to the proposed command."""

    def __str__(self) -> str:
        others = " For other methods:" if self.about in ("gaps", "units") else ""
        return f"{self.sentence}{others} [{self.option}]" if self.option else self.sentence


@dataclass(frozen=True, repr=False)
class TableCheck(AsTable):
    """The findings of `check_table`; a notebook shows them with a table of the columns."""

    name: str
    n_rows: int
    n_columns: int
    kinds: Kinds
    findings: tuple[Finding, ...]
    obstacle: str = ""
    """Why no selection is possible, whatever the options; empty if one is."""

    @property
    def summary(self) -> str:
        """Size and kinds of columns in a sentence."""
        kinds = [kind.kind for kind in self.kinds.values()]
        counts = {kind: kinds.count(kind) for kind in kinds}
        parts = [
            f"{n} {_COUNTABLE[kind] if n > 1 and kind in _COUNTABLE else CALLED.get(kind, kind)}"
            for kind, n in counts.items()
        ]
        size = f"{self.n_rows:,} rows, {self.n_columns:,} columns"
        return f"{self.name}: {size} ({', '.join(parts)})."

    def to_say(self, method: str = "", *, log: bool = False) -> list[str]:
        """Findings that matter to a selection by the class of this name.

        With ``log``, logarithms were taken and are not recommended.
        """
        noted = [
            f for f in self.findings if f.about in _NOTED and not (log and f.about == "counts")
        ]
        if method not in ("", "AutoSelector"):  # which does not depend on units
            noted += [finding for finding in self.findings if finding.about == "units"]
        return [str(finding) for finding in noted]

    def needed(self, given: Sequence[str] = ()) -> list[str]:
        """The options that act on what matters, without those that were given."""
        options = [f.option for f in self.findings if f.option and f.matters]
        return [option for option in options if option.split()[0] not in given]

    def rows(self) -> list[dict[str, Any]]:
        """The columns, a dict each: ``column``, ``kind``, ``used`` and ``why``."""
        return [
            {
                "column": name,
                "kind": CALLED.get(kind.kind, kind.kind),
                "used": "yes" if kind.is_feature else "no",
                "why": kind.why,
            }
            for name, kind in self.kinds.items()
        ]

    def lines(self) -> list[str]:
        """The summary, the findings, and whether a selection is possible."""
        lines = [f"- {finding}" for finding in self.findings]
        lines = [*lines, self.obstacle] if self.obstacle else lines or ["The table is ready."]
        return [self.summary, *lines]

    def _repr_html_(self) -> str:
        found = "".join(f"<li>{escape(each.sentence)}</li>" for each in self.findings)
        found = f"<ul>{found}</ul>" if found else "<p>The table is ready.</p>"
        return f"<p>{escape(self.summary)}</p>{found}{as_html(self.rows())}"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__


def check_table(X: Any, *, name: str = "table") -> TableCheck:
    """Look at a table once and report everything to know before a selection.

    Parameters
    ----------
    X : data frame, array, sparse matrix or Table
        The table.
    name : str
        Its name in the report.

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
    - Identifiers, not used: 'instant' (distinct integers in order, 1 to 40). [--id instant]
    - Dates, not used: 'dteday' (dates as text). To use one as seconds, add --as dteday=number.
    - Variances differ by a factor of 5e+09 ('temp' to 'count'), so the columns have different \
units. This does not affect the default method. For other methods: [--scale standardize-features]
    """
    from keepers.tables.objects import table_of_object  # narwhals, which files do not need

    return check_facts(TableFacts.of(table_of_object(X, name=name)))


def check_facts(facts: TableFacts, asked: Mapping[str, Kind] | None = None) -> TableCheck:
    """The findings on a table, from the facts of one pass over it."""
    kinds = find_kinds(facts, asked)
    features = [at for at, name in enumerate(facts.names) if kinds[name].is_feature]
    X, rows = facts.sample.values[:, features], np.arange(facts.sample.n_samples)
    if facts.sample.is_sparse:  # fewer rows of a wide table, made dense
        rows = rows[:: 1 + X.shape[0] * X.shape[1] // _MOST_DENSE]
    X = as_array(X[rows]).astype(np.float64)
    ticks = [kinds[facts.names[at]].kind == "tick" for at in features]
    X[:, ticks] = np.nan_to_num(X[:, ticks])
    finite = np.isfinite(X)
    n_finite = np.maximum(finite.sum(axis=0), 1)
    if not finite.all():  # gaps count as the mean
        X = np.where(finite, X, 0.0)
        X = np.where(finite, X, X.sum(axis=0) / n_finite)
    with np.errstate(over="ignore", invalid="ignore"):
        variances = np.nan_to_num(X.var(axis=0) * len(X) / n_finite)
    findings = [
        *describe_kinds(kinds),
        *_values(facts, kinds, features, variances),
        *_similar(X, facts, features),
        *_outliers(X, facts, rows),
        *_repeated_rows(X, facts, kinds, rows),
        *_counts(facts, features, X),
    ]
    if turned := [*_orientation(facts, kinds, X)]:
        # The others are about features that are samples: look again after --transpose.
        findings = [*turned, *(replace(finding, matters=False) for finding in findings)]
    sizes = (facts.n_rows, len(facts.columns))
    return TableCheck(facts.name, *sizes, kinds, tuple(findings), _obstacle(facts, kinds, findings))


def _obstacle(facts: TableFacts, kinds: Kinds, findings: Sequence[Finding]) -> str:
    """Why a selection must fail, as a sentence; empty if it need not."""
    if facts.n_rows < 2:
        return "No selection is possible: it needs at least 2 rows, and there is 1."
    features = {name for name, kind in kinds.items() if kind.is_feature}
    if not features:
        return "No selection is possible: no column is a feature. Override a kind with --as."
    named = {finding.about: set(finding.columns) for finding in findings}
    varying = features - named.get("constant columns", set())
    if not varying:
        return "No selection is possible: no feature varies."
    infinite = [finding for finding in findings if finding.about == "infinite values"]
    if any(not each.option or varying <= set(each.columns) for each in infinite):
        return "No selection is possible with these infinite values: leave their cells empty."
    return ""


def n_columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def listed(found: Mapping[str, object]) -> str:
    """Names, each with what there is to know about it."""
    return some_of([f"{name!r} ({about})" for name, about in found.items()])


def _quoted(names: Sequence[str]) -> str:
    return some_of([repr(name) for name in names])


def _name(option: str, names: Sequence[str], most: int = 20) -> str:
    """An option with names, if they are few, as the shell takes it.

    A name with a comma or a mark of patterns is read as it is where it stands alone.
    """
    if not 0 < len(names) <= most:
        return ""
    alone = [name for name in names if any(mark in name for mark in ",*?[")]
    joined = ",".join(name for name in names if name not in alone)
    return " ".join(f"{option} {shlex.quote(word)}" for word in [joined, *alone] if word)


def _orientation(facts: TableFacts, kinds: Kinds, X: FloatArray) -> Iterator[Finding]:
    """Rows that are features: many rows with distinct names, and columns of similar values."""
    ids = facts.sample.ids
    by_ids = ids is not None and not all(str(name).lstrip("-").isdigit() for name in ids[:100])
    texts = [name for name in facts.columns if name in facts.texts]
    distinct = [name for name in texts if kinds[name].why.endswith("distinct text")]
    numbers = [name for name in facts.names if kinds[name].is_feature]
    # The rows of a sparse file have no names.
    if not (by_ids or distinct or facts.sample.is_sparse) or facts.n_rows < max(50, len(numbers)):
        return
    X = X[:: 1 + X.size // _MOST_VALUES]
    samples = [] if all(map(_SERIES.fullmatch, numbers)) else _alike(X, numbers)
    held = X[:, [numbers.index(name) for name in samples]]
    # Answers from 0 to 10: questions agree as samples do.
    if not 3 <= len(samples) <= facts.n_rows / 5 or len(np.unique(held)) <= 11:
        return
    # Below a thousand rows, samples are numbered: people have several measurements on one scale.
    stems = {re.sub("[0-9]+", "", name) for name in samples}
    if facts.n_rows < 1000 and 2 * len(stems) > len(samples):
        return
    others = len(numbers) - len(samples)
    # Samples of the same genes agree in their levels. Where levels were removed, values lie on both
    # sides of 0, and only many rows and no other columns show it.
    if _agreement(held) >= (_AGREE_IN_ZEROS if np.mean(held == 0.0) >= 0.8 else _AGREE):
        named_alike = all(name.startswith(samples[0][:4]) for name in samples)
        is_turned = len(samples) >= others or named_alike
    else:
        below = np.mean(held < 0.0, axis=0)
        is_turned = not others and facts.n_rows >= 1000 and bool(np.all(below > 0.2))
    if not is_turned:
        return
    named = distinct[0] if distinct and not by_ids else None
    annotation = [name for name in facts.columns if name not in (*samples, named)]
    unnamed = "named in the first column" if by_ids else "without names"
    source = unnamed if named is None else f"named by {named!r}"
    describing = f", and {n_columns(len(annotation))} with other values" if annotation else ""
    sentence = (
        f"Features seem to be in rows: {facts.n_rows:,} rows, {source}, {len(samples)} columns "
        f"with similar values{describing}. If so, swap them."
    )
    option = "--transpose"
    if named is not None and named != texts[0]:
        option += f" --id {shlex.quote(named)}"
    option += f" {_name('--annotation', annotation, len(annotation))}".rstrip()
    repeated = named is not None and kinds[named].why.startswith("nearly")
    yield Finding("orientation", sentence, option + " --make-unique" * repeated)


def _alike(X: FloatArray, names: list[str]) -> list[str]:
    """The largest group of columns whose values other than 0 are alike.

    Alike: spreads within a factor of 5, and medians within 3 spreads. A few columns between the
    others belong to them, such as a sample that failed. If the last words of names repeat, as in
    "Peptides A", "Intensity A" and "LFQ intensity A", the last kind of the largest values counts.
    """
    values = np.where(X == 0.0, np.nan, X)
    starts, lasts = np.array([name.rpartition(" ")[::2] for name in names], dtype=object).T
    is_total = np.isin(names, [*{*starts}])  # "Intensity" beside "Intensity A"
    some = np.flatnonzero(~np.isnan(values).all(axis=0) & ~is_total)
    if len(some) < 3:
        return []
    low, middle, high = np.nanquantile(values[:, some], [0.1, 0.5, 0.9], axis=0)
    spread = high - low
    at = np.linspace(0, len(some) - 1, min(len(some), _MOST_COMPARED)).astype(np.intp)[:, None]
    larger = np.maximum(spread, spread[at])
    near = np.abs(middle - middle[at]) <= 3.0 * larger
    alike = near & (larger <= 5.0 * np.minimum(spread, spread[at])) & (larger > 0.0)
    sizes = [len({*lasts[some[group]]}) for group in alike]
    members = some[alike[np.lexsort((middle[at[:, 0]], sizes))[-1]]]
    if not len(members):
        return []
    if len({*lasts[members]}) < len(members):
        members = members[starts[members] == starts[members[-1]]]
    first, last = int(members[0]), int(members[-1])
    most = 2 * len(members) > last + 1 - first
    return names[first : last + 1] if most else [names[at] for at in members]


def _agreement(X: FloatArray) -> float:
    """Mean rank correlation of a column with the mean of the others."""
    ranks = mean_ranks(X[:, :_MOST_COMPARED].T, by_size=True).T
    ranks -= ranks.mean(axis=0)
    others = ranks.sum(axis=1, keepdims=True) - ranks
    norms = np.linalg.norm(ranks, axis=0) * np.linalg.norm(others, axis=0)
    return float(np.mean((ranks * others).sum(axis=0) / np.maximum(norms, 1e-300)))


def describe_kinds(kinds: Kinds) -> Iterator[Finding]:
    """Columns that are not used, and those whose values are read as something else."""
    found: dict[str, list[ColumnKind]] = {}
    for each in kinds.values():
        kind = each.why if each.why in (NUMBERS_AS_TEXT, DURATIONS) else each.kind
        if kind in NOT_USED or each.why != AS_SET:
            found.setdefault(kind, []).append(each)
    for kind, (about, sentence, matters) in _DESCRIBED.items():
        if columns := found.get(kind):
            names = tuple(each.name for each in columns)
            shown = _quoted(names)
            if kind in ("identifier", "date", "text", "category", "choices"):
                shown = listed({each.name: each.why for each in columns})
            if words := sorted({word for each in columns for word in each.words_as_gaps}):
                shown += f"; {_quoted(words)} as missing"
            if commas := [each.name for each in columns if each.decimal == ","]:
                shown += f"; decimal commas in {_quoted(commas)}"
            for each in columns:
                if word := each.doubtful:
                    shown += f"; {word!r} in {each.name!r} as {word.replace(',', '').strip()}"
            sentence = sentence.format(shown, first=shlex.quote(names[0]))
            option = f"--id {shlex.quote(names[0])}" if kind == "identifier" else ""
            option = _name("--drop", names) if kind in ("text", "empty") else option
            yield Finding(about, sentence, option, names, matters)


def _values(
    facts: TableFacts, kinds: Kinds, features: list[int], variances: FloatArray
) -> Iterator[Finding]:
    """Gaps, infinite values, constant columns, and units."""
    if gaps := count_gaps(facts, kinds):
        worst = sorted(gaps, key=lambda name: -gaps[name])
        counts = listed({name: f"{gaps[name]:,}" for name in worst})
        sentence = (
            f"Missing values in {n_columns(len(gaps))} (how many): {counts}. The default method "
            "scores observed values only."
        )
        option = "--missing model"
        if facts.sample.is_sparse:  # filling would make it dense
            option = _name("--drop", worst)
        yield Finding("gaps", sentence, option, tuple(worst), matters=False)
    if infinite := [facts.names[at] for at in np.flatnonzero(facts.n_infinite)]:
        sentence = f"Infinite values in {_quoted(infinite)}."
        yield Finding("infinite values", sentence, _name("--drop", infinite), tuple(infinite))
    names = [facts.names[at] for at in np.flatnonzero(facts.maximum == facts.minimum)]
    names = [name for name in names if kinds[name].kind != "tick"]
    names += [n for n, k in kinds.items() if k.kind == "category" and k.why.endswith("one value")]
    if names:
        sentence = f"Constant columns, ranked last: {_quoted(names)}."
        yield Finding("constant columns", sentence, _name("--drop", names), tuple(names), False)
    span = mixed_units(variances)
    if span is not None:
        low, high = (facts.names[features[at]] for at in (span.low, span.high))
        sentence = (
            f"Variances differ by a factor of {span.ratio:.2g} ({low!r} to {high!r}), so the "
            "columns have different units. This does not affect the default method."
        )
        yield Finding("units", sentence, "--scale standardize-features", (low, high), matters=False)


def _similar(X: FloatArray, facts: TableFacts, features: Sequence[int]) -> Iterator[Finding]:
    if X.shape[0] < _FEWEST_ROWS or X.shape[1] < 2:
        return
    names = [facts.names[at] for at in features]
    whole = np.column_stack([facts.n_missing, facts.minimum, facts.maximum])[features]
    same, near = {}, {}
    for j, (i, r) in similar_columns(X, 0.99).items():
        if np.array_equal(X[:, i], X[:, j]) and np.array_equal(whole[i], whole[j]):
            same[names[j]] = f"{names[j]!r} = {names[i]!r}"
        else:
            near[names[j]] = f"{names[j]!r} ~ {names[i]!r} (r = {r:+.3f})"
    for about, start, copies in (("", "Duplicated", same), ("near ", "Nearly duplicated", near)):
        if copies:
            sentence = f"{start} columns: {some_of([*copies.values()])}."
            option, columns = _name("--drop", [*copies]), tuple(copies)
            yield Finding(f"{about}duplicates", sentence, option, columns, matters=False)


def _outliers(X: FloatArray, facts: TableFacts, rows: IndexArray) -> Iterator[Finding]:
    """Rows that make up most of a leading component by themselves."""
    Z = standardise(X, 1000)
    if Z.shape[0] < _FEWEST_ROWS or Z.shape[1] < 2:
        return
    energy = leading_components(Z, 3) ** 2
    total = energy.sum(axis=0)
    varies = total > 1e-9 * total.max()
    shares = (energy[:, varies] / total[varies]).max(axis=1)
    found = np.flatnonzero(shares > 0.5)
    if len(found):
        ids = facts.sample.ids
        what, names = ("row", facts.sample_rows + 1) if ids is None else ("sample", ids)
        called = [str(name) for name in names[rows[found]]]
        shown = [f"{name} ({s:.0%})" for name, s in zip(called, shares[found], strict=True)]
        sentence = f"Outliers: {what} {some_of(shown)} of a leading component alone."
        option = "" if "," in "".join(called) else _name("--drop-samples", called)
        yield Finding("outliers", sentence, option, matters=False)


def _repeated_rows(
    X: FloatArray, facts: TableFacts, kinds: Kinds, rows: IndexArray
) -> Iterator[Finding]:
    """Rows that repeat another, in a table where rows are not equal by chance."""
    contents = [row.tobytes() for row in X + 0.0]  # -0.0 is 0.0
    if words := [name for name in facts.texts if kinds[name].is_feature]:
        frame: Any = facts.sample.frame
        contents = [*zip(contents, frame.select(words)[rows].hash_rows(), strict=True)]
    first = [*{content: at for at, content in enumerate(contents)}.values()]
    if 1 < len(first) < len(X) and not meet_by_chance(X[first]):
        looked_at = " looked at" if len(X) < facts.n_rows else ""
        sentence = f"Rows that repeat another: {len(X) - len(first):,} of {len(X):,}{looked_at}. "
        yield Finding("repeated rows", sentence + "The default method counts every row once.")


def _counts(facts: TableFacts, features: list[int], X: FloatArray) -> Iterator[Finding]:
    """Counts with a long tail: the largest values dominate unless logarithms are taken."""
    whole = facts.whole[features] & (facts.minimum[features] >= 0)
    some = X[:: max(1, X.size // _MOST_VALUES)]
    sentence = describe_counts(whole, facts.maximum[features], some)
    if sentence:
        yield Finding("counts", f"{sentence}:", "--log")


def describe_counts(whole: BoolArray, largest: FloatArray, values: FloatArray) -> str:
    """Counts with a long tail in a sentence without its end; empty for other tables.

    ``whole`` marks the columns that hold whole numbers >= 0, ``largest`` is the largest value of
    each column, and ``values`` are some of all values.
    """
    positive, highest = values[values > 0], largest.max(initial=0.0)
    if len(whole) < 50 or whole.mean() < 0.9 or not len(positive):
        return ""
    if highest <= 30 or highest == 255:  # the brightest value of an image, which is not a count
        return ""
    middle, high = np.quantile(positive, [0.5, 0.999])
    # One column of large numbers, such as an income among answers, is a matter of units.
    n_large = int(np.sum(largest > 20 * middle))
    if high <= 20 * middle or n_large < max(5, 0.01 * len(whole)):
        return ""
    return (
        f"Counts with a long tail: up to {highest:,.0f}, while half of those above 0 are at most "
        f"{middle:g}. Logarithms keep the largest from deciding alone"
    )


def standardise(X: FloatArray, most: int = 2000) -> FloatArray:
    """Columns with mean 0 and variance 1, gaps at the mean; without constant columns.

    Of more than ``most`` columns, evenly spaced ones.
    """
    if X.shape[1] > most:
        X = X[:, np.linspace(0, X.shape[1] - 1, most).astype(np.intp)]
    largest = np.fmax.reduce(np.abs(X), axis=0, initial=0.0)
    X = X[:, largest > 0.0] / largest[largest > 0.0]  # squares of huge values would overflow
    deviations = np.nanstd(X, axis=0)
    X = X[:, deviations > 1e-12]
    return np.nan_to_num((X - np.nanmean(X, axis=0)) / deviations[deviations > 1e-12])


def leading_components(centred: FloatArray, most: int) -> FloatArray:
    n, d = centred.shape
    gram = centred @ centred.T if n <= d else centred.T @ centred
    values, vectors = np.linalg.eigh(gram)  # importing scipy.linalg would take longer
    values, vectors = values[-most:], vectors[:, -most:]
    if n > d:
        return np.asarray(centred @ vectors)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
