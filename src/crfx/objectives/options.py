"""What estimators take as ``objective``: a name, or one of these with settings of its own.

They are settings, kept as they are; `bind` makes the objective for the truth of a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from crfx.inference.sampling import SEED_RANGE
from crfx.objectives.base import Objective
from crfx.objectives.bound_losses import PositionCosts, WholeLosses, bound
from crfx.objectives.candidates import ListedDivergence, ListedExpectedLoss, Source
from crfx.objectives.class_weights import likelihood_of
from crfx.objectives.expected_loss import ExpectedCost
from crfx.objectives.kl import Divergence
from crfx.objectives.labelwise import LabelwiseLikelihood
from crfx.objectives.loss_augmented import AugmentedLikelihood
from crfx.objectives.loss_scaled import loss_scaled
from crfx.objectives.pseudo_likelihood import PseudoLikelihood
from crfx.objectives.task_loss import MOST, TaskLoss
from crfx.objectives.truth import Truth

MOST_LISTED = 10_000_000
"""Candidates, samples and units: more would not fit."""


class ObjectiveOption(Protocol):
    """An objective that is not tied to data yet.

    ``uses_loss`` tells whether a task loss is asked for.  ``curvatures`` are the settings of
    `curvature` that it allows, None for all.  ``weighs_classes`` tells whether it knows weights of
    labels; one that does not say so does not.
    """

    name: ClassVar[str]
    uses_loss: ClassVar[bool]
    curvatures: ClassVar[tuple[str | None, ...] | None]

    def bind(self, truth: Truth, loss: TaskLoss, n_jobs: int | None) -> Objective:
        """The objective for the truth of a batch."""
        ...


@dataclass(frozen=True)
class Likely:
    """The likelihood: "likelihood"."""

    name: ClassVar[str] = "likelihood"
    weighs_classes: ClassVar[bool] = True
    uses_loss: ClassVar[bool] = False
    curvatures: ClassVar[tuple[str | None, ...] | None] = None

    def bind(self, truth: Truth, loss: TaskLoss, n_jobs: int | None) -> Objective:
        """Of labellings."""
        return likelihood_of(truth, n_jobs)


@dataclass(frozen=True)
class Pseudo:
    """Every label given the true ones around it: "pseudo_likelihood"."""

    name: ClassVar[str] = "pseudo_likelihood"
    weighs_classes: ClassVar[bool] = True
    uses_loss: ClassVar[bool] = False
    curvatures: ClassVar[tuple[str | None, ...] | None] = None

    def bind(self, truth: Truth, loss: TaskLoss, n_jobs: int | None) -> Objective:
        """Without sums over labellings."""
        return PseudoLikelihood(truth)


@dataclass(frozen=True)
class Labelwise:
    """The marginal likelihood of every label (Kakade et al. 2002): "labelwise_likelihood"."""

    name: ClassVar[str] = "labelwise_likelihood"
    weighs_classes: ClassVar[bool] = True
    uses_loss: ClassVar[bool] = False
    curvatures: ClassVar[tuple[str | None, ...] | None] = None

    def bind(self, truth: Truth, loss: TaskLoss, n_jobs: int | None) -> Objective:
        """Of positions."""
        return LabelwiseLikelihood(truth, n_jobs)


@dataclass(frozen=True)
class LossAugmented:
    """The likelihood, with every labelling's score raised by ``weight`` times its loss.

    A margin that grows with the loss; exact.  Weight 0 is the likelihood.
    """

    weight: float = 1.0
    name: ClassVar[str] = "loss_augmented"
    weighs_classes: ClassVar[bool] = True
    uses_loss: ClassVar[bool] = True
    curvatures: ClassVar[tuple[str | None, ...] | None] = None

    def __post_init__(self) -> None:
        if not _is_number(self.weight) or not 0 <= self.weight <= MOST:
            raise ValueError(f"weight is {self.weight!r}: it must lie between 0 and {MOST:g}")

    def bind(self, truth: Truth, loss: TaskLoss, n_jobs: int | None) -> Objective:
        """For a loss that is a sum over positions."""
        return AugmentedLikelihood(_costs(self, truth, loss), self.weight, n_jobs)


@dataclass(frozen=True)
class LossScaled:
    """Every labelling's lead over the truth, scaled by its loss.

    Parameters
    ----------
    longest : int
        Instances are summed exactly whose labellings cost no more than so many units, the largest
        of which all costs are multiples: for a Hamming loss, instances of so many positions.  The
        price grows with the length times the square of the largest total.
    n_samples : int
        Labellings by which others are sampled (multiple importance sampling).  ``history_`` tells
        how many instances those are (``sampled_instances``) and the mean of their
        ``effective_sample_size``: small for long instances, and then a warning.
    seed : int
        Of the samples.
    """

    longest: int = 20
    n_samples: int = 100
    seed: int = 0
    name: ClassVar[str] = "loss_scaled"
    uses_loss: ClassVar[bool] = True
    curvatures: ClassVar[tuple[str | None, ...] | None] = ("auto", None)

    def __post_init__(self) -> None:
        _check_whole("longest", self.longest, 0)
        _check_whole("n_samples", self.n_samples, 1)
        _check_whole("seed", self.seed, 0, SEED_RANGE - 1)

    def bind(self, truth: Truth, loss: TaskLoss, n_jobs: int | None) -> Objective:
        """For a loss that is a sum over positions."""
        costs = _costs(self, truth, loss)
        return loss_scaled(costs, self.longest, self.n_samples, self.seed, n_jobs)


@dataclass(frozen=True)
class ExpectedLoss:
    """The loss of a labelling drawn from the model.

    Parameters
    ----------
    candidates : "samples" or "kbest", optional
        Where the loss is of whole labellings ("span_f1", "zero_one"): what it is averaged over;
        None: samples.  For sums over positions the mean is exact, over all labellings.
    n_candidates : int
        How many of them, of each instance.
    seed : int
        Of the samples.
    """

    candidates: Source | None = None
    n_candidates: int = 20
    seed: int = 0
    name: ClassVar[str] = "expected_loss"
    weighs_classes: ClassVar[bool] = True
    uses_loss: ClassVar[bool] = True
    curvatures: ClassVar[tuple[str | None, ...] | None] = None

    def __post_init__(self) -> None:
        _check_candidates(self)

    def bind(self, truth: Truth, loss: TaskLoss, n_jobs: int | None) -> Objective:
        """For either kind of loss."""
        found = _either(self, truth, loss)
        if isinstance(found, PositionCosts):
            return ExpectedCost(found, n_jobs)
        source: Source = self.candidates or "samples"
        return ListedExpectedLoss(found, source, self.n_candidates, self.seed, n_jobs)


@dataclass(frozen=True)
class KL:
    """The divergence of the model from a target that spreads by the loss, exp(-loss / T).

    Parameters
    ----------
    temperature : float
        T.  Towards 0 it is the likelihood; 0.2 gives a mistake exp(-5) of the truth's weight.
    candidates, n_candidates, seed
        As in `ExpectedLoss`: what the target spreads over where the loss is of whole labellings.
    """

    temperature: float = 0.2
    candidates: Source | None = None
    n_candidates: int = 20
    seed: int = 0
    name: ClassVar[str] = "kl"
    uses_loss: ClassVar[bool] = True
    curvatures: ClassVar[tuple[str | None, ...] | None] = None

    def __post_init__(self) -> None:
        if not _is_number(self.temperature) or not 0 < self.temperature < np.inf:
            raise ValueError(f"temperature is {self.temperature!r}: it must be above 0")
        _check_candidates(self)

    def bind(self, truth: Truth, loss: TaskLoss, n_jobs: int | None) -> Objective:
        """For either kind of loss."""
        found = _either(self, truth, loss)
        if isinstance(found, PositionCosts):
            return Divergence(found, self.temperature, n_jobs)
        source: Source = self.candidates or "samples"
        return ListedDivergence(
            found, self.temperature, source, self.n_candidates, self.seed, n_jobs
        )


def _either(option: Any, truth: Truth, loss: TaskLoss) -> PositionCosts | WholeLosses:
    found = bound(loss, truth)
    if isinstance(found, PositionCosts) and option.candidates is not None:
        raise ValueError(
            f"candidates is {option.candidates!r}, but this task_loss is a sum over positions, "
            "exact over all labellings: leave candidates out"
        )
    return found


def _costs(option: Any, truth: Truth, loss: TaskLoss) -> PositionCosts:
    found = bound(loss, truth)
    if not isinstance(found, PositionCosts):
        raise ValueError(
            f'objective "{option.name}" needs a task_loss that is a sum over positions: "hamming" '
            'or a CostMatrix; losses of whole labellings are for "expected_loss" and "kl"'
        )
    return found


def _check_candidates(option: Any) -> None:
    if option.candidates not in (None, "samples", "kbest"):
        raise ValueError(
            f'candidates is {option.candidates!r}: choose one of "samples", "kbest", or None'
        )
    _check_whole("n_candidates", option.n_candidates, 2, MOST_LISTED)
    _check_whole("seed", option.seed, 0, SEED_RANGE - 1)


def _check_whole(name: str, value: Any, least: int, most: int = MOST_LISTED) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise ValueError(
            f"{name} is {value!r}: it must be a whole number between {least} and {most}"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
