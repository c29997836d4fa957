"""Where the training of parameters stands: to go on as if it had never been cut off."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.estimators.file_values import number, whole
from crfx.estimators.herding import grown
from crfx.io.model_file import Contents
from crfx.scores import IntArray
from crfx.trainers import lbfgs

_PREFIX = "training."
_LAST_VALUES = "last_values"
_BEST, _VELOCITY = "best", "velocity"
_OF_LBFGS = {"far", "memory"}
_SINCE_DOUBLE = {"fine"}
"""Files of L-BFGS that had single precision only lack it."""
_OF_SWEEPS = {"product", "steps", "n_counted", "step"}
_WHILE_IT_LASTS = {"converged", "induced", "in_round"}
"""What only a training needs that was cut off: whether L-BFGS has converged; after how many rounds
of feature induction, and iterations of the next, it stood."""
_TRAINERS = ("lbfgs", "sgd", "perceptron", "large_margin")


@dataclass(frozen=True, eq=False)
class TrainingState:
    """Where a training stood: of which trainer, after how many iterations, numbers and arrays.

    Of one that was cut off, ``best`` among the arrays are the parameters that early stopping would
    restore.
    """

    trainer: str
    n_done: int
    numbers: dict[str, float]
    arrays: dict[str, npt.NDArray[Any]]

    def copied(self) -> TrainingState:
        """As it is now: the arrays may be moved on."""
        return replace(self, arrays={name: array.copy() for name, array in self.arrays.items()})

    @property
    def best(self) -> npt.NDArray[Any] | None:
        """The best parameters so far, where early stopping looks on."""
        return self.arrays.get(_BEST)

    @property
    def velocity(self) -> npt.NDArray[Any] | None:
        """How the mean of several workers that sweep moved when they last met."""
        return self.arrays.get(_VELOCITY)

    def with_best(self, best: npt.NDArray[Any] | None) -> TrainingState:
        """With the best parameters so far."""
        return self if best is None else replace(self, arrays={**self.arrays, _BEST: best})

    def ended(self) -> TrainingState:
        """Of a training that has come to its end, for one that makes it longer."""
        return replace(
            self,
            numbers={k: own for k, own in self.numbers.items() if k not in _WHILE_IT_LASTS},
            arrays={name: array for name, array in self.arrays.items() if name != _BEST},
        )

    def grown(self, origin: IntArray) -> TrainingState:
        """With more parameters, 0 so far: ``origin`` is where each was, -1 for new ones.

        The course of L-BFGS is forgotten, and so is what sweeps are averaged over: they are no
        guide to parameters that were not there.
        """
        if self.trainer == "lbfgs":
            return lbfgs_state(lbfgs.Course(), self.n_done)
        numbers = self.numbers | {"product": 1.0, "steps": 0.0, "n_counted": 0.0}
        values = grown(self.arrays["values"], origin)
        return replace(
            self, numbers=numbers, arrays={"values": values, "sum": np.zeros(len(values))}
        )


def lbfgs_state(course: lbfgs.Course, n_done: int) -> TrainingState:
    """Of L-BFGS."""
    arrays: dict[str, npt.NDArray[Any]] = {_LAST_VALUES: np.array(course.values)}
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


def course_of(state: TrainingState | None) -> lbfgs.Course:
    """The course on which L-BFGS was; a new one where it has not been under way."""
    if state is None:
        return lbfgs.Course()
    pairs = [(state.arrays[f"change{k}"], state.arrays[f"turn{k}"]) for k in _pairs(state)]
    course = lbfgs.Course(state.arrays.get("at"), far=bool(state.numbers["far"]))
    course.memory.extend((change, turn, float(change @ turn)) for change, turn in pairs)
    course.values.extend(state.arrays[_LAST_VALUES].tolist())
    course.converged = bool(state.numbers.get("converged", 0.0))
    course.is_fine = bool(state.numbers.get("fine", 0.0))
    return course


def sweeps_state(
    trainer: str,
    n_done: int,
    parameters: Any,
    step: float,
    velocity: npt.NDArray[Any] | None = None,
) -> TrainingState:
    """Of the trainers that sweep, whose parameters tell their `state`; ``velocity`` is that of
    several workers (`Sweepers`).
    """
    numbers, arrays = parameters.state()
    if velocity is not None:
        arrays = {**arrays, _VELOCITY: velocity}
    return TrainingState(trainer, n_done, {**numbers, "step": step}, arrays)


def pack_state(state: TrainingState | None, contents: Contents) -> None:
    """Put what it takes to go on into a model file."""
    if state is None:
        return
    contents.values["training"] = {
        "trainer": state.trainer,
        "n_done": state.n_done,
        "numbers": state.numbers,
        "arrays": list(state.arrays),
    }
    for name, array in state.arrays.items():
        contents.arrays[_PREFIX + name] = array


def unpack_state(contents: Contents, size: int) -> TrainingState | None:
    """Take it out again, of a model with so many parameters; ValueError where it could not go on:
    not later, when it is to.
    """
    if "training" not in contents.values:
        return None
    packed = contents.values["training"]
    arrays = {name: contents.arrays[_PREFIX + name] for name in packed["arrays"]}
    told = packed["numbers"]
    numbers = {name: float(number(value, f"its {name}")) for name, value in told.items()}
    n_done = whole(packed, "n_done")
    if packed["trainer"] not in _TRAINERS:
        raise ValueError("its training is told in a way that this crfx does not know")
    state = TrainingState(packed["trainer"], n_done, numbers, arrays)
    _check_numbers(state)
    _check_arrays(state, size)
    return state


def _check_numbers(state: TrainingState) -> None:
    numbers = state.numbers
    if state.trainer == "lbfgs":
        if numbers["memory"] not in range(lbfgs.MEMORY + 1):
            raise ValueError(f"its training remembers {numbers['memory']} steps")
        known, optional = _OF_LBFGS, _WHILE_IT_LASTS | _SINCE_DOUBLE
        if not all(numbers.get(name, 0.0) >= 0 for name in optional):
            raise ValueError("its training counts what is not there")
    else:
        known, optional = _OF_SWEEPS, set()
        if not (0 < numbers["product"] <= 1 and numbers["step"] > 0):
            raise ValueError("its training has an impossible step")
        if not (numbers["steps"] >= 0 and numbers["n_counted"] >= 0 == numbers["n_counted"] % 1):
            raise ValueError("its training counts what is not there")
    if not known <= set(numbers) <= known | optional:
        raise ValueError("its training lacks what it takes to go on")
    if not np.isfinite(list(numbers.values())).all():
        raise ValueError("its training has numbers that are not finite")


def _check_arrays(state: TrainingState, size: int) -> None:
    names, optional = {"values", "sum"}, {_BEST, _VELOCITY}
    if state.trainer == "lbfgs":
        pairs = {f"{kind}{k}" for k in _pairs(state) for kind in ("change", "turn")}
        names, optional = {_LAST_VALUES} | pairs, {_BEST, "at"}
    if not names <= set(state.arrays) <= names | optional:
        raise ValueError("its training lacks what it takes to go on")
    for name, array in state.arrays.items():
        fits = array.ndim == 1 if name == _LAST_VALUES else array.shape == (size,)
        kinds = (np.float32, np.float64) if name in ("values", _BEST, _VELOCITY) else (np.float64,)
        plain = array.dtype in kinds and np.isfinite(array).all()
        if not fits or not plain:
            raise ValueError(f"the array {name} of its training does not fit")
    if any(not state.arrays[f"change{k}"] @ state.arrays[f"turn{k}"] > 0 for k in _pairs(state)):
        raise ValueError("its training remembers steps that it cannot have taken")


def _pairs(state: TrainingState) -> range:
    return range(int(state.numbers.get("memory", 0)))
