"""Which features the trees of an estimator use, and what each contributes to a score."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.estimators.base import check_fitted
from crfx.estimators.inputs import read_input
from crfx.estimators.labelling import LabellingEstimator
from crfx.features.columns import Columns
from crfx.potentials.trees import BoostedTrees
from crfx.threads import thread_count

IMPORTANCE_KINDS = ("total_gain", "gain", "weight", "cover", "total_cover")


def named_importance(ensemble: Any, columns: Columns, kind: str) -> dict[str, float]:
    """XGBoost's importance of every feature that is used, by the name that the user knows."""
    if kind not in IMPORTANCE_KINDS:
        choices = ", ".join(map(repr, IMPORTANCE_KINDS))
        raise ValueError(f"kind is {kind!r}: choose one of {choices}")
    name_of = columns.name_of()
    return {name_of(column): value for column, value in ensemble.importance(kind).items()}


class ExplainedTrees(LabellingEstimator):
    """A labelling estimator whose node scores are trees."""

    def feature_importance(self, kind: str = "total_gain") -> dict[str, float]:
        """Importance of the features in the node trees: XGBoost's "total_gain", "gain", "weight",
        "cover" or "total_cover", by column name or f0, f1, ...; features never used are left out.
        A base model's trees are not counted.
        """
        return named_importance(self._node_ensemble(), self.columns_, kind)

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """(features,) total gain in the node trees, as shares that add up to 1."""
        check_fitted(self)
        try:
            found: npt.NDArray[np.float64] = self._node_ensemble().gains()
        except ValueError as error:  # so that hasattr says no, and does not raise
            raise AttributeError(str(error)) from None
        return np.divide(found, found.sum() or 1.0)

    def predict_contributions(
        self,
        X: Any,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        n_rounds: int | None = None,
    ) -> Any:
        """(length, labels, features + 1) per instance: SHAP values of the node scores.

        They add up to the scores that the trees give, a base model's aside; the last column is the
        expected score.  Edges do not change them.
        """
        ensemble = self._node_ensemble()
        self._check_rounds(n_rounds)
        data = read_input(X, lengths, parents, edge_types, columns=self.columns_)
        self.model_.use_threads(thread_count(self.n_jobs))
        node: Any = self.model_.node
        matrices = (node.learner.matrix(part.X) for part in data.batch.loaded())
        found = [ensemble.contributions(matrix, n_rounds) for matrix in matrices]
        return data.split(found[0] if len(found) == 1 else np.concatenate(found))

    def _node_ensemble(self) -> Any:
        check_fitted(self)
        node = self.model_.node
        if not isinstance(node, BoostedTrees):
            raise ValueError("only XGBoost's trees tell this: the model has a base_learner")
        ensemble = node.ensemble()
        if ensemble is None:
            raise ValueError("the model has no rounds")
        return ensemble
