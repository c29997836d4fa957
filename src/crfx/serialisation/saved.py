"""Saved: the record of a fitted estimator, to the state of a model file and back.

The format, version 1: ``model.json`` names the class and holds its arguments, labels, history and
the shape of the model; tables are .npy arrays, trees are XGBoost's UBJSON.  No file can hold a
function: where ``eval_metric`` is one, the name of the usual metric stands for it, and the history
is without its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from crfx.features import HashedVocabulary, Vocabulary
from crfx.features.columns import Columns
from crfx.inputs import weights
from crfx.inputs.label_codes import label_array
from crfx.io.reading import Reading
from crfx.model.model import Model
from crfx.model.ranking_model import RankingModel
from crfx.objectives import registry as objectives
from crfx.objectives import task_loss
from crfx.serialisation.saved_model import (
    model_from_state,
    model_to_state,
    ranking_from_state,
    ranking_to_state,
)
from crfx.serialisation.saved_training import (
    sweeps_from_state,
    sweeps_to_state,
    training_from_state,
    training_to_state,
)
from crfx.state import State, listed, texts, to_number
from crfx.structures import constraints
from crfx.structures.label_schemes import scheme_of_labels
from crfx.threads import thread_count
from crfx.trainers.base import Standing, Training, TrainingState
from crfx.trainers.callbacks import History
from crfx.trainers.induction import FeatureInduction
from crfx.trainers.ranking_sgd import RankingStood

_COUNTERS = {
    "GBCRF": "n_rounds",
    "HiddenUnitCRF": "n_iter",
    "LinearCRF": "n_iter",
    "RankingCRF": "n_rounds",
    "TreeCRF": "n_rounds",
}
"""What the training of a class is counted in."""
_POTENTIALS = {
    "GBCRF": "trees",
    "HiddenUnitCRF": "hidden",
    "LinearCRF": "linear",
    "TreeCRF": "context",
}
"""The kind of potential that scores the nodes of a class."""
_MOST_FEATURES = 2**31 - 1
"""Columns are numbered in 32 bits."""
_PLAIN = (
    ("objective", objectives.to_plain, objectives.from_plain),
    ("task_loss", task_loss.to_plain, task_loss.from_plain),
    ("class_weight", weights.to_plain, weights.from_plain),
    ("constraints", constraints.to_plain, constraints.from_plain),
)
"""Arguments that may be objects, and how they become plain values and objects again."""


@dataclass(eq=False)
class Saved:
    """What a model file holds of a fitted estimator; rankings have no ``classes`` and ``votes``.

    ``n_done`` counts rounds, iterations or epochs; ``to_go`` are those still to do if the training
    was interrupted, else None.
    """

    class_name: str
    arguments: dict[str, Any]
    columns: Columns
    n_done: int
    best_iteration: int
    history: History
    to_go: int | None
    reading: Reading | None
    model: Model | RankingModel
    classes: npt.NDArray[Any] | None = None
    n_skipped: int = 0
    training: TrainingState | None = None
    best_training: TrainingState | None = None
    votes: list[npt.NDArray[np.float32]] | None = None

    @classmethod
    def of(
        cls,
        class_name: str,
        arguments: dict[str, Any],
        attributes: Mapping[str, Any],
        n_done: int,
    ) -> Saved:
        """Return the record of an estimator with these arguments and fitted attributes.

        ``n_done`` are its rounds, iterations or epochs.
        """
        training: Training = attributes.get("training_", Training())
        best: TrainingState | None = None
        state = training.state()
        if isinstance(state, RankingStood):
            best, state = state.best, state.stands
        return cls(
            class_name=class_name,
            arguments=arguments,
            columns=attributes["columns_"],
            n_done=n_done,
            best_iteration=attributes["best_iteration_"],
            history=attributes["history_"],
            to_go=training.to_go,
            reading=attributes.get("reading_"),
            model=attributes["model_"],
            classes=attributes.get("classes_"),
            n_skipped=int(attributes.get("n_skipped_", 0)),
            training=state,
            best_training=best,
            votes=attributes.get("votes_"),
        )

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of the estimator, by name."""
        standing: Standing | None = self.training
        fitted = {
            "columns_": self.columns,
            f"{self.counter}_": self.n_done,
            "best_iteration_": self.best_iteration,
            "history_": self.history,
            "reading_": self.reading,
            "model_": self.model,
        }
        if isinstance(self.model, RankingModel):
            fitted["n_skipped_"] = self.n_skipped
            if self.training is not None:
                standing = RankingStood(self.training, self.best_training)
        else:
            fitted["classes_"] = self.classes
        if self.votes is not None:
            fitted["votes_"] = self.votes
        return fitted | {"training_": Training(self.to_go, standing=standing)}

    @property
    def counter(self) -> str:
        """The name of the counter of the training: "n_rounds" or "n_iter"."""
        return _COUNTERS[self.class_name]

    def to_state(self) -> State:
        """Write the record; raise ValueError if no file can hold it."""
        vocabulary = self.columns.vocabulary
        state = State(
            {
                "class": self.class_name,
                "arguments": self._plain_arguments(),
                "labels": [] if self.classes is None else _plain_labels(self.classes),
                "n_features": self.columns.n,
                "feature_names": self.columns.known_names(),
                "from_words": vocabulary is not None,
                "hashed": isinstance(vocabulary, HashedVocabulary),
                "categories": _plain_categories(self.columns),
                self.counter: self.n_done,
                "best_iteration": self.best_iteration,
                "history": self._plain_history(),
            }
        )
        if self.to_go is not None:
            state.values["to_go"] = self.to_go
        if self.reading is not None:
            state.values["reading"] = self.reading.to_plain()
        if isinstance(self.model, RankingModel):
            state.values |= {"n_skipped": self.n_skipped, "model": {}}
            ranking_to_state(self.model, state.nested(state.values["model"]))
            if self.training is not None:
                sweeps_to_state(self.training, state, "training")
            if self.best_training is not None:
                sweeps_to_state(self.best_training, state, "best_training")
            return state
        state.values["model"] = {}
        model_to_state(self.model, state.nested(state.values["model"]))
        if self.training is not None:
            training_to_state(self.training, state)
        if self.votes is not None:
            state.values["n_votes"] = len(self.votes)
            votes = np.array(self.votes, np.float32).reshape(-1, _n_parameters(self.model))
            state.put("votes", votes)
        return state

    def _plain_arguments(self) -> dict[str, Any]:
        arguments = dict(self.arguments)
        if arguments.get("base_learner") is not None:
            raise ValueError(
                "a model with a base_learner cannot be saved: the file holds no foreign objects"
            )
        if callable(arguments.get("eval_metric")):
            arguments["eval_metric"] = "ndcg" if self.classes is None else "loss"
        if isinstance(arguments.get("feature_induction"), FeatureInduction):
            arguments["feature_induction"] = asdict(arguments["feature_induction"])
        for name, to_plain, _ in _PLAIN:
            if name in arguments:
                arguments[name] = to_plain(arguments[name])
        if arguments.get("objective") == "likelihood":  # so it is where it was a user's own
            arguments.pop("task_loss", None)
        seed = arguments.get("random_state")
        if seed is not None and not isinstance(seed, int | np.integer):
            arguments["random_state"] = None  # a generator; needed in training only
        return {name: _plain(value) for name, value in arguments.items()}

    def _plain_history(self) -> dict[str, list[float | None]]:
        """Return the history without the numbers of a function, which would be taken for losses;
        an interrupted training keeps them, since it has the function again when it is resumed.
        """
        is_function = callable(self.arguments.get("eval_metric")) and self.to_go is None
        return {
            name: [entry if np.isfinite(entry) else None for entry in entries]
            for name, entries in self.history.items()
            if not (is_function and name == "eval_metric")
        }

    @classmethod
    def from_state(cls, state: State) -> Saved:
        """Read and check a record; arguments are checked by the class that they are of."""
        values = state.values
        name, is_ranking = values["class"], values["class"] == "RankingCRF"
        if name not in _COUNTERS:
            raise ValueError(f"it holds a {name}, which this crfx does not know")
        arguments = _read_arguments(values)
        classes = None
        if not is_ranking:
            n_labels = state.nested(values["model"]).whole("n_labels", 1)
            classes = _read_classes(values["labels"], n_labels)
        columns = _read_columns(state)
        reading = Reading.from_plain(values["reading"]) if "reading" in values else None
        if reading is not None and reading.as_bio and scheme_of_labels(values["labels"]) is None:
            raise ValueError("its labels are to be written as BIO, but mark no spans")
        n_done, history = state.whole(_COUNTERS[name]), _read_history(values)
        if n_done > len(history.get("seconds", ())):
            raise ValueError(f"its {_COUNTERS[name]} is {n_done}, but its history is shorter")
        last = max(n_done - 1, 0)
        values = {"best_iteration": last} | values  # files of early versions: it was the last
        best_iteration = state.nested(values).whole("best_iteration", 0, last)
        to_go = state.whole("to_go") if "to_go" in values else None
        nested = state.nested(values["model"])
        if not is_ranking and values["model"].get("functions", "trees") != _POTENTIALS[name]:
            raise ValueError(f"its scores are not those of a {name}")
        saved = cls(
            class_name=name,
            arguments=arguments,
            columns=columns,
            n_done=n_done,
            best_iteration=best_iteration,
            history=history,
            to_go=to_go,
            reading=reading,
            model=(ranking_from_state if is_ranking else model_from_state)(nested, columns),
            classes=classes,
        )
        saved._read_training(state)
        return saved

    def _read_training(self, state: State) -> None:
        model = self.model
        if isinstance(model, RankingModel):
            if model.scorer != self.arguments["scorer"]:
                raise ValueError(f"its scores are not those of scorer={self.arguments['scorer']!r}")
            self.n_skipped = state.whole("n_skipped")
            self.training, self.best_training = (
                sweeps_from_state(state, name, self.columns.n)
                for name in ("training", "best_training")
            )
            n_rounds = model.function.n_rounds if model.scorer == "trees" else self.n_done
            sweeps = (self.training, self.best_training)
            if model.scorer == "trees" and sweeps != (None, None):
                raise ValueError("it has sweeps, but its scores are trees")
        else:
            n_parameters, n_rounds = 0, model.n_rounds
            if self.counter == "n_iter":
                n_parameters, n_rounds = _n_parameters(model), self.n_done
                self.training = training_from_state(state, n_parameters)
            if self.class_name == "HiddenUnitCRF":
                self.votes = _read_votes(state, n_parameters)
        if n_rounds != self.n_done:
            raise ValueError("its rounds are not as many as it says")


