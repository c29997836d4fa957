"""Valid arguments of estimators: one table per class, and rules between arguments.

The command line takes its options from these tables, and its help must answer before NumPy and
scikit-learn are imported.  So what is heavy is imported when an argument is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from crfx.estimators.argument_kinds import (
    MOST_INT,
    Choice,
    Flag,
    Kind,
    Number,
    OrNone,
    Read,
    Usual,
    Whole,
)
from crfx.messages import shown

if TYPE_CHECKING:
    from crfx.objectives.ranking import RankingObjective

ALIASES = {
    "alpha": "l1", "c1": "l1", "c2": "l2", "eta": "learning_rate", "lambda": "reg_lambda",
    "max_iterations": "max_iter", "n_iter": "max_iter", "n_rounds": "n_estimators",
    "nthread": "n_jobs", "num_boost_round": "n_estimators", "seed": "random_state",
}  # fmt: skip
"""Names that other libraries have for arguments."""

# Tables, rules and checks.

Rule = Callable[[Mapping[str, Any]], None]
"""Raises ValueError where arguments do not go together."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of a class, and rules between them."""

    kinds: Mapping[str, Kind]
    rules: tuple[Rule, ...]


def table_of(estimator: Any) -> Arguments:
    """Return the table of the arguments of an estimator's class."""
    return next(
        TABLES[kind.__name__] for kind in type(estimator).__mro__ if kind.__name__ in TABLES
    )


def check_arguments(estimator: Any) -> None:
    """Raise ValueError at the first invalid argument, then at the first rule that is broken."""
    table = table_of(estimator)
    arguments = {name: getattr(estimator, name) for name in table.kinds}
    for name, kind in table.kinds.items():
        kind.check(name, arguments[name])
    for rule in table.rules:
        rule(arguments)


def raise_if(when: Callable[[Mapping[str, Any]], Any], message: str) -> Rule:
    """Return a rule that raises ``message``, in which braces hold names of arguments."""

    def rule(arguments: Mapping[str, Any]) -> None:
        if when(arguments):
            raise ValueError(message.format_map(arguments))

    return rule


def objective_suits(arguments: Mapping[str, Any]) -> None:
    """Raise ValueError where loss, trainer, weights or curvature do not suit the objective."""
    from crfx.objectives.registry import ObjectiveSettings

    ObjectiveSettings.of(arguments).check()


# What several classes have.

NOT_NEGATIVE = Number("be 0 or more", lambda value: 0 <= value < inf)
POSITIVE = Number("be above 0", lambda value: 0 < value < inf)
SHARE = Number("lie in (0, 1]", lambda value: 0 < value <= 1)
BELOW_ONE = Number("be 0 or more and below 1", lambda value: 0 <= value < 1)
GROW_POLICY = Choice("depthwise", "lossguide")
STEP = replace(POSITIVE, most=1e20)  # longer ones take scores out of the range of float32
DEVICE = Read("device")

COMMON: dict[str, Kind] = {
    "early_stopping_rounds": OrNone(Whole(1)),
    "n_jobs": Read("threads"),
    "random_state": Read("random_state"),
    "verbose": Whole(0, is_flag=True),
}
LABELLING = COMMON | {
    "order": Whole(1, "most_order", "; edges=None makes positions independent"),
    "start_end": Flag(),
    "objective": Read("objective"),
    "task_loss": Read("task_loss"),
    "class_weight": Read("class_weight"),
    "constraints": Read("constraints"),
    "decode": Choice("viterbi", "marginal"),
    "eval_metric": Read("metric"),
    "min_count": Whole(1),
}
BOOSTED = LABELLING | {
    "n_estimators": Whole(0),
    "learning_rate": SHARE,
    "subsample": SHARE,
    "colsample_bynode": SHARE,
    "reg_lambda": NOT_NEGATIVE,
    "min_child_weight": NOT_NEGATIVE,
    "curvature": Read("curvature"),
}
PERCEPTRONS = ("perceptron", "large_margin")
PARAMETRIC = LABELLING | {
    "trainer": Choice("lbfgs", "sgd", "perceptron", "large_margin"),
    "max_iter": Whole(0),
    "sweeps": Whole(0),
    "tol": NOT_NEGATIVE,
    "margin": NOT_NEGATIVE,
    "n_hashed": OrNone(Whole(1, MOST_INT)),
}

# Boosted trees.

