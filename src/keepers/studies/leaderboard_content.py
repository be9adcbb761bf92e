"""What the pages of a leaderboard say, as plain values: templates and script only arrange them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from keepers.studies import formatting
from keepers.studies.formatting import DASH, points, short, slug, value
from keepers.studies.leaderboard import EVERYTHING, BoardCell, BoardRow, Leaderboard
from keepers.studies.results import StudyResults
from keepers.studies.runner import StudyRun
from keepers.studies.scores import STABILITY, failures
from keepers.studies.specification import DataChoice, StudySpec

TITLES = {"default": "Default settings", "tuned": "Tuned with labels"}
_SCALINGS = {"raw": "as they are", "unit-samples": "samples scaled to unit norm"}
_TRANSFORMS = {"log2": "logarithms", "log-counts": "logarithms of the counts"}


class Heading(NamedTuple):
    """A column of a table."""

    text: str
    is_number: bool = True
    first: str = "descending"
    """Which way the first click sorts."""


class Shown(NamedTuple):
    """A cell: what it is sorted by, and what it shows."""

    key: float | str | None
    text: str
    name: str = ""
    """A data set, before the text."""
    link: str = ""
    tone: str = ""
    """A class of the style sheet."""


class MethodLine(NamedTuple):
    """A method in a table; place and method are the first cells."""

    method: str
    is_baseline: bool
    cells: list[Shown]


class BoardView(NamedTuple):
    """One leaderboard as a table, for every kind of data."""

    tuning: str
    title: str
    headings: list[Heading]
    kinds: dict[str, int]
    """Number of data sets by kind."""
    lines: dict[str, list[MethodLine]]
    """By kind, best first."""


class SetLine(NamedTuple):
    """A data set in the list of them."""

    name: str
    link: str
    kind: str
    samples: int
    features: int
    classes: int
    best: str
    """The method that gains most; empty if none is ahead of random columns."""
    gain: float | None
    highlighted: float | None
    """Gain of the method that the study brings out."""


class SetView(NamedTuple):
    """The page of one data set."""

    name: str
    file: str
    facts: dict[str, str]
    sentence: str
    boards: list[BoardView]
    previous: tuple[str, str] | None
    """Name and file of the data set before it."""
    following: tuple[str, str] | None


def index_content(study: StudyResults, boards: Sequence[Leaderboard]) -> dict[str, Any]:
    """Everything that the first page says, by the names that its template uses."""
    run = study.run
    keys = {entry.task.key for entry in run.entries}
    return {
        "spec": run.spec,
        "sentences": headline(study, boards),
        "n_missing": len(keys - run.outcomes.keys()),
        "n_tasks": len(keys),
        "boards": [board_view(board) for board in boards],
        "reading": how_to_read(boards[0]),
        "sets": [_set_line(boards[0], name) for name in run.tables],
        "highlighted": _highlighted(study),
        "reduced": [(m.title, r) for m in run.spec.methods for r in m.reduced],
        "failures": failures(study.rows),
        "runs": run.runs,
    }


def script_data(boards: Sequence[BoardView]) -> dict[str, Any]:
    """Cells by board, kind and method, in the order in which the page lists the methods."""
    found = {}
    for board in boards:
        order = [line.method for line in board.lines[EVERYTHING]]
        by_kind = [{line.method: line for line in lines} for lines in board.lines.values()]
        found[board.tuning] = [
            [[cell._asdict() for cell in lines[method].cells] for method in order]
            for lines in by_kind
        ]
    return found


def set_file(name: str) -> str:
    """File of a data set's page, in the folder sets."""
    return f"{slug(name)}.html"


