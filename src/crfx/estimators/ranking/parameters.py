"""What the arguments of RankingCRF stand for: usual values, the objective, the metric."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from crfx.estimators.arguments import ranking_objective, usual_value
from crfx.objectives.ranking import RankingObjective
from crfx.prediction.metric import ranking_metric

if TYPE_CHECKING:
    from crfx.estimators.ranking.estimator import RankingCRF

MANY_QUERIES = 320
"""With fewer, leaves may be lighter in proportion."""


def value_of(crf: RankingCRF, name: str) -> Any:
    """Return the value of an argument, or what None stands for."""
    return usual_value(name, vars(crf))


def usual_child_weight(crf: RankingCRF, n_queries: int) -> float:
    """Return the usual least weight of a leaf, which is less where queries are few."""
    usual: float = usual_value("min_child_weight", vars(crf) | {"min_child_weight": None})
    return usual * min(1.0, n_queries / MANY_QUERIES)


def objective_of(crf: RankingCRF) -> RankingObjective:
    """Return what training minimises."""
    return ranking_objective(vars(crf))


def metric_of(crf: RankingCRF) -> Callable[[Any, Any, Any], float]:
    """Return the metric (relevance, scores, group) -> number, better when larger."""
    return ranking_metric(crf.eval_metric, crf.gain)