def _n_parameters(model: Model) -> int:
    functions = cast("list[Any]", model.functions)
    size = sum(int(function.weights.size) for function in functions)
    for part in (model.edge, model.ends):
        size += 0 if part is None else sum(table.size for table in part.tables.values())
    return size


def _read_votes(state: State, n_parameters: int) -> list[npt.NDArray[np.float32]] | None:
    if "n_votes" not in state.values and not state.has("votes"):
        return None
    votes = state.array("votes")
    # Files of early versions do not say how many votes they hold.
    n_votes = state.nested({"n_votes": len(votes)} | state.values).whole("n_votes")
    if votes.shape != (n_votes, n_parameters) or votes.dtype != np.float32:
        raise ValueError("its votes do not fit")
    if not np.isfinite(votes).all():
        raise ValueError("its votes are not all finite")
    return list(votes)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def _read_arguments(values: dict[str, Any]) -> dict[str, Any]:
    arguments = dict(values["arguments"])
    if isinstance(arguments.get("feature_induction"), dict):
        arguments["feature_induction"] = FeatureInduction(**arguments["feature_induction"])
    for name, _, from_plain in _PLAIN:
        if name in arguments:  # files of early versions lack some
            arguments[name] = from_plain(arguments[name])
    if isinstance(arguments.get("window"), list):  # JSON has no tuples
        arguments["window"] = tuple(arguments["window"])
    if arguments.get("base_learner") is not None:
        raise ValueError("it has a base_learner, which no file can hold")
    if "constraints" in arguments:
        constraints.parse(arguments["constraints"])
    if "n_jobs" in arguments:
        thread_count(arguments["n_jobs"])  # raises ValueError if it is no number of threads
    return arguments


