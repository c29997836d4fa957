"""Curvature of objectives of labellings: bounds of the Hessian, first order, and its settings."""

from dataclasses import replace

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.inference.problem import Problem, prepare
from crfx.objectives.curvature import BOUNDS, ENDS_GAMMA, LEAST_CURVATURE, Curvature, parse
from crfx.objectives.likelihood import Likelihood, event_curvature
from crfx.objectives.perceptron import PerceptronLoss
from crfx.objectives.pseudo_likelihood import PseudoLikelihood
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import Scores
from crfx.structures import Chain
from tests.objectives.problems import (
    CLASS_WEIGHTS,
    EXACT,
    STRUCTURES,
    TRUTHS,
    WHOLE,
    bind,
    flattened,
    hessian,
    make_case,
    names_of,
    parts_of,
)
from tests.pairwise import pairwise

NOISE = 1e-5
"""How far below 0 an eigenvalue may lie in a Hessian by differences."""
BOUNDED = ["likelihood", "pseudo_likelihood", "loss_augmented", "loss_scaled", "kl"]
MOST_SCORES = 200
"""In a Hessian by differences."""
ORDINARY = {"lengths": (4, 3)}


def slack(objective, problem, parts, curvature, factor=1.0):
    """Return the least eigenvalue of ``factor`` times the diagonal curvature minus the Hessian."""
    bound = objective.evaluate(problem, parts, curvature).curvature
    diagonal = factor * np.diag(flattened(bound, names_of(problem, parts)))
    return np.linalg.eigvalsh(diagonal - hessian(objective, problem, parts)).min()


@pytest.mark.parametrize(
    ("name", "structure", "option", "truth"),
    pairwise(BOUNDED, list(STRUCTURES), ["auto", *BOUNDS], list(TRUTHS)),
)
def test_curvature_dominates_the_hessian(name, structure, option, truth):
    """Part by part; the pseudo-likelihood's also where all parts move at once."""
    options = {"weighted": True} if name in WHOLE else TRUTHS[truth]
    curvature = parse("auto" if name in WHOLE else option)
    for seed in range(2):
        _, problem, truth = make_case(structure, seed=seed, **options)
        objective, parts = bind(name, truth), parts_of(problem)
        assert objective.curvature_kind == "bound"
        sets = [[part] for part in parts] + [parts] * (name == "pseudo_likelihood")
        for chosen in sets:
            n_scores = sum(getattr(problem.scores, part).size for part in names_of(problem, chosen))
            if n_scores <= MOST_SCORES:
                assert slack(objective, problem, chosen, curvature) > -NOISE, chosen


@pytest.mark.parametrize(
    ("name", "fraction"),
    [("likelihood", 0.9), ("loss_augmented", 0.9), ("kl", 0.9), ("pseudo_likelihood", 0.9),
     ("loss_scaled", 0.4)],
)  # fmt: skip
def test_a_fraction_of_the_curvature_is_no_bound(name, fraction):
    """The companion: one position and two labels, where the bound is tight."""
    problem = prepare(np.array([[0.0, -1.0]]), None, [0, 1])
    truth = Truth(problem.batch, problem.structure, np.array([0]), None, np.arange(2))
    assert slack(bind(name, truth), problem, ["node"], parse("auto"), fraction) < -NOISE


@pytest.mark.parametrize("name", BOUNDED)
def test_curvature_of_start_and_end_of_one_position(name):
    """Both move with the same label, which is probable: the bound is tight."""
    node, ends = np.array([[0.0, -3.0]]), {"start": np.zeros(2), "end": np.zeros(2)}
    problem = prepare(node, None, [0, 1], **ends)
    truth = Truth(problem.batch, problem.structure, np.array([0]), None, np.arange(2))
    assert slack(bind(name, truth), problem, ["ends"], parse("auto")) > -NOISE


@pytest.mark.parametrize("seed", range(2))
def test_two_moving_parts_need_at_most_twice_their_curvature(seed):
    """So a full Newton step of both, which halves nothing, does not raise the quadratic bound."""
    _, problem, truth = make_case(ORDINARY, seed=seed)
    assert slack(Likelihood(truth), problem, ["edge", "ends"], parse("mixing"), 2.0) > -NOISE


def test_class_weights_scale_the_curvature():
    """The curvature of a position is scaled by the weight of its label."""
    structure = {"lengths": (1,), "sharing": "none", "ends": False}
    _, problem, truth = make_case(structure, class_weights=CLASS_WEIGHTS)
    plain = replace(truth, class_weights=None)
    weighted, unweighted = (
        bind("likelihood", bound).evaluate(problem, ("node",), parse("auto")).curvature["node"]
        for bound in (truth, plain)
    )
    np.testing.assert_allclose(weighted, CLASS_WEIGHTS[truth.labels[0]] * unweighted, **EXACT)


