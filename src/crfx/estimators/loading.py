"""Estimators to model files and back.

The format, version 1: ``model.json`` names the class and holds its arguments, labels, history and
the shape of the model; tables are .npy arrays, trees are XGBoost's UBJSON.  Where ``eval_metric``
is a function, which no file can hold, "loss" stands for it and the history is without its numbers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from crfx.estimators import file_values
from crfx.estimators.base import check_fitted
from crfx.estimators.device import with_device
from crfx.estimators.gbcrf import GBCRF
from crfx.estimators.hidden_state import pack_votes, unpack_votes
from crfx.estimators.hidden_unit import HiddenUnitCRF
from crfx.estimators.linear import LinearCRF
from crfx.estimators.model_parameters import parameter_arrays
from crfx.estimators.packing import pack_model, unpack_model
from crfx.estimators.parametric import ParametricEstimator
from crfx.estimators.ranking import RankingCRF
from crfx.estimators.ranking.file import pack_ranking, unpack_ranking
from crfx.estimators.training_state import pack_state, unpack_state
from crfx.estimators.treecrf import TreeCRF
from crfx.features import HashedVocabulary, Vocabulary
from crfx.features.columns import Columns
from crfx.inputs import weights
from crfx.io.model_file import Contents, read, write
from crfx.io.reading import Reading
from crfx.objectives import registry as objectives
from crfx.objectives import task_loss
from crfx.structures import constraints
from crfx.structures.label_schemes import scheme_of_labels
from crfx.threads import thread_count
from crfx.trainers.induction import FeatureInduction

CLASSES: dict[str, Callable[..., Any]] = {
    "GBCRF": GBCRF,
    "HiddenUnitCRF": HiddenUnitCRF,
    "LinearCRF": LinearCRF,
    "RankingCRF": RankingCRF,
    "TreeCRF": TreeCRF,
}
COUNTS = {
    "GBCRF": "n_rounds",
    "HiddenUnitCRF": "n_iter",
    "LinearCRF": "n_iter",
    "RankingCRF": "n_rounds",
    "TreeCRF": "n_rounds",
}
"""What the training of an estimator is counted in."""
FUNCTIONS = {
    "GBCRF": "trees",
    "HiddenUnitCRF": "hidden",
    "LinearCRF": "linear",
    "TreeCRF": "context",
}
"""What scores its nodes."""
MOST_FEATURES = 2**31 - 1
"""Columns are numbered in 32 bits."""


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to one file, whole or not at all."""
    check_fitted(estimator)
    if type(estimator) not in CLASSES.values():
        raise ValueError(f"a {type(estimator).__name__} cannot be saved: load would not know it")
    columns = estimator.columns_
    count = COUNTS[type(estimator).__name__]
    contents = Contents(
        {
            "class": type(estimator).__name__,
            "arguments": _plain_arguments(estimator),
            "labels": _plain_labels(getattr(estimator, "classes_", np.array([]))),  # orders: none
            "n_features": columns.n,
            "feature_names": columns.known_names(),
            "from_words": columns.vocabulary is not None,
            "hashed": isinstance(columns.vocabulary, HashedVocabulary),
            "categories": _plain_categories(columns),
            count: getattr(estimator, f"{count}_"),
            "best_iteration": estimator.best_iteration_,
            "history": {
                name: [entry if np.isfinite(entry) else None for entry in entries]
                for name, entries in estimator.history_.items()
                # Else they would be taken for losses; one that is resumed has the function again.
                if name != "eval_metric"
                or not callable(estimator.eval_metric)
                or estimator._to_go is not None
            },
        }
    )
    if estimator._to_go is not None:
        contents.values["to_go"] = estimator._to_go
    if estimator.reading_ is not None:
        contents.values["reading"] = estimator.reading_.to_plain()
    if isinstance(estimator, RankingCRF):
        pack_ranking(estimator, contents)
    else:
        contents.values["model"] = pack_model(estimator.model_, "", contents)
    if isinstance(estimator, ParametricEstimator):
        pack_state(estimator._training_state(), contents)
    if isinstance(estimator, HiddenUnitCRF):
        pack_votes(estimator, contents)
    write(path, contents)


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that ``save`` wrote.  Executes nothing that the file brings."""
    contents = read(os.fspath(path))  # a number would be an open file of the system
    try:
        estimator = _unpack(contents)
        contents.check_all_taken()
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError) as error:
        told = " ".join(str(error).split())
        raise ValueError(f"{os.fspath(path)} is not a model file of crfx: {told}") from None
    return estimator


def _unpack(contents: Contents) -> Any:
    values = contents.values
    if values["class"] not in CLASSES:
        raise ValueError(f"it holds a {values['class']}, which this crfx does not know")
    arguments = with_device(dict(values["arguments"]))
    if isinstance(arguments.get("feature_induction"), dict):
        arguments["feature_induction"] = FeatureInduction(**arguments["feature_induction"])
    for name, read_plain in (
        ("objective", objectives.from_plain),
        ("task_loss", task_loss.from_plain),
        ("class_weight", weights.from_plain),
        ("constraints", constraints.from_plain),
    ):
        if name in arguments:  # files of the first days have none
            arguments[name] = read_plain(arguments[name])
    if isinstance(arguments.get("window"), list):  # JSON has no tuples
        arguments["window"] = tuple(arguments["window"])
    if arguments.get("base_learner") is not None:
        raise ValueError("it has a base_learner, which no file can hold")
    estimator = CLASSES[values["class"]](**arguments)
    thread_count(estimator.n_jobs)  # which raises where that is no number of threads
    if not isinstance(estimator, RankingCRF):
        n_labels = file_values.whole(values["model"], "n_labels", 1)
        estimator.classes_ = file_values.classes(values["labels"], n_labels)
    estimator.columns_ = _columns(values)
    if "reading" in values:
        estimator.reading_ = Reading.from_plain(values["reading"])
        if estimator.reading_.as_bio and scheme_of_labels(values["labels"]) is None:
            raise ValueError("its labels are to be written as BIO, but mark no spans")
    count = COUNTS[values["class"]]
    n_done = file_values.whole(values, count)
    setattr(estimator, f"{count}_", n_done)
    if "to_go" in values:
        estimator._to_go = file_values.whole(values, "to_go")
    estimator.history_ = file_values.history(values)
    if n_done > len(estimator.history_.get("seconds", ())):
        raise ValueError(f"its {count} is {n_done}, but its history is shorter")
    # Files of the first days do not say: it was the last.
    last = max(n_done - 1, 0)
    told = {"best_iteration": last} | values
    estimator.best_iteration_ = file_values.whole(told, "best_iteration", 0, last)
    if isinstance(estimator, RankingCRF):
        unpack_ranking(estimator, contents)
        return estimator
    constraints.parse(estimator.constraints)
    estimator._check_parameters()
    if values["model"].get("functions", "trees") != FUNCTIONS[values["class"]]:
        raise ValueError(f"its scores are not those of a {values['class']}")
    estimator.model_ = unpack_model(values["model"], "", contents, estimator.columns_)
    if isinstance(estimator, ParametricEstimator):
        size = sum(part.size for part in parameter_arrays(estimator.model_))
        estimator._state = unpack_state(contents, size)
    if isinstance(estimator, HiddenUnitCRF):
        unpack_votes(estimator, contents)
    if count == "n_rounds" and estimator.model_.n_rounds != n_done:
        raise ValueError("its rounds are not as many as it says")
    return estimator


def _plain_arguments(estimator: Any) -> dict[str, Any]:
    arguments = estimator.get_params(deep=False)
    if arguments.get("base_learner") is not None:
        raise ValueError(
            "a model with a base_learner cannot be saved: the file holds no foreign objects"
        )
    if callable(arguments.get("eval_metric")):
        arguments["eval_metric"] = "loss"  # a function; needed in training only
    if isinstance(arguments.get("feature_induction"), FeatureInduction):
        arguments["feature_induction"] = asdict(arguments["feature_induction"])
    for name, plain in (
        ("objective", objectives.to_plain),
        ("task_loss", task_loss.to_plain),
        ("class_weight", weights.to_plain),
        ("constraints", constraints.to_plain),
    ):
        if name in arguments:
            arguments[name] = plain(arguments[name])
    if arguments.get("objective") == "likelihood":  # so it is where it was a user's own
        arguments.pop("task_loss", None)
    state = arguments.get("random_state")
    if state is not None and not isinstance(state, int | np.integer):
        arguments["random_state"] = None  # a generator; needed in training only
    return {name: _plain(value) for name, value in arguments.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def _plain_labels(classes: Any) -> list[Any]:
    labels: list[Any] = classes.tolist()
    if not all(type(label) in (str, int, float, bool) for label in labels):
        raise ValueError("a model can be saved if its labels are text or numbers")
    if not all(np.isfinite(label) for label in labels if type(label) is float):
        raise ValueError("a model can be saved if its labels are finite")
    return labels


def _plain_categories(columns: Columns) -> dict[str, list[Any]]:
    for name, known in columns.categories.items():
        if not all(isinstance(category, str | int | float) for category in known):
            raise ValueError(
                f"column {name!r} has categories that are no text and no numbers: such a model "
                "cannot be saved"
            )
    return columns.categories


def _columns(values: dict[str, Any]) -> Columns:
    names = None if values["feature_names"] is None else file_values.texts(values["feature_names"])
    categories = file_values.categories(values)
    n_features = file_values.whole(values, "n_features", 1, MOST_FEATURES)
    from_words = file_values.truth(values, "from_words", False)
    if file_values.truth(values, "hashed", False):
        if names is not None or not from_words:
            raise ValueError("its features are hashed, but have names")
        return Columns.of_words(HashedVocabulary(n_features))
    if from_words:
        vocabulary = Vocabulary(names or [])
        if not len(names or []) == len(vocabulary) == n_features:
            raise ValueError("its features have names that do not fit")
        return Columns.of_words(vocabulary)
    found = Columns(n_features, names, categories)
    if names is not None and len(names) != found.n:
        raise ValueError("its features are told in different ways")
    if not set(categories) <= set(names or ()):
        raise ValueError("it has categories of a feature that it has not")
    return found
