"""Table 1 and Figure 2 of Volkovs, Larochelle and Zemel (2011): rankings, by NDCG.

A unit is one of LETOR's folds.  Every point of a row's grid is trained on the fold's training part
and judged on its validation part; the best is then tested, once.  Where training draws at random,
all of this is done with several seeds, and figures are their means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from crfx.datasets import MillionQuery, RankingFold, load_mq2008
from crfx.io.letor import Rankings
from crfx.ndcg import Definition, Gain, mean_ndcg, ndcg_by_query
from reproduce.datasets import load_mq2007
from reproduce.experiments.task import Outcome, Task
from reproduce.rankers import RANKERS, Fitted, Given, Judge

CUTS = (1, 2, 3, 4, 5, 10)
EVALUATIONS: dict[str, tuple[Definition, Gain]] = {
    "letor": ("letor", "linear"),
    "tool": ("letor", "exponential"),  # the gains 3, 1, 0 that are written in LETOR's tool
    "usual": ("usual", "exponential"),
}
"""Names of figures: letor_5 is NDCG@5 as LETOR's tool takes it, with linear gain."""
COMPARED = ((5, "letor"), (5, "usual"), (10, "usual"))
"""What is kept of every query, to compare rows by."""
_LOADERS = {"mq2008": load_mq2008, "mq2007": load_mq2007}


@dataclass(frozen=True, slots=True)
class Options:
    """`data`: "mq2008" or "mq2007"; `grid`: for some settings, the values to choose from.

    `seeds`: how many, from `random_state` on; 0 for what has none. `queries` limits those of every
    part.
    """

    data: str = "mq2008"
    grid: dict[str, list[Any]] = field(default_factory=dict)
    seeds: int = 0
    queries: int | None = None


def run(task: Task) -> Outcome:
    """NDCG in percent, under the three evaluations; what was chosen, and by which figures."""
    options = task.options(Options)
    fold = _fold(options, task.unit)
    seeds: list[int | None] = [None]
    if options.seeds:
        seeds = [task.settings["random_state"] + number for number in range(options.seeds)]
    runs = [_chosen(task, fold, options, seed) for seed in seeds]
    figures = {
        name: float(np.mean([run.figures[name] for run in runs])) for name in runs[0].figures
    }
    # Of what is kept by query the means too; of choices all.
    curves = {
        name: np.mean([run.curves[name] for run in runs], axis=0).round(6).tolist()
        for name in runs[0].curves
        if not name.startswith("chosen_")
    }
    for name in runs[0].curves.keys() - curves.keys():
        curves[name] = [value for run in runs for value in run.curves[name]]
    return Outcome(figures, dict(sorted(curves.items())))


def _chosen(task: Task, fold: RankingFold, options: Options, seed: int | None) -> Outcome:
    """Try all grid points with one seed, and test the best."""
    judge = Judge()
    tried: list[tuple[float, dict[str, Any], Fitted]] = []
    for point in _points(options.grid):
        settings = point if seed is None else {**point, "random_state": seed}
        fitted = fit(task, fold, judge, settings)
        figure = judge(fold.validation, fitted.scores(fold.validation.X))
        tried.append((figure, point, fitted))
    best, chosen, fitted = max(tried, key=lambda each: each[0])  # of equals the first
    scores = fitted.scores(fold.test.X)
    return Outcome(
        {**evaluated(fold.test, scores), "validation": 100 * best, "rounds": fitted.rounds},
        {
            **by_query(fold.test, scores),
            "validation": [100 * each[0] for each in tried],
            **{f"chosen_{name}": [float(value)] for name, value in chosen.items()},
        },
    )


def fit(task: Task, fold: RankingFold, judge: Judge, point: dict[str, Any]) -> Fitted:
    """Train what the settings name, with those of one point of the grid."""
    settings = {**task.settings, **point}
    name = settings.pop("estimator", "RankingCRF")
    if name == "RankingCRF":
        return _fit_ours(task, fold, settings)
    if name not in RANKERS:
        known = ", ".join(["RankingCRF", *RANKERS])
        raise ValueError(f"there is no ranker {name!r}: choose one of {known}")
    return RANKERS[name](Given(fold.train, fold.validation, judge, task.n_jobs), **settings)


def _fit_ours(task: Task, fold: RankingFold, settings: dict[str, Any]) -> Fitted:
    from crfx.estimators.ranking import RankingCRF

    train, validation = fold.train, fold.validation
    model = RankingCRF(**settings, n_jobs=task.n_jobs)
    model.fit(
        train.X,
        train.relevance,
        group=train.group,
        eval_set=(validation.X, validation.relevance, validation.group),
    )
    return Fitted(model.predict, model.n_rounds_)


def evaluated(part: Rankings, scores: Any) -> dict[str, float]:
    """Return mean NDCG in percent, by evaluation and cut."""
    figures: dict[str, float] = {}
    for name in EVALUATIONS:
        means = mean_ndcg(_by_query(part, scores, name, CUTS))
        figures |= {
            f"{name}_{cut}": 100 * float(mean) for cut, mean in zip(CUTS, means, strict=True)
        }
    return figures


def by_query(part: Rankings, scores: Any) -> dict[str, list[float]]:
    """Return NDCG of the queries that count, which are the same for all rows."""
    curves = {}
    for cut, name in COMPARED:
        values = _by_query(part, scores, name, (cut,))[:, 0]
        # Rounded, so that equal orders do not differ by the last bit.
        curves[f"{name}_{cut}"] = [round(float(each), 6) for each in values if not np.isnan(each)]
    return curves


def _by_query(part: Rankings, scores: Any, name: str, cuts: tuple[int, ...]) -> Any:
    definition, gain = EVALUATIONS[name]
    return ndcg_by_query(
        part.relevance, scores, part.group, cuts=cuts, definition=definition, gain=gain
    )


def _points(grid: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for name, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"grid.{name} is {values!r}: it must list the values to try")
    for point in product(*grid.values()):
        yield dict(zip(grid, point, strict=True))


def _fold(options: Options, unit: str) -> RankingFold:
    if unit not in ("1", "2", "3", "4", "5"):
        raise ValueError("units are LETOR's folds 1 to 5")
    fold = load(options.data).fold(int(unit))
    return RankingFold(
        *(_limited(part, options.queries) for part in (fold.train, fold.validation, fold.test))
    )


def _limited(part: Rankings, n_queries: int | None) -> Rankings:
    """Return the first ``n_queries`` queries, or all."""
    if n_queries is None or n_queries >= len(part.group):
        return part
    rows = int(part.group[:n_queries].sum())
    return Rankings(
        part.X[:rows], part.relevance[:rows], part.group[:n_queries], part.query_ids[:n_queries]
    )


@cache
def load(name: str) -> MillionQuery:
    """Return the data set, read once per process."""
    if name not in _LOADERS:
        raise ValueError(f"data is {name!r}: choose one of {', '.join(_LOADERS)}")
    return _LOADERS[name]()
