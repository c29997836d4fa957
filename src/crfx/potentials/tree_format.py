"""Trees in XGBoost's model format: join rounds into one ensemble, cut it, check it.

Every round of boosting grows its trees in a model of its own, with leaves that are not shrunk yet;
the step that was taken in the end is known one inference later.  Joining scales the leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.potentials import ubjson

IntArray = npt.NDArray[np.int64]

_INTEGERS = ("left_children", "right_children", "parents", "split_indices", "split_type")
_FLOATS = ("base_weights", "loss_changes", "split_conditions", "sum_hessian")
_PER_NODE = (*_INTEGERS, *_FLOATS, "default_left")
_ONE_OUTPUT = "reg:squarederror"
_NO_NODE = -1
_ROOT_PARENT = 2**31 - 1
"""How XGBoost writes that a node has no parent."""
_MOST_CATEGORIES = 2**24
"""XGBoost stores categories as float32."""


def join(rounds: Sequence[bytes], steps: Sequence[float]) -> bytes:
    """Return one model whose round r is ``rounds[r]`` with leaves times ``steps[r]``.

    A round may hold several already joined ones.  O(nodes).
    """
    models = [ubjson.decode(raw) for raw in rounds]
    joined = models[0]
    parts = [_trees(model) for model in models]
    if len({ubjson.encode(part.get("cats")) for part in parts}) > 1:
        raise ValueError(
            "the rounds were grown on different categories: use the same categories, in the same "
            "order, when training goes on"
        )
    trees = [
        _scaled(tree, np.float32(step))
        for part, step in zip(parts, steps, strict=True)
        for tree in part["trees"]
    ]
    info = np.concatenate([_numbers(part["tree_info"]) for part in parts])
    _set_trees(_trees(joined), trees, info, _bounds(parts))
    return ubjson.encode(joined)


def first_rounds(raw: bytes, n_rounds: int) -> bytes:
    """Return the model of the first ``n_rounds`` rounds."""
    model = ubjson.decode(raw)
    part = _trees(model)
    bounds = _numbers(part["iteration_indptr"])[: n_rounds + 1]
    n_trees = int(bounds[-1])
    _set_trees(part, part["trees"][:n_trees], _numbers(part["tree_info"])[:n_trees], bounds)
    return ubjson.encode(model)


def rounds_alone(raw: bytes) -> Iterator[bytes]:
    """The models of every round alone."""
    model = ubjson.decode(raw)
    part = _trees(model)
    trees, info, bounds = (part[name] for name in ("trees", "tree_info", "iteration_indptr"))
    for begin, end in pairwise(_numbers(bounds).tolist()):
        own_info = _numbers(info)[begin:end]
        _set_trees(part, trees[begin:end], own_info, np.array([0, end - begin]))
        yield ubjson.encode(model)


def with_outputs(raw: bytes, places: npt.NDArray[np.integer[Any]], n_outputs: int) -> bytes:
    """Return the model with ``n_outputs`` outputs: old output k becomes ``places[k]``.

    New outputs have trees of one leaf, 0, in every round, so that rounds stay whole.
    """
    model = ubjson.decode(raw)
    part = _trees(model)
    bounds, info = _numbers(part["iteration_indptr"]), _numbers(part["tree_info"])
    trees: list[dict[str, Any]] = []
    outputs: list[int] = []
    for begin, end in pairwise(bounds.tolist()):
        own: dict[int, list[dict[str, Any]]] = {}
        for number in range(begin, end):
            own.setdefault(int(places[info[number]]), []).append(part["trees"][number])
        each = max(len(found) for found in own.values())
        for output in range(n_outputs):
            trees += own.get(output) or [_leaf(part["trees"][begin])] * each
            outputs += [output] * (len(trees) - len(outputs))
    per_round = len(trees) // max(len(bounds) - 1, 1)
    _set_trees(part, trees, np.array(outputs), np.arange(len(bounds)) * per_round)
    _set_outputs(model["learner"], n_outputs)
    return ubjson.encode(model)


def _set_outputs(learner: dict[str, Any], n_outputs: int) -> None:
    """Let the model be of the kind that XGBoost writes for so many outputs."""
    if n_outputs < 2:
        return
    param = learner["learner_model_param"]
    param["num_class"] = str(n_outputs)
    if param["base_score"].startswith("["):  # XGBoost 3.1 and later
        param["base_score"] = f"[{','.join(['0E0'] * n_outputs)}]"
    learner["objective"] = {
        "name": "multi:softprob",
        "softmax_multiclass_param": {"num_class": str(n_outputs)},
    }


def _leaf(tree: dict[str, Any]) -> dict[str, Any]:
    """A tree of one leaf, 0, told as another one is."""
    size = _count(tree["tree_param"]["num_nodes"])
    found = dict(tree)
    for name, values in tree.items():
        if name.startswith("categories"):
            found[name] = values[:0]
        elif hasattr(values, "__len__") and name != "tree_param" and len(values) == size:
            found[name] = _like(values, np.zeros(1))
    for name in ("left_children", "right_children"):
        found[name] = _like(tree[name], np.array([_NO_NODE]))
    found["parents"] = _like(tree["parents"], np.array([_ROOT_PARENT]))
    found["tree_param"] = tree["tree_param"] | {"num_nodes": "1"}
    return found


def n_rounds(raw: bytes, decoded: dict[str, Any] | None = None) -> int:
    """Return the number of rounds of a model; at once where it is decoded already."""
    model = ubjson.decode(raw) if decoded is None else decoded
    return len(_trees(model)["iteration_indptr"]) - 1


def check(
    raw: bytes, *, n_features: int, n_outputs: int, n_categories: Mapping[int, int] | None = None
) -> dict[str, Any]:
    """Return the decoded model; raise ValueError unless XGBoost can safely walk its trees.

    ``n_categories`` tells, by feature, how many categories there are, of those that have any: a set
    of others is refused, for XGBoost makes room for all categories up to the largest of a set.
    None: they are not known, and may be any that XGBoost can number.

    XGBoost trusts what it loads: a child index out of range makes it read beyond its arrays, and so
    do two trees of one number, a negative category or a leaf with odd children.
    """
    try:
        model: dict[str, Any] = ubjson.decode(raw)
        _check_learner(model["learner"], n_features, n_outputs)
        part = _trees(model)
        trees, info = part["trees"], _whole_numbers(part["tree_info"])
        bounds = _whole_numbers(part["iteration_indptr"])
        if not (len(trees) == len(info) == _count(part["gbtree_model_param"]["num_trees"])):
            raise ValueError("the number of trees is told in different ways")
        if _count(part["gbtree_model_param"]["num_parallel_tree"]) < 1:
            raise ValueError("a round has no trees")
        if bounds[0] != 0 or bounds[-1] != len(trees) or (np.diff(bounds) < 0).any():
            raise ValueError("the bounds of the rounds are out of order")
        if len(info) and (info.min() < 0 or info.max() >= max(n_outputs, 1)):
            raise ValueError("a tree belongs to no output")
        for number, tree in enumerate(trees):
            _check_tree(number, tree, n_features, n_categories)
        if "cats" in part:  # XGBoost 3.1 and later
            _check_category_names(part["cats"], n_features)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(f"the trees are not in XGBoost's format: {error!r}") from None
    return model


def _check_learner(learner: dict[str, Any], n_features: int, n_outputs: int) -> None:
    """The model is of the kind that the learner writes: another could be larger than its trees."""
    param = learner["learner_model_param"]
    expected = {
        "num_feature": n_features,
        "num_class": n_outputs if n_outputs > 1 else 0,
        "num_target": 1,
    }
    for name, value in expected.items():
        if _count(param[name]) != value:
            raise ValueError(f"{name} is {param[name]}, not {value}")
    base = [float(number) for number in param["base_score"].strip("[]").split(",")]
    if any(base) or len(base) not in (1, n_outputs):
        raise ValueError(f"base_score is {param['base_score']}, not 0")
    for name in ("feature_names", "feature_types"):
        told = learner.get(name, [])
        if len(told) not in (0, n_features) or not all(isinstance(own, str) for own in told):
            raise ValueError(f"its {name} are not those of {n_features} features")
    objective, booster = learner["objective"]["name"], learner["gradient_booster"]["name"]
    if booster != "gbtree" or objective != ("multi:softprob" if n_outputs > 1 else _ONE_OUTPUT):
        raise ValueError(f"it is a {booster} for {objective}, which crfx does not grow")


def _check_tree(
    number: int, tree: dict[str, Any], n_features: int, n_categories: Mapping[int, int] | None
) -> None:
    param = tree["tree_param"]
    size = _count(param["num_nodes"])
    if size < 1 or _count(param["size_leaf_vector"]) > 1 or _count(param["num_deleted"]):
        raise ValueError(f"tree {number} has no nodes, deleted ones, or vectors in its leaves")
    if _count(param["num_feature"]) != n_features:
        raise ValueError(f"tree {number} was grown on another number of features")
    if tree["id"] != number:
        raise ValueError(f"tree {number} has the number {tree['id']}")
    if any(len(tree[name]) != size for name in _PER_NODE):
        raise ValueError(f"tree {number}: arrays of unequal length")
    left, right, parents, features, categorical = (_whole_numbers(tree[name]) for name in _INTEGERS)
    inner = left != _NO_NODE
    children, places = (
        np.concatenate([left[inner], right[inner]]),
        np.tile(np.flatnonzero(inner), 2),
    )
    # Every node but the root is the child of exactly one node that comes before it: no cycles.
    if (
        not np.array_equal(np.sort(children), np.arange(1, size))
        or (right[~inner] != _NO_NODE).any()
    ):
        raise ValueError(f"tree {number}: its nodes do not form a tree")
    if (children <= places).any():
        raise ValueError(f"tree {number}: a child comes before its parent")
    if (parents[children] != places).any() or parents[0] not in (_NO_NODE, _ROOT_PARENT):
        raise ValueError(f"tree {number}: a node names another parent")
    used = features[inner]
    if len(used) and (used.min() < 0 or used.max() >= n_features):
        raise ValueError(f"tree {number}: a split uses a feature that does not exist")
    _check_categories(number, tree, categorical)
    if n_categories is not None and categorical.any():
        _check_known_categories(number, tree, features, n_categories)
    _check_floats(number, tree, inner, categorical)


def _check_floats(
    number: int, tree: dict[str, Any], inner: npt.NDArray[np.bool_], categorical: IntArray
) -> None:
    weights, gains, conditions, covers = (np.asarray(tree[name]) for name in _FLOATS)
    if any(part.dtype.kind != "f" for part in (weights, gains, conditions, covers)):
        raise ValueError(f"tree {number}: it has whole numbers where others belong")
    if not np.isfinite(conditions[~inner]).all() or not np.isfinite(weights).all():
        raise ValueError(f"tree {number}: its leaves are not all finite")
    # Where a node asks for a category its threshold says nothing, and is no number.
    if np.isnan(conditions[inner & (categorical == 0)]).any():
        raise ValueError(f"tree {number}: a node has no threshold")
    if np.isnan(gains).any() or not np.isfinite(covers).all():
        raise ValueError(f"tree {number}: its gains or covers are no numbers")


def _check_categories(number: int, tree: dict[str, Any], categorical: IntArray) -> None:
    nodes, starts = (_whole_numbers(tree[f"categories_{what}"]) for what in ("nodes", "segments"))
    sizes, categories = _whole_numbers(tree["categories_sizes"]), _whole_numbers(tree["categories"])
    if ((categorical != 0) & (categorical != 1)).any():
        raise ValueError(f"tree {number}: a split of unknown type")
    # XGBoost expects the nodes in order, and one segment for each.
    same = len(nodes) == len(starts) == len(sizes)
    if not same or not np.array_equal(nodes, np.flatnonzero(categorical)):
        raise ValueError(f"tree {number}: its categories belong to no node, or a node has none")
    total = len(categories)
    if (starts < 0).any() or (sizes < 1).any() or (starts > total).any():
        raise ValueError(f"tree {number}: its categories are cut off")
    if (sizes > total - starts).any():
        raise ValueError(f"tree {number}: its categories are cut off")
    # One after the other, as XGBoost writes them: else a few could be read again for every node.
    if not np.array_equal(starts, np.cumsum(sizes) - sizes) or sizes.sum() != total:
        raise ValueError(f"tree {number}: its categories overlap, or some belong to no node")
    if total and (categories.min() < 0 or categories.max() >= _MOST_CATEGORIES):
        raise ValueError(f"tree {number}: a category that cannot exist")


def _check_known_categories(
    number: int, tree: dict[str, Any], features: IntArray, n_categories: Mapping[int, int]
) -> None:
    """Every category is one of its feature; the sets themselves are checked already."""
    sizes, categories = _whole_numbers(tree["categories_sizes"]), _whole_numbers(tree["categories"])
    asked = features[_whole_numbers(tree["categories_nodes"])]
    known = np.array([n_categories.get(feature, 0) for feature in asked.tolist()], dtype=np.int64)
    wrong = np.flatnonzero(categories >= np.repeat(known, sizes))
    if len(wrong):
        at = int(np.searchsorted(np.cumsum(sizes), wrong[0], side="right"))
        raise ValueError(
            f"tree {number}: a split asks for category {categories[wrong[0]]} of feature "
            f"{asked[at]}, which has {known[at]}"
        )


def _check_category_names(cats: dict[str, Any], n_features: int) -> None:
    """Names of the categories of each feature, by which XGBoost recodes a data frame."""
    names, order = cats["enc"], _whole_numbers(cats["sorted_idx"])
    bounds = _whole_numbers(cats["feature_segments"])
    if not len(names) and not len(order) and not len(bounds):
        return
    if len(names) != n_features or len(bounds) != n_features + 1:
        raise ValueError("the categories are not told for every feature")
    if bounds[0] != 0 or bounds[-1] != len(order) or (np.diff(bounds) < 0).any():
        raise ValueError("the categories of the features are cut off")
    for feature, own in enumerate(names):
        begin, end = int(bounds[feature]), int(bounds[feature + 1])
        if not np.array_equal(np.sort(order[begin:end]), np.arange(end - begin)):
            raise ValueError(f"feature {feature}: its categories are not in any order")
        count, values = end - begin, own["values"]
        if "offsets" in own:  # text, one after the other
            ends = _whole_numbers(own["offsets"])
            if len(ends) != (count + 1 if count else 0) or len(values) != (
                ends[-1] if count else 0
            ):
                raise ValueError(f"feature {feature}: the names of its categories are cut off")
            if count and (ends[0] != 0 or (np.diff(ends) < 0).any()):
                raise ValueError(f"feature {feature}: the names of its categories overlap")
        elif len(values) != count:
            raise ValueError(f"feature {feature}: the names of its categories are cut off")


def _trees(model: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = model["learner"]["gradient_booster"]["model"]
    return found


def _set_trees(part: dict[str, Any], trees: list[dict[str, Any]], info: Any, bounds: Any) -> None:
    """Put other trees into a model: the output of each, and where the trees of each round begin."""
    part["trees"] = [tree | {"id": place} for place, tree in enumerate(trees)]
    part["tree_info"] = _like(part["tree_info"], info)
    part["iteration_indptr"] = _like(part["iteration_indptr"], bounds)
    part["gbtree_model_param"]["num_trees"] = str(len(trees))


def _numbers(values: Any) -> np.ndarray[Any, np.dtype[Any]]:
    return np.asarray(values) if len(values) else np.zeros(0, dtype=np.int32)


def _whole_numbers(values: Any) -> IntArray:
    found = _numbers(values)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ValueError(f"the trees hold {found.dtype} where whole numbers belong")
    return found.astype(np.int64)


def _count(text: Any) -> int:
    """Numbers of the model as such are written as text."""
    if not isinstance(text, str) or not (text.isascii() and text.isdigit()):
        raise ValueError(f"the trees say {text!r} where a number belongs")
    return int(text)


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
