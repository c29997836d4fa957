"""Some labels given: the labellings that agree with them, as a problem of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crfx.inference.problem import Problem
from crfx.scores import IntArray


def clamped(problem: Problem, rows: IntArray, labels: IntArray) -> Problem:
    """The problem in which ``labels`` (n,) are the only ones at ``rows`` (n,), with their scores.

    All others are at -inf there.  A copy: O(rows K).
    """
    node = problem.scores.node.copy()
    kept = node[rows, labels]
    node[rows] = -np.inf
    node[rows, labels] = kept
    return replace(problem, scores=replace(problem.scores, node=node))
