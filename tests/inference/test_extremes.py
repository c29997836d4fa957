"""Sizes and ranges at the edge of what users bring: ordinary inputs all the same."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np
import pytest

from crfx import inference
from crfx.testing import assert_same, make_problem

FLOAT32 = {"rtol": 2e-4, "atol": 2e-5}


def both_widths(problem, tolerance=FLOAT32):
    """The result in float32, which must agree with float64."""
    wide = {k: v.astype(np.float64) if k in ("node", "edge") else v for k, v in problem.items()}
    sums, expected = (inference.sum_product(**p, curvature="mixing") for p in (problem, wide))
    assert_same(sums, expected, **tolerance)
    return sums


def random_scores(rows, n_labels, scale=1.0):
    random = np.random.default_rng(0)
    node = random.normal(scale=scale, size=(rows, n_labels)).astype(np.float32)
    edge = random.normal(scale=scale, size=(n_labels, n_labels)).astype(np.float32)
    return {"node": node, "edge": edge}


@pytest.mark.parametrize("scale", [1e4, 1e30])
@pytest.mark.parametrize("parents", [None, [-1, 0, 0, 1, 1]])
def test_huge_scores_choose_one_labelling(scale, parents):
    scores = random_scores(5, 3, scale)
    sums = inference.sum_product(**scores, offsets=[0, 5], parents=parents, curvature="mixing")
    best = inference.max_product(**scores, offsets=[0, 5], parents=parents)
    np.testing.assert_allclose(sums.log_z, best.scores, rtol=1e-6)
    np.testing.assert_array_equal(sums.node.argmax(axis=1), best.labels)
    np.testing.assert_allclose(sums.node.max(axis=1), 1.0, rtol=1e-6)
    assert np.isfinite(sums.node_gamma).all()


@pytest.mark.parametrize(("n_labels", "offsets"), [(1, [0, 3, 4]), (4, [0, 1, 2, 3])])
def test_one_label_or_one_position(n_labels, offsets):
    scores = random_scores(offsets[-1], n_labels)
    sums = both_widths({**scores, "offsets": offsets})
    if n_labels > 1:
        weights = np.exp(scores["node"].astype(np.float64))
        softmax = weights / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(sums.node, softmax, **FLOAT32)
        np.testing.assert_array_equal(sums.edge, np.zeros((4, 4)))
    else:
        np.testing.assert_array_equal(sums.node, np.ones((4, 1)))
    np.testing.assert_allclose(sums.node_gamma, 2.0, rtol=1e-6)


def test_no_instances_and_empty_instances():
    for offsets in ([0], [0, 0, 0]):
        sums = inference.sum_product(np.zeros((0, 3)), np.zeros((3, 3)), offsets)
        np.testing.assert_array_equal(sums.log_z, np.zeros(len(offsets) - 1))
        assert inference.max_product(np.zeros((0, 3)), None, offsets).labels.shape == (0,)
        assert inference.sample(np.zeros((0, 3)), None, offsets, n=2).shape == (2, 0)
    best = inference.max_product(np.zeros((1, 3)), None, [0, 0, 1], k=2)
    assert [len(labels) for labels in best.labels] == [1, 2]


def test_500_labels():
    both_widths({**random_scores(60, 500), "offsets": [0, 20, 60]})


def test_a_chain_of_a_million_positions():
    rows = 1_000_000
    scores = {**random_scores(rows, 3), "offsets": [0, rows]}
    sums = inference.sum_product(**scores, curvature="mixing")
    np.testing.assert_allclose(sums.node.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(sums.edge.sum(), rows - 1, rtol=1e-6)
    wide = {**scores, "node": scores["node"].astype(float), "edge": scores["edge"].astype(float)}
    expected = inference.sum_product(**wide)
    np.testing.assert_allclose(sums.log_z, expected.log_z, rtol=1e-7)
    np.testing.assert_allclose(sums.node, expected.node, **FLOAT32)
    often = (inference.sample(**scores, n=1)[0][:, None] == np.arange(3)).mean(axis=0)
    np.testing.assert_allclose(often, expected.node.mean(axis=0), atol=0.005)
    # Far from its ends a chain forgets them: a window of it has the same marginals.
    window = slice(500_000, 500_400)
    part = inference.sum_product(scores["node"][window], scores["edge"], [0, 400])
    np.testing.assert_allclose(part.node[150:250], sums.node[window][150:250], **FLOAT32)
    labels = inference.max_product(**scores).labels
    path = scores["node"][np.arange(rows), labels].sum(dtype=np.float64)
    path += scores["edge"][labels[:-1], labels[1:]].sum(dtype=np.float64)
    np.testing.assert_allclose(inference.max_product(**scores).scores, path, rtol=1e-9)


def test_expectation_keeps_its_digits_on_long_chains():
    rows = 100_000
    scores = {**random_scores(rows, 3), "offsets": [0, rows]}
    cost = np.random.default_rng(1).random((rows, 3), dtype=np.float32)
    answer = inference.expectation(**scores, cost=cost)
    wide = {k: v.astype(float) if k in ("node", "edge") else v for k, v in scores.items()}
    expected = inference.expectation(**wide, cost=cost)
    np.testing.assert_allclose(answer.value, expected.value, rtol=1e-7)
    np.testing.assert_allclose(answer.node, expected.node, atol=2e-5)
    # A weight of the table is rounded once, for all positions: what that changes adds up.
    np.testing.assert_allclose(answer.edge, expected.edge, atol=16 * 2.0**-24 * rows)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_threads_it_lacks():
    problem = make_problem(0, lengths=(10,) * 200).arguments()
    expected = inference.sum_product(**problem, n_jobs=2).log_z
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # kills the child, should it wait for ever
        same = np.array_equal(inference.sum_product(**problem, n_jobs=2).log_z, expected)
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_sums_beyond_float32():
    largest = np.array([[0.0, 3e38]], np.float32)
    for copies in (1, 16):
        node, offsets = np.tile(largest, (copies, 1)), np.arange(copies + 1)
        best = inference.max_product(node, None, offsets, start=largest[0])
        np.testing.assert_array_equal(best.labels, 1)
        np.testing.assert_allclose(best.scores, 2 * float(largest[0, 1]))
        assert inference.sum_product(node, None, offsets, start=largest[0]).node[:, 1].all()


@pytest.mark.parametrize("shape", ["star", "path"])
def test_a_tree_of_100_000_nodes(shape):
    rows = 100_000
    parents = np.arange(rows) - 1 if shape == "path" else np.where(np.arange(rows) > 0, 0, -1)
    scores = {**random_scores(rows, 3), "offsets": [0, rows]}
    # The hub's gamma sums 100,000 rates, each rounded in float32.
    tolerance = {"rtol": 5e-3, "atol": 1e-4} if shape == "star" else FLOAT32
    sums = both_widths({**scores, "parents": parents}, tolerance)
    assert (sums.node_gamma <= 2.0 * rows).all()
    if shape == "path":
        chain = inference.sum_product(**scores, curvature="mixing")
        np.testing.assert_allclose(sums.node, chain.node, **FLOAT32)
        np.testing.assert_allclose(sums.edge_gamma, chain.edge_gamma, **FLOAT32)


@pytest.mark.parametrize(
    "structure",
    [
        {"lengths": tuple(range(60)) * 6},
        {"lengths": (9,) * 300, "order": 2},
        {"lengths": (30,) * 100, "shape": "random", "sharing": "typed"},
    ],
)
def test_same_bits_for_any_number_of_threads(structure):
    problem = make_problem(0, n_labels=4, dtype=np.float32, **structure).arguments()
    cost = np.ones_like(problem["node"])
    calls = [(inference.sum_product, {"curvature": c}) for c in ("mixing", "dobrushin", "exact")]
    calls += [(inference.expectation, {"cost": cost}), (inference.max_product, {})]
    for function, options in calls:
        one, two = (function(**problem, **options, n_jobs=jobs) for jobs in (1, 2))
        for field in fields(one):
            np.testing.assert_array_equal(getattr(one, field.name), getattr(two, field.name))
    one, two = (inference.sample(**problem, n=3, seed=1, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)
    one, two = (inference.max_product(**problem, k=3, n_jobs=jobs).labels for jobs in (1, 2))
    for ours, theirs in zip(one, two, strict=True):
        for (labels, score), (same_labels, same_score) in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(labels, same_labels)
            assert score == same_score


def test_many_threads_at_once_get_the_same_answer():
    problem = make_problem(0, lengths=(20,) * 200, dtype=np.float32).arguments()
    expected = inference.sum_product(**problem).node
    with ThreadPoolExecutor(8) as pool:
        for node in pool.map(lambda _: inference.sum_product(**problem).node, range(8)):
            np.testing.assert_array_equal(node, expected)


def test_inference_releases_the_interpreter_lock():
    rows, seen = 300_000, []
    scores = {**random_scores(rows, 20), "offsets": [0, rows]}
    thread = threading.Thread(target=lambda: inference.sum_product(**scores, n_jobs=1))
    thread.start()
    while thread.is_alive():
        seen.append(time.perf_counter())
        time.sleep(0.001)
    thread.join()
    assert len(seen) > 20  # the loop ran while the core did
