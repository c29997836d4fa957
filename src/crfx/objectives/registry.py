"""Objectives by name, and the choice that ``objective``, ``task_loss`` and ``curvature`` make.

To add an objective: write its settings and its evaluation in a file, and list it in `SETTINGS`; one
without settings is a `WithoutSettings` in `OBJECTIVES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from crfx.inference.sampling import SEED_RANGE
from crfx.inference.sum_product import ALONE_GAMMA
from crfx.objectives import curvature as curvatures
from crfx.objectives import task_loss as task_losses
from crfx.objectives.base import Objective, Unbound
from crfx.objectives.expected_loss import ExpectedLoss
from crfx.objectives.kl import KL
from crfx.objectives.labelwise import LabelwiseLikelihood
from crfx.objectives.likelihood import likelihood_of
from crfx.objectives.loss_augmented import LossAugmented
from crfx.objectives.loss_scaled import LossScaled
from crfx.objectives.perceptron import perceptron_loss_of
from crfx.objectives.pseudo_likelihood import PseudoLikelihood
from crfx.objectives.task_loss import TaskLoss, WholeLoss
from crfx.objectives.truth import Truth
from crfx.workers import current

PERCEPTRONS = ("perceptron", "large_margin")
"""Trainers with their own loss."""
SEED_STRIDE = 0x9E3779B97F4A7C15
"""Between the seeds of workers: far apart, as others count theirs up by one."""


class WithoutSettings:
    """An objective without settings and task loss; ``make`` (truth, n_jobs) binds it."""

    uses_loss = False
    weighs_classes = True

    def __init__(self, name: str, make: Callable[[Truth, int | None], Objective]) -> None:
        self.name, self._make = name, make

    def bind(self, truth: Truth, loss: TaskLoss, n_jobs: int | None) -> Objective:
        """Return the objective for the truth of a batch."""
        return self._make(truth, n_jobs)


SETTINGS = (LossAugmented(), LossScaled(), ExpectedLoss(), KL())
OBJECTIVES: dict[str, Unbound] = {
    objective.name: objective
    for objective in (
        WithoutSettings("likelihood", likelihood_of),
        WithoutSettings("pseudo_likelihood", lambda truth, _: PseudoLikelihood(truth)),
        WithoutSettings("labelwise_likelihood", LabelwiseLikelihood),
        *SETTINGS,
    )
}
"""Objectives without data, with default settings, by the names that estimators know them by."""


def parse(objective: Any) -> Unbound:
    """Read the estimators' argument ``objective``."""
    if isinstance(objective, str) and objective in OBJECTIVES:
        return OBJECTIVES[objective]
    needed = ("bind", "name", "uses_loss")
    if not isinstance(objective, str | type) and all(hasattr(objective, each) for each in needed):
        return objective  # type: ignore[no-any-return]
    choices = ", ".join(map(repr, OBJECTIVES))
    if isinstance(objective, TaskLoss):
        raise ValueError(f"objective is {objective!r}, a task_loss: choose one of {choices}")
    if any(objective is type(known) for known in SETTINGS):
        name = objective.__name__
        raise ValueError(f"objective is the class {name}: pass one of its kind, {name}()")
    raise ValueError(
        f"objective is {objective!r}: choose one of {choices}, or one of crfx.objectives with "
        "settings of its own, such as KL(temperature=0.1)"
    )


def to_plain(objective: Any) -> Any:
    """Return a name or a dict of settings, for JSON; a user's own is needed in training only."""
    if isinstance(objective, str):
        return objective
    if any(type(objective) is type(known) for known in SETTINGS):
        return {"objective": objective.name, **asdict(objective)}
    return objective.name if isinstance(objective, WithoutSettings) else "likelihood"


def from_plain(value: Any) -> Any:
    """Return what `to_plain` wrote."""
    if not isinstance(value, dict):
        return value
    settings = dict(value)
    objective: Any = OBJECTIVES[settings.pop("objective")]
    return replace(objective, **settings) if settings else objective


@dataclass(frozen=True, eq=False)
class ObjectiveSettings:
    """The arguments of an estimator that say what it lowers, and by which curvature."""

    objective: Any = "likelihood"
    task_loss: Any = None
    curvature: curvatures.CurvatureOption = "auto"
    trainer: str | None = None
    margin: float = 0.0
    class_weight: Any = None
    constraints: Any = None
    n_jobs: int | None = None

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """Pick the settings among all arguments of an estimator, by name."""
        names = [field.name for field in fields(cls) if field.name in arguments]
        return cls(**{name: arguments[name] for name in names})

    def check(self) -> None:
        """Raise ValueError at settings that are invalid, or do not go together."""
        objective, loss = parse(self.objective), task_losses.parse(self.task_loss)
        if self.task_loss is not None and not objective.uses_loss:
            raise ValueError(
                f"task_loss is {self.task_loss!r}, but objective {objective.name!r} knows no task "
                'loss: choose "loss_augmented", "loss_scaled", "expected_loss" or "kl"'
            )
        if self.trainer in PERCEPTRONS and objective.name != "likelihood":
            raise ValueError(
                f"objective is {self.objective!r}, but trainer {self.trainer!r} has a loss of its "
                'own: use "lbfgs" or "sgd"'
            )
        is_whole = objective.uses_loss and isinstance(loss, WholeLoss)
        weighs_classes = not is_whole and getattr(objective, "weighs_classes", False)
        if self.class_weight is not None and not weighs_classes:
            name = repr(objective.name) + (f" with task_loss {self.task_loss!r}" * is_whole)
            raise ValueError(
                f"class_weight is given, but objective {name} is no sum that labels could be "
                "weighed in: leave it out, take another objective, or say with "
                "task_loss=Hamming(weights={label: cost}) what mistakes cost"
            )
        self.curvature_of_steps()

    def curvature_of_steps(self) -> curvatures.Curvature:
        """Return what scales the steps of boosting.

        Constraints tie neighbours so firmly that mixing rates, which look at the worst state
        before, say little: "auto" then is the curvature of labels on their own, and trainers halve
        what would raise the objective.
        """
        objective, chosen = parse(self.objective), curvatures.parse(self.curvature)
        allowed = getattr(objective, "curvatures", None)
        if allowed is not None and self.curvature not in allowed:
            raise ValueError(
                f'curvature is {self.curvature!r}, but objective "{objective.name}" has one of its '
                'own: use "auto", or None for first order'
            )
        if self.curvature == "auto" and self.constraints is not None:
            return curvatures.Curvature(None, ALONE_GAMMA)
        return chosen

    @property
    def is_first_order(self) -> bool:
        """Whether boosting takes first-order steps: curvature 1, nothing regularised."""
        return self.curvature_of_steps().first_order

    def bind(self, truth: Truth) -> Objective:
        """Return the objective for the truth of a batch.

        One that draws samples draws others on every worker, by its rank: rows count from 0 on each
        of them.  So samples depend on how instances are shared out.
        """
        objective = parse(self.objective)
        rank = current().rank
        if rank and isinstance(objective, LossScaled | ExpectedLoss | KL):
            seed = (objective.seed + rank * SEED_STRIDE) % SEED_RANGE
            objective = replace(objective, seed=seed)
        return objective.bind(truth, task_losses.parse(self.task_loss), self.n_jobs)

    def bind_for_trainer(self, truth: Truth) -> Objective:
        """Return what the trainer lowers: the objective, but perceptrons have their own loss."""
        if self.trainer in PERCEPTRONS:
            margin = self.margin if self.trainer == "large_margin" else 0.0
            return perceptron_loss_of(truth, margin, self.n_jobs)
        return self.bind(truth)
