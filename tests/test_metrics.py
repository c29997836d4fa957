"""Metrics count positions, or whole spans, and refuse what does not line up."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from crfx.metrics import label_f1, sequence_accuracy, span_f1, token_accuracy


def test_token_accuracy_counts_positions_over_all_instances():
    # The mean of the instances' own accuracies would be 0.75 for the first and 0.5 for the second.
    assert token_accuracy([[1, 2], [3, 4]], [[1, 2], [3, 0]]) == 0.75
    assert token_accuracy([[1, 2, 3], [4]], [[1, 2, 3], [0]]) == 0.75
    assert token_accuracy([[], [1]], [[], [1]]) == 1.0
    assert token_accuracy([["B", "I"], ["O"]], [np.array(["B", "I"]), np.array(["O"])]) == 1.0
    assert token_accuracy([np.array([1, 2], np.int64)], [np.array([1, 0], np.int32)]) == 0.5


def test_metrics_name_what_does_not_line_up():
    for metric, y_true, y_pred, message in (
        (token_accuracy, [[1]], [[1], [2]], "y_true has 1 instances, y_pred has 2"),
        (token_accuracy, [[1], [1, 2]], [[1], [1]], "instance 1: y_true has 2 labels, y_pred has "),
        (token_accuracy, np.arange(2), np.arange(2), "instance 0: y_true must be one-dimensional"),
        (token_accuracy, [[1]], [[[1]]], "instance 0: y_pred must be one-dimensional"),
        (token_accuracy, [], [], "no position to score"),
        (token_accuracy, [[]], [[]], "no position to score"),
        (span_f1, [["PER"]], [["LOC"]], "instance 0, position 0: 'PER' marks no span"),
        (span_f1, [["O"], ["O", 3]], [["O"], ["O", 3]], "ance 1, position 1: '3' marks no span"),
        (span_f1, [["B-PER", "O"]], [["B-PER"]], "y_true has 2 labels, y_pred has 1"),
        (span_f1, ["B-PER", "O"], ["B-LOC", "O"], "must be one-dimensional"),
    ):
        with pytest.raises(ValueError, match=message):
            metric(y_true, y_pred)


@pytest.mark.parametrize(
    ("metric", "figure"),
    [(token_accuracy, 4 / 5), (sequence_accuracy, 1 / 2), (label_f1, 4 / 5), (span_f1, 2 / 3)],
)
def test_unknown_labels_do_not_count(metric, figure):
    """Span metrics skip instances with an unknown label, as `TagReport` does."""
    true = [["B-A", "O", "B-A"], ["B-A", None, "O"]]
    predicted = [["B-A", "O", "O"], ["B-A", "I-A", "O"]]
    assert metric(true, predicted) == pytest.approx(figure)
    with pytest.raises(ValueError, match=r"there is no (position|instance) to score"):
        metric([[None]], [["O"]])


@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
def test_label_f1_averages_as_scikit_learn(average):
    options = {"average": average, "zero_division": 0.0}
    wanted = f1_score(list("abc"), list("aac"), **options)
    result = label_f1([["a", "b", None], ["c"]], [["a", "a", "b"], ["c"]], average=average)
    assert result == pytest.approx(wanted, abs=1e-12)
    labels = ["a", "z", "c"]  # one is on no side
    wanted = f1_score(list("abc"), list("aac"), labels=labels, **options)
    result = label_f1([list("abc")], [list("aac")], average=average, labels=labels)
    assert result == pytest.approx(wanted, abs=1e-12)
    with pytest.raises(ValueError, match="average is 'mean': choose one of 'macro', 'weighted'"):
        label_f1([["a"]], [["a"]], average="mean")
    with pytest.raises(ValueError, match=r"none of the labels \['z'\] is there"):
        label_f1([["a"]], [["a"]], labels=["z"])
