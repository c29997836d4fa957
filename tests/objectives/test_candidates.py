"""Losses of whole labellings: candidates against listing all labellings, where they are all."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from crfx.objectives.candidates import Candidates
from crfx.objectives.costs import bind
from crfx.objectives.curvature import parse
from crfx.objectives.expected_loss import ListedExpectedLoss
from crfx.objectives.kl import ListedDivergence
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.task_loss import SpanF1, ZeroOne
from crfx.objectives.truth import UNKNOWN
from crfx.testing import enumerate_instances
from crfx.testing import enumerated_objectives as enumerated
from tests.objectives.problems import EXACT, differences, make_case, names_of, parts_of
from tests.pairwise import pairwise

DIFFERENCES = {"rtol": 1e-6, "atol": 1e-8}
TEMPERATURE = 0.4
CLASSES = np.array(["B-X", "I-X", "O"])
STRUCTURES = {
    "chain": {"lengths": (3, 0, 2)},
    "order 2": {"lengths": (3, 2), "order": 2},
    "forest": {"lengths": (3, 2), "shape": "random"},
    "each": {"lengths": (3, 1), "sharing": "each"},
}


def case(structure, loss, unknown=0.0):
    """Return a raw problem, the same prepared, and a loss of whole labellings with its truth."""
    settings = STRUCTURES[structure] if isinstance(structure, str) else structure
    raw, problem, truth = make_case(settings, weighted=True, unknown=unknown)
    return raw, problem, bind(loss, replace(truth, classes=CLASSES))


def listed(raw, losses):
    """All labellings of every instance, with their losses, by definition."""
    for number, instance in enumerate(enumerate_instances(**raw.arguments())):
        n = instance.labels.shape[1]
        true = losses.truth.labels[instance.first_row : instance.first_row + n]
        of_labellings = losses.loss.losses(CLASSES[true], list(CLASSES[instance.labels]))
        yield instance, of_labellings, losses.truth.weights[number]


@pytest.mark.parametrize(("structure", "loss"), pairwise(list(STRUCTURES), [SpanF1(), ZeroOne()]))
def test_lists_that_hold_everything(structure, loss):
    raw, problem, losses = case(structure, loss)
    likelihood = Likelihood(losses.truth).evaluate(problem, parts_of(problem), parse("auto"))
    kl = partial(enumerated.kl, temperature=TEMPERATURE)
    for objective, by_listing, curvature in (
        (ListedExpectedLoss(losses, "kbest", 100, 0), enumerated.expected_loss, {}),
        (ListedDivergence(losses, TEMPERATURE, "kbest", 100, 0), kl, likelihood.curvature),
    ):
        evaluation = objective.evaluate(problem, parts_of(problem), parse("auto"))
        value = sum(
            weight * float(by_listing(-instance.scores, enumerated).value)
            for instance, enumerated, weight in listed(raw, losses)
        )
        np.testing.assert_allclose(evaluation.value, value, **EXACT)
        for name in names_of(problem, parts_of(problem)):
            slope = differences(objective, problem, name)
            np.testing.assert_allclose(evaluation.gradient[name], slope, **DIFFERENCES)
        for name, curved in curvature.items():
            np.testing.assert_allclose(evaluation.curvature[name], curved, **EXACT)


def test_samples_approach_the_exact_expectation():
    raw, problem, losses = case({"lengths": (4, 3)}, ZeroOne())
    evaluation = ListedExpectedLoss(losses, "samples", 4000, 0).evaluate(problem, ["node"])
    value, slopes = 0.0, np.zeros_like(problem.scores.node)
    for instance, its_losses, weight in listed(raw, losses):
        exact = enumerated.expected_loss(-instance.scores, its_losses)
        value += weight * float(exact.value)
        n = instance.labels.shape[1]
        rows = slice(instance.first_row, instance.first_row + n)
        slopes[rows] = -weight * (exact.gradient @ instance.node_events).reshape(n, -1)
    assert abs(evaluation.value - value) < 0.03 * value
    np.testing.assert_allclose(evaluation.gradient["node"], slopes, atol=0.05)


def test_candidates_with_the_truth_are_distinct():
    _, problem, losses = case({"lengths": (2, 1)}, ZeroOne())
    drawn = Candidates.of(problem, "samples", 5000, 0, None).with_truth(losses.truth)
    assert drawn.exist.sum(axis=0).tolist() == [9, 3]
    np.testing.assert_array_equal(drawn.labels[0], losses.truth.labels)
    assert drawn.exist[0].all()


def test_unknown_labels_cost_nothing():
    _, _, losses = case({"lengths": (4, 3)}, ZeroOne(), unknown=0.5)
    losses.truth.labels[1] = UNKNOWN
    known = losses.truth.labels[:4] != UNKNOWN
    assert known.any()
    assert not known.all()
    right = np.where(known, losses.truth.labels[:4], 2)[None]
    assert losses.of_instance(0, right).tolist() == [0.0]
    with pytest.raises(ValueError, match="needs every label"):
        ListedDivergence(losses, 1.0, "samples", 5, 0)


def test_losses_of_spans():
    loss = SpanF1()
    true = np.array(["B-X", "I-X", "O", "B-Y"])
    others = [true, np.array(["B-X", "O", "O", "B-Y"]), np.array(["O", "O", "O", "O"])]
    assert loss.losses(true, others).tolist() == [0.0, 0.5, 1.0]
    assert loss.losses(np.array(["O"]), [np.array(["O"])]).tolist() == [0.0]
