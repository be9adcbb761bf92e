"""A comparison over many data sets as one table: who is ahead of chance, by how much, how often.

The score of a method on a data set is its mean over the numbers of features kept. Scaled, it is 0
where random columns are and 1 where the best method of that set is. A set on which a method has no
result counts as 0: a method gains nothing by failing where it is hard. A loss counts at most -1.
Sets on which nothing is a point ahead of random columns have no scale and are counted apart.
"""

import base64
import hashlib
from functools import cached_property
from importlib.resources import files
from pathlib import Path

import pandas as pd
from matplotlib import rc_context

from keepers_studies.figures import STYLE, critical_differences, looks_of, save
from keepers_studies.formatting import points, seconds, short, table_html
from keepers_studies.page import count, marked_rows, render
from keepers_studies.paper_claims import claims_by_reading, judge_claims
from keepers_studies.plan import mentions_classes
from keepers_studies.ranks import RankTest, rank_test
from keepers_studies.scores import RANDOM, Comparison, StudyResults
from keepers_studies.specification import MethodChoice
from keepers_studies.store import write_text
from keepers_studies.tables import data_sets, write_csv, write_tables

CLEAR_GAIN = 0.01
"""A set has a scale if its best method gains this much: below, the scale would be noise."""
LOWEST = -1.0  # a loss counts at most as much as the gain of the best method
EVERYTHING = "all"  # the kind that holds every data set
LABELS = {"acc": "ACC", "nmi": "NMI", "forest": "forest accuracy", "stability": "stability"}
TITLES = {"default": "Default settings", "tuned": "Tuned with labels"}


