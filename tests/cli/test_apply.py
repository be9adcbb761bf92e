"""`keepers apply`, as a user runs it."""

import numpy as np
import pandas as pd

from keepers import SPCAFS

COLUMNS = ("--id", "sample", "--labels", "class")


def kept_by_hand(table, k=3):
    frame = pd.read_csv(table, index_col="sample").drop(columns="class")
    return set(SPCAFS(k).fit(frame).get_feature_names_out())


def test_a_recipe_keeps_the_same_columns_of_new_data(quick_keepers, table, tmp_path):
    assert (
        quick_keepers("select", table, "-k", 3, *COLUMNS, "--save", "recipe.json").returncode == 0
    )
    new = pd.read_csv(table).iloc[::-1, ::-1]
    new.to_csv(tmp_path / "new.csv", index=False)
    done = quick_keepers("apply", "recipe.json", "new.csv", *COLUMNS, "--out", "kept.csv")
    assert done.returncode == 0, done.stderr
    kept = pd.read_csv(tmp_path / "kept.csv")
    assert set(kept.columns) == {"sample", "class"} | kept_by_hand(table)
    np.testing.assert_array_equal(kept["sample"], new["sample"])
