"""Objectives and task losses with settings that make no sense."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from crfx.objectives import KL, CostMatrix, ExpectedLoss, LossAugmented, LossScaled
from listed.case import Case, arguments_of, each
from listed.subjects import LABELLERS, X, Y, only_unfitted

AREA = "objectives"
NAN, INF = np.nan, np.inf


def _made(
    tried: str, make: Callable[..., Any], message: str, *values: Any, error: Any = ValueError
) -> Case:
    """An object that cannot be made, with each of some values."""

    def attempt(crf: Any, folder: Path, *value: Any) -> Any:
        return make(*value)

    return Case(AREA, tried, attempt, message, error, values=each(*values) if values else None)


def _fit(tried: str, message: str, y: Any = Y, names: Any = LABELLERS, **arguments: Any) -> Case:
    def attempt(crf: Any, folder: Path, arguments: dict[str, Any]) -> Any:
        return crf.set_params(**arguments).fit(X, y)

    subjects, values = only_unfitted(names), arguments_of(arguments)
    return Case(AREA, tried, attempt, message, subjects=subjects, values=values)


UNKNOWN = [[None, *labels[1:]] for labels in Y]
NO_PSEUDO = [name for name in LABELLERS if name != "TreeCRF"]
"""It begins with rounds of the pseudo-likelihood, and has no others here."""
COSTS = [[1.0, 2.0], np.zeros((2, 3)), [[1.0, 1.0], [1.0, 0.0]], 1.0 - np.eye(3)]
"""No matrix, not square, a cost of the truth, and of three labels."""

CASES = [
    _made("KL at a temperature", lambda value: KL(temperature=value),
          "temperature is .*: it must be", 0, -1.0, NAN, INF, "hot"),
    _made("KL of no candidates", lambda: KL(n_candidates=0), "n_candidates is 0"),
    _made("KL of candidates from nowhere", lambda: KL(candidates="x"), "candidates is 'x'"),
    _made("KL with a seed", lambda value: KL(seed=value), "seed is (-1|None)", -1, None),
    _made("augmented by a weight", lambda value: LossAugmented(weight=value),
          "weight is .*: it must lie between", -1, NAN, 1e30, True),
    _made("scaled by 0 samples", lambda: LossScaled(n_samples=0), "n_samples is 0"),
    _made("scaled up to a length", lambda value: LossScaled(longest=value), "longest is (-1|1.5)",
          -1, 1.5),
    _made("expected loss of candidates", lambda value: ExpectedLoss(n_candidates=value),
          "n_candidates is .*: it must be a whole number between", 1, 10**12),
    _made("a setting that KL has not", lambda: KL(heat=1), "heat", error=TypeError),
    _made("something else than costs", lambda value: CostMatrix([[0.0, value], [1.0, 0.0]]),
          "the cost matrix holds something else than costs", -1.0, NAN),
    _made("costs of text", lambda: CostMatrix([["a", "b"], ["c", "d"]]), "cost"),
    _made("ragged costs", lambda: CostMatrix([[0.0], [1.0, 0.0]]), "cost"),
    _fit("other costs than of two labels", "cost", objective="expected_loss",
         task_loss=each(*map(CostMatrix, COSTS))),
    _fit("a name that there is not", "objective is 'hinge': choose one of", objective="hinge"),
    _fit("a class in place of an object", "objective is the class KL: pass one", objective=KL),
    _fit("a task loss in place of an objective", "a task_loss: choose one of",
         objective=CostMatrix([[0.0, 1.0], [1.0, 0.0]])),
    _fit("a task loss that there is not", "task_loss is 'x'", objective="kl", task_loss="x"),
    _fit("a task loss that is not used", "task_loss", task_loss="hamming"),
    _fit("spans of labels that are no tags", "span_f1|tags|label",
         [[1] * len(labels) for labels in Y], NO_PSEUDO,
         objective="expected_loss", task_loss="span_f1"),
    _fit("a margin that grows with whole losses", "sum over positions",
         objective="loss_augmented", task_loss="zero_one"),
    _fit("unknown labels for the expected loss", "unknown|needs every label", UNKNOWN,
         objective="loss_scaled"),
    _fit("candidates where the sum is exact", "leave candidates out",
         objective=ExpectedLoss(candidates="kbest")),
]  # fmt: skip
