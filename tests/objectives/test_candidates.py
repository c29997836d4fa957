"""Losses of whole labellings: candidates against listing all labellings, where they are all."""

from dataclasses import replace

import numpy as np
import pytest

from crfx.inference.problem import prepare
from crfx.objectives.candidates import Candidates
from crfx.objectives.costs import bind
from crfx.objectives.curvature import parse
from crfx.objectives.expected_loss import ListedExpectedLoss
from crfx.objectives.kl import ListedDivergence
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.task_loss import SpanF1, ZeroOne
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.testing import central_differences, enumerate_instances, make_problem
from crfx.testing import enumerated_objectives as enumerated

EXACT = {"rtol": 1e-9, "atol": 1e-9}
DIFFERENCES = {"rtol": 1e-6, "atol": 1e-8}
TEMPERATURE = 0.4
CLASSES = np.array(["B-X", "I-X", "O"])
STRUCTURES = [
    pytest.param({"lengths": (4, 0, 3)}, id="chain"),
    pytest.param({"lengths": (4, 3), "order": 2}, id="order 2"),
    pytest.param({"lengths": (4, 2), "shape": "random"}, id="forest"),
    pytest.param({"lengths": (4, 3), "sharing": "each"}, id="each"),
]


def case(structure, loss, weighted=True, unknown=0.0):
    raw = make_problem(0, **structure)
    problem = prepare(**raw.arguments())
    random = np.random.default_rng(1)
    labels = random.integers(3, size=problem.batch.n_rows)
    labels[random.random(len(labels)) < unknown] = UNKNOWN
    weights = random.integers(1, 20, problem.batch.n_instances) / 8 if weighted else None
    truth = Truth(problem.batch, problem.structure, labels, weights, CLASSES)
    return raw, problem, bind(loss, truth)


def listed(raw, losses):
    """All labellings of every instance, with their losses, by definition."""
    for number, instance in enumerate(enumerate_instances(**raw.arguments())):
        n = instance.labels.shape[1]
        true = losses.truth.labels[instance.first_row : instance.first_row + n]
        own = losses.loss.losses(CLASSES[true], list(CLASSES[instance.labels]))
        yield instance, own, losses.truth.weights[number]


def parts_of(problem):
    return ["node", "each_edge" if problem.sharing == "each" else "edge", "ends"]


def all_slopes(objective, problem):
    def changed(name, table):
        scores = replace(problem.scores, **{name: table})
        return objective.evaluate(replace(problem, scores=scores), ()).value

    names = [n for n in ("node", "edge", "start", "end") if getattr(problem.scores, n) is not None]
    return {
        name: central_differences(
            lambda table, name=name: changed(name, table), getattr(problem.scores, name)
        )
        for name in names
    }


@pytest.mark.parametrize("loss", [SpanF1(), ZeroOne()])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_expected_loss_of_lists_that_hold_everything(structure, loss):
    raw, problem, losses = case(structure, loss)
    objective = ListedExpectedLoss(losses, "kbest", 100, 0)
    found = objective.evaluate(problem, parts_of(problem))
    value = sum(
        weight * float(enumerated.expected_loss(-instance.scores, own).value)
        for instance, own, weight in listed(raw, losses)
    )
    np.testing.assert_allclose(found.value, value, **EXACT)
    for name, slope in all_slopes(objective, problem).items():
        np.testing.assert_allclose(found.gradient[name], slope, **DIFFERENCES)


@pytest.mark.parametrize("loss", [SpanF1(), ZeroOne()])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_divergence_from_lists_that_hold_everything(structure, loss):
    raw, problem, losses = case(structure, loss)
    objective = ListedDivergence(losses, TEMPERATURE, "kbest", 100, 0)
    found = objective.evaluate(problem, parts_of(problem), parse("auto"))
    value = sum(
        weight * float(enumerated.kl(-instance.scores, own, temperature=TEMPERATURE).value)
        for instance, own, weight in listed(raw, losses)
    )
    np.testing.assert_allclose(found.value, value, **EXACT)
    for name, slope in all_slopes(objective, problem).items():
        np.testing.assert_allclose(found.gradient[name], slope, **DIFFERENCES)
    plain = Likelihood(losses.truth).evaluate(problem, parts_of(problem), parse("auto"))
    for name, curved in plain.curvature.items():
        np.testing.assert_allclose(found.curvature[name], curved, **EXACT)


def test_samples_come_near_the_exact_expectation():
    raw, problem, losses = case({"lengths": (4, 3)}, ZeroOne())
    found = ListedExpectedLoss(losses, "samples", 4000, 0).evaluate(problem, ["node"])
    value, slopes = 0.0, np.zeros_like(problem.scores.node)
    for instance, own, weight in listed(raw, losses):
        exact = enumerated.expected_loss(-instance.scores, own)
        value += weight * float(exact.value)
        n = instance.labels.shape[1]
        rows = slice(instance.first_row, instance.first_row + n)
        slopes[rows] = -weight * (exact.gradient @ instance.node_events).reshape(n, -1)
    assert abs(found.value - value) < 0.03 * value
    np.testing.assert_allclose(found.gradient["node"], slopes, atol=0.05)


def test_lists_of_the_truth_and_others_repeat_nothing():
    _, problem, losses = case({"lengths": (2, 1)}, ZeroOne())
    drawn = Candidates.of(problem, "samples", 5000, 0, None).with_truth(losses.truth)
    assert drawn.exist.sum(axis=0).tolist() == [9, 3]
    np.testing.assert_array_equal(drawn.labels[0], losses.truth.labels)
    assert drawn.exist[0].all()


def test_unknown_labels_cost_nothing():
    _, _, losses = case({"lengths": (4, 3)}, ZeroOne(), unknown=0.5)
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
