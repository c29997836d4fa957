"""`crfx.inference` on scores that it must refuse, beyond tests/inference/test_bad_input.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from crfx import inference
from listed.case import Case, Subject

AREA = "crfx.inference"
NODE, EDGE, OFFSETS = np.zeros((5, 3)), np.zeros((3, 3)), [0, 2, 5]
INF, NAN = np.inf, np.nan
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum_product": inference.sum_product,
    "max_product": inference.max_product,
    "k best": lambda **own: inference.max_product(**own, k=3),
    "sample": inference.sample,
    "expectation": lambda **own: inference.expectation(**own, cost=np.zeros((5, 3))),
}


def at(array: Any, index: Any, value: Any) -> Any:
    """A changed copy."""
    changed = array.copy()
    changed[index] = value
    return changed


TRIED: dict[str, tuple[dict[str, Any], str]] = {
    "node of None": ({"node": None}, "node"),
    "node of text": ({"node": "abc"}, "node"),
    "node of a number": ({"node": 1.0}, "node"),
    "node of objects": ({"node": NODE.astype(object)}, "node scores have dtype object"),
    "node of complex numbers": ({"node": NODE.astype(complex)}, "node scores have dtype complex"),
    "node of truth values": ({"node": NODE.astype(bool)}, "node scores have dtype bool"),
    "node of three axes": ({"node": NODE[None]}, "node scores have shape"),
    "node all -inf": ({"node": np.full((5, 3), -INF)}, "instance [01]: .*no allowed labelling"),
    "node beyond 1e100": ({"node": at(NODE, (4, 2), 1e200)}, "instance 1, position 2"),
    "node of float128": ({"node": NODE.astype(np.longdouble)}, "node scores have dtype"),
    "node of dates": ({"node": NODE.astype("datetime64[s]")}, "node scores have dtype"),
    "edge of a number": ({"edge": 1.0}, "edge"),
    "edge of text": ({"edge": "abc"}, "edge"),
    "edge of one axis": ({"edge": np.zeros(3)}, "edge"),
    "edge of four axes": ({"edge": np.zeros((5, 3, 3, 3))}, "edge"),
    "edge of objects": ({"edge": EDGE.astype(object)}, "edge scores have dtype"),
    "edge ragged": ({"edge": [[0.0], [0.0, 1.0]]}, "edge"),
    "edge masked": ({"edge": np.ma.masked_greater(EDGE, 1.0)}, "masked array"),
    "edge beyond 1e100": ({"edge": at(EDGE, (0, 1), 1e200)}, r"edge score \[0, 1\]"),
    "start of NaN": ({"start": np.full(3, NAN)}, r"start score \[0\]"),
    "start of +inf": ({"start": [0.0, 0.0, INF]}, r"start score \[2\]"),
    "start all -inf": ({"start": np.full(3, -INF)}, "no allowed labelling"),
    "start of text": ({"start": ["a", "b", "c"]}, "start"),
    "start of a number": ({"start": 1.0}, "start has shape"),
    "start of two axes": ({"start": np.zeros((1, 3))}, "start has shape"),
    "end of NaN": ({"end": [NAN, 0.0, 0.0]}, r"end score \[0\]"),
    "end all -inf": ({"end": np.full(3, -INF)}, "no allowed labelling"),
    "end of four labels": ({"end": np.zeros(4)}, "end has shape"),
    "offsets of None": ({"offsets": None}, "offsets"),
    "offsets of nothing": ({"offsets": []}, "offsets must start at 0"),
    "offsets of one entry, not 0": ({"offsets": [5]}, "offsets must start at 0"),
    "offsets of text": ({"offsets": ["0", "5"]}, "offsets has dtype"),
    "offsets of NaN": ({"offsets": [0.0, NAN]}, "offsets has dtype float64"),
    "offsets of truth values": ({"offsets": [False, True]}, "offsets has dtype bool"),
    "offsets of a number": ({"offsets": 5}, "offsets has shape"),
    "offsets ragged": ({"offsets": [[0], [2, 5]]}, "offsets"),
    "offsets below 0": ({"offsets": [0, -1, 5]}, "instance 0: offsets fall from 0 to -1"),
    "offsets beyond the rows": ({"offsets": [0, 2, 7]}, "offsets end at 7 but node has 5 rows"),
    "offsets beyond 64 bits": ({"offsets": [0, 2**64]}, "offsets"),
    "order of -1": ({"order": -1}, "order must be 1 or more, got -1"),
    "order of 1.5": ({"order": 1.5}, "order must be .* got 1.5"),
    "order of None": ({"order": None}, "order must be .* got None"),
    "order of True": ({"order": True}, "order must be .* got True"),
    "order of 10**12": ({"order": 10**12}, "order"),
    "order of 2 with a table of order 1": ({"order": 2}, "edge"),
    "parents of floats": ({"parents": [-1.0, 0.0, -1.0, 0.0, 0.0]}, "parents has dtype float64"),
    "parents of None among numbers": ({"parents": [None, 0, -1, 0, 0]}, "parents has dtype object"),
    "parents of two axes": ({"parents": [[-1, 0, -1, 0, 0]]}, "parents has shape"),
    "parents ragged": ({"parents": [[-1, 0], [-1, 0, 0]]}, "parents"),
    "parents in a cycle of two": ({"parents": [1, 0, -1, 0, 0]}, "instance 0, position .*cycle"),
    "parents of the instance before": ({"parents": [-1, 0, -1, 0, -4]}, "instance 1, position 2"),
    "types without tables of types": ({"edge_types": [0, 0, 0, 0, 0]}, "edge_types|types"),
    "types of text": ({"edge": np.zeros((2, 3, 3)), "edge_types": list("aaaaa")}, "edge_types"),
    "types of another length": ({"edge": np.zeros((2, 3, 3)), "edge_types": [0]}, "edge_types has"),
    "n_jobs of 1.5": ({"n_jobs": 1.5}, "n_jobs is 1.5"),
    "n_jobs of NaN": ({"n_jobs": NAN}, "n_jobs is nan"),
    "n_jobs of True": ({"n_jobs": True}, "n_jobs is True"),
    "n_jobs of a list": ({"n_jobs": [2]}, r"n_jobs is \[2\]"),
}


# What is tried is tried on every one of them.
SUBJECTS = tuple(
    Subject(name, lambda function=function: function, lambda subject: None)  # type: ignore[misc]
    for name, function in FUNCTIONS.items()
)


def _case(tried: str, changes: dict[str, Any], message: str) -> Case:
    def attempt(function: Any, folder: Path) -> Any:
        return function(**{"node": NODE, "edge": EDGE, "offsets": OFFSETS, **changes})

    return Case(AREA, tried, attempt, message, subjects=SUBJECTS)


def _own(tried: str, call: Callable[[], Any], message: str, error: Any = ValueError) -> Case:
    return Case(AREA, tried, lambda subject, folder: call(), message, error)


def _max(**own: Any) -> Callable[[], Any]:
    return lambda: inference.max_product(NODE, EDGE, OFFSETS, **own)


def _sample(**own: Any) -> Callable[[], Any]:
    return lambda: inference.sample(NODE, EDGE, OFFSETS, **own)


def _sum(**own: Any) -> Callable[[], Any]:
    return lambda: inference.sum_product(NODE, EDGE, OFFSETS, **own)


def _cost(cost: Any) -> Callable[[], Any]:
    return lambda: inference.expectation(NODE, EDGE, OFFSETS, cost)


CASES = [
    *(_case(tried, *given) for tried, given in TRIED.items()),
    _own("k of -1", _max(k=-1), "k is -1"),
    _own("k of None", _max(k=None), "k is None"),
    _own("k of NaN", _max(k=NAN), "k is nan"),
    _own("k of text", _max(k="2"), "k is '2'"),
    _own("k of True", _max(k=True), "k is True"),
    _own("k of 2**31", _max(k=2**31), "k is 2147483648"),
    _own("n of 1.5", _sample(n=1.5), "n is 1.5"),
    _own("n of None", _sample(n=None), "n is None"),
    _own("n of 2**40", _sample(n=2**40), "n is 1099511627776"),
    _own("n that does not fit into memory", _sample(n=2**31 - 1), "n is 2147483647"),
    _own("a seed below 0", _sample(seed=-1), "seed is -1"),
    _own("a seed of 1.5", _sample(seed=1.5), "seed is 1.5"),
    _own("a seed of None", _sample(seed=None), "seed is None"),
    _own("curvature of 1", _sum(curvature=1), "curvature is 1"),
    _own("curvature of an array", _sum(curvature=np.arange(2)), "curvature is"),
    _own("edge marginals of True", _sum(edge_marginals=True), "edge_marginals is True"),
    _own("edge marginals of an array", _sum(edge_marginals=np.arange(2)), "edge_marginals is"),
    _own("cost of None", _cost(None), "cost"),
    _own("cost of text", _cost(np.full((5, 3), "a")), "cost"),
    _own("cost ragged", _cost([[1.0], [1.0, 2.0]]), "cost"),
    _own("cost of infinity", _cost(at(NODE, (3, 1), INF)), "instance 1, position 1: the cost"),
    _own("cost of objects", _cost(NODE.astype(object)), "cost"),
    _own("an argument that there is not", _sum(nonsense=1), "nonsense", TypeError),
]
