"""Objectives under constraints: values of the labellings that are left, slopes, and bounds."""

from dataclasses import replace

import numpy as np
import pytest

from crfx.inference.problem import Problem, prepare
from crfx.inference.sum_product import summed
from crfx.objectives import KL, ExpectedLoss, LossScaled, task_loss
from crfx.objectives import curvature as curvatures
from crfx.objectives.counts import labelling_scores
from crfx.objectives.truth import SCORE_NAMES, Truth
from crfx.structures import Mask
from crfx.structures.mask import masked
from crfx.testing import enumerate_instances, make_problem
from tests.objectives.problems import OBJECTIVES, PERCEPTRONS, bind, listed_value

EXACT = 1e-9
"""Values in float64, against enumeration."""
STEP = 1e-5
SLOPES = {"rel": 1e-6, "abs": 1e-6}
"""How far slopes may be from differences."""
ROUNDING = 1e-9
"""What a positive semi-definite matrix may have below 0."""

LENGTHS = (1, 2, 3, 4, 3, 0)
PAIR = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], bool)
START, END = np.array([1, 1, 0], bool), np.array([0, 1, 1], bool)
SHAPES = {
    "chain": {},
    "chain-2": {"order": 2},
    "chain-3": {"order": 3},
    "chain-2-each": {"order": 2, "sharing": "each"},
    "typed": {"sharing": "typed"},
    "alone": {"sharing": "none"},
    "alone-2": {"order": 2, "sharing": "none"},
    "forest": {"shape": "random"},
    "forest-each": {"shape": "random", "sharing": "each"},
}


def is_allowed(labels, parents, n):
    """Return whether pairs, ends and positions (label 0 is not allowed at 2) allow labels."""
    for t, label in enumerate(labels):
        up = t - 1 if parents is None else parents[t]
        if up < 0 and not START[label]:
            return False
        if up >= 0 and not PAIR[labels[up], label]:
            return False
        if t == n - 1 and parents is None and not END[label]:
            return False
        if (t, label) == (2, 0):
            return False
    return True


@pytest.fixture(params=SHAPES)
def case(request):
    """A problem with constraints, its truth, and all labellings that are left, by instance."""
    raw = make_problem(5, lengths=LENGTHS, **SHAPES[request.param])
    free, random = prepare(**raw.arguments()), np.random.default_rng(5)
    is_forest = raw.parents is not None
    left, labels = [], []
    for k, enumerated in enumerate(enumerate_instances(**raw.arguments())):
        parents = raw.parents[free.batch.slice_of(k)].tolist() if is_forest else None
        good = [is_allowed(codes, parents, len(codes)) for codes in enumerated.labels.tolist()]
        left.append(replace(enumerated, scores=np.where(good, enumerated.scores, -np.inf)))
        labels += enumerated.labels[random.choice(np.flatnonzero(good))].tolist()
    offsets = free.batch.offsets
    allowed = np.ones(raw.node.shape, bool)
    allowed[offsets[:-1][np.array(LENGTHS) > 2] + 2, 0] = False
    batch = replace(free.batch, allowed=allowed)
    mask = Mask(PAIR, START, None if is_forest else END)
    scores = masked(free.scores, mask, allowed, raw.order, is_forest=is_forest)
    sharing = "shared" if free.sharing == "none" else free.sharing
    problem = Problem(batch, scores, free.structure, sharing)
    weights = random.integers(2, 8, len(LENGTHS)) / 4  # exact in float32 too
    return problem, Truth(batch, free.structure, np.array(labels), weights, np.arange(3)), left


def losses_of(enumerated, truth, instance):
    true = truth.labels[truth.batch.slice_of(instance)]
    return true, (enumerated.labels != true).sum(axis=1).astype(float)


def all_parts(problem):
    return ("node", "each_edge" if problem.sharing == "each" else "edge", "ends")


def test_scores_of_labellings_against_enumeration(case):
    problem, _, left = case
    random = np.random.default_rng(0)
    for _ in range(20):
        chosen = [enumerated.labels[random.integers(len(enumerated.labels))] for enumerated in left]
        expected = [each.score_of(codes) for each, codes in zip(left, chosen, strict=True)]
        scores = labelling_scores(problem, np.concatenate(chosen))
        np.testing.assert_allclose(scores, expected, atol=EXACT)


@pytest.mark.parametrize("case", ["chain"], indirect=True)
def test_instances_that_are_cut_out_keep_their_allowed_labels(case):
    _, truth, _ = case
    part, rows = truth.take(np.array([3, 1]))
    np.testing.assert_array_equal(part.batch.allowed, truth.batch.allowed[rows])


