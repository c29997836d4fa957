"""Weights of labels in every objective: enumeration, differences, and what they reduce to."""

from dataclasses import replace

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.inference import reference
from crfx.inference.problem import Problem, prepare
from crfx.objectives.by_parts import levels_of
from crfx.objectives.curvature import parse
from crfx.objectives.likelihood import Likelihood, likelihood_of
from crfx.objectives.perceptron import PerceptronLoss, perceptron_loss_of
from crfx.objectives.registry import OBJECTIVES
from crfx.objectives.task_loss import Hamming, SpanF1
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import Scores
from crfx.structures import Chain
from crfx.testing import central_differences, enumerate_instances, make_problem

EXACT = {"rtol": 1e-9, "atol": 1e-9}
DIFFERENCES = {"rtol": 1e-5, "atol": 1e-7}
WEIGHTS = np.array([0.5, 3.0, 1.0])
CLASSES = np.array(["A", "B", "C"])
WEIGHING = [name for name, kind in OBJECTIVES.items() if getattr(kind, "weighs_classes", False)]
PAIR = ("node", "edge")
PARTS = {"node": ("node",), "edge": ("edge",), "ends": ("start", "end")}
STRUCTURES = [
    pytest.param({"lengths": (4, 3, 1)}, id="chain"),
    pytest.param({"lengths": (4, 1, 3), "order": 2}, id="order 2"),
    pytest.param({"lengths": (5, 2), "shape": "random"}, id="forest"),
    pytest.param({"lengths": (4, 3), "sharing": "typed"}, id="types"),
    pytest.param({"lengths": (4, 3), "sharing": "each"}, id="each"),
    pytest.param({"lengths": (4, 0, 3), "sharing": "none", "ends": False}, id="no edges"),
    pytest.param({"lengths": (4, 3), "sharing": "none"}, id="ends alone"),
]


def case(structure, unknown=0.0, weighted=False, seed=0, class_weights=WEIGHTS):
    raw = make_problem(seed, **structure)
    random = np.random.default_rng(seed)
    problem = prepare(**raw.arguments())
    labels = random.integers(3, size=problem.batch.n_rows)
    labels[random.random(len(labels)) < unknown] = UNKNOWN
    weights = random.uniform(0.5, 2.0, problem.batch.n_instances) if weighted else None
    return (
        raw,
        problem,
        Truth(problem.batch, problem.structure, labels, weights, CLASSES, class_weights),
    )


def bound(name, truth):
    """An objective of crfx.objectives, or a perceptron."""
    if name in ("perceptron", "large_margin"):
        return perceptron_loss_of(truth, 1.5 if name == "large_margin" else 0.0)
    return OBJECTIVES[name].bind(truth, Hamming(), None)


