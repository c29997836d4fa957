"""The perceptron's loss: enumeration, subgradient by differences, margin, unknown labels."""

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.inference.problem import Problem
from crfx.objectives.perceptron import PerceptronLoss
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import Scores
from crfx.structures import Chain, Forest
from crfx.testing import central_differences, enumerate_instances

CLOSE = {"rtol": 1e-6, "atol": 1e-6}
K = 3


def make(structure="chain", order=1, sharing="shared", seed=0, unknown=False):
    random = np.random.default_rng(seed)
    lengths = [4, 1, 3]
    parents = None
    if structure == "forest":
        parents = np.array([-1, 0, 0, 1, -1, -1, 0, 0])
    types = random.integers(0, 2, 8) if sharing == "typed" else None
    batch = Batch.from_lengths(lengths, parents=parents, edge_types=types)
    front = {"shared": (), "typed": (2,), "each": (8,)}[sharing]
    scores = Scores(
        random.normal(size=(8, K)),
        random.normal(size=(*front, *(K,) * (order + 1))),
        random.normal(size=K),
        None if structure == "forest" else random.normal(size=K),
    )
    form = Chain(order) if structure == "chain" else Forest()
    labels = random.integers(0, K, 8)
    if unknown:
        labels[[1, 6]] = UNKNOWN
    truth = Truth(batch, form, labels, np.array([1.0, 2.0, 0.5]))
    return Problem(batch, scores, form, sharing), truth


CASES = [
    {},
    {"order": 2},
    {"structure": "forest"},
    {"sharing": "typed"},
    {"sharing": "each"},
    {"unknown": True},
    {"structure": "forest", "unknown": True},
]


def by_enumeration(problem, truth, margin):
    """The loss from all labellings of every instance."""
    scores, batch = problem.scores, problem.batch
    every = enumerate_instances(
        scores.node,
        scores.edge,
        batch.offsets,
        parents=batch.parents,
        edge_types=batch.edge_types,
        start=scores.start,
        end=scores.end,
        order=problem.order,
    )
    total = 0.0
    for instance, own in enumerate(every):
        true = truth.labels[batch.slice_of(instance)]
        known = true != UNKNOWN
        wrong = ((own.labels != true) & known).sum(axis=1)
        total += truth.weights[instance] * (
            (own.scores + margin * wrong).max() - own.scores[wrong == 0].max()
        )
    return total


@pytest.mark.parametrize("margin", [0.0, 0.7])
@pytest.mark.parametrize("case", CASES)
def test_the_value_is_that_of_enumeration(case, margin):
    problem, truth = make(**case)
    found = PerceptronLoss(truth, margin).evaluate(problem, ()).value
    assert found == pytest.approx(by_enumeration(problem, truth, margin), rel=1e-6)


@pytest.mark.parametrize("margin", [0.0, 0.7])
@pytest.mark.parametrize("case", CASES)
def test_the_subgradient_is_the_slope(case, margin):
    """The loss is linear near scores whose winner is unique."""
    problem, truth = make(**case)
    loss = PerceptronLoss(truth, margin)
    edge = "each_edge" if problem.sharing == "each" else "edge"
    found = loss.evaluate(problem, ("node", edge, "ends")).gradient
    for name, gradient in found.items():

        def value(array, name=name):
            arrays = {n: getattr(problem.scores, n) for n in ("node", "edge", "start", "end")}
            scores = Scores(**{**arrays, name: array})
            moved = Problem(problem.batch, scores, problem.structure, problem.sharing)
            return loss.evaluate(moved, ()).value

        slope = central_differences(value, getattr(problem.scores, name))
        np.testing.assert_allclose(gradient, slope, **CLOSE)


def test_a_truth_that_wins_by_the_margin_costs_nothing():
    problem, truth = make()
    node = problem.scores.node.copy()
    node[np.arange(8), truth.labels] += 20
    clear = Problem(
        problem.batch,
        Scores(node, problem.scores.edge, problem.scores.start, problem.scores.end),
        problem.structure,
        problem.sharing,
    )
    found = PerceptronLoss(truth, 2.0).evaluate(clear, ("node", "edge", "ends"))
    assert found.value == pytest.approx(0, abs=1e-9)
    assert all(not gradient.any() for gradient in found.gradient.values())


def test_there_is_no_curvature():
    from crfx.objectives.curvature import Curvature

    problem, truth = make()
    with pytest.raises(ValueError, match="no curvature"):
        PerceptronLoss(truth).evaluate(problem, ("node",), Curvature(None))