class Leaderboard:
    """One comparison (default settings, or tuned with labels) over all data sets of a study."""

    def __init__(self, tuning: str, study: StudyResults) -> None:
        self.tuning, self.study = tuning, study
        self.comparison: Comparison = study.by_tuning[tuning]
        self.random = study.title_of(RANDOM) or ""
        self.measures = study.spec.measures if tuning == "default" else ("acc", "nmi")
        self.kinds: dict[str, list[str]] = {EVERYTHING: list(self.comparison.data)}
        for choice in study.spec.data:
            if choice.kind:
                self.kinds.setdefault(choice.kind, []).append(choice.title)

    @cached_property
    def gains(self) -> dict[str, pd.DataFrame]:
        """By measure, methods x data sets: how far each is above random columns."""
        measures = [m for m in self.measures if m != "stability"]  # no random choice is stable
        return {m: self.comparison.gains(self.random, m).round(6) for m in measures}

    @cached_property
    def scaled(self) -> pd.DataFrame:
        """ACC above random columns over that of the set's best method; sets with a scale only."""
        gains = self.gains["acc"]
        best = gains.max()
        return (gains / best).clip(lower=LOWEST).loc[:, best >= CLEAR_GAIN]

    def judged(self, kind: str = EVERYTHING) -> list[str]:
        """Data sets of a kind on which random columns have a score."""
        if self.random not in self.comparison.methods:
            return []
        known = self.gains["acc"].loc[self.random].notna()
        return [data for data in self.kinds[kind] if known[data]]

    def ranks(self, kind: str = EVERYTHING) -> RankTest:
        """Friedman's test over the data sets of a kind; no result ranks as random columns do."""
        return rank_test(self.gains["acc"][self.judged(kind)].fillna(0.0))

    def rows(self, kind: str = EVERYTHING) -> pd.DataFrame:
        """The methods over the data sets of a kind, best scaled score first."""
        names = self.kinds[kind]
        gains = self.gains["acc"][names]
        scaled = self.scaled[[data for data in names if data in self.scaled]]
        choices = self.study.spec.methods_by_title
        rows = pd.DataFrame(index=pd.Index(self.comparison.methods, name="method"))
        rows["told"] = [given_classes(choices[title], self.tuning) for title in rows.index]
        rows["scaled"] = scaled.fillna(0.0).mean(axis=1) if len(scaled.columns) else float("nan")
        for measure in self.measures:
            rows[measure] = self.comparison.means(measure)[names].mean(axis=1)
        rows["sets"] = gains.notna().sum(axis=1)
        rows["sets_of_kind"] = len(names)
        for measure, gain in self.gains.items():
            rows[f"above_random_{measure}"] = (gain[names] > 0).sum(axis=1)
        rows["worst_set"] = [
            row.idxmin() if row.notna().any() else None for _, row in gains.iterrows()
        ]
        rows["worst_gain"] = gains.min(axis=1)
        rows["average_rank"] = pd.Series(self.ranks(kind).average_ranks, dtype=float)
        # Equal scores stay in the order of the specification.
        rows = rows.sort_values("scaled", ascending=False, kind="stable", key=lambda s: s.round(6))
        rows.insert(0, "place", range(1, len(rows) + 1))
        return rows.reset_index()

    def sets(self) -> pd.DataFrame:
        """Every method on every data set: means, gain over random columns, why there is none."""
        parts = {m: self.comparison.means(m) for m in self.measures}
        parts |= {"gain": self.gains["acc"], "scaled": self.scaled}
        frame = pd.DataFrame(
            {name: part.T.stack(future_stack=True) for name, part in parts.items()}
        )
        bad = self.comparison.scores[self.comparison.scores.status != "ok"]
        reasons = (bad.status + ": " + bad.reason).groupby([bad.data, bad.method]).first()
        order = pd.MultiIndex.from_product([self.comparison.data, self.comparison.methods])
        frame = frame.reindex(order.set_names(["data", "method"]))
        choices = self.study.spec.methods_by_title
        skipped = [choices[method].reduction_for(data) for data, method in frame.index]
        planned = [cut.reason if cut and cut.skip else "" for cut in skipped]
        frame["reason"] = reasons.reindex(frame.index).fillna(pd.Series(planned, frame.index))
        frame = frame.reset_index()
        frame.insert(0, "tuning", self.tuning)
        return frame

    def seconds(self) -> "pd.Series[float]":
        """Median over the data sets of the mean time of one fit, by method."""
        timing = self.study.timing
        if self.tuning == "default":
            timing = timing[timing.role != "grid"]
        per_fit = timing.fit_seconds / timing.fits
        by_set = per_fit.groupby([timing.method, timing.data]).mean()
        return by_set.groupby(level=0).median()


def leaderboards(study: StudyResults) -> list[Leaderboard]:
    """Default settings, and tuned with labels if any method has a grid."""
    has_grid = any(choice.grid for choice in study.spec.methods)
    return [Leaderboard(t, study) for t in ("default", "tuned")[: 1 + has_grid]]


def given_classes(choice: MethodChoice, tuning: str) -> str:
    """Return what a method gets of the classes: nothing, their number, or the classes."""
    if tuning == "tuned" and choice.grid:
        return "the classes, to tune it"
    given = {**choice.fixed, **(choice.default or {})}
    return "the number of classes" if mentions_classes(given) else ""


