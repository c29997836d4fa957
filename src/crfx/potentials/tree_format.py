"""Trees in XGBoost's model format: join rounds into one ensemble, cut it, check it.

Every round of boosting grows its trees in a model of its own, with leaves that are not shrunk yet;
the step that was taken in the end is known one inference later.  Joining scales the leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crfx.potentials import ubjson

_INTEGERS = ("left_children", "right_children", "parents", "split_indices")
_PER_NODE = (*_INTEGERS, "base_weights", "default_left", "split_conditions", "split_type")


def join(rounds: Sequence[bytes], steps: Sequence[float]) -> bytes:
    """Return one model whose round r is ``rounds[r]`` with leaves times ``steps[r]``.

    A round may hold several already joined ones.  O(nodes).
    """
    models = [ubjson.decode(raw) for raw in rounds]
    joined = models[0]
    parts = [_trees(model) for model in models]
    trees: list[dict[str, Any]] = []
    for part, step in zip(parts, steps, strict=True):
        for tree in part["trees"]:
            trees.append(_scaled(tree, np.float32(step)) | {"id": len(trees)})
    target = _trees(joined)
    target["trees"] = trees
    info = np.concatenate([_numbers(part["tree_info"]) for part in parts])
    target["tree_info"] = _like(target["tree_info"], info)
    target["iteration_indptr"] = _like(target["iteration_indptr"], _bounds(parts))
    target["gbtree_model_param"]["num_trees"] = str(len(trees))
    return ubjson.encode(joined)


def first_rounds(raw: bytes, n_rounds: int) -> bytes:
    """Return the model of the first ``n_rounds`` rounds."""
    model = ubjson.decode(raw)
    part = _trees(model)
    bounds = _numbers(part["iteration_indptr"])[: n_rounds + 1]
    n_trees = int(bounds[-1])
    part["trees"] = part["trees"][:n_trees]
    part["tree_info"] = part["tree_info"][:n_trees]
    part["iteration_indptr"] = part["iteration_indptr"][: n_rounds + 1]
    part["gbtree_model_param"]["num_trees"] = str(n_trees)
    return ubjson.encode(model)


def n_rounds(raw: bytes) -> int:
    """Return the number of rounds of a model."""
    return len(_trees(ubjson.decode(raw))["iteration_indptr"]) - 1


def check(raw: bytes, *, n_features: int, n_outputs: int) -> None:
    """Raise ValueError unless XGBoost can safely walk these trees.

    XGBoost trusts what it loads: a child index out of range makes it read beyond its arrays.
    """
    try:
        model = ubjson.decode(raw)
        part, param = _trees(model), model["learner"]["learner_model_param"]
        trees, info = part["trees"], _numbers(part["tree_info"])
        bounds = _numbers(part["iteration_indptr"])
        expected = {"num_feature": n_features, "num_class": n_outputs if n_outputs > 1 else 0}
        for name, value in expected.items():
            if int(param[name]) != value:
                raise ValueError(f"{name} is {param[name]}, not {value}")
        if not (len(trees) == len(info) == int(part["gbtree_model_param"]["num_trees"])):
            raise ValueError("the number of trees is told in different ways")
        if bounds[0] != 0 or bounds[-1] != len(trees) or (np.diff(bounds) < 0).any():
            raise ValueError("the bounds of the rounds are out of order")
        if len(info) and (info.min() < 0 or info.max() >= max(n_outputs, 1)):
            raise ValueError("a tree belongs to no output")
        for number, tree in enumerate(trees):
            _check_tree(number, tree, n_features)
    except (KeyError, TypeError, AttributeError, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"the trees are not in XGBoost's format: {error}") from None


def _check_tree(number: int, tree: dict[str, Any], n_features: int) -> None:
    size = int(tree["tree_param"]["num_nodes"])
    if size < 1 or int(tree["tree_param"]["size_leaf_vector"]) > 1:
        raise ValueError(f"tree {number} has no nodes, or vectors in its leaves")
    if int(tree["tree_param"]["num_feature"]) != n_features:
        raise ValueError(f"tree {number} was grown on another number of features")
    arrays = {name: _numbers(tree[name]) for name in _PER_NODE}
    if any(len(array) != size for array in arrays.values()):
        raise ValueError(f"tree {number}: arrays of unequal length")
    left, right = arrays["left_children"], arrays["right_children"]
    inner = left >= 0
    children = np.concatenate([left[inner], right[inner]])
    # Every node but the root is the child of exactly one node that comes before it: no cycles.
    places = np.tile(np.flatnonzero(inner), 2)
    if (right[~inner] >= 0).any() or not np.array_equal(np.sort(children), np.arange(1, size)):
        raise ValueError(f"tree {number}: its nodes do not form a tree")
    if (children <= places).any():
        raise ValueError(f"tree {number}: a child comes before its parent")
    features = arrays["split_indices"][inner]
    if len(features) and (features.min() < 0 or features.max() >= n_features):
        raise ValueError(f"tree {number}: a split uses a feature that does not exist")
    _check_categories(number, tree, size)


def _check_categories(number: int, tree: dict[str, Any], size: int) -> None:
    nodes, starts = _numbers(tree["categories_nodes"]), _numbers(tree["categories_segments"])
    sizes, total = _numbers(tree["categories_sizes"]), len(tree["categories"])
    same = len(nodes) == len(starts) == len(sizes)
    if not same or (len(nodes) and (nodes.min() < 0 or nodes.max() >= size)):
        raise ValueError(f"tree {number}: its categories belong to no node")
    if len(nodes) and (starts.min() < 0 or sizes.min() < 0 or (starts + sizes).max() > total):
        raise ValueError(f"tree {number}: its categories are cut off")
    split = np.flatnonzero(_numbers(tree["split_type"]) != 0)
    if not np.isin(split, nodes).all():
        raise ValueError(f"tree {number}: a categorical split has no categories")


def _trees(model: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = model["learner"]["gradient_booster"]["model"]
    return found


def _numbers(values: Any) -> np.ndarray[Any, np.dtype[Any]]:
    return np.asarray(values) if len(values) else np.zeros(0, dtype=np.int32)


def _like(old: Any, new: np.ndarray[Any, np.dtype[Any]]) -> Any:
    """Typed array or list, as XGBoost wrote it: its reader accepts one of them."""
    return new.astype(old.dtype) if isinstance(old, np.ndarray) else new.tolist()


def _bounds(parts: list[dict[str, Any]]) -> np.ndarray[Any, np.dtype[Any]]:
    per_round = [np.diff(_numbers(part["iteration_indptr"])) for part in parts]
    return np.concatenate([[0], np.cumsum(np.concatenate(per_round))]).astype(np.int32)


def _scaled(tree: dict[str, Any], step: np.float32) -> dict[str, Any]:
    """A leaf's value stands where an inner node has its threshold."""
    leaves = np.asarray(tree["left_children"]) < 0
    conditions = np.array(tree["split_conditions"], dtype=np.float32)
    conditions[leaves] *= step
    weights = np.asarray(tree["base_weights"], dtype=np.float32) * step
    return tree | {"split_conditions": conditions, "base_weights": weights}
