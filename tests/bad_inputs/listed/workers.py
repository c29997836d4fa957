"""What `fit` must refuse where workers train together, each with instances of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from crfx import GBCRF, LinearCRF
from crfx.distributed.collective import together
from listed.case import Case

AREA = "estimators, several workers"
CHAIN = {"X": [np.eye(2)], "y": [["a", "b"]]}

TRIED: dict[str, tuple[Any, dict[str, Any], dict[str, Any], str]] = {
    "columns of another number": (
        LinearCRF(),
        CHAIN,
        {**CHAIN, "X": [np.ones((2, 3))]},
        "2 features at worker 0 and 3 at worker 1",
    ),
    "X of another kind": (
        LinearCRF(),
        CHAIN,
        {**CHAIN, "X": [sparse.csr_matrix(np.eye(2))]},
        "dense arrays at worker 0 and sparse matrices at worker 1",
    ),
    "parents for one of them": (
        LinearCRF(),
        CHAIN,
        {**CHAIN, "parents": [[-1, 0]]},
        "parents are given at worker 1 and not at worker 0",
    ),
    "a bad number at the second": (
        GBCRF(1),
        CHAIN,
        {**CHAIN, "X": [np.full((2, 2), np.inf)]},
        "^instance 1, position 0: feature 0 is infinite",
    ),
    "too few labels at the second": (
        GBCRF(1),
        CHAIN,
        {**CHAIN, "y": []},
        "^worker 1: y has 0 instances but X has 1",
    ),
    "a GPU for two of them": (
        GBCRF(1, device="cuda"),
        CHAIN,
        CHAIN,
        "device is 'cuda', but 2 workers train together: trees grow on one GPU",
    ),
    "no known label at all": (
        GBCRF(1),
        {**CHAIN, "y": [[None, None]]},
        {**CHAIN, "y": [[None, None]]},
        "y has no known label",
    ),
    "weights of 0 at all": (
        GBCRF(1),
        {**CHAIN, "sample_weight": [0]},
        {**CHAIN, "sample_weight": [0]},
        "sample_weight is zero for every instance",
    ),
    "feature_induction": (
        LinearCRF(feature_induction=1),
        CHAIN,
        CHAIN,
        "feature_induction compares pairs of features over all positions",
    ),
}


def _attempt(crf: Any, parts: tuple[dict[str, Any], ...]) -> Any:
    def attempt(subject: Any, folder: Path) -> Any:
        models = [type(crf)(**crf.get_params(deep=False)) for _ in parts]
        return together(len(parts), lambda workers: models[workers.rank].fit(**parts[workers.rank]))

    return attempt


CASES = [
    Case(AREA, tried, _attempt(crf, (one, other)), message)
    for tried, (crf, one, other, message) in TRIED.items()
]
