"""Joined and cut models predict what their rounds do; only sound ones get past `check`."""

import functools
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from crfx.potentials import tree_format, ubjson
from crfx.potentials.xgboost_learner import TreeEnsemble, XGBoostLearner

N_ROWS, N_FEATURES = 120, 4
STEPS = (1.0, 0.3, 0.0, 0.05, 0.7, 1e-3, 0.3, 0.15)
MUTANTS = 200
MOST_SECONDS = 200
ODD_NUMBERS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 31, 1000, 2**24, 2**31 - 1, 2**63 - 1)
ODD_TEXTS = ("", "x", "nan", "c", "float", "dart", "[0E0]", "[]", "[0,0,0]", "reg:tweedie", "1e9")


def numbers():
    random = np.random.default_rng(0)
    X = random.normal(size=(N_ROWS, N_FEATURES)).astype(np.float32)
    X[random.random(X.shape) < 0.2] = np.nan
    return X


def frame():
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    return pandas.DataFrame(
        {
            "number": numbers()[:, 0],
            "letter": pandas.Categorical(random.choice(list("uvwxyz"), N_ROWS)),
            "digit": pandas.Categorical(random.integers(0, 9, N_ROWS)),
            "whole": random.integers(0, 5, N_ROWS),
        }
    )


KINDS = {
    "numbers": (numbers, 3, {"max_depth": 4}),
    "one output": (numbers, 1, {"max_depth": 4}),
    "categories": (frame, 3, {"max_depth": 4}),
    "stumps": (numbers, 2, {"max_depth": 1}),
    "leaves only": (numbers, 2, {"gamma": 1e9}),
    "pruned": (numbers, 2, {"max_depth": 6, "gamma": 2.0}),
    "one category against the rest": (frame, 3, {"max_depth": 4, "max_cat_to_onehot": 100}),
    "sets of categories": (frame, 3, {"max_depth": 4, "max_cat_to_onehot": 1}),
    "by leaves": (frame, 2, {"max_leaves": 6, "grow_policy": "lossguide", "max_depth": 0}),
    "columns sampled": (numbers, 2, {"colsample_bynode": 0.5}),
}
SMALL = ("numbers", "one output", "categories")
KNOWN = {1: 6, 2: 9}
"""Categories of the columns of `frame`."""


@functools.cache
def grown(kind):
    """The learner, its rows and one grown round per step, on gradients of any size."""
    make, n_outputs, params = KINDS[kind]
    X, random = make(), np.random.default_rng(1)
    learner = XGBoostLearner(params, seed=3)
    matrix = learner.training_matrix(X)
    rounds = []
    for number in range(len(STEPS)):
        gradient = random.normal(size=(N_ROWS, n_outputs)).astype(np.float32)
        curvature = random.uniform(0.1, 1, size=gradient.shape).astype(np.float32)
        rounds.append(learner.grow(matrix, gradient, curvature, number))
    return learner.matrix(X), rounds


def n_outputs(kind):
    return KINDS[kind][1]


@functools.cache
def joined(kind):
    return tree_format.join([trees.raw() for trees in grown(kind)[1]], STEPS)


def running_sum(kind, n_rounds=None):
    """What a trainer has added up while it grew the rounds, in float32 and in this order."""
    matrix, rounds = grown(kind)
    total = np.zeros((N_ROWS, n_outputs(kind)), dtype=np.float32)
    for trees, step in zip(rounds[:n_rounds], STEPS, strict=False):
        total += np.float32(step) * trees.scores(matrix)
    return total


def predicted(raw, kind, n_rounds=None):
    check(raw, kind)  # else XGBoost may end the process
    return TreeEnsemble.of(raw, n_outputs(kind)).scores(grown(kind)[0], n_rounds)


