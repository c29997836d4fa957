"""Objectives and task losses with settings that make no sense."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from crfx.objectives import KL, CostMatrix, ExpectedLoss, LossAugmented, LossScaled
from listed.case import NOTHING, Case
from listed.subjects import LABELLERS, X, Y, only_unfitted

AREA = "objectives"
NAN, INF = np.nan, np.inf


def _made(tried: str, make: Callable[[], Any], message: str, error: Any = ValueError) -> Case:
    return Case(AREA, tried, lambda crf, folder: make(), message, error, (NOTHING,))


def _fit(tried: str, message: str, y: Any = Y, names: Any = LABELLERS, **arguments: Any) -> Case:
    def attempt(crf: Any, folder: Path) -> Any:
        return crf.set_params(**arguments).fit(X, y)

    return Case(AREA, tried, attempt, message, subjects=only_unfitted(names))


UNKNOWN = [[None, *own[1:]] for own in Y]
NO_PSEUDO = [name for name in LABELLERS if name != "TreeCRF"]
"""It begins with rounds of the pseudo-likelihood, and has no others here."""
COSTS: dict[str, Any] = {
    "costs of no matrix": [1.0, 2.0],
    "costs that are not square": np.zeros((2, 3)),
    "costs of the truth": [[1.0, 1.0], [1.0, 0.0]],
}

CASES = [
    _made("KL at temperature 0", lambda: KL(temperature=0), "temperature is 0: it must be above 0"),
    _made("KL at temperature -1", lambda: KL(temperature=-1.0), "temperature is -1.0"),
    _made("KL at temperature NaN", lambda: KL(temperature=NAN), "temperature is nan"),
    _made("KL at infinite temperature", lambda: KL(temperature=INF), "temperature is inf"),
    _made("KL at a temperature of text", lambda: KL(temperature="hot"), "temperature is 'hot'"),
    _made("KL of no candidates", lambda: KL(n_candidates=0), "n_candidates is 0"),
    _made("KL of candidates from nowhere", lambda: KL(candidates="x"), "candidates is 'x'"),
    _made("KL with a seed below 0", lambda: KL(seed=-1), "seed is -1"),
    _made("KL with a seed of None", lambda: KL(seed=None), "seed is None"),
    _made("augmented by weight -1", lambda: LossAugmented(weight=-1), "weight is -1"),
    _made("augmented by weight NaN", lambda: LossAugmented(weight=NAN), "weight is nan"),
    _made("augmented by weight 1e30", lambda: LossAugmented(weight=1e30), "weight is 1e\\+30"),
    _made("augmented by True", lambda: LossAugmented(weight=True), "weight is True"),
    _made("scaled by 0 samples", lambda: LossScaled(n_samples=0), "n_samples is 0"),
    _made("scaled up to length -1", lambda: LossScaled(longest=-1), "longest is -1"),
    _made("scaled up to length 1.5", lambda: LossScaled(longest=1.5), "longest is 1.5"),
    _made("1 candidate", lambda: ExpectedLoss(n_candidates=1), "n_candidates is 1"),
    _made("expected loss of 10**12 candidates", lambda: ExpectedLoss(n_candidates=10**12),
          "n_candidates is 1000000000000"),
    _made("a setting that KL has not", lambda: KL(heat=1), "heat", TypeError),
    _made("negative costs", lambda: CostMatrix([[0.0, -1.0], [1.0, 0.0]]), "cost"),
    _made("costs of NaN", lambda: CostMatrix([[0.0, NAN], [1.0, 0.0]]), "cost"),
    _made("costs of text", lambda: CostMatrix([["a", "b"], ["c", "d"]]), "cost"),
    _made("ragged costs", lambda: CostMatrix([[0.0], [1.0, 0.0]]), "cost"),
    *(
        _fit(tried, "cost", objective="expected_loss", task_loss=CostMatrix(matrix))
        for tried, matrix in COSTS.items()
    ),
    _fit("a name that there is not", "objective is 'hinge': choose one of", objective="hinge"),
    _fit("a class in place of an object", "objective is the class KL: pass one", objective=KL),
    _fit("a task loss in place of an objective", "a task_loss: choose one of",
         objective=CostMatrix([[0.0, 1.0], [1.0, 0.0]])),
    _fit("a task loss that there is not", "task_loss is 'x'", objective="kl", task_loss="x"),
    _fit("a task loss that is not used", "task_loss", task_loss="hamming"),
    _fit("costs of three labels for two", "3|labels", objective="expected_loss",
         task_loss=CostMatrix(1.0 - np.eye(3))),
    _fit("spans of labels that are no tags", "span_f1|tags|label", [[1] * len(own) for own in Y],
         NO_PSEUDO, objective="expected_loss", task_loss="span_f1"),
    _fit("a margin that grows with whole losses", "sum over positions",
         objective="loss_augmented", task_loss="zero_one"),
    _fit("unknown labels for the expected loss", "unknown|needs every label", UNKNOWN,
         objective="loss_scaled"),
    _fit("candidates where the sum is exact", "leave candidates out",
         objective=ExpectedLoss(candidates="kbest")),
]  # fmt: skip
