"""The compiled core and its twin, the NumPy reference, against enumeration (tiny problems); the
core against the reference (medium ones).
"""

import numpy as np
import pytest
from hypothesis import given, settings

from crfx import inference
from crfx.inference import reference
from crfx.testing import assert_best, assert_same, enumeration, make_problem, problems
from tests.pairwise import pairwise

TOLERANCE = {
    np.dtype(np.float64): {"rtol": 1e-8, "atol": 1e-9},
    np.dtype(np.float32): {"rtol": 3e-4, "atol": 3e-5},
}
"""Scores up to about a hundred: float32 keeps seven digits of one, so four of its exponential."""

SMALL = {"max_examples": 3 * settings().max_examples, "deadline": None}
MODULES = {"core": inference, "twin": reference}
STRUCTURES = {
    "chain": {"lengths": (30, 1, 0, 12, 25)},
    "bundles of chains": {"lengths": tuple(range(40))},
    "order 2": {"order": 2, "lengths": (9, 2, 12), "n_labels": 4},
    "order 3": {"order": 3, "lengths": (3, 8), "n_labels": 3},
    "path": {"shape": "path", "lengths": (20, 7)},
    "star": {"shape": "star", "lengths": (20, 7)},
    "forest": {"shape": "random", "lengths": (25, 3, 30)},
}


def tolerance(problem, module="core"):
    """Return how far results may be off; the reference computes in float64 whatever it gets."""
    return TOLERANCE[problem.node.dtype if module == "core" else np.dtype(np.float64)]


GAPS = (0.0, 20.0, 45.0, 90.0, 350.0, 450.0, 800.0)
"""Around the limits of float32 and float64, and around those of products of two."""


@settings(**SMALL)
@given(problems(gaps=GAPS))
def test_sums_against_enumeration_across_gaps(problem):
    sums = inference.sum_product(**problem.arguments())
    expected = enumeration.sum_product(**problem.arguments())
    assert_same(sums, expected, **tolerance(problem))
    cost = np.random.default_rng(0).normal(size=problem.node.shape)
    assert_same(
        inference.expectation(**problem.arguments(), cost=cost),
        enumeration.expectation(**problem.arguments(), cost=cost),
        **tolerance(problem),
    )


@pytest.mark.parametrize(
    ("dtype_and_bundles", "gap", "shape", "scale", "forbid"),
    pairwise(
        [(np.float32, 0), (np.float32, 16), (np.float64, 0), (np.float64, 16)],
        list(GAPS),
        ["chain", "star", "random"],
        [1.0, 15.0, 25.0],
        [0.0, 0.3],
    ),
)
def test_sums_against_the_reference_across_gaps(dtype_and_bundles, gap, shape, scale, forbid):
    """Long enough for what was lost on one side to matter on the other."""
    dtype, n_more = dtype_and_bundles
    for seed in range(2):
        problem = make_problem(
            seed,
            lengths=(12, 40) + (5,) * n_more,
            shape=shape,
            scale=scale,
            gap=gap,
            forbid=forbid,
            dtype=dtype,
        )
        sums = inference.sum_product(**problem.arguments())
        assert_same(sums, reference.sum_product(**problem.arguments()), **tolerance(problem))
        draws = inference.sample(**problem.arguments(), n=400)
        shares = (draws[:, :, None] == np.arange(3)).mean(axis=0)
        np.testing.assert_allclose(shares, sums.node, atol=0.15)  # six standard deviations


@pytest.mark.parametrize("copies", [1, 16])
@pytest.mark.parametrize(
    ("dtype", "gap", "n"), [(np.float32, 90.0, 200), (np.float64, 800.0, 2000)]
)
def test_labels_improbable_at_ends_may_win_between(copies, dtype, gap, n):
    """Label 1 costs `gap` at both ends and label 0 costs 1 a step: 1 wins, beyond any range."""
    node = np.zeros((n, 2), dtype)
    node[[0, -1], 1] = -gap
    edge = np.array([[-1.0, -np.inf], [-np.inf, 0.0]], dtype)
    problem = {"node": np.tile(node, (copies, 1)), "edge": edge}
    problem["offsets"] = np.arange(copies + 1) * n
    sums = inference.sum_product(**problem)
    np.testing.assert_allclose(sums.log_z, -2 * gap, rtol=1e-6)
    np.testing.assert_allclose(sums.node[:, 1], 1.0, atol=1e-6)
    assert inference.sample(**problem, n=3).all()
    np.testing.assert_array_equal(inference.max_product(**problem).labels, 1)


@pytest.mark.parametrize("module", MODULES)
@settings(**SMALL)
@given(problems())
def test_sums_against_enumeration(module, problem):
    for edge_marginals in ("sum", "each", None):
        options = {"edge_marginals": edge_marginals, "curvature": "exact"}
        sums = MODULES[module].sum_product(**problem.arguments(), **options)
        expected = enumeration.sum_product(**problem.arguments(), **options)
        assert_same(sums, expected, **tolerance(problem, module))


@pytest.mark.parametrize("module", MODULES)
@settings(**SMALL)
@given(problems())
def test_best_and_k_best_against_enumeration(module, problem):
    for k in (1, 2, 7, 1000):
        best = MODULES[module].max_product(**problem.arguments(), k=k)
        assert_best(best, k=k, **problem.arguments(), **tolerance(problem, module))


