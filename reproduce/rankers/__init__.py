"""Other ways to learn a ranking, for comparison: those of the paper's Table 1, and current ones.

One file each.  A ranker is trained on one part; those that take steps or rounds keep the one that
is best on a second part, by the figure of a `Judge`.
"""

from __future__ import annotations

from reproduce.rankers import adarank, boosted, listnet, regression, structured_svm
from reproduce.rankers.base import Fitted, Given, Judge, Ranker

RANKERS: dict[str, Ranker] = {
    "Regression": regression.fit,
    "ListNet": listnet.fit,
    "AdaRank": adarank.fit,
    "StructuredSVM": structured_svm.fit,
    "XGBoost": boosted.fit_xgboost,
    "LightGBM": boosted.fit_lightgbm,
}
"""By the names that tables know them by."""

__all__ = ["RANKERS", "Fitted", "Given", "Judge", "Ranker"]
