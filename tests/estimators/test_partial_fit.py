"""LinearCRF trained further: warm starts, partial_fit, new features, new labels."""

from dataclasses import replace

import numpy as np
import pytest

from crfx import Checkpoint, LinearCRF, load
from crfx.estimators.session import start_of
from crfx.inputs.passed import Passed
from crfx.inputs.training_set import InputSettings, read_training_set
from crfx.model.flat_parameters import get_weights, set_weights
from crfx.testing import make_task
from tests.pairwise import pairwise

X, Y = make_task()
CONVERGED = 2e-3
WORDS = [[{"w": "the"}, {"w": "cat"}, {"w": "sat"}], [{"w": "a"}, {"w": "dog"}]]
TAGS = [["D", "N", "V"], ["D", "N"]]
NEW_WORDS = [[{"w": "the"}, {"w": "old"}, {"w": "cat"}], [{"w": "dog"}, {"w": "sat"}]]
NEW_TAGS = [["D", "A", "N"], ["N", "V"]]

ROUNDING = 1e-5
"""Rows with weights for all labels are summed in another order than those with some."""


def marginals(crf, X=X, **structure):
    return np.concatenate(crf.predict_marginals(X, **structure))


@pytest.mark.parametrize("edges", ["table", "linear", None])
def test_a_warm_start_needs_few_iterations(edges):
    whole = LinearCRF(edges=edges, tol=1e-8).fit(X, Y)
    again = LinearCRF(edges=edges, tol=1e-8).fit(X, Y, init_model=whole)
    assert again.n_iter_ < 0.5 * whole.n_iter_
    np.testing.assert_allclose(marginals(again), marginals(whole), atol=CONVERGED)
    assert again.model_.base is None


def test_a_warm_start_leaves_the_old_model_alone():
    old = LinearCRF(max_iter=5).fit(WORDS, TAGS)
    before = marginals(old, WORDS)
    LinearCRF().fit(NEW_WORDS[1:], NEW_TAGS[1:], init_model=old)
    np.testing.assert_array_equal(marginals(old, WORDS), before)
    assert old.n_features_in_ == 5


def test_new_words_are_learned_and_old_ones_kept():
    old = LinearCRF(tol=1e-8).fit(WORDS, TAGS)
    both = [*WORDS, [{"w": "bird"}]], [*TAGS, ["N"]]
    more = LinearCRF(tol=1e-8).fit(*both, init_model=old)
    whole = LinearCRF(tol=1e-8).fit(*both)
    assert list(more.feature_names_in_)[-1] == "w:bird"
    np.testing.assert_allclose(marginals(more, WORDS), marginals(whole, WORDS), atol=CONVERGED)


def test_a_model_of_another_shape_is_a_base():
    old = LinearCRF(max_iter=5).fit(X, Y)
    more = LinearCRF(start_end=False).fit(X, Y, init_model=old)
    assert more.model_.base is old.model_


@pytest.mark.filterwarnings("ignore:L-BFGS stopped")
def test_lbfgs_resumes_in_either_precision(tmp_path):
    """Single precision takes it part of the way, double precision to the minimum."""
    whole = LinearCRF(tol=1e-12, max_iter=500).fit(X, Y)
    stages = set()
    for left in (1, 12, whole.n_iter_ - 4):
        path, last = tmp_path / f"{left}.crfx", whole.n_iter_ - left

        def interrupt(progress, last=last):
            if progress.n_rounds == last:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            LinearCRF(tol=1e-12, max_iter=500).fit(
                X, Y, callbacks=[Checkpoint(path, every=last), interrupt]
            )
        part = load(path)
        stages.add("fine" in part.training_.standing.numbers)
        crf = LinearCRF(tol=1e-12, max_iter=500).fit(X, Y, init_model=part)
        assert crf.n_iter_ == whole.n_iter_
        np.testing.assert_array_equal(get_weights(crf.model_), get_weights(whole.model_))
    assert stages == {False, True}


@pytest.mark.parametrize("trainer", ["sgd", "perceptron", "large_margin"])
def test_partial_fit_per_epoch_equals_fit(trainer):
    """The step is the same, and both average from epoch `burn_in` on."""
    settings = {"step": 0.1, "burn_in": 0, "random_state": 0}
    whole = LinearCRF(trainer, sweeps=3, **settings).fit(X, Y)
    parts = LinearCRF(trainer, **settings)
    for _ in range(3):
        parts.partial_fit(X, Y)
    np.testing.assert_allclose(marginals(parts), marginals(whole), atol=1e-6)
    assert parts.n_iter_ == 3
    np.testing.assert_allclose(parts.history_["objective"], whole.history_["objective"], rtol=1e-5)


