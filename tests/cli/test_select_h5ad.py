"""AnnData files through `keepers select` and `keepers apply`: nothing but genes is lost."""

import numpy as np
import pandas as pd
import pytest

anndata = pytest.importorskip("anndata")


@pytest.fixture
def cells(tmp_path):
    """A file with an object that has more than a table."""
    rng = np.random.default_rng(0)
    kinds = np.arange(60) % 3
    counts = rng.poisson(2.0, size=(60, 20)) + 9 * (rng.random((3, 20)) < 0.3)[kinds]
    obs = pd.DataFrame({"kind": pd.Categorical.from_codes(kinds, ["b", "m", "t"])})
    obs.index = [f"cell{at}" for at in range(60)]
    full = anndata.AnnData(counts.astype(np.int64), obs=obs)
    full.var_names = [f"gene{at}" for at in range(20)]
    full.raw = full.copy()
    full.layers["counts"] = counts
    full.obsm["X_umap"] = rng.standard_normal((60, 2))
    full.uns["note"] = "kept"
    full.write_h5ad(tmp_path / "cells.h5ad")
    return full


def test_select_and_apply_keep_the_rest_of_the_file(quick_keepers, cells, tmp_path):
    done = quick_keepers(
        *("select", "cells.h5ad", "-k", 5, "--labels", "kind", "--drop", "gene3"),
        *("--out", "kept.h5ad", "--save", "recipe.json"),
    )
    assert done.returncode == 0, done.stderr
    done = quick_keepers("apply", "recipe.json", "cells.h5ad", "--out", "applied.h5ad")
    assert done.returncode == 0, done.stderr
    kept = anndata.read_h5ad(tmp_path / "kept.h5ad")
    assert kept.n_vars == 5
    assert "gene3" not in kept.var_names
    for found in (kept, anndata.read_h5ad(tmp_path / "applied.h5ad")):
        expected = cells[:, found.var_names]
        assert set(found.var_names) == set(kept.var_names)
        assert found.X.dtype == np.int64
        np.testing.assert_array_equal(found.X, expected.X)
        np.testing.assert_array_equal(found.layers["counts"], expected.layers["counts"])
        np.testing.assert_array_equal(found.obsm["X_umap"], cells.obsm["X_umap"])
        pd.testing.assert_series_equal(found.obs["kind"], cells.obs["kind"], check_names=False)
        assert found.raw.shape == (60, 20)
        assert found.uns["note"] == "kept"


def test_a_file_may_be_replaced_by_its_own_selection(quick_keepers, cells, tmp_path):
    done = quick_keepers("select", "cells.h5ad", "-k", 5, "--out", "cells.h5ad", "--force")
    assert done.returncode == 0, done.stderr
    assert anndata.read_h5ad(tmp_path / "cells.h5ad").layers["counts"].shape == (60, 5)
