"""The likelihood against enumeration: value, gradient by differences, unknown labels, weights."""

from dataclasses import replace

import numpy as np
import pytest

from crfx.inference.problem import prepare
from crfx.objectives.curvature import ENDS_GAMMA, LEAST_CURVATURE, Curvature, parse
from crfx.objectives.likelihood import Likelihood, event_curvature
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import Scores
from crfx.testing import central_differences, enumerate_instances, make_problem

EXACT = {"rtol": 1e-9, "atol": 1e-9}
DIFFERENCES = {"rtol": 1e-5, "atol": 1e-7}
PLAIN = Curvature(None)
PARTS = {"node": ("node",), "edge": ("edge",), "ends": ("start", "end")}

STRUCTURES = [
    pytest.param({"lengths": (4, 3, 1)}, id="chain"),
    pytest.param({"lengths": (4, 1, 3), "order": 2}, id="order 2"),
    pytest.param({"lengths": (5, 2), "shape": "random"}, id="forest"),
    pytest.param({"lengths": (4, 3), "sharing": "typed"}, id="types"),
    pytest.param({"lengths": (4, 0, 3), "sharing": "none", "ends": False}, id="no edges"),
]


def case(structure, unknown=0.0, weighted=False, seed=0):
    """A problem, labels for it, and the likelihood of both."""
    raw = make_problem(seed, **structure)
    random = np.random.default_rng(seed)
    problem = prepare(**raw.arguments())
    labels = random.integers(3, size=problem.batch.n_rows)
    labels[random.random(len(labels)) < unknown] = UNKNOWN
    weights = random.uniform(0.5, 2.0, problem.batch.n_instances) if weighted else None
    truth = Truth(problem.batch, problem.structure, labels, weights)
    return raw, problem, truth


