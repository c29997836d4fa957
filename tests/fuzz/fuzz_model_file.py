"""Model files: whatever is loaded must answer, or say why not; saved again it loads again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from harness import fuzz, on_disk
from zips import mutator

from crfx.estimators.registry import load

SAVED = Path(__file__).parents[1] / "saved_models"
MODULES = [
    "crfx.estimators.arguments",
    "crfx.estimators.registry",
    "crfx.io.model_file",
    "crfx.io.npz",
    "crfx.objectives.registry",
    "crfx.objectives.task_loss",
    "crfx.potentials.context_trees",
    "crfx.potentials.hidden_unit",
    "crfx.potentials.linear",
    "crfx.potentials.transitions",
    "crfx.potentials.tree_arrays",
    "crfx.potentials.tree_format",
    "crfx.potentials.ubjson",
    "crfx.serialisation.saved",
    "crfx.serialisation.saved_model",
    "crfx.serialisation.saved_training",
    "crfx.state",
]
SEEDS = [path.read_bytes() for path in sorted(SAVED.glob("*-1.crfx"))]
FEW = 5


def ask(path: str) -> Any:
    """Load it, and ask about five positions, or documents."""
    crf = load(path)
    crf.n_jobs = 1
    n_features = crf.columns_.n
    if n_features > 1000:
        return crf
    if crf.columns_.categories:
        return crf  # it asks for a data frame
    X = np.linspace(-2, 2, FEW * n_features, dtype=np.float32).reshape(FEW, n_features)
    if not hasattr(crf, "classes_"):
        return crf.predict(X)
    if crf.columns_.vocabulary is not None:
        X = [[{"sign": "+", "größe": 0.5}], [["0True", "1False", "word[0]=w1"]]]  # type: ignore[assignment]
        return crf.predict_marginals(X)
    more: dict[str, Any] = {"lengths": [3, 2]}
    if crf.model_.is_forest:
        more["parents"] = [-1, 0, 0, -1, 0]
    if crf.model_.n_types is not None:
        more["edge_types"] = [0] * FEW
    return crf.predict_marginals(X, **more)


TARGET = on_disk(ask, ".crfx")

if __name__ == "__main__":
    import atheris

    fuzz(
        TARGET,
        SEEDS,
        MODULES,
        mutator=mutator(lambda raw, size: atheris.Mutate(raw, size), SEEDS),
        max_len=1 << 15,
    )
