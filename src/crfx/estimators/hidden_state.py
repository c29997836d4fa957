"""Where the training of a HiddenUnitCRF stood: to go on as if it had never ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crfx.estimators.file_values import number, whole
from crfx.estimators.herding import Votes, grown
from crfx.estimators.model_parameters import parameter_arrays
from crfx.estimators.more_labels import widened
from crfx.io.model_file import Contents
from crfx.model import Model
from crfx.potentials.hidden_unit import HiddenUnitFunction
from crfx.scores import IntArray
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

    def copied(self) -> TrainingState:
        """As it is now: the arrays may be moved on."""
        return replace(self, arrays={name: array.copy() for name, array in self.arrays.items()})

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


def places_in(model: Model, old: Model, codes: IntArray) -> IntArray:
    """(parameters,) where those of a model with hidden units are in one with fewer labels, of which
    k is label ``codes[k]`` now; -1 for new ones.
    """
    node, before = model.node, old.node
    assert isinstance(node, HiddenUnitFunction)
    assert isinstance(before, HiddenUnitFunction)
    found, begin = [node.shape.places_in(before.shape, codes)], before.shape.size
    for table in parameter_arrays(old)[1:]:
        n_axes = table.ndim if table.ndim == 1 else old.order + 1
        numbers = 1 + begin + np.arange(table.size).reshape(table.shape)
        found.append(widened(numbers, n_axes, codes, model.n_labels).reshape(-1) - 1)
        begin += table.size
    return np.concatenate(found)


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
    pairs = [(state.arrays[f"change{k}"], state.arrays[f"turn{k}"]) for k in _pairs(state)]
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
        contents.values["n_votes"] = len(crf._votes.sweeps)
        contents.arrays[_VOTES] = np.array(crf._votes.sweeps, np.float32).reshape(-1, size)


def unpack_training(crf: HiddenUnitCRF, contents: Contents) -> None:
    """Take it out again."""
    crf._live, crf._state, crf._votes = None, None, None
    size = sum(part.size for part in parameter_arrays(crf.model_))
    if "training" in contents.values:
        packed = contents.values["training"]
        arrays = {name: contents.arrays[_PREFIX + name] for name in packed["arrays"]}
        told = packed["numbers"]
        numbers = {name: float(number(value, f"its {name}")) for name, value in told.items()}
        n_done = whole(packed, "n_done")
        if packed["trainer"] not in _TRAINERS:
            raise ValueError("its training is told in a way that this crfx does not know")
        crf._state = TrainingState(packed["trainer"], n_done, numbers, arrays)
        _check(crf._state, size)
    # Files of the first days do not say how many votes they hold.
    if "n_votes" in contents.values or _VOTES in contents.arrays:
        votes = contents.arrays[_VOTES]
        n_votes = whole({"n_votes": len(votes)} | contents.values, "n_votes")
        if votes.shape != (n_votes, size) or votes.dtype != np.float32:
            raise ValueError("its votes do not fit")
        if not np.isfinite(votes).all():
            raise ValueError("its votes are not all finite")
        crf._votes = Votes(list(votes))


def _check(state: TrainingState, size: int) -> None:
    """Raise where a training could not go on: not later, when it is to."""
    numbers = state.numbers
    if state.trainer == "lbfgs":
        n_pairs = numbers["memory"]
        if n_pairs not in range(lbfgs.MEMORY + 1):
            raise ValueError(f"its training remembers {n_pairs} steps")
        pairs = {f"{kind}{k}" for k in _pairs(state) for kind in ("change", "turn")}
        names, optional, known = {_LAST_VALUES} | pairs, {"at"}, {"far", "memory"}
    else:
        names, optional = {"values", "sum"}, set()
        known = {"product", "steps", "n_counted", "step"}
        if not (0 < numbers["product"] <= 1 and numbers["step"] > 0):
            raise ValueError("its training has an impossible step")
        if not (numbers["steps"] >= 0 and numbers["n_counted"] in range(state.n_done + 1)):
            raise ValueError("its training counts what is not there")
    if not names <= set(state.arrays) <= names | optional or set(numbers) != known:
        raise ValueError("its training lacks what it takes to go on")
    if not np.isfinite(list(numbers.values())).all():
        raise ValueError("its training has numbers that are not finite")
    for name, array in state.arrays.items():
        fits = array.ndim == 1 if name == _LAST_VALUES else array.shape == (size,)
        kinds = (np.float32, np.float64) if name == "values" else (np.float64,)
        plain = array.dtype in kinds and np.isfinite(array).all()
        if not fits or not plain:
            raise ValueError(f"the array {name} of its training does not fit")
    if any(not state.arrays[f"change{k}"] @ state.arrays[f"turn{k}"] > 0 for k in _pairs(state)):
        raise ValueError("its training remembers steps that it cannot have taken")


def _pairs(state: TrainingState) -> range:
    return range(int(state.numbers.get("memory", 0)))
