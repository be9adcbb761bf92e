"""Hostile trials: random and odd input, checked by brute force or by running it.

    python tools/hostile.py [--trials SHARE] [--only KIND] [--seed N]   (make test-hostile)

Six kinds: certificates and exact searches against all sets of features; odd tables through every
selector; what reordering, signs and repeated rows change; damaged recipes; commands that `keepers
check` prints. Counts are printed for each. The exit code is 1 after a wrong bound or a crash.
"""

import argparse
import contextlib
import json
import os
import shlex
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from keepers import all_selectors, certify, solve_exactly
from keepers.app import app
from keepers.exceptions import KeepersError, KeepersWarning

Rng = np.random.Generator
EQUAL, TIED = 1e-9, 2e-13
"""Shares: a value is right within the first; sets closer than the second are equally good."""


class Kind:
    """Counts of one kind of trial."""

    def __init__(self, name: str) -> None:
        self.name, self.counts, self.faults = name, Counter[str](), list[str]()
        self.began = time.perf_counter()

    def count(self, what: str) -> None:
        """Add one to a count."""
        self.counts[what] += 1

    def fault(self, what: str, text: str) -> None:
        """Note a wrong bound or a crash."""
        self.counts[f"WRONG ({what})"] += 1
        self.faults.append(f"{what}: {text}")

    def show(self) -> None:
        """Print the counts, and the first faults."""
        counts = ", ".join(f"{what} {count:,}" for what, count in sorted(self.counts.items()))
        print(f"{self.name}: {counts} ({time.perf_counter() - self.began:.0f} s)")
        for text in self.faults[:5]:
            print(f"    {text[:500]}")


def small_table(rng: Rng) -> np.ndarray:
    """A table of which all sets can be tried; often with constant and duplicated columns."""
    n, d = int(rng.integers(3, 15)), int(rng.integers(3, 10))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4)
    if rng.random() < 0.5:
        X *= rng.uniform(0.1, 10.0, d)
    for _ in range(int(rng.integers(0, 3))):
        X[:, rng.integers(d)] = rng.normal()
    for _ in range(int(rng.integers(0, 3))):
        first, second = rng.choice(d, 2, replace=False)
        X[:, first] = X[:, second] * rng.choice([1.0, -1.0, 1.0 + 1e-7])
    return X


