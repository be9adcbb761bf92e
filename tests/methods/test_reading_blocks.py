"""SPCAFS on blocks of rows gives what it gives on the whole table, within the memory told."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers import SPCAFS, datasets
from keepers.blocks.sources import ArrayBlocks
from keepers.exceptions import DataError, ParameterError
from keepers.linalg.sums import Budget
from keepers.methods.reading import choose_route


@pytest.fixture(scope="module")
def planted():
    """More columns than a small budget can sum up: 400 x 3000, five groups in 60 columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3000))
    X[:, :60] += 3 * rng.standard_normal((5, 60))[rng.integers(0, 5, 400)]
    return X


@pytest.fixture(scope="module")
def narrow():
    X = datasets.load("digits").X
    return X[:, X[:200].std(axis=0) > 0][:, :31]  # columns that vary from the start


def cut(X, step):
    return [X[start : start + step] for start in range(0, X.shape[0], step)]


def same_scores(found, expected, tol=1e-8):
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=tol)
    assert found.n_components_ == expected.n_components_
    # A share of lambda_1, which the start finds to the square of its tolerance, 1e-2.
    assert found.gamma_ == pytest.approx(expected.gamma_, rel=1e-4)
    np.testing.assert_allclose(found.mean_, expected.mean_, rtol=1e-6, atol=1e-9)


# Sources

SOURCES = {
    "list": lambda X: cut(X, 300),
    "one block": lambda X: [X],
    "function": lambda X: lambda: iter(cut(X, 300)),
    "array": lambda X: X,
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "csr blocks": lambda X: [sp.csr_matrix(block) for block in cut(X, 300)],
    "frames": lambda X: [pd.DataFrame(block).add_prefix("p") for block in cut(X, 300)],
    "whole numbers": lambda X: [block.astype(np.int32) for block in cut(X, 300)],
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_source_gives_the_scores_of_the_whole_table(narrow, source):
    expected = SPCAFS(10, n_components=4).fit(narrow)
    found = SPCAFS(10, n_components=4).fit_blocks(source(narrow))
    same_scores(found, expected)
    assert found.n_passes_ == 1
    assert found.route_ == "scatter"
    np.testing.assert_array_equal(found.get_support(), expected.get_support())


def test_a_large_memory_map_given_to_fit_is_read_in_blocks(narrow, tmp_path, monkeypatch):
    monkeypatch.setattr("keepers.tables.objects.LARGE_MAP", 1000)
    mapped = np.memmap(tmp_path / "table.raw", dtype=np.float64, mode="w+", shape=narrow.shape)
    mapped[:] = narrow
    mapped.flush()
    found = SPCAFS(5).fit(mapped)
    assert found.n_passes_ == 1
    same_scores(found, SPCAFS(5).fit(narrow))


# Routes


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array], ids=["array", "csr"])
@pytest.mark.parametrize("n_components", [4, "auto"])
def test_the_route_follows_from_the_budget_and_does_not_change_the_scores(
    planted, store, n_components
):
    X = store(planted)
    expected = SPCAFS(10, n_components=n_components).fit(planted)
    routes = {}
    for limit in ("112M", "400M"):
        found = SPCAFS(10, n_components=n_components, memory_limit=limit).fit_blocks(X)
        same_scores(found, expected, tol=1e-6)
        routes[limit] = found.route_
        if found.route_ == "stream":
            assert 5 <= found.n_passes_ <= 40
        else:
            assert found.n_passes_ == 1
    assert routes["112M"] == "stream"
    assert routes["400M"] == "memory"


@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_streaming_with_scaling_weights_and_pruning_gives_the_same(planted):
    settings = {
        "n_components": 4,
        "scaling": 0.5,
        "must_keep": [2500],
        "never_keep": [3, 5],
        "max_correlation": 0.7,
    }
    expected = SPCAFS(40, **settings).fit(planted)
    streamed = SPCAFS(40, memory_limit="112M", **settings).fit_blocks(planted)
    assert streamed.route_ == "stream"
    same_scores(streamed, expected, tol=1e-6)
    np.testing.assert_array_equal(streamed.top(40).indices, expected.top(40).indices)


