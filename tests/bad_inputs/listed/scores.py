"""`crfx.inference` on scores that it must refuse, beyond tests/inference/test_bad_input.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from crfx import inference
from listed.case import Case, Subject, arguments_of, each

AREA = "crfx.inference"
NODE, EDGE, OFFSETS = np.zeros((5, 3)), np.zeros((3, 3)), [0, 2, 5]
INF, NAN = np.inf, np.nan
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum_product": inference.sum_product,
    "max_product": inference.max_product,
    "k best": lambda **arguments: inference.max_product(**arguments, k=3),
    "sample": inference.sample,
    "expectation": lambda **arguments: inference.expectation(**arguments, cost=np.zeros((5, 3))),
}


def at(array: Any, index: Any, value: Any) -> Any:
    """A changed copy."""
    changed = array.copy()
    changed[index] = value
    return changed


TYPED = {"edge": np.zeros((2, 3, 3))}
TRIED: dict[str, tuple[dict[str, Any], str]] = {
    "no numbers as node": (
        {"node": each(None, "abc", NODE.astype(object), NODE.astype(complex), NODE.astype(bool),
                      NODE.astype(np.longdouble), NODE.astype("datetime64[s]"))},
        "node scores have dtype",
    ),
    "other axes of node": ({"node": each(1.0, NODE[None])}, "node"),
    "node all -inf": ({"node": np.full((5, 3), -INF)}, "instance [01]: .*no allowed labelling"),
    "node beyond 1e100": ({"node": at(NODE, (4, 2), 1e200)}, "instance 1, position 2"),
    "no numbers as edge": ({"edge": each("abc", EDGE.astype(object))}, "edge scores have dtype"),
    "other axes of edge": (
        {"edge": each(1.0, np.zeros(3), np.zeros((5, 3, 3, 3)), [[0.0], [0.0, 1.0]])}, "edge"),
    "edge masked": ({"edge": np.ma.masked_greater(EDGE, 1.0)}, "masked array"),
    "edge beyond 1e100": ({"edge": at(EDGE, (0, 1), 1e200)}, r"edge score \[0, 1\]"),
    "start of NaN": ({"start": np.full(3, NAN)}, r"start score \[0\]"),
    "start of +inf": ({"start": [0.0, 0.0, INF]}, r"start score \[2\]"),
    "start all -inf": ({"start": np.full(3, -INF)}, "no allowed labelling"),
    "start of text": ({"start": ["a", "b", "c"]}, "start"),
    "other axes of start": ({"start": each(1.0, np.zeros((1, 3)))}, "start has shape"),
    "end of NaN": ({"end": [NAN, 0.0, 0.0]}, r"end score \[0\]"),
    "end all -inf": ({"end": np.full(3, -INF)}, "no allowed labelling"),
    "end of four labels": ({"end": np.zeros(4)}, "end has shape"),
    "offsets that do not start": ({"offsets": each([], [5])}, "offsets must start at 0"),
    "no numbers as offsets": ({"offsets": each(["0", "5"], [0.0, NAN], [False, True])},
        "offsets has dtype"),
    "other axes of offsets": ({"offsets": each(None, 5, [[0], [2, 5]])}, "offsets"),
    "offsets below 0": ({"offsets": [0, -1, 5]}, "instance 0: offsets fall from 0 to -1"),
    "offsets beyond the rows": ({"offsets": [0, 2, 7]}, "offsets end at 7 but node has 5 rows"),
    "offsets beyond 64 bits": ({"offsets": [0, 2**64]}, "offsets"),
    "another order": ({"order": each(-1, 1.5, None, True)}, "order must be .* got"),
    "order of 10**12": ({"order": 10**12}, "order"),
    "order of 2 with a table of order 1": ({"order": 2}, "edge"),
    "no numbers as parents": ({"parents": each([-1.0, 0.0, -1.0, 0.0, 0.0], [None, 0, -1, 0, 0])},
        "parents has dtype (float64|object)"),
    "other axes of parents": ({"parents": each([[-1, 0, -1, 0, 0]], [[-1, 0], [-1, 0, 0]])},
                              "parents"),
    "parents in a cycle of two": ({"parents": [1, 0, -1, 0, 0]}, "instance 0, position .*cycle"),
    "parents of the instance before": ({"parents": [-1, 0, -1, 0, -4]}, "instance 1, position 2"),
    "types without tables of types": ({"edge_types": [0, 0, 0, 0, 0]}, "edge_types|types"),
    "other types": ({**TYPED, "edge_types": each(list("aaaaa"), [0])}, "edge_types has"),
    "n_jobs": ({"n_jobs": each(1.5, NAN, True, [2])}, r"n_jobs is (1.5|nan|True|\[2\]):"),
}  # fmt: skip


# What goes for all of them is tried on one after the other.
SUBJECTS = tuple(
    Subject(name, lambda function=function: function, lambda subject: None)  # type: ignore[misc]
    for name, function in FUNCTIONS.items()
)


def _case(tried: str, changes: dict[str, Any], message: str) -> Case:
    def attempt(function: Any, folder: Path, changes: dict[str, Any]) -> Any:
        return function(**{"node": NODE, "edge": EDGE, "offsets": OFFSETS, **changes})

    values = arguments_of(changes)
    return Case(AREA, tried, attempt, message, subjects=SUBJECTS, values=values)


def _own(
    tried: str,
    function: Callable[..., Any],
    message: str,
    error: Any = ValueError,
    **arguments: Any,
) -> Case:
    """One function, with an argument of its own."""

    def attempt(subject: Any, folder: Path, arguments: dict[str, Any]) -> Any:
        return function(NODE, EDGE, OFFSETS, **arguments)

    return Case(AREA, tried, attempt, message, error, values=arguments_of(arguments))


ARRAY = np.arange(2)
CASES = [
    *(_case(tried, *value) for tried, value in TRIED.items()),
    _own("another k", inference.max_product, "k is .*: pass how many labellings",
         k=each(-1, None, NAN, "2", True, 2**31)),
    _own("another n", inference.sample, "n is (1.5|None|1099511627776):",
         n=each(1.5, None, 2**40)),
    _own("n that does not fit into memory", inference.sample, "n is 2147483647", n=2**31 - 1),
    _own("another seed", inference.sample, "seed is (-1|1.5|None):", seed=each(-1, 1.5, None)),
    _own("another curvature", inference.sum_product, "curvature is", curvature=each(1, ARRAY)),
    _own("other edge marginals", inference.sum_product, "edge_marginals is",
         edge_marginals=each(True, ARRAY)),
    _own("another cost", inference.expectation, "cost",
         cost=each(None, np.full((5, 3), "a"), [[1.0], [1.0, 2.0]], NODE.astype(object))),
    _own("cost of infinity", inference.expectation, "instance 1, position 1: the cost",
         cost=at(NODE, (3, 1), INF)),
    _own("an argument that there is not", inference.sum_product, "nonsense", TypeError,
         nonsense=1),
]  # fmt: skip
