"""Joined and cut models predict what their rounds do; only sound ones get past `check`."""

import functools
import os
import pickle
import random
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from crfx.potentials import tree_format, ubjson
from crfx.potentials.xgboost_learner import TreeEnsemble, XGBoostLearner
from tests.potentials.grown_trees import (
    KINDS,
    KNOWN,
    N_FEATURES,
    N_ROWS,
    STEPS,
    frame,
    grown,
    joined,
    n_outputs,
    trees_of,
)

NUMBERS_OF_FEATURES = {"sparse": 500}
CATEGORICAL = [kind for kind, (make, *_) in KINDS.items() if make is frame]
FUZZ = Path(__file__).parents[1] / "fuzz"
MUTANTS = 200
MOST_SECONDS = 200


def check(raw, kind, n_categories=None):
    n_features = NUMBERS_OF_FEATURES.get(kind, N_FEATURES)
    shape = {"n_features": n_features, "n_outputs": n_outputs(kind)}
    tree_format.check(raw, **shape, n_categories=n_categories)


def raws_of(kind):
    return [trees.raw() for trees in grown(kind)[2]]


def running_sum(kind, n_rounds=None):
    """Return the sum of the rounds' scores as a trainer adds them: in float32 and in this order."""
    X, learner, rounds = grown(kind)
    matrix = learner.matrix(X)
    total = np.zeros((N_ROWS, n_outputs(kind)), dtype=np.float32)
    for trees, step in zip(rounds[:n_rounds], STEPS, strict=False):
        total += np.float32(step) * trees.scores(matrix)
    return total


def predicted(raw, kind, n_rounds=None):
    check(raw, kind)  # else XGBoost may end the process
    X, learner, _ = grown(kind)
    return TreeEnsemble.of(raw, n_outputs(kind)).scores(learner.matrix(X), n_rounds)


# Joining and cutting.


@pytest.mark.parametrize("kind", KINDS)
def test_joined_rounds_predict_the_running_sum(kind):
    """Bit by bit: else a run that is continued would differ from one that was not interrupted."""
    expected = running_sum(kind)
    assert predicted(joined(kind), kind).tobytes() == expected.tobytes()
    assert np.ptp(expected) > 0 or kind == "leaves only"
    n_categories = KNOWN if kind in CATEGORICAL else {}
    check(joined(kind), kind, n_categories)
    for raw in raws_of(kind):
        check(raw, kind)
        check(raw, kind, n_categories)


def test_running_sum_in_another_order_has_other_bits():
    """The companion: comparing bits can fail by rounding alone."""
    X, learner, rounds = grown("numbers")
    total = np.zeros((N_ROWS, 3), dtype=np.float32)
    for trees, step in reversed(list(zip(rounds, STEPS, strict=True))):
        total += np.float32(step) * trees.scores(learner.matrix(X))
    np.testing.assert_allclose(total, running_sum("numbers"), rtol=1e-4, atol=1e-5)
    assert total.tobytes() != running_sum("numbers").tobytes()


@pytest.mark.parametrize(
    ("kind", "cut"), [("numbers", 1), ("one output", 3), ("categories", len(STEPS) - 1)]
)
def test_join_in_two_stages_gives_the_same_bytes(kind, cut):
    raws = raws_of(kind)
    first = tree_format.join(raws[:cut], STEPS[:cut])
    assert tree_format.join([first, *raws[cut:]], [1.0, *STEPS[cut:]]) == joined(kind)
    rest = tree_format.join(raws[cut:], STEPS[cut:])
    assert tree_format.join([first, rest], [1.0, 1.0]) == joined(kind)
    assert tree_format.first_rounds(joined(kind), cut) == first
    alone = tree_format.join(raws[:1], [1.0])  # changes nothing
    assert predicted(alone, kind).tobytes() == predicted(raws[0], kind).tobytes()
    with pytest.raises(ValueError, match="shorter"):
        tree_format.join(raws, STEPS[:-1])


