"""Trees in XGBoost's model format: join rounds into one ensemble, cut it, check it.

Every round of boosting grows its trees in a model of its own, with leaves that are not shrunk yet,
because the step is known one inference later.  Joining scales the leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.potentials import ubjson

IntArray = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]

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
    sizes = np.concatenate([np.diff(_numbers(part["iteration_indptr"])) for part in parts])
    _set_trees(_trees(joined), trees, info, np.concatenate([[0], np.cumsum(sizes)]))
    return ubjson.encode(joined)


def first_rounds(raw: bytes, n_rounds: int) -> bytes:
    """Return the model of the first ``n_rounds`` rounds."""
    model = ubjson.decode(raw)
    trees, info, bounds = _layout(model)
    return _with_rounds(model, trees, info, bounds[: n_rounds + 1])


def rounds_alone(raw: bytes) -> Iterator[bytes]:
    """Yield the model of every round alone."""
    model = ubjson.decode(raw)
    trees, info, bounds = _layout(model)
    for number in range(len(bounds) - 1):
        yield _with_rounds(model, trees, info, bounds[number : number + 2])


def _layout(model: dict[str, Any]) -> tuple[list[dict[str, Any]], Numbers, Numbers]:
    """Return the trees, the output of each, and where the trees of each round begin."""
    part = _trees(model)
    return part["trees"], _numbers(part["tree_info"]), _numbers(part["iteration_indptr"])


def _with_rounds(
    model: dict[str, Any], trees: list[dict[str, Any]], info: Numbers, bounds: Numbers
) -> bytes:
    """Return the model with the trees from the first to the last of ``bounds`` alone."""
    begin, end = int(bounds[0]), int(bounds[-1])
    _set_trees(_trees(model), trees[begin:end], info[begin:end], bounds - begin)
    return ubjson.encode(model)


def with_outputs(raw: bytes, places: npt.NDArray[np.integer[Any]], n_outputs: int) -> bytes:
    """Return the model with ``n_outputs`` outputs: old output k becomes ``places[k]``.

    New outputs have trees of one leaf, 0, in every round, so that rounds stay whole.
    """
    model = ubjson.decode(raw)
    old_trees, info, bounds = _layout(model)
    trees: list[dict[str, Any]] = []
    outputs: list[int] = []
    for begin, end in pairwise(bounds.tolist()):
        by_output: dict[int, list[dict[str, Any]]] = {}
        for number in range(begin, end):
            by_output.setdefault(int(places[info[number]]), []).append(old_trees[number])
        n_each = max(map(len, by_output.values()))
        for output in range(n_outputs):
            trees += by_output.get(output) or [_leaf(old_trees[begin])] * n_each
            outputs += [output] * (len(trees) - len(outputs))
    per_round = len(trees) // max(len(bounds) - 1, 1)
    _set_trees(_trees(model), trees, np.array(outputs), np.arange(len(bounds)) * per_round)
    _set_outputs(model["learner"], n_outputs)
    return ubjson.encode(model)


def _set_outputs(learner: dict[str, Any], n_outputs: int) -> None:
    """Make the model one of the kind that XGBoost writes for ``n_outputs`` outputs."""
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
    """Return a tree of one leaf, 0, with the types of another tree."""
    size = _count(tree["tree_param"]["num_nodes"])
    leaf = dict(tree)
    for name, values in tree.items():
        if name.startswith("categories"):
            leaf[name] = values[:0]
        elif hasattr(values, "__len__") and name != "tree_param" and len(values) == size:
            leaf[name] = _like(values, np.zeros(1))
    for name in ("left_children", "right_children"):
        leaf[name] = _like(tree[name], np.array([_NO_NODE]))
    leaf["parents"] = _like(tree["parents"], np.array([_ROOT_PARENT]))
    leaf["tree_param"] = tree["tree_param"] | {"num_nodes": "1"}
    return leaf


def n_rounds(raw: bytes, decoded: dict[str, Any] | None = None) -> int:
    """Return the number of rounds of a model; fast where it is decoded already."""
    model = ubjson.decode(raw) if decoded is None else decoded
    return len(_trees(model)["iteration_indptr"]) - 1


def check(
    raw: bytes, *, n_features: int, n_outputs: int, n_categories: Mapping[int, int] | None = None
) -> dict[str, Any]:
    """Return the decoded model; raise ValueError unless XGBoost can safely walk its trees.

    ``n_categories`` is the number of categories of each feature that has any.  Larger categories
    raise ValueError, because XGBoost makes room for all up to the largest of a set.  None: the
    numbers are not known, and categories may be any that XGBoost can number.

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
            if tree["id"] != number:
                raise ValueError(f"tree {number} has the number {tree['id']}")
            try:
                _check_tree(tree, n_features, n_categories)
            except ValueError as error:
                raise ValueError(f"tree {number}: {error}") from None
        if "cats" in part:  # XGBoost 3.1 and later
            _check_category_names(part["cats"], n_features)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(f"the trees are not in XGBoost's format: {error!r}") from None
    return model


