"""Scikit-learn's transformers on lists of instances: fitted and applied position by position."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError

from crfx.errors import BadInstance
from crfx.features.matrix import stack, take_rows
from crfx.features.words import peek


class PerPosition(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[misc, call-arg]
    """A transformer of rows for a list of instances, (length, features) each.

    It transforms all positions of all instances as one matrix, which is then split into instances
    again.  Several transformers go inside: ``PerPosition(ColumnTransformer(...))``.

    Parameters
    ----------
    transformer : scikit-learn's, or any with ``fit`` and ``transform``
        It stays unfitted; ``transformer_`` is its fitted copy.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> scale = PerPosition(StandardScaler()).fit([[[0.0], [2.0]], [[4.0]]])
    >>> [x.ravel().round(2).tolist() for x in scale.transform([[[2.0]], [[0.0], [4.0]]])]
    [[0.0], [-1.22, 1.22]]
    """

    transformer_: Any

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> PerPosition:
        """Fit a copy of the transformer to all positions.

        Parameters
        ----------
        X : list of (length, features) arrays, one per instance
        y : list of lists of labels, optional
            Labels by position, for transformers that use them.

        Returns
        -------
        The transformer itself.
        """
        rows, _ = _rows(X)
        with self._begun(rows, y) as (transformer, labels):
            transformer.fit(rows, labels)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> list[Any]:
        """Fit, then transform the same instances by ``fit_transform`` of the transformer.

        A transformer that uses ``y`` may treat training rows differently, so that ``y`` does not
        leak.

        Parameters
        ----------
        X : list of (length, features) arrays, one per instance
        y : list of lists of labels, optional
            Labels by position, for transformers that use them.

        Returns
        -------
        list of (length, new features) arrays
        """
        rows, lengths = _rows(X)
        with self._begun(rows, y) as (transformer, labels):
            if hasattr(transformer, "fit_transform"):
                transformed = transformer.fit_transform(rows, labels)
            else:
                transformed = transformer.fit(rows, labels).transform(rows)
        return _split(transformed, lengths)

    @contextmanager
    def _begun(self, rows: Any, y: Any) -> Iterator[tuple[Any, npt.NDArray[Any] | None]]:
        """Yield a copy of the transformer and all labels; keep the copy once it is fitted."""
        transformer = clone(self.transformer)
        labels = None if y is None else np.concatenate([np.asarray(each) for each in y])
        try:
            yield transformer, labels
        except (ValueError, TypeError) as error:
            unknown = None if y is None else _first_unknown(y)
            if unknown is None:
                raise
            name = type(self.transformer).__name__
            reason = f"y is None, an unknown label, and {name} does not take it: {error}"
            raise BadInstance(unknown[0], reason, unknown[1]) from None
        self.transformer_, self.n_features_in_ = transformer, rows.shape[1]

    def transform(self, X: Any) -> list[Any]:
        """Return the instances, transformed.

        Parameters
        ----------
        X : list of (length, features) arrays, one per instance

        Returns
        -------
        list of (length, new features) arrays
        """
        self._check_fitted()
        rows, lengths = _rows(X)
        return _split(self.transformer_.transform(rows), lengths)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the transformer."""
        self._check_fitted()
        return self.transformer_.get_feature_names_out(input_features)  # type: ignore[no-any-return]

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("this PerPosition is not fitted: call fit first")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "transformer_")

    def __sklearn_tags__(self) -> Any:
        """Return the tags of an estimator for lists of matrices."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags


def _rows(X: Any) -> tuple[Any, list[int]]:
    if len(getattr(X, "shape", ())) == 2:
        raise ValueError(
            f"X is one matrix of shape {X.shape}: the transformer itself takes it; PerPosition is "
            "for a list with one matrix per instance"
        )
    is_text, instances = peek(X)
    if is_text:
        raise ValueError(
            "X holds dicts or texts, which are not numbers: PerPosition is for matrices; "
            "estimators take dicts and texts as they are"
        )
    listed = list(instances)
    if not listed:
        raise ValueError("X has no instances")
    return stack(listed)


def _first_unknown(y: Any) -> tuple[int, int] | None:
    """Return instance and position of the first label that is None."""
    places = ((i, j) for i, each in enumerate(y) for j, label in enumerate(each) if label is None)
    return next(places, None)


def _split(rows: Any, lengths: list[int]) -> list[Any]:
    """Return a matrix of any kind as one per instance."""
    if rows.shape[0] != sum(lengths):
        raise ValueError(
            f"the transformer made {rows.shape[0]} rows of {sum(lengths)}: it must keep positions"
        )
    ends = np.cumsum(lengths)
    return [
        take_rows(rows, np.arange(end - length, end))
        for end, length in zip(ends, lengths, strict=True)
    ]
