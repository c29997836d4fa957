"""Objectives under constraints: values of the labellings that are left, slopes, and bounds."""

from dataclasses import replace

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.inference.problem import Problem
from crfx.inference.sum_product import summed
from crfx.objectives import KL, ExpectedLoss, LossScaled, registry, task_loss
from crfx.objectives import curvature as curvatures
from crfx.objectives.counts import labelling_scores
from crfx.objectives.perceptron import PerceptronLoss
from crfx.objectives.truth import SCORE_NAMES, Truth
from crfx.scores import Scores
from crfx.structures import Chain, Forest, Mask
from crfx.structures.mask import masked
from crfx.testing import enumerate_instances, make_parents

EXACT = 1e-9
"""Values in float64, against enumeration."""
STEP = 1e-5
SLOPES = {"rel": 1e-6, "abs": 1e-6}
"""How far slopes may be from differences."""
ROUNDING = 1e-9
"""What a positive semi-definite matrix may have below 0."""

LENGTHS = (1, 2, 3, 4, 3, 0)
K = 3
PAIR = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], bool)
START, END = np.array([1, 1, 0], bool), np.array([0, 1, 1], bool)
SHAPES = {
    "chain": (1, False, "shared"),
    "chain-2": (2, False, "shared"),
    "chain-3": (3, False, "shared"),
    "chain-2-each": (2, False, "each"),
    "typed": (1, False, "typed"),
    "alone": (1, False, "none"),
    "alone-2": (2, False, "none"),
    "forest": (1, True, "shared"),
    "forest-each": (1, True, "each"),
}


def is_allowed(labels, parents, n):
    """Plainly, of one instance: pairs, ends and positions (label 1 is not allowed at odd ones)."""
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
    order, is_forest, sharing = SHAPES[request.param]
    random = np.random.default_rng(5)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    rows = int(offsets[-1])
    parts = [make_parents(random, n, "random") for n in LENGTHS]
    parents = np.concatenate(parts).astype(np.int64) if is_forest else None
    types = random.integers(2, size=rows) if sharing == "typed" else None
    front = {"shared": (), "each": (rows,), "typed": (2,), "none": None}[sharing]
    edge = None if front is None else random.normal(size=(*front, *(K,) * (order + 1)))
    free = {
        "node": random.normal(size=(rows, K)),
        "edge": edge,
        "start": random.normal(size=K),
        "end": None if is_forest else random.normal(size=K),
    }
    where = {"offsets": offsets, "parents": parents, "edge_types": types, "order": order}
    left, labels = [], []
    for n, up, own in zip(LENGTHS, parts, enumerate_instances(**free, **where), strict=True):
        tree = up.tolist() if is_forest else None
        good = [is_allowed(codes, tree, n) for codes in own.labels.tolist()]
        left.append(replace(own, scores=np.where(good, own.scores, -np.inf)))
        labels += own.labels[random.choice(np.flatnonzero(good))].tolist()
    allowed = np.ones((rows, K), bool)
    allowed[offsets[:-1][np.array(LENGTHS) > 2] + 2, 0] = False
    batch = Batch(offsets, parents=parents, edge_types=types, allowed=allowed)
    mask = Mask(PAIR, START, None if is_forest else END)
    scores = masked(Scores(**free), mask, allowed, order, is_forest=is_forest)
    structure = Forest() if is_forest else Chain(order)
    problem = Problem(batch, scores, structure, "shared" if sharing == "none" else sharing)
    weights = random.integers(2, 8, len(LENGTHS)) / 4  # exact in float32 too
    truth = Truth(batch, structure, np.array(labels), weights, np.array(["a", "b", "c"]))
    return problem, truth, left


def losses_of(own, truth, instance):
    true = truth.labels[truth.batch.slice_of(instance)]
    return (own.labels != true).sum(axis=1).astype(float), true


def log_sum(values):
    top = values.max()
    return top + np.log(np.exp(values - top).sum())


def value_of(name, own, losses, true):
    """What an objective is, from the list of labellings that are left."""
    kept = own.scores > -np.inf
    scores, losses, labels = own.scores[kept], losses[kept], own.labels[kept]
    score = own.score_of(true)
    p = np.exp(scores - log_sum(scores))
    if name == "likelihood":
        return log_sum(scores) - score
    if name == "loss_augmented":
        return log_sum(scores + losses) - score
    if name == "loss_scaled":
        return log_sum(losses * (1 + scores - score))
    if name == "expected_loss":
        return p @ losses
    if name == "kl":
        q = np.exp(-losses / 0.5 - log_sum(-losses / 0.5))
        return q @ (np.log(q) - np.log(p))
    if name == "labelwise_likelihood":
        return -sum(np.log(p[labels[:, t] == code].sum()) for t, code in enumerate(true))
    if name == "pseudo_likelihood":
        differs = labels != true
        total = 0.0
        for t in range(len(true)):
            others = np.delete(differs, t, axis=1).any(axis=1)
            total += log_sum(scores[~others]) - score
        return total
    assert name == "perceptron"
    return (scores + 0.75 * losses).max() - score


