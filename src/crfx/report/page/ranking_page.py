"""The page of a model that ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from crfx.ndcg import mean_ndcg, ndcg_by_query
from crfx.report.page.labelling_page import model_values
from crfx.report.page.reasons import Why, why_before
from crfx.report.page.templating import render

if TYPE_CHECKING:
    from crfx.io.letor import Rankings

CUTS = (1, 3, 5, 10)
JUDGED_BY = 10
"""The cut by which the worst queries are found."""
MOST_DOCUMENTS = 10


@dataclass(frozen=True)
class Document:
    """A row: its rank, its number within the query, and its comment in the file."""

    rank: int
    number: int
    score: float
    relevance: float
    comment: str


@dataclass(frozen=True)
class Query:
    """A query that is shown: its documents, and why the first one stands before a better one."""

    name: str
    ndcg: float
    n_documents: int
    documents: list[Document]
    method: str = ""
    why: Why | None = None
    problem: str = ""


def ranking_page(model: Any, part: Rankings, n_shown: int, names: dict[str, str]) -> str:
    """Return the page as text; ``names`` are those of title, model, file, version and date."""
    scores = model.predict(part.X)
    by_query = ndcg_by_query(part.relevance, scores, part.group, cuts=CUTS, gain=model.gain)
    means = mean_ndcg(by_query)
    counted = np.flatnonzero(~np.isnan(by_query).any(axis=1))
    judged = by_query[:, CUTS.index(JUDGED_BY)]
    worst = counted[np.argsort(judged[counted], kind="stable")][:n_shown]
    ends = np.concatenate([[0], np.cumsum(part.group)])
    return render(
        "ranking.html",
        {
            **model_values(model),
            **names,
            "figures": [
                (f"NDCG@{cut}", f"{mean:.4f}", f"mean of {len(counted):,} queries")
                for cut, mean in zip(CUTS, means.tolist(), strict=True)
            ],
            "n_documents": len(part.relevance),
            "n_queries": len(part.group),
            "n_left_out": len(part.group) - len(counted),
            "quarters": np.quantile(judged[counted], [0, 0.25, 0.5, 0.75, 1]).tolist(),
            "judged_by": JUDGED_BY,
            "worst": [
                _shown(
                    model, part, scores, slice(*ends[at : at + 2]), part.query_ids[at], judged[at]
                )
                for at in worst.tolist()
            ],
        },
    )


def _shown(model: Any, part: Rankings, scores: Any, rows: slice, name: Any, value: float) -> Query:
    own, relevance = scores[rows], part.relevance[rows]
    order = np.argsort(-own, kind="stable")
    comments = [""] * len(own) if part.comments is None else part.comments[rows]
    first = order[:MOST_DOCUMENTS].tolist()
    # Those that should have been on top, wherever they are.
    missed = [at for at in order[MOST_DOCUMENTS:].tolist() if relevance[at] == relevance.max()]
    ranks = {int(at): rank for rank, at in enumerate(order, 1)}
    documents = [
        Document(ranks[at], at, float(own[at]), float(relevance[at]), comments[at])
        for at in [*first, *missed[:MOST_DOCUMENTS]]
    ]
    query = Query(str(name), float(value), len(own), documents)
    better = [at for at in order.tolist() if relevance[at] > relevance[order[0]]]
    if not better:
        return query
    try:
        explained = model.explain(part.X[rows], positions=[int(order[0]), better[0]])
    except ValueError as error:
        return replace(query, problem=str(error))
    return replace(query, method=explained.method, why=why_before(*explained.positions))
