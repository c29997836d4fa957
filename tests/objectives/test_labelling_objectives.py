"""Loss-sensitive objectives of labellings against listing all labellings and by differences."""

from dataclasses import replace

import numpy as np
import pytest

from crfx.inference.problem import prepare
from crfx.objectives.costs import bind
from crfx.objectives.curvature import parse
from crfx.objectives.expected_loss import ExpectedCost
from crfx.objectives.kl import Divergence
from crfx.objectives.labelwise import LabelwiseLikelihood
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.loss_augmented import AugmentedLikelihood
from crfx.objectives.loss_scaled import loss_scaled, unit_of
from crfx.objectives.task_loss import CostMatrix, Hamming
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.testing import enumerate_instances
from tests.objectives.problems import EXACT, LISTED, STRUCTURES, listed_value, make_case, parts_of
from tests.pairwise import pairwise

WEIGHT, TEMPERATURE = 1.5, 0.7
COSTS = {
    "hamming": lambda n: Hamming(),
    "mean": lambda n: Hamming(normalize=True),
    "matrix": lambda n: CostMatrix(whole_costs(n)),
}
"""By name: from the number of labels."""


def whole_costs(n):
    costs = np.random.default_rng(7).integers(0, 4, (n, n)).astype(float)
    return costs * (1 - np.eye(n))


MADE = {
    "loss_augmented": lambda costs: AugmentedLikelihood(costs, WEIGHT),
    "loss_scaled": lambda costs: loss_scaled(costs, longest=30, n_samples=1),
    "expected_loss": ExpectedCost,
    "kl": lambda costs: Divergence(costs, TEMPERATURE),
    "labelwise_likelihood": lambda costs: LabelwiseLikelihood(costs.truth),
}
LOSS_SENSITIVE = tuple(MADE)[:4]


def case(structure, loss="hamming", **options):
    """Return a raw problem, the same prepared, and the costs of its labels."""
    raw, problem, truth = make_case(structure, **options)
    return raw, problem, bind(COSTS[loss](problem.scores.n_labels), truth)


def listed(raw, costs):
    """Per instance: its enumeration, and the losses of all its labellings, by definition."""
    for number, instance in enumerate(enumerate_instances(**raw.arguments())):
        n = instance.labels.shape[1]
        true = costs.truth.labels[instance.first_row : instance.first_row + n]
        known = true != UNKNOWN
        losses = costs.table[true[known], instance.labels[:, known]].sum(axis=1)
        if costs.normalize and n:
            losses /= n
        weight = 1.0 if costs.truth.weights is None else costs.truth.weights[number]
        yield instance, true, losses, weight


def total_value(name, raw, costs):
    """Return the sum over instances of an objective on listed labellings."""
    return sum(
        weight * listed_value(name, instance, true, losses)
        for instance, true, losses, weight in listed(raw, costs)
    )


def listed_slopes(name, raw, costs):
    """Return the gradient in node scores of an objective on listed labellings."""
    slopes = np.zeros(raw.node.shape)
    for instance, _, losses, weight in listed(raw, costs):
        exact = LISTED[name](-instance.scores, losses).gradient
        rows = slice(instance.first_row, instance.first_row + instance.labels.shape[1])
        slopes[rows] = -weight * (exact @ instance.node_events).reshape(-1, raw.node.shape[1])
    return slopes


@pytest.mark.parametrize(
    ("name", "structure", "loss", "weighted"),
    pairwise(list(MADE), list(STRUCTURES), list(COSTS), [False, True]),
)
def test_values_and_node_slopes_against_enumeration(name, structure, loss, weighted):
    unknown = 0.4 if name == "labelwise_likelihood" else 0.0
    raw, problem, costs = case(structure, loss, weighted=weighted, unknown=unknown)
    if loss == "matrix" and name != "expected_loss":
        costs = replace(costs, table=costs.table + (1 - np.eye(len(costs.table))))
    evaluation = MADE[name](costs).evaluate(problem, ["node"])
    np.testing.assert_allclose(evaluation.value, total_value(name, raw, costs), **EXACT)
    if name in LISTED:
        slopes = listed_slopes(name, raw, costs)
        np.testing.assert_allclose(evaluation.gradient["node"], slopes, **EXACT)