OBJECTIVES = {
    **registry.OBJECTIVES,
    "kl": KL(temperature=0.5),
    "loss_scaled": LossScaled(longest=20),
}


def bound(name, truth):
    if name == "perceptron":
        return PerceptronLoss(truth, 0.75, 1)
    return OBJECTIVES[name].bind(truth, task_loss.parse(None), 1)


def all_parts(problem):
    return ("node", "each_edge" if problem.sharing == "each" else "edge", "ends")


def test_scores_of_labellings_against_enumeration(case):
    problem, _, left = case
    random = np.random.default_rng(0)
    for _ in range(20):
        chosen = [own.labels[random.integers(len(own.labels))] for own in left]
        expected = [own.score_of(codes) for own, codes in zip(left, chosen, strict=True)]
        scores = labelling_scores(problem, np.concatenate(chosen))
        np.testing.assert_allclose(scores, expected, atol=EXACT)


def test_instances_that_are_cut_out_keep_their_allowed_labels(case):
    _, truth, _ = case
    part, rows = truth.take(np.array([3, 1]))
    np.testing.assert_array_equal(part.batch.allowed, truth.batch.allowed[rows])


def test_values_are_sums_over_the_labellings_left(case):
    problem, truth, left = case
    for name in (*OBJECTIVES, "perceptron"):
        expected = sum(
            weight * value_of(name, own, *losses_of(own, truth, k))
            for k, (own, weight) in enumerate(zip(left, truth.weights, strict=True))
            if own.labels.shape[1]
        )
        value = bound(name, truth).evaluate(problem, ()).value
        assert value == pytest.approx(expected, abs=EXACT), name


@pytest.mark.parametrize("name", OBJECTIVES)
def test_slopes_by_differences_are_0_where_forbidden(case, name):
    """In three random directions, which move all scores that are allowed."""
    problem, truth, _ = case
    objective, random = bound(name, truth), np.random.default_rng(0)
    found = objective.evaluate(problem, all_parts(problem), curvatures.parse("auto"))
    used = problem.structure.edge_rows(problem.batch)
    scores = {n: t for n in SCORE_NAMES if (t := getattr(problem.scores, n)) is not None}
    for score_name, table in scores.items():
        slope, curved = found.gradient[score_name], found.curvature[score_name]
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
            (found.gradient[name] * steps[name])[np.isfinite(table)].sum()
            for name, table in scores.items()
        )
        assert slope / STEP == pytest.approx((above - below) / (2 * STEP), **SLOPES)


def test_candidates_are_allowed(case):
    problem, truth, _ = case
    for kind in (ExpectedLoss, KL):
        for name in ("samples", "kbest"):
            objective = kind(candidates=name).bind(truth, task_loss.parse("zero_one"), 1)
            found = objective.evaluate(problem, all_parts(problem)[:2], curvatures.parse("auto"))
            assert np.isfinite(found.value)
            assert not found.gradient["node"][np.isneginf(problem.scores.node)].any()
            assert all(np.isfinite(slope).all() for slope in found.gradient.values())


def test_long_instances_are_sampled(case):
    problem, truth, _ = case
    exact = bound("loss_scaled", truth).evaluate(problem, ()).value
    sampled = LossScaled(longest=0, n_samples=2_000).bind(truth, task_loss.parse(None), 1)
    found = sampled.evaluate(problem, ("node",))
    assert found.value == pytest.approx(exact, rel=0.1)
    assert np.isfinite(found.gradient["node"]).all()


def test_curvature_dominates_the_hessian(case):
    problem, _, left = case
    hessians = [(own.hessian(own.node_events), own.hessian(own.edge_events)) for own in left]
    for kind in curvatures.BOUNDS:
        sums = summed(problem, "each", kind, n_jobs=1)
        for k, own in enumerate(left):
            rows = problem.batch.slice_of(k)
            ends = [own.first_row + part[-1] for part in own.parts]
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
    for k, own in enumerate(left):
        p = sums.node[problem.batch.slice_of(k)].reshape(-1)
        if p.size:
            matrix = np.diag(0.5 * p * (1 - p)) - own.hessian(own.node_events)
            seen = seen or np.linalg.eigvalsh(matrix).min() < -ROUNDING
    assert seen
