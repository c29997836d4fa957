"""Limited-memory quasi-Newton (L-BFGS), and OWL-QN where there is an L1 penalty.

OWL-QN (Andrew and Gao 2007, "Scalable training of L1-regularized log-linear models") takes
L-BFGS directions of the smooth part within one orthant at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import daxpy
from sklearn.exceptions import ConvergenceWarning

from crfx.messages import warn
from crfx.model.flat_parameters import get_weights, moved
from crfx.model.model import Model
from crfx.scores import IntArray
from crfx.trainers.base import TrainingState
from crfx.trainers.parametric import Iterations, ParameterTrainer, ParametricTask, Rounded

Array64 = npt.NDArray[np.float64]
Memory = deque[tuple[Array64, Array64, float]]
"""Of the last steps: the change of parameters, that of the gradient, and their product."""

MEMORY = 6
PERIOD = 10
"""Training has converged once so many iterations improve the value by less than ``tol``."""
MOST_TRIALS = 60
BLOCK = 1 << 16
"""Numbers of a long vector that caches hold beside another vector."""
NOTHING_LOWERS = (
    "no step lowers the objective, so nothing was learned: features of very different or very "
    "large size are the usual cause; scale the features to about -1 to 1"
)
NOT_CONVERGED = (
    "L-BFGS stopped at max_iter={}, before it converged: raise max_iter, or tol if this is near "
    "enough; scaled features converge sooner"
)
ENOUGH_DECREASE = 1e-4
SAME_VALUE = 1e-5
"""In shares: of one function at one place, however it is rounded."""
NEAR = 1e-3
"""While steps improve the value by a larger share, they go with the slope in every coordinate, as
OWL-QN's do: on text that takes far fewer steps.  Near the minimum it would take more."""


@dataclass
class Course:
    """What a run remembers: where it is, its last steps, whether it is far from the minimum, the
    values of the last iterations, whether they said that it has converged, how many iterations
    are left of ``max_iter`` (None: all of them), and whether the finer function has taken over.
    """

    at: Array64 | None = None
    memory: Memory = field(default_factory=lambda: deque(maxlen=MEMORY))
    far: bool = True
    values: deque[float] = field(default_factory=lambda: deque(maxlen=PERIOD + 1))
    converged: bool = False
    left: int | None = None
    is_fine: bool = False

    def go_on_from(self, value: float) -> None:
        """Forget what was remembered of another function, which other instances make: there the
        value is another than the last.
        """
        if self.values and abs(value - self.values[-1]) > SAME_VALUE * abs(value):
            self.memory.clear()
            self.values.clear()
            self.far, self.converged = True, False

    def remember(self, here: _Point, there: _Point) -> None:
        """Take a step."""
        change, turn = there.at - here.at, there.gradient - here.gradient
        bend = float(change @ turn)
        if bend > 0:
            self.memory.append((change, turn, bend))
        self.far = self.far and here.value - there.value > NEAR * abs(here.value)
        self.at, self.converged = there.at, False
        self.values.append(there.value)

    def end(self, *, is_last: bool) -> None:
        """Note that values do not improve any more."""
        if is_last:
            self.converged = True
        else:
            self.refine()

    def refine(self) -> None:
        """Let the finer function take over, whose values are others."""
        if not self.is_fine:
            self.is_fine = True
            self.values.clear()


class End(Enum):
    """The end of a descent: by ``tol``, by rounding error, or by ``max_iter``."""

    CONVERGED = auto()
    ROUNDING = auto()
    CUT_SHORT = auto()


def is_flat(values: deque[float], tol: float) -> bool:
    """Return whether the last ``PERIOD`` iterations improved the value by a share below ``tol``."""
    return len(values) > PERIOD and values[0] - values[-1] < tol * abs(values[-1])


