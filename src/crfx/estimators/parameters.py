"""What the arguments of estimators may be; checked before anything is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import has_fit_parameter

from crfx.estimators.base import generator_of
from crfx.estimators.device import CPU, check_device_name
from crfx.inputs.weights import check_class_weight
from crfx.messages import shown
from crfx.objectives import curvature as curvatures
from crfx.objectives.registry import ObjectiveSettings
from crfx.objectives.registry import parse as parse_objective
from crfx.prediction.metric import check_metric
from crfx.structures.chain import MOST_ORDER
from crfx.structures.constraints import parse as parse_constraints
from crfx.threads import thread_count
from crfx.trainers.induction import FeatureInduction, settings_of

if TYPE_CHECKING:
    from crfx.estimators.gbcrf import GBCRF
    from crfx.estimators.hidden_unit import HiddenUnitCRF
    from crfx.estimators.linear import LinearCRF
    from crfx.estimators.treecrf import TreeCRF

OWN_PARAMS = {
    "eta",
    "learning_rate",
    "objective",
    "num_class",
    "seed",
    "random_state",
    "base_score",
    "nthread",
    "n_jobs",
    "max_bin",
    "max_depth",
    "max_leaves",
    "grow_policy",
    "lambda",
    "reg_lambda",
    "min_child_weight",
    "subsample",
    "colsample_bynode",
    "tree_method",
    "device",
}
"""Parameters of XGBoost that do not go through ``tree_params``, by all their names."""
TREE_PARAMS = {
    "alpha",
    "booster",
    "colsample_bylevel",
    "colsample_bytree",
    "gamma",
    "interaction_constraints",
    "max_cat_threshold",
    "max_cat_to_onehot",
    "max_delta_step",
    "min_split_loss",
    "monotone_constraints",
    "multi_strategy",
    "num_parallel_tree",
    "process_type",
    "reg_alpha",
    "sampling_method",
    "verbosity",
}
"""Those that do."""
MOST_STEP = 1e20
"""Of descent: beyond it scores are no numbers of float32."""
GROW_POLICIES = ("depthwise", "lossguide")


def check_parameters(crf: GBCRF) -> None:
    """Raise ValueError at the first argument that makes no sense."""
    _check_common(crf)
    _check_whole("n_estimators", crf.n_estimators, 0)
    _check_whole("min_count", crf.min_count, 1)
    _check_whole("max_bin", crf.max_bin, 2)
    _check_shares(crf, ("learning_rate", "subsample", "colsample_bynode"))
    check_tree_sizes(crf)
    _check_choice("grow_policy", crf.grow_policy, GROW_POLICIES)
    for name in ("edge_l2", "reg_lambda", "min_child_weight"):
        _check_not_negative(name, getattr(crf, name))
    _check_choice("edges", crf.edges, ("table", "linear", "trees", None))
    curvatures.parse(crf.curvature)
    _check_tree_params(crf)
    _check_base_learner(crf.base_learner)
    check_device_name(crf.device)
    if crf.device != CPU and crf.base_learner is not None:
        raise ValueError(
            f"device is {crf.device!r}, but a base_learner takes the place of XGBoost's trees, and "
            'nothing else runs on a GPU: leave device="cpu"'
        )


def check_treecrf_parameters(crf: TreeCRF) -> None:
    """Raise ValueError at the first argument that makes no sense."""
    _check_common(crf)
    _check_whole("n_estimators", crf.n_estimators, 0)
    _check_whole("min_count", crf.min_count, 1)
    _check_whole("max_leaves", crf.max_leaves, 1)
    _check_whole("pseudo_likelihood_rounds", crf.pseudo_likelihood_rounds, 0)
    _check_shares(crf, ("learning_rate", "subsample", "colsample_bynode"))
    for name in ("reg_lambda", "min_child_weight"):
        _check_not_negative(name, getattr(crf, name))
    trimming = crf.influence_trimming
    if not _is_number(trimming) or not 0 <= trimming < 1:
        raise ValueError(f"influence_trimming is {trimming!r}: it must be 0 or more and below 1")
    curvatures.parse(crf.curvature)


def _check_base_learner(learner: Any) -> None:
    if learner is None:
        return
    if isinstance(learner, type):
        name = learner.__name__
        raise ValueError(f"base_learner is the class {name}: pass one of its kind, {name}()")
    if not all(hasattr(learner, name) for name in ("fit", "predict", "get_params")):
        raise ValueError(
            f"base_learner is {shown(learner)}: pass a regressor such as those of scikit-learn, or "
            "None for trees"
        )
    if is_classifier(learner):
        raise ValueError(f"base_learner is {shown(learner)}, a classifier: pass a regressor")
    if not has_fit_parameter(learner, "sample_weight"):
        raise ValueError(
            f"base_learner is {shown(learner)}, whose fit has no sample_weight: curvature goes "
            "there, so pass a regressor that has it"
        )


def _check_shares(crf: Any, names: tuple[str, ...]) -> None:
    for name in names:
        value = getattr(crf, name)
        if not _is_number(value) or not 0 < value <= 1:
            raise ValueError(f"{name} is {shown(value)}: it must lie in (0, 1]")


def check_linear_parameters(crf: LinearCRF) -> None:
    """Raise ValueError at the first argument that makes no sense."""
    _check_parametric(crf)
    _check_common(crf)
    _check_not_negative("l1", crf.l1)
    if crf.l1 and crf.trainer != "lbfgs":
        raise ValueError(f'l1 is {crf.l1!r}, but trainer is {crf.trainer!r}: l1 is for "lbfgs"')
    _check_choice("edges", crf.edges, ("table", "linear", None))
    _check_choice("features", crf.features, ("auto", "observed", "all"))
    if crf.feature_induction is not None:
        _check_induction(crf)


def check_hidden_parameters(crf: HiddenUnitCRF) -> None:
    """Raise ValueError at the first argument that makes no sense."""
    _check_parametric(crf)
    _check_common(crf, decoders=("viterbi", "marginal", "joint", None))
    _check_whole("n_hidden", crf.n_hidden, 0)
    _check_whole("batch_size", crf.batch_size, 1)
    for name in ("skip", "herding"):
        _check_bool(name, getattr(crf, name))
    _check_choice("activation", crf.activation, ("softplus", "relu", "tanh", "sigmoid"))
    _check_choice("block_steps", crf.block_steps, ("equal", "size"))
    _check_choice("pretrain", crf.pretrain, (None, "discriminative", "contrastive"))
    _check_whole("pretrain_sweeps", crf.pretrain_sweeps, 1)
    _check_choice("edges", crf.edges, ("table", None))
    if crf.n_hidden == 0 and not crf.skip:
        raise ValueError(
            "n_hidden is 0 and skip is False: no score would depend on the features; skip=True "
            "makes it a linear model"
        )
    if crf.decode == "joint" and crf.activation in ("tanh", "sigmoid"):
        raise ValueError(
            f'decode is "joint", but units with activation {crf.activation!r} are functions of '
            "their input: there is nothing to maximise over"
        )
    if crf.dropout is not None and (not _is_number(crf.dropout) or not 0 <= crf.dropout < 1):
        raise ValueError(f"dropout is {crf.dropout!r}: it must be 0 or more and below 1, or None")
    if crf.dropout and crf.trainer == "lbfgs":
        raise ValueError(
            f'dropout is {crf.dropout!r}, but trainer "lbfgs" takes no steps to leave it out of'
        )
    if crf.herding and crf.trainer not in ("perceptron", "large_margin"):
        raise ValueError(
            f'herding is for trainers "perceptron" and "large_margin", not {crf.trainer!r}'
        )
    if crf.herding and crf.early_stopping_rounds is not None:
        raise ValueError("herding keeps every sweep: there is no best one to stop at")


def _check_parametric(crf: LinearCRF | HiddenUnitCRF) -> None:
    """What estimators have whose parameters follow a gradient."""
    _check_whole("max_iter", crf.max_iter, 0)
    _check_whole("sweeps", crf.sweeps, 0)
    _check_choice("trainer", crf.trainer, ("lbfgs", "sgd", "perceptron", "large_margin"))
    for name in ("tol", "margin"):
        _check_not_negative(name, getattr(crf, name))
    if crf.l2 is not None:
        _check_not_negative("l2", crf.l2)
    if crf.burn_in is not None:
        _check_whole("burn_in", crf.burn_in, 0)
    if crf.batch_size is not None:
        _check_whole("batch_size", crf.batch_size, 1)
    if crf.step is not None and (not _is_number(crf.step) or not 0 < crf.step < np.inf):
        raise ValueError(f"step is {shown(crf.step)}: it must be above 0, or None")
    if crf.step is not None and crf.step > MOST_STEP:
        raise ValueError(f"step is {crf.step}: it must be at most {MOST_STEP:g}")
    _check_whole("min_count", crf.min_count, 1)
    if crf.n_hashed is not None:
        _check_whole("n_hashed", crf.n_hashed, 1)
        if crf.n_hashed >= 2**31:
            raise ValueError(f"n_hashed is {crf.n_hashed}: it must be below 2**31")
        if crf.min_count > 1:
            raise ValueError("hashed names are not kept, nor counted: n_hashed needs min_count=1")


def _check_induction(crf: LinearCRF) -> None:
    given = crf.feature_induction
    if not isinstance(given, FeatureInduction):
        _check_whole("feature_induction", given, 0)
    settings = settings_of(given)
    assert settings is not None
    name = "feature_induction: "
    for field in ("rounds", "iterations"):
        _check_whole(name + field, getattr(settings, field), 0)
    for field in ("per_round", "candidates"):
        _check_whole(name + field, getattr(settings, field), 1)
    for field in ("min_count", "min_gain"):
        _check_not_negative(name + field, getattr(settings, field))
    if not _is_number(settings.confidence) or not 0 < settings.confidence <= 1:
        raise ValueError(f"{name}confidence is {settings.confidence!r}: it must lie in (0, 1]")
    if parse_objective(crf.objective).name != "likelihood":
        raise ValueError(
            f"feature_induction is for the likelihood, but objective is {crf.objective!r}"
        )
    if crf.trainer != "lbfgs":
        raise ValueError(
            f'feature_induction is for trainer "lbfgs", not {crf.trainer!r}: it asks for weights '
            "near the minimum of the likelihood, from where new ones start at 0"
        )


def _check_common(crf: Any, decoders: tuple[Any, ...] = ("viterbi", "marginal")) -> None:
    """What all labelling estimators have."""
    if crf.early_stopping_rounds is not None:
        _check_whole("early_stopping_rounds", crf.early_stopping_rounds, 1)
    hint = "; edges=None makes positions independent" if hasattr(crf, "edges") else ""
    _check_whole("order", crf.order, 1, hint)
    if crf.order > MOST_ORDER:
        raise ValueError(f"order is {crf.order}: it must be at most {MOST_ORDER}")
    _check_bool("start_end", crf.start_end)
    _check_choice("decode", crf.decode, decoders)
    check_class_weight(crf.class_weight)
    ObjectiveSettings.of(vars(crf)).check()
    parse_constraints(crf.constraints)
    check_metric(crf.eval_metric)
    check_running(crf)


def check_running(crf: Any) -> None:
    """What all estimators have, those that rank too: threads, seed, progress."""
    thread_count(crf.n_jobs)
    if not isinstance(crf.verbose, bool):
        _check_whole("verbose", crf.verbose, 0)
    generator_of(crf.random_state)


def _check_not_negative(name: str, value: Any) -> None:
    if not _is_number(value) or not 0 <= value < np.inf:
        raise ValueError(f"{name} is {shown(value)}: it must be 0 or more")


def _check_tree_params(crf: GBCRF) -> None:
    if crf.tree_params is not None and not isinstance(crf.tree_params, dict):
        raise ValueError(f"tree_params is a {type(crf.tree_params).__name__}: pass a dict, or None")
    check_tree_names(crf.tree_params or {}, "GBCRF")
    if crf.tree_params and crf.base_learner is not None:
        raise ValueError("tree_params are for XGBoost, but a base_learner takes its place")


def check_tree_sizes(crf: Any) -> None:
    """Depth, leaves and bins: numbers that XGBoost can hold."""
    for name in ("max_depth", "max_leaves", "max_bin"):
        _check_whole(name, getattr(crf, name), 0)
        if getattr(crf, name) >= 2**31:
            raise ValueError(f"{name} is {getattr(crf, name)}: it must be below 2**31")


def check_tree_names(params: dict[str, Any], owner: str) -> None:
    """Raise ValueError at what ``owner`` sets itself, and at what XGBoost's trees have not."""
    if "device" in params:
        raise ValueError(
            f"tree_params holds device: pass device={shown(params['device'])} to {owner} instead"
        )
    if own := [name for name in params if name in OWN_PARAMS]:
        raise ValueError(
            f"tree_params holds {', '.join(sorted(own))}: {owner} sets these itself; use its "
            "arguments"
        )
    for name, value in params.items():
        if name not in TREE_PARAMS:
            raise ValueError(
                f"tree_params holds {shown(name)}, which XGBoost's trees have not, or which has no "
                "use here"
            )
        if isinstance(value, float) and not np.isfinite(value):
            raise ValueError(f"tree_params: {name} is {value}: it must be finite")


def _check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    # Not `in`, which asks arrays and data frames whether they are equal.
    is_name = value is None or isinstance(value, str)
    if not is_name or value not in choices:
        listed = ", ".join(map(repr, choices))
        raise ValueError(f"{name} is {shown(value)}: choose one of {listed}")


def _check_bool(name: str, value: Any) -> None:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} is {shown(value)}: it must be True or False")


def _check_whole(name: str, value: Any, least: int, hint: str = "") -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:
        raise ValueError(
            f"{name} is {shown(value)}: it must be a whole number of {least} or more{hint}"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
