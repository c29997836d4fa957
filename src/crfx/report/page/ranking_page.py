"""The page of a model that ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crfx.ndcg import mean_ndcg, ndcg_by_query
from crfx.report.page.labelling_page import model_values
from crfx.report.page.reasons import why_before
from crfx.report.page.templating import render

if TYPE_CHECKING:
    from crfx.io.letor import Rankings

CUTS = (1, 3, 5, 10)
JUDGED_BY = 10
"""The cut of NDCG that ranks the queries."""
MOST_DOCUMENTS = 10


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
                {
                    "name": str(part.query_ids[at]),
                    "ndcg": float(judged[at]),
                    **_documents(model, part, scores, slice(*ends[at : at + 2])),
                }
                for at in worst.tolist()
            ],
        },
    )


def _documents(model: Any, part: Rankings, all_scores: Any, rows: slice) -> dict[str, Any]:
    """Return the documents of a query, and why the first one stands before a better one."""
    scores, relevance = all_scores[rows], part.relevance[rows]
    order = np.argsort(-scores, kind="stable")
    comments = [""] * len(scores) if part.comments is None else part.comments[rows]
    first = order[:MOST_DOCUMENTS].tolist()
    # Documents that should have been on top are shown wherever they are.
    missed = [at for at in order[MOST_DOCUMENTS:].tolist() if relevance[at] == relevance.max()]
    ranks = {int(at): rank for rank, at in enumerate(order, 1)}
    documents = [
        {
            "rank": ranks[at],
            "number": at,
            "score": float(scores[at]),
            "relevance": float(relevance[at]),
            "comment": comments[at],
        }
        for at in [*first, *missed[:MOST_DOCUMENTS]]
    ]
    shown = {"n_documents": len(scores), "documents": documents, "why": None, "problem": ""}
    better = [at for at in order.tolist() if relevance[at] > relevance[order[0]]]
    if not better:
        return shown
    try:
        explained = model.explain(part.X[rows], positions=[int(order[0]), better[0]])
    except ValueError as error:
        return shown | {"problem": str(error)}
    return shown | {"method": explained.method, "why": why_before(*explained.positions)}
