"""What training noted, round by round, with the words that a reader needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crfx.report.naming import called

_TITLES = {
    "objective": "training objective",
    "gamma": "γ, mean over nodes",
    "halvings": "halvings of the step",
    "effective_samples": "effective samples, mean",
}
_TOLD_ELSEWHERE = ("seconds",)


@dataclass(frozen=True)
class HistoryCurve:
    """A number of every round; NaN where a round has none.

    ``kept`` is the index of the round that the model was restored to, the last one otherwise.
    """

    name: str
    title: str
    values: list[float]
    kept: int

    @property
    def at_kept(self) -> float:
        """The number of that round."""
        return self.values[self.kept]


def history_curves(model: Any) -> dict[str, HistoryCurve]:
    """By name the curves of ``model.history_`` that have a number: objective and eval_metric first,
    if they are there; how long rounds took is left out.
    """
    history = model.history_
    foremost = ["objective", "eval_metric"]
    names = [*foremost, *sorted(set(history) - {*foremost, *_TOLD_ELSEWHERE})]
    found = {}
    for name in names:
        values = [float(value) for value in history.get(name, [])]
        if np.isfinite(values).any():
            kept = min(int(model.best_iteration_), len(values) - 1)
            found[name] = HistoryCurve(name, _title(model, name), values, kept)
    return found


def _title(model: Any, name: str) -> str:
    if name != "eval_metric":
        return _TITLES.get(name, name.replace("_", " "))
    return f"{called(model.eval_metric)} on the evaluation set"
