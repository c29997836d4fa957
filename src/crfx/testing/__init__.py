"""Takes tiny problems, gives oracles to compare with; comes after `inference`, before nothing else.

Public, so that users can put their own parts to the same tests: enumeration of all labellings,
finite differences, and makers of random problems and tasks.  `enumerated_objectives` evaluates
objectives on listed configurations, `ranking_reference` those of rankings in plain NumPy.  Nothing
in the library imports this package.
"""

from crfx.testing.differences import central_differences
from crfx.testing.enumeration import (
    Enumerated,
    assert_best,
    assert_same,
    enumerate_instances,
)
from crfx.testing.problems import RawProblem, make_parents, make_problem, problems
from crfx.testing.tasks import make_task

__all__ = [
    "Enumerated",
    "RawProblem",
    "assert_best",
    "assert_same",
    "central_differences",
    "enumerate_instances",
    "make_parents",
    "make_problem",
    "make_task",
    "problems",
]
