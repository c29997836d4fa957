"""The arguments ``objective``, ``task_loss`` and ``curvature`` of estimators, read together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crfx.estimators.class_weight import check_class_weight
from crfx.inference.sampling import SEED_RANGE
from crfx.inference.sum_product import ALONE_GAMMA
from crfx.objectives import curvature as curvatures
from crfx.objectives import options, task_loss
from crfx.objectives.base import Objective
from crfx.objectives.truth import Truth
from crfx.workers import current

SEED_STRIDE = 0x9E3779B97F4A7C15
"""Between the seeds of workers: far apart, as others count theirs up by one."""
PERCEPTRONS = ("perceptron", "large_margin")


def check_objective(crf: Any) -> None:
    """Raise ValueError where the arguments make no sense, or no sense together."""
    option = options.parse(crf.objective)
    task_loss.parse(crf.task_loss)
    if crf.task_loss is not None and not option.uses_loss:
        raise ValueError(
            f"task_loss is {crf.task_loss!r}, but objective {option.name!r} knows no task loss: "
            'choose "loss_augmented", "loss_scaled", "expected_loss" or "kl"'
        )
    trainer = getattr(crf, "trainer", None)
    if trainer in PERCEPTRONS and option.name != "likelihood":
        raise ValueError(
            f"objective is {crf.objective!r}, but trainer {trainer!r} has a loss of its own: use "
            '"lbfgs" or "sgd"'
        )
    check_class_weight(crf.class_weight)
    if crf.class_weight is not None:
        _check_weighs_classes(crf, option)
    if hasattr(crf, "curvature"):
        curvature_of(crf)


def _check_weighs_classes(crf: Any, option: options.ObjectiveOption) -> None:
    """Raise ValueError where the objective knows no weights of labels."""
    whole = option.uses_loss and isinstance(task_loss.parse(crf.task_loss), task_loss.WholeLoss)
    if whole or not getattr(option, "weighs_classes", False):
        name = f"{option.name!r} with task_loss {crf.task_loss!r}" if whole else f"{option.name!r}"
        raise ValueError(
            f"class_weight is given, but objective {name} is no sum that labels could be weighed "
            "in: leave it out, take another objective, or say with task_loss=Hamming(weights="
            "{label: cost}) what mistakes cost"
        )


def curvature_of(crf: Any) -> curvatures.Curvature:
    """What the steps of a boosted estimator are scaled by, given its objective.

    Constraints tie neighbours so firmly that mixing rates, which look at the worst state before,
    say little: "auto" then is the curvature of labels on their own, and trainers halve what would
    raise the objective.
    """
    option, wanted = options.parse(crf.objective), crf.curvature
    found = curvatures.parse(wanted)
    if wanted == "auto" and crf.constraints is not None:
        found = curvatures.Curvature(None, ALONE_GAMMA)
    allowed = getattr(option, "curvatures", None)
    if allowed is not None and wanted not in allowed:
        raise ValueError(
            f'curvature is {wanted!r}, but objective "{option.name}" has one of its own: use '
            '"auto", or None for first order'
        )
    return found


def is_first_order(crf: Any) -> bool:
    """Whether a boosted estimator takes first-order steps: curvature 1, nothing regularised."""
    return curvature_of(crf).first_order


def bound_objective(crf: Any, truth: Truth) -> Objective:
    """The objective of an estimator for the truth of a batch."""
    loss = task_loss.parse(crf.task_loss)
    option: options.ObjectiveOption = _with_own_draws(options.parse(crf.objective))
    return option.bind(truth, loss, crf.n_jobs)


def _with_own_draws(option: Any) -> Any:
    """Where an objective draws samples, let every worker draw others: by rows, of which all count
    from 0.  What is drawn depends on how instances are shared out, then.
    """
    rank = current().rank
    if rank and type(option) in options.OPTIONS.values() and hasattr(option, "seed"):
        return replace(option, seed=(option.seed + rank * SEED_STRIDE) % SEED_RANGE)
    return option