def _check_learner(learner: dict[str, Any], n_features: int, n_outputs: int) -> None:
    """Raise unless the learner writes such models: another could be larger than its trees."""
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
        texts = learner.get(name, [])
        if len(texts) not in (0, n_features) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"its {name} are not those of {n_features} features")
    objective, booster = learner["objective"]["name"], learner["gradient_booster"]["name"]
    if booster != "gbtree" or objective != ("multi:softprob" if n_outputs > 1 else _ONE_OUTPUT):
        raise ValueError(f"it is a {booster} for {objective}, which crfx does not grow")


def _check_tree(
    tree: dict[str, Any], n_features: int, n_categories: Mapping[int, int] | None
) -> None:
    param = tree["tree_param"]
    size = _count(param["num_nodes"])
    if size < 1 or _count(param["size_leaf_vector"]) > 1 or _count(param["num_deleted"]):
        raise ValueError("it has no nodes, deleted ones, or vectors in its leaves")
    if _count(param["num_feature"]) != n_features:
        raise ValueError("it was grown on another number of features")
    if any(len(tree[name]) != size for name in _PER_NODE):
        raise ValueError("arrays of unequal length")
    left, right, parents, features, categorical = (_whole_numbers(tree[name]) for name in _INTEGERS)
    inner = left != _NO_NODE
    children = np.concatenate([left[inner], right[inner]])
    above = np.tile(np.flatnonzero(inner), 2)
    # Every node but the root is the child of exactly one node that comes before it: no cycles.
    is_tree = np.array_equal(np.sort(children), np.arange(1, size))
    if not is_tree or (right[~inner] != _NO_NODE).any():
        raise ValueError("its nodes do not form a tree")
    if (children <= above).any():
        raise ValueError("a child comes before its parent")
    if (parents[children] != above).any() or parents[0] not in (_NO_NODE, _ROOT_PARENT):
        raise ValueError("a node names another parent")
    used = features[inner]
    if len(used) and (used.min() < 0 or used.max() >= n_features):
        raise ValueError("a split uses a feature that does not exist")
    _check_categories(tree, features, categorical, n_categories)
    _check_floats(tree, inner, categorical)


def _check_floats(
    tree: dict[str, Any], inner: npt.NDArray[np.bool_], categorical: IntArray
) -> None:
    weights, gains, conditions, covers = (np.asarray(tree[name]) for name in _FLOATS)
    if any(part.dtype.kind != "f" for part in (weights, gains, conditions, covers)):
        raise ValueError("it has whole numbers where others belong")
    if not np.isfinite(conditions[~inner]).all() or not np.isfinite(weights).all():
        raise ValueError("its leaves are not all finite")
    # Where a node asks for a category its threshold says nothing, and is no number.
    if np.isnan(conditions[inner & (categorical == 0)]).any():
        raise ValueError("a node has no threshold")
    if np.isnan(gains).any() or not np.isfinite(covers).all():
        raise ValueError("its gains or covers are no numbers")


