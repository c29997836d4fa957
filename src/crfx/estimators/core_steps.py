"""Chains and steps as the core takes them, for all models whose steps it can take."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfx import _core
from crfx.inference.short_chains import has_short_chains
from crfx.model import Model
from crfx.objectives.base import Objective
from crfx.objectives.perceptron import PerceptronLoss
from crfx.objectives.truth import Truth
from crfx.trainers.sgd import SMALLEST_SHRINKAGE, Steps


def masks_fit(model: Model, truth: Truth) -> bool:
    """Whether the core can honour the constraints in its steps: not in chains too short for edges.

    (They are a problem of order 1 of their own, see `crfx.inference.short_chains`.)
    """
    has_pairs = model.mask is not None and model.mask.pair is not None
    return not has_pairs or not has_short_chains(truth.batch, model.order)


def core_chains(model: Model, truth: Truth) -> Any:
    """The chains of a batch with their labels, and which tables there are.

    The core knows weights of instances, not of labels: objectives with these are of other types.
    """
    assert truth.class_weights is None
    ends = {} if model.ends is None else model.ends.tables
    masks: dict[str, Any] = {} if model.mask is None else dict(model.mask.tables(model.order))
    if truth.batch.allowed is not None:
        masks["node"] = np.where(truth.batch.allowed, np.float32(0), np.float32(-np.inf))
    types: Any = truth.batch.edge_types if model.n_types is not None else None
    offsets: Any = truth.batch.offsets
    return _core.Chains(
        offsets,
        types,
        np.ascontiguousarray(truth.labels, np.int32),
        truth.weights,
        n_labels=model.n_labels,
        order=model.order,
        n_types=model.n_types or 1,
        has_edge=model.edge is not None,
        has_start="start" in ends,
        has_end="end" in ends,
        **{
            f"{name}_mask": masks[name].reshape(-1) if name in masks else None
            for name in ("node", "edge", "start", "end")
        },
    )


def core_steps(steps: Steps, loss: Objective) -> Any:
    """Steps that lower a loss: a likelihood, or that of a perceptron."""
    return _core.SweepSteps(
        np.ascontiguousarray(steps.order, np.int64),
        batch_size=steps.batch_size,
        first=steps.first,
        step=steps.step,
        period=steps.period or 0.0,
        penalty=steps.penalty,
        smallest_shrinkage=SMALLEST_SHRINKAGE,
        counts=steps.counts,
        perceptron=isinstance(loss, PerceptronLoss),
        margin=loss.margin if isinstance(loss, PerceptronLoss) else 0.0,
    )
