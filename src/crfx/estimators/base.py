"""The common base of all estimators: arguments, columns, files, counts of rounds, random seeds."""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from crfx.estimators.arguments import table_of, usual_value
from crfx.estimators.registry import check_can_be_saved, load
from crfx.features.columns import Columns
from crfx.io.model_file import write
from crfx.io.reading import Reading
from crfx.messages import shown
from crfx.serialisation.saved import Saved
from crfx.trainers.base import Training
from crfx.trainers.callbacks import History
from crfx.workers import current

Kind = TypeVar("Kind", bound="Estimator")


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Fitted once it has ``model_``; ``columns_`` are the features that it knows."""

    _is_called: ClassVar[str]
    model_: Any
    columns_: Columns
    history_: History
    best_iteration_: int
    early_stopping_rounds: int | None
    random_state: Any
    verbose: int
    reading_: Reading | None = None
    """How ``crfx train`` read the files; None where the model was trained from Python."""
    training_: Training = Training()
    """The progress of the training, so that an interrupted one can be resumed from a file."""

    @property
    def n_features_in_(self) -> int:
        """The number of features that the model was fitted on."""
        check_fitted(self)
        return self.columns_.n

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Names of the columns, where the model was fitted on data frames, dicts or texts."""
        check_fitted(self)
        if self.columns_.vocabulary is not None:
            return np.array(self.columns_.vocabulary.names(), dtype=object)
        if self.columns_.names is None:
            raise AttributeError("the model was fitted on arrays, which have no feature names")
        return np.array(self.columns_.names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        """Return tags of neither a classifier nor a regressor.

        Those have one target per row of X.
        """
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the estimator, as scikit-learn asks for them.

        Parameters
        ----------
        deep : bool, default True
            Add the settings of arguments, such as ``objective__temperature`` if ``objective`` is a
            ``KL``.

        Returns
        -------
        dict
            Values by name.

        Examples
        --------
        >>> from crfx import LinearCRF
        >>> LinearCRF(l2=0.5).get_params()["l2"]
        0.5
        """
        params: dict[str, Any] = super().get_params(deep=deep)
        return params | _nested_settings(params) if deep else params

    def set_params(self, **params: Any) -> Self:
        """Change arguments, or settings of arguments.

        Parameters
        ----------
        **params
            Values by name; ``objective__temperature=1`` replaces ``objective`` by a changed copy.

        Returns
        -------
        The estimator itself.

        Examples
        --------
        >>> from crfx import GBCRF
        >>> from crfx.objectives import KL
        >>> GBCRF(objective=KL()).set_params(objective__temperature=0.5).objective.temperature
        0.5
        """
        super().set_params(**_with_nested(self.get_params(deep=False), params))
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for copies and pickles, which a running training leaves alone."""
        attributes: dict[str, Any] = dict(super().__getstate__())  # it may be that of the estimator
        if "training_" in attributes:
            attributes["training_"] = self.training_.frozen()
        return attributes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, whole or not at all.

        Parameters
        ----------
        path : str or path
            The file; by convention it ends in ``.crfx``.  An existing file is replaced.

        See Also
        --------
        crfx.load : Read the file.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from crfx import LinearCRF, load
        >>> crf = LinearCRF(n_jobs=1).fit([[["hot"], ["cold"]]], [["sun", "rain"]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     crf.save(Path(folder) / "weather.crfx")
        ...     load(Path(folder) / "weather.crfx").classes_.tolist()
        ['rain', 'sun']
        """
        check_fitted(self)
        check_can_be_saved(type(self))
        write(path, self._saved().to_state())

    def _saved(self) -> Saved:
        """Return the record of the estimator that a model file holds."""
        arguments = self.get_params(deep=False)
        return Saved.of(type(self).__name__, arguments, vars(self), rounds_done(self))

    def _draw_seed(self) -> int:
        """Draw a seed from ``random_state``, the same for all workers."""
        return drawn_seed(self.random_state)

    def _value(self, name: str) -> Any:
        """Return the value of an argument, or what None stands for."""
        return usual_value(name, vars(self), table_of(self))

    @property
    def _most_rounds(self) -> int:
        """The number of rounds, iterations or epochs that the arguments ask for."""
        return int(self._value(rounds_argument(self)))


def check_fitted(estimator: Estimator) -> None:
    """Raise NotFittedError unless the estimator is fitted."""
    if not estimator.__sklearn_is_fitted__():
        raise NotFittedError(f"this {type(estimator).__name__} is not fitted: call fit first")


def called(kind: type[Estimator]) -> str:
    """Return what messages call an estimator of this kind."""
    return kind._is_called


def fitted(init_model: Any, kind: type[Kind]) -> Kind:
    """Return the argument ``init_model``: an estimator of a kind, or the path of its file."""
    if isinstance(init_model, str | os.PathLike):
        init_model = load(init_model)
    if not isinstance(init_model, kind):
        raise ValueError(
            f"init_model is a {type(init_model).__name__}: pass a fitted {called(kind)}, or "
            "the path of its model file"
        )
    check_fitted(init_model)
    return init_model


# What training is counted in.

_COUNTED = {"n_estimators": "rounds", "max_iter": "iterations", "sweeps": "sweeps"}


def counted_in(estimator: Any) -> str:
    """Return what the training is counted in: "rounds", "iterations" or "sweeps" (epochs)."""
    return _COUNTED[rounds_argument(estimator)]


def rounds_argument(estimator: Any) -> str:
    """Return the name of the argument that limits the training."""
    if getattr(estimator, "scorer", None) == "linear":
        return "sweeps"
    if hasattr(estimator, "n_estimators"):
        return "n_estimators"
    return "max_iter" if estimator.trainer == "lbfgs" else "sweeps"


def counter_of(estimator: Any) -> str:
    """Return the name of the fitted attribute that counts rounds, iterations or epochs."""
    return "n_iter_" if "trainer" in table_of(estimator).kinds else "n_rounds_"


def rounds_done(estimator: Any) -> int:
    """Return how many rounds, iterations or epochs a model has had."""
    return int(getattr(estimator, counter_of(estimator)))


# Settings of an argument, such as ``objective__temperature``, reached as in scikit-learn.
# Objectives and task losses are frozen records: a changed copy takes the place of the old one,
# so that other estimators which hold the old one keep it as it is.


def _nested_settings(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of arguments that are records, by names like ``objective__cut``."""
    return {
        f"{name}__{setting.name}": getattr(value, setting.name)
        for name, value in arguments.items()
        if _is_record(value)
        for setting in fields(value)
        if setting.init
    }


def _with_nested(arguments: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Return ``params`` with every ``argument__setting`` put into its argument, which is one of
    ``arguments`` or of ``params`` itself.
    """
    plain = {name: value for name, value in params.items() if "__" not in name}
    for name, value in params.items():
        argument, separator, setting = name.partition("__")
        record: Any = plain.get(argument, arguments.get(argument))
        if not separator:
            continue
        if argument in arguments and not _is_record(record) and not hasattr(record, "set_params"):
            raise ValueError(
                f"{name} is given, but {argument} is {shown(record)}, which has no settings: pass "
                f"an object that has, such as objective=KL()"
            )
        if not _is_record(record):
            plain[name] = value  # scikit-learn sets it, or raises for an unknown argument
        elif setting not in {field.name for field in fields(record) if field.init}:
            raise ValueError(f"{name} is given, but {shown(record)} has no setting {setting!r}")
        else:
            plain[argument] = replace(record, **{setting: value})
    return plain


def _is_record(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


# Random seeds.


def drawn_seed(random_state: Any) -> int:
    """Draw a seed for a training; workers that train together use that of the first."""
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    return int(current().gather(seed)[0])
