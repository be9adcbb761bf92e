"""ACC and NMI against hand cases, brute force and scikit-learn."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score

from keepers.exceptions import DataError
from keepers.metrics import clustering_accuracy, normalized_mutual_information

partitions = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
    )
)


def accuracy_by_trying_every_matching(true, pred):
    size = 5
    hits = [
        sum(t == matching[p] for t, p in zip(true, pred, strict=True))
        for matching in permutations(range(size))
    ]
    return max(hits) / len(true)


@given(partitions)
def test_accuracy_is_the_best_over_all_matchings(labels):
    true, pred = labels
    assert clustering_accuracy(true, pred) == pytest.approx(
        accuracy_by_trying_every_matching(true, pred)
    )


@given(partitions)
def test_nmi_is_scikit_learns_with_the_larger_entropy(labels):
    true, pred = labels
    expected = normalized_mutual_info_score(true, pred, average_method="max")
    assert normalized_mutual_information(true, pred) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("true", "pred", "accuracy"),
    [
        ([0, 0, 1, 1], [5, 5, 2, 2], 1.0),
        ([0, 0, 1, 1], [0, 1, 2, 3], 0.5),  # more clusters than classes: two match nothing
        ([0, 1, 2, 3], [7, 7, 7, 7], 0.25),  # fewer clusters than classes
        (["x", "x", "y", "y", "y"], ["b", "a", "a", "a", "a"], 0.8),
        # The greedy matching takes the 4 first and ends with 4; crossing over gives 3 + 2.
        ([0] * 7 + [1] * 2, [0] * 4 + [1] * 3 + [0] * 2, 5 / 9),
        ([0] * 7 + [1] * 3, [0] * 4 + [1] * 3 + [0] * 3, 6 / 10),
    ],
)
def test_accuracy_of_hand_cases(true, pred, accuracy):
    assert clustering_accuracy(true, pred) == pytest.approx(accuracy)


@pytest.mark.parametrize("measure", [clustering_accuracy, normalized_mutual_information])
def test_unequal_lengths_and_empty_labels_are_refused_with_the_way_out(measure):
    with pytest.raises(DataError, match="same length; got 2 and 3"):
        measure([0, 1], [0, 1, 2])
    with pytest.raises(DataError, match="at least one label"):
        measure([], [])
