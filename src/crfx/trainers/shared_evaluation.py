"""The evaluation of an objective on the instances of all workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.objectives.base import Evaluation, Objective, PartName
from crfx.objectives.likelihood import Likelihood
from crfx.workers import Workers, agreed, sums

SHARED_BY_PART: dict[str, tuple[str, ...]] = {"edge": ("edge",), "ends": ("start", "end")}
"""Names of scores that all instances share; those of other parts belong to rows."""
COUNTED = "sampled_instances"


def agreed_objective(bind: Callable[[], Objective], batch: Batch) -> Objective:
    """Bind the objective to the data of this worker; all workers raise the error of one.

    A likelihood may overwrite the slopes of its last evaluation: trainers are done with them.
    """
    objective = agreed(bind, lambda _: (batch.n_instances, None))[0]
    if type(objective) is Likelihood:
        objective.room = {}
    return objective


def of_all(
    communicator: Workers, own: Evaluation, parts: Sequence[PartName], n_rows: int
) -> Evaluation:
    """Sum what workers share of their evaluations: the value, and slopes of shared tables.

    Rows keep their own slopes.  Curvatures travel in single precision: of a bound no digit beyond
    is meant.  12 bytes per entry of a table, and 24.
    """
    if communicator.size == 1:
        return own
    names = [name for part in parts for name in SHARED_BY_PART.get(part, ())]
    arrays: dict[str, npt.NDArray[Any]] = {"value": np.array([own.value])}
    if own.mean_gamma is not None or "node" in parts:
        gamma = 0.0 if own.mean_gamma is None else own.mean_gamma
        arrays["gamma"] = np.array([gamma * n_rows, n_rows * (own.mean_gamma is not None)])
    for name in names:
        if name in own.gradient:
            arrays[f"gradient {name}"] = np.asarray(own.gradient[name], np.float64)
        if name in own.curvature:
            arrays[f"curvature {name}"] = np.asarray(own.curvature[name], np.float32)
    found = sums(communicator, arrays)
    mean = own.mean_gamma
    if "gamma" in found and found["gamma"][1]:
        mean = float(found["gamma"][0] / found["gamma"][1])
    return replace(
        own,
        value=float(found["value"][0]),
        gradient=own.gradient | _named(found, "gradient "),
        curvature=own.curvature | _named(found, "curvature "),
        mean_gamma=mean,
    )


def notes_of_all(communicator: Workers, objective: Objective | None) -> dict[str, float]:
    """What an objective notes beside its value, over the instances of all workers.

    Counts (``sampled_instances``) are summed; other notes are means over what is counted, or over
    workers where nothing is.
    """
    own: dict[str, float] | None = getattr(objective, "notes", None)
    if own is None:
        return {}
    parts = communicator.gather(own)
    if len(parts) == 1:
        return dict(own)
    found: dict[str, float] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        entries = [part[name] for part in parts if name in part]
        weights = [part.get(COUNTED, 1.0) for part in parts if name in part]
        found[name] = sum(entries) if name == COUNTED else float(np.average(entries, None, weights))
    return found


def _named(arrays: dict[str, npt.NDArray[Any]], prefix: str) -> dict[str, npt.NDArray[Any]]:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