def variances_held(X: np.ndarray, k: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """All sets of k columns, and the variance that each holds in m components."""
    S = np.cov(X, rowvar=False, bias=True).reshape(X.shape[1], -1)
    sets = np.array(list(combinations(range(len(S)), k)))
    parts = S[sets[:, :, None], sets[:, None, :]]
    return sets, np.linalg.eigvalsh(parts)[:, -m:].sum(axis=1)


def small_problem(rng: Rng) -> tuple[np.ndarray, int, int]:
    """A small table with a column that varies, a number of features and one of components."""
    X = small_table(rng)
    while not np.ptp(X, axis=0).any():
        X = small_table(rng)
    k = int(rng.integers(1, X.shape[1]))
    return X, k, int(rng.integers(1, k + 1))


def certificates(kind: Kind, trials: int, rng: Rng) -> None:
    """The bound holds, and what is proved about single features is true of all best sets."""
    for at in range(trials):
        X, k, m = small_problem(rng)
        chosen = rng.choice(X.shape[1], k, replace=False)
        sets, values = variances_held(X, k, m)
        try:
            found = certify(X, chosen, m, tight=bool(rng.integers(2)))
        except KeepersError:
            kind.count("refused")
            continue
        kind.count("certificates")
        best, mine = values.max(), values[(sets == np.sort(chosen)).all(axis=1)][0]
        allowance = EQUAL * best
        are_best = sets[values >= best * (1.0 - TIED)]
        shares = np.bincount(are_best.ravel(), minlength=X.shape[1]) / len(are_best)
        wrong = {
            "value": abs(found.value - mine) > allowance,
            "bound below the best set": found.upper_bound < best - allowance,
            "proved in": np.any(shares[found.proved_in] < 1.0),
            "proved out": np.any(shares[found.proved_out] > 0.0),
            "best_features has not k": len(set(found.best_features.tolist())) != k,
        }
        for what in [what for what, is_wrong in wrong.items() if is_wrong]:
            kind.fault(what, f"trial {at}, {X.shape}, k = {k}, m = {m}, chosen {chosen.tolist()}")


def exact_searches(kind: Kind, trials: int, rng: Rng) -> None:
    """The set that branch and bound proves to be the best is the best."""
    for at in range(trials):
        X, k, m = small_problem(rng)
        best = variances_held(X, k, m)[1].max()
        try:
            found = solve_exactly(X, k, m)
        except KeepersError:
            kind.count("refused")
            continue
        kind.count("searches")
        if not found.proved or abs(found.value - best) > EQUAL * best or len(found.features) != k:
            text = f"trial {at}, {X.shape}, k = {k}, m = {m}, found {found.value}, best {best}"
            kind.fault("not the best set", text)


def odd_table(rng: Rng) -> np.ndarray:
    """A table of usual size with something odd about it."""
    n, d = int(rng.integers(2, 30)), int(rng.integers(1, 14))
    X = rng.standard_normal((n, d))
    odd: list[Callable[[], Any]] = [
        lambda: X * 10.0 ** rng.integers(-120, 120, d),
        lambda: X * 10.0 ** float(rng.integers(-300, 300)),
        lambda: np.repeat(X[:2], n, axis=0),
        lambda: np.repeat(X[:, :1], d, axis=1),
        lambda: np.where(rng.random(X.shape) < 0.9, 0.0, X),
        lambda: np.round(X),
        lambda: X + 1e9,
        lambda: np.where(np.arange(d) % 2, 1.0, X),
        lambda: np.where(np.arange(n)[:, None] == 0, 1e15, X),
        lambda: (X > 0).astype(float),
        lambda: X.astype(np.float32),
        lambda: X,
    ]
    return np.asarray(odd[int(rng.integers(len(odd)))]())


def fitted(name: str, X: Any, k: int | None = None) -> Any:
    """A selector fitted with its defaults and a fixed seed, quietly."""
    method: Any = all_selectors()[name]
    selector = method(k)
    if "random_state" in selector.get_params():
        selector.set_params(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # NumPy's words are not for users
        warnings.simplefilter("ignore", KeepersWarning)
        return selector.fit(X)


def odd_tables(kind: Kind, trials: int, rng: Rng) -> None:
    """Every selector gives finite scores and k features, or an error of keepers."""
    names = [name for name in all_selectors() if name != "AllFeatures"]
    for at in range(trials):
        X, name = odd_table(rng), names[at % len(names)]
        k = int(rng.integers(1, X.shape[1] + 1))
        try:
            selector = fitted(name, X, k)
        except KeepersError:
            kind.count("refused")
            continue
        except Exception as error:
            text = f"trial {at}, {name}(k = {k}) {X.shape}: {type(error).__name__}: {error}"
            kind.fault("crash", text)
            continue
        kind.count("fits")
        if not np.all(np.isfinite(selector.scores_)) or selector.get_support().sum() != k:
            kind.fault("scores", f"trial {at}, {name}(k = {k}) {X.shape}: {selector.scores_}")


def invariances(kind: Kind, trials: int, rng: Rng) -> None:
    """Count tables for which something that should not matter changes the kept set."""
    names = [n for n in all_selectors() if n not in ("AllFeatures", "RandomScore")]
    for name in names:
        changed: Counter[str] = Counter()
        for _ in range(trials):
            X = rng.standard_normal((40, 12))
            X[:, :5] += rng.choice([-3.0, 3.0], (3, 5))[np.arange(40) % 3]
            rows, columns = rng.permutation(40), rng.permutation(12)
            signs = rng.choice([-1.0, 1.0], 12)
            kept = fitted(name, X, 4).get_support()
            ways = {
                "rows": fitted(name, X[rows], 4).get_support(),
                "columns": fitted(name, X[:, columns], 4).get_support()[np.argsort(columns)],
                "signs": fitted(name, X * signs, 4).get_support(),
                "repeated rows": fitted(name, np.vstack([X, X]), 4).get_support(),
            }
            changed.update(way for way, found in ways.items() if not np.array_equal(found, kept))
        kind.counts["tables"] += trials
        for way, count in changed.items():
            kind.counts[f"{name}, {way}: changed"] += count


def run(*words: object) -> Any:
    """Run the command in this process."""
    return CliRunner().invoke(app, [str(word) for word in words])


def damage(value: Any) -> Iterator[Any]:
    """The content of a recipe with one part of it replaced or left out, for every part."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            for other in damage(value[key]):
                changed = value.copy()
                changed[key] = other
                yield changed
            left = value.copy()
            del left[key]
            yield left
    yield from (None, True, -1, 0.5, float("inf"), "", "x", [], [None], ["x"], [[]], {}, {"x": 1})


def recipes(kind: Kind, trials: int, rng: Rng) -> None:
    """A damaged recipe is applied or refused in a sentence."""
    frame = pd.DataFrame(rng.standard_normal((40, 4)), columns=list("abcd"))
    frame.assign(town=rng.choice(["x", "y", "z"], 40)).to_csv("t.csv", index=False)
    options = ("-k", 4, "--method", "variance", "--missing", "model", "--save", "r.json")
    assert run("select", "t.csv", *options).exit_code == 0
    text = Path("r.json").read_text()
    content = json.loads(text)
    whole = [json.dumps(each) for each in damage(content)]
    texts = [whole[at] for at in rng.permutation(len(whole))[: trials // 2]]
    for _ in range(trials // 2):
        at, length = int(rng.integers(len(text))), int(rng.integers(0, 9))
        texts.append(text[:at] + "".join(rng.choice([*'{}[]",:0a\\-'], 3)) + text[at + length :])
    for damaged in texts:
        Path("damaged.json").write_text(damaged)
        done = run("apply", "damaged.json", "t.csv", "--out", "o.csv", "--force")
        kind.count({0: "applied", 1: "refused"}.get(done.exit_code, "other"))
        if "Unexpected" in done.stderr or done.exit_code not in (0, 1):
            kind.fault("crash", f"{done.stderr[:200]!r} with {damaged[:200]!r}")


def made_table(rng: Rng) -> pd.DataFrame:
    """A table as people have them: columns of several kinds, gaps, copies, odd names."""
    n = int(rng.choice([1, 2, 3, 12, 40, 120]))
    groups = rng.integers(0, 3, n)
    columns: dict[str, Any] = {}
    makers: list[Callable[[], Any]] = [
        lambda: rng.standard_normal(n) + 3 * groups,
        lambda: rng.standard_normal(n) + 3 * groups,
        lambda: rng.standard_normal(n) * 1e6,
        lambda: np.full(n, 3.5),
        lambda: np.arange(n) + 1,
        lambda: [f"id {at}" for at in range(n)],
        lambda: rng.choice(["red", "green", "blue"], n),
        lambda: rng.choice(["yes", "no"], n),
        lambda: [f"2024-01-{1 + at % 28:02}" for at in range(n)],
        lambda: np.full(n, np.nan),
        lambda: rng.poisson(2.0, n),
        lambda: np.where(rng.random(n) < 0.3, np.nan, rng.standard_normal(n)),
        lambda: np.where(rng.random(n) < 0.1, np.inf, rng.standard_normal(n)),
        lambda: [f"a longer remark {at % 35} with {at % 37}" for at in range(n)],
        lambda: [f"{value:.2f}".replace(".", ",") for value in rng.standard_normal(n)],
    ]
    for at in range(int(rng.integers(1, 9))):
        name = str(rng.choice(["a", "b c", "x,y", "it's", "id", "-k", "ü", "*"])) + str(at)
        columns[name] = makers[int(rng.integers(len(makers)))]()
    frame = pd.DataFrame(columns)
    if rng.random() < 0.2:
        frame["copy"] = frame.iloc[:, 0]
    return frame


def checked_commands(kind: Kind, trials: int, rng: Rng) -> None:
    """The command that `check` prints runs, or `check` shows why none does."""
    for at in range(trials):
        frame = made_table(rng)
        name = f"t {at}" if at % 4 == 0 else f"t{at}.csv"
        if at % 4 == 0:  # a folder
            Path(name).mkdir()
        frame.to_csv(f"{name}/1.csv" if at % 4 == 0 else name, index=False)
        done = run("check", name, "--json")
        if done.exit_code:
            kind.count("not read")
            if done.exit_code != 1 or "Unexpected" in done.stderr:
                kind.fault("check", f"{done.stderr[:200]} {frame.head(3).to_csv()!r}")
            continue
        command = json.loads(done.stdout)["command"]
        if command is None:
            kind.count("no command shown")
            if run("select", name, "-k", 1).exit_code == 0:
                kind.fault("a selection was possible", f"{frame.head(3).to_csv()!r}")
            continue
        done = run(*shlex.split(command)[1:])
        if done.exit_code and "No structure found" in done.stderr:
            kind.count("no structure")
            done = run(*shlex.split(command)[1:], "-k", 1)
        kind.count("commands run")
        if done.exit_code:
            kind.fault("command", f"{command}: {done.stderr[-250:]!r} {frame.head(3).to_csv()!r}")


KINDS: dict[str, tuple[Callable[[Kind, int, Rng], None], int]] = {
    "certificates": (certificates, 6000),
    "exact searches": (exact_searches, 3000),
    "odd tables": (odd_tables, 3000),
    "invariances": (invariances, 10),
    "recipes": (recipes, 800),
    "checked commands": (checked_commands, 160),
}
"""Every kind, and its trials where none are asked for."""


def main(words: list[str] | None = None) -> int:
    """Run the trials; 1 if any found a fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=float, default=1.0, help="times the usual number of them")
    parser.add_argument("--only", choices=KINDS, help="one kind")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(words)
    faults = 0
    for at, (name, (trial, usual)) in enumerate(KINDS.items()):
        if asked.only not in (None, name):
            continue
        kind = Kind(name)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            trial(
                kind, max(1, round(asked.trials * usual)), np.random.default_rng([asked.seed, at])
            )
        kind.show()
        faults += len(kind.faults)
    return int(faults > 0)


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "100")
    sys.exit(main())
