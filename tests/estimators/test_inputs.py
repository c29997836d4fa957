"""Inputs and outputs of estimators: containers, labels, padding, attributes, warnings."""

import warnings

import numpy as np
import pandas
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeRegressor

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, TreeCRF, load
from crfx.features import Template
from crfx.testing import make_task

X, Y = make_task()
FEW = {"n_estimators": 2, "max_depth": 2, "random_state": 0, "n_jobs": 1}
DICTS = [[{"w": "a", "b": 1.0}, {"w": "b"}], [{"w": "b"}, {"w": "c"}, {"w": "a"}]] * 4
TAGS = [["A", "B"], ["B", "A", "A"]] * 4
PARENTS = [np.arange(len(x)) - 1 for x in X]


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.fixture(scope="module")
def crf():
    return GBCRF(**FEW).fit(X, Y)


# Containers.


def as_objects(parts):
    array = np.empty(len(parts), dtype=object)
    array[:] = parts
    return array


def test_collections_of_instances_are_lists(crf):
    for kind in (tuple, as_objects, iter, pandas.Series):
        assert same(crf.predict(kind(X)), crf.predict(X)), kind


def test_instances_of_one_length_may_come_as_one_block(crf):
    block = np.zeros((5, 3, 4), np.float32)
    assert [len(labels) for labels in crf.predict(block)] == [3] * 5


def test_predict_of_no_instances_returns_nothing(crf):
    assert crf.predict([]) == []
    assert crf.predict_marginals([]) == []
    assert crf.sample([], 3) == []
    assert crf.predict_kbest([], 2) == []
    assert crf.predict(np.zeros((0, 4)), lengths=[]).shape == (0,)


def test_eval_set_may_be_in_a_list():
    in_list, alone = (GBCRF(**FEW).fit(X, Y, eval_set=eval_set) for eval_set in ([(X, Y)], (X, Y)))
    assert in_list.history_["eval_metric"] == alone.history_["eval_metric"]


@pytest.mark.parametrize("one", [DICTS[1], DICTS[0][0], "abc", ["the cat", "sat"]], ids=str)
def test_predict_rejects_one_instance_in_place_of_many(one):
    crf = LinearCRF(max_iter=5).fit(DICTS, TAGS)
    for method in (crf.predict, crf.predict_marginals):
        with pytest.raises(ValueError, match="wrap a single instance in a list"):
            method(one)


def test_sample_weight_may_be_noncontiguous():
    apart = np.ones(2 * len(DICTS))[::2]
    for trainer in ("lbfgs", "sgd"):
        crf = LinearCRF(trainer, max_iter=2, sweeps=1, random_state=0)
        crf.fit(DICTS, TAGS, sample_weight=apart)


def test_trees_take_duplicate_feature_names():
    twice = [[["a", "a", "b"], ["b", "b"]]] * 10
    crf = GBCRF(3, max_depth=2, min_child_weight=0).fit(twice, [["A", "B"]] * 10)
    assert crf.predict(twice)[0].tolist() == ["A", "B"]
    often = [[["a"] * 200, ["a"] * 300]] * 10  # more than a byte holds
    crf = GBCRF(3, max_depth=2, min_child_weight=0).fit(often, [["A", "B"]] * 10)
    assert crf.predict(often)[0].tolist() == ["A", "B"]


def test_trees_never_use_all_missing_feature(crf):
    wide = [np.column_stack([x, np.full(len(x), np.nan, np.float32)]) for x in X]
    holed = GBCRF(**FEW).fit(wide, Y)
    assert same(holed.predict_marginals(wide), crf.predict_marginals(X))
    assert "f4" not in holed.feature_importance()


# Labels.


def test_none_and_nan_labels_are_unknown():
    weights = [0.5] * len(X)
    results = []
    for missing in (None, float("nan"), np.nan, pandas.NA):
        holes = [[missing if i % 3 == 1 else label for i, label in enumerate(y)] for y in Y]
        crf = GBCRF(**FEW).fit(X, holes, sample_weight=weights)
        assert crf.classes_.tolist() == ["L0", "L1", "L2"]
        results.append(crf.predict_marginals(X))
    assert all(same(results[0], other) for other in results[1:])


def test_numpy_numbers_are_valid_labels(tmp_path):
    """A model with such labels can be saved."""
    numbers = [[np.int64(label[1]) for label in y] for y in Y]
    crf = GBCRF(**FEW, eval_metric="token_accuracy").fit(X, numbers)
    assert crf.classes_.dtype == np.int64
    crf.save(tmp_path / "m.crfx")