def _plain_labels(classes: npt.NDArray[Any]) -> list[Any]:
    labels: list[Any] = classes.tolist()
    if not all(type(label) in (str, int, float, bool) for label in labels):
        raise ValueError("a model can be saved if its labels are text or numbers")
    if not all(np.isfinite(label) for label in labels if type(label) is float):
        raise ValueError("a model can be saved if its labels are finite")
    return labels


def _read_classes(value: Any, n_labels: int) -> npt.NDArray[Any]:
    """Return the labels as training has them; raise ValueError unless they rise."""
    labels = _plain_entries(value)
    if len(labels) != n_labels:
        raise ValueError("its labels are not as many as its scores")
    if len(set(labels)) < len(labels):
        raise ValueError("a label is there twice")
    try:
        ordered = sorted(labels)
    except TypeError:
        raise ValueError("its labels mix text and numbers") from None
    if ordered != labels:
        raise ValueError("its labels are not in order")
    return label_array(labels)


def _plain_entries(value: Any) -> list[Any]:
    """Return labels or categories; raise ValueError unless they are texts, numbers or truths."""
    if not all(isinstance(entry, str | int | float) for entry in listed(value)):
        raise ValueError("it has labels or categories that are no text and no numbers")
    return listed(value)


def _read_history(values: dict[str, Any]) -> History:
    """Return the history by name; null stands for a number that was not finite."""

    def entries(name: str, plain: Any) -> list[float]:
        what = f"its {name}"
        return [np.nan if entry is None else to_number(entry, what) for entry in listed(plain)]

    return {name: entries(name, plain) for name, plain in values["history"].items()}


