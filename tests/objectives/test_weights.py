"""Weights of instances and of labels: what they are worth, in every objective."""

from dataclasses import replace

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.inference.problem import Problem, prepare
from crfx.objectives.by_parts import levels_of
from crfx.objectives.curvature import parse
from crfx.objectives.likelihood import Likelihood, likelihood_of
from crfx.objectives.perceptron import PerceptronLoss, perceptron_loss_of
from crfx.objectives.pseudo_likelihood import PseudoLikelihood
from crfx.objectives.task_loss import Hamming, SpanF1
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import Scores
from crfx.structures import Chain
from tests.objectives.problems import (
    CLASS_WEIGHTS,
    EXACT,
    OBJECTIVES,
    PERCEPTRONS,
    WHOLE,
    bind,
    make_case,
    parts_of,
    with_scores,
)

WEIGHING = [name for name, kind in OBJECTIVES.items() if getattr(kind, "weighs_classes", False)]
BOTH = [*WEIGHING, *PERCEPTRONS]
PAIR = ("node", "edge")


def test_all_but_two_objectives_weigh_labels():
    assert set(OBJECTIVES) - set(WEIGHING) == set(WHOLE)


@pytest.mark.parametrize(
    ("kind", "sharing", "unknown"),
    [
        (Likelihood, "shared", 0.0),
        (Likelihood, "shared", 0.5),
        (PseudoLikelihood, "shared", 0.0),
        (PseudoLikelihood, "each", 0.0),
    ],
)
def test_a_weight_of_two_counts_an_instance_twice(kind, sharing, unknown):
    raw, problem, truth = make_case({"lengths": (4,), "sharing": sharing}, unknown=unknown)
    edge = raw.edge if sharing == "shared" else np.concatenate([raw.edge, raw.edge])
    twice = prepare(
        np.concatenate([raw.node, raw.node]), edge, [0, 4, 8], start=raw.start, end=raw.end
    )
    parts = parts_of(problem)
    doubled = kind(replace(truth, weights=np.array([2.0])))
    repeated = kind(Truth(twice.batch, twice.structure, np.tile(truth.labels, 2)))
    heavy = doubled.evaluate(problem, parts, parse("mixing"))
    pair = repeated.evaluate(twice, parts, parse("mixing"))
    np.testing.assert_allclose(heavy.value, pair.value, **EXACT)
    for which in ("gradient", "curvature"):
        for name, array in getattr(heavy, which).items():
            other = getattr(pair, which)[name]
            if len(other) == 8:
                other = other[:4] + other[4:]
            np.testing.assert_allclose(array, other, **EXACT)


@pytest.mark.parametrize("objective", BOTH)
def test_equal_class_weights_are_weights_of_instances(objective):
    for structure in ("chain", "each, forest", "no edges"):
        options = {"unknown": 0.3, "weighted": True, "class_weights": np.full(3, 2.5)}
        _, problem, truth = make_case(structure, **options)
        plain = replace(truth, weights=2.5 * truth.weights, class_weights=None)
        parts = ("node",) if problem.scores.edge is None else PAIR
        evaluation, expected = (
            bind(objective, bound).evaluate(problem, parts) for bound in (truth, plain)
        )
        np.testing.assert_allclose(evaluation.value, expected.value, **EXACT)
        for name, slope in expected.gradient.items():
            np.testing.assert_allclose(evaluation.gradient[name], slope, **EXACT)


@pytest.mark.parametrize("objective", BOTH)
def test_independent_positions_count_with_the_weight_of_their_label(objective):
    """Positions count as weighted instances of one position, also with all-zero edges."""
    structure = {"lengths": (4, 3), "sharing": "none", "ends": False}
    _, problem, truth = make_case(structure, class_weights=CLASS_WEIGHTS)
    alone = Batch.from_lengths(np.ones(problem.batch.n_rows, np.int64))
    weights = CLASS_WEIGHTS[truth.labels]
    of_positions = Truth(alone, Chain(1), truth.labels, weights, truth.classes)
    expected = bind(objective, of_positions).evaluate(
        Problem(alone, problem.scores, Chain(1), "none"), ("node",)
    )
    zero = Scores(problem.scores.node, np.zeros((3, 3)), None, None)
    for variant in (problem, Problem(problem.batch, zero, problem.structure, "shared")):
        evaluation = bind(objective, truth).evaluate(variant, ("node",))
        np.testing.assert_allclose(evaluation.value, expected.value, **EXACT)
        np.testing.assert_allclose(evaluation.gradient["node"], expected.gradient["node"], **EXACT)


def test_labels_of_weight_0_are_given_and_not_learned():
    """The others as if only labellings existed that agree with them."""
    _, problem, truth = make_case({"lengths": (4, 3, 2)}, class_weights=np.array([1.0, 0.0, 1.0]))
    ones = np.flatnonzero(truth.labels == 1)
    node = problem.scores.node.copy()
    node[ones] = -np.inf
    node[ones, 1] = 0.0
    fewer = with_scores(problem, node=node)
    plain = replace(truth, class_weights=None)
    for weighted, unweighted in (
        (likelihood_of(truth), Likelihood(plain)),
        (perceptron_loss_of(truth, 1.0), PerceptronLoss(plain, 1.0)),
    ):
        one, other = weighted.evaluate(problem, PAIR), unweighted.evaluate(fewer, PAIR)
        np.testing.assert_allclose(one.value, other.value, **EXACT)
        for name, slope in other.gradient.items():
            np.testing.assert_allclose(one.gradient[name], slope, **EXACT)
        np.testing.assert_allclose(one.gradient["node"][ones], 0, **EXACT)


def test_levels_hold_only_instances_that_have_such_labels():
    batch = Batch.from_lengths(np.array([2, 1, 2]))
    labels, weights = np.array([0, 1, 0, UNKNOWN, 2]), np.array([1.0, 2.0, 1.0])
    truth = Truth(batch, Chain(1), labels, weights, np.arange(3), CLASS_WEIGHTS)
    result = [
        (level.instances.tolist(), level.truth.weights.tolist()) for level in levels_of(truth)
    ]
    assert result == [([0, 1, 2], [0.5, 1.0, 0.5]), ([0, 2], [0.5, 0.5]), ([0], [2.0])]


def test_class_weight_rejects_unsupported_objectives():
    _, _, truth = make_case({"lengths": (4, 3)}, class_weights=CLASS_WEIGHTS)
    for name in WHOLE:
        with pytest.raises(ValueError, match=f'objective "{name}" has no weights of labels'):
            bind(name, truth, Hamming())
    for name in ("kl", "expected_loss"):
        with pytest.raises(ValueError, match="has no weights of labels: leave out class_weight"):
            bind(name, truth, SpanF1())
