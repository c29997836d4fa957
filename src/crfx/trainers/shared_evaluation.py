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
    communicator: Workers, local: Evaluation, parts: Sequence[PartName], n_rows: int
) -> Evaluation:
    """Sum what workers share of their evaluations: the value, and slopes of shared tables.

    Rows keep their own slopes.  Curvatures travel in single precision: of a bound no digit beyond
    is meant.  12 bytes per entry of a table, and 24.
    """
    if communicator.size == 1:
        return local
    names = [name for part in parts for name in SHARED_BY_PART.get(part, ())]
    arrays: dict[str, npt.NDArray[Any]] = {"value": np.array([local.value])}
    if local.mean_gamma is not None or "node" in parts:
        gamma = 0.0 if local.mean_gamma is None else local.mean_gamma
        arrays["gamma"] = np.array([gamma * n_rows, n_rows * (local.mean_gamma is not None)])
    for name in names:
        if name in local.gradient:
            arrays[f"gradient {name}"] = np.asarray(local.gradient[name], np.float64)
        if name in local.curvature:
            arrays[f"curvature {name}"] = np.asarray(local.curvature[name], np.float32)
    totals = sums(communicator, arrays)
    mean = local.mean_gamma
    if "gamma" in totals and totals["gamma"][1]:
        mean = float(totals["gamma"][0] / totals["gamma"][1])
    return replace(
        local,
        value=float(totals["value"][0]),
        gradient=local.gradient | _named(totals, "gradient "),
        curvature=local.curvature | _named(totals, "curvature "),
        mean_gamma=mean,
    )


def notes_of_all(communicator: Workers, objective: Objective | None) -> dict[str, float]:
    """Return what an objective notes beside its value, over the instances of all workers.

    Counts (``sampled_instances``) are summed; other notes are means over what is counted, or over
    workers where nothing is.
    """
    local: dict[str, float] | None = getattr(objective, "notes", None)
    if local is None:
        return {}
    parts = communicator.gather(local)
    if len(parts) == 1:
        return dict(local)
    notes: dict[str, float] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        entries = [part[name] for part in parts if name in part]
        weights = [part.get(COUNTED, 1.0) for part in parts if name in part]
        notes[name] = sum(entries) if name == COUNTED else float(np.average(entries, None, weights))
    return notes


def _named(arrays: dict[str, npt.NDArray[Any]], prefix: str) -> dict[str, npt.NDArray[Any]]:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
