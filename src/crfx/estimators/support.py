"""What each estimator supports, in one table, and the check that raises for the rest.

`docs/support.md` is written from the table, and `tests/estimators/test_support.py` tries every
entry: what is supported must work, and what is not must raise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crfx.batch import Batch
from crfx.features.matrix import is_on_disk
from crfx.inputs.rows import check_in_memory
from crfx.potentials.xgboost_learner import check_cuda
from crfx.trainers.callbacks import Callback, Checkpoint
from crfx.workers import current

ESTIMATORS = ("GBCRF", "TreeCRF", "LinearCRF", "HiddenUnitCRF", "RankingCRF")
"""The columns of the table."""


@dataclass(frozen=True)
class Refusal:
    """Arguments with which something is not supported; {}: with any.

    ``reason`` is why, and what to do instead; "": the error comes from elsewhere.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class Limited:
    """Supported under a condition, which ``text`` names.

    It works with the arguments ``works`` and raises with those of ``refusals``; without these it
    works otherwise too, but differently.
    """

    text: str
    works: Mapping[str, Any] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()


Entry = bool | None | Limited | Refusal
"""True: supported; False or a refusal: not; None: makes no sense, as labels of documents do."""

YES, NO, NONE = True, False, None
REGRESSOR = "a regressor of scikit-learn"
"""Stands for an object in the arguments below."""
HERDING = {"trainer": "perceptron", "herding": True}
BASE_LEARNER = {"base_learner": REGRESSOR}
INDUCTION = {"feature_induction": 1}
CONTRASTIVE = {"pretrain": "contrastive"}


def without(arguments: Mapping[str, Any], text: str, reason: str = "") -> Limited:
    """Return what is supported without some arguments."""
    return Limited(text, refusals=(Refusal(arguments, reason),))


NO_BASE_LEARNER = without(BASE_LEARNER, "not with `base_learner`")
NO_HERDING = without(HERDING, "not with `herding`")
NO_PERCEPTRONS = Limited(
    "not by the perceptrons", {"trainer": "sgd"}, (Refusal({"trainer": "perceptron"}),)
)
OF_TREES = Limited('`scorer="trees"`', {"scorer": "trees"}, (Refusal({"scorer": "linear"}),))
FOREST_OF_HIGHER_ORDER = Refusal(
    {},
    "parents are given with order={order}: a node of a forest has one parent and no sequence of "
    "labels before it; use order=1",
)
IN_MEMORY = " needs all features in memory, and these are shards: pass what shards.load() gives"

HIGH_FORESTS = "forests of order 2 and more"
EDGE_TYPES = "types of edges: `edge_types`"
SHARDS = "training from shards on disk"
WORKERS = "several workers"
CHECKPOINTS = "checkpoints, and exact resume from them"

