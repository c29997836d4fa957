"""CRFsuite's model files: what is read is a model that tags."""

from __future__ import annotations

from pathlib import Path

from harness import fuzz, on_disk

from crfx.estimators.crfsuite_models import from_crfsuite

SAVED = Path(__file__).parents[1] / "saved_models" / "crfsuite.model"
MODULES = ["crfx.io.crfsuite_model", "crfx.estimators.crfsuite_models"]
SEEDS = [SAVED.read_bytes()]


def tag(path: str) -> None:
    """A sentence of words it knows, and of others."""
    import warnings

    crf = from_crfsuite(path)
    crf.n_jobs = 1
    with warnings.catch_warnings(action="ignore"):
        crf.predict_marginals([[["sign:+", "größe"], ["new"], {"sign": "-"}]])


TARGET = on_disk(tag)

if __name__ == "__main__":
    fuzz(TARGET, SEEDS, MODULES, max_len=1 << 13)
