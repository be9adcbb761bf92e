"""From outcomes to data frames: every fit, the best of each grid, the defaults, the times.

"Tuned" is what the paper does: for every data set, method and k the grid point with the best mean
ACC, which uses the classes. "Default" never uses them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from keepers.catalogue import METHODS
from keepers_studies.growth import growth_table
from keepers_studies.plan import SYNTHETIC
from keepers_studies.ranks import RankTest, rank_test
from keepers_studies.runner import StudyRun
from keepers_studies.specification import COMPARISON, StudySpec

MEASURES = ("acc", "nmi")
ALL_FEATURES, RANDOM = "AllFeatures", "RandomScore"
BASELINES = tuple(method.class_name for method in METHODS if method.is_baseline)
"""Classes of the baselines, which every method should beat."""

PLACE = ["data", "method", "k"]


@dataclass(frozen=True)
class Comparison:
    """Scores by data set, method and k; names in the order of the specification."""

    scores: pd.DataFrame
    """A row for each data set, method and k: the columns of tuned.csv and default.csv."""
    ks: Mapping[str, tuple[int, ...]]
    """The numbers of features that are scored on each data set."""
    methods: tuple[str, ...]
    whole: frozenset[str] = frozenset()
    """Methods that keep all features: their one score is that of every k."""
    _curves: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False)

    @property
    def data(self) -> tuple[str, ...]:
        """Names of the data sets."""
        return tuple(self.ks)

    def curves(self, measure: str) -> pd.DataFrame:
        """The means over repeats, (data set, method) x k; NaN where a score is missing."""
        if measure not in self._curves:
            rows = self.scores.set_index(PLACE)[f"{measure}_mean"]
            curves = rows[~rows.index.get_level_values("method").isin(self.whole)].unstack()
            ks = sorted({k for ks in self.ks.values() for k in ks})
            index = pd.MultiIndex.from_product([self.data, self.methods], names=PLACE[:2])
            curves = curves.reindex(index=index, columns=ks).astype(float)
            for (data, method, _), value in rows.items():
                if method in self.whole:
                    taken = curves.loc[data].notna().any()  # a metric may be computed at some k
                    at = [k for k in self.ks[data] if measure in MEASURES or taken[k]]
                    curves.loc[(data, method), at] = value
            self._curves[measure] = curves
        return self._curves[measure]

    def curve(self, data: str, method: str | None, measure: str) -> "pd.Series[float]":
        """The measure by k, without the k that have no score."""
        curves = self.curves(measure)
        if (data, method) not in curves.index:
            return pd.Series(dtype=float)
        return curves.loc[(data, method)].dropna()

    def means(self, measure: str, *, complete: bool = False) -> pd.DataFrame:
        """Means over k, method x data set; with ``complete``, only where every k has a score."""
        curves = self.curves(measure)
        means = curves.mean(axis=1)
        if complete:
            wanted = [len(self.ks[data]) for data in curves.index.get_level_values("data")]
            means = means.where(curves.notna().sum(axis=1) == wanted)
        return means.unstack("data").reindex(index=self.methods, columns=self.data)

    def gains(self, over: str | None, measure: str) -> pd.DataFrame:
        """Means over k minus those of another method, over the k that both have."""
        curves = self.curves(measure)
        if over not in self.methods:
            return pd.DataFrame(np.nan, index=self.methods, columns=self.data)
        base = curves.xs(over, level="method").loc[curves.index.get_level_values("data")]
        base.index = curves.index
        gains = curves.where(base.notna()).mean(axis=1) - base.where(curves.notna()).mean(axis=1)
        # Nine decimals, because means that differ by rounding alone are equal.
        return gains.round(9).unstack("data").reindex(index=self.methods, columns=self.data)


@dataclass(frozen=True)
class StudyResults:
    """The outcomes of a study and the tables made of them."""

    run: StudyRun
    readings: Mapping[str, "StudyResults"] = field(default_factory=dict, hash=False)
    """The same study with the values scaled in other ways, by the name of each."""
    subject: str = "SPCAFS"
    """Class of the method that the claims are about."""

    @property
    def spec(self) -> StudySpec:
        """The specification of the study."""
        return self.run.spec

    @cached_property
    def fits(self) -> pd.DataFrame:
        """A row for each fit and k, in the order of the plan; without numbers if it failed."""
        return _fits(self.run)

    @cached_property
    def tuned(self) -> Comparison:
        """The best grid point at every k, chosen with labels."""
        return _compare(self, "grid")

    @cached_property
    def default(self) -> Comparison:
        """The scores of default settings; methods without such a row are absent."""
        return _compare(self, "default")

    @property
    def by_tuning(self) -> dict[str, Comparison]:
        """Both comparisons with their names."""
        return {"tuned": self.tuned, "default": self.default}

    @cached_property
    def ranks(self) -> dict[tuple[str, str], RankTest]:
        """Rank tests, by "tuned" or "default" and by measure."""
        return {
            (tuning, measure): rank_test(comparison.means(measure, complete=True))
            for measure in MEASURES
            for tuning, comparison in self.by_tuning.items()
        }

    @cached_property
    def growth(self) -> pd.DataFrame:
        """Growth of the time of a fit: the columns of table1.csv."""
        return growth_table(self.spec, self.fits)

    @cached_property
    def timing(self) -> pd.DataFrame:
        """Seconds of every data set, method and role; a fit that two roles share counts in each."""
        place = ["data", "method", "role"]
        known = self.fits[(self.fits.section == COMPARISON) & (self.fits.status != "missing")]
        once = known.drop_duplicates([*place, "task"])
        grouped = once.assign(unsuccessful=once.status != "ok").groupby(place, sort=False)
        found = grouped.agg(
            fits=("task", "size"),
            unsuccessful=("unsuccessful", "sum"),
            fit_seconds=("fit_seconds", "sum"),
            kmeans_seconds=("kmeans_seconds", "sum"),
        ).reset_index()
        total = found.fit_seconds + found.kmeans_seconds
        return found.assign(share_of_selection=found.fit_seconds / total.where(total > 0))

    @cached_property
    def failures(self) -> pd.DataFrame:
        """Fits that failed or ran out of time, by reason."""
        names = ["section", "data", "method", "status", "reason"]
        of_study = self.fits[self.fits.section != SYNTHETIC]
        bad = of_study[~of_study.status.isin(["ok", "missing"])]
        grouped = bad.groupby(names, sort=False)
        return grouped.agg(
            settings=("task", "nunique"),
            ks=("k", lambda ks: ", ".join(str(int(k)) for k in sorted(ks.dropna().unique()))),
        ).reset_index()

    @property
    def unfinished(self) -> tuple[int, int]:
        """The number of tasks without a result, and of all."""
        keys = {entry.task.key for entry in self.run.entries}
        return len(keys - self.run.outcomes.keys()), len(keys)

    @property
    def own(self) -> str | None:
        """Title of the method that the claims are about."""
        return self.title_of(self.subject)

    @cached_property
    def baselines(self) -> tuple[str, ...]:
        """Titles of the baselines."""
        return tuple(m.title for m in self.spec.methods if m.name in BASELINES)

    @cached_property
    def rivals(self) -> tuple[str, ...]:
        """Every other method that is not a baseline."""
        kinds = (self.subject, *BASELINES)
        return tuple(m.title for m in self.spec.methods if m.name not in kinds)

    def title_of(self, selector: str | None) -> str | None:
        """Title of the first method of a class."""
        return next((m.title for m in self.spec.methods if m.name == selector), None)

    def sweep(self, name: str, data: str, measure: str) -> pd.DataFrame:
        """Value of the setting x k: the measure, best over the sweep's grid at each k."""
        sweep = next(s for s in self.spec.sweeps if s.name == name)
        mine = self.fits[(self.fits.section == name) & (self.fits.data == data)]
        values = mine.params.map(lambda params: params[sweep.vary])
        best = mine.groupby([values, "k"], sort=False)[f"{measure}_mean"].max()
        return best.unstack().reindex(sweep.values).dropna(how="all")


