"""How often a step has to be halved, by curvature, depth and shrinkage, on handwritten words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from crfx.objectives.curvature import LEAST_CURVATURE
from crfx.objectives.likelihood import Likelihood, Slopes, Sums
from reproduce.experiments import ocr
from reproduce.experiments.task import Outcome, Task
from reproduce.experiments.training import fit

if TYPE_CHECKING:
    from crfx.objectives.task_loss import TaskLoss
    from crfx.objectives.truth import Truth

DEPTHS = (4, 8, 12)
STEPS = (0.3, 1.0)


@dataclass(frozen=True, slots=True)
class Options:
    """`residuals`: node curvature is gamma / 2 |p - mu| in place of gamma p (1 - p).

    `train` limits the number of words.
    """

    residuals: bool = False
    train: int | None = None


def run(task: Task) -> Outcome:
    """Halvings and the last loss at every depth and shrinkage; words outside a fold."""
    options = task.options(Options)
    train, _ = ocr.parts("folds", task.fold(ocr.N_FOLDS))
    train = train.limited(options.train)
    objective = {"objective": Residual()} if options.residuals else {}
    n_letters = sum(map(len, train.X))
    figures: dict[str, float] = {}
    seconds: list[float] = []
    for depth in DEPTHS:
        for step in STEPS:
            settings = {**task.settings, **objective, "max_depth": depth, "learning_rate": step}
            history = fit(replace(task, settings=settings), train).history_
            name = f"depth_{depth}_step_{step}"
            figures[f"halvings_{name}"] = float(sum(history["halvings"]))
            figures[f"rises_{name}"] = float(np.sum(np.diff(history["objective"]) > 0))
            figures[f"objective_{name}"] = history["objective"][-1] / n_letters
            seconds += history["seconds"]
    rises = sum(value for name, value in figures.items() if name.startswith("rises_"))
    figures |= {"rises": rises, "rounds": task.settings["n_estimators"]}
    return Outcome({**figures, "seconds_per_round": float(np.median(seconds))})


class ResidualLikelihood(Likelihood):
    """The likelihood with node curvature gamma / 2 |p - mu|, which does not vanish where the model
    is sure and wrong: no leaf then moves a score by more than 2 / gamma.
    """

    def _node(self, at: Sums) -> Slopes:
        assert at.curvature is not None
        gamma = at.free.node_gamma
        gradient, _ = super()._node(at)
        curved = np.abs(gradient["node"]) * np.float32(at.curvature.factor / 2)
        if gamma is not None:
            curved *= gamma.reshape(gamma.shape + (1,) * (curved.ndim - gamma.ndim))
        return gradient, {"node": np.maximum(curved, np.float32(LEAST_CURVATURE))}


class Residual:
    """The argument `objective` of an estimator that stands for this likelihood."""

    name = "likelihood"
    uses_loss = False

    def bind(self, truth: Truth, loss: TaskLoss, n_jobs: int | None) -> ResidualLikelihood:
        """Return the objective for the truth of a batch."""
        return ResidualLikelihood(truth, n_jobs)
