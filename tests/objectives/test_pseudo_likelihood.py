"""The pseudo-likelihood: value by listing labels, slopes and curvature by differences."""

from dataclasses import replace

import numpy as np
import pytest

from crfx.inference.problem import prepare
from crfx.objectives.curvature import parse
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.pseudo_likelihood import PseudoLikelihood
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.testing import central_differences, enumerate_instances, make_problem

EXACT = {"rtol": 1e-9, "atol": 1e-9}
DIFFERENCES = {"rtol": 1e-5, "atol": 1e-7}
NOISE = 1e-5
"""Of eigenvalues of a Hessian that was found by differences."""
NAMES = {"node": ("node",), "edge": ("edge",), "each_edge": ("edge",), "ends": ("start", "end")}

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


def case(structure, unknown=0.0, weighted=False, seed=0):
    raw = make_problem(seed, **structure)
    random = np.random.default_rng(seed)
    problem = prepare(**raw.arguments())
    labels = random.integers(problem.scores.n_labels, size=problem.batch.n_rows)
    labels[random.random(len(labels)) < unknown] = UNKNOWN
    weights = None
    if weighted:  # eighths, which float32 holds
        weights = random.integers(1, 20, problem.batch.n_instances) / 8
    return raw, problem, Truth(problem.batch, problem.structure, labels, weights)


def listed_value(raw, truth):
    """-sum w log p(y_t | the others), from the scores of whole labellings that differ at t."""
    value = 0.0
    for number, instance in enumerate(enumerate_instances(**raw.arguments())):
        n = instance.labels.shape[1]
        labels = truth.labels[instance.first_row : instance.first_row + n]
        weight = 1.0 if truth.weights is None else truth.weights[number]
        for t in range(n):
            around = {t}.union(*(part for part in instance.parts if t in part))
            if any(labels[s] == UNKNOWN for s in around):
                continue
            scores = []
            for label in range(instance.n_labels):
                changed = np.where(labels == UNKNOWN, 0, labels)
                changed[t] = label
                scores.append(instance.score_of(changed))
            value -= weight * (scores[labels[t]] - np.logaddexp.reduce(scores))
    return value


def parts_of(problem):
    found = ["node"]
    if problem.scores.edge is not None:
        found.append("each_edge" if problem.sharing == "each" else "edge")
    if problem.scores.start is not None:
        found.append("ends")
    return found


