"""Figure 1 of Chen et al. (2015): how training converges on handwritten words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from crfx.inference import sum_product
from reproduce.experiments import ocr
from reproduce.experiments.task import Outcome, Task
from reproduce.experiments.training import Part, effort, fit

if TYPE_CHECKING:
    from crfx.estimators.gbcrf import GBCRF

_KINDS: tuple[Literal["exact", "mixing", "dobrushin", "length"], ...] = (
    "exact",
    "mixing",
    "dobrushin",
    "length",
)


@dataclass(frozen=True, slots=True)
class Options:
    """`train` limits the number of training words; gamma is averaged over the `shortest` words."""

    train: int | None = None
    shortest: int = 500


def likelihood(task: Task) -> Outcome:
    """Negative log-likelihood per letter by round, on the training words themselves."""
    train = _train(task)
    # The training set once more as evaluation set: `objective` has penalties, the loss has none.
    estimator = fit(task, train, validation=train)
    history = estimator.history_
    loss = history["eval_metric"]
    return Outcome(
        {"loss": loss[-1], **effort(estimator, train)},
        {"loss": loss, "objective": history["objective"], "halvings": history["halvings"]},
    )


def gamma(task: Task) -> Outcome:
    """Mean gamma of every kind after each round, on the shortest training words.

    Plain means over positions, and labels where gamma depends on them (exact). The model that
    is looked at is one and the same, trained with the curvature of the settings.
    """
    train = _train(task)
    estimator = fit(task, train)
    order = np.argsort([len(word) for word in train.X], kind="stable")
    shortest = train.take(order[: task.options(Options).shortest])
    rounds = [_mean_gammas(estimator, shortest, n) for n in range(1, estimator.n_rounds_ + 1)]
    curves: dict[str, list[float]] = {kind: [means[kind] for means in rounds] for kind in _KINDS}
    ratio = [m / e for m, e in zip(curves["mixing"], curves["exact"], strict=True)]
    figures = {"ratio": max(ratio), "last_ratio": ratio[-1], **effort(estimator, train)}
    return Outcome(figures, {**curves, "ratio": ratio})


def _train(task: Task) -> Part:
    train, _ = ocr.parts("folds", task.fold(ocr.N_FOLDS))
    return train.limited(task.options(Options).train)


def _mean_gammas(estimator: GBCRF, part: Part, n_rounds: int) -> dict[str, float]:
    """Return the mean gamma of every kind, in double precision: exact ones divide by p (1 - p)."""
    from crfx.inputs.passed import Passed, read_input

    problem = estimator.model_.problem(read_input(Passed(part.X)).batch, n_rounds)
    scores = problem.scores
    arrays: dict[str, Any] = {
        name: None if (array := getattr(scores, name)) is None else array.astype(np.float64)
        for name in ("node", "edge", "start", "end")
    }
    means: dict[str, float] = {}
    for kind in _KINDS:
        sums = sum_product(
            offsets=problem.batch.offsets, curvature=kind, edge_marginals=None, **arrays
        )
        assert sums.node_gamma is not None
        means[kind] = float(sums.node_gamma.mean())
    return means