def headline(study: StudyResults, boards: Sequence[Leaderboard]) -> tuple[str, ...]:
    """What was done, who leads, and where the leader fails, in plain sentences."""
    sentences = [_protocol(study)]
    for board in boards:
        rows = board.rows()
        if not rows or rows[0].scaled is None:
            continue
        settings = "At default settings" if board.tuning == "default" else "Tuned with the labels"
        name = "the baseline " * rows[0].is_baseline + short(rows[0].method)
        sentences.append(f"{settings}, {name} leads: {_record(board, rows[0])}")
        if board.tuning == "default":
            sentences += _runners_up(board, rows)
    if not boards[0].random:
        sentences.append("The study has no random columns (RandomScore) to compare with.")
    return tuple(sentences)


def _runners_up(board: Leaderboard, rows: Sequence[BoardRow]) -> list[str]:
    """The best method if a baseline leads, and the one that the study brings out."""
    best = next((row.method for row in rows if not row.is_baseline), "")
    return [
        f"{short(row.method)} is in place {place}: {_record(board, row)}"
        for place, row in enumerate(rows, start=1)
        if place > 1 and row.method in (best, _highlighted(board.study))
    ]


def how_to_read(board: Leaderboard) -> list[str]:
    """What the columns mean, and what to beware of."""
    sentences = []
    if board.without_scale:
        names = ", ".join(short(name) for name in board.without_scale)
        sentences.append(
            "Data sets on which nothing is a point or more ahead of random columns have no scale "
            f"and are left out of the scaled score: {names}."
        )
    for method in board.study.run.spec.methods:
        if method.ks:
            numbers = ", ".join(map(str, sorted(method.ks)))
            sentences.append(
                f"{short(method.title)}, a long fit for each number of features, was run at k = "
                f"{numbers} only; its gain is over random columns at the same k."
            )
    return sentences


def board_view(board: Leaderboard) -> BoardView:
    """A leaderboard as a table."""
    judged = {kind: len(board.judged(kind)) for kind in board.kinds}
    has_gaps = any(row.n_sets < judged[EVERYTHING] for row in board.rows())
    lines = {
        kind: [
            MethodLine(row.method, row.is_baseline, _cells(board, kind, place, row, has_gaps))
            for place, row in enumerate(board.rows(kind), start=1)
        ]
        for kind in board.kinds
    }
    kinds = {kind: len(names) for kind, names in board.kinds.items()}
    headings = _headings(board, has_gaps)
    return BoardView(board.tuning, TITLES[board.tuning], headings, kinds, lines)


def set_views(study: StudyResults, boards: Sequence[Leaderboard]) -> list[SetView]:
    """The pages of the data sets, in the order of the study."""
    names = list(study.run.tables)
    around = [None, *((name, set_file(name)) for name in names), None]
    choices = {choice.title: choice for choice in study.run.spec.data}
    return [
        SetView(
            name,
            set_file(name),
            _facts(study.run, choices[name]),
            _set_sentence(boards[0], name),
            [_set_board(board, name) for board in boards],
            around[place],
            around[place + 2],
        )
        for place, name in enumerate(names)
    ]


def _highlighted(study: StudyResults) -> str:
    return study.title_of(study.run.spec.highlight or "") or ""


def _protocol(study: StudyResults) -> str:
    spec, run = study.run.spec, study.run
    n_baselines = len(study.baselines)
    methods = _count(len(spec.methods) - n_baselines, "method")
    return (
        f"{methods} and {_count(n_baselines, 'baseline')} ranked the features of "
        f"{_count(len(run.tables), 'data set')} without seeing the classes. k-means then clustered "
        f"the samples by the best k features alone ({_numbers_of_features(spec)}), "
        f"{_count(spec.repeats, 'time')}, into as many clusters as there are classes, and the "
        "clusters were compared with the classes."
    )


def _numbers_of_features(spec: StudySpec) -> str:
    parts = []
    if spec.ks:
        parts.append(f"k = {', '.join(map(str, sorted(spec.ks)))}")
    if spec.shares:
        low, high = (f"{100 * share:g} %" for share in (min(spec.shares), max(spec.shares)))
        parts.append(f"{low} to {high} of the features" if low != high else f"{low} of them")
    return " and ".join(parts)