@pytest.mark.parametrize("module", MODULES)
@settings(**SMALL)
@given(problems())
def test_expectation_against_enumeration(module, problem):
    cost = np.random.default_rng(0).normal(size=problem.node.shape)
    for edge_marginals in ("sum", "each", None):
        options = {"cost": cost, "edge_marginals": edge_marginals}
        answer = MODULES[module].expectation(**problem.arguments(), **options)
        expected = enumeration.expectation(**problem.arguments(), **options)
        assert_same(answer, expected, **tolerance(problem, module))


@pytest.mark.parametrize(
    ("structure", "sharing", "dtype"),
    pairwise(list(STRUCTURES), ["none", "shared", "typed", "each"], [np.float32, np.float64]),
)
def test_sums_against_the_reference(structure, sharing, dtype):
    options = {"n_labels": 5, "sharing": sharing, "dtype": dtype, "forbid": 0.1}
    problem = make_problem(1, **options | STRUCTURES[structure])
    for curvature in (None, "mixing", "length") + (("dobrushin",) if sharing == "each" else ()):
        sums = inference.sum_product(**problem.arguments(), curvature=curvature)
        expected = reference.sum_product(**problem.arguments(), curvature=curvature)
        assert_same(sums, expected, **tolerance(problem))


@pytest.mark.parametrize("structure", STRUCTURES)
def test_decoding_and_expectation_against_the_reference(structure):
    problem = make_problem(2, **STRUCTURES[structure] | {"n_labels": 5})
    best, expected = (
        module.max_product(**problem.arguments(), k=5) for module in (inference, reference)
    )
    for ours, theirs in zip(best.labels, expected.labels, strict=True):
        np.testing.assert_allclose(
            [score for _, score in ours], [score for _, score in theirs], rtol=1e-10, atol=1e-10
        )
    cost = np.random.default_rng(0).normal(size=problem.node.shape)
    best, expected = (
        module.expectation(**problem.arguments(), cost=cost) for module in (inference, reference)
    )
    assert_same(best, expected, **tolerance(problem))


@pytest.mark.parametrize("shape", ["chain", "star", "random"])
@pytest.mark.parametrize(("dtype", "scale"), [(np.float64, 1e4), (np.float32, 60.0)])
def test_wide_scores_against_the_reference(dtype, scale, shape):
    """Gaps far beyond the range of float32, which are redone in log space."""
    for seed in range(20):
        options = {"scale": scale, "forbid": 0.2, "dtype": dtype}
        problem = make_problem(seed, lengths=(6, 3, 1), shape=shape, **options)
        sums = inference.sum_product(**problem.arguments())
        assert_same(sums, reference.sum_product(**problem.arguments()), **tolerance(problem))
        best, expected = (
            module.max_product(**problem.arguments()).scores for module in (inference, reference)
        )
        np.testing.assert_allclose(best, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize(
    "structure",
    [
        {"order": 1},
        {"order": 2, "lengths": (4, 1)},
        {"order": 3, "lengths": (2, 5), "n_labels": 2},
        {"shape": "star", "forbid": 0.3},
        {"shape": "random", "lengths": (5,)},
        {"sharing": "none", "lengths": (2, 2)},
        {"order": 1, "scale": 40.0, "dtype": np.float32},
    ],
)
def test_samples_come_as_often_as_they_should(structure, module):
    problem = make_problem(3, **structure)
    assert_frequencies(MODULES[module].sample(**problem.arguments(), n=20_000, seed=5), problem)


def assert_frequencies(samples, problem):
    """Every labelling within five standard deviations; the rarest may come a few times."""
    draws = len(samples)
    for instance in enumeration.enumerate_instances(**problem.arguments()):
        rows = slice(instance.first_row, instance.first_row + instance.labels.shape[1])
        drawn, counts = np.unique(samples[:, rows], axis=0, return_counts=True)
        seen = {tuple(labels): count for labels, count in zip(drawn.tolist(), counts, strict=True)}
        for labels, p in zip(instance.labels.tolist(), instance.probabilities, strict=True):
            deviation = np.sqrt(draws * p * (1.0 - p))
            assert abs(seen.pop(tuple(labels), 0) - draws * p) <= 5.0 * deviation + 3.0
        assert not seen, "a forbidden labelling was drawn"


def test_a_wrong_answer_is_noticed():
    """The companion: each comparison above fails when the core is asked something else."""
    problem = make_problem(4, lengths=(4, 3))
    arguments, other = problem.arguments(), problem.arguments()
    other["edge"] = problem.edge.T.copy()
    limits = tolerance(problem)
    with pytest.raises(AssertionError):
        assert_frequencies(inference.sample(**other, n=20_000, seed=5), problem)
    expected = enumeration.sum_product(**arguments, curvature="exact")
    with pytest.raises(AssertionError, match="log_z"):
        assert_same(inference.sum_product(**other, curvature="exact"), expected, **limits)
    with pytest.raises(AssertionError):
        assert_best(inference.max_product(**other, k=3), k=3, **arguments, **limits)
    cost = np.ones_like(problem.node) * np.arange(3)
    with pytest.raises(AssertionError, match="value"):
        assert_same(
            inference.expectation(**other, cost=cost),
            enumeration.expectation(**arguments, cost=cost),
            **limits,
        )