def test_partial_fit_learns_without_a_step():
    crf = LinearCRF("sgd", random_state=0).partial_fit(X, Y)
    for _ in range(8):
        crf.partial_fit(X, Y)
    assert crf.score(X, Y) > 0.8


@pytest.mark.parametrize(
    ("edges", "features"), [("table", "observed"), ("linear", "all"), (None, "observed")]
)
def test_partial_fit_adds_labels(edges, features):
    crf = LinearCRF("perceptron", edges=edges, features=features, burn_in=20, random_state=0)
    for _ in range(5):
        crf.partial_fit(WORDS, TAGS)
    before = crf.predict(WORDS)
    weights = crf.model_.node.pattern.matrix(crf.model_.node.weights).toarray()
    with pytest.raises(ValueError, match=r"label 'A', .* name it in classes"):
        crf.partial_fit(NEW_WORDS, NEW_TAGS)
    assert crf.n_iter_ == 5
    crf.partial_fit(NEW_WORDS, NEW_TAGS, classes=["A"])
    assert list(crf.classes_) == ["A", "D", "N", "V"]
    assert [list(labels) for labels in before] == TAGS
    assert crf.model_.node.pattern.matrix(crf.model_.node.weights).shape == (6, 4)
    assert weights.shape == (5, 3)
    for _ in range(40):
        crf.partial_fit(WORDS + NEW_WORDS, TAGS + NEW_TAGS)
    assert crf.score(WORDS + NEW_WORDS, TAGS + NEW_TAGS) == 1


@pytest.mark.parametrize(
    ("edges", "order", "features"),
    pairwise(["table", "linear", None], [1, 2], ["observed", "all"]),
)
def test_added_labels_and_types_keep_the_old_scores(edges, order, features):
    """A label that sorts first shifts all codes; new labels and types score 0 so far."""
    types = [np.arange(len(x)) % 2 for x in X]
    crf = LinearCRF(edges=edges, order=order, features=features, max_iter=10)
    crf.fit(X, Y, edge_types=types)
    more = [np.arange(len(x)) % 3 for x in X]
    training_set = read_training_set(
        Passed(X, Y, edge_types=more),
        InputSettings(order, grows=True, classes=["A", "Z"]),
        start_of(crf),
    )
    model, origin = crf._grown(crf.model_, crf.classes_, training_set.truth)
    set_weights(model, np.where(origin >= 0, get_weights(crf.model_)[origin], 0.0))
    batch, structure = training_set.batch, training_set.truth.structure
    after = model.scores(batch, structure)
    old_types = replace(batch, edge_types=np.concatenate(types))
    before = crf.model_.scores(old_types, structure)
    np.testing.assert_allclose(after.node[:, 1:4], before.node, rtol=ROUNDING, atol=ROUNDING)
    assert not after.node[:, [0, 4]].any()
    if edges is None:
        return
    inner = (slice(None), *(slice(1, 4),) * (order + 1))
    if edges == "table":
        np.testing.assert_array_equal(after.edge[inner][:2], before.edge)
        np.testing.assert_array_equal(after.start[1:4], before.start)
        assert not after.edge[2].any()
    else:
        same = structure.edge_rows(batch)
        same = same[np.concatenate(types)[same] == np.concatenate(more)[same]]
        np.testing.assert_allclose(after.edge[inner][same], before.edge[same], rtol=1e-5)


def test_partial_fit_continues_a_loaded_model(tmp_path):
    crf = LinearCRF("perceptron", random_state=0).partial_fit(WORDS, TAGS)
    crf.save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx")
    for _ in range(5):
        again.partial_fit(WORDS, TAGS)
    assert again.n_iter_ == 6
    assert again.score(WORDS, TAGS) == 1


def test_partial_fit_rejects_another_structure():
    crf = LinearCRF("perceptron").partial_fit(X, Y)
    parents = [np.arange(len(x)) - 1 for x in X]
    with pytest.raises(ValueError, match="pass parents and edge_types exactly if"):
        crf.partial_fit(X, Y, parents=parents)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ({}, {"edges": "linear"}, "edges is 'linear', but .* has 'table'"),
        ({"edges": None}, {"edges": "table"}, "edges is 'table', but .* has None"),
        ({"order": 2}, {"order": 1}, "order is 1, but .* has 2"),
        ({}, {"start_end": False}, "start_end is False, but .* has True"),
    ],
)
def test_partial_fit_rejects_arguments_of_another_model(before, after, message):
    crf = LinearCRF("perceptron", random_state=0, **before).partial_fit(WORDS, TAGS)
    crf.partial_fit(WORDS, TAGS)
    with pytest.raises(ValueError, match=message):
        crf.set_params(**after).partial_fit(WORDS, TAGS)