def enumerated_value(raw, truth):
    """The same by listing all labellings."""
    value = 0.0
    for number, instance in enumerate(enumerate_instances(**raw.arguments())):
        rows = slice(instance.first_row, instance.first_row + instance.labels.shape[1])
        known = truth.labels[rows] != UNKNOWN
        agrees = (instance.labels[:, known] == truth.labels[rows][known]).all(axis=1)
        clamped = np.logaddexp.reduce(instance.scores[agrees])
        weight = 1.0 if truth.weights is None else truth.weights[number]
        value += weight * (instance.log_z - clamped)
    return value


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("unknown", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_value_against_enumeration(structure, unknown, weighted):
    raw, problem, truth = case(structure, unknown, weighted)
    found = Likelihood(truth).evaluate(problem, (), PLAIN).value
    np.testing.assert_allclose(found, enumerated_value(raw, truth), **EXACT)


def test_a_wrong_label_changes_the_value():
    """The companion of the test above."""
    raw, problem, truth = case({"lengths": (4, 3)})
    wrong = replace(truth, labels=(truth.labels + 1) % 3)
    found = Likelihood(wrong).evaluate(problem, (), PLAIN).value
    assert abs(found - enumerated_value(raw, truth)) > 1e-3


@pytest.mark.parametrize(("unknown", "weighted"), [(0.0, False), (0.4, True)])
@pytest.mark.parametrize(
    ("structure", "part"),
    [
        pytest.param(*structure.values, part, id=f"{structure.id}, {part}")
        for structure in STRUCTURES
        for part in (PARTS if structure.id != "no edges" else ("node",))
    ],
)
def test_gradients_by_differences(structure, part, unknown, weighted):
    _, problem, truth = case(structure, unknown, weighted)
    names = [name for name in PARTS[part] if getattr(problem.scores, name) is not None]
    likelihood = Likelihood(truth)
    gradient = likelihood.evaluate(problem, [part], PLAIN).gradient
    assert sorted(gradient) == sorted(names)
    for name in names:

        def value(table, name=name):
            changed = replace(problem, scores=replace(problem.scores, **{name: table}))
            return likelihood.evaluate(changed, (), PLAIN).value

        slope = central_differences(value, getattr(problem.scores, name), step=1e-5)
        np.testing.assert_allclose(gradient[name], slope, **DIFFERENCES)


@pytest.mark.parametrize("unknown", [0.0, 0.4])
def test_gradient_of_one_table_per_edge(unknown):
    _, problem, truth = case({"lengths": (4, 3), "sharing": "each"}, unknown, True)
    likelihood = Likelihood(truth)
    found = likelihood.evaluate(problem, ["each_edge"], PLAIN).gradient["edge"]

    def value(table):
        changed = replace(problem, scores=replace(problem.scores, edge=table))
        return likelihood.evaluate(changed, (), PLAIN).value

    slope = central_differences(value, problem.scores.edge, step=1e-5)
    np.testing.assert_allclose(found, slope, **DIFFERENCES)


@pytest.mark.parametrize("unknown", [0.0, 0.5])
def test_a_weight_of_two_counts_an_instance_twice(unknown):
    raw, problem, truth = case({"lengths": (4,)}, unknown)
    doubled = replace(truth, weights=np.array([2.0]))
    node = np.concatenate([raw.node, raw.node])
    twice = prepare(node, raw.edge, [0, 4, 8], start=raw.start, end=raw.end)
    both = Truth(twice.batch, twice.structure, np.tile(truth.labels, 2))
    for part in ("node", "edge", "ends"):
        heavy = Likelihood(doubled).evaluate(problem, [part], parse("mixing"))
        pair = Likelihood(both).evaluate(twice, [part], parse("mixing"))
        np.testing.assert_allclose(heavy.value, pair.value, **EXACT)
        for name, gradient in heavy.gradient.items():
            other, curved = pair.gradient[name], pair.curvature[name]
            if part == "node":
                other, curved = other[:4] + other[4:], curved[:4] + curved[4:]
            np.testing.assert_allclose(gradient, other, **EXACT)
            np.testing.assert_allclose(heavy.curvature[name], curved, **EXACT)


@pytest.mark.parametrize("option", ["mixing", "dobrushin", "exact", "length"])
@pytest.mark.parametrize("seed", range(4))
def test_curvature_bounds_the_objective(option, seed):
    """A small step lies below the quadratic model, for every part, with labels unknown too."""
    _, problem, truth = case({"lengths": (4, 3)}, unknown=0.3, seed=seed)
    likelihood, random = Likelihood(truth), np.random.default_rng(seed)
    for part, names in PARTS.items():
        now = likelihood.evaluate(problem, [part], parse(option))
        for _ in range(5):
            tables, model = {}, now.value
            for name in names:
                table = getattr(problem.scores, name)
                step = 1e-3 * random.normal(size=table.shape)
                tables[name] = table + step
                model += float((now.gradient[name] * step).sum())
                model += 0.5 * float((now.curvature[name] * step**2).sum())
            moved = replace(problem, scores=replace(problem.scores, **tables))
            assert likelihood.evaluate(moved, (), PLAIN).value <= model + 1e-9


def test_a_twentieth_of_the_curvature_is_no_bound():
    """The companion: along the signs of the gradient the model would be exceeded."""
    _, problem, truth = case({"lengths": (4, 3)})
    likelihood = Likelihood(truth)
    now = likelihood.evaluate(problem, ["node"], parse("mixing"))
    step = 1e-2 * np.sign(now.gradient["node"])
    moved = replace(problem, scores=Scores(problem.scores.node + step, problem.scores.edge,
                                           problem.scores.start, problem.scores.end))  # fmt: skip
    model = now.value + float((now.gradient["node"] * step).sum())
    model += 0.5 * float((0.05 * now.curvature["node"] * step**2).sum())
    assert likelihood.evaluate(moved, (), PLAIN).value > model


def test_curvature_options():
    assert parse("auto") == parse("mixing") == Curvature("mixing")
    assert parse("mixing").ends_factor == ENDS_GAMMA
    assert parse("diagonal") == Curvature(None)
    assert parse(3) == Curvature(None, factor=3.0)
    assert parse(None).first_order
    for bad in ("newton", 0.0, -1.0, True, np.inf, np.nan):
        with pytest.raises(ValueError, match="curvature is"):
            parse(bad)


def test_first_order_has_curvature_one_per_event():
    _, problem, truth = case({"lengths": (4, 3)})
    node = Likelihood(truth).evaluate(problem, ["node"], parse(None)).curvature["node"]
    edge = Likelihood(truth).evaluate(problem, ["edge"], parse(None)).curvature["edge"]
    np.testing.assert_array_equal(node, 1.0)
    np.testing.assert_array_equal(edge, 5.0)  # 3 + 2 edges share the table


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_axes", [1, 2])
@pytest.mark.parametrize("gamma", [None, "row", "event"])
def test_curvature_of_events_against_numpy(dtype, n_axes, gamma):
    """Many rows, so that threads share them; certain events, so that the least one shows."""
    random = np.random.default_rng(0)
    shape = (20_011, *(3,) * n_axes)
    p = random.uniform(size=shape).astype(dtype)
    p[::7] = np.round(p[::7])
    own = {None: None, "row": shape[:1], "event": shape}[gamma]
    multiplier = None if own is None else random.uniform(1, 9, own).astype(dtype)
    expected = 2.5 * p.astype(np.float64) * (1.0 - p.astype(np.float64))
    if multiplier is not None:
        expected *= multiplier.reshape(multiplier.shape + (1,) * (p.ndim - multiplier.ndim))
    expected = np.maximum(expected, LEAST_CURVATURE)
    found = event_curvature(p, multiplier, 2.5)
    assert found.dtype == dtype
    # 1 - p is rounded to the spacing of numbers near 1.
    np.testing.assert_allclose(found, expected, rtol=8 * np.finfo(dtype).eps, atol=0)
    assert (found[::7] == dtype(LEAST_CURVATURE)).all()
    np.testing.assert_array_equal(found, event_curvature(p, multiplier, 2.5, n_jobs=1))


@pytest.mark.parametrize("sharing", ["shared", "each"])
@pytest.mark.parametrize("unknown", [0.0, 0.4])
def test_parts_asked_for_together_are_those_asked_for_alone(sharing, unknown):
    edge = "each_edge" if sharing == "each" else "edge"
    _, problem, truth = case({"lengths": (4, 3), "sharing": sharing}, unknown, True)
    likelihood = Likelihood(truth)
    together = likelihood.evaluate(problem, ["node", edge, "ends"], parse("mixing"))
    for part in ("node", edge, "ends"):
        alone = likelihood.evaluate(problem, [part], parse("mixing"))
        assert alone.value == together.value
        for name in alone.gradient:
            np.testing.assert_array_equal(alone.gradient[name], together.gradient[name])
            np.testing.assert_array_equal(alone.curvature[name], together.curvature[name])
    assert sorted(together.gradient) == ["edge", "end", "node", "start"]


@pytest.mark.parametrize("seed", range(4))
def test_two_parts_moved_at_once_stay_below_twice_their_curvature(seed):
    """So a full Newton step of both, which halves nothing, does not raise the quadratic bound."""
    _, problem, truth = case({"lengths": (4, 3)}, seed=seed)
    likelihood, random = Likelihood(truth), np.random.default_rng(seed)
    now = likelihood.evaluate(problem, ["edge", "ends"], parse("mixing"))
    for _ in range(20):
        model, moved = now.value, problem.scores
        for name, slope in now.gradient.items():
            delta = random.normal(size=slope.shape) * 1e-3
            model += (slope * delta).sum() + (now.curvature[name] * delta**2).sum()
            moved = replace(moved, **{name: getattr(moved, name) + delta})
        found = likelihood.evaluate(replace(problem, scores=moved), (), PLAIN).value
        assert found <= model + 1e-9
