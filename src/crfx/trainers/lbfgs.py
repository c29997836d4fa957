"""Limited-memory quasi-Newton (L-BFGS), and OWL-QN where there is an L1 penalty.

OWL-QN (Andrew and Gao 2007, "Scalable training of L1-regularized log-linear models") takes
L-BFGS directions of the smooth part within one orthant at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from crfx.messages import warn

Array64 = npt.NDArray[np.float64]
Function = Callable[[Array64], tuple[float, Array64]]
"""Parameters in, value and gradient out."""
Watch = Callable[[Array64, float], bool]
"""Called after every iteration with parameters and value; True stops."""

Memory = deque[tuple[Array64, Array64, float]]
"""Of the last steps: the change of parameters, that of the gradient, and their product."""

MEMORY = 6
PERIOD = 10
"""Training has converged once so many iterations improve the value by less than ``tol``."""
MOST_TRIALS = 60
NOTHING_LOWERS = (
    "no step lowers the objective, so nothing was learned: features of very different or very "
    "large size are the usual cause; scale the features to about -1 to 1"
)
NOT_CONVERGED = (
    "L-BFGS stopped at max_iter={}, before it converged: raise max_iter, or tol if this is near "
    "enough; scaled features converge sooner"
)
ENOUGH_DECREASE = 1e-4
NEAR = 1e-3
"""While steps improve the value by a larger share, they go with the slope in every coordinate, as
OWL-QN's do: on text that takes far fewer steps.  Near the minimum it would take more."""


@dataclass
class Course:
    """What a run remembers: where it is, its last steps, whether it is far from the minimum, the
    values of the last iterations, whether they say that it has converged, how many iterations
    are left of ``max_iter`` (None: all of them), and whether the finer function has taken over.
    """

    at: Array64 | None = None
    memory: Memory = field(default_factory=lambda: deque(maxlen=MEMORY))
    far: bool = True
    values: deque[float] = field(default_factory=lambda: deque(maxlen=PERIOD + 1))
    converged: bool = False
    left: int | None = None
    is_fine: bool = False

    def refine(self) -> None:
        """Let the finer function take over: what is remembered of the other is of no use to it."""
        if not self.is_fine:
            self.is_fine = True
            self.memory.clear()
            self.values.clear()


class End(Enum):
    """Why a descent ended: by ``tol``; since nothing lower can be told from rounding; by who
    watches; by ``max_iter``.
    """

    CONVERGED = auto()
    ROUNDING = auto()
    STOPPED = auto()
    CUT_SHORT = auto()


@dataclass
class Convergence:
    """Whether the last ``PERIOD`` iterations improved the value by less than ``tol`` of it."""

    tol: float
    _values: deque[float] = field(default_factory=lambda: deque(maxlen=PERIOD + 1))

    def see(self, value: float) -> bool:
        """Note the value of an iteration; whether it is time to stop."""
        self._values.append(value)
        if len(self._values) <= PERIOD:
            return False
        return self._values[0] - value < self.tol * abs(value)


@dataclass(frozen=True)
class Rounded:
    """A function, and the least share of its value that can be told from its rounding."""

    function: Function
    resolution: float = 0.0


def minimise(
    function: Function,
    start: Array64,
    watch: Watch,
    *,
    max_iter: int,
    tol: float,
    l1: float = 0.0,
    resolution: float = 0.0,
    finer: Rounded | None = None,
    course: Course | None = None,
    is_fresh: bool | None = None,
    is_last: bool = True,
) -> Array64:
    """Lower ``function`` plus l1 |w|_1 from ``start``; return where it ended.

    Moves are not halved below what promises a share ``resolution`` of the value: what they bring
    could not be told from the rounding of the function.  ``finer`` is the same function with less
    rounding: where ``tol`` is below ``resolution``, it takes over where the first can tell no more.
    ``course`` is what an earlier run has left, to go on as if it had not ended; it is kept up to
    date.  ``is_fresh``: not a warm start, which may be at the minimum already; None: where
    ``start`` is all 0.  ``is_last``: no other run follows, so that one that ends before it has
    converged is told of.
    """
    course = course or Course()
    start = start if course.at is None else course.at
    if max_iter == 0 or course.left == 0 or course.converged:
        return start
    fresh = not start.any() if is_fresh is None else is_fresh
    n_left = max_iter if course.left is None else course.left
    descent = _Descent(watch, course, l1, fresh and course.at is None, n_left)
    found, end = start, End.CONVERGED
    if finer is None or tol >= resolution:
        found, end = descent.run(Rounded(function, resolution), start, tol)
    else:
        if not course.is_fine:
            first = Rounded(function, resolution)
            found, end = descent.run(first, start, resolution, is_last=False)
        if end in (End.CONVERGED, End.ROUNDING):
            course.refine()
            found, end = descent.run(finer, found, tol)
    if is_last and end is End.CUT_SHORT:
        warn(NOT_CONVERGED.format(max_iter), ConvergenceWarning)
    return found