SUPPORT: dict[str, dict[str, tuple[Entry, ...]]] = {
    "Structure": {
        "chains of order 2 and more: `order`": (YES, YES, YES, YES, NONE),
        "independent positions: `edges=None`": (YES, NO, YES, YES, NONE),
        "forests: `parents`": (YES, YES, YES, YES, NONE),
        HIGH_FORESTS: (*[FOREST_OF_HIGHER_ORDER] * 4, NONE),
        EDGE_TYPES: (
            YES,
            Refusal(
                {},
                "edge_types are given, but TreeCRF has one function for all edges: make the type a "
                "feature of the position at which the edge ends",
            ),
            YES,
            YES,
            NONE,
        ),
        "transitions that depend on features": (
            Limited('`edges="linear"` or `"trees"`', {"edges": "linear"}),
            YES,
            Limited('`edges="linear"`', {"edges": "linear"}),
            NO,
            NONE,
        ),
        "constraints on labellings: `constraints`": (YES, YES, YES, YES, NONE),
        "labels allowed at a position: `allowed`": (YES, YES, YES, YES, NONE),
    },
    "Labels and weights": {
        "unknown labels: None in `y`": (YES, YES, YES, YES, NO),
        "weights of labels: `class_weight`": (YES, YES, YES, YES, NONE),
        "weights of instances: `sample_weight`": (YES, YES, YES, YES, YES),
        "objectives other than the likelihood": (YES, YES, NO_PERCEPTRONS, NO_PERCEPTRONS, YES),
    },
    "Features": {
        "sparse matrices (CSR)": (YES, YES, YES, YES, YES),
        "dicts, texts and templates": (YES, YES, YES, YES, NO),
        "hashed names: `n_hashed`": (NO, NO, YES, YES, NO),
        "data frames": (YES, YES, YES, YES, YES),
        "columns of categories": (YES, YES, NO, NO, OF_TREES),
        "missing values (NaN)": (
            YES,
            YES,
            Limited("as 0"),
            Limited("as 0"),
            Limited('`scorer="trees"`; as 0 by `"linear"`', {"scorer": "trees"}),
        ),
        SHARDS: (
            Limited(
                'not with `base_learner` or `edges="linear"`',
                refusals=(
                    Refusal(BASE_LEARNER, f"base_learner{IN_MEMORY}"),
                    Refusal({"edges": "linear"}, f'edges="linear"{IN_MEMORY}'),
                ),
            ),
            Refusal({}, f"TreeCRF grows trees of its own and{IN_MEMORY}"),
            without(INDUCTION, "not with `feature_induction`", f"feature_induction{IN_MEMORY}"),
            without(
                CONTRASTIVE,
                'not with `pretrain="contrastive"`',
                f'pretrain="contrastive"{IN_MEMORY}',
            ),
            Limited(
                '`scorer="trees"`',
                {"scorer": "trees"},
                (
                    Refusal(
                        {"scorer": "linear"},
                        'scorer="linear" learns from features in memory, and shards stay on disk: '
                        'load them, own = shards.load(), fit(own["X"], own["y"], '
                        'group=own["lengths"])',
                    ),
                ),
            ),
        ),
        "prediction from shards on disk": (YES, YES, YES, YES, YES),
    },
    "Training": {
        WORKERS: (
            without(
                BASE_LEARNER,
                "not with `base_learner`",
                "a base_learner learns from the rows of one worker: leave it out, trees learn from "
                "those of many",
            ),
            YES,
            without(
                INDUCTION,
                "not with `feature_induction`",
                "feature_induction compares pairs of features over all positions, which several "
                "workers do not see: leave it out, or train on one worker",
            ),
            YES,
            YES,
        ),
        "a GPU: `device`": (NO_BASE_LEARNER, NO, NO, NO, OF_TREES),
        "early stopping: `early_stopping_rounds`": (YES, YES, YES, NO_HERDING, YES),
        "callbacks": (YES, YES, YES, YES, YES),
        CHECKPOINTS: (
            without(
                BASE_LEARNER,
                "not with `base_learner`",
                "a model with a base_learner cannot be saved: leave out Checkpoint",
            ),
            YES,
            YES,
            YES,
            YES,
        ),
        "warm start: `init_model` of the same kind": (YES, YES, YES, YES, YES),
        "new labels in a warm start: `classes`": (YES, YES, YES, YES, NONE),
        "another model underneath: `init_model` of another kind": (YES, YES, YES, YES, YES),
        "standing underneath another model": (YES, YES, YES, NO_HERDING, YES),
        "training part by part: `partial_fit`": (
            NO,
            NO,
            Limited('not by `"lbfgs"`', {"trainer": "sgd"}, (Refusal({"trainer": "lbfgs"}),)),
            NO,
            NO,
        ),
        "conjunctions of features: `feature_induction`": (
            NO,
            NO,
            Limited('by `"lbfgs"`', INDUCTION, (Refusal({"trainer": "sgd"}),)),
            NO,
            NO,
        ),
        "own regressors: `base_learner`": (YES, NO, NO, NO, NO),
    },
    "Results": {
        "marginals": (YES, YES, YES, YES, NONE),
        "k best labellings, samples, log-likelihood": (YES, YES, YES, NO_HERDING, NONE),
        "explanations: `explain`": (YES, YES, YES, NO_HERDING, YES),
        "importance of features: `importance`": (YES, YES, YES, YES, YES),
        "importance in trees: `feature_importance`": (NO_BASE_LEARNER, YES, NO, NO, OF_TREES),
        "weights: `coef_`": (
            NO,
            NO,
            YES,
            NO,
            Limited('`scorer="linear"`', {"scorer": "linear"}, (Refusal({"scorer": "trees"}),)),
        ),
        "model files: `save`, `crfx.load`": (NO_BASE_LEARNER, YES, YES, YES, YES),
        "JSON: `to_json`": (NO, NO, YES, NO, NO),
    },
}
EXPERIMENTAL: dict[str, tuple[str, Mapping[str, Any]]] = {
    'sampled instances of `"loss_scaled"`, those longer than `LossScaled.longest`': (
        "LinearCRF",
        {"objective": "loss_scaled"},
    ),
    'candidates of whole-instance losses: `task_loss="span_f1"`': (
        "LinearCRF",
        {"objective": "expected_loss", "task_loss": "span_f1"},
    ),
    'contrastive divergence: `pretrain="contrastive"`': (
        "HiddenUnitCRF",
        CONTRASTIVE,
    ),
    "votes of sweeps: `herding=True`": ("HiddenUnitCRF", HERDING),
    "own regressors: `base_learner`": ("GBCRF", BASE_LEARNER),
}
"""Rarely used parts, each with an estimator and arguments that use it."""


