"""Conditional random fields whose potentials are learned functions.

The pipeline, from input to labels::

    X, y ─ `datasets`, `features` ─▶ `batch` ─▶ `structures` ─ potentials score its parts
      ─▶ `scores` ─ `_core` ─▶ `inference` ─▶ log Z, marginals, best labelling
                                                                  (`testing`: oracles for all of it)
      ─▶ `objectives` ─ gradient, curvature ─▶ `potentials` ─▶ `model` ─▶ `io` ─▶ a file
         moved by `trainers` on what `inputs` read; `prediction` decodes it, `explain` says why and
         `serialisation` keeps it in a file; `estimators` offer all of it in the manner of
         scikit-learn, by many workers at once where `distributed` says so; `report` draws and
         describes a model; `cli` is the command line

`features` reads matrices, data frames and dicts, `batch` stacks instances without padding,
`structures` says which parts an instance has, `scores` is the one currency, `inference` runs sums
and maxima over it in the compiled `_core`.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crfx.estimators.crfsuite_models import from_crfsuite
    from crfx.estimators.gbcrf import GBCRF
    from crfx.estimators.hidden_unit import HiddenUnitCRF
    from crfx.estimators.linear import LinearCRF
    from crfx.estimators.ranking import RankingCRF
    from crfx.estimators.registry import load
    from crfx.estimators.treecrf import TreeCRF
    from crfx.inputs.shards import write_shards
    from crfx.io.shards import Shards
    from crfx.structures.constraints import Constraints
    from crfx.trainers.callbacks import Checkpoint
    from crfx.trainers.induction import FeatureInduction
    from crfx.versions import instruction_set, show_versions

# Idle threads spin before they sleep, by default for milliseconds, and occupy a processor core all
# that time: XGBoost and our core have a runtime each, and so have other programs. An OpenMP
# runtime reads this when it is loaded; docs/decisions/0008.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "3000")

__version__ = version("crfx")
__all__ = [
    "GBCRF",
    "Checkpoint",
    "Constraints",
    "FeatureInduction",
    "HiddenUnitCRF",
    "LinearCRF",
    "RankingCRF",
    "Shards",
    "TreeCRF",
    "__version__",
    "from_crfsuite",
    "instruction_set",
    "load",
    "show_versions",
    "write_shards",
]

# Imported when first asked for: `import crfx` stays light.
_HOMES = {
    "Checkpoint": "crfx.trainers.callbacks",
    "Constraints": "crfx.structures.constraints",
    "FeatureInduction": "crfx.trainers.induction",
    "GBCRF": "crfx.estimators.gbcrf",
    "HiddenUnitCRF": "crfx.estimators.hidden_unit",
    "LinearCRF": "crfx.estimators.linear",
    "RankingCRF": "crfx.estimators.ranking",
    "Shards": "crfx.io.shards",
    "TreeCRF": "crfx.estimators.treecrf",
    "from_crfsuite": "crfx.estimators.crfsuite_models",
    "instruction_set": "crfx.versions",
    "load": "crfx.estimators.registry",
    "show_versions": "crfx.versions",
    "write_shards": "crfx.inputs.shards",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
