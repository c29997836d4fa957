"""Bins of probabilities, and how far they are from the truth."""

import numpy as np
import pytest

from crfx.calibration import Reliability, expected_calibration_error, reliability

EXACT = 1e-12


def test_the_error_is_the_mean_gap_weighted_by_counts():
    p = np.array([0.95, 0.91, 0.55, 0.52, 0.1])
    right = np.array([True, True, True, False, False])
    # Bins of width 0.1: (0.9, 1]: |1.86 - 2|; (0.5, 0.6]: |1.07 - 1|; (0, 0.1]: |0.1 - 0|.
    counted = Reliability(10)
    counted.add(p, right)
    assert counted.error() == pytest.approx((0.14 + 0.07 + 0.1) / 5, abs=EXACT)
    filled = {round(each.high, 1): each for each in counted.bins() if each.count}
    assert sorted(filled) == [0.1, 0.6, 1.0]
    assert filled[1.0].gap == pytest.approx(-0.07, abs=EXACT)
    assert filled[0.6].right == 0.5


def test_calibration_error_is_large_for_overconfident_labels():
    random = np.random.default_rng(1)
    p = random.uniform(0.3, 1, 200_000)
    good, bad, parts = Reliability(), Reliability(), Reliability()
    right = random.random(len(p)) < p
    good.add(p, right)
    bad.add(np.minimum(p + 0.2, 1), right)
    assert good.error() < 0.01
    assert bad.error() > 0.1
    for begin in range(0, len(p), 77_777):
        parts.add(p[begin : begin + 77_777], right[begin : begin + 77_777])
    assert parts.n_labels == good.n_labels == len(p)
    assert parts.error() == pytest.approx(good.error(), abs=EXACT)


def test_reliability_skips_unknown_labels_and_includes_bin_ends():
    result = reliability([["A", None], []], [["A", "B"], []], [[0.5, 0.9], []])
    assert result.n_labels == 1
    assert expected_calibration_error([["A", None]], [["A", "B"]], [[0.5, 0.9]]) == 0.5
    counted = Reliability(4)
    counted.add([0.0, 1.0, 1.0000002, 0.25], [False, True, True, True])
    assert [each.count for each in counted.bins()] == [2, 0, 0, 2]


def test_arguments_that_do_not_fit_are_rejected():
    for arguments, message in (
        (([["A"]], [["A"]], []), "y_pred has 1 instances, probabilities have 0"),
        (([["A"]], [["A"]], [[0.5, 0.5]]), "instance 0: y_pred has 1 labels, prob.* shape"),
        (([["A"]], [["A"]], [[1.5]]), "instance 0: 1.5 is no probability"),
        (([["A"]], [["A"]], [[np.nan]]), "instance 0: nan is no probability"),
        (([["A", "B"]], [["A"]], [[0.5]]), "instance 0: y_true has 2 labels, y_pred has 1"),
        (([[None]], [["A"]], [[0.5]]), "no label to judge by"),
        (([], [], []), "no label to judge by"),
    ):
        with pytest.raises(ValueError, match=message):
            expected_calibration_error(*arguments)
    for n_bins in (0, 2.0, True, None):
        with pytest.raises(ValueError, match="n_bins is"):
            Reliability(n_bins)
