"""Every argument of every estimator with values that make no sense: refused by name, or legal.

``LEGAL`` says which are legal; a test fits those.  The others of an argument are a case.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from listed.case import Case, Each
from listed.subjects import DOCUMENTS, GROUP, LABELLERS, RANKERS, RELEVANCE, X, Y, only_unfitted

VALUES: dict[str, Any] = {
    "None": None, "'x'": "x", "-1": -1, "1.5": 1.5, "NaN": np.nan, "infinity": np.inf, "[]": [],
    "{}": {}, "True": True, "an array": np.arange(2), "a class": int,
}  # fmt: skip
NONE = """
base_learner burn_in class_weight constraints curvature cut dropout early_stopping_rounds edges
feature_induction l2 n_hashed n_jobs random_state step task_loss tree_params
"""
"""Arguments that may be None."""
LEGAL: dict[str, str] = dict.fromkeys(NONE.split(), "None") | {
    "class_weight": "None, {}", "curvature": "None, 1.5", "edge_l2": "1.5",
    "eval_metric": "a class", "l1": "1.5", "l2": "None, 1.5", "margin": "1.5",
    "min_child_weight": "1.5", "n_jobs": "None, -1", "reg_lambda": "1.5", "start_end": "True",
    "step": "None, 1.5", "skip": "True", "tol": "1.5", "tree_params": "None, {}",
    "verbose": "True", "HiddenUnitCRF decode": "None", "HiddenUnitCRF pretrain": "None",
    "LinearCRF batch_size": "None", "TreeCRF window": "an array",
}  # fmt: skip
OF_EITHER_SCORER = """
batch_size burn_in colsample_bynode device grow_policy l2 learning_rate loss_weight max_bin
max_depth max_leaves min_child_weight n_estimators n_samples n_subsets reg_lambda step subsample
sweeps temperature tree_params truths
"""
"""Of RankingCRF: None stands for what is usual."""
LEGAL |= {f"{name} {argument}": "None" for name in RANKERS for argument in OF_EITHER_SCORER.split()}
LEGAL |= {
    "RankingCRF l2": "None, 1.5",
    "RankingCRF step": "None, 1.5",
    "RankingCRF temperature": "None, 1.5",
    "RankingCRF of trees min_child_weight": "None, 1.5",
    "RankingCRF of trees reg_lambda": "None, 1.5",
    "RankingCRF of trees temperature": "None, 1.5",
    "RankingCRF of trees tree_params": "None, {}",
}
MAKERS = LABELLERS | RANKERS


def fit(crf: Any) -> Any:
    """Fit the estimator to valid data."""
    if hasattr(crf, "rank"):
        return crf.fit(DOCUMENTS, RELEVANCE, group=GROUP)
    return crf.fit(X, Y)


def legal(estimator: str, argument: str) -> list[str]:
    """Return the values that are legal all the same."""
    return LEGAL.get(f"{estimator} {argument}", LEGAL.get(argument, "")).split(", ")


def _case(estimator: str, argument: str) -> Case:
    def attempt(crf: Any, folder: Path, value: str) -> Any:
        return fit(crf.set_params(**{argument: VALUES[value]}))

    values = Each(value for value in VALUES if value not in legal(estimator, argument))
    area, message = f"arguments of {estimator}", rf"\b{argument}\b"
    subjects = only_unfitted([estimator])
    return Case(area, argument, attempt, message, subjects=subjects, values=values)


ARGUMENTS = {name: list(make().get_params(deep=False)) for name, make in MAKERS.items()}
CASES = [_case(name, argument) for name, values in ARGUMENTS.items() for argument in values]
