"""Where the training of a HiddenUnitCRF stood: to go on as if it had never ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crfx.estimators.herding import Votes
from crfx.estimators.model_parameters import parameter_arrays
from crfx.io.model_file import Contents
from crfx.trainers import lbfgs

if TYPE_CHECKING:
    from crfx.estimators.hidden_unit import HiddenUnitCRF

_PREFIX = "training."
_VOTES = "votes"
_LAST_VALUES = "last_values"
_TRAINERS = ("lbfgs", "sgd", "perceptron", "large_margin")


@dataclass(frozen=True, eq=False)
class TrainingState:
    """Where a training stood: of which trainer, after how many iterations, numbers and arrays."""

    trainer: str
    n_done: int
    numbers: dict[str, float]
    arrays: dict[str, npt.NDArray[Any]]


def lbfgs_state(course: lbfgs.Course, n_done: int) -> TrainingState:
    """Of L-BFGS."""
    arrays: dict[str, npt.NDArray[Any]] = {_LAST_VALUES: np.array(course.values)}
    if course.at is not None:
        arrays["at"] = course.at
    for k, (change, turn, _) in enumerate(course.memory):
        arrays[f"change{k}"], arrays[f"turn{k}"] = change, turn
    numbers = {"far": float(course.far), "memory": float(len(course.memory))}
    return TrainingState("lbfgs", n_done, numbers, arrays)


def course_of(state: TrainingState) -> lbfgs.Course:
    """The course on which L-BFGS was."""
    pairs = [
        (state.arrays[f"change{k}"], state.arrays[f"turn{k}"])
        for k in range(int(state.numbers["memory"]))
    ]
    course = lbfgs.Course(state.arrays.get("at"), far=bool(state.numbers["far"]))
    course.memory.extend((change, turn, float(change @ turn)) for change, turn in pairs)
    course.values.extend(state.arrays[_LAST_VALUES].tolist())
    return course


def pack_training(crf: HiddenUnitCRF, contents: Contents) -> None:
    """Put what it takes to go on into a model file."""
    state = crf._training_state()
    if state is not None:
        contents.values["training"] = {
            "trainer": state.trainer,
            "n_done": state.n_done,
            "numbers": state.numbers,
            "arrays": list(state.arrays),
        }
        for name, array in state.arrays.items():
            contents.arrays[_PREFIX + name] = array
    if crf._votes is not None:
        size = sum(part.size for part in parameter_arrays(crf.model_))
        contents.arrays[_VOTES] = np.array(crf._votes.sweeps, np.float32).reshape(-1, size)


def unpack_training(crf: HiddenUnitCRF, contents: Contents) -> None:
    """Take it out again."""
    crf._live, crf._state, crf._votes = None, None, None
    size = sum(part.size for part in parameter_arrays(crf.model_))
    if "training" in contents.values:
        packed = contents.values["training"]
        arrays = {name: contents.arrays[_PREFIX + name] for name in packed["arrays"]}
        numbers = {str(name): float(value) for name, value in packed["numbers"].items()}
        if packed["trainer"] not in _TRAINERS or not int(packed["n_done"]) >= 0:
            raise ValueError("its training is told in a way that this crfx does not know")
        for name, array in arrays.items():
            plain = array.dtype in (np.float32, np.float64) and np.isfinite(array).all()
            if not plain or (array.shape != (size,) and name != _LAST_VALUES):
                raise ValueError(f"the array {name} of its training does not fit")
        crf._state = TrainingState(packed["trainer"], int(packed["n_done"]), numbers, arrays)
    if _VOTES in contents.arrays:
        votes = contents.arrays[_VOTES]
        if votes.ndim != 2 or votes.shape[1] != size or votes.dtype != np.float32:
            raise ValueError("its votes do not fit")
        crf._votes = Votes(list(votes))
