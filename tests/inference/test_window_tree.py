"""Messages of the two sides against enumeration of the part of the instance that each side is."""

import numpy as np
import pytest

from crfx.inference import reference
from crfx.inference.problem import prepare
from crfx.inference.window_tree import side_messages
from crfx.testing import enumeration, make_problem
from tests.pairwise import pairwise

EXACT = {"rtol": 1e-9, "atol": 1e-10}

SHARINGS = ["shared", "typed", "each"]
CHAINS = [
    {"order": order, "sharing": sharing, "ends": ends, "forbid": 0.0 if ends else 0.3}
    for order, sharing, ends in pairwise([1, 2, 3], SHARINGS, [True, False])
]
FORESTS = [
    {"shape": shape, "sharing": sharing, "forbid": forbid}
    for shape, sharing, forbid in pairwise(["path", "star", "random"], SHARINGS, [0.0, 0.3])
]


def softmax(messages):
    odds = np.exp(messages - messages.max())
    return odds / odds.sum()


def part_of(problem, rows, row, *, start, end):
    """The rows alone, ``row`` without a score of its own: what they say about its label."""
    rows = np.asarray(rows)
    node = problem.node.copy()
    node[row] = 0.0
    parents = problem.parents
    if parents is not None:
        place = {int(old): new for new, old in enumerate(rows)}
        parents = np.array([place.get(int(parents[old]), -1) for old in rows])
    is_each = problem.edge is not None and problem.edge_types is None
    is_each = is_each and problem.edge.ndim > problem.order + 1
    return problem.with_arrays(
        node=node[rows],
        edge=problem.edge[rows] if is_each else problem.edge,
        offsets=np.array([0, len(rows)]),
        parents=parents,
        edge_types=None if problem.edge_types is None else problem.edge_types[rows],
        start=problem.start if start else None,
        end=problem.end if end else None,
    )


def descendants(parents, row):
    """The row and all below it."""
    rows = [row]
    for node in rows:
        rows += np.flatnonzero(parents == node).tolist()
    return rows


def sides(problem, row):
    """(rows before, rows after), the row in both."""
    n_rows = len(problem.node)
    if problem.parents is None:
        return range(row + 1), range(row, n_rows)
    below = descendants(problem.parents, row)
    return [r for r in range(n_rows) if r == row or r not in below], sorted(below)


@pytest.mark.parametrize("case", CHAINS + FORESTS, ids=str)
def test_messages_are_sums_over_one_side(case):
    for length in (1, 3, 6):
        check_messages(make_problem(length, lengths=(length,), **case))


def check_messages(problem):
    """Check the messages of both sides at every row of one instance."""
    before, after = side_messages(prepare(**problem.arguments()))
    for row in range(len(problem.node)):
        for rows, messages, ends in zip(
            sides(problem, row),
            (before, after),
            ({"start": True, "end": False}, {"start": False, "end": True}),
            strict=True,
        ):
            part = part_of(problem, rows, row, **ends)
            expected = enumeration.sum_product(**part.arguments()).node[list(rows).index(row)]
            np.testing.assert_allclose(softmax(messages[row]), expected, **EXACT)


@pytest.mark.parametrize(
    "case", [chain for chain in CHAINS if chain["order"] == 1] + FORESTS, ids=str
)
def test_with_the_scores_they_are_the_marginals(case):
    problem = make_problem(3, lengths=(5, 0, 1, 30), **case)
    before, after = side_messages(prepare(**problem.arguments()))
    expected = reference.sum_product(**problem.arguments()).node
    total = problem.node + before + after
    result = np.array([softmax(scores) for scores in total])
    np.testing.assert_allclose(result, expected, **EXACT)
