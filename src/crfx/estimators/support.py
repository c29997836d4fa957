"""What each estimator supports, in one table.

`docs/support.md` is written from it, and `tests/estimators/test_support.py` tries every entry: what
is supported must work, and what is not must raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ESTIMATORS = ("GBCRF", "TreeCRF", "LinearCRF", "HiddenUnitCRF", "RankingCRF")
"""The columns of the table."""


@dataclass(frozen=True)
class Limited:
    """Supported under a condition, which ``text`` names.

    It works with the arguments ``works``, and raises with the arguments ``fails``; None: it works
    otherwise too, but differently.
    """

    text: str
    works: Mapping[str, Any] = field(default_factory=dict)
    fails: Mapping[str, Any] | None = None


Entry = bool | None | Limited
"""True: supported; False: not; None: makes no sense, as labels of documents do."""

YES, NO, NONE = True, False, None
REGRESSOR = "a regressor of scikit-learn"
"""Stands for an object in the arguments below."""
HERDING = {"trainer": "perceptron", "herding": True}
NO_BASE_LEARNER = Limited("not with `base_learner`", fails={"base_learner": REGRESSOR})
NO_HERDING = Limited("not with `herding`", fails=HERDING)
NO_PERCEPTRONS = Limited("not by the perceptrons", {"trainer": "sgd"}, {"trainer": "perceptron"})
OF_TREES = Limited('`scorer="trees"`', {"scorer": "trees"}, {"scorer": "linear"})

SUPPORT: dict[str, dict[str, tuple[Entry, ...]]] = {
    "Structure": {
        "chains of order 2 and more: `order`": (YES, YES, YES, YES, NONE),
        "independent positions: `edges=None`": (YES, NO, YES, YES, NONE),
        "forests: `parents`": (YES, YES, YES, YES, NONE),
        "forests of order 2 and more": (NO, NO, NO, NO, NONE),
        "types of edges: `edge_types`": (YES, NO, YES, YES, NONE),
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
        "training from shards on disk": (
            NO_BASE_LEARNER,
            NO,
            Limited("not with `feature_induction`", fails={"feature_induction": 1}),
            Limited('not with `pretrain="contrastive"`', fails={"pretrain": "contrastive"}),
            OF_TREES,
        ),
        "prediction from shards on disk": (YES, YES, YES, YES, YES),
    },
    "Training": {
        "several workers": (
            NO_BASE_LEARNER,
            YES,
            Limited("not with `feature_induction`", fails={"feature_induction": 1}),
            YES,
            YES,
        ),
        "a GPU: `device`": (NO_BASE_LEARNER, NO, NO, NO, OF_TREES),
        "early stopping: `early_stopping_rounds`": (YES, YES, YES, NO_HERDING, YES),
        "callbacks": (YES, YES, YES, YES, YES),
        "checkpoints, and exact resume from them": (NO_BASE_LEARNER, YES, YES, YES, YES),
        "warm start: `init_model` of the same kind": (YES, YES, YES, YES, YES),
        "new labels in a warm start: `classes`": (YES, YES, YES, YES, NONE),
        "another model underneath: `init_model` of another kind": (YES, YES, YES, YES, YES),
        "standing underneath another model": (YES, YES, YES, NO_HERDING, YES),
        "training part by part: `partial_fit`": (
            NO,
            NO,
            Limited('not by `"lbfgs"`', {"trainer": "sgd"}, {"trainer": "lbfgs"}),
            NO,
            NO,
        ),
        "conjunctions of features: `feature_induction`": (
            NO,
            NO,
            Limited('by `"lbfgs"`', {"feature_induction": 1}, {"trainer": "sgd"}),
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
            Limited('`scorer="linear"`', {"scorer": "linear"}, {"scorer": "trees"}),
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
        {"pretrain": "contrastive"},
    ),
    "votes of sweeps: `herding=True`": ("HiddenUnitCRF", HERDING),
    "own regressors: `base_learner`": ("GBCRF", {"base_learner": REGRESSOR}),
}
"""Rarely used parts, each with an estimator and arguments that use it."""
