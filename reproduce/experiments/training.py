"""Training and evaluation of the estimator of a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crfx.metrics import token_accuracy
from crfx.trainers.induction import FeatureInduction
from reproduce.experiments.task import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from crfx.estimators.labelling import LabellingEstimator

_SEED = 0  # of subsets and validation parts; the estimator's own is its random_state


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """Instances with their labels; with `parents` they are trees."""

    X: Any  # a list, or one seen through a template
    y: list[Any]
    parents: list[NDArray[np.int64]] | None = None
    edge_types: list[NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, instances: NDArray[np.int64]) -> Part:
        """Return some of the instances, in the given order."""
        lists = (self.X, self.y, self.parents, self.edge_types)
        return Part(*(None if each is None else [each[i] for i in instances] for each in lists))  # type: ignore[arg-type]

    def limited(self, n_instances: int | None) -> Part:
        """Return a fixed random subset of limited size; None: all."""
        if n_instances is None or n_instances >= len(self):
            return self
        chosen = np.random.default_rng(_SEED).permutation(len(self))[:n_instances]
        return self.take(np.sort(chosen))

    def hold_out(self, share: float) -> tuple[Part, Part | None]:
        """Return the training part and a random validation part, or None if its share is 0."""
        if not 0 <= share < 1:
            raise ValueError(f"validation is {share}: it must be 0 or more and below 1")
        n_held = round(share * len(self))
        if not n_held:
            return self, None
        shuffled = np.random.default_rng(_SEED).permutation(len(self))
        return self.take(np.sort(shuffled[n_held:])), self.take(np.sort(shuffled[:n_held]))

    @property
    def structure(self) -> dict[str, Any]:
        """Return the keyword arguments of `fit` and `predict` for the structure."""
        named = {"parents": self.parents, "edge_types": self.edge_types}
        return {name: value for name, value in named.items() if value is not None}


def fit(
    task: Task,
    train: Part,
    validation: Part | None = None,
    init_model: Any = None,
) -> Any:
    """Train the estimator that the settings name, by default a GBCRF.

    `validation` is watched, for early stopping or for curves. Figures taken on it are no test: a
    table that shows them says so.
    """
    settings = dict(task.settings)
    name = settings.pop("estimator", "GBCRF")
    kind = _estimator(name)
    known = kind().get_params()
    if unknown := [argument for argument in settings if argument not in known]:
        raise ValueError(f"{name} has no argument {unknown[0]!r}")
    settings |= {"n_jobs": task.n_jobs, "verbose": task.verbose}
    if isinstance(induction := settings.get("feature_induction"), dict):
        settings["feature_induction"] = FeatureInduction(**induction)
    watched = None
    if validation is not None:
        watched = {"X": validation.X, "y": validation.y, **validation.structure}
    return kind(**settings).fit(
        train.X, train.y, **train.structure, eval_set=watched, init_model=init_model
    )


def _estimator(name: str) -> Any:
    from crfx.estimators.gbcrf import GBCRF
    from crfx.estimators.hidden_unit import HiddenUnitCRF
    from crfx.estimators.linear import LinearCRF
    from crfx.estimators.treecrf import TreeCRF

    known = {kind.__name__: kind for kind in (GBCRF, HiddenUnitCRF, LinearCRF, TreeCRF)}
    if name not in known:
        raise ValueError(f"there is no estimator {name!r}: choose one of {', '.join(known)}")
    return known[name]


def predict(estimator: LabellingEstimator, part: Part) -> list[Any]:
    """Label the instances."""
    labels: list[Any] = estimator.predict(part.X, **part.structure)
    return labels


def accuracy(estimator: LabellingEstimator, part: Part) -> float:
    """Share of positions with the right label, in percent."""
    return 100 * token_accuracy(part.y, predict(estimator, part))


def effort(estimator: Any, train: Part, validation: Part | None = None) -> dict[str, float]:
    """Figures every experiment gives: rounds kept or iterations, time, halved steps, size of data.

    With a validation part also the metric on it, by which settings may be compared.
    """
    history = estimator.history_
    watched = {}
    rounds = estimator.n_rounds_ if hasattr(estimator, "n_rounds_") else estimator.n_iter_
    if validation is not None and rounds:
        watched = {"validation_metric": history["eval_metric"][estimator.best_iteration_]}
    return {
        **watched,
        "rounds": rounds,
        # The median leaves out the rounds in which the machine did something else.
        "seconds_per_round": float(np.median(history["seconds"])) if history else 0.0,
        "halvings": float(sum(history.get("halvings", ()))),
        "train_instances": len(train),
        "train_positions": sum(map(len, train.y)),
    }
