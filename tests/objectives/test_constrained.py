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
from crfx.objectives.truth import Truth
from crfx.scores import Scores
from crfx.structures import Chain, Forest, Mask
from crfx.structures.mask import masked
from crfx.testing import enumerate_instances, make_parents

EXACT = 1e-9
"""Values in float64, against enumeration."""
STEP, SLOPES = 1e-5, 1e-6
"""Of differences, and how far they may be from slopes."""
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


def test_labellings_score_what_enumeration_says(case):
    problem, _, left = case
    random = np.random.default_rng(0)
    for _ in range(20):
        chosen = [own.labels[random.integers(len(own.labels))] for own in left]
        wanted = [own.score_of(codes) for own, codes in zip(left, chosen, strict=True)]
        found = labelling_scores(problem, np.concatenate(chosen))
        np.testing.assert_allclose(found, wanted, atol=EXACT)


def test_instances_that_are_cut_out_keep_their_labels(case):
    _, truth, _ = case
    part, rows = truth.take(np.array([3, 1]))
    np.testing.assert_array_equal(part.batch.allowed, truth.batch.allowed[rows])


@pytest.mark.parametrize("name", [*OBJECTIVES, "perceptron"])
def test_values_are_of_the_labellings_left(case, name):
    problem, truth, left = case
    wanted = sum(
        weight * value_of(name, own, *losses_of(own, truth, k))
        for k, (own, weight) in enumerate(zip(left, truth.weights, strict=True))
        if own.labels.shape[1]
    )
    assert bound(name, truth).evaluate(problem, ()).value == pytest.approx(wanted, abs=EXACT)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_slopes_are_those_of_differences_and_0_where_forbidden(case, name):
    problem, truth, _ = case
    objective = bound(name, truth)
    edge_part = "each_edge" if problem.sharing == "each" else "edge"
    found = objective.evaluate(problem, ("node", edge_part, "ends"), curvatures.parse("auto"))
    used = problem.structure.edge_rows(problem.batch)
    for which in ("node", "edge", "start", "end"):
        scores = getattr(problem.scores, which)
        if scores is None:
            continue
        slope = found.gradient[which]
        assert np.isfinite(slope).all()
        assert np.isfinite(found.curvature[which]).all()
        assert (found.curvature[which] >= 0).all()
        for index in np.ndindex(scores.shape):
            if np.isneginf(scores[index]):
                if which != "edge" or problem.sharing != "each" or index[0] in used:
                    assert slope[index] == 0
                continue
            values = []
            for sign in (1, -1):
                moved = scores.copy()
                moved[index] += sign * STEP
                changed = replace(problem, scores=replace(problem.scores, **{which: moved}))
                values.append(objective.evaluate(changed, ()).value)
            assert slope[index] == pytest.approx((values[0] - values[1]) / (2 * STEP), abs=SLOPES)


@pytest.mark.parametrize("name", ["samples", "kbest"])
@pytest.mark.parametrize("kind", [ExpectedLoss, KL])
def test_candidates_are_allowed(case, name, kind):
    problem, truth, _ = case
    objective = kind(candidates=name).bind(truth, task_loss.parse("zero_one"), 1)
    part = "each_edge" if problem.sharing == "each" else "edge"
    found = objective.evaluate(problem, ("node", part), curvatures.parse("auto"))
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


@pytest.mark.parametrize("kind", curvatures.BOUNDS)
def test_curvature_dominates_the_hessian(case, kind):
    problem, _, left = case
    sums = summed(problem, "each", kind, n_jobs=1)
    assert np.isfinite(sums.node_gamma).all()
    assert np.isfinite(sums.edge_gamma).all()
    for k, own in enumerate(left):
        rows = problem.batch.slice_of(k)
        for events, p, gamma in (
            (own.node_events, sums.node[rows], sums.node_gamma[rows]),
            (own.edge_events, None, None),
        ):
            if p is None:
                ends = [own.first_row + part[-1] for part in own.parts]
                p, gamma = sums.edge[ends], sums.edge_gamma[ends]
            if not events.size:
                continue
            if gamma.ndim == 1:
                gamma = gamma.reshape((-1,) + (1,) * (p.ndim - 1)) * np.ones_like(p)
            diagonal = (gamma * p * (1 - p)).reshape(-1)
            least = np.linalg.eigvalsh(np.diag(diagonal) - own.hessian(events)).min()
            assert least >= -ROUNDING


def test_a_bound_that_is_too_small_is_seen(case):
    """The companion of the test before: half of what is exact does not do."""
    problem, _, left = case
    sums, seen = summed(problem, None, None, n_jobs=1), False
    for k, own in enumerate(left):
        p = sums.node[problem.batch.slice_of(k)].reshape(-1)
        if p.size:
            matrix = np.diag(0.5 * p * (1 - p)) - own.hessian(own.node_events)
            seen = seen or np.linalg.eigvalsh(matrix).min() < -ROUNDING
    assert seen