def _record(board: Leaderboard, row: BoardRow) -> str:
    """A method in one sentence: its score, how often it is ahead, and where it is worst."""
    text = f"its mean scaled score is {_signed(row.scaled)}"
    if row.method == board.random:
        return f"{text}; no method gains anything on average."
    text += (
        f", and it is ahead of random columns on {row.above_random['acc']} of "
        f"{_count(len(board.judged()), 'data set')} (ACC). "
    )
    if row.worst is None:
        return text.strip()
    data, gain = row.worst
    size = f"{100 * abs(gain):.1f} points"
    if gain < 0:
        return f"{text}Its worst set is {short(data)}, where it is {size} below random columns."
    return f"{text}Even on its worst set, {short(data)}, it is {size} above random columns."


def _headings(board: Leaderboard, has_gaps: bool) -> list[Heading]:
    names = _measure_names(board)
    above = [Heading(f"Sets above random, {names[m]}") for m in _with_gain(board)]
    return [
        Heading("Place", first="ascending"),
        Heading("Method", False, "ascending"),
        Heading("Mean scaled score"),
        *above,
        *([Heading("Sets without result", first="ascending")] if has_gaps else []),
        *(Heading(f"Mean {names[measure]}") for measure in board.measures),
        Heading("Average rank", first="ascending"),
        Heading("Worst set, points to random", False),
        Heading("Median time of a fit", first="ascending"),
        Heading("Needs to be told", False, "ascending"),
    ]


def _cells(board: Leaderboard, kind: str, place: int, row: BoardRow, has_gaps: bool) -> list[Shown]:
    without = len(board.judged(kind)) - row.n_sets
    return [
        Shown(place, str(place)),
        Shown(row.method, short(row.method)),
        _score(row.scaled),
        *(_above(board, kind, row, measure) for measure in _with_gain(board)),
        *([Shown(without, str(without) if without else "")] if has_gaps else []),
        *(_share(row.means.get(measure)) for measure in board.measures),
        _or_dash(row.average_rank, "{:.1f}".format),
        _worst(board, row),
        _or_dash(row.seconds, formatting.seconds),
        Shown(row.told, row.told or "nothing"),
    ]


def _above(board: Leaderboard, kind: str, row: BoardRow, measure: str) -> Shown:
    n_judged = len(board.judged(kind, measure))
    if row.method == board.random or not n_judged:
        return Shown(None, DASH)
    ahead = row.above_random[measure]
    return Shown(ahead, f"{ahead} of {n_judged}", tone="below" if 2 * ahead < n_judged else "")


def _worst(board: Leaderboard, row: BoardRow) -> Shown:
    if row.worst is None or row.method == board.random:
        return Shown(None, DASH)
    data, gain = row.worst
    link = f"sets/{set_file(data)}"
    return Shown(gain, points(gain), short(data), link, "below" if gain < 0 else "")


def _set_line(board: Leaderboard, name: str) -> SetLine:
    facts, spec = board.study.run.tables[name], board.study.run.spec
    best = _best(board, name)
    own = board.cells.get((name, _highlighted(board.study)))
    return SetLine(
        name,
        f"sets/{set_file(name)}",
        next(choice.kind for choice in spec.data if choice.title == name),
        facts.n_samples,
        facts.n_features,
        facts.n_classes,
        "" if best is None else best.method,
        None if best is None else best.gain,
        None if own is None else own.gain,
    )


def _best(board: Leaderboard, name: str) -> BoardCell | None:
    """The method that gains most over random columns, if any gains."""
    cells = [board.cells[name, method] for method in board.comparison.methods]
    ahead = [cell for cell in cells if cell.gain is not None and cell.gain > 0]
    return max(ahead, key=lambda cell: cell.gain or 0.0, default=None)


