"""Pre-training of hidden units: without edges, or by contrastive divergence (Hinton 2002).

The latter trains a restricted Boltzmann machine over features and labels (x, y) with the energy of
van der Maaten et al. (2011), -(x W z + z V y + b z + c y + d x), by one step of Gibbs sampling
(CD-1).  Its W, b, V, c are where the training of a hidden-unit CRF may begin.  Features that are
all 0 or 1 are binary units, those that are all -1 or 1 are spins, any other are normal with
variance 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.model.flat_parameters import set_weights
from crfx.model.model import Model
from crfx.objectives.likelihood import likelihood_of
from crfx.objectives.truth import UNKNOWN
from crfx.potentials.hidden_unit import HiddenShape, HiddenUnitFunction
from crfx.potentials.numbers import as_numbers
from crfx.trainers.epochs import EpochSettings, HiddenEpochs
from crfx.trainers.parametric import ParametricTask
from crfx.trainers.sgd import AveragingWorkers

Array32 = npt.NDArray[np.float32]

ROWS_PER_STEP = 100
STEP = 0.01
MOMENTUM = 0.5


def pretrain(
    model: Model, task: ParametricTask, settings: EpochSettings, kind: str, n_epochs: int
) -> None:
    """Train the hidden units of a model: ``kind`` is "discriminative" or "contrastive"."""
    if kind == "contrastive":
        _pretrain_by_contrast(model, task, n_epochs, settings.seed)
        return
    alone = Model(1, model.n_labels, model.node, is_forest=model.is_forest)
    alone.base, alone.mask = model.base, model.mask
    n_jobs = task.n_jobs  # not through the task: a circle would hold the features
    task = replace(task, bind=lambda truth: likelihood_of(truth, n_jobs))
    settings = replace(settings, step=None, burn_in=n_epochs // 2, block_steps="equal")
    trainer = HiddenEpochs(alone, task, settings)
    trainer.begin()
    for number in range(n_epochs):
        parameters = trainer.epoch(number)
    set_weights(alone, parameters.average())


def _pretrain_by_contrast(model: Model, task: ParametricTask, n_epochs: int, seed: int) -> None:
    X, truth = as_numbers(task.truth.batch.X), task.truth
    node = cast("HiddenUnitFunction", model.node)
    if sparse.issparse(X):
        raise ValueError(
            'pretrain="contrastive" draws all features anew in every step: X must be dense'
        )
    weights = np.ones(len(X), np.float32)
    if truth.position_weights is not None:
        weights = truth.position_weights.astype(np.float32)
    used = (truth.labels != UNKNOWN) & (weights > 0)
    contrastive_divergence(
        X[used], truth.labels[used], weights[used], node.shape, node.weights, n_epochs, seed
    )


def contrastive_divergence(
    X: Array32,
    codes: npt.NDArray[np.int64],
    row_weights: Array32,
    shape: HiddenShape,
    values: Array32,
    n_sweeps: int,
    seed: int,
) -> None:
    """Train ``values``, laid out as `HiddenShape` says, in place.

    X is (rows, features), dense; ``codes`` (rows,) are labels, ``row_weights`` (rows,) how much
    a row counts.  O(rows features units) an epoch.  Workers that train together continue with the
    mean of their parameters after every epoch.
    """
    workers = AveragingWorkers.of_all(len(X))
    parts = shape.split(values)
    names = ("weights", "bias", "to_label", "constant")
    visible = np.zeros(shape.n_features, np.float32)
    moving = [*(parts[name] for name in names), visible]
    speed = [np.zeros_like(part) for part in moving]
    activate = _VisibleUnits(_kind_of_all(workers.communicator.gather(_kind(X))))
    random = np.random.default_rng(workers.own_seed(seed))
    for _ in range(n_sweeps):
        order = random.permutation(len(X))
        for begin in range(0, len(order), ROWS_PER_STEP):
            rows = order[begin : begin + ROWS_PER_STEP]
            labels = np.eye(shape.n_labels, dtype=np.float32)[codes[rows]]
            slopes = _slopes(X[rows], labels, row_weights[rows], moving, activate, random)
            for part, pace, slope in zip(moving, speed, slopes, strict=True):
                pace *= MOMENTUM
                pace += (STEP / len(rows)) * slope
                part += pace
        workers.agree_on(moving)


def _slopes(
    x: Array32,
    y: Array32,
    weights: Array32,
    parameters: list[Array32],
    activate: _VisibleUnits,
    random: np.random.Generator,
) -> list[Array32]:
    """Return the expectation under the data minus that after one step of Gibbs sampling."""
    W, b, V, c, d = parameters
    expected = _sigmoid(x @ W + y @ V.T + b)
    units = _toss(expected, random)
    fancied = activate(units @ W.T + d, random)
    scores = units @ V + c
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    drawn = (chances.cumsum(axis=1) < random.random((len(x), 1))).sum(axis=1)
    label = np.eye(y.shape[1], dtype=np.float32)[np.minimum(drawn, y.shape[1] - 1)]
    then = _sigmoid(fancied @ W + label @ V.T + b)
    counts = weights[:, None]
    return [
        x.T @ (counts * expected) - fancied.T @ (counts * then),
        (counts * (expected - then)).sum(axis=0),
        (counts * expected).T @ y - (counts * then).T @ label,
        (counts * (y - label)).sum(axis=0),
        (counts * (x - fancied)).sum(axis=0),
    ]


class _VisibleUnits:
    """Draws features from their inputs."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, inputs: Array32, random: np.random.Generator) -> Array32:
        if self.kind == "binary":
            return _toss(_sigmoid(inputs), random)
        if self.kind == "spins":
            return 2 * _toss(_sigmoid(2 * inputs), random) - 1
        return inputs + random.standard_normal(inputs.shape, np.float32)


def _kind(X: Array32) -> str | None:
    """Return the kind of visible units that suits the features; None if there are no rows."""
    if not len(X):
        return None
    if np.isin(X, (0, 1)).all():
        return "binary"
    return "spins" if (np.abs(X) == 1).all() else "normal"


def _kind_of_all(kinds: Sequence[str | None]) -> str:
    """Return one kind for the rows of all workers."""
    asked = {kind for kind in kinds if kind is not None}
    return asked.pop() if len(asked) == 1 else "normal"


def _sigmoid(x: Array32) -> Array32:
    values: Array32 = (0.5 * (1 + np.tanh(0.5 * x))).astype(np.float32)
    return values


def _toss(chances: Array32, random: np.random.Generator) -> Array32:
    return (random.random(chances.shape, np.float32) < chances).astype(np.float32)
