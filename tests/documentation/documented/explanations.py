"""Errors of the sums of explanations, over small models of every kind that labels."""

from __future__ import annotations

import runpy
from typing import Any

import numpy as np

from documented import ROOT

KINDS = runpy.run_path(str(ROOT / "tests" / "saved_models" / "kinds.py"))["KINDS"]
VOTES = "hidden-perceptron"  # its sweeps vote: there is no score to explain


def sums() -> dict[str, Any]:
    """The largest difference between base + contributions and the score of a label."""
    names = [name for name, kind in KINDS.items() if not kind.ranks and name != VOTES]
    return {"kinds": len(names), "worst": max(map(_worst, names))}


def _worst(name: str) -> float:
    kind = KINDS[name]
    crf = kind.fitted()
    X, _, more = kind.data(1)  # not what it was fitted on
    explanation = crf.explain(next(iter(X)), **{key: values[0] for key, values in more.items()})
    return max(
        float(np.abs(position.base + position.contributions.sum(axis=0) - position.score).max())
        for position in explanation.positions
    )