def test_curvature_options():
    assert parse("auto") == parse("mixing") == Curvature("mixing")
    assert parse("mixing").ends_factor == ENDS_GAMMA
    assert parse("diagonal") == Curvature(None)
    assert parse(3) == Curvature(None, factor=3.0)
    assert parse(None).first_order
    for bad in ("newton", 0.0, -1.0, True, np.inf, np.nan):
        with pytest.raises(ValueError, match="curvature is"):
            parse(bad)


def test_the_perceptron_has_no_curvature():
    _, problem, truth = make_case(ORDINARY)
    with pytest.raises(ValueError, match="no curvature"):
        PerceptronLoss(truth).evaluate(problem, ("node",), Curvature(None))


def test_a_number_scales_the_curvature_of_the_pseudo_likelihood():
    _, problem, truth = make_case(ORDINARY)
    bound, half = (
        PseudoLikelihood(truth).evaluate(problem, ["node"], parse(option)).curvature["node"]
        for option in ("mixing", 1.0)
    )
    np.testing.assert_allclose(2 * half, bound, **EXACT)


@pytest.mark.parametrize("sharing", ["shared", "typed", "each"])
def test_first_order_curvature_is_the_weight_of_every_event(sharing):
    """This holds for likelihood and pseudo-likelihood."""
    _, problem, truth = make_case({"lengths": (4, 3), "sharing": sharing}, weighted=True)
    parts = parts_of(problem)
    one, other = (
        objective.evaluate(problem, parts, parse(None)).curvature
        for objective in (PseudoLikelihood(truth), Likelihood(truth))
    )
    assert sorted(one) == sorted(other) == sorted(names_of(problem, parts))
    for name, array in one.items():
        np.testing.assert_allclose(array, np.broadcast_to(other[name], array.shape), **EXACT)
    np.testing.assert_allclose(
        other["node"], np.broadcast_to(truth.row_weights[:, None], other["node"].shape), **EXACT
    )
    if sharing == "shared":  # 3 + 2 edges share the table
        np.testing.assert_allclose(other["edge"], truth.weights @ [3, 2], **EXACT)


@pytest.mark.parametrize("objective", ["likelihood", "pseudo_likelihood", "loss_augmented"])
def test_first_order_curvature_is_the_class_weight_of_a_part(objective):
    """An edge has that of the heaviest label it joins, an unknown label that of its instance's."""
    batch = Batch.from_lengths(np.array([3, 2]))
    labels = np.array([1, 0, 2, UNKNOWN, 0])
    weights = np.array([1.0, 2.0])
    truth = Truth(batch, Chain(1), labels, weights, np.arange(3), CLASS_WEIGHTS)
    by_row = np.array([3.0, 0.5, 1.0, 1.0, 1.0])
    by_edge = np.array([0.0, 3.0, 1.0, 0.0, 1.0])
    random = np.random.default_rng(0)
    each = Scores(random.normal(size=(5, 3)), random.normal(size=(5, 3, 3)), None, None)
    curved = bind(objective, truth).evaluate(
        Problem(batch, each, Chain(1), "each"), ("node", "each_edge"), parse(None)
    ).curvature  # fmt: skip
    np.testing.assert_array_equal(curved["node"], np.tile(by_row[:, None], 3))
    np.testing.assert_array_equal(curved["edge"][:, 0, 0], by_edge)
    shared = Scores(each.node, each.edge[0], np.zeros(3), np.zeros(3))
    curved = bind(objective, truth).evaluate(
        Problem(batch, shared, Chain(1), "shared"), ("edge", "ends"), parse(None)
    ).curvature  # fmt: skip
    np.testing.assert_array_equal(curved["edge"], np.full((3, 3), by_edge.sum()))
    np.testing.assert_array_equal(curved["start"], np.full(3, 4.0))
    np.testing.assert_array_equal(curved["end"], np.full(3, 2.0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("gamma", "n_axes"), [(None, 1), ("row", 2), ("event", 1), ("event", 2)])
def test_curvature_of_events_against_numpy(dtype, n_axes, gamma):
    """Many rows, so that threads share them; certain events, so that the least one shows."""
    random = np.random.default_rng(0)
    shape = (20_011, *(3,) * n_axes)
    p = random.uniform(size=shape).astype(dtype)
    p[::7] = np.round(p[::7])
    gamma_shape = {None: None, "row": shape[:1], "event": shape}[gamma]
    multiplier = None if gamma is None else random.uniform(1, 9, gamma_shape).astype(dtype)
    expected = 2.5 * p.astype(np.float64) * (1.0 - p.astype(np.float64))
    if multiplier is not None:
        expected *= multiplier.reshape(multiplier.shape + (1,) * (p.ndim - multiplier.ndim))
    expected = np.maximum(expected, LEAST_CURVATURE)
    result = event_curvature(p, multiplier, 2.5)
    assert result.dtype == dtype
    # 1 - p is rounded to the spacing of numbers near 1.
    np.testing.assert_allclose(result, expected, rtol=8 * np.finfo(dtype).eps, atol=0)
    assert (result[::7] == dtype(LEAST_CURVATURE)).all()
    np.testing.assert_array_equal(result, event_curvature(p, multiplier, 2.5, n_jobs=1))