# Limits and bounds --------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", ["chain", "each, order 2", "typed", "forest", "no edges"])
def test_cold_divergence_is_the_likelihood(structure):
    _, problem, costs = case(structure, weighted=True)
    cold = Divergence(costs, 1e-3).evaluate(problem, parts_of(problem), parse("auto"))
    exact = Likelihood(costs.truth).evaluate(problem, parts_of(problem), parse("auto"))
    np.testing.assert_allclose(cold.value, exact.value, **EXACT)
    for name in exact.gradient:
        np.testing.assert_allclose(cold.gradient[name], exact.gradient[name], **EXACT)
        np.testing.assert_allclose(cold.curvature[name], exact.curvature[name], **EXACT)


@pytest.mark.parametrize("scale", [30.0, 1e4])
@pytest.mark.parametrize("structure", ["chain", "order 2", "order 3", "forest"])
def test_sums_that_underflow_are_formed_again_from_logs(structure, scale):
    raw, problem, costs = case({**STRUCTURES[structure], "scale": scale})
    for name in LOSS_SENSITIVE:
        evaluation = MADE[name](costs).evaluate(problem, parts_of(problem), None)
        value, slopes = total_value(name, raw, costs), listed_slopes(name, raw, costs)
        np.testing.assert_allclose(evaluation.value, value, rtol=1e-9, atol=1e-9 * scale)
        np.testing.assert_allclose(evaluation.gradient["node"], slopes, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("dtype", "scale", "close"), [("f4", 20.0, 1e-3), ("f8", 200.0, 1e-8)])
@pytest.mark.parametrize("structure", ["chain", "order 2", "order 3", "forest", "star"])
def test_labels_that_are_most_improbable_one_by_one(structure, dtype, scale, close):
    """Messages do not resolve their marginals: the slope is that of p(part | label) - p(part)."""
    raw, problem, costs = case({**STRUCTURES[structure], "scale": scale}, weighted=True)
    scores = problem.scores
    tables = {name: getattr(scores, name) for name in ("node", "edge", "start", "end")}
    narrow = {name: None if t is None else t.astype(dtype) for name, t in tables.items()}
    problem = replace(problem, scores=type(scores)(**narrow))
    wide = {k: None if v is None else v.astype(np.float64) for k, v in narrow.items()}
    raw = raw.with_arrays(**wide)
    evaluation = LabelwiseLikelihood(costs.truth).evaluate(problem, parts_of(problem))
    value, slopes = 0.0, np.zeros(problem.scores.node.shape)
    for instance, true, _, weight in listed(raw, costs):
        n, p = instance.labels.shape[1], instance.probabilities
        rows = slice(instance.first_row, instance.first_row + n)
        for t in range(n):
            right = instance.labels[:, t] == true[t]
            log_p = np.logaddexp.reduce(instance.scores[right])
            value += weight * (instance.log_z - log_p)
            p_right = np.exp(np.where(right, instance.scores - log_p, -np.inf))
            slopes[rows] += weight * ((p - p_right) @ instance.node_events).reshape(n, -1)
    np.testing.assert_allclose(evaluation.value, value, rtol=close)
    np.testing.assert_allclose(evaluation.gradient["node"], slopes, atol=close)


def test_a_forbidden_truth_raises():
    node = np.zeros((2, 2))
    node[1, 0] = -np.inf
    problem = prepare(node, None, [0, 2])
    truth = Truth(problem.batch, problem.structure, np.array([0, 0]), None, np.arange(2))
    objective = loss_scaled(bind(Hamming(), truth), longest=10, n_samples=1)
    with pytest.raises(ValueError, match=r"instance 0: .* forbid its true labelling"):
        objective.evaluate(problem, ())


def test_results_do_not_depend_on_threads():
    _, problem, costs = case({"lengths": (6,) * 60})
    for make in (lambda n: loss_scaled(costs, 10, 1, n_jobs=n), lambda n: ExpectedCost(costs, n)):
        one, two, three = (make(n).evaluate(problem, ["node", "edge"]) for n in (1, 2, 3))
        for other in (two, three):
            assert one.value == other.value
            np.testing.assert_array_equal(one.gradient["edge"], other.gradient["edge"])


