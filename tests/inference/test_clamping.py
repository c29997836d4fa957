"""Given labels: sums and maxima are those of the labellings that agree, by enumeration."""

from itertools import product

import numpy as np
import pytest

from crfx.inference.max_product import best_labels
from crfx.inference.problem import prepare
from crfx.inference.sum_product import summed

ROUNDING = 1e-12


@pytest.mark.parametrize("given", [{}, {0: 2}, {1: 0, 3: 1}, {0: 1, 1: 1, 2: 0, 3: 2}])
def test_only_labellings_that_agree_are_left(given):
    random = np.random.default_rng(len(given))
    node, edge = random.normal(size=(4, 3)), random.normal(size=(3, 3))
    problem = prepare(node, edge, [0, 4])
    rows, labels = (np.array(list(own), int) for own in (given.keys(), given.values()))
    found = problem.clamped(rows, labels)
    scores = {
        codes: node[np.arange(4), codes].sum() + edge[codes[:-1], codes[1:]].sum()
        for codes in product(range(3), repeat=4)
        if all(codes[row] == label for row, label in given.items())
    }
    total = np.logaddexp.reduce(list(scores.values()))
    assert summed(found, None, None).log_z[0] == pytest.approx(total, abs=ROUNDING)
    assert tuple(best_labels(found)[0]) == max(scores, key=scores.get)
    np.testing.assert_array_equal(problem.scores.node, node)  # a copy was changed