def descend(
    rounded: Rounded,
    start: Array64,
    *,
    max_iter: int,
    tol: float,
    l1: float = 0.0,
    finer: Rounded | None = None,
    course: Course | None = None,
    is_fresh: bool | None = None,
    is_last: bool = True,
) -> Iterations:
    """Lower a function plus l1 |w|_1 from ``start``, an iteration at a time.

    Moves are not halved below those that promise a share ``resolution`` of the value: a smaller
    decrease cannot be told apart from the rounding of the function.  ``finer`` is the same function
    with less rounding: if ``tol`` is below the resolution of the first, it takes over once the
    first reaches its resolution.  ``course`` is the state of an earlier run, from which this one
    resumes; it is kept up to date.  ``is_fresh``: not a warm start, which may be at the minimum
    already; None: if ``start`` is all 0.  ``is_last``: no other run follows, so that a run that
    ends before it has converged warns.
    """
    course = course or Course()
    start = start if course.at is None else course.at
    refines = finer is not None and tol < rounded.resolution
    course.is_fine = course.is_fine and refines
    if max_iter == 0 or course.left == 0:
        return start
    fresh = not start.any() if is_fresh is None else is_fresh
    n_left = max_iter if course.left is None else course.left
    descent = _Descent(course, l1, fresh, n_left)
    if finer is None or not refines:
        at, end = yield from descent.run(rounded, start, tol)
    else:
        at, end = start, End.CONVERGED
        if not course.is_fine:
            at, end = yield from descent.run(rounded, start, rounded.resolution, is_last=False)
        if end in (End.CONVERGED, End.ROUNDING):
            course.refine()
            at, end = yield from descent.run(finer, at, tol)
    if is_last and end is End.CUT_SHORT:
        warn(NOT_CONVERGED.format(max_iter), ConvergenceWarning)
    return at


def warn_nothing_learned() -> None:
    """Warn about a training that ended where it began."""
    warn(NOTHING_LOWERS, ConvergenceWarning)


@dataclass
class _Point:
    """Parameters, the value there with its penalty, and the gradient of the smooth part."""

    at: Array64
    value: float
    gradient: Array64


@dataclass
class _Descent:
    """Steps on a course; ``n_left`` may still be taken."""

    course: Course
    l1: float
    is_fresh: bool
    n_left: int

    def run(
        self, rounded: Rounded, start: Array64, tol: float, *, is_last: bool = True
    ) -> Generator[tuple[Array64, float], None, tuple[Array64, End]]:
        """Yield every iteration; return where it ended, and why.

        ``is_last``: no finer function takes over.
        """
        course = self.course
        here = self._evaluated(rounded, start.copy())
        course.go_on_from(here.value)
        if is_last and course.converged and is_flat(course.values, tol):
            return here.at, End.CONVERGED
        while self.n_left:
            slope = _pseudo_gradient(here.at, here.gradient, self.l1) if self.l1 else here.gradient
            if not slope.any():
                return here.at, End.CONVERGED
            lower = self._lower(rounded, here, slope)
            if lower is None:
                if is_last and self.is_fresh and course.at is None:
                    warn_nothing_learned()
                return here.at, End.ROUNDING
            course.remember(here, lower)
            here = lower
            self.n_left -= 1
            has_converged = is_flat(course.values, tol)
            if has_converged:  # before the yield: a callback may save it
                course.end(is_last=is_last)
            yield here.at, here.value
            if has_converged:
                return here.at, End.CONVERGED
        return here.at, End.CUT_SHORT

    def _evaluated(self, rounded: Rounded, at: Array64) -> _Point:
        smooth, gradient = rounded.function(at)
        return _Point(at, smooth + self.l1 * float(np.abs(at).sum()), gradient)

    def _lower(self, rounded: Rounded, here: _Point, slope: Array64) -> _Point | None:
        """Return a lower point, by the memory or else by the slope; None if rounding hides any."""
        memory = self.course.memory
        lower = self._search(rounded, here, slope)
        if lower is None and memory:  # what is remembered may mislead: begin anew
            remembered = memory.copy()
            memory.clear()
            lower = self._search(rounded, here, slope)
            if lower is None:  # a finer function may make use of it
                memory.extend(remembered)
        return lower

    def _search(self, rounded: Rounded, here: _Point, slope: Array64) -> _Point | None:
        """Halve a step until it lowers the value enough."""
        move, l1 = self._first_move(slope), self.l1
        least = rounded.resolution * abs(here.value)
        orthant = np.where(here.at != 0, np.sign(here.at), -np.sign(slope)) if l1 else None
        for trial in range(MOST_TRIALS):
            moved = here.at + move
            if orthant is not None:
                moved[moved * orthant <= 0] = 0.0
            promised = -float(slope @ (move if orthant is None else moved - here.at))
            if trial and promised < least:
                return None
            there = self._evaluated(rounded, moved)
            enough = here.value - ENOUGH_DECREASE * promised
            if there.value < here.value and there.value <= enough:
                return there
            move = move / 2
        return None

    def _first_move(self, slope: Array64) -> Array64:
        memory = self.course.memory
        direction = _direction(slope, memory)
        if self.l1 or self.course.far:  # go with the slope, coordinate by coordinate
            for begin in range(0, len(direction), BLOCK):
                part = direction[begin : begin + BLOCK]
                part[part * slope[begin : begin + BLOCK] >= 0] = 0.0
        return direction if memory else (1.0 / float(np.linalg.norm(slope))) * direction