def test_summing_is_preferred_while_it_is_cheap():
    def route(shape, n_bytes, width=10):
        return choose_route(ArrayBlocks(np.zeros(shape), "X"), Budget(n_bytes), width)

    assert route((5000, 500), 4e9) == "scatter"
    assert route((20, 3000), 4e9) == "memory"
    assert route((200, 3000), 1.06e8, width=4) == "stream"


# Faults


@pytest.mark.parametrize("limit", ["4G", "112M"])
def test_a_block_with_gaps_is_named_with_its_columns(planted, limit):
    frame = pd.DataFrame(planted).add_prefix("g")
    frame.iloc[333, 17] = np.nan
    blocks = [frame[:300], frame[300:]]
    with pytest.raises(DataError, match=r"block 2 holds NaN.*'g17' \(1\)"):
        SPCAFS(n_components=4, memory_limit=limit).fit_blocks(lambda: blocks)


# Parameters are checked before data are touched


WRONG = {
    "n_features_to_select": 0,
    "n_components": 1.5,
    "gamma": -1.0,
    "missing": "drop",
    "must_keep": "p0",
    "memory_limit": "lots",
    "callback": 3,
}


@pytest.mark.parametrize(("name", "value"), WRONG.items(), ids=WRONG)
def test_a_parameter_is_refused_before_a_block_is_read(narrow, name, value):
    blocks = iter(cut(narrow, 300))
    with pytest.raises(ParameterError):
        SPCAFS(**{name: value}).fit_blocks(lambda: blocks)
    assert len(list(blocks)) == 6  # all of them


NEEDS_COLUMNS = {
    "must_keep": [99],
    "never_keep": ["g"],
    "n_features_to_select": 32,
    "n_components": 32,
}


@pytest.mark.parametrize(("name", "value"), NEEDS_COLUMNS.items(), ids=NEEDS_COLUMNS)
def test_what_needs_the_columns_is_refused_after_the_first_block(narrow, name, value):
    blocks = iter(cut(narrow, 300))
    with pytest.raises(ParameterError):
        SPCAFS(**{name: value}).fit_blocks(lambda: blocks)
    assert len(list(blocks)) == 5


# Rows that change between passes


@pytest.fixture
def streaming(monkeypatch):
    """Every table is streamed, as a large one would be."""
    monkeypatch.setattr("keepers.methods.reading.choose_route", lambda *_: "stream")


def changing(*passes):
    """A function that gives other blocks from the second pass on; a look at the first is none."""
    left = [passes[0], *passes]
    return lambda: iter(cut(left.pop(0) if len(left) > 1 else left[0], 100))


def test_rows_that_are_fewer_in_a_later_pass_are_noticed(planted, streaming):
    with pytest.raises(
        DataError, match=r"the function must.*pass 1 gave 400 rows and pass 2 .*300"
    ):
        SPCAFS(5, n_components=4).fit_blocks(changing(planted, planted[:300]))


@pytest.mark.parametrize(
    "change",
    [lambda X: X + 0.1, lambda X: X[:, ::-1], lambda X: np.roll(X, 1, axis=1)],
    ids=["other values", "columns reversed", "columns rolled"],
)
def test_other_values_in_a_later_pass_are_noticed(planted, streaming, change):
    X = planted[:, :500].astype(np.float32)
    with pytest.raises(DataError, match=r"passes 1 and \d gave 400 rows each, but with other val"):
        SPCAFS(5, n_components=4).fit_blocks(changing(X, change(X)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_same_rows_in_another_order_and_other_blocks_are_no_change(planted, streaming, dtype):
    X = (planted + 1000.0).astype(dtype)
    rng = np.random.default_rng(0)
    found = SPCAFS(5, n_components=4).fit_blocks(
        lambda: iter(cut(X[rng.permutation(len(X))], int(rng.integers(30, 200))))
    )
    expected = SPCAFS(5, n_components=4).fit(planted)
    assert set(found.top(5).indices) == set(expected.top(5).indices)
