"""Objectives over orders: the core, its slow twin and enumeration agree; differences; bounds."""

import itertools

import numpy as np
import pytest

from crfx.objectives.ranking import MOST_SUMMED, OBJECTIVES, RankingObjective
from crfx.structures.ranking import rank_weights
from crfx.testing import central_differences, ranking_reference
from crfx.testing import enumerated_objectives as enumerated
from tests.pairwise import pairwise

EXACT = {"rtol": 1e-9, "atol": 1e-9}
DIFFERENCES = {"rtol": 1e-6, "atol": 1e-7}
SAMPLED = {"rtol": 0.05, "atol": 0.03}
BOUND = 1e-12
"""How far below 0 an eigenvalue may lie by rounding."""
OPTIONS = {
    "kl": {"temperature": 0.3},
    "likelihood": {},
    "loss_augmented": {"loss_weight": 3.0},
    "loss_scaled": {},
    "expected_loss": {},
}


def objective(name, **options):
    return RankingObjective(name, **{**OPTIONS[name], **options})


def query(m, seed=0, levels=3, scale=1.0):
    random = np.random.default_rng([seed, m])
    return scale * random.normal(size=m), random.integers(levels, size=m).astype(np.float64)


def orders(m):
    """(m!, m): the rank of every document, from 0."""
    return np.array(list(itertools.permutations(range(m))))


def losses(gains, cut):
    """Return the losses of all orders; those of true orders are exactly 0."""
    m = len(gains)
    discount = rank_weights(m) * (np.arange(m) < (cut or m))
    ideal = np.sort(gains)[::-1] @ discount
    values = 1.0 - discount[orders(m)] @ gains / ideal if ideal else np.zeros(len(orders(m)))
    return np.where(np.abs(values) < 1e-12, 0.0, values)


def enumerate_orders(asked, scores, gains):
    """Value and gradient in the scores, by the objectives on listed configurations."""
    alpha = rank_weights(len(scores))[orders(len(scores))]
    options = {
        "kl": {"temperature": asked.temperature},
        "likelihood": {"truths": asked.truths},
        "loss_augmented": {"weight": asked.loss_weight, "truths": asked.truths},
    }.get(asked.name, {})
    values = enumerated.OBJECTIVES[asked.name](
        -alpha @ scores, np.maximum(losses(gains, asked.cut), 0.0), **options
    )
    return float(values.value), -values.gradient @ alpha


def of_one(asked, scores, gains, **options):
    return asked.evaluate(scores, gains, [0, len(scores)], **options)


def assert_exact(asked, scores, gains):
    """Check value and gradient of one query against enumeration; return its evaluation."""
    value, gradient = enumerate_orders(asked, scores, gains)
    evaluation = of_one(asked, scores, gains, curvature=True)
    np.testing.assert_allclose(evaluation.value, value, **EXACT, err_msg=f"{len(scores)} documents")
    np.testing.assert_allclose(evaluation.gradient, gradient, **EXACT)
    return evaluation


@pytest.mark.parametrize(
    ("name", "cut", "truths"),
    [(name, cut, "mean") for name in OBJECTIVES for cut in (None, 1, 2, 5)]
    + [("likelihood", None, "sum"), ("likelihood", 2, "sum"), ("loss_augmented", 1, "sum")],
)
def test_three_witnesses_agree(name, cut, truths):
    asked = objective(name, cut=cut, truths=truths)
    for m in range(2, 8):
        scores, gains = query(m, levels=3 if m % 2 else 2, scale=2.0)
        evaluation = assert_exact(asked, scores, gains)
        if m > 6:
            continue  # the twin is slow
        twin = ranking_reference.evaluate(asked, scores, gains)
        np.testing.assert_allclose(twin.value, evaluation.value, **EXACT)
        np.testing.assert_allclose(twin.gradient, evaluation.gradient, **EXACT)
        spread = np.abs(twin.covariance).sum(axis=1)
        np.testing.assert_allclose(evaluation.curvature, spread, **EXACT, err_msg=f"{m} documents")


def slopes_of_slopes(asked, scores, gains):
    """The Hessian by differences of the gradient."""

    def slope(i):
        return lambda f: float(of_one(asked, f, gains).gradient[i])

    return [central_differences(slope(i), scores) for i in range(len(scores))]


