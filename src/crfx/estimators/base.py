"""What all estimators share, those that label and those that rank: columns, files, being fitted."""

from __future__ import annotations

import os
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from crfx.features import Columns
from crfx.io.reading import Reading

Kind = TypeVar("Kind", bound="Estimator")


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Fitted once it has ``model_``; ``columns_`` are the features that it knows."""

    _is_called: ClassVar[str]
    _counts_on: ClassVar[bool] = True
    """Whether rounds of ``init_model``, where it is gone on with, count as its own."""
    model_: Any
    columns_: Columns
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, whole or not at all."""
        from crfx.estimators.loading import save

        save(self, path)

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
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