@pytest.mark.parametrize("kind", KINDS)
def test_joined_rounds_predict_the_running_sum(kind):
    """Bit by bit: else a run that is continued would differ from one that was not interrupted."""
    expected = running_sum(kind)
    assert predicted(joined(kind), kind).tobytes() == expected.tobytes()
    assert np.ptp(expected) > 0 or kind == "leaves only"


def test_another_order_of_additions_is_seen():
    """The companion: comparing bits can fail by rounding alone."""
    matrix, rounds = grown("numbers")
    total = np.zeros((N_ROWS, 3), dtype=np.float32)
    for trees, step in reversed(list(zip(rounds, STEPS, strict=True))):
        total += np.float32(step) * trees.scores(matrix)
    np.testing.assert_allclose(total, running_sum("numbers"), rtol=1e-4, atol=1e-5)
    assert total.tobytes() != running_sum("numbers").tobytes()


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("cut", [1, 3, len(STEPS) - 1])
def test_joining_in_two_stages(kind, cut):
    raws = [trees.raw() for trees in grown(kind)[1]]
    first = tree_format.join(raws[:cut], STEPS[:cut])
    assert tree_format.join([first, *raws[cut:]], [1.0, *STEPS[cut:]]) == joined(kind)
    rest = tree_format.join(raws[cut:], STEPS[cut:])
    assert tree_format.join([first, rest], [1.0, 1.0]) == joined(kind)


def test_one_round_with_step_1_stays_as_it_is():
    raw = grown("numbers")[1][0].raw()
    expected = TreeEnsemble.of(raw, 3).scores(grown("numbers")[0])
    assert predicted(tree_format.join([raw], [1.0]), "numbers").tobytes() == expected.tobytes()


