"""SPCAFS on blocks of rows gives what it gives on the whole table, within the memory told."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from keepers import SPCAFS, datasets
from keepers.data.blocks.as_blocks import ArrayBlocks
from keepers.exceptions import DataError, ParameterError
from keepers.linalg.streamed import Budget
from keepers.selectors.block_tables import choose_route
from recording import Recording


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
    assert found.gamma_ == pytest.approx(expected.gamma_)
    np.testing.assert_allclose(found.mean_, expected.mean_, rtol=1e-6, atol=1e-9)


# Sources

SOURCES = {
    "list": lambda X: cut(X, 300),
    "tuple": lambda X: tuple(cut(X, 300)),
    "one block": lambda X: [X],
    "generator": lambda X: (block for block in cut(X, 300)),
    "function": lambda X: lambda: iter(cut(X, 300)),
    "array": lambda X: X,
    "fortran": np.asfortranarray,
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


def test_a_memory_map_is_read_from_its_file(narrow, tmp_path):
    path = tmp_path / "table.raw"
    mapped = np.memmap(path, dtype=np.float64, mode="w+", shape=narrow.shape)
    mapped[:] = narrow
    mapped.flush()
    same_scores(SPCAFS(5).fit_blocks(mapped), SPCAFS(5).fit(narrow))
    same_scores(SPCAFS(5).fit_blocks(mapped[100:]), SPCAFS(5).fit(narrow[100:]))
    same_scores(SPCAFS(5).fit_blocks(mapped[:, ::2]), SPCAFS(5).fit(narrow[:, ::2]))


def test_a_large_memory_map_given_to_fit_is_read_in_blocks(narrow, tmp_path, monkeypatch):
    monkeypatch.setattr("keepers.data.in_memory.LARGE_MAP", 1000)
    mapped = np.memmap(tmp_path / "table.raw", dtype=np.float64, mode="w+", shape=narrow.shape)
    mapped[:] = narrow
    mapped.flush()
    found = SPCAFS(5).fit(mapped)
    assert found.n_passes_ == 1
    same_scores(found, SPCAFS(5).fit(narrow))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_large_tall_array_is_fitted_from_its_scatter(narrow, dtype, monkeypatch):
    X = narrow.astype(dtype)
    expected = SPCAFS(5, max_correlation=0.6).fit(X)
    monkeypatch.setattr("keepers.selectors.fitted_table.TALL_SIZE", 1000)
    found = SPCAFS(5, max_correlation=0.6).fit(X)
    assert found.scores_.dtype == dtype
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-5)
    np.testing.assert_array_equal(found.ranking_[:10], expected.ranking_[:10])
    X[3, 2] = np.nan
    with pytest.raises(DataError, match=r"2 \(1\)"):
        SPCAFS(5).fit(X)


def test_names_of_frames_are_kept_and_put_in_order(narrow):
    frame = pd.DataFrame(narrow).add_prefix("p")
    blocks = [frame[:900], frame[900:][frame.columns[::-1]]]
    found = SPCAFS(5).fit_blocks(blocks)
    same_scores(found, SPCAFS(5).fit(frame))
    assert list(found.top(3).names) == list(SPCAFS(5).fit(frame).top(3).names)


def test_single_precision_stays_and_loses_little(narrow):
    expected = SPCAFS(5).fit(narrow)
    found = SPCAFS(5).fit_blocks(cut(narrow.astype(np.float32), 100))
    assert found.scores_.dtype == found.components_.dtype == found.mean_.dtype == np.float32
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-5)


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


def test_pruning_from_the_scatter_is_pruning_from_the_table(narrow):
    settings = {"n_components": 4, "max_correlation": 0.5}
    expected = SPCAFS(10, **settings).fit(narrow)
    found = SPCAFS(10, **settings).fit_blocks(cut(narrow, 100))
    np.testing.assert_array_equal(found.ranking_, expected.ranking_)


def test_constant_columns_are_set_aside_on_every_route(planted):
    X = planted.copy()
    X[:, [7, 2999]] = 3.0
    for limit in ("112M", "400M", "4G"):
        with pytest.warns(UserWarning, match="do not vary.*: 7, 2999"):
            found = SPCAFS(10, n_components=4, memory_limit=limit).fit_blocks(X)
        assert sorted(np.argsort(found.ranking_)[-2:]) == [7, 2999]


def test_rows_that_pass_once_and_cannot_be_summed_are_held_if_they_fit(planted):
    expected = SPCAFS(10, n_components=4).fit(planted)
    found = SPCAFS(10, n_components=4, memory_limit="150M").fit_blocks(iter(cut(planted, 50)))
    assert (found.route_, found.n_passes_) == ("memory", 1)
    same_scores(found, expected)
    with pytest.raises(DataError, match=r"fit into memory_limit, 5\.2 MB here.*block 5.*again"):
        SPCAFS(memory_limit="5M").fit_blocks(iter(cut(planted, 50)))


def test_where_nothing_fits_the_message_says_what_would(planted):
    with pytest.raises(DataError, match=r"memory_limit, 10\.5 MB here.*316\.7 MB to sum") as caught:
        SPCAFS(n_components=4, memory_limit="10M").fit_blocks(planted)
    assert "for products with 4 components" in str(caught.value)
    assert "to hold the rows" in str(caught.value)


@pytest.mark.parametrize("limit", ["", "five", -1, 0, True, "0G", "1X"])
def test_a_limit_that_is_no_size_is_refused(limit, narrow):
    with pytest.raises(ParameterError, match="memory_limit takes a size like 500M or 4G"):
        SPCAFS(memory_limit=limit).fit_blocks(narrow)


def test_summing_is_preferred_while_it_is_cheap():
    def route(shape, n_bytes, width=10):
        return choose_route(ArrayBlocks(np.zeros(shape), "X"), Budget(n_bytes), width)

    assert route((5000, 500), 4e9) == "scatter"
    assert route((20, 3000), 4e9) == "memory"
    assert route((200, 3000), 1.06e8, width=4) == "stream"


# Routes chosen by hand


@pytest.mark.parametrize("route", ["scatter", "memory", "stream"])
def test_every_route_can_be_chosen_by_hand_and_gives_the_same_scores(narrow, route):
    expected = SPCAFS(5, n_components=3).fit(narrow)
    for source in (narrow, cut(narrow, 100), sp.csr_array(narrow)):
        found = SPCAFS(5, n_components=3, route=route).fit_blocks(source)
        assert found.route_ == route
        assert (found.n_passes_ > 1) == (route == "stream")
        same_scores(found, expected, tol=1e-6)


def test_a_memory_map_takes_the_route_and_a_table_in_memory_ignores_it(
    narrow, tmp_path, monkeypatch
):
    monkeypatch.setattr("keepers.data.in_memory.LARGE_MAP", 1000)
    np.save(tmp_path / "X.npy", narrow)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert SPCAFS(5, route="stream").fit(mapped).route_ == "stream"
    assert not hasattr(SPCAFS(5, route="stream").fit(narrow), "route_")
    SPCAFS(5, route="stream").partial_fit(narrow)


@pytest.mark.parametrize("route", ["", "disk", None, 3, ["stream"]])
def test_a_route_that_does_not_exist_is_refused_before_the_source_is_touched(route):
    blocks = iter([np.ones((2, 2))])
    with pytest.raises(ParameterError, match="route must be one of 'auto', 'scatter', 'memory'"):
        SPCAFS(route=route).fit_blocks(blocks)
    assert len(list(blocks)) == 1


def test_a_route_that_does_not_fit_is_refused_with_those_that_do(planted):
    with pytest.raises(ParameterError) as caught:
        SPCAFS(n_components=4, memory_limit="112M", route="scatter").fit_blocks(planted)
    said = str(caught.value)
    assert "route='scatter' must fit into memory_limit, 117.4 MB here; it needs 316.7 MB" in said
    assert "route='memory' needs" in said
    assert "route='stream' needs" in said
    assert "Within 117.4 MB, use route='stream', or leave it to route='auto'." in said
    with pytest.raises(ParameterError, match=r"None fits into memory_limit, 10\.5 MB: raise it"):
        SPCAFS(n_components=4, memory_limit="10M", route="stream").fit_blocks(planted)


def test_rows_that_pass_once_cannot_be_streamed(narrow):
    with pytest.raises(ParameterError) as caught:
        SPCAFS(route="stream").fit_blocks(iter(cut(narrow, 100)))
    said = str(caught.value)
    assert "route='stream' reads the table many times; the iterator can be read only once" in said
    assert "route='memory' needs what the rows take, which is not known beforehand" in said
    assert "use route='scatter' or route='memory'" in said


def test_rows_that_are_not_local_cannot_be_held(narrow):
    da = pytest.importorskip("dask.array")
    table = da.from_array(narrow, chunks=(300, -1))
    with pytest.raises(
        ParameterError, match=r"are not local.*use route='scatter' or route='stream'"
    ):
        SPCAFS(route="memory").fit(table)


def test_rows_of_unknown_number_that_were_to_be_held_are_refused_when_they_outgrow_it(planted):
    with pytest.raises(
        DataError, match=r"because route='memory' holds them; they do not \(block 5"
    ):
        SPCAFS(memory_limit="5M", route="memory").fit_blocks(lambda: iter(cut(planted, 50)))


# Faults


def test_a_block_with_another_width_is_named(narrow):
    with pytest.raises(DataError, match="same 31 columns; block 2 has 30"):
        SPCAFS().fit_blocks([narrow[:100], narrow[100:, 1:]])


def test_a_block_without_rows_is_named(narrow):
    with pytest.raises(DataError, match="at least one row; block 2 holds none"):
        SPCAFS().fit_blocks([narrow[:100], narrow[:0], narrow[100:]])


@pytest.mark.parametrize("limit", ["4G", "112M"])
def test_a_block_with_gaps_is_named_with_its_columns(planted, limit):
    frame = pd.DataFrame(planted).add_prefix("g")
    frame.iloc[333, 17] = np.nan
    blocks = [frame[:300], frame[300:]]
    with pytest.raises(DataError, match=r"block 2 holds NaN.*'g17' \(1\)"):
        SPCAFS(n_components=4, memory_limit=limit).fit_blocks(lambda: blocks)


def test_blocks_with_other_columns_are_refused(narrow):
    frame = pd.DataFrame(narrow).add_prefix("p")
    with pytest.raises(DataError, match="block 2 has 'q', which the first block has not"):
        SPCAFS().fit_blocks([frame[:100], frame[100:].rename(columns={"p3": "q"})])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "at least one block"),
        (iter(()), "at least one block"),
        (3, "got a int"),
        ([["a", "b"]], "holds <U1|numeric|two dimensions"),
        (np.zeros((3, 4, 5)), "two dimensions"),
        (np.zeros((0, 4)), "at least one row"),
    ],
)
def test_what_holds_no_blocks_is_refused(source, message):
    with pytest.raises((DataError, ParameterError), match=message):
        SPCAFS().fit_blocks(source)


def test_one_row_is_refused():
    with pytest.raises(DataError, match="at least 2 samples; the blocks hold 1"):
        SPCAFS().fit_blocks([np.ones((1, 3))])


def test_a_failed_fit_leaves_nothing_behind(narrow):
    selector = SPCAFS(5).fit(narrow)
    with pytest.raises(DataError):
        selector.fit_blocks([narrow[:100], narrow[:0]])
    assert not [name for name in vars(selector) if name.endswith("_")]


# Row by row


def test_partial_fit_ends_where_fit_does(narrow):
    selector = SPCAFS(5, n_components=4)
    for block in cut(narrow, 250):
        selector.partial_fit(block)
    same_scores(selector, SPCAFS(5, n_components=4).fit(narrow))


def test_partial_fit_is_fitted_after_every_call_that_has_rows_enough(narrow):
    selector = SPCAFS(5, n_components=4)
    for row in narrow[:4]:
        selector.partial_fit(row[np.newaxis])
        assert not hasattr(selector, "ranking_")
    selector.partial_fit(narrow[4:200])
    same_scores(selector, SPCAFS(5, n_components=4).fit(narrow[:200]))


def test_partial_fit_takes_sparse_rows_and_frames(narrow):
    frame = pd.DataFrame(narrow).add_prefix("p")
    selector = SPCAFS(5).partial_fit(frame[:700]).partial_fit(frame[700:])
    assert selector.feature_names_in_[0] == "p0"
    same_scores(selector, SPCAFS(5).fit(narrow))
    sparse = SPCAFS(5).partial_fit(sp.csr_array(narrow[:700]))
    same_scores(sparse.partial_fit(sp.csc_array(narrow[700:])), SPCAFS(5).fit(narrow))


def test_partial_fit_refuses_another_width_and_too_little_memory(narrow):
    selector = SPCAFS(5).partial_fit(narrow)
    with pytest.raises(ValueError, match=r"30 features.*31"):
        selector.partial_fit(narrow[:, 1:])
    with pytest.raises(DataError, match="fit into memory_limit"):
        SPCAFS(5, memory_limit="1M").partial_fit(narrow)


def test_partial_fit_after_fit_starts_anew(narrow):
    selector = SPCAFS(5).fit(narrow)
    same_scores(selector.partial_fit(narrow[:200]), clone(selector).fit(narrow[:200]))


@pytest.mark.parametrize("factor", [1e25, 1e-25])
@pytest.mark.parametrize("shape", [(400, 30), (30, 400)], ids=["tall", "wide"])
@pytest.mark.parametrize("limit", ["4G", "106M"])
def test_squares_past_the_range_of_single_precision_are_no_obstacle(factor, shape, limit):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape)
    X[:, :6] += 3 * rng.standard_normal((3, 6))[rng.integers(0, 3, len(X))]
    expected = SPCAFS(5, n_components=3).fit(X)
    single = (X * factor).astype(np.float32)
    fits = [SPCAFS(5, n_components=3, memory_limit=limit) for _ in range(2)]
    for found in (fits[0].fit(single), fits[1].fit_blocks(single)):
        np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-5)


# Parameters are checked before data are touched


WRONG = {
    "n_features_to_select": 0,
    "n_components": 1.5,
    "gamma": -1.0,
    "p": 2.0,
    "scaling": 3.0,
    "eps": 0.0,
    "solver": "fast",
    "max_iter": 0,
    "tol": -1.0,
    "refine": "l21",
    "penalty_weights": {"p0": -1.0},
    "groups": 3,
    "missing": "drop",
    "must_keep": "p0",
    "never_keep": [-1],
    "max_correlation": 2.0,
    "memory_limit": "lots",
    "route": "disk",
    "checkpoint": "/absent/folder/fit.state",
    "random_state": "seed",
    "verbose": "loud",
    "callback": 3,
}


def test_there_is_a_wrong_value_for_every_parameter():
    assert set(WRONG) == set(SPCAFS().get_params())


@pytest.mark.parametrize(("name", "value"), WRONG.items(), ids=WRONG)
def test_a_parameter_is_refused_before_anything_is_taken_from_an_iterator(narrow, name, value):
    blocks = Recording(cut(narrow, 300))
    with pytest.raises(ParameterError):
        SPCAFS(**{name: value}).fit_blocks(blocks)
    assert blocks.taken == 0
    same_scores(SPCAFS(5).fit_blocks(blocks), SPCAFS(5).fit(narrow))


@pytest.mark.parametrize(("name", "value"), WRONG.items(), ids=WRONG)
def test_a_parameter_is_refused_before_a_file_is_opened_or_rows_are_added(
    narrow, tmp_path, name, value
):
    selector = SPCAFS(**{name: value})
    with pytest.raises(ParameterError):
        selector.fit_blocks(tmp_path / "absent.csv")  # opening it would be a DataError
    with pytest.raises(ParameterError):
        selector.partial_fit(narrow)
    assert not hasattr(selector, "scatter_sum_")


@pytest.mark.parametrize(("name", "value"), WRONG.items(), ids=WRONG)
def test_a_parameter_is_refused_before_a_dask_chunk_is_computed(narrow, name, value):
    dask = pytest.importorskip("dask")
    da = pytest.importorskip("dask.array")
    computed = []
    lazy = dask.delayed(lambda: computed.append(1) or narrow)()
    X = da.from_delayed(lazy, narrow.shape, narrow.dtype)
    for fit in (SPCAFS(**{name: value}).fit, SPCAFS(**{name: value}).fit_blocks):
        with pytest.raises(ParameterError):
            fit(X)
    assert not computed


NEEDS_COLUMNS = {
    "must_keep": [99],
    "never_keep": ["g"],
    "penalty_weights": [1.0, 2.0],
    "groups": [1, 2, 3],
    "n_features_to_select": 32,
    "n_components": 32,
}


@pytest.mark.parametrize(("name", "value"), NEEDS_COLUMNS.items(), ids=NEEDS_COLUMNS)
def test_what_needs_the_columns_is_refused_after_the_first_block(narrow, name, value):
    blocks = Recording(cut(narrow, 300))
    with pytest.raises(ParameterError):
        SPCAFS(**{name: value}).fit_blocks(blocks)
    assert blocks.taken == 1
    with pytest.raises(DataError, match="already consumed"):
        SPCAFS().fit_blocks(blocks)
    selector = SPCAFS(**{name: value})
    with pytest.raises(ParameterError):
        selector.partial_fit(narrow)
    selector.set_params(**{name: SPCAFS().get_params()[name]})
    assert selector.partial_fit(narrow).n_samples_seen_ == len(narrow)


def test_an_iterator_whose_fit_failed_is_not_fitted_in_part(narrow):
    blocks = iter([narrow[:100], narrow[100:200, 1:], narrow[200:]])
    with pytest.raises(DataError, match="same 31 columns"):
        SPCAFS(5).fit_blocks(blocks)
    with pytest.raises(DataError, match="already consumed"):
        SPCAFS(5).fit_blocks(blocks)


def test_a_function_that_returns_the_same_iterator_is_not_fitted_in_part(narrow):
    blocks = iter(cut(narrow, 300))
    same_scores(SPCAFS(5).fit_blocks(lambda: blocks), SPCAFS(5).fit(narrow))


# Rows that change between passes


@pytest.fixture
def streaming(monkeypatch):
    """Every table is streamed, as a large one would be."""
    monkeypatch.setattr("keepers.selectors.block_tables.choose_route", lambda *_: "stream")


def changing(*passes):
    """A function that gives other blocks from the second pass on; the first stands twice."""
    left = list(passes)
    return lambda: iter(cut(left.pop(0) if len(left) > 1 else left[0], 100))


def z_scored(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def test_rows_that_are_fewer_in_a_later_pass_are_noticed(planted, streaming):
    with pytest.raises(
        DataError, match=r"the function must.*pass 1 gave 400 rows and pass 2 .*300"
    ):
        SPCAFS(5, n_components=4).fit_blocks(changing(planted, planted[:300]))


def test_no_rows_at_all_in_a_later_pass_are_noticed(planted, streaming):
    blocks = iter(cut(planted, 100))
    with pytest.raises(DataError, match=r"pass 1 gave 400 rows and pass 2 gave 0"):
        SPCAFS(5, n_components=4).fit_blocks(lambda: blocks)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "change",
    [lambda X: X + 0.1, lambda X: X[:, ::-1], lambda X: np.roll(X, 1, axis=1)],
    ids=["other values", "columns reversed", "columns rolled"],
)
def test_other_values_in_a_later_pass_are_noticed(planted, streaming, change, dtype):
    X = z_scored(planted[:, :500]).astype(dtype)
    if change(X).mean() < 0.05:  # the moments stay as they are
        np.testing.assert_allclose(change(X).std(axis=0), X.std(axis=0), rtol=1e-4)
    with pytest.raises(DataError, match=r"passes 1 and \d gave 400 rows each, but with other val"):
        SPCAFS(5, n_components=4).fit_blocks(changing(X, change(X)))


@pytest.mark.parametrize("n_passes", range(1, 8))
def test_a_change_after_any_pass_is_noticed(planted, streaming, n_passes):
    X = z_scored(planted[:, :1500])
    settings = {"n_components": 4, "max_correlation": 0.9}
    source = changing(*[X] * n_passes, np.roll(X, 1, axis=0)[:, ::-1])
    with pytest.raises(DataError, match="must give the same rows"):
        SPCAFS(5, **settings).fit_blocks(source)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_same_rows_in_another_order_and_other_blocks_are_no_change(planted, streaming, dtype):
    X = (planted + 1000.0).astype(dtype)
    rng = np.random.default_rng(0)
    found = SPCAFS(5, n_components=4).fit_blocks(
        lambda: iter(cut(X[rng.permutation(len(X))], int(rng.integers(30, 200))))
    )
    expected = SPCAFS(5, n_components=4).fit(planted)
    assert set(found.top(5).indices) == set(expected.top(5).indices)


def test_a_file_that_grows_between_passes_is_noticed(planted, streaming, tmp_path):
    pytest.importorskip("pyarrow")
    path, frame = tmp_path / "table.csv", pd.DataFrame(planted[:, :50]).add_prefix("g")
    frame.to_csv(path, index=False)

    def grow(progress):
        with path.open("a") as stream:
            frame[:7].to_csv(stream, index=False, header=False)

    with pytest.raises(DataError, match=r"table\.csv must.*gave 400 rows and pass \d+ gave 4\d\d"):
        SPCAFS(5, n_components=4, solver="block", callback=grow).fit_blocks(path)


# Columns by name


def test_partial_fit_matches_columns_by_name(narrow):
    frame = pd.DataFrame(narrow).add_prefix("p")
    selector = SPCAFS(5).partial_fit(frame[:700]).partial_fit(frame[700:][frame.columns[::-1]])
    same_scores(selector, SPCAFS(5).fit(narrow))


@pytest.mark.parametrize("labels", [range(31), range(100, 131)], ids=["from 0", "from 100"])
def test_partial_fit_matches_columns_by_labels_that_are_no_names(narrow, labels):
    frame = pd.DataFrame(narrow, columns=labels)
    selector = SPCAFS(5).partial_fit(frame[:700]).partial_fit(frame[700:][frame.columns[::-1]])
    same_scores(selector, SPCAFS(5).fit(narrow))


def test_partial_fit_refuses_columns_that_cannot_be_matched(narrow):
    frame = pd.DataFrame(narrow).add_prefix("p")
    selector = SPCAFS(5).partial_fit(frame[:700])
    for other in (frame[700:].rename(columns={"p3": "q"}), narrow[700:]):
        with pytest.raises(DataError, match=r"has 'q'|in all blocks or in none"):
            selector.partial_fit(other)
    twice = frame.rename(columns={"p3": "p4"})
    with pytest.raises(DataError, match="duplicate names: 'p4'"):
        SPCAFS(5).partial_fit(twice)
    assert selector.partial_fit(frame[700:]).n_samples_seen_ == len(narrow)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_of_a_folder_are_matched_by_name(narrow, tmp_path, suffix):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(narrow).add_prefix("p")
    for number, part in enumerate([frame[:700], frame[700:][frame.columns[::-1]]]):
        getattr(part, f"to_{suffix}")(tmp_path / f"{number}.{suffix}", index=False)
    same_scores(SPCAFS(5).fit_blocks(tmp_path), SPCAFS(5).fit(frame))


def test_partial_fit_waits_for_columns_that_vary(narrow):
    selector = SPCAFS(5, n_components=2).partial_fit(narrow[[0, 0, 0]])
    assert not hasattr(selector, "ranking_")
    same_scores(
        selector.partial_fit(narrow[1:]),
        SPCAFS(5, n_components=2).fit(np.vstack([narrow[[0, 0, 0]], narrow[1:]])),
    )
