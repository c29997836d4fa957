"""Training states in model files."""

from __future__ import annotations

import numpy as np

from crfx.state import State, to_numbers
from crfx.trainers.base import BEST, ONLY_WHILE_IT_LASTS, VELOCITY, TrainingState
from crfx.trainers.lbfgs import MEMORY

_LBFGS_NUMBERS = {"far", "memory"}
_LBFGS_OPTIONAL = ONLY_WHILE_IT_LASTS | {"fine"}
"""Files of L-BFGS that had single precision only lack ``fine``."""
_SWEEP_NUMBERS = {"product", "steps", "n_counted", "step"}
_SWEEP_ARRAYS = {"values", "sum"}
_TRAINERS = ("lbfgs", "sgd", "perceptron", "large_margin")
_UNKNOWN = "its training is told in a way that this crfx does not know"
_INCOMPLETE = "its training lacks what it takes to go on"
_MISCOUNTED = "its training counts what is not there"


def training_to_state(training: TrainingState, state: State) -> None:
    """Write the training of parameters."""
    state.values["training"] = {
        "trainer": training.trainer,
        "n_done": training.n_done,
        "numbers": training.numbers,
        "arrays": list(training.arrays),
    }
    for name, array in training.arrays.items():
        state.put(f"training.{name}", array)


def training_from_state(state: State, size: int) -> TrainingState | None:
    """Read the training of ``size`` parameters, None if there is none; raise ValueError if it
    cannot be resumed.
    """
    if "training" not in state.values:
        return None
    nested = state.nested(state.values["training"], "training.")
    arrays = {name: nested.array(name) for name in nested.values["arrays"]}
    read, n_done = to_numbers(nested.values["numbers"]), nested.whole("n_done")
    if nested.values["trainer"] not in _TRAINERS:
        raise ValueError(_UNKNOWN)
    training = TrainingState(nested.values["trainer"], n_done, read, arrays)
    if training.trainer == "lbfgs":
        _check_lbfgs(training)
    else:
        _check_names(training, _SWEEP_NUMBERS, set(), _SWEEP_ARRAYS, {BEST, VELOCITY})
        _check_sweeps(read)
    for name, array in arrays.items():
        fits = array.ndim == 1 if name == "last_values" else array.shape == (size,)
        kinds = (np.float32, np.float64) if name in ("values", BEST, VELOCITY) else (np.float64,)
        if not fits or array.dtype not in kinds or not np.isfinite(array).all():
            raise ValueError(f"the array {name} of its training does not fit")
    for k in range(int(read.get("memory", 0))):
        if not arrays[f"change{k}"] @ arrays[f"turn{k}"] > 0:
            raise ValueError("its training remembers steps that it cannot have taken")
    return training


def _check_lbfgs(training: TrainingState) -> None:
    read = training.numbers
    if read["memory"] not in range(MEMORY + 1):
        raise ValueError(f"its training remembers {read['memory']} steps")
    pairs = {f"{kind}{k}" for k in range(int(read["memory"])) for kind in ("change", "turn")}
    arrays = {"last_values"} | pairs
    _check_names(training, _LBFGS_NUMBERS, _LBFGS_OPTIONAL, arrays, {BEST, "at"})
    if not all(read.get(name, 0.0) >= 0 for name in _LBFGS_OPTIONAL):
        raise ValueError(_MISCOUNTED)


def _check_names(
    training: TrainingState,
    needed: set[str],
    optional: set[str],
    needed_arrays: set[str],
    optional_arrays: set[str],
) -> None:
    for names, least, more in (
        (set(training.numbers), needed, optional),
        (set(training.arrays), needed_arrays, optional_arrays),
    ):
        if wrong := (least - names) | (names - least - more):
            raise ValueError(f"{_INCOMPLETE}: {', '.join(sorted(wrong))}")
    if not np.isfinite(list(training.numbers.values())).all():
        raise ValueError("its training has numbers that are not finite")


def _check_sweeps(read: dict[str, float]) -> None:
    if not (0 < read["product"] <= 1 and read["step"] > 0):
        raise ValueError("its training has an impossible step")
    if not (read["steps"] >= 0 and read["n_counted"] >= 0 == read["n_counted"] % 1):
        raise ValueError(_MISCOUNTED)


# Sweeps of a ranking: numbers and arrays alone, under a name of their own.


def sweeps_to_state(training: TrainingState, state: State, name: str) -> None:
    """Write the epochs of a ranking under ``name``."""
    state.values[name] = training.numbers
    for key, array in training.arrays.items():
        state.put(f"{name}.{key}", array)


def sweeps_from_state(state: State, name: str, n_features: int) -> TrainingState | None:
    """Read the epochs of a ranking; None if there are none."""
    if name not in state.values:
        return None
    read = to_numbers(state.values[name])
    if set(read) != _SWEEP_NUMBERS or not np.isfinite(list(read.values())).all():
        raise ValueError(_UNKNOWN)
    _check_sweeps(read)
    arrays = {
        key: state.array(f"{name}.{key}", np.float64, (n_features,)) for key in ("values", "sum")
    }
    return TrainingState("sgd", 0, read, arrays)
