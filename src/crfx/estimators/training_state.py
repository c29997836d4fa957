"""Training states in model files."""

from __future__ import annotations

import numpy as np

from crfx.estimators.file_values import number, whole
from crfx.io.model_file import Contents
from crfx.trainers import lbfgs
from crfx.trainers.base import BEST, ONLY_WHILE_IT_LASTS, VELOCITY, TrainingState

_PREFIX = "training."
_LAST_VALUES = "last_values"
_OF_LBFGS = {"far", "memory"}
_SINCE_DOUBLE = {"fine"}
"""Files of L-BFGS that had single precision only lack it."""
_OF_SWEEPS = {"product", "steps", "n_counted", "step"}
_TRAINERS = ("lbfgs", "sgd", "perceptron", "large_margin")


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
        known, optional = _OF_LBFGS, ONLY_WHILE_IT_LASTS | _SINCE_DOUBLE
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
    names, optional = {"values", "sum"}, {BEST, VELOCITY}
    if state.trainer == "lbfgs":
        pairs = {f"{kind}{k}" for k in _pairs(state) for kind in ("change", "turn")}
        names, optional = {_LAST_VALUES} | pairs, {BEST, "at"}
    if not names <= set(state.arrays) <= names | optional:
        raise ValueError("its training lacks what it takes to go on")
    for name, array in state.arrays.items():
        fits = array.ndim == 1 if name == _LAST_VALUES else array.shape == (size,)
        kinds = (np.float32, np.float64) if name in ("values", BEST, VELOCITY) else (np.float64,)
        plain = array.dtype in kinds and np.isfinite(array).all()
        if not fits or not plain:
            raise ValueError(f"the array {name} of its training does not fit")
    if any(not state.arrays[f"change{k}"] @ state.arrays[f"turn{k}"] > 0 for k in _pairs(state)):
        raise ValueError("its training remembers steps that it cannot have taken")


def _pairs(state: TrainingState) -> range:
    return range(int(state.numbers.get("memory", 0)))