def test_values_are_sums_over_the_labellings_left(case):
    problem, truth, left = case
    for name in (*OBJECTIVES, *PERCEPTRONS):
        expected = sum(
            weight * listed_value(name, enumerated, *losses_of(enumerated, truth, k))
            for k, (enumerated, weight) in enumerate(zip(left, truth.weights, strict=True))
            if enumerated.labels.shape[1]
        )
        value = bind(name, truth).evaluate(problem, ()).value
        assert value == pytest.approx(expected, abs=EXACT), name


@pytest.mark.parametrize("name", OBJECTIVES)
def test_slopes_by_differences_are_0_where_forbidden(case, name):
    """The test moves all allowed scores in three random directions."""
    problem, truth, _ = case
    objective, random = bind(name, truth), np.random.default_rng(0)
    evaluation = objective.evaluate(problem, all_parts(problem), curvatures.parse("auto"))
    used = problem.structure.edge_rows(problem.batch)
    scores = {n: t for n in SCORE_NAMES if (t := getattr(problem.scores, n)) is not None}
    for score_name, table in scores.items():
        slope, curved = evaluation.gradient[score_name], evaluation.curvature[score_name]
        assert np.isfinite(slope).all()
        assert np.isfinite(curved).all()
        assert (curved >= 0).all()
        forbidden = np.isneginf(table)
        if score_name == "edge" and problem.sharing == "each":
            slope, forbidden = slope[used], forbidden[used]
        assert not slope[forbidden].any()
    for _ in range(3):
        steps = {name: STEP * random.normal(size=table.shape) for name, table in scores.items()}
        above, below = (
            objective.evaluate(
                replace(problem, scores=replace(problem.scores, **{
                    name: table + sign * steps[name] for name, table in scores.items()
                })), (),
            ).value
            for sign in (1, -1)
        )  # fmt: skip
        slope = sum(
            (evaluation.gradient[name] * steps[name])[np.isfinite(table)].sum()
            for name, table in scores.items()
        )
        assert slope / STEP == pytest.approx((above - below) / (2 * STEP), **SLOPES)


def test_candidates_are_allowed(case):
    problem, truth, _ = case
    for kind in (ExpectedLoss, KL):
        for name in ("samples", "kbest"):
            objective = kind(candidates=name).bind(truth, task_loss.parse("zero_one"), 1)
            evaluation = objective.evaluate(
                problem, all_parts(problem)[:2], curvatures.parse("auto")
            )
            assert np.isfinite(evaluation.value)
            assert not evaluation.gradient["node"][np.isneginf(problem.scores.node)].any()
            assert all(np.isfinite(slope).all() for slope in evaluation.gradient.values())


@pytest.mark.parametrize("case", ["chain-2", "typed", "forest-each"], indirect=True)
def test_long_instances_are_sampled(case):
    problem, truth, _ = case
    exact = bind("loss_scaled", truth).evaluate(problem, ()).value
    sampled = LossScaled(longest=0, n_samples=2_000).bind(truth, task_loss.parse(None), 1)
    evaluation = sampled.evaluate(problem, ("node",))
    assert evaluation.value == pytest.approx(exact, rel=0.1)
    assert np.isfinite(evaluation.gradient["node"]).all()


def test_curvature_dominates_the_hessian(case):
    problem, _, left = case
    hessians = [(each.hessian(each.node_events), each.hessian(each.edge_events)) for each in left]
    for kind in curvatures.BOUNDS:
        sums = summed(problem, "each", kind, n_jobs=1)
        for k, enumerated in enumerate(left):
            rows = problem.batch.slice_of(k)
            ends = [enumerated.first_row + part[-1] for part in enumerated.parts]
            for matrix, p, gamma in (
                (hessians[k][0], sums.node[rows], sums.node_gamma[rows]),
                (hessians[k][1], sums.edge[ends], sums.edge_gamma[ends]),
            ):
                if not matrix.size:
                    continue
                assert np.isfinite(gamma).all()
                gamma = gamma.reshape(gamma.shape + (1,) * (p.ndim - gamma.ndim))
                diagonal = (gamma * p * (1 - p)).reshape(-1)
                assert np.linalg.eigvalsh(np.diag(diagonal) - matrix).min() >= -ROUNDING, kind


def test_half_the_curvature_does_not_dominate(case):
    """The companion of the test above."""
    problem, _, left = case
    sums, seen = summed(problem, None, None, n_jobs=1), False
    for k, enumerated in enumerate(left):
        p = sums.node[problem.batch.slice_of(k)].reshape(-1)
        if p.size:
            matrix = np.diag(0.5 * p * (1 - p)) - enumerated.hessian(enumerated.node_events)
            seen = seen or np.linalg.eigvalsh(matrix).min() < -ROUNDING
    assert seen