# Samples ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", [1e-3, 0.5, 7.0, 1e4])
def test_results_do_not_depend_on_the_unit_of_a_loss(c):
    """Neither exact sums, which count multiples of it, nor the steps of expected losses."""
    _, problem, costs = case({"lengths": (4, 3)}, "matrix")
    scaled = replace(costs, table=c * costs.table)
    assert loss_scaled(scaled, longest=20, n_samples=1).notes == {}
    one, other = (ExpectedCost(each).evaluate(problem, ["node"], parse("auto")) for each in
                  (costs, scaled))  # fmt: skip
    steps = [e.gradient["node"] / e.curvature["node"] for e in (one, other)]
    np.testing.assert_allclose(steps[1], steps[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("costs", "unit"),
    [([1, 2, 3], 1.0), ([4, 6, 8], 2.0), ([0.5, 1.5, 1], 0.5), ([100, 100, 100], 100.0),
     ([0.3, 0.5, 1], 0.1), ([0.2, 0.3, 1], 0.1), ([1, 2, 2**0.5], None), ([0, 0, 0], 1.0)],
)  # fmt: skip
def test_unit_of_costs(costs, unit):
    result = unit_of(np.array(costs, dtype=float))
    assert result == (None if unit is None else pytest.approx(unit))


def test_large_costs_are_sampled_rather_than_counted():
    _, _, costs = case({"lengths": (4, 3)})
    dear = costs.table.copy()
    dear[0, 1] = 10_000.0
    labels = np.zeros_like(costs.truth.labels)
    costs = replace(costs, table=dear, truth=replace(costs.truth, labels=labels))
    assert loss_scaled(costs, longest=20, n_samples=1).notes["sampled_instances"] == 2


def test_few_effective_samples_warn_once():
    _, problem, costs = case({"lengths": (12,) * 3, "scale": 2.0})
    objective = loss_scaled(costs, longest=5, n_samples=5)
    with pytest.warns(RuntimeWarning, match="loss_scaled. samples 3 instances"):
        objective.evaluate(problem, ())
    objective.evaluate(problem, ())  # without another warning


@pytest.mark.parametrize(
    ("structure", "loss"), [("chain", "hamming"), ("order 2", "mean"), ("forest", "mean")]
)
def test_samples_approach_the_exact_sum(structure, loss):
    _, problem, costs = case({**STRUCTURES[structure], "scale": 0.7}, loss, weighted=True)
    exact = loss_scaled(costs, longest=10, n_samples=1)
    sampled = loss_scaled(costs, longest=0, n_samples=4000)
    one = exact.evaluate(problem, parts_of(problem), parse("auto"))
    other = sampled.evaluate(problem, parts_of(problem), parse("auto"))
    assert abs(other.value - one.value) < 0.05 * abs(one.value)
    for name in one.gradient:
        size = np.abs(one.gradient[name]).max()
        np.testing.assert_allclose(other.gradient[name], one.gradient[name], atol=0.2 * size)
        assert (other.curvature[name] > 0).all()
    assert sampled.notes["sampled_instances"] == problem.batch.n_instances
    assert 20 < sampled.notes["effective_sample_size"] <= 4010
    assert exact.notes == {}


def test_long_instances_are_sampled_and_short_ones_summed():
    _, problem, costs = case({"lengths": (4, 3, 6, 1)}, weighted=True)
    both = loss_scaled(costs, longest=3, n_samples=2000)
    assert both.notes["sampled_instances"] == 2
    evaluation = both.evaluate(problem, ["node", "edge", "ends"], parse("auto"))
    exact = loss_scaled(costs, longest=10, n_samples=1).evaluate(problem, ["node"])
    short = np.r_[4:7, 13:14]
    np.testing.assert_allclose(evaluation.gradient["node"][short], exact.gradient["node"][short])
    again = loss_scaled(costs, longest=3, n_samples=2000).evaluate(problem, ["node"])
    assert again.value == evaluation.value


def test_costs_without_a_unit_are_sampled():
    raw, problem, costs = case({"lengths": (4, 3)})
    table = costs.table / 2
    table[0, 1] = 2**0.5 / 3
    halves = replace(costs, table=table)
    objective = loss_scaled(halves, longest=10, n_samples=20_000)
    assert objective.notes["sampled_instances"] == 2
    value = total_value("loss_scaled", raw, halves)
    assert abs(objective.evaluate(problem, ()).value - value) < 0.05 * value
