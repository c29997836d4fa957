"""What the arguments of RankingCRF may be, and what stands for None.

An argument that the chosen scorer or objective has no use for is refused when it is set.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from crfx.estimators.device import CPU, check_device_name
from crfx.estimators.parameters import (
    GROW_POLICIES,
    _check_choice,
    _check_not_negative,
    _check_shares,
    _check_whole,
    _is_number,
    check_running,
    check_tree_names,
    check_tree_sizes,
)
from crfx.ndcg import GAINS, ndcg
from crfx.objectives.ranking import MOST_DOCUMENTS, OBJECTIVES, RankingObjective

if TYPE_CHECKING:
    from crfx.estimators.ranking.estimator import RankingCRF

OF_LINEAR: dict[str, Any] = {
    "sweeps": 20,
    "step": None,
    "batch_size": 1,
    "burn_in": 0,
    "l2": 0.0,
}
OF_TREES: dict[str, Any] = {
    "n_estimators": 100,
    "learning_rate": 0.1,
    "max_depth": 4,
    "max_leaves": 0,
    "grow_policy": "depthwise",
    "reg_lambda": 1.0,
    "min_child_weight": 20.0,  # or LIGHTER
    "subsample": 1.0,
    "colsample_bynode": 1.0,
    "max_bin": 256,
    "tree_params": None,
    "device": CPU,
}
LIGHTER = {"loss_scaled": 4.0, "expected_loss": 1.0}
"""Least weight of a leaf under objectives whose curvature is smaller."""
MANY_QUERIES = 320
"""With fewer, leaves may be lighter in proportion."""
OF_SCORER = {"linear": OF_LINEAR, "trees": OF_TREES}
N_SUBSETS = {"linear": 1, "trees": 4}
N_SAMPLES = 500
OF_OBJECTIVE: dict[str, tuple[Any, tuple[str, ...]]] = {
    "temperature": (0.02, ("kl",)),
    "loss_weight": (1.0, ("loss_augmented",)),
    "truths": ("mean", ("likelihood", "loss_augmented")),
}
"""Usual value, and the objectives that have it."""

MOST_SUMMED = 20
"""Documents, of which all orders may be counted one by one: 20! is some 1e18."""
MOST_DRAWN = 10_000
"""Subsets and samples a query: more would not fit."""
_METRIC = re.compile(r"(?P<letor>letor-)?ndcg(@(?P<cut>[1-9][0-9]*))?")


def value_of(crf: RankingCRF, name: str) -> Any:
    """An argument, or what stands for None."""
    given = getattr(crf, name)
    if given is not None:
        return given
    if name in OF_OBJECTIVE:
        return OF_OBJECTIVE[name][0]
    if name == "min_child_weight" and crf.objective in LIGHTER:
        return LIGHTER[crf.objective]
    if name == "n_subsets":
        return N_SUBSETS[crf.scorer]
    if name == "n_samples":
        return N_SAMPLES
    return OF_SCORER[crf.scorer][name]


def usual_child_weight(crf: RankingCRF, n_queries: int) -> float:
    """Least weight of a leaf where none is given: less where queries are few."""
    usual: float = LIGHTER.get(crf.objective, OF_TREES["min_child_weight"])
    return usual * min(1.0, n_queries / MANY_QUERIES)


def objective_of(crf: RankingCRF) -> RankingObjective:
    """What is minimised."""
    return RankingObjective(
        crf.objective,
        temperature=value_of(crf, "temperature"),
        loss_weight=value_of(crf, "loss_weight"),
        truths=value_of(crf, "truths"),
        cut=crf.cut,
        n_samples=value_of(crf, "n_samples"),
    )


def metric_of(crf: RankingCRF) -> Callable[[Any, Any, Any], float]:
    """The metric (relevance, scores, group) -> number, better when larger."""
    if callable(crf.eval_metric):
        found: Callable[[Any, Any, Any], float] = crf.eval_metric
        return found
    match = _METRIC.fullmatch(crf.eval_metric) if isinstance(crf.eval_metric, str) else None
    if match is None:
        raise ValueError(
            f"eval_metric is {crf.eval_metric!r}: choose 'ndcg', 'ndcg@5' (any cut), "
            "'letor-ndcg@5', or a function of (relevance, scores, group)"
        )
    cut = None if match["cut"] is None else int(match["cut"])
    definition: Any = "letor" if match["letor"] else "usual"
    return lambda relevance, scores, group: ndcg(
        relevance, scores, group, cut=cut, definition=definition, gain=crf.gain
    )


def check_ranking_parameters(crf: RankingCRF) -> None:
    """Raise ValueError at the first argument that makes no sense."""
    _check_choice("scorer", crf.scorer, tuple(OF_SCORER))
    _check_choice("objective", crf.objective, OBJECTIVES)
    _check_choice("gain", crf.gain, GAINS)
    _check_uses(crf)
    check_running(crf)
    _check_whole("subset_size", crf.subset_size, 2)
    if crf.subset_size > MOST_DOCUMENTS:
        raise ValueError(f"subset_size is {crf.subset_size}: it must be at most {MOST_DOCUMENTS}")
    if value_of(crf, "truths") == "sum" and crf.subset_size > MOST_SUMMED:
        raise ValueError(
            f'truths is "sum" and subset_size is {crf.subset_size}: as many orders may be right as '
            f'there are, too many to sum over beyond {MOST_SUMMED} documents; use truths="mean"'
        )
    if crf.cut is not None:
        _check_whole("cut", crf.cut, 1)
    for name in ("n_subsets", "n_samples"):
        _check_whole(name, value_of(crf, name), 1)
        if value_of(crf, name) > MOST_DRAWN:
            raise ValueError(f"{name} is {value_of(crf, name)}: it must be at most {MOST_DRAWN}")
    for name in ("temperature", "loss_weight"):
        if not _is_number(value_of(crf, name)):
            raise ValueError(f"{name} is {getattr(crf, name)!r}: it must be a number")
    if crf.early_stopping_rounds is not None:
        _check_whole("early_stopping_rounds", crf.early_stopping_rounds, 1)
    exact = objective_of(crf).most_exact
    if crf.n_samples is not None and crf.subset_size <= exact:
        raise ValueError(
            f"n_samples is {crf.n_samples!r}, but nothing is sampled: orders of subset_size="
            f"{crf.subset_size} documents are summed exactly, up to {exact}"
        )
    metric_of(crf)
    _check_linear(crf) if crf.scorer == "linear" else _check_trees(crf)


def _check_uses(crf: RankingCRF) -> None:
    for scorer, names in OF_SCORER.items():
        for name in names:
            if scorer != crf.scorer and getattr(crf, name) is not None:
                raise ValueError(
                    f"{name} is {getattr(crf, name)!r}, but scorer is {crf.scorer!r}: it is an "
                    f"argument of scorer={scorer!r}; leave it None"
                )
    for name, (_, objectives) in OF_OBJECTIVE.items():
        if crf.objective not in objectives and getattr(crf, name) is not None:
            wanted = " or ".join(map(repr, objectives))
            raise ValueError(
                f"{name} is {getattr(crf, name)!r}, but objective is {crf.objective!r}: it is an "
                f"argument of objective={wanted}; leave it None"
            )


def _check_linear(crf: RankingCRF) -> None:
    _check_whole("sweeps", value_of(crf, "sweeps"), 0)
    _check_whole("batch_size", value_of(crf, "batch_size"), 1)
    _check_whole("burn_in", value_of(crf, "burn_in"), 0)
    _check_not_negative("l2", value_of(crf, "l2"))
    if crf.step is not None and (not _is_number(crf.step) or not 0 < crf.step < np.inf):
        raise ValueError(f"step is {crf.step!r}: it must be above 0, or None")


def _check_trees(crf: RankingCRF) -> None:
    own = _Filled(crf)
    _check_whole("n_estimators", own.n_estimators, 0)
    _check_whole("max_bin", own.max_bin, 2)
    _check_shares(own, ("learning_rate", "subsample"))
    for name in ("reg_lambda", "min_child_weight"):
        _check_not_negative(name, getattr(own, name))
    _check_shares(own, ("colsample_bynode",))
    check_tree_sizes(own)
    _check_choice("grow_policy", own.grow_policy, GROW_POLICIES)
    params = own.tree_params
    if params is not None and not isinstance(params, dict):
        raise ValueError(f"tree_params is a {type(params).__name__}: pass a dict, or None")
    check_tree_names(params or {}, "RankingCRF")
    check_device_name(own.device)


class _Filled:
    """The arguments with what stands for None."""

    def __init__(self, crf: RankingCRF) -> None:
        self._crf = crf

    def __getattr__(self, name: str) -> Any:
        return value_of(self._crf, name)