def write_leaderboard(study: StudyResults, folder: Path) -> Path:
    """Write tables, ``figures/`` and ``index.html`` into a results folder; returns the page."""
    boards = leaderboards(study)
    write_tables(study, judge_claims(study), claims_by_reading(study), folder)
    rows = [(b, kind, b.rows(kind)) for b in boards for kind in b.kinds]
    every = pd.concat([frame.assign(tuning=b.tuning, kind=kind) for b, kind, frame in rows])
    first = ["tuning", "kind", "place"]
    write_csv(every[[*first, *every.columns.drop(first)]], folder / "leaderboard.csv")
    write_csv(pd.concat([board.sets() for board in boards]), folder / "sets.csv")
    tests = {f"ACC, {TITLES[b.tuning].lower()}": b.ranks() for b in boards}
    tested = {title: test for title, test in tests.items() if not test.not_tested}
    with rc_context(STYLE):
        looks = looks_of(study.spec)
        drawn = {"critical-differences": critical_differences(tested, looks)} if tested else {}
        pictures = save(drawn, folder / "figures")
    script = (files("keepers_studies") / "templates" / "sorting.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = render(
        "leaderboard.html.jinja",
        study,
        pictures,
        sentences=headline(study, boards),
        boards=boards,
        titles=TITLES,
        tables={(b.tuning, kind): _shown(b, kind, frame) for b, kind, frame in rows},
        without_scale=[d for d in boards[0].judged() if d not in boards[0].scaled],
        tests=tests,
        sets=_sets_table(boards[0]),
        script=script,
        script_hash=f"sha256-{digest}",
    )
    write_text(folder / "index.html", page)
    return folder / "index.html"


def _shown(board: Leaderboard, kind: str, rows: pd.DataFrame) -> str:
    """The columns of a board that its page shows."""
    shown = rows.set_index("method")
    frame = pd.DataFrame({"Place": shown["place"], "Mean scaled score": shown.scaled})
    frame[f"Sets above random, ACC (of {len(board.judged(kind))})"] = shown.above_random_acc
    if "forest" in board.gains:  # NMI is close to ACC
        frame["Sets above random, forest accuracy"] = shown.above_random_forest
    for measure in board.measures:
        frame[f"Mean {LABELS[measure]}"] = shown[measure]
    frame["Average rank"] = shown.average_rank
    frame["Worst set"] = shown.worst_set
    frame["Points above random"] = shown.worst_gain
    frame["Time of a fit"] = board.seconds().reindex(frame.index)
    frame["Was given"] = shown.told.replace("", "the table")
    formats = {
        "Points above random": points,
        "Time of a fit": seconds,
        "Average rank": "{:.1f}".format,
        "Mean scaled score": "{:.2f}".format,
    }
    frame = frame.rename_axis("Method").reset_index()
    return table_html(frame, formats, marked_rows(board.study), sortable=True)


def _sets_table(board: Leaderboard) -> str:
    """The data sets, and the method that gains most on each."""
    gains = board.gains["acc"].dropna(axis=1, how="all")
    kinds = {choice.title: choice.kind for choice in board.study.spec.data}
    frame = data_sets(board.study).set_index("data").drop(columns="scaling")
    frame.insert(0, "kind", [kinds[name] for name in frame.index])
    ahead = gains.max() > 0
    frame["best method"] = gains.idxmax()[ahead].reindex(frame.index).fillna("none above random")
    frame["points above random"] = gains.max()[ahead]
    return table_html(frame.reset_index(), {"points above random": points}, sortable=True)


def headline(study: StudyResults, boards: list[Leaderboard]) -> list[str]:
    """The protocol, the leader, and where the leader fails, in plain sentences."""
    sentences = [
        f"{count(len(study.spec.methods), 'method')}, baselines included, ranked the features of "
        f"{count(len(study.run.tables), 'data set')} without seeing the classes. k-means then "
        f"clustered the samples by the best k features alone, {count(study.spec.repeats, 'time')}, "
        "into as many clusters as there are classes, and the clusters were compared with them."
    ]
    for board in boards:
        first = board.rows().iloc[0]
        if pd.notna(first.scaled):
            sentences.append(
                f"{TITLES[board.tuning]}: {short(first.method)} leads with a mean scaled score of "
                f"{first.scaled:.2f}; it is ahead of random columns on {first.above_random_acc} of "
                f"{count(len(board.judged()), 'data set')} (ACC). Its worst set is "
                f"{short(first.worst_set)} ({points(first.worst_gain)} points above random "
                "columns)."
            )
    if not boards[0].random:
        sentences.append("The study has no random columns (RandomScore) to compare with.")
    return sentences
