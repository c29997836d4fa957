"""What the training of an estimator is counted in."""

from __future__ import annotations

from typing import Any

_COUNTED = {"n_estimators": "rounds", "max_iter": "iterations", "sweeps": "sweeps"}


def counted_in(model: Any) -> str:
    """In a word: rounds, iterations or sweeps."""
    return _COUNTED[rounds_argument(model)]


def rounds_argument(model: Any) -> str:
    """The argument that says how long training goes on."""
    if getattr(model, "scorer", None) == "linear":
        return "sweeps"
    if hasattr(model, "n_estimators"):
        return "n_estimators"
    return "max_iter" if model.trainer == "lbfgs" else "sweeps"
