"""What is said where more features are kept than rows of W are active."""

import re

import numpy as np
import pytest

from keepers import SPCAFS, SPCAFSCV, VarianceScore, datasets
from keepers.exceptions import DataWarning, InactiveRowsWarning
from keepers.solvers.penalty import InactiveRows, find_inactive_rows


@pytest.mark.parametrize(
    ("n_kept", "n_active", "said"),
    [
        (
            50,
            9,
            "Only 9 of the 50 kept features have active (non-zero) rows of W with gamma=12.3; "
            "the other 41 are ranked by how near they are to becoming active.",
        ),
        (
            2,
            1,
            "Only 1 of the 2 kept features has an active (non-zero) row of W with gamma=12.3; "
            "the other is ranked by how near it is to becoming active.",
        ),
    ],
)
def test_the_sentence_has_the_numbers(n_kept, n_active, said):
    assert str(InactiveRows(n_kept, n_active, 12.34, None)) == said


def test_the_way_out_names_a_gamma_and_a_number_in_the_words_of_python_or_the_command():
    found = InactiveRows(50, 9, 12.34, 4.567)
    assert found.way_out() == (
        "Use a smaller gamma (gamma=4.6 should be small enough), or keep at most 9 features."
    )
    assert found.way_out("--set gamma=", "-k ") == (
        "Use a smaller gamma (--set gamma=4.6 should be small enough), or keep at most 9 features "
        "(-k 9)."
    )
    assert InactiveRows(5, 1, 1.0, None).way_out() == (
        "Use a smaller gamma, or keep at most 1 feature."
    )


@pytest.mark.parametrize(("n_components", "k"), [("auto", 100), (3, 300), (10, 40)])
def test_the_gamma_that_the_warning_names_is_small_enough(n_components, k):
    X = datasets.load("srbct").X
    with pytest.warns(InactiveRowsWarning) as caught:
        before = SPCAFS(k, n_components=n_components, gamma=2e3).fit(X)
    named = float(re.search(r"\(gamma=(\S+) should", str(caught[0].message)).group(1))
    # With W held fixed, row i leaves zero where gamma falls below 2 |(SW)_i|: here a tenth below.
    centred = X - X.mean(axis=0)
    pull = 2 * np.linalg.norm(centred.T @ (centred @ before.components_.T), axis=1)
    inactive = np.linalg.norm(before.components_, axis=0) < 2e-6
    assert named == pytest.approx(0.9 * pull[before.support_ & inactive].min(), rel=0.06)
    after = SPCAFS(k, n_components=n_components, gamma=named).fit(X)  # without a warning
    assert k <= after.n_active_ < X.shape[1]


def test_features_skipped_for_max_correlation_do_not_count_as_kept_active_rows():
    """Enough rows are active, but copies of them are skipped, so that inactive ones are kept."""
    rng = np.random.default_rng(0)
    base = rng.standard_normal((60, 3)) * 5
    X = np.hstack([base, base + 0.1 * rng.standard_normal((60, 3)), rng.standard_normal((60, 6))])
    gamma = 0.1 * np.linalg.eigvalsh(np.cov(X.T) * 59)[-1]
    plain = SPCAFS(6, n_components=3, gamma=gamma).fit(X)
    assert plain.n_active_ == 6
    with pytest.warns(InactiveRowsWarning, match="Only 3 of the 6 kept features have active"):
        SPCAFS(6, n_components=3, gamma=gamma, max_correlation=0.9).fit(X)


@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_no_gamma_is_named_where_none_can_be_told():
    """Below p = 1, for groups, and where a column has nothing to do with the active ones."""
    X = np.kron(np.eye(4), [[1.0], [-1.0]]) * [2.0, 5.0, 3.0, 4.0]
    for settings in ({}, {"p": 0.5}, {"groups": [[0, 2], [1, 3]]}):
        selector = SPCAFS(4, n_components=1, gamma=100.0, **settings).fit(X)
        found = find_inactive_rows(selector, np.arange(4))
        assert found.small_enough is None
        assert found.n_active == selector.n_active_


def test_a_selector_that_chose_its_settings_speaks_for_its_winner():
    X = np.random.default_rng(0).standard_normal((60, 12)) * np.linspace(1, 3, 12)
    with pytest.warns(InactiveRowsWarning):
        selector = SPCAFSCV(10, n_components=[3], gamma_shares=[10.0], random_state=0).fit(X)
    found = find_inactive_rows(selector, np.flatnonzero(selector.support_))
    assert (found.n_kept, found.n_active) == (10, 3)
    assert found.gamma == selector.best_params_["gamma"]


def test_a_constant_feature_that_must_stay_is_not_said_to_be_inactive():
    X = np.random.default_rng(0).standard_normal((30, 6))
    X[:, 4] = 7.0
    with pytest.warns(DataWarning, match="do not vary"):  # and no other warning
        selector = SPCAFS(3, gamma=1e-3, must_keep=[4]).fit(X)
    assert selector.support_[4]
    assert find_inactive_rows(selector, np.flatnonzero(selector.support_)) is None


def test_other_selectors_have_nothing_to_say():
    X = np.random.default_rng(0).standard_normal((20, 6))
    assert find_inactive_rows(VarianceScore(3).fit(X), np.arange(3)) is None
    assert find_inactive_rows(SPCAFS(3, gamma=1e-3).fit(X), np.arange(3)) is None
