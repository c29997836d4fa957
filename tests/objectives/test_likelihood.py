"""The likelihood against enumeration and the reference: unknown labels, weights of all kinds."""

from dataclasses import replace

import numpy as np
import pytest

from crfx.inference import reference
from crfx.objectives.curvature import parse
from crfx.objectives.likelihood import Likelihood, likelihood_of
from crfx.objectives.truth import UNKNOWN
from crfx.testing import enumerate_instances
from tests.objectives.problems import (
    CLASS_WEIGHTS,
    EXACT,
    STRUCTURES,
    make_case,
    parts_of,
    with_scores,
)
from tests.pairwise import pairwise

LONG = {"lengths": (30, 1, 17)}


def levels(truth, n_labels):
    """Return the weights of labels, and pairs (weight, step from the one below)."""
    weights = np.ones(n_labels) if truth.class_weights is None else truth.class_weights
    steps = np.diff([0.0, *np.sort(weights)])
    return weights, list(zip(np.sort(weights), steps, strict=True))


def enumerated_value(raw, truth):
    """sum_l (v_l - v_{l-1}) sum_i w_i -log p(labels of weight v_l or more | others), by listing."""
    label_weights, steps = levels(truth, raw.node.shape[1])
    value = 0.0
    for number, instance in enumerate(enumerate_instances(**raw.arguments())):
        labels = truth.labels[truth.batch.slice_of(number)]
        known = labels != UNKNOWN
        weight = 1.0 if truth.weights is None else truth.weights[number]
        for level, step in steps:
            lighter = known & (label_weights[labels] < level)
            log_sums = [
                np.logaddexp.reduce(
                    instance.scores[(instance.labels[:, rows] == labels[rows]).all(axis=1)]
                )
                for rows in (lighter, known)
            ]
            value += step * weight * (log_sums[0] - log_sums[1])
    return value


@pytest.mark.parametrize(
    ("structure", "unknown", "weighted", "class_weights"),
    pairwise(list(STRUCTURES), [0.0, 0.4, 1.0], [False, True], [None, True]),
)
def test_values_against_enumeration(structure, unknown, weighted, class_weights):
    options = {"unknown": unknown, "weighted": weighted, "class_weights": class_weights}
    raw, problem, truth = make_case(structure, **options)
    value = likelihood_of(truth).evaluate(problem, ()).value
    np.testing.assert_allclose(value, enumerated_value(raw, truth), **EXACT)


def test_wrong_labels_and_wrong_weights_change_the_value():
    """The companion of the test above."""
    raw, problem, truth = make_case({"lengths": (4, 3)}, class_weights=True)
    for wrong in (
        {"labels": (truth.labels + 1) % 3},
        {"class_weights": CLASS_WEIGHTS[::-1].copy()},
        {"class_weights": None},
    ):
        value = likelihood_of(replace(truth, **wrong)).evaluate(problem, ()).value
        assert abs(value - enumerated_value(raw, truth)) > 1e-3


@pytest.mark.parametrize(
    "structure", ["chain", "order 2", "forest", "typed", "each", "no edges", "ends alone"]
)
def test_class_weights_against_the_reference(structure):
    """Sums over the labellings that agree with the lighter labels, in plain NumPy."""
    options = {"unknown": 0.2, "weighted": True, "class_weights": True}
    raw, problem, truth = make_case({**STRUCTURES[structure], **LONG}, **options)
    arguments, expected = raw.arguments(), 0.0
    row_weights = np.where(truth.labels == UNKNOWN, np.inf, CLASS_WEIGHTS[truth.labels])
    for level, step in levels(truth, 3)[1]:
        heavy = np.isfinite(row_weights) & (row_weights >= level)
        counts = np.bincount(truth.batch.instance_of_row[heavy], minlength=3) > 0
        for sign, given in ((1, row_weights < level), (-1, np.isfinite(row_weights))):
            node = np.where(given[:, None], -np.inf, arguments["node"])
            rows = np.flatnonzero(given)
            node[rows, truth.labels[rows]] = arguments["node"][rows, truth.labels[rows]]
            log_z = reference.sum_product(**{**arguments, "node": node}).log_z
            expected += sign * step * (truth.weights * counts) @ log_z
    np.testing.assert_allclose(likelihood_of(truth).evaluate(problem, ()).value, expected, **EXACT)


@pytest.mark.parametrize(("sharing", "unknown"), [("shared", 0.4), ("each", 0.4), ("each", 0.0)])
def test_parts_evaluated_together_equal_those_evaluated_alone(sharing, unknown):
    structure = {"lengths": (4, 3), "sharing": sharing}
    _, problem, truth = make_case(structure, unknown=unknown, weighted=True)
    likelihood = Likelihood(truth)
    together = likelihood.evaluate(problem, parts_of(problem), parse("mixing"))
    for part in parts_of(problem):
        alone = likelihood.evaluate(problem, [part], parse("mixing"))
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
        likelihood, random = likelihood_of(truth), np.random.default_rng(seed)
        steps = {
            name: random.normal(size=scores.shape)
            for name in ("node", "edge", "start", "end")
            if (scores := getattr(problem.scores, name)) is not None
        }
        values = []
        for size in (-1.0, 0.0, 1.0):
            moved = {k: getattr(problem.scores, k) + size * step for k, step in steps.items()}
            values.append(likelihood.evaluate(with_scores(problem, **moved), ()).value)
        assert values[1] <= (values[0] + values[2]) / 2
