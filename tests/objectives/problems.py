"""Problems with a truth for the tests of objectives, and derivatives of objectives."""

from dataclasses import replace
from functools import partial

import numpy as np

from crfx.inference.problem import prepare
from crfx.objectives import KL, LossAugmented, LossScaled, registry
from crfx.objectives.perceptron import perceptron_loss_of
from crfx.objectives.task_loss import Hamming
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.testing import central_differences, enumerated_objectives, make_problem

EXACT = {"rtol": 1e-9, "atol": 1e-9}
STRUCTURES = {
    "chain": {"lengths": (4, 3, 1)},
    "order 2": {"lengths": (4, 1, 3), "order": 2},
    "order 3": {"lengths": (5, 2), "order": 3, "n_labels": 2},
    "forest": {"lengths": (5, 2), "shape": "random"},
    "star": {"lengths": (5,), "shape": "star"},
    "typed": {"lengths": (4, 3), "sharing": "typed"},
    "each": {"lengths": (4, 0, 3), "sharing": "each"},
    "each, order 2": {"lengths": (4, 2), "sharing": "each", "order": 2},
    "each, forest": {"lengths": (5, 2), "sharing": "each", "shape": "random"},
    "no edges": {"lengths": (4, 0, 3), "sharing": "none", "ends": False},
    "ends alone": {"lengths": (4, 3), "sharing": "none"},
    "one label": {"lengths": (3, 1), "n_labels": 1},
}
"""Arguments of `make_problem`."""
TRUTHS = {
    "plain": {},
    "partial, weighted": {"unknown": 0.4, "weighted": True},
    "class weights": {"class_weights": True},
    "all": {"unknown": 0.3, "weighted": True, "class_weights": True},
}
"""Arguments of `make_case`."""
CLASS_WEIGHTS = np.array([0.5, 3.0, 1.0])
NAMES = {"node": ("node",), "edge": ("edge",), "each_edge": ("edge",), "ends": ("start", "end")}
"""The scores that a part moves."""
OBJECTIVES = registry.OBJECTIVES | {
    "loss_augmented": LossAugmented(1.5),
    "loss_scaled": LossScaled(longest=30),
    "kl": KL(temperature=0.7),
}
PERCEPTRONS = {"perceptron": 0.0, "large_margin": 1.5}
"""Margins."""
LISTED = enumerated_objectives.OBJECTIVES | {
    "loss_augmented": partial(enumerated_objectives.loss_augmented, weight=1.5),
    "kl": partial(enumerated_objectives.kl, temperature=0.7),
}
"""The same objectives on listed labellings."""
WHOLE = ("kl", "loss_scaled")
"""Objectives that need every label, and do not support weights of labels."""


def make_case(structure, *, unknown=0.0, weighted=False, class_weights=None, seed=0):
    """Return a raw problem, the same prepared, and its truth: random labels and weights."""
    settings = STRUCTURES[structure] if isinstance(structure, str) else structure
    raw = make_problem(seed, **settings)
    random, problem = np.random.default_rng(seed), prepare(**raw.arguments())
    n_labels = problem.scores.n_labels
    labels = random.integers(n_labels, size=problem.batch.n_rows)
    labels[random.random(len(labels)) < unknown] = UNKNOWN
    weights = None
    if weighted:  # eighths, which float32 holds
        weights = random.integers(1, 20, problem.batch.n_instances) / 8
    if class_weights is True:
        class_weights = CLASS_WEIGHTS[:n_labels]
    classes = np.arange(n_labels)
    truth = Truth(problem.batch, problem.structure, labels, weights, classes, class_weights)
    return raw, problem, truth


def bind(name, truth, loss=None):
    """Return an objective of the registry, or a perceptron's loss, for some truth."""
    if name in PERCEPTRONS:
        return perceptron_loss_of(truth, PERCEPTRONS[name])
    return OBJECTIVES[name].bind(truth, loss or Hamming(), None)


def parts_of(problem):
    """Return all parts that a problem has scores of."""
    parts = ["node"]
    if problem.scores.edge is not None:
        parts.append("each_edge" if problem.sharing == "each" else "edge")
    return parts + ["ends"] * (problem.scores.start is not None)


def names_of(problem, parts):
    """Return the names of the scores that parts move."""
    names = [name for part in parts for name in NAMES[part]]
    return [name for name in names if getattr(problem.scores, name) is not None]


def with_scores(problem, **scores):
    """Return a problem with some scores exchanged."""
    return replace(problem, scores=replace(problem.scores, **scores))


def differences(objective, problem, name):
    """Return the gradient of the value in the scores of a name, by differences."""

    def value(scores):
        return objective.evaluate(with_scores(problem, **{name: scores}), ()).value

    return central_differences(value, getattr(problem.scores, name))


def hessian(objective, problem, parts):
    """Return the Hessian in all scores of some parts at once, by differences of gradients."""
    names = names_of(problem, parts)
    tables = [getattr(problem.scores, name) for name in names]
    cuts = np.cumsum([table.size for table in tables])[:-1]

    def gradient(flat):
        pieces = zip(names, np.split(flat, cuts), tables, strict=True)
        moved = {name: piece.reshape(table.shape) for name, piece, table in pieces}
        slopes = objective.evaluate(with_scores(problem, **moved), parts).gradient
        return flattened(slopes, names)

    at = np.concatenate([table.ravel() for table in tables])
    steps = 1e-5 * np.eye(len(at))
    matrix = np.array([(gradient(at + step) - gradient(at - step)) / 2e-5 for step in steps])
    return (matrix + matrix.T) / 2


def flattened(arrays, names):
    """Return arrays by name as one vector."""
    return np.concatenate([np.ravel(arrays[name]) for name in names])


def pseudo_likelihood(instance, labels):
    """-sum_t log p(y_t | the others), from the scores of whole labellings that differ at t."""
    value = 0.0
    for t in range(len(labels)):
        around = {t}.union(*(part for part in instance.parts if t in part))
        if any(labels[s] == UNKNOWN for s in around):
            continue
        scores = []
        for label in range(instance.n_labels):
            changed = np.where(labels == UNKNOWN, 0, labels)
            changed[t] = label
            scores.append(instance.score_of(changed))
        value += np.logaddexp.reduce(scores) - scores[labels[t]]
    return value


def perceptron_loss(instance, labels, margin):
    """Return how far the best labelling lies above the best that agrees with known labels."""
    wrong = ((instance.labels != labels) & (labels != UNKNOWN)).sum(axis=1)
    return (instance.scores + margin * wrong).max() - instance.scores[wrong == 0].max()


def labelwise_likelihood(instance, labels):
    """-sum_t log p(y_t) over known labels."""
    known = np.flatnonzero(labels != UNKNOWN)
    right = (
        np.logaddexp.reduce(instance.scores[instance.labels[:, t] == labels[t]]) for t in known
    )
    return len(known) * np.logaddexp.reduce(instance.scores) - sum(right)


def listed_value(name, instance, labels, losses=None):
    """Return the value of an objective for one instance, by listing its labellings."""
    if name in LISTED:
        return float(LISTED[name](-instance.scores, losses).value)
    if name in PERCEPTRONS:
        return perceptron_loss(instance, labels, PERCEPTRONS[name])
    values = {"pseudo_likelihood": pseudo_likelihood, "labelwise_likelihood": labelwise_likelihood}
    return values[name](instance, labels)