@pytest.mark.parametrize("kind", KINDS)
def test_first_rounds_predict_as_a_range_of_rounds_does(kind):
    for n_rounds in (1, 3, len(STEPS)):
        cut = tree_format.first_rounds(joined(kind), n_rounds)
        scores = predicted(cut, kind)
        assert scores.tobytes() == predicted(joined(kind), kind, n_rounds).tobytes()
        assert scores.tobytes() == running_sum(kind, n_rounds).tobytes()
        assert tree_format.n_rounds(cut) == n_rounds
    none = tree_format.first_rounds(joined(kind), 0)
    assert tree_format.n_rounds(none) == 0
    np.testing.assert_array_equal(predicted(none, kind), 0)


def test_join_rejects_rounds_grown_on_other_categories():
    """A tree knows categories by number: those of the first round would be read into all."""
    learner, raws = XGBoostLearner(), []
    for letters in ("ab", "ba"):
        column = pd.Categorical(list("abab"), categories=list(letters))
        matrix = learner.training_matrix(pd.DataFrame({"letter": column}))
        gradient = np.array([[1], [-1], [1], [-1]], dtype=np.float32)
        raws.append(learner.grow(matrix, gradient, np.ones_like(gradient), 0).raw())
    if "cats" not in trees_of(raws[0]):
        pytest.skip("XGBoost before 3.1 does not write the categories into its models")
    with pytest.raises(ValueError, match="different categories"):
        tree_format.join(raws, [1.0, 1.0])


# What `check` rejects.


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
MODEL = (*BOOSTER, "model")
TREES = (*MODEL, "trees")
PARAM = ("learner", "learner_model_param")
BROKEN = [
    ((*TREES, 0, "left_children"), {"at_0": 10_000}, "do not form a tree"),
    ((*TREES, 0, "right_children"), {"at_0": 2**31 - 1}, "do not form a tree"),
    ((*TREES, 0, "left_children"), {"at_0": 0}, "do not form a tree"),
    ((*TREES, 0, "left_children"), {"at_0": 2}, "do not form a tree"),
    ((*TREES, 0, "left_children"), {"at_0": -1}, "do not form a tree"),
    ((*TREES, 0, "left_children"), {"at_0": -3}, "do not form a tree"),
    ((*TREES, 0, "right_children"), {"at_-1": 1}, "do not form a tree"),
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
    (PARAM, {"num_feature": "5"}, "num_feature is 5, not 6"),
    (PARAM, {"num_class": "2"}, "num_class is 2, not 3"),
    (PARAM, {"num_target": "16777216"}, "num_target"),
    (PARAM, {"base_score": "[5E-1]"}, "base_score"),
    (PARAM, {"base_score": "[0E0,0E0]"}, "base_score"),
    (BOOSTER, {"name": "dart"}, "dart"),
    (("learner", "objective"), {"name": "rank:ndcg"}, "rank:ndcg"),
    ((*MODEL, "tree_info"), {"at_0": 3}, "belongs to no output"),
    ((*MODEL, "tree_info"), {"at_0": -1}, "belongs to no output"),
    ((*MODEL, "tree_info"), {"to": [0]}, "number of trees"),
    ((*MODEL, "gbtree_model_param"), {"num_trees": "1"}, "number of trees"),
    ((*MODEL, "iteration_indptr"), {"at_1": 100}, "bounds of the rounds"),
    ((*MODEL, "iteration_indptr"), {"at_0": 1}, "bounds of the rounds"),
    ((*MODEL, "iteration_indptr"), {"at_-1": 100}, "bounds of the rounds"),
    ((*MODEL, "iteration_indptr"), {"to": []}, "not in XGBoost's format"),
    (MODEL, {"to": {}}, "not in XGBoost's format"),
    ((*MODEL, "gbtree_model_param"), {"num_parallel_tree": "0"}, "has no trees"),
    ((*MODEL, "gbtree_model_param"), {"num_parallel_tree": 1}, "a number belongs"),
    ((*TREES, 0, "split_conditions"), {"at_-1": np.nan}, "leaves are not all finite"),
    ((*TREES, 0, "split_conditions"), {"at_0": np.nan}, "a node has no threshold"),
    ((*TREES, 0, "base_weights"), {"at_0": np.inf}, "leaves are not all finite"),
    ((*TREES, 0, "loss_changes"), {"at_0": np.nan}, "gains or covers"),
    ((*TREES, 0, "sum_hessian"), {"at_0": np.nan}, "gains or covers"),
    (("learner", "feature_names"), {"to": ["a"]}, "feature_names are not those of 6"),
    (("learner", "feature_types"), {"to": [*range(6)]}, "feature_types are not those of 6"),
]