def _pseudo_gradient(at: Array64, gradient: Array64, l1: float) -> Array64:
    """Return the steepest one-sided slope of the penalised function (Andrew and Gao, Eq. 4)."""
    inside = gradient + l1 * np.sign(at)
    at_zero = np.where(gradient > l1, gradient - l1, np.where(gradient < -l1, gradient + l1, 0.0))
    return np.where(at != 0, inside, at_zero)


def _direction(slope: Array64, memory: Memory) -> Array64:
    """Return minus the approximate inverse Hessian times ``slope``, by the two-loop recursion."""
    direction = np.negative(slope, dtype=np.float64)
    if not memory:
        return direction
    shares = []
    for change, turn, bend in reversed(memory):
        share = float(change @ direction) / bend
        daxpy(turn, direction, a=-share)  # in one pass, in place: the vectors are long
        shares.append(share)
    change, turn, bend = memory[-1]
    direction *= bend / float(turn @ turn)
    for (change, turn, bend), share in zip(memory, reversed(shares), strict=True):
        daxpy(change, direction, a=share - float(turn @ direction) / bend)
    return direction


# The trainer -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LBFGSSettings:
    """Settings: at most ``max_iter`` iterations; ``tol`` and ``l1`` as in `descend`.

    ``n_left`` is the number of iterations left if the training resumes; ``is_fresh``: the model is
    new.
    """

    max_iter: int
    tol: float
    l1: float = 0.0
    n_left: int | None = None
    is_fresh: bool | None = None


class LBFGS(ParameterTrainer):
    """Trains the parameters of a model by L-BFGS, or OWL-QN."""

    def __init__(self, model: Model, task: ParametricTask, settings: LBFGSSettings) -> None:
        super().__init__(model)
        self._task, self._settings = task, settings
        self._course = Course(left=settings.n_left)

    def _steps(self) -> Iterations:
        whole, settings = self._task.objective(self.model), self._settings
        self._objective = whole.objective
        return descend(
            whole.rounded(),
            get_weights(self.model),
            max_iter=settings.max_iter,
            tol=settings.tol,
            l1=settings.l1,
            finer=whole.finer().rounded(),
            course=self._course,
            is_fresh=settings.is_fresh,
        )

    def state(self) -> TrainingState:
        """Return where training stands."""
        return lbfgs_state(self._course, self._n_done).with_best(self.best)

    def restore(self, state: TrainingState) -> None:
        """Resume where `state` was taken."""
        self._course = replace(course_of(state), left=self._settings.n_left)
        self._n_done, self.best = state.n_done, state.best


def lbfgs_state(course: Course, n_done: int) -> TrainingState:
    """Return the state of a training on its course, after ``n_done`` iterations."""
    arrays: dict[str, npt.NDArray[Any]] = {"last_values": np.array(course.values)}
    if course.at is not None:
        arrays["at"] = course.at
    for k, (change, turn, _) in enumerate(course.memory):
        arrays[f"change{k}"], arrays[f"turn{k}"] = change, turn
    numbers = {
        "far": float(course.far),
        "memory": float(len(course.memory)),
        "converged": float(course.converged),
    }
    if course.is_fine:
        numbers["fine"] = 1.0
    return TrainingState("lbfgs", n_done, numbers, arrays)


def course_of(state: TrainingState | None) -> Course:
    """Return the course of a training to resume; a new one if there is no state."""
    if state is None:
        return Course()
    course = Course(state.arrays.get("at"), far=bool(state.numbers["far"]))
    for k in range(int(state.numbers["memory"])):
        change, turn = state.arrays[f"change{k}"], state.arrays[f"turn{k}"]
        course.memory.append((change, turn, float(change @ turn)))
    course.values.extend(state.arrays["last_values"].tolist())
    course.converged = bool(state.numbers.get("converged", 0.0))
    course.is_fine = bool(state.numbers.get("fine", 0.0))
    return course


def grown_state(state: TrainingState, origin: IntArray) -> TrainingState:
    """Return the state of a training whose parameters are moved by `moved`.

    The memory of L-BFGS and the averages over epochs begin anew: they say nothing about new
    parameters.
    """
    if state.trainer == "lbfgs":
        return lbfgs_state(Course(), state.n_done)
    numbers = state.numbers | {"product": 1.0, "steps": 0.0, "n_counted": 0.0}
    values = moved(state.arrays["values"], origin)
    return replace(state, numbers=numbers, arrays={"values": values, "sum": np.zeros(len(values))})
