"""Inputs that `fit` must reject when workers train together on their own instances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor

from crfx import GBCRF, LinearCRF
from crfx.distributed.collective import together
from listed.case import Case

AREA = "estimators, several workers"
CHAIN: dict[str, Any] = {"X": [np.eye(2)], "y": [["a", "b"]]}


def _frame(**columns: Any) -> dict[str, Any]:
    """A chain whose features are a data frame."""
    return {**CHAIN, "X": [pd.DataFrame(columns)]}


INFINITE = {**CHAIN, "X": [np.full((2, 2), np.inf)]}
UNKNOWN = {**CHAIN, "y": [[None, None]]}
WEIGHTLESS = {**CHAIN, "sample_weight": [0]}
INDUCED = LinearCRF(feature_induction=1)
TRIED: dict[str, tuple[Any, dict[str, Any], dict[str, Any], str]] = {
    "columns of another number": (LinearCRF(), CHAIN, {**CHAIN, "X": [np.ones((2, 3))]},
                                  "2 features at worker 0 and 3 at worker 1"),
    "X of another kind": (LinearCRF(), CHAIN, {**CHAIN, "X": [sparse.csr_matrix(np.eye(2))]},
                          "dense arrays at worker 0 and sparse matrices at worker 1"),
    "X of words": (LinearCRF(), CHAIN, {**CHAIN, "X": [[["a"], ["b"]]]},
                   "dense arrays at worker 0 and dicts or texts"),
    "columns of another name": (GBCRF(1), _frame(a=[1, 2]), _frame(b=[1, 2]),
                                "column 0 of X is 'a' at worker 0 and 'b' at worker 1"),
    "columns of another kind": (
        GBCRF(1), _frame(a=pd.Categorical([1, 2])), _frame(a=[1, 2]),
        "column 'a' of X holds categories at worker 0 and numbers at worker 1"),
    "categories for one of them": (
        GBCRF(1), _frame(a=pd.Categorical([1, 2])), {"X": [], "y": []},
        "column 'a' of X has categories, and worker 1 has no"),
    "parents for one of them": (LinearCRF(), CHAIN, {**CHAIN, "parents": [[-1, 0]]},
                                "parents are given at worker 1 and not at worker 0"),
    "a bad number at the second": (GBCRF(1), CHAIN, INFINITE,
                                   "^instance 1, position 0: feature 0 is infinite"),
    "too few labels at the second": (GBCRF(1), CHAIN, {**CHAIN, "y": []},
                                     "^worker 1: y has 0 instances but X has 1"),
    "a GPU for two of them": (GBCRF(1, device="cuda"),
        CHAIN, CHAIN, "device is 'cuda', but 2 workers train together: trees grow on one GPU"),
    "a base_learner for two of them": (GBCRF(1, base_learner=DecisionTreeRegressor()),
        CHAIN, CHAIN, "base_learner learns from the rows of one worker"),
    "no known label at all": (GBCRF(1), UNKNOWN, UNKNOWN, "^y has no known label$"),
    "weights of 0 at all": (GBCRF(1), WEIGHTLESS, WEIGHTLESS,
                            "sample_weight is zero for every instance"),
    "feature_induction": (INDUCED, CHAIN, CHAIN,
                          "feature_induction compares pairs of features over all positions"),
}  # fmt: skip


def _attempt(crf: Any, parts: tuple[dict[str, Any], ...]) -> Any:
    def attempt(subject: Any, folder: Path) -> Any:
        models = [type(crf)(**crf.get_params(deep=False)) for _ in parts]
        return together(len(parts), lambda workers: models[workers.rank].fit(**parts[workers.rank]))

    return attempt


CASES = [
    Case(AREA, tried, _attempt(crf, (one, other)), message)
    for tried, (crf, one, other, message) in TRIED.items()
]
