"""What goes wrong on the first evening, and what is then said."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from crfx import GBCRF, LinearCRF, TreeCRF, load
from crfx.features import Template
from crfx.metrics import token_accuracy

X = [[{"w": "a", "b": 1.0}, {"w": "b"}], [{"w": "b"}, {"w": "c"}, {"w": "a"}]] * 4
Y = [["A", "B"], ["B", "A", "A"]] * 4
KINDS = [LinearCRF(max_iter=5), GBCRF(2, max_depth=2), TreeCRF(2, max_leaves=3)]


@pytest.mark.parametrize("crf", KINDS, ids=lambda crf: type(crf).__name__)
@pytest.mark.parametrize("one", [X[1], X[0][0], "abc", ["the cat", "sat"]], ids=str)
def test_one_sentence_is_not_many(crf, one):
    crf = clone(crf).fit(X, Y)
    for method in (crf.predict, crf.predict_marginals):
        with pytest.raises(ValueError, match="wrap a single instance in a list"):
            method(one)


def test_one_sentence_among_many_is_seen_too():
    with pytest.raises(ValueError, match="instance 1: X is one dict"):
        LinearCRF().fit([X[0], {"w": "a", "b": 1}], [Y[0], ["A", "B"]])


@pytest.mark.parametrize("crf", KINDS, ids=lambda crf: type(crf).__name__)
@pytest.mark.parametrize("judged", [([], []), ([[]], [[]]), (X[:1], [[None, None]])], ids=str)
def test_an_eval_set_that_cannot_judge_is_refused(crf, judged):
    with pytest.raises(ValueError, match="nothing to judge"):
        clone(crf).fit(X, Y, eval_set=judged)


@pytest.mark.parametrize("crf", KINDS, ids=lambda crf: type(crf).__name__)
def test_a_metric_that_is_no_number_is_refused(crf):
    crf = type(crf)(early_stopping_rounds=2, eval_metric=lambda true, predicted: np.nan)
    with pytest.raises(ValueError, match="eval_metric gave NaN"):
        crf.fit(X, Y, eval_set=(X, Y))


def test_features_of_which_none_is_known_are_worth_a_warning():
    template = Template("word[0]", ["word"])
    words = [["a", "b"], ["b", "c"]]
    crf = LinearCRF().fit(template(words), [["A", "B"], ["B", "A"]])
    with pytest.warns(UserWarning, match="none of the 4 features in X is known"):
        crf.predict(words)
    crf.predict(template(words))
    crf.predict([[]])


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ({}, {"edges": "linear"}, "edges is 'linear', but .* has 'table'"),
        ({"edges": None}, {"edges": "table"}, "edges is 'table', but .* has None"),
        ({"order": 2}, {"order": 1}, "order is 1, but .* has 2"),
        ({}, {"start_end": False}, "start_end is False, but .* has True"),
    ],
)
def test_partial_fit_of_another_model_is_refused(before, after, message):
    crf = LinearCRF("perceptron", random_state=0, **before).partial_fit(X, Y)
    crf.partial_fit(X, Y)
    with pytest.raises(ValueError, match=message):
        crf.set_params(**after).partial_fit(X, Y)


def test_descent_that_learns_nothing_says_so():
    years = [[{"year": 1999}, {"year": 2005}, {"b": 1}]] * 50
    with pytest.warns(ConvergenceWarning, match="nothing was learned"):
        LinearCRF("sgd", random_state=0).fit(years, [["A", "B", "A"]] * 50)


def test_history_is_there_after_no_iteration():
    crf = LinearCRF(max_iter=0).fit(X, Y)
    assert crf.history_ == {"objective": [], "seconds": []}


@pytest.mark.parametrize("name", ["feature_names_in_", "n_features_in_", "coef_", "transitions_"])
def test_before_fit_there_is_nothing_to_see(name):
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(LinearCRF(), name)


def test_templates_take_dicts_by_the_names_of_columns():
    template = Template("pos[0]", ["word", "pos"])
    rows = [{"pos": "b", "word": "a"}, {"word": "c", "pos": "d"}]
    assert template.features(rows) == [["pos[0]=b"], ["pos[0]=d"]]
    with pytest.raises(ValueError, match="instance 0, position 1: it has no column 'pos'"):
        template.features([rows[0], {"word": "c"}])


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("U00:%x[0,0]", ["word"], r"line 1: .* CRF\+\+"),
        ("lower(lower(word[0]))", ["word"], "not nested"),
        ("Lower(word[0])", ["word"], "lower, shape, kind"),
        ("word[0]", ["word", "word"], "'word' is there twice"),
    ],
)
def test_templates_that_are_written_otherwise(text, columns, message):
    with pytest.raises(ValueError, match=message):
        Template(text, columns)


def test_a_mark_of_byte_order_is_no_part_of_a_template():
    assert Template("\ufeffword[0]", ["word"]).features(["a"]) == [["word[0]=a"]]


def test_a_template_in_a_pipeline():
    template = Template("word[-1..0]", ["word"])
    words = [["a", "b"], ["b", "a"]] * 3
    pipe = make_pipeline(FunctionTransformer(template), LinearCRF(l2=0.01))
    assert [own.tolist() for own in pipe.fit(words, words).predict(words)] == words


def test_unknown_labels_do_not_count():
    assert token_accuracy([[None, "O"]], [["B-X", "O"]]) == 1.0


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder: name a file in it"):
        LinearCRF(max_iter=1).fit(X, Y).save(tmp_path)


@pytest.mark.parametrize("trainer", ["lbfgs", "sgd"])
def test_weights_may_lie_apart_in_memory(trainer):
    apart = np.ones(2 * len(X))[::2]
    LinearCRF(trainer, max_iter=2, sweeps=1, random_state=0).fit(X, Y, sample_weight=apart)


def test_trees_take_names_that_are_there_twice():
    twice = [[["a", "a", "b"], ["b", "b"]]] * 10
    crf = GBCRF(3, max_depth=2, min_child_weight=0).fit(twice, [["A", "B"]] * 10)
    assert crf.predict(twice)[0].tolist() == ["A", "B"]
    often = [[["a"] * 200, ["a"] * 300]] * 10  # more than a byte holds
    crf = GBCRF(3, max_depth=2, min_child_weight=0).fit(often, [["A", "B"]] * 10)
    assert crf.predict(often)[0].tolist() == ["A", "B"]


def test_coef_are_sparse_after_loading_where_they_were(tmp_path):
    crf = LinearCRF().fit([[["a", "b"], ["b"], ["a", "b"]]] * 3, [["A", "B", "B"]] * 3)
    crf.save(tmp_path / "model.crfx")
    loaded = load(tmp_path / "model.crfx")
    np.testing.assert_array_equal(loaded.coef_.toarray(), crf.coef_.toarray())
    dense = LinearCRF().fit([np.eye(2)], [["A", "B"]])
    dense.save(tmp_path / "dense.crfx")
    np.testing.assert_array_equal(load(tmp_path / "dense.crfx").coef_, dense.coef_)