def _check_categories(
    tree: dict[str, Any],
    features: IntArray,
    categorical: IntArray,
    n_categories: Mapping[int, int] | None,
) -> None:
    nodes, starts, sizes = (
        _whole_numbers(tree[f"categories_{name}"]) for name in ("nodes", "segments", "sizes")
    )
    categories = _whole_numbers(tree["categories"])
    if ((categorical != 0) & (categorical != 1)).any():
        raise ValueError("a split of unknown type")
    # XGBoost expects the nodes in order, and one segment for each.
    same = len(nodes) == len(starts) == len(sizes)
    if not same or not np.array_equal(nodes, np.flatnonzero(categorical)):
        raise ValueError("its categories belong to no node, or a node has none")
    total = len(categories)
    outside = (starts < 0) | (sizes < 1) | (starts > total) | (sizes > total - starts)
    if outside.any():
        raise ValueError("its categories are cut off")
    # One after the other, as XGBoost writes them: else a few could be read again for every node.
    if not np.array_equal(starts, np.cumsum(sizes) - sizes) or sizes.sum() != total:
        raise ValueError("its categories overlap, or some belong to no node")
    if total and (categories.min() < 0 or categories.max() >= _MOST_CATEGORIES):
        raise ValueError("a category that cannot exist")
    if n_categories is None or not total:
        return
    known = np.array([n_categories.get(feature, 0) for feature in features[nodes].tolist()])
    wrong = np.flatnonzero(categories >= np.repeat(known, sizes))
    if len(wrong):
        at = int(np.searchsorted(np.cumsum(sizes), wrong[0], side="right"))
        raise ValueError(
            f"a split asks for category {categories[wrong[0]]} of feature {features[nodes[at]]}, "
            f"which has {known[at]}"
        )


def _check_category_names(cats: dict[str, Any], n_features: int) -> None:
    """Check the names of the categories, by which XGBoost recodes a data frame."""
    names, order = cats["enc"], _whole_numbers(cats["sorted_idx"])
    bounds = _whole_numbers(cats["feature_segments"])
    if not len(names) and not len(order) and not len(bounds):
        return
    if len(names) != n_features or len(bounds) != n_features + 1:
        raise ValueError("the categories are not told for every feature")
    if bounds[0] != 0 or bounds[-1] != len(order) or (np.diff(bounds) < 0).any():
        raise ValueError("the categories of the features are cut off")
    for feature, (begin, end) in enumerate(pairwise(bounds.tolist())):
        count, values = end - begin, names[feature]["values"]
        if not np.array_equal(np.sort(order[begin:end]), np.arange(count)):
            raise ValueError(f"feature {feature}: its categories are not in any order")
        expected = count
        if "offsets" in names[feature]:  # text, one after the other
            ends = _whole_numbers(names[feature]["offsets"])
            if len(ends) != (count + 1 if count else 0):
                raise ValueError(f"feature {feature}: the names of its categories are cut off")
            if count and (ends[0] != 0 or (np.diff(ends) < 0).any()):
                raise ValueError(f"feature {feature}: the names of its categories overlap")
            expected = ends[-1] if count else 0
        if len(values) != expected:
            raise ValueError(f"feature {feature}: the names of its categories are cut off")


def _trees(model: dict[str, Any]) -> dict[str, Any]:
    part: dict[str, Any] = model["learner"]["gradient_booster"]["model"]
    return part


def _set_trees(part: dict[str, Any], trees: list[dict[str, Any]], info: Any, bounds: Any) -> None:
    """Put other trees into a model: the output of each, and where the trees of each round begin."""
    part["trees"] = [tree | {"id": place} for place, tree in enumerate(trees)]
    part["tree_info"] = _like(part["tree_info"], info)
    part["iteration_indptr"] = _like(part["iteration_indptr"], bounds)
    part["gbtree_model_param"]["num_trees"] = str(len(trees))


def _numbers(values: Any) -> Numbers:
    return np.asarray(values) if len(values) else np.zeros(0, dtype=np.int32)


def _whole_numbers(values: Any) -> IntArray:
    numbers = _numbers(values)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ValueError(f"the trees hold {numbers.dtype} where whole numbers belong")
    return numbers.astype(np.int64)


def _count(text: Any) -> int:
    """Return a number of the model, which XGBoost writes as text."""
    if not isinstance(text, str) or not (text.isascii() and text.isdigit()):
        raise ValueError(f"the trees say {text!r} where a number belongs")
    return int(text)


def _like(old: Any, new: Numbers) -> Any:
    """Return ``new`` as a typed array or list, as ``old`` is: XGBoost accepts one of them."""
    return new.astype(old.dtype) if isinstance(old, np.ndarray) else new.tolist()


def _scaled(tree: dict[str, Any], step: np.float32) -> dict[str, Any]:
    """Return the tree with leaves times ``step``; they stand where inner nodes have thresholds."""
    leaves = np.asarray(tree["left_children"]) < 0
    conditions = np.array(tree["split_conditions"], dtype=np.float32)
    conditions[leaves] *= step
    weights = np.asarray(tree["base_weights"], dtype=np.float32) * step
    return tree | {"split_conditions": conditions, "base_weights": weights}
