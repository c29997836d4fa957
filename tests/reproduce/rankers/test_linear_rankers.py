"""Regression, ListNet, AdaRank and the structured SVM against slow twins of their definitions."""

from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.special import log_softmax
from sklearn.linear_model import LinearRegression, Ridge

from crfx.ndcg import gain_of, ndcg, ndcg_by_query
from crfx.testing import central_differences
from reproduce.rankers import RANKERS, Given, Judge
from reproduce.rankers.base import query_of, with_levels
from reproduce.rankers.listnet import cross_entropy, softmax
from reproduce.rankers.structured_svm import Hinge

DIFFERENCES = {"rtol": 1e-6, "atol": 1e-7}
EXACT = {"rtol": 1e-9, "atol": 1e-10}
LINEAR = ("Regression", "ListNet", "AdaRank", "StructuredSVM")
JUDGE = Judge()


def weights_of(name, train, validation=None, **settings):
    fitted = RANKERS[name](Given(train, validation or train, JUDGE), **settings)
    return fitted.scores(np.eye(train.X.shape[1], dtype=np.float32))


def by_query(part, *arrays):
    edges = np.cumsum(part.group)[:-1]
    return zip(*(np.split(array, edges) for array in arrays), strict=True)


@pytest.mark.parametrize("name", LINEAR)
def test_it_learns_what_is_there(make_lists, name):
    train, test = make_lists(), make_lists(seed=1)
    weights = weights_of(name, train)
    assert np.argmax(np.abs(weights)) == 0
    assert weights[0] > 0
    reached = ndcg(test.relevance, test.X @ weights, test.group, cut=5)
    assert reached > ndcg(test.relevance, test.X @ np.ones(4), test.group, cut=5) + 0.02


@pytest.mark.parametrize("l2", [0.0, 3.0])
def test_regression_is_least_squares(make_lists, l2):
    train = make_lists()
    twin = (Ridge(alpha=l2) if l2 else LinearRegression()).fit(
        train.X.astype(np.float64), train.relevance
    )
    np.testing.assert_allclose(weights_of("Regression", train, l2=l2), twin.coef_, **EXACT)


def test_regression_with_a_constant_feature_has_the_least_norm(make_lists):
    train = make_lists()
    train.X[:, 3] = 1
    assert weights_of("Regression", train)[3] == pytest.approx(0, abs=1e-12)


def test_a_softmax_is_taken_within_a_query(make_lists):
    part = make_lists()
    scores = 50 * np.random.default_rng(0).normal(size=len(part.X))
    q, log_q = softmax(scores, query_of(part))
    expected = np.concatenate([log_softmax(of_query) for (of_query,) in by_query(part, scores)])
    np.testing.assert_allclose(log_q, expected, **EXACT)
    np.testing.assert_allclose(q, np.exp(expected), **EXACT)


def test_the_slope_of_listnet_is_that_of_differences(make_lists):
    part = make_lists(n_queries=5)
    query = query_of(part)
    target = softmax(part.relevance, query)[0]
    scores = np.random.default_rng(0).normal(size=len(query))
    expected = central_differences(lambda s: cross_entropy(s, target, query)[0], scores)
    np.testing.assert_allclose(cross_entropy(scores, target, query)[1], expected, **DIFFERENCES)


def test_listnet_stands_at_the_minimum(make_lists):
    train, l2 = make_lists(), 0.5
    weights = weights_of("ListNet", train, l2=l2)
    part = with_levels(train)
    query = query_of(part)
    _, slope = cross_entropy(part.X @ weights, softmax(part.relevance, query)[0], query)
    np.testing.assert_allclose(slope @ part.X + 2 * l2 * weights, 0, rtol=0, atol=2e-3)
    assert np.linalg.norm(weights_of("ListNet", train, l2=50.0)) < np.linalg.norm(weights)


def slow_adarank(train, n_rounds, cut):
    """The weights after each round, by the paper's algorithm."""
    part = with_levels(train)
    queries = list(by_query(part, part.X.astype(np.float64), part.relevance))

    def quality(weights):
        return [ndcg(r, x @ weights, [len(r)], cut=cut) for x, r in queries]

    P, total, result = [1 / len(queries)] * len(queries), np.zeros(part.X.shape[1]), []
    k_before = None
    singles = [quality(unit) for unit in np.eye(part.X.shape[1])]
    for _ in range(n_rounds):
        means = [sum(p * e for p, e in zip(P, single, strict=True)) for single in singles]
        k = max((k for k in range(len(means)) if k != k_before), key=lambda k: means[k])
        k_before = k
        total[k] += 0.5 * np.log((1 + means[k]) / (1 - means[k]))
        result.append(total.copy())
        P = np.exp(-np.array(quality(total)))
        P = list(P / P.sum())
    return result