def test_labels_may_be_tuples():
    pairs = [[("L", int(label[1])) for label in y] for y in Y]
    crf = GBCRF(**FEW).fit(X, pairs)
    assert crf.score(X, pairs) == GBCRF(**FEW).fit(X, Y).score(X, Y)


# Structure.


@pytest.mark.parametrize(
    ("edges", "order"), [("table", 2), ("linear", 1), ("linear", 2), ("trees", 1), (None, 1)]
)
def test_instances_of_one_position(edges, order):
    """There are no edges to learn from."""
    short = [x[:1] for x in X], [y[:1] for y in Y]
    crf = GBCRF(**FEW, edges=edges, order=order).fit(*short)
    assert crf.score(*short) > 0.5
    assert np.isfinite(np.concatenate(crf.predict_marginals(X))).all()


def test_an_edge_type_may_never_occur():
    types = [np.where(np.arange(len(x)) % 2, 2, 0) for x in X]
    for edges in ("table", "linear", "trees"):
        crf = GBCRF(**FEW, edges=edges).fit(X, Y, edge_types=types)
        assert crf.model_.n_types == 3
        assert crf.score(X, Y, edge_types=types) > 0.5, edges


def test_parents_require_edges():
    with pytest.raises(ValueError, match="trained on forests: pass parents"):
        GBCRF(**FEW).fit(X, Y, parents=PARENTS, eval_set=(X, Y))
    alone = GBCRF(**FEW, edges=None).fit(X, Y, parents=PARENTS)
    assert same(alone.predict(X), alone.predict(X, parents=PARENTS))


def test_edge_trees_ignore_rows_without_edges():
    crf = GBCRF(**FEW, edges="trees", subsample=1e-9).fit(X, Y)
    learned = GBCRF(**FEW, edges="trees").fit(X, Y)
    for model, expected in ((crf, False), (learned, True)):
        assert model.model_.edge_functions[0].scores(X[0], len(X[0])).any() == expected


# Padding: an array is learned from, padding and all; training says so, and only then.


LENGTHS = (5, 3, 4)
BLOCK = np.random.default_rng(0).normal(size=(3, 5, 2))
BLOCK_LABELS = [["a", "b", "a", "b", "a"]] * 3


def padded(value=0.0, label="a"):
    inputs, labels = BLOCK.copy(), [list(tags) for tags in BLOCK_LABELS]
    for x, tags, length in zip(inputs, labels, LENGTHS, strict=True):
        x[length:] = value
        tags[length:] = [label] * (5 - length)
    return inputs, labels


@pytest.mark.parametrize(
    "crf", [GBCRF(1), TreeCRF(1), LinearCRF("sgd"), HiddenUnitCRF(2, sweeps=1)], ids=str
)
def test_fit_warns_of_padding(crf):
    message = "1 of its 3 .* all {}, with the label '{}': .*cut it"
    for value, label in ((0.0, "a"), (-1.0, "b"), (np.nan, "b")):
        if not np.isnan(value) or isinstance(crf, GBCRF):
            with pytest.warns(UserWarning, match=message.format(value, label)):
                crf.fit(*padded(value, label))


def two_labels():
    inputs, labels = padded()
    labels[1][3:] = ["a", "b"]
    return inputs, labels


def test_fit_does_not_warn_without_padding():
    inputs, labels = padded()
    quiet = {
        "data": (BLOCK, BLOCK_LABELS),
        "a list": (list(inputs), labels),
        "one row": (inputs[[0, 2]], BLOCK_LABELS[:2]),
        "two labels": two_labels(),
        "unknown labels": padded(label=None),
        "one feature": (inputs[:, :, :1], labels),
    }
    for name, arguments in quiet.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            warnings.filterwarnings("ignore", "L-BFGS stopped at max_iter")
            LinearCRF(max_iter=1).fit(*arguments)
        assert not caught, name


# Fitted estimators.


def test_failed_first_round_changes_nothing():
    crf = GBCRF(**FEW).fit(X, Y)
    before = crf.predict_marginals(X)
    crf.set_params(tree_params={"max_delta_step": "never"})
    with pytest.raises(ValueError, match="XGBoost"):
        crf.fit(X, Y)
    assert same(crf.predict_marginals(X), before)


