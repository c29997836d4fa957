"""What the training of an estimator is counted in, and how far it is."""

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


def counter_of(model: Any) -> str:
    """Return the name of the fitted attribute that counts rounds, iterations or sweeps."""
    return "n_rounds_" if hasattr(model, "n_rounds_") else "n_iter_"


def rounds_done(model: Any) -> int:
    """Return how many rounds, iterations or sweeps a model has had."""
    return int(getattr(model, counter_of(model)))