def names_of(problem, parts):
    names = [name for part in parts for name in NAMES[part]]
    return [name for name in names if getattr(problem.scores, name) is not None]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("unknown", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_value_against_its_definition(structure, unknown, weighted):
    raw, problem, truth = case(structure, unknown, weighted)
    found = PseudoLikelihood(truth).evaluate(problem, ()).value
    np.testing.assert_allclose(found, listed_value(raw, truth), **EXACT)


def test_a_wrong_label_changes_the_value():
    """The companion of the test above."""
    raw, problem, truth = case({"lengths": (4, 3)})
    wrong = replace(truth, labels=(truth.labels + 1) % 3)
    found = PseudoLikelihood(wrong).evaluate(problem, ()).value
    assert abs(found - listed_value(raw, truth)) > 1e-3


def test_without_edges_it_is_the_likelihood():
    structure = {"lengths": (4, 3), "sharing": "none"}
    _, problem, truth = case(structure, unknown=0.3, weighted=True)
    one = PseudoLikelihood(truth).evaluate(problem, ["node", "ends"])
    other = Likelihood(truth).evaluate(problem, ["node", "ends"])
    np.testing.assert_allclose(one.value, other.value, **EXACT)
    for name in ("node", "start", "end"):
        np.testing.assert_allclose(one.gradient[name], other.gradient[name], **EXACT)


@pytest.mark.parametrize(("unknown", "weighted"), [(0.0, False), (0.3, True)])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_gradients_by_differences(structure, unknown, weighted):
    _, problem, truth = case(structure, unknown, weighted)
    objective, parts = PseudoLikelihood(truth), parts_of(problem)
    gradient = objective.evaluate(problem, parts).gradient
    assert sorted(gradient) == sorted(names_of(problem, parts))
    for name, slope in gradient.items():

        def value(table, name=name):
            changed = replace(problem, scores=replace(problem.scores, **{name: table}))
            return objective.evaluate(changed, ()).value

        expected = central_differences(value, getattr(problem.scores, name))
        np.testing.assert_allclose(slope, expected, **DIFFERENCES)
    for part in parts:
        alone = objective.evaluate(problem, [part]).gradient
        assert sorted(alone) == sorted(names_of(problem, [part]))
        for name, slope in alone.items():
            np.testing.assert_array_equal(slope, gradient[name])


def hessian(objective, problem, parts):
    """By differences of gradients, in all scores of some parts at once."""
    names = names_of(problem, parts)
    tables = [getattr(problem.scores, name) for name in names]
    cuts = np.cumsum([table.size for table in tables])[:-1]

    def slope(flat):
        moved = {
            name: own.reshape(table.shape)
            for name, own, table in zip(names, np.split(flat, cuts), tables, strict=True)
        }
        at = replace(problem, scores=replace(problem.scores, **moved))
        found = objective.evaluate(at, parts).gradient
        return np.concatenate([np.ravel(found[name]) for name in names])

    at = np.concatenate([table.ravel() for table in tables])
    step = 1e-5 * np.eye(len(at))
    rows = [(slope(at + own) - slope(at - own)) / 2e-5 for own in step]
    return names, np.array(rows)


TINY = [
    pytest.param({"lengths": (3, 1)}, id="chain"),
    pytest.param({"lengths": (4,), "n_labels": 2, "order": 2}, id="order 2"),
    pytest.param({"lengths": (4,), "n_labels": 2, "sharing": "typed"}, id="types"),
    pytest.param({"lengths": (3,), "sharing": "each"}, id="each"),
    pytest.param({"lengths": (4,), "n_labels": 2, "sharing": "each", "order": 2}, id="each, 2"),
    pytest.param({"lengths": (4,), "n_labels": 2, "shape": "star", "sharing": "each"}, id="star"),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("structure", TINY)
def test_curvature_dominates_the_hessian(structure, seed):
    """Of every part by itself, and of all that move at once."""
    _, problem, truth = case(structure, weighted=True, seed=seed)
    objective, parts = PseudoLikelihood(truth), parts_of(problem)
    assert objective.curvature_kind == "bound"
    for own in ([part] for part in parts), [parts]:
        for chosen in own:
            names, exact = hessian(objective, problem, chosen)
            curved = objective.evaluate(problem, chosen, parse("mixing")).curvature
            bound = np.concatenate([np.ravel(curved[name]) for name in names])
            assert np.linalg.eigvalsh(np.diag(bound) - exact).min() > -NOISE
            # The companion: an eighth of it is none, so differences do see the Hessian.
            assert np.linalg.eigvalsh(np.diag(bound / 8) - exact).min() < -NOISE


@pytest.mark.parametrize("sharing", ["shared", "typed", "each"])
def test_first_order_has_the_curvature_of_the_likelihood(sharing):
    """One per event and weight, whichever of the two is followed."""
    _, problem, truth = case({"lengths": (4, 3), "sharing": sharing}, weighted=True)
    parts = parts_of(problem)
    one = PseudoLikelihood(truth).evaluate(problem, parts, parse(None)).curvature
    other = Likelihood(truth).evaluate(problem, parts, parse(None)).curvature
    assert sorted(one) == sorted(other) == sorted(names_of(problem, parts))
    for name, array in one.items():
        np.testing.assert_allclose(array, np.broadcast_to(other[name], array.shape), **EXACT)


def test_a_number_scales_the_curvature():
    _, problem, truth = case({"lengths": (4, 3)})
    objective = PseudoLikelihood(truth)
    bound = objective.evaluate(problem, ["node"], parse("mixing")).curvature["node"]
    half = objective.evaluate(problem, ["node"], parse(1.0)).curvature["node"]
    np.testing.assert_allclose(2 * half, bound, **EXACT)


@pytest.mark.parametrize("sharing", ["shared", "each"])
def test_a_weight_of_two_counts_an_instance_twice(sharing):
    raw, problem, truth = case({"lengths": (4,), "sharing": sharing})
    doubled = replace(truth, weights=np.array([2.0]))
    edge = raw.edge if sharing == "shared" else np.concatenate([raw.edge, raw.edge])
    twice = prepare(
        np.concatenate([raw.node, raw.node]), edge, [0, 4, 8], start=raw.start, end=raw.end
    )
    both = Truth(twice.batch, twice.structure, np.tile(truth.labels, 2))
    parts = parts_of(problem)
    heavy = PseudoLikelihood(doubled).evaluate(problem, parts, parse("mixing"))
    pair = PseudoLikelihood(both).evaluate(twice, parts, parse("mixing"))
    np.testing.assert_allclose(heavy.value, pair.value, **EXACT)
    for kind in ("gradient", "curvature"):
        for name, array in getattr(heavy, kind).items():
            other = getattr(pair, kind)[name]
            if len(other) == 8:
                other = other[:4] + other[4:]
            np.testing.assert_allclose(array, other, **EXACT)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_scores(dtype):
    """Far apart, and all the truth's: nothing overflows, and the loss is nothing."""
    raw, _, truth = case({"lengths": (4, 3)})
    node = np.zeros_like(raw.node)
    node[np.arange(7), truth.labels] = 1e4
    problem = prepare(**raw.with_arrays(node=node.astype(dtype)).arguments())
    found = PseudoLikelihood(truth).evaluate(problem, ["node", "edge"], parse("mixing"))
    assert found.value == 0.0
    for array in (*found.gradient.values(), *found.curvature.values()):
        assert np.isfinite(array).all()


def test_what_is_forbidden_where_labels_are_unknown():
    """Such positions count for nothing, whatever their scores are."""
    raw, problem, truth = case({"lengths": (5, 3)})
    truth.labels[3] = UNKNOWN
    node, edge = raw.node.copy(), raw.edge.copy()
    node[3] = [-np.inf, 0.0, 0.0]
    node[0, (truth.labels[0] + 1) % 3] = -np.inf
    changed = raw.with_arrays(node=node, edge=edge)
    problem = prepare(**changed.arguments())
    found = PseudoLikelihood(truth).evaluate(problem, ["node", "edge", "ends"], parse("mixing"))
    assert np.isfinite(found.value)
    for array in (*found.gradient.values(), *found.curvature.values()):
        assert np.isfinite(array).all()
    # Rows 2 to 4 do not count; their node scores may be anything.
    node[2:5] = 7.0
    again = prepare(**changed.with_arrays(node=node).arguments())
    assert PseudoLikelihood(truth).evaluate(again, ()).value == found.value
