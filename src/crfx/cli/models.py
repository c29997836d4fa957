"""Model files that commands read."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any


def load_model(path: Path, n_jobs: int | None = None) -> Any:
    """Return a model of any kind, for use on ``n_jobs`` threads."""
    from crfx.estimators.registry import load

    try:
        model = load(path)
    except ValueError as error:
        if zipfile.is_zipfile(path):
            raise
        raise ValueError(f"{error} (the model comes before the file)") from None
    if n_jobs is not None:
        model.set_params(n_jobs=n_jobs)
    return model


def load_labeller(path: Path, n_jobs: int | None = None) -> Any:
    """Return a model that labels, for use on ``n_jobs`` threads."""
    model = load_model(path, n_jobs)
    if not hasattr(model, "classes_"):
        raise ValueError(f"{path} holds a {type(model).__name__}: `crfx rank` is for those")
    return model


def load_ranker(path: Path) -> Any:
    """Return a model that ranks."""
    model = load_model(path)
    if hasattr(model, "classes_"):
        raise ValueError(f"{path} holds a {type(model).__name__}: rank needs a RankingCRF")
    return model