def _fits(run: StudyRun) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for entry in run.entries:
        outcome, key = run.outcome(entry), entry.task.key
        judged = {int(j["n_features"]): j for j in outcome.judgements}
        # A fit that is not scored (a sweep that records the objective) has no k.
        for k in entry.task.ks if entry.task.repeats else (None,):
            row = {name: getattr(entry, name) for name in ("section", "data", "method", "role")}
            row |= {"params": entry.params, "k": k, "repeats": entry.task.repeats}
            for measure in run.spec.measures:
                values = judged.get(k or 0, {}).get(measure)
                row[f"{measure}_mean"] = float(np.mean(values)) if values else np.nan
                row[f"{measure}_std"] = float(np.std(values)) if values else np.nan
            names = ("n_iter", "status", "reason", "fit_seconds", "kmeans_seconds")
            rows.append(row | {name: getattr(outcome, name) for name in names} | {"task": key})
    return pd.DataFrame(rows).astype({"k": "Int64", "n_iter": "Int64"})


def _compare(study: StudyResults, role: str) -> Comparison:
    """The best setting with a role; random draws are pooled."""
    spec, tables = study.spec, study.run.tables
    mine = study.fits[study.fits.section == COMPARISON]
    pairs = pd.MultiIndex.from_frame(mine[["data", "method"]])
    wanted = mine.role.isin([role, "draw"])
    if role == "grid":
        # A method without a grid is planned once: its default is what tuning would find.
        has_grid = pairs.isin(pairs[mine.role == "grid"])
        wanted |= (mine.role == "default") & (spec.tune_from_default | ~has_grid)
    tried = mine[wanted]
    is_draw = tried.role == "draw"
    # The best mean ACC; of equal settings the first; of failures the first.
    best = tried[~is_draw].sort_values("acc_mean", ascending=False, kind="stable")
    scores = pd.concat([best.drop_duplicates(PLACE), _pooled(tried[is_draw])])
    failed = tried.assign(settings_tried=1, settings_failed=tried.acc_mean.isna().astype(int))
    counts = failed.groupby(PLACE)[["settings_tried", "settings_failed"]].sum()
    scores = scores.merge(counts, on=PLACE).astype({"repeats": int})
    scores["repeats"] = scores.repeats.where(scores.acc_mean.notna(), 0)
    methods = [title for title in spec.methods_by_title if (scores.method == title).any()]
    order = {name: place for place, name in enumerate([*tables, *spec.methods_by_title])}
    scores = scores.sort_values(
        PLACE, key=lambda names: names if names.name == "k" else names.map(order)
    )
    statistics = [f"{measure}_{kind}" for measure in MEASURES for kind in ("mean", "std")]
    if role == "default":
        statistics += [f"{measure}_mean" for measure in spec.measures[2:]]
    last = ["repeats", "params", "settings_tried", "settings_failed", "status", "reason"]
    by_title = spec.methods_by_title
    return Comparison(
        scores[[*PLACE, *statistics, *last]].reset_index(drop=True),
        {d: spec.ks_within(f.n_features, tuned=role == "grid") for d, f in tables.items()},
        tuple(methods),
        frozenset(title for title in methods if by_title[title].name == ALL_FEATURES),
    )


def _pooled(draws: pd.DataFrame) -> pd.DataFrame:
    """Draws of a random ranking as one setting: mean and deviation of all their repeats."""
    if draws.empty:
        return draws
    columns = [name for name in draws if str(name).endswith("_mean")]
    # The first draw that is not ok, if none has a score, gives the reason.
    first = draws.sort_values("acc_mean", kind="stable").drop_duplicates(PLACE).set_index(PLACE)
    grouped = draws.groupby(PLACE)
    for name in columns:
        deviation = str(name).replace("_mean", "_std")
        mean = grouped[name].mean()
        squares = (draws[deviation] ** 2 + draws[name] ** 2).groupby([draws[p] for p in PLACE])
        first[name] = mean
        first[deviation] = np.sqrt((squares.mean() - mean**2).clip(lower=0))
    ok = draws[draws.acc_mean.notna()].groupby(PLACE).repeats.sum()
    first["repeats"] = ok.reindex(first.index).fillna(0).astype(int)
    first["params"] = [{} for _ in range(len(first))]
    return first.reset_index()
