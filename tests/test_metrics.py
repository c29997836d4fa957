"""Metrics count positions, or whole spans, and refuse what does not line up."""

import numpy as np
import pytest

from crfx.metrics import label_f1, sequence_accuracy, span_f1, token_accuracy


def test_counts_positions_over_all_instances():
    # The mean of the instances' own accuracies would be 0.75 for the first and 0.5 for the second.
    assert token_accuracy([[1, 2], [3, 4]], [[1, 2], [3, 0]]) == 0.75
    assert token_accuracy([[1, 2, 3], [4]], [[1, 2, 3], [0]]) == 0.75


def test_labels_may_be_strings_or_arrays():
    assert token_accuracy([["B", "I"], ["O"]], [np.array(["B", "I"]), np.array(["O"])]) == 1.0
    assert token_accuracy([np.array([1, 2], np.int64)], [np.array([1, 0], np.int32)]) == 0.5


def test_empty_instances_weigh_nothing():
    assert token_accuracy([[], [1]], [[], [1]]) == 1.0


@pytest.mark.parametrize(
    ("y_true", "y_pred", "message"),
    [
        ([[1]], [[1], [2]], "y_true has 1 instances, y_pred has 2"),
        ([[1], [1, 2]], [[1], [1]], "instance 1: y_true has 2 labels, y_pred has 1"),
        (np.array([1, 2]), np.array([1, 2]), "instance 0: y_true must be one-dimensional"),
        ([[1]], [[[1]]], "instance 0: y_pred must be one-dimensional"),
        ([], [], "no position to score"),
        ([[]], [[]], "no position to score"),
    ],
)
def test_what_does_not_line_up_is_named(y_true, y_pred, message):
    with pytest.raises(ValueError, match=message):
        token_accuracy(y_true, y_pred)


@pytest.mark.parametrize(
    ("true", "predicted", "message"),
    [
        ([["PER", "O"]], [["LOC", "O"]], "instance 0, position 0: 'PER' marks no span"),
        ([["O"], ["O", 3]], [["O"], ["O", 3]], "instance 1, position 1: '3' marks no span"),
        ([["B-PER", "O"]], [["B-PER"]], "y_true has 2 labels, y_pred has 1"),
        (["B-PER", "O"], ["B-LOC", "O"], "must be one-dimensional"),
    ],
)
def test_spans_of_what_has_none_are_refused(true, predicted, message):
    with pytest.raises(ValueError, match=message):
        span_f1(true, predicted)


def test_tags_may_come_without_a_type():
    assert span_f1([["B", "I", "O", "B"]], [["B", "I", "O", "O"]]) == 2 / 3


@pytest.mark.parametrize(
    ("metric", "figure"),
    [(token_accuracy, 4 / 5), (sequence_accuracy, 1 / 2), (label_f1, 4 / 5), (span_f1, 2 / 3)],
)
def test_unknown_labels_do_not_count(metric, figure):
    """Of spans: instances that have one, as in `TagReport`."""
    true = [["B-A", "O", "B-A"], ["B-A", None, "O"]]
    found = [["B-A", "O", "O"], ["B-A", "I-A", "O"]]
    assert metric(true, found) == pytest.approx(figure)
    with pytest.raises(ValueError, match=r"there is no (position|instance) to score"):
        metric([[None]], [["O"]])
