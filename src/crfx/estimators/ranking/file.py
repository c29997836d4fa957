"""A RankingCRF to the contents of a model file and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfx.estimators.arguments import RANKING_ARGUMENTS, check_arguments
from crfx.estimators.file_values import number, whole
from crfx.estimators.ranking.estimator import RankingCRF
from crfx.estimators.ranking.model import RankingModel, linear_function
from crfx.estimators.ranking.training import SweepState
from crfx.features.columns import Columns
from crfx.io.model_file import Contents
from crfx.potentials import tree_format
from crfx.potentials.linear import LinearFunction
from crfx.potentials.trees import BoostedTrees
from crfx.potentials.xgboost_learner import XGBoostLearner

_MOST_BELOW = 100
"""Models below one another that a file may have."""
_NUMBERS = {"product", "steps", "n_counted", "step"}
_ARRAYS = ("values", "sum")


def pack_ranking(crf: RankingCRF, contents: Contents) -> None:
    """Put the model, and what it takes to go on, into a model file."""
    values = contents.values
    values["n_skipped"] = int(crf.n_skipped_)
    values["model"] = _pack(crf.model_, "", contents)
    if callable(crf.eval_metric):  # which no file can hold; needed in training only
        values["arguments"]["eval_metric"] = "ndcg"
    for name, state in (("training", crf._state), ("best_training", crf._best)):
        if state is not None:
            values[name] = state.numbers
            for own, array in state.arrays.items():
                contents.arrays[f"{name}.{own}"] = array


def unpack_ranking(crf: RankingCRF, contents: Contents) -> None:
    """Take them out again, and check them."""
    check_arguments(crf, RANKING_ARGUMENTS)
    values = contents.values
    crf.n_skipped_ = whole(values, "n_skipped")
    crf.model_ = _unpack(values["model"], "", contents, crf.columns_)
    if crf.model_.scorer != crf.scorer:
        raise ValueError(f"its scores are not those of scorer={crf.scorer!r}")
    function = crf.model_.function
    if isinstance(function, BoostedTrees) and function.n_rounds != crf.n_rounds_:
        raise ValueError("its rounds are not as many as it says")
    crf._state, crf._best = (
        _state(contents, name, crf.columns_.n) for name in ("training", "best_training")
    )
    if (crf._state is not None or crf._best is not None) and crf.scorer != "linear":
        raise ValueError("it has sweeps, but its scores are trees")


def _pack(model: RankingModel, prefix: str, contents: Contents) -> dict[str, Any]:
    function = model.function
    if isinstance(function, LinearFunction):
        contents.arrays[f"{prefix}weights"] = function.weights
    elif function.raw is not None:
        contents.blobs[f"{prefix}trees"] = function.raw
    packed: dict[str, Any] = {"scorer": model.scorer}
    if model.base is not None:
        packed["base"] = _pack(model.base, f"{prefix}base.", contents)
    return packed


def _unpack(
    packed: dict[str, Any], prefix: str, contents: Contents, columns: Columns, depth: int = 0
) -> RankingModel:
    if depth > _MOST_BELOW:
        raise ValueError("too many models stand below one another")
    if packed["scorer"] not in ("linear", "trees"):
        raise ValueError(f"unknown scorer {packed['scorer']!r}")
    function: LinearFunction | BoostedTrees
    if packed["scorer"] == "linear":
        function = linear_function(_numbers(contents, f"{prefix}weights", columns.n))
    else:
        raw, decoded = contents.blobs.get(f"{prefix}trees"), None
        if raw is not None:
            decoded = tree_format.check(
                raw, n_features=columns.n, n_outputs=1, n_categories=columns.category_counts()
            )
        function = BoostedTrees(XGBoostLearner(), 1, raw, decoded)
    base = None
    if "base" in packed:
        base = _unpack(packed["base"], f"{prefix}base.", contents, columns, depth + 1)
    return RankingModel(function, base)


def _state(contents: Contents, which: str, n_features: int) -> SweepState | None:
    if which not in contents.values:
        return None
    told = contents.values[which]
    numbers = {name: float(number(value, f"its {name}")) for name, value in told.items()}
    if set(numbers) != _NUMBERS or not np.isfinite(list(numbers.values())).all():
        raise ValueError("its training is told in a way that this crfx does not know")
    if not (0 < numbers["product"] <= 1 and numbers["step"] > 0):
        raise ValueError("its training has an impossible step")
    if numbers["steps"] < 0 or numbers["n_counted"] < 0:
        raise ValueError("its training counts what is not there")
    return SweepState(
        numbers, {name: _numbers(contents, f"{which}.{name}", n_features) for name in _ARRAYS}
    )


def _numbers(contents: Contents, name: str, n_features: int) -> Any:
    array = contents.arrays[name]
    plain = array.dtype == np.float64 and array.shape == (n_features,)
    if not plain or not np.isfinite(array).all():
        raise ValueError(f"the array {name} does not fit")
    return array
