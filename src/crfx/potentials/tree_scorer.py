"""Scores of boosted trees by our own core: the same bits as XGBoost's, without XGBoost.

XGBoost makes a matrix of its own of every input; for one sentence that takes as long as the walks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crfx import _core
from crfx.features.tree_rows import plain_rows
from crfx.potentials import ubjson

Array32 = npt.NDArray[np.float32]

_PER_NODE: dict[str, tuple[str, type[np.generic]]] = {
    "left": ("left_children", np.int32),
    "right": ("right_children", np.int32),
    "features": ("split_indices", np.int32),
    "values": ("split_conditions", np.float32),
    "missing_left": ("default_left", np.uint8),
}
"""By the core's name: that of XGBoost's format, and the type."""


class TreeScorer:
    """All rounds, laid out to be walked.  Never changes: any number of threads may use it.

    ``raw`` is XGBoost's binary format, which `crfx.potentials.tree_format` has checked or XGBoost
    has written; ``decoded`` is the same where it is decoded already.  O(nodes).
    """

    def __init__(self, raw: bytes, n_outputs: int, decoded: dict[str, Any] | None = None) -> None:
        learner = (ubjson.decode(raw) if decoded is None else decoded)["learner"]
        part = learner["gradient_booster"]["model"]
        self.n_outputs = n_outputs
        self._bounds = np.asarray(part["iteration_indptr"], np.int64)
        self._native = _core.BoostedTrees(
            **_arrays(part),
            n_features=int(learner["learner_model_param"]["num_feature"]),
            n_outputs=n_outputs,
        )

    @property
    def n_rounds(self) -> int:
        """How many rounds there are."""
        return len(self._bounds) - 1

    def scores(self, X: Any, n_jobs: int, n_rounds: int | None = None) -> Array32:
        """(rows, outputs): the sum of the trees of the first ``n_rounds`` rounds, in float32.

        X is an array, CSR matrix or data frame; NaN and absent entries are missing.
        O(rows * trees * depth).
        """
        last = self.n_rounds if n_rounds is None else min(n_rounds, self.n_rounds)
        scores = np.empty((X.shape[0], self.n_outputs), np.float32)
        self._native.score(plain_rows(X), int(self._bounds[last]), scores.reshape(-1), n_jobs)
        return scores


def _arrays(part: dict[str, Any]) -> dict[str, Any]:
    """The trees of XGBoost's format one after the other, as the core takes them."""
    trees = part["trees"]
    sizes = [len(tree["left_children"]) for tree in trees]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    arrays = {
        name: _joined([tree[theirs] for tree in trees], dtype)
        for name, (theirs, dtype) in _PER_NODE.items()
    }
    arrays["missing_left"] = (arrays["missing_left"] == 1).astype(np.uint8)  # as XGBoost reads it
    outputs = np.asarray(part["tree_info"], np.int32)
    return {"starts": starts, "outputs": outputs, **arrays, **_sets(trees, starts)}


def _sets(trees: list[dict[str, Any]], starts: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Sets of categories that go right, by node."""
    sets = np.full(starts[-1], -1, np.int32)
    found: list[Any] = []
    for tree, start in zip(trees, starts, strict=False):
        if not len(tree["categories_nodes"]):
            continue
        begins, sizes = tree["categories_segments"], tree["categories_sizes"]
        for node, begin, size in zip(tree["categories_nodes"], begins, sizes, strict=True):
            sets[start + node] = len(found)
            found.append(tree["categories"][begin : begin + size])
    set_starts = np.concatenate([[0], np.cumsum([len(own) for own in found])]).astype(np.int64)
    return {"sets": sets, "set_starts": set_starts, "categories": _joined(found, np.int32)}


def _joined(parts: list[Any], dtype: type[np.generic]) -> npt.NDArray[Any]:
    return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype)
