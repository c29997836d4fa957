"""The NumPy reference by itself; `test_witnesses.py` and `test_laws.py` compare it with others."""

import re
from pathlib import Path

import numpy as np
import pytest

import crfx
from crfx.inference import reference
from crfx.testing import assert_best, assert_same, enumeration, make_problem

EXACT = {"rtol": 1e-9, "atol": 1e-9}
"""Two float64 computations of the same number, scores up to about a hundred."""


def test_samples_follow_the_seed():
    arguments = make_problem(4).arguments()
    first, again, other = (reference.sample(**arguments, n=50, seed=s) for s in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    assert reference.sample(**arguments, n=0, seed=1).shape == (0, 4)


def test_ties_go_to_the_smaller_labels():
    best = reference.max_product(np.zeros((3, 2)), np.zeros((2, 2)), [0, 3], k=3)
    assert [y.tolist() for y, _ in best.labels[0]] == [[0, 0, 0], [0, 0, 1], [0, 1, 0]]


# Ordinary inputs that break careless code.


@pytest.mark.parametrize(("shape", "dtype"), [("chain", np.float32), ("star", np.float64)])
def test_scores_of_ten_thousand(shape, dtype):
    problem = make_problem(51, shape=shape, scale=1e4, dtype=dtype)
    arguments = problem.arguments()
    sums = reference.sum_product(**arguments, curvature="exact")
    assert_same(sums, enumeration.sum_product(**arguments, curvature="exact"), **EXACT)
    assert_best(reference.max_product(**arguments, k=3), k=3, **arguments, **EXACT)


def test_ignored_edge_tables_may_hold_nan():
    problem = make_problem(61, lengths=(3, 4), order=2, sharing="each")
    edge = problem.edge.copy()
    edge[[0, 1, 3, 4]] = np.nan
    sums = reference.sum_product(**problem.with_arrays(edge=edge).arguments())
    assert_same(sums, reference.sum_product(**problem.arguments()), rtol=0.0, atol=0.0)


@pytest.mark.parametrize("lengths", [(), (0,), (0, 0)])
def test_empty_instances(lengths):
    arguments = make_problem(71, lengths=lengths).arguments()
    sums = reference.sum_product(**arguments, curvature="mixing")
    assert sums.log_z.tolist() == [0.0] * len(lengths)
    assert sums.node.shape == (0, 3)
    assert reference.max_product(**arguments).labels.shape == (0,)
    pairs = reference.max_product(**arguments, k=2).labels
    assert [(len(best), best[0][1]) for best in pairs] == [(1, 0.0)] * len(lengths)


# Errors.

NODE, EDGE, OFFSETS = np.zeros((3, 2)), np.zeros((2, 2)), [0, 1, 3]
FORBIDDEN = np.where(np.arange(3)[:, None] == 2, -np.inf, NODE)
CALLS = {
    "sum_product": {},
    "max_product": {},
    "sample": {"n": 1, "seed": 0},
    "expectation": {"cost": np.zeros((3, 2))},
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node": np.where(FORBIDDEN < 0, np.nan, NODE)}, "instance 1, position 1.*nan"),
        ({"node": np.where(FORBIDDEN < 0, np.inf, NODE)}, "instance 1, position 1.*inf"),
        ({"edge": np.full((2, 2), np.nan)}, r"edge\[0, 0\] is nan"),
        ({"node": FORBIDDEN}, "instance 1: .*no allowed labelling"),
        ({"parents": [-1, 1, 0]}, "instance 1, position [01]: .*ancestor"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_input_raises_in_every_function(changes, message):
    for name, more in CALLS.items():
        arguments = {"node": NODE, "edge": EDGE, "offsets": OFFSETS, **more, **changes}
        with pytest.raises(ValueError, match=message):
            getattr(reference, name)(**arguments)


def test_bad_options_raise():
    for name, changes, message in (
        ("sum_product", {"edge_marginals": "all"}, "edge_marginals must be one of"),
        ("sum_product", {"curvature": "exactly"}, "curvature must be one of"),
        ("max_product", {"k": 0}, "k must be 1 or more"),
        ("sample", {"n": -1}, "n must be 0 or more"),
        ("expectation", {"cost": np.zeros((3, 3))}, r"cost has shape \(3, 3\)"),
        ("expectation", {"cost": FORBIDDEN}, "instance 1, position 1: the cost of label 0"),
    ):
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


def test_an_import_of_the_reference_is_seen(tmp_path):
    for line in (
        "from crfx.inference import reference",
        "from crfx.inference.reference_recursions import k_best",
        "def f():\n    import crfx.inference.reference",
    ):
        (tmp_path / "model.py").write_text(line)
        assert importers(tmp_path) == ["model.py"]