OWN_PARAMS = {
    "base_score", "colsample_bynode", "device", "eta", "grow_policy", "lambda", "learning_rate",
    "max_bin", "max_depth", "max_leaves", "min_child_weight", "n_jobs", "nthread", "num_class",
    "objective", "random_state", "reg_lambda", "seed", "subsample", "tree_method",
}  # fmt: skip
"""Parameters of XGBoost, by all their names, that estimators set from their own arguments."""
TREE_PARAMS = {
    "alpha", "booster", "colsample_bylevel", "colsample_bytree", "gamma", "interaction_constraints",
    "max_cat_threshold", "max_cat_to_onehot", "max_delta_step", "min_split_loss",
    "monotone_constraints", "multi_strategy", "num_parallel_tree", "process_type", "reg_alpha",
    "sampling_method", "verbosity",
}  # fmt: skip
"""Parameters of XGBoost that ``tree_params`` may hold."""


def check_tree_params(owner: str, params: Any) -> None:
    """Raise ValueError at what ``owner`` sets itself, and at what XGBoost's trees do not have."""
    if params is not None and not isinstance(params, dict):
        raise ValueError(f"tree_params is a {type(params).__name__}: pass a dict, or None")
    params = params or {}
    if "device" in params:
        device = shown(params["device"])
        raise ValueError(f"tree_params holds device: pass device={device} to {owner} instead")
    if reserved := ", ".join(sorted(OWN_PARAMS.intersection(params))):
        raise ValueError(
            f"tree_params holds {reserved}: {owner} sets these itself; use its arguments"
        )
    for name, value in params.items():
        if name not in TREE_PARAMS:
            raise ValueError(
                f"tree_params holds {shown(name)}, which XGBoost's trees have not, or which has no "
                "use here"
            )
        if isinstance(value, float) and not isfinite(value):
            raise ValueError(f"tree_params: {name} is {value}: it must be finite")


def check_base_learner(learner: Any) -> None:
    """Raise ValueError unless it is None, or a regressor that takes sample weights."""
    from sklearn.base import is_classifier
    from sklearn.utils.validation import has_fit_parameter

    if learner is None:
        return
    if isinstance(learner, type):
        name = learner.__name__
        raise ValueError(f"base_learner is the class {name}: pass one of its kind, {name}()")
    if not all(hasattr(learner, name) for name in ("fit", "predict", "get_params")):
        fault = ": pass a regressor such as those of scikit-learn, or None for trees"
    elif is_classifier(learner):
        fault = ", a classifier: pass a regressor"
    elif not has_fit_parameter(learner, "sample_weight"):
        fault = ", whose fit has no sample_weight, where curvature goes: pass one that has it"
    else:
        return
    raise ValueError(f"base_learner is {shown(learner)}{fault}")


GBCRF_ARGUMENTS = Arguments(
    BOOSTED
    | {
        "max_depth": Whole(0, MOST_INT),
        "max_leaves": Whole(0, MOST_INT),
        "max_bin": Whole(2, MOST_INT),
        "grow_policy": GROW_POLICY,
        "edges": Choice("table", "linear", "trees", None),
        "edge_l2": NOT_NEGATIVE,
        "tree_params": Read(partial(check_tree_params, "GBCRF")),
        "base_learner": Read(check_base_learner),
        "device": DEVICE,
    },
    rules=(
        objective_suits,
        raise_if(
            lambda a: a["tree_params"] and a["base_learner"] is not None,
            "tree_params are for XGBoost, but a base_learner takes its place",
        ),
        raise_if(
            lambda a: a["device"] != "cpu" and a["base_learner"] is not None,
            "device is {device!r}, but a base_learner takes the place of XGBoost's trees, and "
            'nothing else runs on a GPU: leave device="cpu"',
        ),
    ),
)
TREECRF_ARGUMENTS = Arguments(
    BOOSTED
    | {
        "order": Whole(1, "most_order"),
        "max_leaves": Whole(1),
        "window": Read("window"),
        "pseudo_likelihood_rounds": Whole(0),
        "influence_trimming": BELOW_ONE,
    },
    rules=(objective_suits,),
)

# Weights and hidden units, whose trainers follow a gradient.

INDUCTION: dict[str, Kind] = {
    "rounds": Whole(0),
    "per_round": Whole(1),
    "candidates": Whole(1),
    "min_count": NOT_NEGATIVE,
    "min_gain": NOT_NEGATIVE,
    "confidence": SHARE,
    "iterations": Whole(0),
}
"""Settings of `FeatureInduction`."""


def check_induction(option: Any) -> None:
    """Raise ValueError unless it is None, a number of rounds, or a valid `FeatureInduction`."""
    from crfx.trainers.induction import FeatureInduction

    if isinstance(option, FeatureInduction):
        for name, kind in INDUCTION.items():
            kind.check(f"feature_induction: {name}", getattr(option, name))
    elif option is not None:
        Whole(0).check("feature_induction", option)


