"""Small estimators of every kind, and what to fit them on: for saved files and for contracts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from crfx import GBCRF, FeatureInduction, HiddenUnitCRF, LinearCRF, RankingCRF, TreeCRF
from crfx.features import Template
from crfx.io.conll import Conll
from crfx.io.reading import Reading
from crfx.objectives import LossAugmented
from crfx.testing import make_task

ONE = {"random_state": 0, "n_jobs": 1}
TEMPLATE = Template("word[-1..1]\nsuffix(word[0], 1..2)\nword[0] & word[1]", ["word"])


@dataclass(frozen=True)
class Kind:
    """An estimator, what it is fitted on, and how its training is made longer.

    ``data`` gives (X, y, further arguments of fit) of a seed; other data come from another.
    """

    make: Callable[..., Any]
    data: Callable[[int], tuple[Any, Any, dict[str, Any]]]
    longer: dict[str, Any] = field(default_factory=dict)
    base: Any = None
    ranks: bool = False

    def fitted(self, init_model: Any = None, seed: int = 0, **arguments: Any) -> Any:
        """Fitted, on its base where it has one."""
        X, y, more = self.data(seed)
        if init_model is None and self.base is not None:
            init_model = self.base().fit(X, y, **more)
        return self.make(**arguments).fit(X, y, init_model=init_model, **more)


def dense(seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """Chains of numbers."""
    X, y = make_task(seed, n_instances=14)
    return X, y, {}


def holes(seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """Return data with missing values and numeric labels."""
    X, y, more = dense(seed)
    random = np.random.default_rng(seed)
    X = [np.where(random.random(x.shape) < 0.2, np.nan, x).astype(np.float32) for x in X]
    return X, [[int(label[1:]) for label in labels] for labels in y], more


def typed(seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """Chains with two types of edges."""
    X, y, _ = dense(seed)
    return X, y, {"edge_types": [np.arange(len(x)) % 2 for x in X]}


def forest(seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """Trees of numbers."""
    X, y, _ = dense(seed)
    return X, y, {"parents": [np.array([-1, *((np.arange(1, len(x)) - 1) // 2)]) for x in X]}


def words(seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """Dicts of features, numbers among them."""
    X, y, more = dense(seed)
    dicts = [
        [{"sign": "+" if row[0] > 1 else "-", "größe": round(float(row[1]), 2)} for row in x]
        for x in X
    ]
    return dicts, y, more


def sentences(seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """Words seen through a template."""
    X, y, more = dense(seed)
    return TEMPLATE([[f"w{int(row[0] * 2)}" for row in x] for x in X]), y, more


def binary(seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """Texts, which say little one by one."""
    X, y, more = dense(seed)
    return [[[f"{k}{v > 1}" for k, v in enumerate(row)] for row in x] for x in X], y, more


def entities(seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """Words with labels that mark spans, in IOB1."""
    X, y, more = words(seed)
    names = {"L0": "O", "L1": "I-PER", "L2": "I-LOC"}
    return X, [[names.get(str(label), "O") for label in labels] for labels in y], more


def frames(seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """A number and a category."""
    import pandas

    X, y, more = dense(seed)
    made = []
    for x in X:
        codes = np.clip(x[:, 1] + 1, 0, 3).astype(int)
        kinds = pandas.Categorical.from_codes(codes, list("uvwx"))
        made.append(pandas.DataFrame({"number": x[:, 0], "kind": kinds}))
    return made, y, more


def queries(seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """Documents to order."""
    random = np.random.default_rng(seed)
    group = random.integers(2, 9, 12)
    X = random.normal(size=(group.sum(), 4)).astype(np.float32)
    return X, np.digitize(2 * X[:, 0] - X[:, 1], [0.5, 2.0]).astype(float), {"group": group}


def _kind(cls: Any, data: Any, longer: dict[str, Any], base: Any = None, **arguments: Any) -> Kind:
    def make(**more: Any) -> Any:
        return cls(**{**ONE, **arguments, **more})

    return Kind(make, data, longer, base, cls is RankingCRF)


def _gbcrf(data: Any = dense, **arguments: Any) -> Kind:
    base = arguments.pop("base", None)
    return _kind(
        GBCRF, data, {"n_estimators": 5}, base, **{"n_estimators": 3, "max_depth": 2, **arguments}
    )


def _treecrf(data: Any = dense, **arguments: Any) -> Kind:
    small = {"n_estimators": 3, "max_leaves": 4, "pseudo_likelihood_rounds": 1}
    return _kind(TreeCRF, data, {"n_estimators": 5}, **{**small, **arguments})


def _hidden(trainer: str, data: Any = dense, **arguments: Any) -> Kind:
    longer = {"max_iter": 6} if trainer == "lbfgs" else {"sweeps": 6}
    small = {"n_hidden": 3, "max_iter": 4, "sweeps": 4, "trainer": trainer, "l2": 0.1}
    small |= {} if trainer == "lbfgs" else {"step": 0.1}
    base = arguments.pop("base", None)
    return _kind(HiddenUnitCRF, data, longer, base, **{**small, **arguments})


def _linear(data: Any = dense, **arguments: Any) -> Kind:
    longer = {"max_iter": 8} if arguments.get("trainer", "lbfgs") == "lbfgs" else {"sweeps": 6}
    base = arguments.pop("base", None)
    small = {"max_iter": 5, "sweeps": 4, "l2": 0.1}
    return _kind(LinearCRF, data, longer, base, **{**small, **arguments})


def _ranking(scorer: str, base: Any = None, **arguments: Any) -> Kind:
    longer = {"sweeps": 5} if scorer == "linear" else {"n_estimators": 5}
    return _kind(RankingCRF, queries, longer, base, scorer=scorer, **arguments)


FEW_TREES = {"n_estimators": 3, "min_child_weight": 0.5, "max_depth": 2}
INDUCTION = FeatureInduction(rounds=1, per_round=4, iterations=3, min_count=1, min_gain=0.0)


def _as_from_a_file(kind: Kind) -> Kind:
    """One that knows how its file was read, as those of ``crfx train`` do."""

    def make(**more: Any) -> Any:
        crf = kind.make(**more)
        crf.reading_ = Reading(Conll(("word",)), TEMPLATE)
        return crf

    return replace(kind, make=make)


KINDS: dict[str, Kind] = {
    "gbcrf": _gbcrf(),
    "gbcrf-linear": _gbcrf(edges="linear", learning_rate=0.1),
    "gbcrf-trees": _gbcrf(edges="trees", order=2),
    "gbcrf-independent": _gbcrf(holes, edges=None),
    "gbcrf-typed": _gbcrf(typed, subsample=0.7, colsample_bynode=0.5),
    "gbcrf-typed-trees": _gbcrf(typed, edges="trees"),
    "gbcrf-forest": _gbcrf(forest, decode="marginal"),
    "gbcrf-categories": _gbcrf(frames),
    "gbcrf-words": _gbcrf(words, objective=LossAugmented()),
    "gbcrf-on-linear": _gbcrf(base=lambda: LinearCRF(max_iter=3, **ONE)),
    "gbcrf-constraints": _gbcrf(entities, constraints="bioes", class_weight="balanced"),
    "treecrf": _treecrf(),
    "treecrf-order-2": _treecrf(holes, order=2, window=(0, 1), curvature="diagonal"),
    "treecrf-forest": _treecrf(forest, window=1),
    "treecrf-categories": _treecrf(frames, subsample=0.7),
    "treecrf-words": _treecrf(words),
    "hidden-lbfgs": _hidden("lbfgs"),
    "hidden-sgd": _hidden("sgd", words, dropout=0.2, n_hashed=64),
    "hidden-perceptron": _hidden("perceptron", herding=True),
    "hidden-large-margin": _hidden("large_margin", forest, margin=0.5),
    "hidden-order-2": _hidden("sgd", order=2, activation="tanh", skip=True, batch_size=4),
    "hidden-on-linear": _hidden("lbfgs", base=lambda: LinearCRF(max_iter=3, **ONE)),
    "linear": _linear(),
    "linear-edges": _linear(typed, edges="linear", order=1),
    "linear-order-3": _linear(holes, order=3, features="observed"),
    "linear-independent": _linear(edges=None),
    "linear-forest": _linear(forest, start_end=False),
    "linear-words": _linear(words, l1=0.05),
    "linear-template": _linear(sentences, min_count=2),
    "linear-constraints": _linear(entities, constraints="bio", class_weight={"O": 0.5}),
    "linear-file": _as_from_a_file(_linear(sentences)),
    "linear-hashed": _linear(words, n_hashed=32),
    "linear-induction": _linear(binary, feature_induction=INDUCTION),
    "linear-sgd": _linear(trainer="sgd", step=0.1, objective="expected_loss"),
    "linear-perceptron": _linear(words, trainer="perceptron"),
    "linear-large-margin": _linear(words, trainer="large_margin", edges="linear"),
    "linear-on-gbcrf": _linear(base=lambda: GBCRF(2, max_depth=2, **ONE)),
    "ranking-linear": _ranking("linear", sweeps=3),
    "ranking-trees": _ranking("trees", **FEW_TREES),
    "ranking-trees-on-linear": _ranking(
        "trees", lambda: RankingCRF("linear", sweeps=2, **ONE), **FEW_TREES
    ),
}
