"""Current boosted trees for ranking: XGBoost's `rank:ndcg` and LightGBM's `lambdarank`.

The one door to LightGBM.  Both stop when NDCG@10 of the validation part has not risen for a while.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from reproduce.rankers.base import Array64, Fitted, Given

_METRIC_CUT = 10


def fit_xgboost(
    data: Given,
    n_estimators: int = 300,
    early_stopping_rounds: int = 50,
    random_state: int = 0,
    **settings: Any,
) -> Fitted:
    """LambdaMART by XGBoost; settings are its parameters."""
    import xgboost

    train, validation = data.train, data.validation
    grown = xgboost.QuantileDMatrix(train.X, train.relevance, group=train.group)
    watched = xgboost.QuantileDMatrix(
        validation.X, validation.relevance, group=validation.group, ref=grown
    )
    booster = xgboost.train(
        {
            "objective": "rank:ndcg",
            "eval_metric": f"ndcg@{_METRIC_CUT}",
            "seed": random_state,
            "nthread": data.n_jobs or 0,
            **settings,
        },
        grown,
        num_boost_round=n_estimators,
        evals=[(watched, "validation")],
        early_stopping_rounds=early_stopping_rounds,
        verbose_eval=False,
    )
    kept = booster.best_iteration + 1

    def scores(X: npt.NDArray[np.float32]) -> Array64:
        margins = booster.inplace_predict(X, iteration_range=(0, kept), predict_type="margin")
        return np.asarray(margins, np.float64)

    return Fitted(scores, kept)


def fit_lightgbm(
    data: Given,
    n_estimators: int = 300,
    early_stopping_rounds: int = 50,
    random_state: int = 0,
    **settings: Any,
) -> Fitted:
    """LambdaMART by LightGBM; settings are its parameters."""
    train, validation = data.train, data.validation
    lightgbm = _lightgbm()
    parameters = {
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": [_METRIC_CUT],
        "seed": random_state,
        "num_threads": data.n_jobs or 0,
        "deterministic": True,
        "force_row_wise": True,  # else it tries both, and times them
        "verbosity": -1,
        **settings,
    }
    grown = lightgbm.Dataset(train.X, train.relevance, group=train.group)
    watched = lightgbm.Dataset(
        validation.X, validation.relevance, group=validation.group, reference=grown
    )
    booster = lightgbm.train(
        parameters,
        grown,
        num_boost_round=n_estimators,
        valid_sets=[watched],
        callbacks=[lightgbm.early_stopping(early_stopping_rounds, verbose=False)],
    )
    kept = booster.best_iteration or n_estimators

    def scores(X: npt.NDArray[np.float32]) -> Array64:
        return np.asarray(booster.predict(X, num_iteration=kept, raw_score=True), np.float64)

    return Fitted(scores, kept)


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError:
        raise ImportError("this needs lightgbm: pip install 'crfx[bench]'") from None
    return lightgbm