def induction_follows_likelihood(arguments: Mapping[str, Any]) -> None:
    """Raise ValueError where conjunctions are to raise another objective than the likelihood."""
    from crfx.objectives.registry import parse

    objective = arguments["objective"]
    if arguments["feature_induction"] is not None and parse(objective).name != "likelihood":
        raise ValueError(f"feature_induction is for the likelihood, but objective is {objective!r}")


HASHED_NAMES_ARE_NOT_COUNTED = raise_if(
    lambda a: a["n_hashed"] is not None and a["min_count"] > 1,
    "hashed names are not kept, nor counted: n_hashed needs min_count=1",
)
LINEAR_ARGUMENTS = Arguments(
    PARAMETRIC
    | {
        "l1": NOT_NEGATIVE,
        "l2": Usual(NOT_NEGATIVE, lambda a: 1.0 if a["trainer"] in ("lbfgs", "sgd") else 0.0),
        "batch_size": Usual(Whole(1), lambda a: 8 if a["trainer"] == "sgd" else 1),
        "burn_in": Usual(Whole(0), lambda a: a["sweeps"] // 2 if a["trainer"] == "sgd" else 0),
        "step": Usual(STEP, lambda a: None if a["trainer"] == "sgd" else 1.0),
        "edges": Choice("table", "linear", None),
        "features": Choice("auto", "observed", "all"),
        "feature_induction": Read(check_induction),
    },
    rules=(
        HASHED_NAMES_ARE_NOT_COUNTED,
        objective_suits,
        raise_if(
            lambda a: a["l1"] and a["trainer"] != "lbfgs",
            'l1 is {l1!r}, but trainer is {trainer!r}: l1 is for "lbfgs"',
        ),
        induction_follows_likelihood,
        raise_if(
            lambda a: a["feature_induction"] is not None and a["trainer"] != "lbfgs",
            'feature_induction is for trainer "lbfgs", not {trainer!r}: it asks for weights near '
            "the minimum of the likelihood, from where new ones start at 0",
        ),
    ),
)
HIDDEN_UNIT_ARGUMENTS = Arguments(
    PARAMETRIC
    | {
        "n_hidden": Whole(0),
        "l2": Usual(NOT_NEGATIVE, lambda a: 1.0 if a["trainer"] == "lbfgs" else 0.0),
        "batch_size": Whole(1),
        "burn_in": Usual(
            Whole(0), lambda a: a["sweeps"] // (10 if a["trainer"] in PERCEPTRONS else 2)
        ),
        "step": OrNone(STEP),
        "activation": Choice("softplus", "relu", "tanh", "sigmoid"),
        "skip": Flag(),
        "herding": Flag(),
        "block_steps": Choice("equal", "size"),
        "dropout": OrNone(BELOW_ONE),
        "pretrain": Choice("discriminative", "contrastive", None),
        "pretrain_sweeps": Whole(1),
        "edges": Choice("table", None),
        "decode": Choice("viterbi", "marginal", "joint", None),
    },
    rules=(
        HASHED_NAMES_ARE_NOT_COUNTED,
        objective_suits,
        raise_if(
            lambda a: a["n_hidden"] == 0 and not a["skip"],
            "n_hidden is 0 and skip is False: no score would depend on the features; skip=True "
            "makes it a linear model",
        ),
        raise_if(
            lambda a: a["decode"] == "joint" and a["activation"] in ("tanh", "sigmoid"),
            'decode is "joint", but units with activation {activation!r} are functions of their '
            "input: there is nothing to maximise over",
        ),
        raise_if(
            lambda a: a["dropout"] and a["trainer"] == "lbfgs",
            'dropout is {dropout!r}, but trainer "lbfgs" takes no steps to leave it out of',
        ),
        raise_if(
            lambda a: a["herding"] and a["trainer"] not in PERCEPTRONS,
            'herding is for trainers "perceptron" and "large_margin", not {trainer!r}',
        ),
        raise_if(
            lambda a: a["herding"] and a["early_stopping_rounds"] is not None,
            "herding keeps every sweep: there is no best one to stop at",
        ),
    ),
)

# RankingCRF, where None stands for what is usual with the scorer and the objective.

LIGHTER = {"loss_scaled": 4.0, "expected_loss": 1.0}
"""Least weight of a leaf under objectives whose curvature is smaller."""
MOST_DRAWN = 10_000
"""The most subsets and samples of a query: more would not fit into memory."""
ANY_NUMBER = Number("be a number", lambda value: True)


def usual_value(name: str, arguments: Mapping[str, Any], table: Arguments | None = None) -> Any:
    """Return the value of an argument, of RankingCRF if no table is given, or what None means."""
    value, kind = arguments[name], (table or RANKING_ARGUMENTS).kinds[name]
    if value is not None or not isinstance(kind, Usual):
        return value
    return kind.usual(arguments) if callable(kind.usual) else kind.usual


def unused_are_none(arguments: Mapping[str, Any]) -> None:
    """Raise ValueError at an argument that the scorer or the objective has no use for."""
    for name, kind in RANKING_ARGUMENTS.kinds.items():
        if not isinstance(kind, Usual) or kind.only is None or arguments[name] is None:
            continue
        other, values = kind.only
        if arguments[other] not in values:
            raise ValueError(
                f"{name} is {arguments[name]!r}, but {other} is {arguments[other]!r}: it is an "
                f"argument of {other}={' or '.join(map(repr, values))}; leave it None"
            )


def ranking_objective(arguments: Mapping[str, Any]) -> RankingObjective:
    """Return what a RankingCRF minimises; raise ValueError where a setting is out of range."""
    from crfx.objectives.ranking import RankingObjective

    names = ("temperature", "loss_weight", "truths", "cut", "n_samples")
    settings = {name: usual_value(name, arguments) for name in names}
    return RankingObjective(arguments["objective"], **settings)


def samples_are_drawn(arguments: Mapping[str, Any]) -> None:
    """Raise ValueError where the objective is invalid, or sums over so few orders are exact."""
    exact = ranking_objective(arguments).most_exact
    if arguments["n_samples"] is not None and arguments["subset_size"] <= exact:
        raise ValueError(
            f"n_samples is {arguments['n_samples']!r}, but nothing is sampled: orders of "
            f"subset_size={arguments['subset_size']} documents are summed exactly, up to {exact}"
        )


_linear = partial(Usual, only=("scorer", ("linear",)))
_trees = partial(Usual, only=("scorer", ("trees",)))
RANKING_ARGUMENTS = Arguments(
    COMMON
    | {
        "scorer": Choice("linear", "trees"),
        "objective": Choice("kl", "likelihood", "loss_augmented", "loss_scaled", "expected_loss"),
        "temperature": Usual(ANY_NUMBER, 0.02, ("objective", ("kl",))),
        "loss_weight": Usual(ANY_NUMBER, 1.0, ("objective", ("loss_augmented",))),
        "truths": Usual(
            Choice("mean", "sum"), "mean", ("objective", ("likelihood", "loss_augmented"))
        ),
        "cut": OrNone(Whole(1)),
        "gain": Choice("exponential", "linear"),
        "subset_size": Whole(2, "most_documents"),
        "n_subsets": Usual(Whole(1, MOST_DRAWN), lambda a: 4 if a["scorer"] == "trees" else 1),
        "n_samples": Usual(Whole(1, MOST_DRAWN), 500),
        "sweeps": _linear(Whole(0), 20),
        "step": _linear(POSITIVE, None),
        "batch_size": _linear(Whole(1), 1),
        "burn_in": _linear(Whole(0), 0),
        "l2": _linear(NOT_NEGATIVE, 0.0),
        "n_estimators": _trees(Whole(0), 100),
        "learning_rate": _trees(SHARE, 0.1),
        "max_depth": _trees(Whole(0, MOST_INT), 4),
        "max_leaves": _trees(Whole(0, MOST_INT), 0),
        "grow_policy": _trees(GROW_POLICY, "depthwise"),
        "reg_lambda": _trees(NOT_NEGATIVE, 1.0),
        "min_child_weight": _trees(NOT_NEGATIVE, lambda a: LIGHTER.get(a["objective"], 20.0)),
        "subsample": _trees(SHARE, 1.0),
        "colsample_bynode": _trees(SHARE, 1.0),
        "max_bin": _trees(Whole(2, MOST_INT), 256),
        "tree_params": _trees(Read(partial(check_tree_params, "RankingCRF")), None),
        "device": _trees(DEVICE, "cpu"),
        "eval_metric": Read("ranking_metric"),
    },
    rules=(
        unused_are_none,
        raise_if(  # 20! is some 1e18
            lambda a: a["truths"] == "sum" and a["subset_size"] > 20,
            'truths is "sum" and subset_size is {subset_size}: as many orders may be right as '
            'there are, too many to sum over beyond 20 documents; use truths="mean"',
        ),
        samples_are_drawn,
    ),
)

TABLES = {
    "GBCRF": GBCRF_ARGUMENTS,
    "HiddenUnitCRF": HIDDEN_UNIT_ARGUMENTS,
    "LinearCRF": LINEAR_ARGUMENTS,
    "RankingCRF": RANKING_ARGUMENTS,
    "TreeCRF": TREECRF_ARGUMENTS,
}
"""The tables by the names of classes."""
