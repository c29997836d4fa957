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
from crfx.testing import central_differences, enumerate_instances, make_problem
from crfx.testing import enumerated_objectives as enumerated

EXACT = {"rtol": 1e-9, "atol": 1e-9}
DIFFERENCES = {"rtol": 1e-6, "atol": 1e-8}
NAMES = {"node": ("node",), "edge": ("edge",), "each_edge": ("edge",), "ends": ("start", "end")}
WEIGHT, TEMPERATURE = 1.5, 0.7

STRUCTURES = [
    pytest.param({"lengths": (4, 3, 1)}, id="chain"),
    pytest.param({"lengths": (4, 1, 3), "order": 2}, id="order 2"),
    pytest.param({"lengths": (5, 2), "order": 3, "n_labels": 2}, id="order 3"),
    pytest.param({"lengths": (5, 2), "shape": "random"}, id="forest"),
    pytest.param({"lengths": (5,), "shape": "star"}, id="star"),
    pytest.param({"lengths": (4, 3), "sharing": "typed"}, id="types"),
    pytest.param({"lengths": (4, 0, 3), "sharing": "each"}, id="each"),
    pytest.param({"lengths": (4, 2), "sharing": "each", "order": 2}, id="each, order 2"),
    pytest.param({"lengths": (5, 2), "sharing": "each", "shape": "random"}, id="each, forest"),
    pytest.param({"lengths": (4, 0, 3), "sharing": "none", "ends": False}, id="no edges"),
    pytest.param({"lengths": (3, 1), "n_labels": 1}, id="one label"),
]
COSTS = {
    "hamming": lambda n: Hamming(),
    "mean": lambda n: Hamming(normalize=True),
    "matrix": lambda n: CostMatrix(whole_costs(n)),
}
"""By name: from the number of labels."""


def whole_costs(n):
    costs = np.random.default_rng(7).integers(0, 4, (n, n)).astype(float)
    return costs * (1 - np.eye(n))


LISTED = {
    "loss_augmented": lambda E, loss: enumerated.loss_augmented(E, loss, weight=WEIGHT),
    "loss_scaled": enumerated.loss_scaled,
    "expected_loss": enumerated.expected_loss,
    "kl": lambda E, loss: enumerated.kl(E, loss, temperature=TEMPERATURE),
}
MADE = {
    "loss_augmented": lambda costs: AugmentedLikelihood(costs, WEIGHT),
    "loss_scaled": lambda costs: loss_scaled(costs, longest=30, n_samples=1),
    "expected_loss": ExpectedCost,
    "kl": lambda costs: Divergence(costs, TEMPERATURE),
}
BOUNDED = ("loss_augmented", "loss_scaled", "kl")


def case(structure, loss="hamming", weighted=False, seed=0, unknown=0.0):
    raw = make_problem(seed, **structure)
    random = np.random.default_rng(seed)
    problem = prepare(**raw.arguments())
    n = problem.scores.n_labels
    labels = random.integers(n, size=problem.batch.n_rows)
    labels[random.random(len(labels)) < unknown] = UNKNOWN
    weights = random.integers(1, 20, problem.batch.n_instances) / 8 if weighted else None
    truth = Truth(problem.batch, problem.structure, labels, weights, np.arange(n))
    return raw, problem, bind(COSTS[loss](n), truth)


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


