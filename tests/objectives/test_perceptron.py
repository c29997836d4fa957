"""The loss of the perceptron against enumeration: margin, weights, unknown labels."""

import numpy as np
import pytest

from crfx.objectives.perceptron import PerceptronLoss
from crfx.objectives.truth import UNKNOWN
from crfx.testing import enumerate_instances
from tests.objectives.problems import EXACT, STRUCTURES, make_case, with_scores
from tests.pairwise import pairwise


def enumerated_loss(raw, truth, margin):
    """Return the loss from all labellings of every instance."""
    total = 0.0
    for number, instance in enumerate(enumerate_instances(**raw.arguments())):
        labels = truth.labels[truth.batch.slice_of(number)]
        wrong = ((instance.labels != labels) & (labels != UNKNOWN)).sum(axis=1)
        best = (instance.scores + margin * wrong).max()
        total += truth.weights[number] * (best - instance.scores[wrong == 0].max())
    return total


@pytest.mark.parametrize(
    ("structure", "margin", "unknown"), pairwise(list(STRUCTURES), [0.0, 0.75], [0.0, 0.3])
)
def test_values_against_enumeration(structure, margin, unknown):
    raw, problem, truth = make_case(structure, unknown=unknown, weighted=True)
    value = PerceptronLoss(truth, margin).evaluate(problem, ()).value
    np.testing.assert_allclose(value, enumerated_loss(raw, truth, margin), **EXACT)


def test_a_truth_that_wins_by_the_margin_costs_nothing():
    _, problem, truth = make_case("chain", weighted=True)
    node = problem.scores.node.copy()
    node[np.arange(8), truth.labels] += 20
    clear = with_scores(problem, node=node)
    evaluation = PerceptronLoss(truth, 2.0).evaluate(clear, ("node", "edge", "ends"))
    assert evaluation.value == pytest.approx(0, abs=1e-9)
    assert all(not gradient.any() for gradient in evaluation.gradient.values())
