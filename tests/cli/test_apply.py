"""`keepers apply`: the columns of a recipe in another table, and what differs there."""

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from keepers.reports.recipe import Recipe

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """60 samples with gaps in every column; x and y are kept by their variance."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(60, 4)), columns=["x", "y", "z", "w"])
    frame[["x", "y"]] *= 5
    for at, name in enumerate(frame):
        frame.loc[random.choice(60, 4 + at, replace=False), name] = np.nan
    frame.insert(0, "name", [f"s{at}" for at in range(60)])
    frame.to_csv("t.csv", index=False)
    return frame


def select(quick_keepers, data, missing, *more):
    done = quick_keepers(
        *("select", data, "--id", "name", "--missing", missing, "-k", 2, "--method", "variance"),
        *("--out", "kept.csv", "--save", "r.json", "--force", *more),
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("missing", ["mean", "median", "model"])
@pytest.mark.parametrize("blocks", [(), ("--memory", "1G", "--method", "fspca")])
def test_a_recipe_gives_what_the_selection_wrote(quick_keepers, measured, missing, blocks):
    select(quick_keepers, "t.csv", missing, *blocks)
    done = quick_keepers("apply", "r.json", "t.csv", "--out", "again.csv")
    assert done.returncode == 0, done.stderr
    assert Path("again.csv").read_text() == Path("kept.csv").read_text()
    expected = measured[["name", "x", "y"]]
    pd.testing.assert_frame_equal(pd.read_csv("kept.csv"), expected.reset_index(drop=True))


def test_what_the_selection_would_not_have_read_is_said(quick_keepers, measured):
    select(quick_keepers, "t.csv", "median")
    new = measured.astype({"y": object})
    new["x"] = np.nan
    new.loc[[0, 1, 2], "y"] = ["0,5", "much", "1,234"]
    new.to_csv("new.csv", index=False)
    done = quick_keepers("apply", "r.json", "new.csv", "--out", "new-kept.csv")
    assert done.returncode == 0, done.stderr
    assert "Empty columns, not used: 'x'" in done.stderr
    assert "Columns of numbers that hold text in this table: 'y' (number)" in done.stderr
    assert "written as they are (how many): 'y' (" in done.stderr
    assert pd.read_csv("new-kept.csv")["y"].tolist()[:3] == ["0,5", "much", "1,234"]
    measured.assign(y=["low", "high"] * 30).to_csv("new.csv", index=False)
    done = quick_keepers("apply", "r.json", "new.csv", "--out", "new-kept.csv", "--force")
    assert "hold text in this table: 'y' (category)" in done.stderr
    infinite = measured.assign(y=np.inf)
    infinite.to_csv("new.csv", index=False)
    done = quick_keepers("apply", "r.json", "new.csv", "--out", "new-kept.csv", "--force")
    assert "Infinite values" in done.stderr
    assert "'y'" in done.stderr


def test_rows_that_were_left_out_are_named_again_or_written(quick_keepers, measured, tmp_path):
    select(quick_keepers, "t.csv", "median", "--drop-samples", "s3")
    done = quick_keepers("apply", "r.json", "t.csv", "--out", "all.csv")
    assert "left out rows by --drop-samples" in done.stderr
    assert len(pd.read_csv("all.csv")) == 60
    quick_keepers("apply", "r.json", "t.csv", "--out", "same.csv", "--drop-samples", "s3")
    assert Path("same.csv").read_text() == Path("kept.csv").read_text()
    (tmp_path / "parts").mkdir()
    measured.to_csv("parts/1.csv", index=False)
    done = quick_keepers("apply", "r.json", "parts", "--out", "parts.csv", "--drop-samples", "s3")
    assert done.returncode == 2
    assert "--drop-samples needs the table in memory" in done.stderr


def mutations(value):
    """The same content with one part replaced or left out, for every part of it."""
    if isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            for other in mutations(value[key]):
                changed = value.copy()
                changed[key] = other
                yield changed
            left = value.copy()
            del left[key]
            yield left
    yield from (None, True, -1, 0.5, "", "x", [], [None], ["x", "y"], [[]], {}, {"x": None})


def test_a_damaged_recipe_never_ends_unexpectedly(quick_keepers, measured):
    select(quick_keepers, "t.csv", "median")
    content = json.loads(Path("r.json").read_text())
    content["params"] = content["versions"] = {"a": 1}  # nothing reads them
    counts = {0: 0, 1: 0}
    for changed in islice(mutations(content), 0, None, 17):  # tools/hostile.py runs them all
        Path("damaged.json").write_text(json.dumps(changed))
        done = quick_keepers("apply", "damaged.json", "t.csv", "--out", "o.csv", "--force")
        assert "Unexpected" not in done.stderr, changed
        counts[done.returncode] += 1
    assert counts[1] > 10
    assert counts[0] > 3  # a name or a score may be anything


def test_recipes_of_earlier_versions_are_read():
    assert Recipe.load(FIXTURES / "recipe_0_1_0.json").features == ("d", "a")
