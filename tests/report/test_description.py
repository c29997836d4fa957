"""Descriptions of models."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from crfx import GBCRF, LinearCRF
from crfx.report.description import as_text, called, describe, transition_table
from crfx.testing import make_task

X, Y = make_task(0, n_instances=12)


@pytest.fixture(scope="module")
def linear():
    return LinearCRF(max_iter=5, n_jobs=1).fit(X, Y)


@pytest.fixture(scope="module")
def stacked(linear):
    return GBCRF(2, max_depth=2, n_jobs=1, random_state=0).fit(X, Y, init_model=linear)


def test_description_of_a_model_on_another(linear, stacked):
    both = stacked.transitions_ + linear.transitions_
    table = transition_table(stacked)
    np.testing.assert_allclose(table.values, both, rtol=0, atol=1e-6)
    assert table.note == ""
    (strongest,) = describe(stacked, 1)["transitions"]
    assert abs(strongest["score"]) == pytest.approx(np.abs(both).max(), abs=1e-6)
    text = as_text(describe(stacked))
    assert "share of the gain of all splits; the model underneath is not counted" in text
    assert "underneath" not in as_text(describe(linear))
    no_edges = GBCRF(1, edges=None, n_jobs=1).fit(X, Y, init_model=linear)
    np.testing.assert_allclose(transition_table(no_edges).values, linear.transitions_, atol=1e-6)


def test_description_notes_edges_underneath_that_are_no_table():
    under = LinearCRF(edges="linear", max_iter=3, n_jobs=1).fit(X, Y)
    crf = GBCRF(1, n_jobs=1).fit(X, Y, init_model=under)
    table = transition_table(crf)
    np.testing.assert_allclose(table.values, crf.transitions_, atol=1e-6)
    assert table.note == "of the last model only: the one underneath has edges that depend on X"
    assert f"Strongest transitions (order 1), {table.note}" in as_text(describe(crf))


def share_right(y_true, y_pred):
    return float(np.mean(np.concatenate(y_true) == np.concatenate(y_pred)))


def test_arguments_may_be_arrays_functions_and_learners():
    labels = sorted({str(label) for tags in Y for label in tags})
    pairs = np.array([(a, b) for a in labels for b in labels])
    crf = GBCRF(1, constraints=pairs, eval_metric=share_right, n_jobs=1)
    description = describe(crf.fit(X, Y, eval_set=(X, Y)))
    assert description["arguments"]["eval_metric"] == "share_right"
    assert description["arguments"]["constraints"].startswith(f"array([['{labels[0]}'")
    assert description["training"]["eval_metric"]["name"] == "share_right"
    names = called([object(), share_right])
    assert names.startswith("[<object object>, <function share_right")
    assert "0x" not in names
    crf = GBCRF(2, base_learner=DecisionTreeRegressor(max_depth=2), n_jobs=1).fit(X, Y)
    description = describe(crf)
    assert description["important"]["features"] == []
    assert "a base_learner does not tell" in description["important"]["by"]
    assert "Strongest transitions" in as_text(description)


@pytest.mark.parametrize(
    ("crf", "counted"),
    [
        (LinearCRF(max_iter=2), "iterations"),
        (LinearCRF(trainer="perceptron", sweeps=2), "sweeps"),
        (GBCRF(2, random_state=0), "rounds"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*max_iter")
def test_training_is_counted_in_one_word(crf, counted):
    text = as_text(describe(crf.set_params(n_jobs=1).fit(X, Y)))
    assert f"  2 {counted} in " in text
    assert " s, preparing and watching aside" in text