def parts_of(problem):
    if problem.scores.edge is None:
        return ["node"]
    return ["node", "each_edge" if problem.sharing == "each" else "edge", "ends"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", COSTS)
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("name", LISTED)
def test_values_and_node_slopes_against_enumeration(name, structure, loss, weighted):
    raw, problem, costs = case(structure, loss, weighted)
    if loss == "matrix" and name != "expected_loss":
        costs = replace(costs, table=costs.table + (1 - np.eye(len(costs.table))))
    found = MADE[name](costs).evaluate(problem, ["node"])
    value, slopes = 0.0, np.zeros_like(problem.scores.node)
    for instance, _, losses, weight in listed(raw, costs):
        n = instance.labels.shape[1]
        exact = LISTED[name](-instance.scores, losses)
        value += weight * float(exact.value)
        rows = slice(instance.first_row, instance.first_row + n)
        own = -weight * (exact.gradient @ instance.node_events)
        slopes[rows] = own.reshape(n, slopes.shape[1])
    np.testing.assert_allclose(found.value, value, **EXACT)
    np.testing.assert_allclose(found.gradient["node"], slopes, **EXACT)


@pytest.mark.parametrize("unknown", [0.0, 0.4])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_labelwise_value_against_enumeration(structure, unknown):
    raw, problem, costs = case(structure, weighted=True, unknown=unknown)
    value = 0.0
    for instance, true, _, weight in listed(raw, costs):
        for t in np.flatnonzero(true != UNKNOWN):
            right = instance.labels[:, t] == true[t]
            value -= weight * np.log(instance.probabilities[right].sum())
    found = LabelwiseLikelihood(costs.truth).evaluate(problem, ())
    np.testing.assert_allclose(found.value, value, **EXACT)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("name", [*LISTED, "labelwise"])
def test_slopes_by_differences(name, structure):
    _, problem, costs = case(structure, "matrix", weighted=True)
    objective = LabelwiseLikelihood(costs.truth) if name == "labelwise" else MADE[name](costs)
    gradient = objective.evaluate(problem, parts_of(problem)).gradient
    names = [own for part in parts_of(problem) for own in NAMES[part]]
    names = [own for own in names if getattr(problem.scores, own) is not None]
    assert sorted(gradient) == sorted(names)
    for own in names:

        def value(table, own=own):
            changed = replace(problem, scores=replace(problem.scores, **{own: table}))
            return objective.evaluate(changed, ()).value

        slope = central_differences(value, getattr(problem.scores, own))
        np.testing.assert_allclose(gradient[own], slope, **DIFFERENCES, err_msg=own)


@pytest.mark.parametrize("name", ["loss_augmented", "expected_loss", "labelwise"])
def test_slopes_where_labels_are_unknown(name):
    _, problem, costs = case({"lengths": (4, 3)}, unknown=0.5, weighted=True, seed=1)
    assert (costs.truth.labels == UNKNOWN).any()
    objective = LabelwiseLikelihood(costs.truth) if name == "labelwise" else MADE[name](costs)
    gradient = objective.evaluate(problem, ["node"]).gradient["node"]

    def value(table):
        changed = replace(problem, scores=replace(problem.scores, node=table))
        return objective.evaluate(changed, ()).value

    slope = central_differences(value, problem.scores.node)
    np.testing.assert_allclose(gradient, slope, **DIFFERENCES)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("name", BOUNDED)
def test_curvature_dominates_the_hessian(name, structure, seed):
    """diag(curvature) - Hessian has no negative eigenvalue, part by part."""
    _, problem, costs = case(structure, "matrix" if seed == 2 else "hamming", seed=seed)
    objective = MADE[name](costs)
    for part in parts_of(problem):
        now = objective.evaluate(problem, [part], parse("auto"))
        names = list(now.gradient)
        sizes = [now.gradient[own].size for own in names]
        at = np.concatenate([getattr(problem.scores, own).ravel() for own in names])

        def gradient(flat, part=part, names=names, sizes=sizes):
            tables = {}
            for own, values in zip(names, np.split(flat, np.cumsum(sizes)[:-1]), strict=True):
                tables[own] = values.reshape(getattr(problem.scores, own).shape)
            moved = replace(problem, scores=replace(problem.scores, **tables))
            slopes = objective.evaluate(moved, [part]).gradient
            return np.concatenate([slopes[own].ravel() for own in names])

        if len(at) > 200:
            continue
        hessian = np.stack(
            [(gradient(at + 1e-5 * e) - gradient(at - 1e-5 * e)) / 2e-5 for e in np.eye(len(at))]
        )
        curved = np.concatenate([now.curvature[own].ravel() for own in names])
        least = np.linalg.eigvalsh(np.diag(curved) - (hessian + hessian.T) / 2).min()
        assert least > -1e-6, (part, least)


def test_less_than_half_the_scaled_curvature_is_no_bound():
    """The companion: one position, two labels, of which both count alike."""
    problem = prepare(np.array([[0.0, -1.0]]), None, [0, 1])
    truth = Truth(problem.batch, problem.structure, np.array([0]), None, np.arange(2))
    objective = loss_scaled(bind(Hamming(), truth), longest=10, n_samples=1)
    now = objective.evaluate(problem, ["node"], parse("auto"))

    def slope(step):
        moved = replace(problem, scores=replace(problem.scores, node=problem.scores.node + step))
        return objective.evaluate(moved, ["node"]).gradient["node"].ravel()

    hessian = np.stack([(slope(h) - slope(-h)) / 2e-5 for h in 1e-5 * np.eye(2)])
    assert np.linalg.eigvalsh(np.diag(0.4 * now.curvature["node"].ravel()) - hessian).min() < 0


# Limits and bounds --------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", STRUCTURES)
def test_cold_divergence_is_the_likelihood(structure):
    _, problem, costs = case(structure, weighted=True)
    cold = Divergence(costs, 1e-3).evaluate(problem, parts_of(problem), parse("auto"))
    exact = Likelihood(costs.truth).evaluate(problem, parts_of(problem), parse("auto"))
    np.testing.assert_allclose(cold.value, exact.value, **EXACT)
    for own in exact.gradient:
        np.testing.assert_allclose(cold.gradient[own], exact.gradient[own], **EXACT)
        np.testing.assert_allclose(cold.curvature[own], exact.curvature[own], **EXACT)


def test_augmented_by_nothing_is_the_likelihood():
    _, problem, costs = case({"lengths": (4, 3)})
    found = AugmentedLikelihood(costs, 0.0).evaluate(problem, ())
    assert found.value == Likelihood(costs.truth).evaluate(problem, ()).value


@pytest.mark.parametrize("structure", STRUCTURES)
def test_two_objectives_bound_the_loss_of_the_best_labelling(structure):
    for seed in range(5):
        raw, problem, costs = case({**structure, "scale": 3.0}, "matrix", seed=seed)
        costs = replace(costs, table=costs.table + (1 - np.eye(len(costs.table))))
        predicted = sum(losses[instance.scores.argmax()] for instance, _, losses, _ in
                        listed(raw, costs))  # fmt: skip
        for objective in (
            AugmentedLikelihood(costs, 1.0),
            loss_scaled(costs, longest=30, n_samples=1),
        ):
            assert objective.evaluate(problem, ()).value >= predicted - 1e-9


def test_expected_loss_of_a_peaked_model_is_that_of_its_prediction():
    raw, problem, costs = case({"lengths": (4, 3), "scale": 1e5})
    predicted = sum(
        losses[instance.scores.argmax()] for instance, _, losses, _ in listed(raw, costs)
    )
    np.testing.assert_allclose(ExpectedCost(costs).evaluate(problem, ()).value, predicted, **EXACT)


@pytest.mark.parametrize("scale", [30.0, 1e4])
@pytest.mark.parametrize("structure", [*STRUCTURES[:3], STRUCTURES[3]])
def test_large_scores(structure, scale):
    """Sums that underflow are formed again from logs."""
    raw, problem, costs = case({**structure, "scale": scale})
    for name in LISTED:
        found = MADE[name](costs).evaluate(problem, parts_of(problem), None)
        value = sum(
            float(LISTED[name](-instance.scores, losses).value)
            for instance, _, losses, _ in listed(raw, costs)
        )
        np.testing.assert_allclose(found.value, value, rtol=1e-9, atol=1e-9 * scale)
        slopes = np.zeros_like(problem.scores.node)
        for instance, _, losses, _ in listed(raw, costs):
            n = instance.labels.shape[1]
            exact = LISTED[name](-instance.scores, losses).gradient
            rows = slice(instance.first_row, instance.first_row + n)
            slopes[rows] = -(exact @ instance.node_events).reshape(n, slopes.shape[1])
        np.testing.assert_allclose(found.gradient["node"], slopes, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("dtype", "scale", "close"), [("f4", 20.0, 1e-3), ("f8", 200.0, 1e-8)])
@pytest.mark.parametrize("structure", STRUCTURES[:5])
def test_labels_that_are_most_improbable_one_by_one(structure, dtype, scale, close):
    """Messages do not resolve their marginals: the slope is that of p(part | label) - p(part)."""
    raw, problem, costs = case({**structure, "scale": scale}, weighted=True)
    scores = problem.scores
    tables = {name: getattr(scores, name) for name in ("node", "edge", "start", "end")}
    narrow = {name: None if t is None else t.astype(dtype) for name, t in tables.items()}
    problem = replace(problem, scores=type(scores)(**narrow))
    wide = {k: None if v is None else v.astype(np.float64) for k, v in narrow.items()}
    raw = raw.with_arrays(**wide)
    found = LabelwiseLikelihood(costs.truth).evaluate(problem, parts_of(problem))
    value, slopes = 0.0, np.zeros(problem.scores.node.shape)
    for instance, true, _, weight in listed(raw, costs):
        n, p = instance.labels.shape[1], instance.probabilities
        rows = slice(instance.first_row, instance.first_row + n)
        for t in range(n):
            right = instance.labels[:, t] == true[t]
            own = np.logaddexp.reduce(instance.scores[right])
            value += weight * (instance.log_z - own)
            given = np.exp(np.where(right, instance.scores - own, -np.inf))
            slopes[rows] += weight * ((p - given) @ instance.node_events).reshape(n, -1)
    np.testing.assert_allclose(found.value, value, rtol=close)
    np.testing.assert_allclose(found.gradient["node"], slopes, atol=close)


def test_forbidden_parts():
    raw = make_problem(3, lengths=(4, 3), forbid=0.2)
    problem = prepare(**raw.arguments())
    best = [e.labels[e.scores.argmax()] for e in enumerate_instances(**raw.arguments())]
    truth = Truth(problem.batch, problem.structure, np.concatenate(best), None, np.arange(3))
    costs = bind(Hamming(), truth)
    for name in ("loss_augmented", "loss_scaled", "expected_loss"):
        found = MADE[name](costs).evaluate(problem, ["node"])
        value = sum(
            float(LISTED[name](-instance.scores, losses).value)
            for instance, _, losses, _ in listed(raw, costs)
        )
        np.testing.assert_allclose(found.value, value, **EXACT)


def test_a_forbidden_truth_is_named():
    node = np.zeros((2, 2))
    node[1, 0] = -np.inf
    problem = prepare(node, None, [0, 2])
    truth = Truth(problem.batch, problem.structure, np.array([0, 0]), None, np.arange(2))
    objective = loss_scaled(bind(Hamming(), truth), longest=10, n_samples=1)
    with pytest.raises(ValueError, match=r"instance 0: .* forbid its true labelling"):
        objective.evaluate(problem, ())


@pytest.mark.parametrize("name", ["kl", "loss_scaled"])
def test_some_objectives_need_every_label(name):
    _, _, costs = case({"lengths": (4, 3)}, unknown=0.9)
    message = f'instance 0, position .: objective "{name}" needs every label'
    with pytest.raises(ValueError, match=message):
        MADE[name](costs)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_change_nothing(threads):
    _, problem, costs = case({"lengths": (6,) * 60})
    for made in (
        lambda n: loss_scaled(costs, 10, 1, n_jobs=n),
        lambda n: ExpectedCost(costs, n),
    ):
        found = made(threads).evaluate(problem, ["node", "edge"])
        other = made(3).evaluate(problem, ["node", "edge"])
        assert found.value == other.value
        np.testing.assert_array_equal(found.gradient["edge"], other.gradient["edge"])


# Samples ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", [1e-3, 0.5, 7.0, 1e4])
def test_the_unit_of_a_loss_changes_nothing(c):
    """Neither exact sums, which count multiples of it, nor the steps of expected losses."""
    _, problem, costs = case({"lengths": (4, 3)}, "matrix")
    scaled = replace(costs, table=c * costs.table)
    assert loss_scaled(scaled, longest=20, n_samples=1).notes == {}
    one, other = (ExpectedCost(own).evaluate(problem, ["node"], parse("auto")) for own in
                  (costs, scaled))  # fmt: skip
    steps = [e.gradient["node"] / e.curvature["node"] for e in (one, other)]
    np.testing.assert_allclose(steps[1], steps[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("costs", "unit"),
    [([1, 2, 3], 1.0), ([4, 6, 8], 2.0), ([0.5, 1.5, 1], 0.5), ([100, 100, 100], 100.0),
     ([0.3, 0.5, 1], 0.1), ([0.2, 0.3, 1], 0.1), ([1, 2, 2**0.5], None), ([0, 0, 0], 1.0)],
)  # fmt: skip
def test_units_of_costs(costs, unit):
    found = unit_of(np.array(costs, dtype=float))
    assert found == (None if unit is None else pytest.approx(unit))


def test_dear_mistakes_are_sampled_rather_than_counted_for_days():
    _, _, costs = case({"lengths": (4, 3)})
    dear = costs.table.copy()
    dear[0, 1] = 10_000.0
    labels = np.zeros_like(costs.truth.labels)
    costs = replace(costs, table=dear, truth=replace(costs.truth, labels=labels))
    assert loss_scaled(costs, longest=20, n_samples=1).notes["sampled_instances"] == 2


def test_rough_samples_are_told():
    _, problem, costs = case({"lengths": (12,) * 3, "scale": 2.0})
    objective = loss_scaled(costs, longest=5, n_samples=5)
    with pytest.warns(RuntimeWarning, match="loss_scaled. samples 3 instances"):
        objective.evaluate(problem, ())
    objective.evaluate(problem, ())  # told once


@pytest.mark.parametrize("structure", [STRUCTURES[0], STRUCTURES[1], STRUCTURES[3]])
@pytest.mark.parametrize("loss", ["hamming", "mean"])
def test_many_samples_come_near_the_exact_sum(structure, loss):
    _, problem, costs = case({**structure, "scale": 0.7}, loss, weighted=True)
    exact = loss_scaled(costs, longest=10, n_samples=1)
    sampled = loss_scaled(costs, longest=0, n_samples=4000)
    one = exact.evaluate(problem, parts_of(problem), parse("auto"))
    other = sampled.evaluate(problem, parts_of(problem), parse("auto"))
    assert abs(other.value - one.value) < 0.05 * abs(one.value)
    for own in one.gradient:
        size = np.abs(one.gradient[own]).max()
        np.testing.assert_allclose(other.gradient[own], one.gradient[own], atol=0.2 * size)
        assert (other.curvature[own] > 0).all()
    assert sampled.notes["sampled_instances"] == problem.batch.n_instances
    assert 20 < sampled.notes["effective_sample_size"] <= 4010
    assert exact.notes == {}


def test_long_instances_are_sampled_and_short_ones_summed():
    _, problem, costs = case({"lengths": (4, 3, 6, 1)}, weighted=True)
    both = loss_scaled(costs, longest=3, n_samples=2000)
    assert both.notes["sampled_instances"] == 2
    found = both.evaluate(problem, ["node", "edge", "ends"], parse("auto"))
    exact = loss_scaled(costs, longest=10, n_samples=1).evaluate(problem, ["node"])
    short = np.r_[4:7, 13:14]
    np.testing.assert_allclose(found.gradient["node"][short], exact.gradient["node"][short])
    again = loss_scaled(costs, longest=3, n_samples=2000).evaluate(problem, ["node"])
    assert again.value == found.value


def test_costs_without_a_unit_are_sampled():
    _, problem, costs = case({"lengths": (4, 3)})
    table = costs.table / 2
    table[0, 1] = 2**0.5 / 3
    halves = replace(costs, table=table)
    objective = loss_scaled(halves, longest=10, n_samples=20_000)
    assert objective.notes["sampled_instances"] == 2
    raw = make_problem(0, lengths=(4, 3))
    value = sum(
        float(enumerated.loss_scaled(-instance.scores, losses).value)
        for instance, _, losses, _ in listed(raw, halves)
    )
    assert abs(objective.evaluate(problem, ()).value - value) < 0.05 * value
