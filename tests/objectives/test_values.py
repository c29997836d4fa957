"""Values of likelihoods and perceptrons against enumeration, with unknown labels and weights."""

from dataclasses import replace

import numpy as np
import pytest

from crfx.inference.problem import prepare
from crfx.objectives.curvature import parse
from crfx.objectives.likelihood import Likelihood, likelihood_of
from crfx.objectives.perceptron import PerceptronLoss
from crfx.objectives.pseudo_likelihood import PseudoLikelihood
from crfx.objectives.truth import UNKNOWN
from crfx.testing import enumerate_instances
from tests.objectives.problems import (
    CLASS_WEIGHTS,
    EXACT,
    PERCEPTRONS,
    STRUCTURES,
    bind,
    listed_value,
    make_case,
    parts_of,
    with_scores,
)
from tests.pairwise import pairwise


def likelihood(instance, labels, label_weights):
    """sum_l (v_l - v_{l-1}) -log p(labels of weight v_l or more | the others), by listing."""
    known, levels, value = labels != UNKNOWN, np.sort(label_weights), 0.0
    for level, step in zip(levels, np.diff([0.0, *levels]), strict=True):
        lighter = known & (label_weights[labels] < level)
        log_sum, true = (
            np.logaddexp.reduce(
                instance.scores[(instance.labels[:, rows] == labels[rows]).all(axis=1)]
            )
            for rows in (lighter, known)
        )
        value += step * (log_sum - true)
    return value


def enumerated_value(name, raw, truth):
    """Return the value of an objective from all labellings of every instance."""
    total = 0.0
    for number, instance in enumerate(enumerate_instances(**raw.arguments())):
        labels = truth.labels[truth.batch.slice_of(number)]
        if name == "likelihood":
            weights = truth.class_weights
            value = likelihood(
                instance, labels, np.ones(instance.n_labels) if weights is None else weights
            )
        else:
            value = listed_value(name, instance, labels)
        total += value * (1.0 if truth.weights is None else truth.weights[number])
    return total


NAMES = ["likelihood", "class-weighted likelihood", "pseudo_likelihood", *PERCEPTRONS]


@pytest.mark.parametrize(
    ("name", "structure", "unknown", "weighted"),
    pairwise(NAMES, list(STRUCTURES), [0.0, 0.4, 1.0], [False, True]),
)
def test_values_against_enumeration(name, structure, unknown, weighted):
    options = {"unknown": unknown, "weighted": weighted}
    if name == "class-weighted likelihood":
        name, options["class_weights"] = "likelihood", True
    raw, problem, truth = make_case(structure, **options)
    value = bind(name, truth).evaluate(problem, ()).value
    np.testing.assert_allclose(value, enumerated_value(name, raw, truth), **EXACT)


@pytest.mark.parametrize("name", ["likelihood", "pseudo_likelihood", *PERCEPTRONS])
def test_wrong_labels_and_wrong_weights_change_the_value(name):
    """The companion of the test above."""
    is_weighted = name == "likelihood"
    raw, problem, truth = make_case({"lengths": (4, 3)}, class_weights=is_weighted or None)
    changes = [{"labels": (truth.labels + 1) % 3}]
    if is_weighted:
        changes += [{"class_weights": CLASS_WEIGHTS[::-1].copy()}, {"class_weights": None}]
    for wrong in changes:
        value = bind(name, replace(truth, **wrong)).evaluate(problem, ()).value
        assert abs(value - enumerated_value(name, raw, truth)) > 1e-3


@pytest.mark.parametrize(("sharing", "unknown"), [("shared", 0.4), ("each", 0.4), ("each", 0.0)])
def test_parts_evaluated_together_equal_those_evaluated_alone(sharing, unknown):
    structure = {"lengths": (4, 3), "sharing": sharing}
    _, problem, truth = make_case(structure, unknown=unknown, weighted=True)
    objective = Likelihood(truth)
    together = objective.evaluate(problem, parts_of(problem), parse("mixing"))
    for part in parts_of(problem):
        alone = objective.evaluate(problem, [part], parse("mixing"))
        assert alone.value == together.value
        for name in alone.gradient:
            np.testing.assert_array_equal(alone.gradient[name], together.gradient[name])
            np.testing.assert_array_equal(alone.curvature[name], together.curvature[name])
    assert sorted(together.gradient) == ["edge", "end", "node", "start"]


@pytest.mark.parametrize("structure", ["chain", "order 2", "forest", "each"])
def test_the_class_weighted_likelihood_is_convex(structure):
    """Along lines through all scores: the middle is no higher than the mean of the ends."""
    for seed in range(5):
        _, problem, truth = make_case(structure, class_weights=True, seed=seed)
        objective, random = likelihood_of(truth), np.random.default_rng(seed)
        steps = {
            name: random.normal(size=scores.shape)
            for name in ("node", "edge", "start", "end")
            if (scores := getattr(problem.scores, name)) is not None
        }
        values = []
        for size in (-1.0, 0.0, 1.0):
            moved = {k: getattr(problem.scores, k) + size * step for k, step in steps.items()}
            values.append(objective.evaluate(with_scores(problem, **moved), ()).value)
        assert values[1] <= (values[0] + values[2]) / 2


def assert_finite(evaluation):
    assert np.isfinite(evaluation.value)
    for array in (*evaluation.gradient.values(), *evaluation.curvature.values()):
        assert np.isfinite(array).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pseudo_likelihood_does_not_overflow(dtype):
    """Far apart, and all the truth's: the loss is 0."""
    raw, _, truth = make_case({"lengths": (4, 3)})
    node = np.zeros_like(raw.node)
    node[np.arange(7), truth.labels] = 1e4
    problem = prepare(**raw.with_arrays(node=node.astype(dtype)).arguments())
    evaluation = PseudoLikelihood(truth).evaluate(problem, ["node", "edge"], parse("mixing"))
    assert evaluation.value == 0.0
    assert_finite(evaluation)


def test_pseudo_likelihood_ignores_scores_at_unknown_labels():
    """Such positions count for nothing, whatever their scores are, -inf included."""
    raw, _, truth = make_case({"lengths": (5, 3)})
    truth.labels[3] = UNKNOWN
    node = raw.node.copy()
    node[3] = [-np.inf, 0.0, 0.0]
    node[0, (truth.labels[0] + 1) % 3] = -np.inf
    problem = prepare(**raw.with_arrays(node=node.copy()).arguments())
    evaluation = PseudoLikelihood(truth).evaluate(problem, parts_of(problem), parse("mixing"))
    assert_finite(evaluation)
    node[2:5] = 7.0
    again = prepare(**raw.with_arrays(node=node).arguments())
    assert PseudoLikelihood(truth).evaluate(again, ()).value == evaluation.value


def test_perceptron_loss_is_zero_beyond_margin():
    _, problem, truth = make_case("chain", weighted=True)
    node = problem.scores.node.copy()
    node[np.arange(8), truth.labels] += 20
    clear = with_scores(problem, node=node)
    evaluation = PerceptronLoss(truth, 2.0).evaluate(clear, ("node", "edge", "ends"))
    assert evaluation.value == pytest.approx(0, abs=1e-9)
    assert all(not gradient.any() for gradient in evaluation.gradient.values())