def check_supported(
    estimator: Any, batch: Batch, callbacks: Sequence[Callback] | None = None
) -> None:
    """Raise ValueError if an estimator does not support what it is to be trained on, or how.

    All workers raise if it holds for one of them.
    """
    uses = {
        HIGH_FORESTS: batch.parents is not None and getattr(estimator, "order", 1) != 1,
        EDGE_TYPES: batch.edge_types is not None,
        SHARDS: is_on_disk(batch.X),
        WORKERS: current().size > 1,
        CHECKPOINTS: any(isinstance(each, Checkpoint) for each in callbacks or ()),
    }
    classes = (kind.__name__ for kind in type(estimator).__mro__)
    column = next(ESTIMATORS.index(name) for name in classes if name in ESTIMATORS)
    used = current().gather([name for name, is_used in uses.items() if is_used])
    for name in dict.fromkeys(name for names in used for name in names):
        for refusal in _refusals(_ROWS[name][column]):
            if refusal.reason and _has(estimator, refusal.arguments):
                raise ValueError(refusal.reason.format_map(vars(estimator)))


_ROWS = {name: row for rows in SUPPORT.values() for name, row in rows.items()}


def _refusals(entry: Entry) -> Iterable[Refusal]:
    if isinstance(entry, Refusal):
        return (entry,)
    return entry.refusals if isinstance(entry, Limited) else ()


def _has(estimator: Any, arguments: Mapping[str, Any]) -> bool:
    """Return whether an estimator has some arguments; those that are no choices are given."""
    return all(
        getattr(estimator, name) == value
        if isinstance(value, str) and value != REGRESSOR
        else getattr(estimator, name) is not None
        for name, value in arguments.items()
    )


def check_device(device: str, X: Any = None) -> None:
    """Raise ValueError where trees cannot grow on ``device``: no such GPU here, or nothing that
    can be trained there.  ``X`` is the argument of ``fit``.
    """
    if device == "cpu":
        return
    if (n_workers := current().size) > 1:
        raise ValueError(
            f"device is {device!r}, but {n_workers} workers train together: trees grow on one GPU; "
            'use one worker, or device="cpu"'
        )
    check_in_memory(X, f"device={device!r} needs all features")
    check_cuda(device)
