"""Arguments of estimators with mistakes of their own: sizes, combinations, parts with settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from crfx import LinearCRF
from crfx.trainers.induction import FeatureInduction
from listed.case import Case, arguments_of, each
from listed.subjects import WORDS, X, Y, only_unfitted

AREA = "arguments that do not go together"
FAR = 10**12


def _case(estimator: str, tried: str, message: str, data: Any = X, **arguments: Any) -> Case:
    def attempt(crf: Any, folder: Path, arguments: dict[str, Any]) -> Any:
        return crf.set_params(**arguments).fit(data, Y)

    subjects, values = only_unfitted([estimator]), arguments_of(arguments)
    tried = f"{estimator}, {tried}"
    return Case(AREA, tried, attempt, message, subjects=subjects, values=values)


TREES: dict[str, tuple[Any, str]] = {
    "a list": ([("gamma", 1)], "tree_params is a list"),
    "an argument of GBCRF": (each({"max_depth": 3}, {"eta": 0.1}),
        "tree_params holds (max_depth|eta)"),
    "a name that XGBoost has not": ({"nonsense": 1}, "tree_params.*nonsense"),
    "a device": ({"device": "cuda"}, "tree_params holds device: pass device='cuda' to GBCRF"),
    "a number that is text": ({"gamma": "x"}, "min_split_loss"),
    "a number that is out of range": ({"colsample_bytree": 7}, "colsample_bytree"),
    "NaN": ({"gamma": float("nan")}, "tree_params.*gamma"),
    "a booster of another kind": ({"booster": "gblinear"}, "booster is 'gblinear'"),
    "leaves of vectors": ({"multi_strategy": "multi_output_tree"}, "multi_strategy"),
    "a name that is a number": ({3: 1}, "tree_params"),
}  # fmt: skip
LINEAR: dict[str, tuple[dict[str, Any], str]] = {
    "l1 for descent": ({"trainer": "sgd", "l1": 1.0}, 'l1 is for "lbfgs"'),
    "n_hashed of 2**31": ({"n_hashed": 2**31}, "n_hashed is 2147483648"),
    "n_hashed and min_count": ({"n_hashed": 8, "min_count": 2}, "n_hashed needs min_count=1"),
    "n_hashed for numbers": ({"n_hashed": 8}, "n_hashed is 8, but X holds numbers"),
    "min_count for numbers": ({"min_count": 2}, "min_count is 2, but X holds numbers"),
    "a high order": ({"order": each(40, FAR)}, "order is (40|1000000000000)"),
    "an order whose tables do not fit": ({"order": 30}, "order=30 with 2 labels needs"),
    "induction of 2.5 rounds": ({"feature_induction": 2.5}, "feature_induction is 2.5"),
    "induction by descent": ({"feature_induction": 2, "trainer": "sgd"},
                             'feature_induction is for trainer "lbfgs"'),
    "induction for another objective": ({"feature_induction": 2, "objective": "pseudo_likelihood"},
                                        "feature_induction is for the likelihood"),
    "settings of induction": (
        {"feature_induction": each(FeatureInduction(rounds=-1), FeatureInduction(candidates=0),
                                   FeatureInduction(confidence=2.0))},
        "feature_induction: (rounds is -1|candidates is 0|confidence is 2.0)"),
    "n_jobs beyond all machines": ({"n_jobs": FAR}, "n_jobs is 1000000000000"),
}  # fmt: skip
HIDDEN: dict[str, tuple[dict[str, Any], str]] = {
    "no units, no skip": ({"n_hidden": 0}, "n_hidden is 0 and skip is False"),
    "10**12 units": ({"n_hidden": FAR}, "n_hidden is 1000000000000"),
    "dropout for L-BFGS": ({"trainer": "lbfgs", "dropout": 0.5}, "dropout is 0.5, but trainer"),
    "dropout of all": ({"dropout": 1.0}, "dropout is 1.0"),
    "herding by descent": ({"herding": True}, "herding is for trainers"),
    "herding and stopping": ({"trainer": "perceptron", "herding": True, "early_stopping_rounds": 2},
        "herding keeps every sweep"),
    "joint decoding of tanh": ({"activation": "tanh", "decode": "joint"}, 'decode is "joint"'),
    "another objective for perceptrons": ({"trainer": "perceptron", "objective": "kl"},
                                          "objective"),
    "no pretraining sweep": ({"pretrain": "discriminative", "pretrain_sweeps": 0}, "is 0"),
    "a step that blows up": ({"step": 1e300}, "step is 1e\\+300"),
}  # fmt: skip
LEARNERS: dict[str, tuple[Any, str]] = {
    "a class": (KNeighborsRegressor, "base_learner is the class KNeighborsRegressor"),
    "a text": ("tree", "base_learner is 'tree'"),
    "without sample_weight": (KNeighborsRegressor(), "base_learner.*sample_weight"),
    "a classifier": (LogisticRegression(), "base_learner"),
}


def _forest_of_order_2(crf: Any, folder: Path) -> Any:
    chains = [list(range(-1, len(labels) - 1)) for labels in Y]
    return LinearCRF(order=2).fit(X, Y, parents=chains)


CASES = [
    *(_case("GBCRF", f"tree_params of {t}", m, tree_params=v) for t, (v, m) in TREES.items()),
    *(_case("GBCRF", f"base_learner, {t}", m, base_learner=v) for t, (v, m) in LEARNERS.items()),
    _case("GBCRF", "tree_params beside a base_learner", "a base_learner takes its place",
          tree_params={"gamma": 1}, base_learner=DecisionTreeRegressor()),
    _case("GBCRF", "a GPU for a base_learner", "a base_learner takes the place", device="cuda",
          base_learner=DecisionTreeRegressor()),
    _case("GBCRF", "depth of 10**12", "max_depth is 1000000000000: it must", max_depth=FAR),
    _case("GBCRF", "10**12 bins", "max_bin is 1000000000000: it must", max_bin=FAR),
    _case("GBCRF", "an order of 10**12", "order is 1000000000000", order=FAR),
    _case("TreeCRF", "a window of 2", "window is 2", window=2),
    _case("TreeCRF", "other sides of a window", "window",
          window=each((1, 2, 3), (-1, 1), ("a", "b"), FAR + 1)),
    _case("TreeCRF", "trimming of all", "influence_trimming is 1.0", influence_trimming=1.0),
    *(_case("LinearCRF", tried, message, **more) for tried, (more, message) in LINEAR.items()),
    *(_case("HiddenUnitCRF", tried, message, **more) for tried, (more, message) in HIDDEN.items()),
    _case("LinearCRF", "min_count above all counts", "min_count is 99", WORDS, min_count=99),
    _case("HiddenUnitCRF", "contrastive pretraining of words", "pretrain", WORDS,
          pretrain="contrastive"),
    Case(AREA, "LinearCRF, a forest of order 2", _forest_of_order_2, "parents .*order=2"),
    Case(AREA, "LinearCRF, an argument that it has not",
         lambda crf, folder: LinearCRF(depth=3), "depth", TypeError),
]  # fmt: skip