def warn_nothing_learned() -> None:
    """Tell of a training that ended where it began."""
    warn(NOTHING_LOWERS, ConvergenceWarning)


@dataclass
class _Descent:
    """Steps on a course; ``n_left`` may still be taken."""

    watch: Watch
    course: Course
    l1: float
    is_fresh: bool
    n_left: int

    def run(
        self, rounded: Rounded, start: Array64, tol: float, *, is_last: bool = True
    ) -> tuple[Array64, End]:
        """Where it ended, and why.  ``is_last``: no finer function takes over."""
        function, course, l1 = rounded.function, self.course, self.l1
        at = start.copy()
        smooth, gradient = function(at)
        value = smooth + l1 * float(np.abs(at).sum())
        memory, convergence = course.memory, Convergence(tol, course.values)
        while self.n_left:
            self.n_left -= 1
            slope = _pseudo_gradient(at, gradient, l1) if l1 else gradient
            if not slope.any():
                return at, End.CONVERGED
            direction = _direction(slope, memory)
            if l1 or course.far:  # go with the slope, coordinate by coordinate
                direction[direction * slope >= 0] = 0.0
            step = 1.0 if memory else 1.0 / float(np.linalg.norm(slope))
            least = rounded.resolution * abs(value)
            found = _search(function, at, value, slope, step * direction, l1, least)
            if found is None and memory:  # what is remembered may mislead: begin anew
                memory.clear()
                continue
            if found is None:
                if is_last and self.is_fresh and course.at is None:
                    warn_nothing_learned()
                return at, End.ROUNDING
            moved, new_value, new_gradient = found
            change, turn = moved - at, new_gradient - gradient
            bend = float(change @ turn)
            if bend > 0:
                memory.append((change, turn, bend))
            course.far = course.far and value - new_value > NEAR * abs(value)
            at, gradient, value = moved, new_gradient, new_value
            course.at = at
            has_converged = convergence.see(value)
            if has_converged and is_last:  # known to who looks on, and may save it
                course.converged = True
            elif has_converged:
                course.refine()
            if self.watch(at, value):
                return at, End.STOPPED
            if has_converged:
                return at, End.CONVERGED
        return at, End.CUT_SHORT


def _search(
    function: Function,
    at: Array64,
    value: float,
    slope: Array64,
    move: Array64,
    l1: float,
    least: float,
) -> tuple[Array64, float, Array64] | None:
    """Halve a move until it lowers the value enough: where it led, value and smooth gradient."""
    orthant = np.where(at != 0, np.sign(at), -np.sign(slope)) if l1 else at
    for trial in range(MOST_TRIALS):
        moved = at + move
        if l1:
            moved[moved * orthant <= 0] = 0.0
        if trial and -float(slope @ (moved - at)) < least:
            return None
        smooth, gradient = function(moved)
        new_value = smooth + l1 * float(np.abs(moved).sum())
        enough = value + ENOUGH_DECREASE * float(slope @ (moved - at))
        if new_value < value and new_value <= enough:
            return moved, new_value, gradient
        move = move / 2
    return None


def _pseudo_gradient(at: Array64, gradient: Array64, l1: float) -> Array64:
    """The steepest one-sided slope of the penalised function (Andrew and Gao, Eq. 4)."""
    inside = gradient + l1 * np.sign(at)
    at_zero = np.where(gradient > l1, gradient - l1, np.where(gradient < -l1, gradient + l1, 0.0))
    return np.where(at != 0, inside, at_zero)


def _direction(slope: Array64, memory: Memory) -> Array64:
    """Minus the approximate inverse Hessian times ``slope``, by the two-loop recursion."""
    direction = -slope
    if not memory:
        return direction
    shares = []
    for change, turn, bend in reversed(memory):
        share = float(change @ direction) / bend
        direction -= share * turn
        shares.append(share)
    change, turn, bend = memory[-1]
    direction *= bend / float(turn @ turn)
    for (change, turn, bend), share in zip(memory, reversed(shares), strict=True):
        direction += (share - float(turn @ direction) / bend) * change
    return direction