def test_as_many_steps_as_rounds():
    with pytest.raises(ValueError, match="shorter"):
        tree_format.join([trees.raw() for trees in grown("numbers")[1]], STEPS[:-1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_rounds", [1, 3, len(STEPS)])
def test_first_rounds_predict_as_a_range_of_rounds_does(kind, n_rounds):
    cut = tree_format.first_rounds(joined(kind), n_rounds)
    found = predicted(cut, kind)
    assert found.tobytes() == predicted(joined(kind), kind, n_rounds).tobytes()
    assert found.tobytes() == running_sum(kind, n_rounds).tobytes()
    assert tree_format.n_rounds(cut) == n_rounds
    check(cut, kind)


def test_no_rounds_are_left():
    cut = tree_format.first_rounds(joined("numbers"), 0)
    assert tree_format.n_rounds(cut) == 0
    check(cut, "numbers")
    np.testing.assert_array_equal(predicted(cut, "numbers"), 0)


def test_cutting_equals_joining_fewer():
    raws = [trees.raw() for trees in grown("categories")[1]]
    assert tree_format.first_rounds(joined("categories"), 3) == tree_format.join(
        raws[:3], STEPS[:3]
    )


def test_rounds_grown_on_other_categories_are_not_joined():
    """A tree knows categories by number: those of the first round would be read into all."""
    pandas = pytest.importorskip("pandas")
    learner, raws = XGBoostLearner(), []
    for letters in ("ab", "ba"):
        column = pandas.Categorical(list("abab"), categories=list(letters))
        matrix = learner.training_matrix(pandas.DataFrame({"letter": column}))
        gradient = np.array([[1], [-1], [1], [-1]], dtype=np.float32)
        raws.append(learner.grow(matrix, gradient, np.ones_like(gradient), 0).raw())
    if "cats" not in trees_of(ubjson.decode(raws[0])):
        pytest.skip("XGBoost before 3.1 does not write the categories into its models")
    with pytest.raises(ValueError, match="different categories"):
        tree_format.join(raws, [1.0, 1.0])


# What `check` accepts and refuses.


def check(raw, kind, n_categories=None):
    tree_format.check(
        raw, n_features=N_FEATURES, n_outputs=n_outputs(kind), n_categories=n_categories
    )


def trees_of(model):
    return model["learner"]["gradient_booster"]["model"]


def changed(kind, *path, **entries):
    """The joined model with some entries of the array, list or dict at ``path`` replaced.

    ``entries`` are ``at_<index>`` for arrays and names for dicts; ``to`` replaces the whole.
    """
    model = ubjson.decode(joined(kind))
    parent = model
    for step in path[:-1]:
        parent = parent[step]
    if "to" in entries:
        parent[path[-1]] = entries.pop("to")
    for name, value in entries.items():
        target = parent[path[-1]]
        target[int(name[3:]) if name.startswith("at_") else name] = value
    return ubjson.encode(model)


BOOSTER = ("learner", "gradient_booster")
TREES = (*BOOSTER, "model", "trees")
PARAM = ("learner", "learner_model_param")


@pytest.mark.parametrize("kind", KINDS)
def test_real_models_are_accepted(kind):
    n_categories = KNOWN if KINDS[kind][0] is frame else {}
    check(joined(kind), kind, n_categories)
    for trees in grown(kind)[1]:
        check(trees.raw(), kind)
        check(trees.raw(), kind, n_categories)


def test_changing_nothing_is_accepted():
    """The companion of the refusals: they are due to what is changed."""
    left = trees_of(ubjson.decode(joined("numbers")))["trees"][0]["left_children"]
    check(changed("numbers", *TREES, 0, "left_children", at_0=left[0]), "numbers")


@pytest.mark.parametrize(
    ("path", "entries", "message"),
    [
        ((*TREES, 0, "left_children"), {"at_0": 10_000}, "do not form a tree"),
        ((*TREES, 0, "right_children"), {"at_0": 2**31 - 1}, "do not form a tree"),
        ((*TREES, 0, "left_children"), {"at_0": 0}, "do not form a tree"),
        ((*TREES, 0, "left_children"), {"at_0": 2}, "do not form a tree"),
        ((*TREES, 0, "left_children"), {"at_0": -1}, "do not form a tree"),
        ((*TREES, 0, "left_children"), {"at_0": -3}, "do not form a tree"),
        ((*TREES, 0, "right_children"), {"at_-1": 1}, "do not form a tree"),
        ((*TREES, 0, "right_children"), {"at_-1": -2}, "do not form a tree"),
        ((*TREES, 0, "parents"), {"at_1": -3}, "names another parent"),
        ((*TREES, 0, "parents"), {"at_0": 0}, "names another parent"),
        ((*TREES, 0, "split_indices"), {"at_0": N_FEATURES}, "feature that does not exist"),
        ((*TREES, 0, "split_indices"), {"at_0": -1}, "feature that does not exist"),
        ((*TREES, 0, "split_type"), {"at_0": 7}, "unknown type"),
        ((*TREES, 0, "split_type"), {"at_0": 1}, "a node has none"),
        ((*TREES, 1, "id"), {"to": 0}, "tree 1 has the number 0"),
        ((*TREES, 0, "tree_param"), {"num_nodes": "2"}, "unequal length"),
        ((*TREES, 0, "tree_param"), {"num_nodes": "0"}, "no nodes"),
        ((*TREES, 0, "tree_param"), {"num_nodes": "-1"}, "where a number belongs"),
        ((*TREES, 0, "tree_param"), {"num_nodes": float("inf")}, "where a number belongs"),
        ((*TREES, 0, "tree_param"), {"size_leaf_vector": "2"}, "vectors in its leaves"),
        ((*TREES, 0, "tree_param"), {"num_deleted": "1"}, "deleted"),
        ((*TREES, 0, "tree_param"), {"num_feature": "5"}, "another number of features"),
        ((*TREES, 0, "left_children"), {"to": [None]}, "unequal length"),
        ((*TREES, 0, "left_children"), {"to": None}, "not in XGBoost's format"),
        ((*TREES, 0), {"to": "tree"}, "not in XGBoost's format"),
        (PARAM, {"num_feature": "5"}, "num_feature is 5, not 4"),
        (PARAM, {"num_class": "2"}, "num_class is 2, not 3"),
        (PARAM, {"num_target": "16777216"}, "num_target"),
        (PARAM, {"base_score": "[5E-1]"}, "base_score"),
        (PARAM, {"base_score": "[0E0,0E0]"}, "base_score"),
        (BOOSTER, {"name": "dart"}, "dart"),
        (("learner", "objective"), {"name": "rank:ndcg"}, "rank:ndcg"),
        ((*BOOSTER, "model", "tree_info"), {"at_0": 3}, "belongs to no output"),
        ((*BOOSTER, "model", "tree_info"), {"at_0": -1}, "belongs to no output"),
        ((*BOOSTER, "model", "tree_info"), {"to": [0]}, "number of trees"),
        ((*BOOSTER, "model", "gbtree_model_param"), {"num_trees": "1"}, "number of trees"),
        ((*BOOSTER, "model", "iteration_indptr"), {"at_1": 100}, "bounds of the rounds"),
        ((*BOOSTER, "model", "iteration_indptr"), {"at_0": 1}, "bounds of the rounds"),
        ((*BOOSTER, "model", "iteration_indptr"), {"at_-1": 100}, "bounds of the rounds"),
        ((*BOOSTER, "model", "iteration_indptr"), {"to": []}, "not in XGBoost's format"),
        ((*BOOSTER, "model"), {"to": {}}, "not in XGBoost's format"),
        ((*BOOSTER, "model", "gbtree_model_param"), {"num_parallel_tree": "0"}, "has no trees"),
        ((*BOOSTER, "model", "gbtree_model_param"), {"num_parallel_tree": 1}, "a number belongs"),
        ((*TREES, 0, "split_conditions"), {"at_-1": np.nan}, "leaves are not all finite"),
        ((*TREES, 0, "split_conditions"), {"at_-1": np.inf}, "leaves are not all finite"),
        ((*TREES, 0, "split_conditions"), {"at_0": np.nan}, "a node has no threshold"),
        ((*TREES, 0, "base_weights"), {"at_0": np.inf}, "leaves are not all finite"),
        ((*TREES, 0, "loss_changes"), {"at_0": np.nan}, "gains or covers"),
        ((*TREES, 0, "sum_hessian"), {"at_0": np.nan}, "gains or covers"),
        ((*TREES, 0, "loss_changes"), {"to": None}, "not in XGBoost's format"),
        (("learner", "feature_names"), {"to": ["a"]}, "feature_names are not those of 4"),
        (("learner", "feature_types"), {"to": [1, 2, 3, 4]}, "feature_types are not those of 4"),
    ],
)
def test_broken_models_are_refused(path, entries, message):
    with pytest.raises(ValueError, match=message):
        check(changed("numbers", *path, **entries), "numbers")


@pytest.mark.parametrize(
    "name",
    [
        "left_children",
        "right_children",
        "parents",
        "split_indices",
        "split_type",
        "default_left",
        "split_conditions",
        "base_weights",
        "loss_changes",
        "sum_hessian",
    ],
)
def test_arrays_of_unequal_lengths(name):
    whole = trees_of(ubjson.decode(joined("numbers")))["trees"][1][name]
    for wrong in (whole[:-1], np.append(whole, whole[:1]), whole[:0]):
        with pytest.raises(ValueError, match="tree 1: arrays of unequal length"):
            check(changed("numbers", *TREES, 1, name, to=wrong), "numbers")


@pytest.mark.parametrize("name", ["left_children", "split_indices"])
def test_indices_must_be_whole_numbers(name):
    """NaN is neither below nor above a bound."""
    array = trees_of(ubjson.decode(joined("numbers")))["trees"][0][name].astype(np.float64)
    with pytest.raises(ValueError, match="where whole numbers belong"):
        check(changed("numbers", *TREES, 0, name, to=array), "numbers")


@pytest.mark.parametrize("name", ["split_conditions", "sum_hessian"])
def test_numbers_must_not_be_whole(name):
    """XGBoost refuses them too, but not before it is asked to predict."""
    array = trees_of(ubjson.decode(joined("numbers")))["trees"][0][name].astype(np.int32)
    with pytest.raises(ValueError, match="whole numbers where others belong"):
        check(changed("numbers", *TREES, 0, name, to=array), "numbers")


def test_a_cycle():
    """Two subtrees that hang on one another, each node once: only the order tells."""
    tree = trees_of(ubjson.decode(joined("numbers")))["trees"][0]
    left, right = tree["left_children"].copy(), tree["right_children"].copy()
    inner = np.flatnonzero(left >= 0)
    assert len(inner) >= 4
    below = inner[(inner > 0) & np.isin(left, inner)[inner]][0]
    child = left[below]
    # The parent of `below` gets a leaf of `child` in exchange for `below`.
    for side in (left, right):
        side[side == below] = -9
    leaf = left[child]
    left[child] = below
    for side in (left, right):
        side[side == -9] = leaf
    model = ubjson.decode(joined("numbers"))
    broken = trees_of(model)["trees"][0]
    broken["left_children"], broken["right_children"] = left, right
    with pytest.raises(ValueError, match="a child comes before its parent"):
        check(ubjson.encode(model), "numbers")


def test_other_numbers_of_features_and_outputs():
    raw = joined("numbers")
    for n_features, outputs in ((3, 3), (5, 3), (4, 2), (4, 4), (4, 1)):
        with pytest.raises(ValueError, match=r"num_feature is 4|num_class is 3"):
            tree_format.check(raw, n_features=n_features, n_outputs=outputs)
    with pytest.raises(ValueError, match="num_class is 0, not 3"):
        tree_format.check(joined("one output"), n_features=4, n_outputs=3)


CATEGORIES = (
    ("categories", {"at_0": -1}, "cannot exist"),
    ("categories", {"at_0": 2**31 - 1}, "cannot exist"),
    ("categories", {"to": np.zeros(0, np.int32)}, "cut off"),
    ("categories_nodes", {"at_0": -1}, "belong to no node"),
    ("categories_nodes", {"at_0": 10_000}, "belong to no node"),
    ("categories_nodes", {"to": np.zeros(0, np.int32)}, "belong to no node"),
    ("categories_segments", {"at_0": -1}, "cut off"),
    ("categories_segments", {"at_0": 2**63 - 1}, "cut off"),
    ("categories_segments", {"at_0": 2**31}, "cut off"),
    ("categories_sizes", {"at_0": 0}, "cut off"),
    ("categories_sizes", {"at_0": -1}, "cut off"),
    ("categories_sizes", {"at_0": 2**63 - 1}, "cut off"),
    ("categories_sizes", {"at_1": 2**63 - 1}, "cut off"),
)


@functools.cache
def categorical_tree():
    """The first tree with two or more categorical splits."""
    trees = trees_of(ubjson.decode(joined("categories")))["trees"]
    return next(n for n, tree in enumerate(trees) if len(tree["categories_nodes"]) >= 2)


@pytest.mark.parametrize(("name", "entries", "message"), CATEGORIES)
def test_broken_categories(name, entries, message):
    with pytest.raises(ValueError, match=message):
        check(changed("categories", *TREES, categorical_tree(), name, **entries), "categories")


def test_categories_that_the_columns_have_not():
    """XGBoost makes room for all up to the largest: a small file would take a gigabyte."""
    assert {feature for feature, _ in sets_of("categories")} == set(KNOWN)
    for feature, known in KNOWN.items():
        largest = max(max(own) for asked, own in sets_of("categories") if asked == feature)
        check(joined("categories"), "categories", KNOWN | {feature: largest + 1})
        message = rf"asks for category {largest} of feature {feature}, which has "
        with pytest.raises(ValueError, match=f"{message}{largest}$"):
            check(joined("categories"), "categories", KNOWN | {feature: largest})
        without = {other: count for other, count in KNOWN.items() if other != feature}
        with pytest.raises(ValueError, match=f"of feature {feature}, which has 0$"):
            check(joined("categories"), "categories", without)
        assert largest < known


def sets_of(kind):
    """(feature, categories) of every split that asks for categories."""
    for tree in trees_of(ubjson.decode(joined(kind)))["trees"]:
        ends = np.cumsum(tree["categories_sizes"])
        for node, own in zip(
            tree["categories_nodes"], np.split(tree["categories"], ends)[:-1], strict=True
        ):
            yield int(tree["split_indices"][node]), own.tolist()


@pytest.mark.parametrize("change", ["the same again", "a gap", "one that is left over"])
def test_categories_that_are_not_one_after_the_other(change):
    """If each node could name all of them, reading them would take nodes times categories."""
    path = (*TREES, categorical_tree())
    tree = trees_of(ubjson.decode(joined("categories")))["trees"][categorical_tree()]
    starts, sizes = tree["categories_segments"].copy(), tree["categories_sizes"].copy()
    if change == "the same again":
        starts[:], sizes[:] = 0, len(tree["categories"])
    elif change == "a gap":
        starts[1:], sizes[-1] = starts[1:] + 1, sizes[-1] - 1 or 1
        starts[-1] = len(tree["categories"]) - sizes[-1]
    tree |= {"categories_segments": starts, "categories_sizes": sizes}
    if change == "one that is left over":
        tree["categories"] = np.append(tree["categories"], tree["categories"][:1])
    with pytest.raises(ValueError, match="overlap, or some belong to no node"):
        check(changed("categories", *path, to=tree), "categories")


def test_categories_out_of_order():
    """XGBoost reads them in the order of the nodes, and would leave a split without any."""
    nodes = trees_of(ubjson.decode(joined("categories")))["trees"][categorical_tree()]
    turned = nodes["categories_nodes"][::-1].copy()
    raw = changed("categories", *TREES, categorical_tree(), "categories_nodes", to=turned)
    with pytest.raises(ValueError, match="belong to no node"):
        check(raw, "categories")


@pytest.mark.parametrize(
    ("path", "entries"),
    [
        (("sorted_idx",), {"at_0": -2}),
        (("sorted_idx",), {"at_0": 1}),
        (("sorted_idx",), {"to": np.zeros(0, np.int32)}),
        (("feature_segments",), {"at_1": 2**31 - 1}),
        (("feature_segments",), {"at_0": 1}),
        (("feature_segments",), {"to": np.zeros(2, np.int32)}),
        (("enc",), {"to": []}),
        (("enc", 1, "offsets"), {"at_1": 100}),
        (("enc", 1, "offsets"), {"at_-1": 100}),
        (("enc", 1, "values"), {"to": np.zeros(0, np.int8)}),
        (("enc", 2, "values"), {"to": np.zeros(3, np.int64)}),
    ],
)
def test_broken_names_of_categories(path, entries):
    frame()
    if "cats" not in trees_of(ubjson.decode(joined("categories"))):
        pytest.skip("XGBoost before 3.1 does not write the categories into its models")
    with pytest.raises(ValueError, match="categories"):
        check(changed("categories", *BOOSTER, "model", "cats", *path, **entries), "categories")


def test_a_doubled_key():
    """XGBoost and we might each believe another one."""
    raw = joined("numbers")
    key = b"L" + (7).to_bytes(8, "big") + b"learner"
    assert raw.count(key) == 1
    doubled = raw[:1] + key + b"{}" + raw[1:]
    with pytest.raises(ValueError, match="'learner' is there twice"):
        check(doubled, "numbers")


# Whatever is accepted can be loaded. Where it cannot, XGBoost ends the process: another one tries.

LOADER = """
import pathlib, pickle, sys
import numpy as np
from crfx.potentials.trees import TreeScorer
from crfx.potentials.xgboost_learner import TreeEnsemble, XGBoostLearner

folder = pathlib.Path(sys.argv[1])
X = pickle.loads((folder / "X.pickle").read_bytes())
matrix = XGBoostLearner().matrix(X)
for path in sorted(folder.glob("*.ubj")):
    print(path.name, flush=True)
    try:
        ensemble = TreeEnsemble.of(path.read_bytes(), 3)
        scores = ensemble.scores(matrix)
        ensemble.contributions(matrix)
        ours = TreeScorer(path.read_bytes(), 3).scores(X, 1)
        if isinstance(X, np.ndarray):  # XGBoost would number categories anew, by broken names
            np.testing.assert_array_equal(ours, scores)
    except ValueError:  # XGBoost refuses in its turn
        continue
print("done", flush=True)
"""


def load_elsewhere(folder, X):
    (folder / "X.pickle").write_bytes(pickle.dumps(X))
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOADER, folder],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )


