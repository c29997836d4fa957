"""The NumPy reference against enumeration, and the laws that both must obey."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import crfx
from crfx.batch import Batch
from crfx.inference import reference
from crfx.inference.problem import prepare
from crfx.scores import Scores
from crfx.structures import Chain
from crfx.testing import (
    assert_best,
    assert_same,
    central_differences,
    enumerate_instances,
    enumeration,
    make_problem,
    problems,
)

EXACT = {"rtol": 1e-9, "atol": 1e-9}
"""Two float64 computations of the same number, scores up to about a hundred."""

DIFFERENCES = {"rtol": 1e-5, "atol": 1e-7}
"""Central differences with a step of 1e-5, scores of order one."""

SMALL = {"max_examples": 200, "deadline": None}


# Against enumeration.


@settings(**SMALL)
@given(problems())
def test_sums_marginals_and_exact_gammas(problem):
    for edge_marginals in ("sum", "each", None):
        options = {"edge_marginals": edge_marginals, "curvature": "exact"}
        found = reference.sum_product(**problem.arguments(), **options)
        expected = enumeration.sum_product(**problem.arguments(), **options)
        assert_same(found, expected, **EXACT)


@settings(**SMALL)
@given(problems())
def test_best_and_k_best(problem):
    for k in (1, 2, 7, 1000):
        found = reference.max_product(**problem.arguments(), k=k)
        assert_best(found, k=k, **problem.arguments(), **EXACT)


@settings(**SMALL)
@given(problems())
def test_expected_cost_and_its_gradient(problem):
    cost = np.random.default_rng(0).normal(size=problem.node.shape)
    for edge_marginals in ("sum", "each", None):
        options = {"cost": cost, "edge_marginals": edge_marginals}
        found = reference.expectation(**problem.arguments(), **options)
        assert_same(found, enumeration.expectation(**problem.arguments(), **options), **EXACT)


@pytest.mark.parametrize(
    "settings_",
    [
        {"order": 1},
        {"order": 2, "lengths": (4, 1)},
        {"order": 3, "lengths": (2, 5), "n_labels": 2},
        {"shape": "star", "forbid": 0.3},
        {"shape": "random", "lengths": (5,)},
        {"sharing": "none", "lengths": (2, 2)},
    ],
)
def test_samples_come_as_often_as_they_should(settings_):
    n, problem = 20_000, make_problem(3, **settings_)
    labels = reference.sample(**problem.arguments(), n=n, seed=1)
    assert labels.shape == (n, len(problem.node))
    for instance in enumerate_instances(**problem.arguments()):
        columns = labels[:, instance.first_row :][:, : instance.labels.shape[1]]
        powers = instance.n_labels ** np.arange(columns.shape[1])[::-1]
        counts = np.bincount(columns @ powers, minlength=len(instance.labels))
        p = instance.probabilities
        five_deviations = 5 * np.sqrt(n * p * (1 - p)) + 1
        assert (np.abs(counts - n * p) <= five_deviations).all()
        assert (counts[np.isneginf(instance.scores)] == 0).all()


def test_samples_follow_the_seed():
    arguments = make_problem(4).arguments()
    first, again, other = (reference.sample(**arguments, n=50, seed=s) for s in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    assert reference.sample(**arguments, n=0, seed=1).shape == (0, 4)


# Laws.


@pytest.mark.parametrize(
    "settings_",
    [
        {"lengths": (3, 2)},
        {"lengths": (4,), "order": 2, "sharing": "typed"},
        {"lengths": (5,), "order": 3, "n_labels": 2, "sharing": "each"},
        {"lengths": (5,), "shape": "random", "sharing": "typed"},
        {"lengths": (4,), "forbid": 0.3},
    ],
)
@pytest.mark.parametrize("name", ["node", "edge", "start"])
def test_marginals_and_covariances_are_gradients(settings_, name):
    problem = make_problem(21, **settings_)
    each = "each" if settings_.get("sharing") == "each" else "sum"
    arguments, cost = problem.arguments(), np.sin(np.arange(problem.node.size))
    cost = cost.reshape(problem.node.shape)

    def log_z(table):
        return reference.sum_product(**{**arguments, name: table}).log_z.sum()

    def value(table):
        return reference.expectation(**{**arguments, name: table}, cost=cost).value.sum()

    found = reference.sum_product(**arguments, edge_marginals=each)
    costs = reference.expectation(**arguments, cost=cost, edge_marginals=each)
    checked = prepare(**arguments)
    roots = checked.structure.root_rows(checked.batch)
    for function, record in ((log_z, found), (value, costs)):
        gradient = record.node[roots].sum(axis=0) if name == "start" else getattr(record, name)
        differences = central_differences(function, arguments[name])
        np.testing.assert_allclose(gradient, differences, **DIFFERENCES)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_equal_scores_count_the_labellings(order):
    lengths, k = np.array([0, 1, 2, 7, 20]), 4
    found = reference.sum_product(
        np.zeros((30, k)),
        np.zeros((k,) * (order + 1)),
        np.concatenate([[0], np.cumsum(lengths)]),
        order=order,
    )
    np.testing.assert_allclose(found.log_z, lengths * np.log(k), **EXACT)
    np.testing.assert_allclose(found.node, 1 / k, **EXACT)


@pytest.mark.parametrize("curvature", ["exact", "dobrushin", "mixing", "length"])
def test_a_chain_given_as_a_forest_gives_the_same_answers(curvature):
    chain = make_problem(31, lengths=(12, 0, 1), n_labels=4, ends=False, forbid=0.2).arguments()
    parents = np.concatenate([np.arange(12) - 1, [-1]])
    options = {"edge_marginals": "each", "curvature": curvature}
    forest = reference.sum_product(**{**chain, "parents": parents}, **options)
    assert_same(forest, reference.sum_product(**chain, **options), **EXACT)
    for k in (1, 5):
        best = [reference.max_product(**{**chain, "parents": p}, k=k) for p in (None, parents)]
        np.testing.assert_allclose(best[0].scores, best[1].scores, **EXACT)


def test_an_order_two_table_that_ignores_its_oldest_label_is_an_order_one_table():
    random = np.random.default_rng(0)
    node, table, offsets = random.normal(size=(30, 5)), random.normal(size=(5, 5)), [0, 30]
    tables = np.broadcast_to(table, (30, 5, 5)).copy()
    tables[1] = 0.0  # of order 2 there is no table before position 2
    first = reference.sum_product(node, tables, offsets, edge_marginals=None)
    wide = np.broadcast_to(table, (5, 5, 5))
    second = reference.sum_product(node, wide, offsets, order=2, edge_marginals=None)
    assert_same(second, first, **EXACT)


def test_the_best_labelling_scores_what_is_said():
    problem = make_problem(41, lengths=(30, 12), n_labels=5, order=2, forbid=0.2)
    found = reference.max_product(**problem.arguments())
    scores = Scores(problem.node, problem.edge, problem.start, problem.end)
    really = Chain(2).score(Batch(problem.offsets), scores, found.labels)
    np.testing.assert_allclose(found.scores, really, **EXACT)
    assert found.labels.dtype == np.int32


def test_ties_go_to_the_smaller_labels():
    found = reference.max_product(np.zeros((3, 2)), np.zeros((2, 2)), [0, 3], k=3)
    assert [y.tolist() for y, _ in found.labels[0]] == [[0, 0, 0], [0, 0, 1], [0, 1, 0]]


# Ordinary inputs that break careless code.


@pytest.mark.parametrize("shape", ["chain", "star"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_ten_thousand(shape, dtype):
    problem = make_problem(51, shape=shape, scale=1e4, dtype=dtype)
    arguments = problem.arguments()
    found = reference.sum_product(**arguments, curvature="exact")
    assert_same(found, enumeration.sum_product(**arguments, curvature="exact"), **EXACT)
    assert_best(reference.max_product(**arguments, k=3), k=3, **arguments, **EXACT)


def test_what_is_ignored_may_hold_anything():
    problem = make_problem(61, lengths=(3, 4), order=2, sharing="each")
    edge = problem.edge.copy()
    edge[[0, 1, 3, 4]] = np.nan
    found = reference.sum_product(**problem.with_arrays(edge=edge).arguments())
    assert_same(found, reference.sum_product(**problem.arguments()), rtol=0.0, atol=0.0)


@pytest.mark.parametrize("lengths", [(), (0,), (0, 0)])
def test_nothing_to_label(lengths):
    arguments = make_problem(71, lengths=lengths).arguments()
    found = reference.sum_product(**arguments, curvature="mixing")
    assert found.log_z.tolist() == [0.0] * len(lengths)
    assert found.node.shape == (0, 3)
    assert reference.max_product(**arguments).labels.shape == (0,)
    pairs = reference.max_product(**arguments, k=2).labels
    assert [(len(best), best[0][1]) for best in pairs] == [(1, 0.0)] * len(lengths)


def test_one_label():
    problem = make_problem(81, lengths=(4,), n_labels=1)
    found = reference.sum_product(**problem.arguments(), curvature="mixing")
    assert (found.node == 1.0).all()
    assert (found.node_gamma == 2.0).all()


# Errors.

NODE, EDGE, OFFSETS = np.zeros((3, 2)), np.zeros((2, 2)), [0, 1, 3]
FORBIDDEN = np.where(np.arange(3)[:, None] == 2, -np.inf, NODE)
CALLS = {
    "sum_product": {},
    "max_product": {},
    "sample": {"n": 1, "seed": 0},
    "expectation": {"cost": np.zeros((3, 2))},
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node": np.where(FORBIDDEN < 0, np.nan, NODE)}, "instance 1, position 1.*nan"),
        ({"node": np.where(FORBIDDEN < 0, np.inf, NODE)}, "instance 1, position 1.*inf"),
        ({"edge": np.full((2, 2), np.nan)}, r"edge\[0, 0\] is nan"),
        ({"node": FORBIDDEN}, "instance 1: .*no allowed labelling"),
        ({"parents": [-1, 1, 0]}, "instance 1, position [01]: .*ancestor"),
        ({"parents": [-1, 5, -1]}, "instance 1, position 0: parent 5"),
        ({"offsets": [0, 4]}, "must add up"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_input_is_named(name, changes, message):
    arguments = {"node": NODE, "edge": EDGE, "offsets": OFFSETS, **CALLS[name], **changes}
    with pytest.raises(ValueError, match=message):
        getattr(reference, name)(**arguments)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("sum_product", {"edge_marginals": "all"}, "edge_marginals must be one of"),
        ("sum_product", {"curvature": "exactly"}, "curvature must be one of"),
        ("max_product", {"k": 0}, "k must be 1 or more"),
        ("sample", {"n": -1}, "n must be 0 or more"),
        ("expectation", {"cost": np.zeros((3, 3))}, r"cost has shape \(3, 3\)"),
        ("expectation", {"cost": FORBIDDEN}, "instance 1, position 1: the cost of label 0"),
    ],
)
def test_bad_options_are_refused(name, changes, message):
    arguments = {"node": NODE, "edge": EDGE, "offsets": OFFSETS, **CALLS[name], **changes}
    with pytest.raises(ValueError, match=message):
        getattr(reference, name)(**arguments)


# The reference is a witness: nothing in the library may run on it.


def importers(source):
    """Files that import the reference, itself and `testing` aside."""
    imports = re.compile(r"^\s*(?:from|import) .*\breference\w*", re.MULTILINE)
    return [
        path.name
        for path in sorted(source.rglob("*.py"))
        if path.parent.name != "testing"
        and not path.name.startswith("reference")
        and imports.search(path.read_text(encoding="utf-8"))
    ]


def test_the_library_does_not_import_the_reference():
    assert importers(Path(crfx.__file__).parent) == []


@pytest.mark.parametrize(
    "line",
    [
        "from crfx.inference import reference",
        "from crfx.inference.reference_recursions import k_best",
        "def f():\n    import crfx.inference.reference",
    ],
)
def test_an_import_of_the_reference_is_seen(tmp_path, line):
    (tmp_path / "model.py").write_text(line)
    assert importers(tmp_path) == ["model.py"]
