"""Estimators, fitted and not, that bad inputs are tried on."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, RankingCRF, TreeCRF
from listed.case import Subject

_RANDOM = np.random.default_rng(0)
LENGTHS = (3, 4, 2, 5)
X = [_RANDOM.normal(size=(length, 3)) for length in LENGTHS]
Y = [list("ABA"), list("BABB"), list("AB"), list("BBAAB")]
STACKED, FLAT = np.concatenate(X), [label for labels in Y for label in labels]
WORDS = [[{"w": label, "n": 1.0} for label in labels] for labels in Y]
DOCUMENTS = _RANDOM.normal(size=(12, 3))
RELEVANCE = [0, 1, 2, 0, 1, 0, 2, 1, 0, 1, 0, 0]
GROUP = [6, 6]

LABELLERS: dict[str, Callable[..., Any]] = {
    "GBCRF": lambda **arguments: GBCRF(**{"n_estimators": 2, "max_depth": 2, **arguments}),
    "TreeCRF": lambda **arguments: TreeCRF(**{"n_estimators": 2, "max_leaves": 3, **arguments}),
    "HiddenUnitCRF": lambda **arguments: HiddenUnitCRF(
        **{"n_hidden": 2, "sweeps": 2, "step": 0.1, "random_state": 0, **arguments}
    ),
    "LinearCRF": lambda **arguments: LinearCRF(**{"max_iter": 3, **arguments}),
}
RANKERS: dict[str, Callable[..., Any]] = {
    "RankingCRF": lambda **arguments: RankingCRF(**{"sweeps": 2, "random_state": 0, **arguments}),
    "RankingCRF of trees": lambda **arguments: RankingCRF(
        **{"scorer": "trees", "n_estimators": 2, "min_child_weight": 0.0, **arguments}
    ),
}


@cache
def _fitted(name: str, data: str) -> Any:
    if name in RANKERS:
        return RANKERS[name]().fit(DOCUMENTS, RELEVANCE, group=GROUP)
    return LABELLERS[name]().fit(WORDS if data == "words" else X, Y)


def fitted(name: str, data: str = "numbers") -> Any:
    """A fitted estimator that may be spoilt."""
    return copy.deepcopy(_fitted(name, data))


def _look(name: str, data: str) -> Callable[[Any], Any]:
    good = DOCUMENTS if name in RANKERS else WORDS if data == "words" else X

    def look(crf: Any) -> Any:
        known = sorted(name for name in vars(crf) if not name.startswith("_"))
        if "model_" not in known:
            return known
        return known, [np.asarray(labels).tolist() for labels in crf.predict(good)]

    return look


def unfitted_and_fitted(names: Any = LABELLERS, data: str = "numbers") -> tuple[Subject, ...]:
    """Two subjects for each estimator: `fit` must leave both as they were."""
    return (*only_unfitted(names, data), *only_fitted(names, data))


def only_fitted(names: Any = LABELLERS, data: str = "numbers") -> tuple[Subject, ...]:
    """One fitted subject for each estimator."""
    return tuple(
        Subject(
            f"a fitted {name}",
            lambda name=name: fitted(name, data),  # type: ignore[misc]
            _look(name, data),
        )
        for name in names
    )


def only_unfitted(names: Any = LABELLERS, data: str = "numbers") -> tuple[Subject, ...]:
    """One unfitted subject for each estimator."""
    makers = LABELLERS | RANKERS
    return tuple(Subject(f"an unfitted {name}", makers[name], _look(name, data)) for name in names)