@pytest.mark.parametrize(
    ("name", "cut"), [("likelihood", None), ("loss_augmented", 3), ("loss_scaled", None), ("kl", 3)]
)
def test_curvature_dominates_the_hessian(name, cut):
    asked = objective(name, cut=cut)
    assert asked.curvature_kind == "bound"
    for seed in range(5):
        scores, gains = query(5, seed, scale=3.0)
        hessian = ranking_reference.evaluate(asked, scores, gains).covariance
        np.testing.assert_allclose(hessian, slopes_of_slopes(asked, scores, gains), **DIFFERENCES)
        bound = np.diag(of_one(asked, scores, gains, curvature=True).curvature)
        assert np.linalg.eigvalsh(bound - hessian).min() > -BOUND
        # The diagonal alone would not do, nor would any bound that is much smaller.
        assert np.linalg.eigvalsh(np.diag(np.diag(hessian)) - hessian).min() < -1e-6


@pytest.mark.parametrize("cut", [None, 3])
def test_the_curvature_of_expected_loss_is_a_scale(cut):
    """The model's curvature times the standard deviation of its loss."""
    scores, gains = query(6)
    asked = objective("expected_loss", cut=cut)
    assert asked.curvature_kind == "none"
    curvature = of_one(asked, scores, gains, curvature=True).curvature
    model = of_one(objective("likelihood"), scores, gains, curvature=True).curvature
    weights = np.exp(rank_weights(6)[orders(6)] @ scores)
    deviation = np.sqrt(np.cov(losses(gains, cut), aweights=weights, ddof=0))
    np.testing.assert_allclose(curvature, model * deviation, **EXACT)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_many_queries_are_those_queries_one_by_one(name):
    asked = objective(name, cut=4)
    random = np.random.default_rng(0)
    sizes = random.integers(0, 8, size=60)
    sizes[7:30] = 6  # more than a bundle
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores = random.normal(size=offsets[-1])
    gains = random.integers(3, size=offsets[-1]).astype(float)
    evaluation = asked.evaluate(scores, gains, offsets, curvature=True, n_jobs=1)
    threads = asked.evaluate(scores, gains, offsets, curvature=True, n_jobs=2)
    for name in ("value", "gradient", "curvature"):
        np.testing.assert_array_equal(getattr(evaluation, name), getattr(threads, name))
    for number, (begin, end) in enumerate(itertools.pairwise(offsets)):
        alone = of_one(asked, scores[begin:end], gains[begin:end], curvature=True)
        assert evaluation.value[number] == alone.value[0]
        np.testing.assert_array_equal(evaluation.gradient[begin:end], alone.gradient)
        np.testing.assert_array_equal(evaluation.curvature[begin:end], alone.curvature)
    assert not evaluation.effective.any()


@pytest.mark.parametrize(
    ("name", "cut", "scale"), pairwise(list(OBJECTIVES), [None, 2], [1e2, 1e4])
)
def test_large_scores(name, cut, scale):
    asked = objective(name, cut=cut)
    for seed in range(5):
        scores, gains = query(6, seed, scale=scale)
        assert np.isfinite(assert_exact(asked, scores, gains).curvature).all()


@pytest.mark.parametrize("name", ["likelihood", "loss_augmented", "kl", "expected_loss"])
def test_as_many_documents_as_can_be_summed(name):
    """Sums of 16! orders: by differences, and by documents that count for nothing."""
    asked = objective(name, cut=5)
    scores, gains = query(MOST_SUMMED, seed=1)
    evaluation = of_one(asked, scores, gains, curvature=True)
    assert evaluation.effective[0] == 0
    # Orders ignore constants.
    np.testing.assert_allclose(evaluation.gradient.sum(), 0.0, atol=1e-10)
    step = 1e-5 * np.eye(MOST_SUMMED)[3]
    above, below = (of_one(asked, scores + sign * step, gains).value[0] for sign in (1, -1))
    np.testing.assert_allclose(evaluation.gradient[3], (above - below) / 2e-5, **DIFFERENCES)


def test_every_gain_may_differ():
    asked = objective("kl", temperature=0.1)
    scores, _ = query(7)
    gains = np.arange(7.0) ** 1.5
    assert_exact(asked, scores, gains)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_query_of_one_level_is_legal(name):
    scores = np.array([0.3, -0.2, 1.0])
    for gains in (np.zeros(3), np.ones(3)):
        assert_exact(objective(name), scores, gains)


# Limits.