def _facts(run: StudyRun, choice: DataChoice) -> dict[str, str]:
    facts = run.tables[choice.title]
    values = [_SCALINGS.get(choice.scaling, choice.scaling)]
    if choice.transform:
        values.insert(0, _TRANSFORMS.get(choice.transform, choice.transform))
    ks = run.spec.ks_within(facts.n_features)
    return {
        "Kind": choice.kind or DASH,
        "Samples": f"{facts.n_samples:,}",
        "Features": f"{facts.n_features:,}",
        "Classes": f"{facts.n_classes:,}",
        "Values": ", ".join(values),
        "Features kept, k": ", ".join(map(str, ks)),
    }


def _set_sentence(board: Leaderboard, name: str) -> str:
    if name not in board.judged():
        return "There is no result yet."
    best = _best(board, name)
    if best is None:
        return "At default settings, no method is ahead of columns drawn at random."
    others = [m for m in board.comparison.methods if m not in board.study.baselines]
    ahead = sum((board.cells[name, method].gain or 0.0) > 0 for method in others)
    kind = " (a baseline)" * (best.method in board.study.baselines)
    return (
        f"At default settings, {short(best.method)}{kind} gains most: "
        f"{100 * (best.gain or 0.0):.1f} points of ACC above columns drawn at random. "
        f"{ahead} of {_count(len(others), 'method')} {'is' if ahead == 1 else 'are'} ahead of them."
    )


def _set_board(board: Leaderboard, name: str) -> BoardView:
    """All methods on one data set, best first."""
    measures, names = board.measures, _measure_names(board)
    cells = [board.cells[name, method] for method in board.comparison.methods]
    cells.sort(key=lambda cell: (cell.gain is None, -(cell.gain or 0.0)))
    headings = [
        Heading("Place"),
        Heading("Method", False),
        *(Heading(names[measure]) for measure in measures),
        Heading("Points to random"),
        Heading("Scaled score"),
        Heading("Time of a fit"),
        Heading("Remark", False),
    ]
    lines = [
        MethodLine(
            cell.method,
            cell.method in board.study.baselines,
            [
                Shown(None, DASH if cell.gain is None else str(place)),
                Shown(None, short(cell.method)),
                *(_share(cell.means.get(measure)) for measure in measures),
                Shown(None, points(cell.gain), tone="below" if (cell.gain or 0.0) < 0 else ""),
                _score(cell.scaled),
                _or_dash(cell.seconds, formatting.seconds),
                Shown(None, short(cell.reason, 160) if cell.reason else ""),
            ],
        )
        for place, cell in enumerate(cells, start=1)
    ]
    return BoardView(board.tuning, TITLES[board.tuning], headings, {}, {EVERYTHING: lines})


def _measure_names(board: Leaderboard) -> Mapping[str, str]:
    metrics = {metric.name: short(metric.title) for metric in board.study.run.spec.metrics}
    return {"acc": "ACC", "nmi": "NMI", STABILITY: "stability", **metrics}


def _with_gain(board: Leaderboard) -> list[str]:
    """ACC and further metrics; NMI says much the same, and no random choice is stable."""
    return [measure for measure in board.measures if measure not in ("nmi", STABILITY)]


def _score(scaled: float | None) -> Shown:
    if scaled is None:
        return Shown(None, DASH)
    return Shown(round(scaled, 6), _signed(scaled), tone="below" if round(scaled, 2) < 0 else "")


def _share(mean: float | None) -> Shown:
    return Shown(None if mean is None else round(mean, 6), value(mean))


def _or_dash(number: float | None, form: Any) -> Shown:
    return Shown(None, DASH) if number is None else Shown(round(number, 6), form(number))


def _signed(number: float | None) -> str:
    """Two decimals, with a real minus."""
    text = DASH if number is None else f"{number:.2f}"
    return "0.00" if text == "-0.00" else text.replace("-", "−")


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
