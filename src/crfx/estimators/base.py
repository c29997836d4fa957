"""What all estimators share, those that label and those that rank: columns, files, being fitted."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from crfx.estimators.counting import rounds_argument
from crfx.estimators.nested_settings import nested_settings, with_nested
from crfx.features.columns import Columns
from crfx.io.reading import Reading
from crfx.trainers.callbacks import History

Kind = TypeVar("Kind", bound="Estimator")


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Fitted once it has ``model_``; ``columns_`` are the features that it knows."""

    _is_called: ClassVar[str]
    _to_go: int | None = None
    """In training: how many rounds, iterations or sweeps are to follow at most; None: it has ended.
    Files hold it, so that a training which is cut off can be finished (`resumed`)."""
    _limit: int | None = None
    """How many of them a call of ``fit`` has; None: as many as the arguments ask for."""
    model_: Any
    columns_: Columns
    history_: History
    best_iteration_: int
    early_stopping_rounds: int | None
    verbose: int
    reading_: Reading | None = None
    """How ``crfx train`` read the files; None where the model was trained from Python."""

    @property
    def n_features_in_(self) -> int:
        """How many features the model was fitted on."""
        self._check_fitted()
        return self.columns_.n

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Names of the columns, where the model was fitted on data frames, dicts or texts."""
        self._check_fitted()
        if self.columns_.vocabulary is not None:
            return np.array(self.columns_.vocabulary.names(), dtype=object)
        if self.columns_.names is None:
            raise AttributeError("the model was fitted on arrays, which have no feature names")
        return np.array(self.columns_.names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        """Neither classifier nor regressor: for scikit-learn those have one target per row of X."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments; ``deep``: with the settings of their own that they have, such as
        ``objective__temperature`` where ``objective`` is a ``KL``.
        """
        found: dict[str, Any] = super().get_params(deep=deep)
        return found | nested_settings(found) if deep else found

    def set_params(self, **params: Any) -> Self:
        """Change arguments, or settings of their own: a changed copy takes their place."""
        super().set_params(**with_nested(self.get_params(deep=False), params))
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, whole or not at all."""
        from crfx.estimators.loading import save

        save(self, path)

    @property
    def _most_rounds(self) -> int:
        """How many rounds, iterations or sweeps the arguments ask for."""
        return int(getattr(self, rounds_argument(self)))

    @property
    def _rounds_here(self) -> int:
        """How many of them a call of ``fit`` has at most."""
        return self._most_rounds if self._limit is None else self._limit

    def _count_down(self) -> None:
        """Another round is done."""
        if self._to_go is not None:
            self._to_go -= 1

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted: call fit first")


def fitted(init_model: Any, kind: type[Kind]) -> Kind:
    """The argument ``init_model``: an estimator of a kind, or the path of its model file."""
    if isinstance(init_model, str | os.PathLike):
        from crfx.estimators.loading import load

        init_model = load(init_model)
    if not isinstance(init_model, kind):
        raise ValueError(
            f"init_model is a {type(init_model).__name__}: pass a fitted {kind._is_called}, or "
            "the path of its model file"
        )
    init_model._check_fitted()
    return init_model