def leaves_of(value, path=()):
    """Paths to everything in a document that can be changed."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from leaves_of(item, (*path, key))
    if not isinstance(value, dict):
        yield path


def mutant(raw, random):
    """A model with one value or one to three bytes changed."""
    if random.random() < 0.4:
        altered = bytearray(raw)
        for place in random.integers(len(raw), size=random.integers(1, 4)):
            altered[place] = random.integers(256)
        return bytes(altered)
    model = ubjson.decode(raw)
    paths = list(leaves_of(model))
    *way, last = paths[random.integers(len(paths))]
    parent = model
    for key in way:
        parent = parent[key]
    parent[last] = odd(parent[last], random)
    return ubjson.encode(model)


def odd(value, random):
    number = ODD_NUMBERS[random.integers(len(ODD_NUMBERS))]
    if isinstance(value, np.ndarray) and len(value) and random.random() < 0.7:
        altered = value.copy()
        altered[random.integers(len(value))] = np.array(number).astype(value.dtype)
        return altered
    if isinstance(value, np.ndarray):
        value = value if random.random() < 0.5 else value.tolist()
    if isinstance(value, np.ndarray | list):
        cut = random.integers(len(value) + 1)
        return value[:cut]
    if isinstance(value, str):
        return str(number) if random.random() < 0.5 else random.choice(ODD_TEXTS).item()
    return number


@pytest.mark.parametrize("kind", ["numbers", "categories"])
def test_accepted_mutants_do_not_crash_xgboost(tmp_path, kind):
    X = KINDS[kind][0]()
    random, made, refused = np.random.default_rng(0), 0, 0
    raw = tree_format.first_rounds(joined(kind), 2)
    while made < MUTANTS:
        changed_model = mutant(raw, random)
        try:
            check(changed_model, kind)
        except ValueError:
            refused += 1
            continue
        (tmp_path / f"{made:03}.ubj").write_bytes(changed_model)
        made += 1
    found = load_elsewhere(tmp_path, X)
    assert found.returncode == 0, f"XGBoost died of {found.stdout.split()[-1]}: {found.stderr}"
    assert found.stdout.split()[-1] == "done"
    assert refused > MUTANTS / 4, "the mutations are too weak"


def test_without_the_check_xgboost_crashes(tmp_path):
    """The companion: a model that `check` refuses ends the process that loads it."""
    broken = changed("numbers", *TREES, 1, "id", to=0)
    (tmp_path / "000.ubj").write_bytes(joined("numbers"))
    (tmp_path / "001.ubj").write_bytes(broken)
    found = load_elsewhere(tmp_path, numbers())
    assert found.returncode < 0, "the process was not ended by a signal"
    assert found.stdout.split() == ["000.ubj", "001.ubj"]