def test_check_rejects_broken_models():
    left = trees_of(joined("numbers"))["trees"][0]["left_children"]
    check(changed("numbers", *TREES, 0, "left_children", at_0=left[0]), "numbers")  # unchanged
    for path, entries, message in BROKEN:
        with pytest.raises(ValueError, match=message):
            check(changed("numbers", *path, **entries), "numbers")
    raw = joined("numbers")
    for n_features, outputs in ((5, 3), (7, 3), (6, 2), (6, 4), (6, 1)):
        with pytest.raises(ValueError, match=r"num_feature is 6|num_class is 3"):
            tree_format.check(raw, n_features=n_features, n_outputs=outputs)
    with pytest.raises(ValueError, match="num_class is 0, not 3"):
        tree_format.check(joined("one output"), n_features=6, n_outputs=3)
    key = b"L" + (7).to_bytes(8, "big") + b"learner"
    assert raw.count(key) == 1  # were it there twice, XGBoost and we might each believe another
    with pytest.raises(ValueError, match="'learner' is there twice"):
        check(raw[:1] + key + b"{}" + raw[1:], "numbers")


def test_check_rejects_arrays_of_other_lengths_and_types():
    trees = trees_of(joined("numbers"))["trees"]
    names = "left_children right_children parents split_indices split_type default_left"
    for name in (names + " split_conditions base_weights loss_changes sum_hessian").split():
        whole = trees[1][name]
        for wrong in (whole[:-1], np.append(whole, whole[:1]), whole[:0]):
            with pytest.raises(ValueError, match="tree 1: arrays of unequal length"):
                check(changed("numbers", *TREES, 1, name, to=wrong), "numbers")
    for name, dtype, message in (
        ("left_children", np.float64, "where whole numbers belong"),  # NaN is above no bound
        ("split_indices", np.float64, "where whole numbers belong"),
        # XGBoost rejects these too, but not before it is asked to predict.
        ("split_conditions", np.int32, "whole numbers where others belong"),
        ("sum_hessian", np.int32, "whole numbers where others belong"),
    ):
        wrong = trees[0][name].astype(dtype)
        with pytest.raises(ValueError, match=message):
            check(changed("numbers", *TREES, 0, name, to=wrong), "numbers")


def test_check_rejects_a_cycle():
    """Two subtrees that hang on one another, each node once: only the order tells."""
    tree = trees_of(joined("numbers"))["trees"][0]
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
    broken = tree | {"left_children": left, "right_children": right}
    with pytest.raises(ValueError, match="a child comes before its parent"):
        check(changed("numbers", *TREES, 0, to=broken), "numbers")


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
    trees = trees_of(joined("categories"))["trees"]
    return next(n for n, tree in enumerate(trees) if len(tree["categories_nodes"]) >= 2)


def test_check_rejects_broken_categories():
    path = (*TREES, categorical_tree())
    for name, entries, message in CATEGORIES:
        with pytest.raises(ValueError, match=message):
            check(changed("categories", *path, name, **entries), "categories")
    # XGBoost reads them in the order of the nodes, and would leave a split without any.
    nodes = trees_of(joined("categories"))["trees"][categorical_tree()]["categories_nodes"]
    with pytest.raises(ValueError, match="belong to no node"):
        check(changed("categories", *path, "categories_nodes", to=nodes[::-1].copy()), "categories")


def sets_of(kind):
    """(feature, categories) of every split that asks for categories."""
    for tree in trees_of(joined(kind))["trees"]:
        nodes, ends = tree["categories_nodes"], np.cumsum(tree["categories_sizes"])
        for node, categories in zip(nodes, np.split(tree["categories"], ends)[:-1], strict=True):
            yield int(tree["split_indices"][node]), categories.tolist()


