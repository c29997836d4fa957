"""Queries of TREC's Million Query track 2007 on pages of .gov: LETOR 4.0's MQ2007.

The form of MQ2008 (`mq2008`), with more queries and longer lists.
"""

from __future__ import annotations

from crfx.datasets.files import find
from crfx.datasets.mq2008 import N_PARTS, MillionQuery
from crfx.io import letor

_HOW_TO_GET = (
    "MQ2007 is given out by Microsoft Research as part of LETOR 4.0, for research: take the files "
    "S1.txt to S5.txt of its supervised setting, normalised per query (QueryLevelNorm); these five "
    "parts make up the folds."
)
_N_QUERIES, _N_DOCUMENTS, _N_FEATURES = 1692, 69623, 46


def load_mq2007() -> MillionQuery:
    """Load the 1,692 queries from a folder of your own; without a checksum to hold them to, the
    files are judged by their counts.
    """
    names = [f"S{number}.txt" for number in range(1, N_PARTS + 1)]
    paths = [find("letor-mq2007", name, how_to_get=_HOW_TO_GET) for name in names]
    parts = tuple(letor.read(path) for path in paths)
    sizes = (
        sum(len(part.group) for part in parts),
        sum(len(part.X) for part in parts),
        max(part.X.shape[1] for part in parts),
    )
    if sizes != (_N_QUERIES, _N_DOCUMENTS, _N_FEATURES):
        raise ValueError(
            f"{paths[0].parent}: {sizes[0]} queries, {sizes[1]} documents and {sizes[2]} features, "
            f"expected {_N_QUERIES}, {_N_DOCUMENTS} and {_N_FEATURES}"
        )
    return MillionQuery(
        parts,
        description=(
            "LETOR 4.0 MQ2007 (Qin and Liu 2013): 1,692 queries, 69,623 documents, 46 features "
            "normalised per query, 3 levels of relevance, 5 folds; for research"
        ),
    )
