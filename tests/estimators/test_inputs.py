"""What users pass: containers, labels, structure; and what mistakes are told."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor

from crfx import GBCRF, Checkpoint
from crfx.testing import make_task

X, Y = make_task()
FEW = {"n_estimators": 2, "max_depth": 2, "random_state": 0, "n_jobs": 1}


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.fixture(scope="module")
def crf():
    return GBCRF(**FEW).fit(X, Y)


def as_objects(parts):
    array = np.empty(len(parts), dtype=object)
    array[:] = parts
    return array


@pytest.mark.parametrize("kind", [tuple, as_objects, iter])
def test_collections_of_instances_are_lists(crf, kind):
    assert same(crf.predict(kind(X)), crf.predict(X))


def test_instances_of_one_length_may_come_as_one_block(crf):
    block = np.zeros((5, 3, 4), np.float32)
    assert [len(own) for own in crf.predict(block)] == [3] * 5


def test_a_series_of_instances_is_a_list(crf):
    pandas = pytest.importorskip("pandas")
    assert same(crf.predict(pandas.Series(X)), crf.predict(X))


def test_nothing_gives_nothing(crf):
    assert crf.predict([]) == []
    assert crf.predict_marginals([]) == []
    assert crf.sample([], 3) == []
    assert crf.predict_kbest([], 2) == []
    assert crf.predict(np.zeros((0, 4)), lengths=[]).shape == (0,)


def test_missing_labels_of_every_kind_are_unknown():
    pandas = pytest.importorskip("pandas")
    weights = [0.5] * len(X)
    found = []
    for missing in (None, float("nan"), np.nan, pandas.NA):
        holes = [[missing if i % 3 == 1 else label for i, label in enumerate(y)] for y in Y]
        crf = GBCRF(**FEW).fit(X, holes, sample_weight=weights)
        assert crf.classes_.tolist() == ["L0", "L1", "L2"]
        found.append(crf.predict_marginals(X))
    assert all(same(found[0], other) for other in found[1:])


def test_numbers_of_numpy_are_labels_like_others(tmp_path):
    """And a model of them can be saved."""
    numbers = [[np.int64(label[1]) for label in y] for y in Y]
    crf = GBCRF(**FEW, eval_metric="token_accuracy").fit(X, numbers)
    assert crf.classes_.dtype == np.int64
    crf.save(tmp_path / "m.crfx")


def test_labels_may_be_tuples():
    pairs = [[("L", int(label[1])) for label in y] for y in Y]
    crf = GBCRF(**FEW).fit(X, pairs)
    assert crf.score(X, pairs) == GBCRF(**FEW).fit(X, Y).score(X, Y)


def test_a_label_the_model_does_not_know_is_never_right(crf):
    with pytest.warns(UserWarning, match="'new' .*; they count as wrong"):
        assert crf.score(X, [["new"] * len(y) for y in Y]) == 0.0


PARENTS = [np.arange(len(x)) - 1 for x in X]
TYPES = [np.zeros(len(x), int) for x in X]
LONG = next(i for i in range(len(X) - 1) if len(X[i]) != len(X[i + 1]))
SWAPPED = [*TYPES[:LONG], TYPES[LONG + 1], TYPES[LONG], *TYPES[LONG + 2 :]]

MISTAKES = {
    "flat labels": (
        {"y": [label for y in Y for label in y]},
        "one list of labels for every instance",
    ),
    "labels that are lists": ({"y": [[[1, 0]] * len(y) for y in Y]}, r"y holds \[1, 0\]"),
    "no labels": ({"y": None}, "y is missing"),
    "an unwrapped instance": ({"X": [{"a": 1}] * len(X)}, "wrap a single instance in a list"),
    "an empty dict everywhere": ({"X": [[{}] * len(x) for x in X]}, "X has no features"),
    "one matrix": ({"X": X[0], "y": Y[0]}, r"\[X\] for a single one"),
    "no features": ({"X": [x[:, :0] for x in X]}, "X has no features"),
    "too large": ({"X": [x.astype(float) + 1e300 for x in X]}, "too large for float32"),
    "types of another length": (
        {"edge_types": SWAPPED},
        f"instance {LONG}: edge_types has {len(X[LONG + 1])} entries, X has {len(X[LONG])} rows",
    ),
    "parents of too few": ({"parents": PARENTS[1:]}, "parents has 29 instances but X has 30"),
    "weights by position": ({"sample_weight": [[1.0] * len(x) for x in X]}, "per instance"),
    "one callback": ({"callbacks": print}, r"pass a list, \[callback\]"),
    "a base that is none": ({"init_model": object()}, "init_model is a object"),
    "two eval sets": ({"eval_set": [(X, Y), (X, Y)]}, "eval_set has 2 sets"),
    "eval set without labels": ({"eval_set": {"X": X}}, "eval_set has no y"),
    "eval set with another key": ({"eval_set": {"X": X, "Y": Y}}, "eval_set has 'Y'"),
    "eval set that is none": ({"eval_set": X}, "not a pair"),
    "mixed": ({"X": [sparse.csr_matrix(X[0]), *X[1:]]}, "instance 1: X is dense"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told(name):
    changes, message = MISTAKES[name]
    with pytest.raises(ValueError, match=message):
        GBCRF(**FEW).fit(**{"X": X, "y": Y, **changes})


def test_an_eval_set_as_xgboost_has_it():
    one = GBCRF(**FEW).fit(X, Y, eval_set=[(X, Y)])
    assert (
        one.history_["eval_metric"]
        == GBCRF(**FEW).fit(X, Y, eval_set=(X, Y)).history_["eval_metric"]
    )


@pytest.mark.parametrize("mistake", [{"sample_weight": [-1.0] * 30}, {"eval_set": (X, [])}])
def test_a_fit_that_fails_changes_nothing(mistake):
    crf = GBCRF(**FEW).fit(X, Y)
    before = crf.predict_marginals(X)
    with pytest.raises(ValueError, match=r"weight|eval_set|instances"):
        crf.fit(X, Y, **mistake)
    assert crf.n_rounds_ == 2
    assert same(crf.predict_marginals(X), before)
    new = GBCRF(**FEW)
    with pytest.raises(ValueError, match=r"weight|eval_set|instances"):
        new.fit(X, Y, **mistake)
    assert not hasattr(new, "classes_")


def test_a_fit_that_fails_in_its_first_round_changes_nothing():
    crf = GBCRF(**FEW).fit(X, Y)
    before = crf.predict_marginals(X)
    crf.set_params(tree_params={"max_delta_step": "never"})
    with pytest.raises(ValueError, match="XGBoost"):
        crf.fit(X, Y)
    assert same(crf.predict_marginals(X), before)


@pytest.mark.parametrize("edges", ["table", "linear", "trees", None])
@pytest.mark.parametrize("order", [1, 2])
def test_instances_of_one_position(edges, order):
    """There are no edges to learn from."""
    short = [x[:1] for x in X], [y[:1] for y in Y]
    crf = GBCRF(**FEW, edges=edges, order=order).fit(*short)
    assert crf.score(*short) > 0.5
    assert np.isfinite(np.concatenate(crf.predict_marginals(X))).all()


@pytest.mark.parametrize("edges", ["table", "linear", "trees"])
def test_an_edge_type_may_never_occur(edges):
    types = [np.where(np.arange(len(x)) % 2, 2, 0) for x in X]
    crf = GBCRF(**FEW, edges=edges).fit(X, Y, edge_types=types)
    assert crf.model_.n_types == 3
    assert crf.score(X, Y, edge_types=types) > 0.5


def test_a_model_of_forests_wants_parents(crf):
    forest = GBCRF(**FEW).fit(X, Y, parents=PARENTS)
    with pytest.raises(ValueError, match="trained on forests: pass parents"):
        forest.predict(X)
    with pytest.raises(ValueError, match="trained on forests: pass parents"):
        GBCRF(**FEW).fit(X, Y, parents=PARENTS, eval_set=(X, Y))
    with pytest.raises(ValueError, match="trained on chains"):
        crf.predict(X, parents=PARENTS)
    alone = GBCRF(**FEW, edges=None).fit(X, Y, parents=PARENTS)
    assert same(alone.predict(X), alone.predict(X, parents=PARENTS))


def test_rows_that_are_left_out_teach_edge_trees_nothing():
    crf = GBCRF(**FEW, edges="trees", subsample=1e-9).fit(X, Y)
    learned = GBCRF(**FEW, edges="trees").fit(X, Y)
    for model, expected in ((crf, False), (learned, True)):
        assert model.model_.edge_functions[0].scores(X[0], len(X[0])).any() == expected


def test_a_checkpoint_is_checked_before_training(tmp_path):
    with pytest.raises(ValueError, match="every is 0"):
        Checkpoint(tmp_path / "m.crfx", every=0)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        Checkpoint(tmp_path / "nowhere" / "m.crfx")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        GBCRF(**FEW).fit(X, Y).save(tmp_path / "nowhere" / "m.crfx")


def test_a_feature_that_is_all_missing_is_never_used(crf):
    wide = [np.column_stack([x, np.full(len(x), np.nan, np.float32)]) for x in X]
    holed = GBCRF(**FEW).fit(wide, Y)
    assert same(holed.predict_marginals(wide), crf.predict_marginals(X))
    assert "f4" not in holed.feature_importance()


def test_shares_of_importance(crf):
    shares = crf.feature_importances_
    assert shares.shape == (4,)
    np.testing.assert_allclose(shares.sum(), 1.0)
    gains = crf.feature_importance()
    np.testing.assert_allclose(shares[0] / shares[1], gains["f0"] / gains["f1"])
    with pytest.raises(ValueError, match="kind is 'split': choose one of 'total_gain'"):
        crf.feature_importance("split")
    with pytest.raises(ValueError, match="the model has 2 rounds"):
        crf.predict_contributions(X, n_rounds=3)


def test_no_trees_have_no_shares():
    for own in (GBCRF(2, base_learner=DecisionTreeRegressor()), GBCRF(0)):
        fitted = own.fit(X, Y)
        assert not hasattr(fitted, "feature_importances_")
    with pytest.raises(AttributeError, match="the model has no rounds"):
        _ = fitted.feature_importances_


def test_draws_without_a_seed_differ(crf):
    assert not same(crf.sample(X, 20, random_state=None), crf.sample(X, 20, random_state=None))
    assert same(crf.sample(X, 5), crf.sample(X, 5))


def test_threads_may_change_after_loading(crf, tmp_path):
    from crfx import load

    crf.save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx").set_params(n_jobs=2)
    assert same(again.predict_marginals(X), crf.predict_marginals(X))
    assert again.model_.node.learner.n_jobs == 2
