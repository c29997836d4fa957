"""Two rows are compared by what both were tested on."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from reproduce.comparisons import compare, difference, read_comparison
from reproduce.fields import Fields

BOOTSTRAP = 0.15  # of the width: 10,000 samples, and the normal law is a limit


def units(**by_unit):
    return {name: SimpleNamespace(curves={"figure": values}) for name, values in by_unit.items()}


def test_only_common_units_are_compared():
    one = units(a=[1.0, 0.0], b=[1.0], c=[0.0])
    other = units(a=[0.5, 0.0], c=[0.5], d=[1.0])
    result = compare(one, other, "figure")
    assert (result.better, result.equal, result.worse) == (1, 1, 1)
    assert result.mean == 0.0
    assert result.sign_test == 1.0
    assert compare(one, units(d=[1.0]), "figure") is None
    assert compare(one, other, "another") is None
    with pytest.raises(ValueError, match="could not be broadcast"):
        compare(units(a=[1.0, 2.0]), units(a=[1.0, 2.0, 3.0]), "figure")


def test_the_interval_is_that_of_the_mean():
    gap = np.random.default_rng(1).normal(0.02, 0.3, size=700)
    result = difference(gap, np.zeros(700))
    half = 100 * norm.ppf(0.975) * gap.std() / np.sqrt(700)
    low, high = result.interval
    assert result.mean == pytest.approx(100 * gap.mean())
    assert (high - low) / 2 == pytest.approx(half, rel=BOOTSTRAP)
    assert (high + low) / 2 == pytest.approx(result.mean, abs=BOOTSTRAP * half)


def test_the_sign_test_counts_those_that_differ():
    result = difference([1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0])
    assert result.sign_test == pytest.approx(2 * 0.5**5)
    assert difference([1.0], [1.0]).sign_test == 1.0


def read(**content):
    fields = {"title": "t", "curve": "c", "pairs": [["a", "b"]]} | content
    return read_comparison(Fields(fields, "comparisons[0]"), ["a", "b"])


def test_a_comparison_is_read_and_a_mistake_is_named():
    assert read().pairs == (("a", "b"),)
    for change, message in (
        ({"pairs": [["a", "c"]]}, "comparison 't': there is no row 'c'"),
        ({"pairs": [["a"]]}, "comparison 't': .'a'. is not a pair of rows"),
        ({"pairs": ["ab"]}, "'ab' is not a pair of rows"),
        ({"metric": "error"}, "comparison 't': unknown metric"),
    ):
        with pytest.raises(ValueError, match=message):
            read(**change)