def test_adarank_keeps_the_round_that_validates_best(make_lists):
    sizes = {"n_queries": 12, "n_features": 8, "noise": 1.0}
    train, kept = make_lists(**sizes), []
    rounds = slow_adarank(train, 12, cut=3)
    for seed in range(1, 6):
        validation = make_lists(**sizes, seed=seed)
        figures = [JUDGE(validation, validation.X.astype(np.float64) @ w) for w in rounds]
        fitted = RANKERS["AdaRank"](Given(train, validation, JUDGE), rounds=12, cut=3)
        assert fitted.rounds == int(np.argmax(figures)) + 1
        kept.append(fitted.rounds)
        weights = fitted.scores(np.eye(8, dtype=np.float32))
        np.testing.assert_allclose(weights, rounds[fitted.rounds - 1], **EXACT)
    assert max(kept) > 4  # where queries have long ceased to weigh alike


def test_a_perfect_feature_does_not_divide_by_zero(make_lists):
    train = make_lists(noise=0.0)
    train.X[:, 2] = train.relevance
    weights = weights_of("AdaRank", train, rounds=3)
    assert np.isfinite(weights).all()
    assert np.argmax(weights) == 2


def order_terms(relevance, scores, order, gain):
    """Loss and score of one order: order[rank] is a document."""
    discount = 1 / np.log2(np.arange(2, len(order) + 2))
    gains = gain_of(relevance, gain)
    best = discount @ np.sort(gains)[::-1]
    return 1 - discount @ gains[list(order)] / best, discount @ scores[list(order)]


def slow_hinge(relevance, scores, gain):
    """Return the loss over all orders; the truth's score is the mean over orders of loss 0."""
    terms = [
        order_terms(relevance, scores, order, gain) for order in permutations(range(len(scores)))
    ]
    truths = [score for loss, score in terms if loss < 1e-12]
    return max(loss + score for loss, score in terms) - np.mean(truths)


def assigned_hinge(relevance, scores, gain):
    """The most violated order as a linear assignment of documents to ranks."""
    n = len(scores)
    discount = 1 / np.log2(np.arange(2, n + 2))
    gains = gain_of(relevance, gain)
    best = discount @ np.sort(gains)[::-1]
    worth = np.outer(scores, discount) - np.outer(gains, discount) / best
    rows, columns = linear_sum_assignment(-worth)
    place = np.argsort(np.argsort(-relevance, kind="stable"), kind="stable")
    mean = [discount[place[relevance == level]].mean() for level in relevance]
    return 1 + worth[rows, columns].sum() - np.dot(mean, scores)


@pytest.mark.parametrize(
    ("slow", "longest", "gain"),
    [(slow_hinge, 6, "linear"), (slow_hinge, 6, "exponential"), (assigned_hinge, 30, "linear")],
)
def test_the_hinge_is_the_most_violated_order(make_lists, slow, longest, gain):
    part = with_levels(make_lists(n_queries=8, longest=longest))
    scores = np.random.default_rng(3).normal(size=len(part.X))
    value, _ = Hinge(part, gain)(scores)
    expected = sum(slow(r, s, gain) for r, s in by_query(part, part.relevance, scores))
    assert value == pytest.approx(expected, rel=1e-12)


def test_the_slope_of_the_hinge_is_that_of_differences(make_lists):
    part = with_levels(make_lists(n_queries=6))
    hinge = Hinge(part, "linear")
    scores = np.random.default_rng(0).normal(size=len(part.X))
    expected = central_differences(lambda s: hinge(s)[0], scores)
    np.testing.assert_allclose(hinge(scores)[1], expected, **DIFFERENCES)


def test_the_hinge_bounds_the_loss(make_lists):
    part = with_levels(make_lists())
    for seed in range(5):
        scores = np.random.default_rng(seed).normal(size=len(part.X))
        loss = 1 - ndcg_by_query(part.relevance, scores, part.group, cuts=(None,), gain="linear")
        assert Hinge(part, "linear")(scores)[0] >= loss.sum()


def test_the_steps_of_the_svm_reach_the_minimum(make_lists):
    train, l2 = make_lists(), 1.0
    part = with_levels(train)
    hinge = Hinge(part, "linear")

    def objective(weights):
        return hinge(part.X.astype(np.float64) @ weights)[0] + l2 * weights @ weights

    few, many = (weights_of("StructuredSVM", train, l2=l2, steps=n) for n in (300, 10_000))
    assert objective(few) < objective(np.zeros(4))
    assert objective(few) == pytest.approx(objective(many), rel=1e-3)
    # Convex: nothing near is lower than where many steps lead.
    random = np.random.default_rng(0)
    for _ in range(50):
        assert objective(many + 0.05 * random.normal(size=4)) > objective(many) - 1e-3


def test_bad_settings_are_named(make_lists):
    for name, settings, message in (
        ("Regression", {"l2": -1}, "l2 is -1: it must be 0 or more"),
        ("StructuredSVM", {"l2": 0}, "l2 is 0: it must be above 0"),
        ("StructuredSVM", {"gain": "cubic"}, "gain is 'cubic'"),
    ):
        with pytest.raises(ValueError, match=message):
            weights_of(name, make_lists(), **settings)