def enumerated_value(raw, truth):
    """sum_l (v_l - v_{l-1}) sum_i w_i -log p(labels of weight v_l or more | others), by listing."""
    value = 0.0
    steps = np.diff([0.0, *np.sort(WEIGHTS)])
    for number, instance in enumerate(enumerate_instances(**raw.arguments())):
        rows = slice(instance.first_row, instance.first_row + instance.labels.shape[1])
        own = truth.labels[rows]
        for level, step in zip(np.sort(WEIGHTS), steps, strict=True):
            known = own != UNKNOWN
            given = known & (WEIGHTS[own] < level)
            log_sums = [
                np.logaddexp.reduce(
                    instance.scores[(instance.labels[:, which] == own[which]).all(axis=1)]
                )
                for which in (given, known)
            ]
            weight = 1.0 if truth.weights is None else truth.weights[number]
            value += step * weight * (log_sums[0] - log_sums[1])
    return value


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("unknown", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_likelihood_against_enumeration(structure, unknown, weighted):
    raw, problem, truth = case(structure, unknown, weighted)
    found = likelihood_of(truth).evaluate(problem, ()).value
    np.testing.assert_allclose(found, enumerated_value(raw, truth), **EXACT)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_likelihood_by_the_reference(structure):
    """Sums over the labellings that agree with the lighter labels, in plain NumPy."""
    raw, problem, truth = case({**structure, "lengths": (30, 1, 17)}, 0.2, weighted=True)
    arguments, expected, before = raw.arguments(), 0.0, 0.0
    own = np.where(truth.labels == UNKNOWN, np.inf, WEIGHTS[truth.labels])
    for weight in np.sort(WEIGHTS):
        heavy = np.isfinite(own) & (own >= weight)
        counts = np.bincount(truth.batch.instance_of_row[heavy], minlength=3) > 0
        for sign, given in ((1, own < weight), (-1, np.isfinite(own))):
            node = np.where(given[:, None], -np.inf, arguments["node"])
            rows = np.flatnonzero(given)
            node[rows, truth.labels[rows]] = arguments["node"][rows, truth.labels[rows]]
            log_z = reference.sum_product(**{**arguments, "node": node}).log_z
            expected += sign * (weight - before) * (truth.weights * counts) @ log_z
        before = weight
    found = likelihood_of(truth).evaluate(problem, ()).value
    np.testing.assert_allclose(found, expected, **EXACT)


def test_other_weights_change_the_value():
    """The companion of the test above."""
    raw, problem, truth = case({"lengths": (4, 3)})
    wrong = replace(truth, class_weights=WEIGHTS[::-1].copy())
    assert (
        abs(likelihood_of(wrong).evaluate(problem, ()).value - enumerated_value(raw, truth)) > 0.1
    )


def moved(problem, name, values):
    return replace(problem, scores=replace(problem.scores, **{name: values}))


@pytest.mark.parametrize("objective", [*WEIGHING, "perceptron", "large_margin"])
@pytest.mark.parametrize(("unknown", "weighted"), [(0.0, False), (0.3, True)])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_gradients_by_differences(structure, unknown, weighted, objective):
    _, problem, truth = case(structure, unknown, weighted)
    own = bound(objective, truth)
    for part, names in PARTS.items():
        names = [name for name in names if getattr(problem.scores, name) is not None]
        if not names:
            continue
        asked = "each_edge" if part == "edge" and problem.sharing == "each" else part
        gradient = own.evaluate(problem, (asked,)).gradient
        for name in names:
            scores = np.array(getattr(problem.scores, name), np.float64)
            expected = central_differences(
                lambda s, name=name: own.evaluate(moved(problem, name, s), ()).value, scores
            )
            np.testing.assert_allclose(gradient[name], expected, **DIFFERENCES)


@pytest.mark.parametrize("objective", [*WEIGHING, "perceptron", "large_margin"])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_equal_weights_are_weights_of_instances(structure, objective):
    _, problem, truth = case(structure, 0.3, weighted=True, class_weights=np.full(3, 2.5))
    plain = replace(truth, weights=2.5 * truth.weights, class_weights=None)
    parts = ("node",) if problem.scores.edge is None else ("node", "edge")
    found, expected = (bound(objective, own).evaluate(problem, parts) for own in (truth, plain))
    np.testing.assert_allclose(found.value, expected.value, **EXACT)
    for name, slope in expected.gradient.items():
        np.testing.assert_allclose(found.gradient[name], slope, **EXACT)


@pytest.mark.parametrize("objective", [*WEIGHING, "perceptron", "large_margin"])
def test_independent_positions_count_with_the_weight_of_their_label(objective):
    """As positions that are instances do, with that weight; in chains whose edges are all 0 too."""
    _, problem, truth = case({"lengths": (4, 3), "sharing": "none", "ends": False})
    rows = problem.batch.n_rows
    alone = Batch.from_lengths(np.ones(rows, np.int64))
    weights = WEIGHTS[truth.labels]
    expected = bound(objective, Truth(alone, Chain(1), truth.labels, weights, CLASSES)).evaluate(
        Problem(alone, problem.scores, Chain(1), "none"), ("node",)
    )
    zero = Scores(problem.scores.node, np.zeros((3, 3)), None, None)
    for own in (problem, Problem(problem.batch, zero, problem.structure, "shared")):
        found = bound(objective, truth).evaluate(own, ("node",))
        np.testing.assert_allclose(found.value, expected.value, **EXACT)
        np.testing.assert_allclose(found.gradient["node"], expected.gradient["node"], **EXACT)


@pytest.mark.parametrize("curvature", ["auto", "dobrushin", "exact", "length"])
@pytest.mark.parametrize("objective", ["likelihood", "loss_augmented", "pseudo_likelihood"])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_bounds_stay_bounds(structure, objective, curvature):
    """value(s + d) <= value + g d + d H d / 2 for any step of one part."""
    for seed in range(4):
        _, problem, truth = case(structure, 0.3, weighted=True, seed=seed)
        own = bound(objective, truth)
        random = np.random.default_rng(seed)
        names = [n for n in ("node", "edge") if getattr(problem.scores, n) is not None]
        for name in names:
            asked = "each_edge" if name == "edge" and problem.sharing == "each" else name
            at = own.evaluate(problem, (asked,), parse(curvature))
            scores = getattr(problem.scores, name)
            for size in (0.1, 1.0):
                step = size * random.normal(size=scores.shape)
                value = own.evaluate(moved(problem, name, scores + step), ()).value
                model = (at.gradient[name] * step).sum()
                model += 0.5 * (at.curvature[name] * step**2).sum()
                assert value <= at.value + model + 1e-9


def test_a_smaller_curvature_would_be_no_bound():
    """The companion of the test above: weights are in the curvature."""
    _, problem, truth = case({"lengths": (1,), "sharing": "none", "ends": False})
    at = likelihood_of(truth).evaluate(problem, ("node",), parse("auto"))
    plain = Likelihood(replace(truth, class_weights=None))
    same = plain.evaluate(problem, ("node",), parse("auto"))
    weight = WEIGHTS[truth.labels[0]]
    np.testing.assert_allclose(at.curvature["node"], weight * same.curvature["node"], **EXACT)


def test_labels_of_weight_0_are_given_and_not_learned():
    """The others as if only labellings existed that agree with them."""
    _, problem, truth = case({"lengths": (4, 3, 2)}, class_weights=np.array([1.0, 0.0, 1.0]))
    given = np.flatnonzero(truth.labels == 1)
    node = problem.scores.node.copy()
    node[given] = -np.inf
    node[given, 1] = 0.0
    fewer = moved(problem, "node", node)
    plain = replace(truth, class_weights=None)
    for found, expected in (
        (likelihood_of(truth), Likelihood(plain)),
        (perceptron_loss_of(truth, 1.0), PerceptronLoss(plain, 1.0)),
    ):
        one, other = found.evaluate(problem, PAIR), expected.evaluate(fewer, PAIR)
        np.testing.assert_allclose(one.value, other.value, **EXACT)
        for name, slope in other.gradient.items():
            np.testing.assert_allclose(one.gradient[name], slope, **EXACT)
        np.testing.assert_allclose(one.gradient["node"][given], 0, **EXACT)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_likelihood_stays_convex(structure):
    """Along lines through all scores: the middle is no higher than the mean of the ends."""
    for seed in range(5):
        _, problem, truth = case(structure, seed=seed)
        own, random = likelihood_of(truth), np.random.default_rng(seed)
        steps = {
            name: random.normal(size=scores.shape)
            for name in ("node", "edge", "start", "end")
            if (scores := getattr(problem.scores, name)) is not None
        }
        values = []
        for size in (-1.0, 0.0, 1.0):
            at = {k: getattr(problem.scores, k) + size * step for k, step in steps.items()}
            there = replace(problem, scores=replace(problem.scores, **at))
            values.append(own.evaluate(there, ()).value)
        assert values[1] <= (values[0] + values[2]) / 2


def test_levels_hold_only_instances_that_have_such_labels():
    batch = Batch.from_lengths(np.array([2, 1, 2]))
    labels = np.array([0, 1, 0, UNKNOWN, 2])
    truth = Truth(batch, Chain(1), labels, np.array([1.0, 2.0, 1.0]), CLASSES, WEIGHTS)
    found = [(level.instances.tolist(), level.truth.weights.tolist()) for level in levels_of(truth)]
    assert found == [([0, 1, 2], [0.5, 1.0, 0.5]), ([0, 2], [0.5, 0.5]), ([0], [2.0])]


@pytest.mark.parametrize("objective", ["likelihood", "pseudo_likelihood", "loss_augmented"])
def test_first_order_curvature_is_the_weight_of_a_part(objective):
    """An edge has that of the heaviest label it joins, an unknown label that of its instance's."""
    batch = Batch.from_lengths(np.array([3, 2]))
    labels = np.array([1, 0, 2, UNKNOWN, 0])
    truth = Truth(batch, Chain(1), labels, np.array([1.0, 2.0]), CLASSES, WEIGHTS)
    by_row = np.array([3.0, 0.5, 1.0, 1.0, 1.0])
    by_edge = np.array([0.0, 3.0, 1.0, 0.0, 1.0])
    random = np.random.default_rng(0)
    each = Scores(random.normal(size=(5, 3)), random.normal(size=(5, 3, 3)), None, None)
    own = bound(objective, truth).evaluate(
        Problem(batch, each, Chain(1), "each"), ("node", "each_edge"), parse(None)
    )
    np.testing.assert_array_equal(own.curvature["node"], np.tile(by_row[:, None], 3))
    np.testing.assert_array_equal(own.curvature["edge"][:, 0, 0], by_edge)
    shared = Scores(each.node, each.edge[0], np.zeros(3), np.zeros(3))
    own = bound(objective, truth).evaluate(
        Problem(batch, shared, Chain(1), "shared"), ("edge", "ends"), parse(None)
    )
    np.testing.assert_array_equal(own.curvature["edge"], np.full((3, 3), by_edge.sum()))
    np.testing.assert_array_equal(own.curvature["start"], np.full(3, 4.0))
    np.testing.assert_array_equal(own.curvature["end"], np.full(3, 2.0))


@pytest.mark.parametrize("name", ["kl", "loss_scaled"])
def test_objectives_that_cannot_weigh_labels_refuse(name):
    _, _, truth = case({"lengths": (4, 3)})
    with pytest.raises(ValueError, match=f'objective "{name}" has no weights of labels'):
        OBJECTIVES[name].bind(truth, Hamming(), None)
    for whole in ("kl", "expected_loss"):
        with pytest.raises(ValueError, match="has no weights of labels: leave out class_weight"):
            OBJECTIVES[whole].bind(truth, SpanF1(), None)
