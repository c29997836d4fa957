"""What the arguments of RankingCRF stand for: usual values, the objective, the metric."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from crfx.estimators.arguments import usual_value
from crfx.ndcg import Gain, ndcg
from crfx.objectives.ranking import RankingObjective

if TYPE_CHECKING:
    from crfx.estimators.ranking.estimator import RankingCRF

MANY_QUERIES = 320
"""With fewer, leaves may be lighter in proportion."""
_METRIC = re.compile(r"(?P<letor>letor-)?ndcg(@(?P<cut>[1-9][0-9]*))?")
MetricFunction = Callable[[Any, Any, Any], float]


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


def ranking_objective(arguments: Mapping[str, Any]) -> RankingObjective:
    """Return what training minimises; raise ValueError where a setting is out of range."""
    names = ("temperature", "loss_weight", "truths", "cut", "n_samples")
    settings = {name: usual_value(name, arguments) for name in names}
    return RankingObjective(arguments["objective"], **settings)


def metric_of(crf: RankingCRF) -> MetricFunction:
    """Return the metric (relevance, scores, group) -> number, better when larger."""
    return read_metric(crf.eval_metric, crf.gain)


def read_metric(option: Any, gain: Gain = "exponential") -> MetricFunction:
    """Read the argument ``eval_metric``; raise ValueError where it is no metric."""
    if callable(option):
        function: MetricFunction = option
        return function
    match = _METRIC.fullmatch(option) if isinstance(option, str) else None
    if match is None:
        raise ValueError(
            f"eval_metric is {option!r}: choose 'ndcg', 'ndcg@5' (any cut), "
            "'letor-ndcg@5', or a function of (relevance, scores, group)"
        )
    cut = None if match["cut"] is None else int(match["cut"])
    definition: Any = "letor" if match["letor"] else "usual"
    return lambda relevance, scores, group: ndcg(
        relevance, scores, group, cut=cut, definition=definition, gain=gain
    )