def test_feature_importances_are_shares_of_the_gain(crf):
    shares = crf.feature_importances_
    assert shares.shape == (4,)
    np.testing.assert_allclose(shares.sum(), 1.0)
    gains = crf.feature_importance()
    np.testing.assert_allclose(shares[0] / shares[1], gains["f0"] / gains["f1"])
    with pytest.raises(ValueError, match="kind is 'split': choose one of 'total_gain'"):
        crf.feature_importance("split")
    with pytest.raises(ValueError, match="the model has 2 rounds"):
        crf.predict_contributions(X, n_rounds=3)


def test_models_without_trees_have_no_feature_importances():
    for crf in (GBCRF(2, base_learner=DecisionTreeRegressor()), GBCRF(0)):
        fitted = crf.fit(X, Y)
        assert not hasattr(fitted, "feature_importances_")
    with pytest.raises(AttributeError, match="the model has no rounds"):
        _ = fitted.feature_importances_


def test_draws_without_a_seed_differ(crf):
    assert not same(crf.sample(X, 20, random_state=None), crf.sample(X, 20, random_state=None))
    assert same(crf.sample(X, 5), crf.sample(X, 5))


def test_threads_may_change_after_loading(crf, tmp_path):
    crf.save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx").set_params(n_jobs=2)
    assert same(again.predict_marginals(X), crf.predict_marginals(X))
    assert again.model_.node.learner.n_jobs == 2


def test_attributes_raise_before_fit():
    for name in ("feature_names_in_", "n_features_in_", "coef_", "transitions_"):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(LinearCRF(), name)


def test_history_is_there_after_no_iteration():
    crf = LinearCRF(max_iter=0).fit(DICTS, TAGS)
    assert crf.history_ == {"objective": [], "seconds": []}


def test_fit_warns_if_descent_learns_nothing():
    years = [[{"year": 1999}, {"year": 2005}, {"b": 1}]] * 50
    with pytest.warns(ConvergenceWarning, match="nothing was learned"):
        LinearCRF("sgd", random_state=0).fit(years, [["A", "B", "A"]] * 50)


def test_predict_warns_if_no_feature_is_known():
    template = Template("word[0]", ["word"])
    words = [["a", "b"], ["b", "c"]]
    crf = LinearCRF().fit(template(words), [["A", "B"], ["B", "A"]])
    with pytest.warns(UserWarning, match="none of the 4 features in X is known"):
        crf.predict(words)
    crf.predict(template(words))
    crf.predict([[]])


def test_loaded_coef_keeps_sparsity(tmp_path):
    crf = LinearCRF().fit([[["a", "b"], ["b"], ["a", "b"]]] * 3, [["A", "B", "B"]] * 3)
    crf.save(tmp_path / "model.crfx")
    loaded = load(tmp_path / "model.crfx")
    np.testing.assert_array_equal(loaded.coef_.toarray(), crf.coef_.toarray())
    dense = LinearCRF().fit([np.eye(2)], [["A", "B"]])
    dense.save(tmp_path / "dense.crfx")
    np.testing.assert_array_equal(load(tmp_path / "dense.crfx").coef_, dense.coef_)


def test_template_works_in_a_pipeline():
    template = Template("word[-1..0]", ["word"])
    words = [["a", "b"], ["b", "a"]] * 3
    pipe = make_pipeline(FunctionTransformer(template), LinearCRF(l2=0.01))
    assert [labels.tolist() for labels in pipe.fit(words, words).predict(words)] == words


# Templates.


def test_templates_take_dicts_by_the_names_of_columns():
    template = Template("pos[0]", ["word", "pos"])
    rows = [{"pos": "b", "word": "a"}, {"word": "c", "pos": "d"}]
    assert template.features(rows) == [["pos[0]=b"], ["pos[0]=d"]]
    with pytest.raises(ValueError, match="instance 0, position 1: it has no column 'pos'"):
        template.features([rows[0], {"word": "c"}])


def test_templates_skip_a_byte_order_mark():
    assert Template("\ufeffword[0]", ["word"]).features(["a"]) == [["word[0]=a"]]


def test_templates_reject_texts_in_other_languages(not_refused):
    cases = {
        "CRF++": (("U00:%x[0,0]", ["word"]), r"line 1: .* CRF\+\+"),
        "nested": (("lower(lower(word[0]))", ["word"]), "not nested"),
        "upper case": (("Lower(word[0])", ["word"]), "lower, shape, kind"),
        "twice": (("word[0]", ["word", "word"]), "'word' is there twice"),
    }
    assert not_refused(lambda arguments: Template(*arguments), cases) == {}
