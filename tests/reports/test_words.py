"""The words a report begins with."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from keepers import (
    SPCAFS,
    SPCAFSCV,
    AllFeatures,
    AutoSelector,
    StabilitySelector,
    TablePreparer,
    VarianceScore,
    all_selectors,
    check_table,
    datasets,
    describe_selection,
)
from keepers.reports.selection import as_sentences, put_into_words


def clusters(seed=0):
    """Ten columns in three groups of samples, ten of noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((90, 20))
    X[:, :10] += 5 * rng.standard_normal((3, 10))[np.arange(90) % 3]
    return X


def words_for(selection, certificate=None, notes=()):
    return put_into_words(selection, certificate, notes)


def describe(selector, X=None, **settings):
    X = clusters() if X is None else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return describe_selection(selector.fit(X), X, **settings)


def test_every_method_says_what_it_looks_for_and_what_its_score_means():
    for name, selector in all_selectors().items():
        assert selector.score_means, name
        assert selector.looks_for or name == "AllFeatures"


@pytest.mark.parametrize(
    ("selector", "k", "answer"),
    [
        (VarianceScore(3), None, "VarianceScore keeps 3 of the 20 features, as requested"),
        (VarianceScore(1), None, "VarianceScore keeps 1 of the 20 features, as requested"),
        (VarianceScore(), None, "VarianceScore keeps 10 of the 20 features: half of them"),
        (VarianceScore(), 4, "VarianceScore keeps 4 of the 20 features, as requested"),
        (AllFeatures(), None, "AllFeatures keeps all 20 features"),
        (AutoSelector(3), None, "AutoSelector keeps 3 of the 20 features, as requested"),
        (StabilitySelector(VarianceScore(3)), None, "StabilitySelector keeps 3 of the 20 features"),
    ],
)
def test_the_answer_says_whether_the_number_was_asked_for(selector, k, answer):
    assert words_for(describe(selector, k=k)).answer.startswith(answer)


def test_a_number_that_was_chosen_is_not_said_to_be_asked_for():
    auto = describe(AutoSelector())
    assert words_for(auto).answer == f"Keep {auto.k} of 20 features."
    searched = describe(SPCAFSCV(n_components=2, scaling=0.0, random_state=0))
    assert words_for(searched).answer == f"SPCAFSCV chose {searched.k} of the 20 features."


def test_sentences_are_parted_but_not_numbers():
    text = "Keep 5 of 20. They hold 0.5 of it; r = 0.73 on average. 3 more."
    assert as_sentences(text) == [
        "Keep 5 of 20.",
        "They hold 0.5 of it; r = 0.73 on average.",
        "3 more.",
    ]


def test_a_share_of_the_variance_is_told_where_it_says_something():
    X = clusters()
    share = X[:, VarianceScore(3).fit(X).support_].var(axis=0).sum() / X.var(axis=0).sum()
    told = words_for(describe(VarianceScore(3))).why[-1].replace("\xa0", " ")
    assert told == f"The kept features hold {100 * share:.1f} % of the total variance."
    for selector in (AutoSelector(3), SPCAFS(3, scaling=1.0)):
        assert "variance." not in " ".join(words_for(describe(selector)).why)
    assert "as the method weighs" in words_for(describe(SPCAFS(3, scaling=0.5))).why[-1]


def test_how_sure_it_is_comes_from_halves_or_proof_or_is_not_known():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 150))
    X[:, :60] += 3 * rng.standard_normal((3, 60))[np.arange(60) % 3]
    auto = describe(AutoSelector(), X)
    assert words_for(auto).how_sure == (str(auto.selector.stability_),)
    assert str(auto.selector.stability_) not in words_for(auto).why
    proved = describe(VarianceScore(3))
    assert words_for(proved, certificate=proved.certificate).how_sure[0].startswith("Proved: These")
    halves = describe(StabilitySelector(VarianceScore(3), n_resamples=10, random_state=0))
    assert f"a stability of {halves.selector.stability_.index:.2f}" in words_for(halves).how_sure[0]
    assert "did not measure" in words_for(proved).how_sure[0]


def test_what_to_watch_holds_doubts_inactive_and_constant_features_copies_and_notes():
    X, _, _ = datasets.load("srbct")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inactive = describe_selection(SPCAFS(60, n_components=3).fit(X), X)
    watch = words_for(inactive, notes=["A note."]).watch
    assert "kept features have active (non-zero) rows of W" in watch[0]
    assert watch[-1] == "A note."
    copied = np.random.default_rng(0).standard_normal((90, 6))
    copied[:, 1] = copied[:, 0]
    watch = words_for(describe(AllFeatures(), copied)).watch
    assert any(line.startswith("2 of the kept features repeat another") for line in watch)
    doubting = describe(AutoSelector(15))
    assert set(doubting.notes.doubts) <= set(words_for(doubting).watch)
    constant = clusters()
    constant[:, 19] = 1.0
    kept = describe(AllFeatures(), constant)
    assert "1 of the kept features is constant." in words_for(kept).watch


def test_noise_is_told_as_such():
    X = np.random.default_rng(0).standard_normal((60, 8))
    watch = words_for(describe(AutoSelector(3), X)).watch
    assert "No structure was found: the ranking is about as good as a random one." in watch


def test_copies_are_no_warning_where_the_method_keeps_one_of_them():
    X = clusters()
    X[:, 19] = X[:, 0] + 1e-3 * np.random.default_rng(0).standard_normal(90)
    notes = check_table(X).to_say()
    assert any(note.startswith("Nearly duplicated columns: 'x19' ~ 'x0'") for note in notes)
    assert not set(notes) & set(words_for(describe(AutoSelector(), X), notes=notes).watch)
    assert set(notes) <= set(words_for(describe(VarianceScore(5), X), notes=notes).watch)


def test_how_columns_were_read_is_apart_and_what_was_filled_is_not():
    frame = pd.DataFrame(clusters())
    frame.columns = [f"c{j}" for j in range(20)]
    frame.loc[[1, 4], "c3"] = np.nan
    frame["town"] = np.array(["x", "y", "z"])[np.arange(90) % 3]
    preparer = TablePreparer(missing="mean")
    words = words_for(describe(make_pipeline(preparer, VarianceScore(5)), frame))
    assert words.table == (
        "Categories, one feature each: 'town' (text with 3 values). Classes? Add --labels.",
    )
    assert "Missing values filled (mean) in 1 column: 'c3' (2)." in words.watch