def test_check_rejects_unknown_categories():
    """XGBoost makes room for all up to the largest: a small file would take a gigabyte."""
    features = {feature for feature, _ in sets_of("categories")}
    assert features == {1, 2}
    for feature in features:
        largest = max(max(sets) for asked, sets in sets_of("categories") if asked == feature)
        check(joined("categories"), "categories", KNOWN | {feature: largest + 1})
        message = rf"asks for category {largest} of feature {feature}, which has "
        with pytest.raises(ValueError, match=f"{message}{largest}$"):
            check(joined("categories"), "categories", KNOWN | {feature: largest})
        without = {other: count for other, count in KNOWN.items() if other != feature}
        with pytest.raises(ValueError, match=f"of feature {feature}, which has 0$"):
            check(joined("categories"), "categories", without)
        assert largest < KNOWN[feature]


@pytest.mark.parametrize("change", ["the same again", "a gap", "one that is left over"])
def test_check_rejects_unsorted_categories(change):
    """If every node could list all categories, reading would take nodes times categories."""
    path = (*TREES, categorical_tree())
    tree = trees_of(joined("categories"))["trees"][categorical_tree()]
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


def test_check_rejects_broken_names_of_categories():
    if "cats" not in trees_of(joined("categories")):
        pytest.skip("XGBoost before 3.1 does not write the categories into its models")
    for *path, entries in (
        ("sorted_idx", {"at_0": -2}),
        ("sorted_idx", {"at_0": 1}),
        ("sorted_idx", {"to": np.zeros(0, np.int32)}),
        ("feature_segments", {"at_1": 2**31 - 1}),
        ("feature_segments", {"at_0": 1}),
        ("feature_segments", {"to": np.zeros(2, np.int32)}),
        ("enc", {"to": []}),
        ("enc", 1, "offsets", {"at_1": 100}),
        ("enc", 1, "offsets", {"at_-1": 100}),
        ("enc", 1, "values", {"to": np.zeros(0, np.int8)}),
        ("enc", 2, "values", {"to": np.zeros(3, np.int64)}),
    ):
        with pytest.raises(ValueError, match="categories"):
            check(changed("categories", *MODEL, "cats", *path, **entries), "categories")


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


def with_other_bytes(raw, size):
    """Some bytes changed, as the fuzzer's own mutator does."""
    altered = bytearray(raw)
    for place in random.choices(range(len(raw)), k=random.randint(1, 3)):
        altered[place] = random.randrange(256)
    return bytes(altered[:size])


@pytest.fixture
def mutated(monkeypatch):
    """The mutations of the fuzzing harness."""
    monkeypatch.syspath_prepend(str(FUZZ))
    random.seed(0)
    yield runpy.run_path(str(FUZZ / "fuzz_trees.py"))["mutated"]
    for name in ("harness", "zips"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("kind", ["numbers", "categories"])
def test_accepted_mutants_do_not_crash_xgboost(tmp_path, mutated, kind):
    raw = bytes((N_FEATURES, 3)) + tree_format.first_rounds(joined(kind), 2)
    n_accepted = n_rejected = 0
    while n_accepted < MUTANTS:
        mutant = mutated(raw, 2 * len(raw), n_accepted + n_rejected, with_other_bytes)[2:]
        try:
            check(mutant, kind)
        except ValueError:
            n_rejected += 1
            continue
        (tmp_path / f"{n_accepted:03}.ubj").write_bytes(mutant)
        n_accepted += 1
    result = load_elsewhere(tmp_path, grown(kind)[0])
    assert result.returncode == 0, f"XGBoost died of {result.stdout.split()[-1]}: {result.stderr}"
    assert result.stdout.split()[-1] == "done"
    assert n_rejected > MUTANTS / 4, "the mutations are too weak"


def test_without_the_check_xgboost_crashes(tmp_path):
    """The companion: a model that `check` refuses ends the process that loads it."""
    broken = changed("numbers", *TREES, 1, "id", to=0)
    (tmp_path / "000.ubj").write_bytes(joined("numbers"))
    (tmp_path / "001.ubj").write_bytes(broken)
    result = load_elsewhere(tmp_path, grown("numbers")[0])
    assert result.returncode < 0, "the process was not ended by a signal"
    assert result.stdout.split() == ["000.ubj", "001.ubj"]