def _plain_categories(columns: Columns) -> dict[str, list[Any]]:
    for name, known in columns.categories.items():
        if not all(isinstance(category, str | int | float) for category in known):
            raise ValueError(
                f"column {name!r} has categories that are no text and no numbers: such a model "
                "cannot be saved"
            )
    return columns.categories


def _read_categories(values: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the categories of each column; raise ValueError unless they are distinct and of one
    kind.
    """
    categories = {
        name: _plain_entries(known) for name, known in values.get("categories", {}).items()
    }
    for name, known in categories.items():
        if (
            len(set(known)) < len(known)
            or len({isinstance(category, str) for category in known}) > 1
        ):
            raise ValueError(f"the categories of {name!r} are of two kinds, or one is there twice")
    return categories


def _read_columns(state: State) -> Columns:
    values = state.values
    names = None if values["feature_names"] is None else texts(values["feature_names"])
    categories = _read_categories(values)
    n_features = state.whole("n_features", 1, _MOST_FEATURES)
    from_words = state.truth("from_words", False)
    if state.truth("hashed", False):
        if names is not None or not from_words:
            raise ValueError("its features are hashed, but have names")
        return Columns.of_words(HashedVocabulary(n_features))
    if from_words:
        vocabulary = Vocabulary(names or [])
        if not len(names or []) == len(vocabulary) == n_features:
            raise ValueError("its features have names that do not fit")
        return Columns.of_words(vocabulary)
    columns = Columns(n_features, names, categories)
    if names is not None and len(names) != columns.n:
        raise ValueError("its features are told in different ways")
    if not set(categories) <= set(names or ()):
        raise ValueError("it has categories of a feature that it has not")
    return columns