@pytest.mark.parametrize("temperature", [1e-4, 1e-9, 1e-300])
def test_cold_kl_is_the_mean_likelihood(temperature):
    for cut, seed in itertools.product((None, 3), range(5)):
        scores, gains = query(6, seed)
        cold = of_one(objective("kl", temperature=temperature, cut=cut), scores, gains)
        mean = of_one(objective("likelihood", cut=cut), scores, gains)
        total = of_one(objective("likelihood", cut=cut, truths="sum"), scores, gains)
        np.testing.assert_allclose(cold.gradient, mean.gradient, **EXACT)
        n_truths = total.value / mean.value
        np.testing.assert_allclose(cold.value, mean.value - np.log(n_truths), **EXACT)


# Samples.


@pytest.mark.parametrize("cut", [None, 3])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_samples_come_near_the_sums(name, cut):
    asked = objective(name, cut=cut, n_samples=40_000)
    scores, gains = query(7, seed=5)
    evaluation = of_one(asked, scores, gains, curvature=True, seed=1, sample_all=True)
    exact = of_one(asked, scores, gains, curvature=True)
    for which in ("value", "gradient", "curvature"):
        np.testing.assert_allclose(getattr(evaluation, which), getattr(exact, which), **SAMPLED)
    assert 1000 < evaluation.effective[0] <= asked.n_samples
    assert exact.effective[0] == 0


@pytest.mark.parametrize("name", OBJECTIVES)
def test_large_queries_are_sampled(name):
    asked = objective(name, cut=5, n_samples=200)
    m = asked.most_exact + 1
    scores, gains = query(m, seed=5)
    evaluation = of_one(asked, scores, gains, curvature=True, seed=1)
    assert 10 < evaluation.effective[0] <= 200
    np.testing.assert_allclose(evaluation.gradient.sum(), 0.0, atol=1e-10)
    again = of_one(asked, scores, gains, curvature=True, seed=1)
    np.testing.assert_array_equal(evaluation.gradient, again.gradient)
    other = of_one(asked, scores, gains, seed=2)
    assert not np.array_equal(evaluation.gradient, other.gradient)


def test_a_target_with_too_many_gains_is_sampled():
    random = np.random.default_rng(0)
    scores, gains = random.normal(size=18), np.arange(18.0)
    asked = objective("kl", n_samples=20_000)
    evaluation = of_one(asked, scores, gains)
    nearly = np.repeat(np.arange(6.0), 3) * 3 + 1  # six levels: summed by counts
    near = of_one(asked, scores, nearly)
    np.testing.assert_allclose(evaluation.gradient, near.gradient, atol=0.1)
    assert evaluation.effective[0] > 100


def test_large_scores_can_be_sampled():
    asked = objective("likelihood", n_samples=100)
    scores, gains = query(20, scale=1e4)
    evaluation = of_one(asked, scores, gains, curvature=True)
    assert np.isfinite(evaluation.value).all()
    mean = np.empty(20)
    mean[np.argsort(-scores)] = rank_weights(20)
    truth = evaluation.gradient - mean  # the model is certain of its order
    np.testing.assert_allclose(truth.sum(), -rank_weights(20).sum(), rtol=1e-9)
    assert evaluation.effective[0] > 10


# Bad input.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "margin"}, "objective is 'margin': choose one of 'kl', "),
        ({"temperature": float("nan")}, "temperature is nan: it must be above 0"),
        ({"loss_weight": 1e10}, r"loss_weight is 10000000000.0: .* at most 1e\+09"),
        ({"truths": "max"}, "truths is 'max': choose 'mean' or 'sum'"),
        ({"cut": 0}, "cut is 0: it must be 1 or more, or None"),
        ({"n_samples": 0}, "n_samples is 0: it must be 1 or more"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        RankingObjective(**options)


@pytest.mark.parametrize(
    ("scores", "gains", "message"),
    [
        ([0.0, np.nan, 1.0], [0.0, 1.0, 2.0], "query 0, document 1: scores hold nan"),
        ([0.0, 1.0, 1.0], [0.0, 1.0, np.inf], "query 1, document 0: gains hold inf"),
        ([0.0, 1.0, 1.0], [0.0, -1.0, 0.0], "query 0, document 1: its gain is below 0"),
        ([0.0, 1.0], [0.0, 1.0, 0.0], "pass one per document, 3 in all"),
        ([0.0, 1.0, 2e9], [0.0, 1.0, 0.0], r"query 1, document 0: its score is beyond 1e\+09"),
        (np.zeros(161), np.zeros(161), "query 0: it has 161 documents: at most 160"),
    ],
)
def test_bad_numbers(scores, gains, message):
    with pytest.raises(ValueError, match=message):
        RankingObjective().evaluate(scores, gains, [0, 161] if len(scores) > 3 else [0, 2, 3])
