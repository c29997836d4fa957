"""LinearCRF: what it learns, which weights it has, saving, stopping, bad arguments."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from crfx import GBCRF, Checkpoint, LinearCRF, load
from crfx.testing import make_task

X, Y = make_task()
X_DEV, Y_DEV = make_task(1, 12)
SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 0.8, 0, x)) for x in X]
CONVERGED = 1e-3
"""Probabilities of two runs that end near the same minimum."""


def marginals(crf, X=X, **structure):
    return np.concatenate(crf.predict_marginals(X, **structure))


def test_it_learns_and_its_objective_falls():
    crf = LinearCRF(l2=0.1).fit(X, Y)
    assert crf.score(X, Y) > 0.85
    assert (np.diff(crf.history_["objective"]) <= 0).all()
    assert len(crf.history_["objective"]) == len(crf.history_["seconds"]) == crf.n_iter_
    assert crf.transitions_.shape == (3, 3)


def test_without_edges_it_is_logistic_regression():
    ones = [np.column_stack([x, np.ones(len(x), np.float32)]) for x in X]
    crf = LinearCRF(l2=0.5, edges=None, tol=1e-9).fit(ones, Y)
    peer = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8, max_iter=1000)
    peer.fit(np.concatenate(ones), np.concatenate(Y))
    expected = peer.predict_proba(np.concatenate(ones))
    np.testing.assert_allclose(marginals(crf, ones), expected, atol=CONVERGED)


def test_the_objective_is_the_sum_that_it_says():
    crf = LinearCRF(l1=0.2, l2=0.3, tol=1e-9).fit(X, Y)
    ends = crf.model_.ends.tables
    tables = [crf.model_.node.weights, crf.transitions_, *ends.values()]
    weights = np.concatenate([np.ravel(table) for table in tables])
    expected = -crf.log_likelihood(X, Y).sum()
    expected += 0.2 * np.abs(weights).sum() + 0.3 * (weights**2).sum()
    assert crf.history_["objective"][-1] == pytest.approx(expected, rel=1e-5)


def test_l1_makes_weights_zero():
    dense, lasso = (LinearCRF(l1=l1, l2=0.0, max_iter=200).fit(X, Y) for l1 in (0.0, 3.0))
    counts = [np.count_nonzero(crf.model_.node.weights) for crf in (dense, lasso)]
    assert counts[1] < counts[0] == 12


@pytest.mark.parametrize("edges", ["table", "linear", None])
@pytest.mark.parametrize("features", ["observed", "all"])
def test_sparse_and_dense_input_agree(features, edges):
    """With all weights, or those observed, zeros are absent entries."""
    arguments = {"features": features, "edges": edges, "tol": 1e-8}
    from_sparse = LinearCRF(**arguments).fit(SPARSE, Y)
    from_dense = LinearCRF(**arguments).fit([x.toarray() for x in SPARSE], Y)
    objectives = [crf.history_["objective"][-1] for crf in (from_sparse, from_dense)]
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-5)


def test_unseen_transitions_have_no_weight():
    """Labels never fall along an instance."""
    observed = LinearCRF(features="observed").fit(X, Y)
    assert (observed.transitions_[np.tril_indices(3, -1)] == 0).all()
    every = LinearCRF(features="all").fit(X, Y)
    assert (every.transitions_[np.tril_indices(3, -1)] < 0).all()


def test_a_feature_of_one_label_has_one_weight():
    words = sparse.csr_matrix(np.eye(4, dtype=np.float32))
    crf = LinearCRF(start_end=False).fit([words], [["a", "b", "c", "d"] * 1])
    weights = crf.model_.node.pattern.matrix(crf.model_.node.weights).toarray()
    np.testing.assert_array_equal(weights != 0, np.eye(4, dtype=bool))


SWEEPING = ("sgd", "perceptron", "large_margin")


@pytest.mark.parametrize("data", [X, SPARSE])
@pytest.mark.parametrize("edges", ["table", "linear", None])
@pytest.mark.parametrize("trainer", SWEEPING)
def test_trainers_that_sweep_learn(trainer, edges, data):
    crf = LinearCRF(trainer, edges=edges, sweeps=15, random_state=0).fit(data, Y)
    assert crf.score(data, Y) > LinearCRF(edges=edges).fit(data, Y).score(data, Y) - 0.1
    assert crf.n_iter_ == len(crf.history_["objective"]) == 15
    assert crf.history_["objective"][-1] < crf.history_["objective"][0]


def test_sgd_comes_close_to_the_minimum_of_lbfgs():
    lowest = LinearCRF(l2=0.5, tol=1e-9).fit(X, Y).history_["objective"][-1]
    found = LinearCRF("sgd", l2=0.5, sweeps=100, random_state=0).fit(X, Y)
    assert lowest <= found.history_["objective"][-1] < 1.02 * lowest


@pytest.mark.parametrize("trainer", SWEEPING)
def test_a_seed_makes_a_run_repeatable(trainer):
    runs = [LinearCRF(trainer, sweeps=3, random_state=seed).fit(X, Y) for seed in (1, 1, 2)]
    found = [marginals(crf) for crf in runs]
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() > 0


@pytest.mark.parametrize("trainer", SWEEPING)
def test_sweeps_stand_on_a_base_and_see_forests_and_types(trainer):
    parents = [np.arange(len(x)) - 1 for x in X]
    types = [np.arange(len(x)) % 2 for x in X]
    base = GBCRF(2, random_state=0).fit(X, Y, parents=parents, edge_types=types)
    structure = {"parents": parents, "edge_types": types}
    none, some = (
        LinearCRF(trainer, sweeps=sweeps, random_state=0).fit(X, Y, **structure, init_model=base)
        for sweeps in (0, 5)
    )
    np.testing.assert_array_equal(marginals(none, **structure), marginals(base, **structure))
    assert some.score(X, Y, **structure) > 0.8


def test_a_large_margin_is_kept_where_it_can_be():
    """The perceptron stops at the first separation, the large margin goes on."""
    easy = [
        x * 0 + 8 * np.eye(4, dtype=np.float32)[[int(y[1]) for y in own]]
        for x, own in zip(X, Y, strict=True)
    ]
    for trainer, least in (("perceptron", 0.0), ("large_margin", 1.0)):
        crf = LinearCRF(trainer, sweeps=30, burn_in=29, random_state=0).fit(easy, Y)
        best = crf.predict_kbest(easy, 2)
        gaps = [np.log(first[1] / second[1]) for first, second, *_ in best]
        assert min(gaps) >= least - 1e-3


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("edges", ["table", "linear"])
def test_orders(order, edges):
    crf = LinearCRF(order=order, edges=edges, l2=0.1).fit(X, Y)
    assert crf.score(X, Y) > 0.85


def test_forests_and_edge_types():
    parents = [np.arange(len(x)) - 1 for x in X]
    types = [np.arange(len(x)) % 2 for x in X]
    chain = LinearCRF(start_end=False, tol=1e-8).fit(X, Y)
    forest = LinearCRF(start_end=False, tol=1e-8).fit(X, Y, parents=parents)
    np.testing.assert_allclose(marginals(forest, parents=parents), marginals(chain), atol=CONVERGED)
    typed = LinearCRF().fit(X, Y, edge_types=types)
    assert typed.transitions_.shape == (2, 3, 3)


def test_unknown_labels_and_weights_count():
    hidden = [[None if t == 1 else label for t, label in enumerate(own)] for own in Y]
    crf = LinearCRF().fit(X, hidden, sample_weight=np.linspace(0.5, 2, len(X)))
    assert crf.score(X, Y) > 0.8
    twice = LinearCRF(tol=1e-9).fit(X + X, Y + Y)
    heavy = LinearCRF(tol=1e-9).fit(X, Y, sample_weight=np.full(len(X), 2.0))
    np.testing.assert_allclose(marginals(twice), marginals(heavy), atol=CONVERGED)


@pytest.mark.parametrize("data", [X, SPARSE])
@pytest.mark.parametrize("edges", ["table", "linear", None])
def test_a_saved_model_is_the_same(tmp_path, edges, data):
    crf = LinearCRF(edges=edges, max_iter=20).fit(data, Y)
    crf.save(tmp_path / "m.crfx")
    other = load(tmp_path / "m.crfx")
    np.testing.assert_array_equal(marginals(other, data), marginals(crf, data))
    assert other.get_params() == crf.get_params()
    assert (other.n_iter_, other.best_iteration_) == (crf.n_iter_, crf.best_iteration_)
    assert other.history_ == crf.history_


def test_early_stopping_restores_the_best_weights():
    crf = LinearCRF(l2=0.0, early_stopping_rounds=3, tol=0.0, eval_metric="token_accuracy")
    crf.fit(X, Y, eval_set=(X_DEV, Y_DEV))
    metric = crf.history_["eval_metric"]
    assert crf.best_iteration_ == int(np.argmax(metric))
    assert len(metric) == crf.best_iteration_ + 4
    assert crf.score(X_DEV, Y_DEV) == max(metric)


def test_callbacks_stop_and_save(tmp_path):
    path = tmp_path / "m.crfx"
    crf = LinearCRF().fit(
        X, Y, callbacks=[Checkpoint(path, every=2), lambda progress: progress.n_rounds == 4]
    )
    assert crf.n_iter_ == 4
    np.testing.assert_array_equal(marginals(load(path)), marginals(crf))


def test_it_is_a_base_for_boosting_and_may_stand_on_one():
    linear = LinearCRF(max_iter=5).fit(X, Y)
    boosted = GBCRF(3, random_state=0).fit(X, Y, init_model=linear)
    assert boosted.model_.base is linear.model_
    assert boosted.log_likelihood(X, Y).sum() > linear.log_likelihood(X, Y).sum()
    above = LinearCRF(max_iter=5).fit(X, Y, init_model=boosted)
    assert above.log_likelihood(X, Y).sum() > boosted.log_likelihood(X, Y).sum()


def test_threads_give_the_same_model():
    one, two = (LinearCRF(n_jobs=n_jobs).fit(SPARSE, Y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(marginals(one, SPARSE), marginals(two, SPARSE))


def test_it_is_cloned_as_scikit_learn_does():
    crf = LinearCRF(l1=0.5, features="all")
    assert clone(crf).get_params() == crf.get_params()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"trainer": "adam"}, "trainer is 'adam': choose one of"),
        ({"l2": -1}, "l2 is -1: it must be 0 or more"),
        ({"l1": np.nan}, "l1 is nan: it must be 0 or more"),
        ({"max_iter": 1.5}, "max_iter is 1.5: it must be a whole number"),
        ({"features": "seen"}, "features is 'seen': choose one of 'auto', 'observed', 'all'"),
        ({"edges": "trees"}, "edges is 'trees': choose one of 'table', 'linear', None"),
        ({"order": 0}, "order is 0: it must be a whole number of 1 or more"),
        ({"early_stopping_rounds": 5}, "early_stopping_rounds needs an eval_set"),
        ({"trainer": "sgd", "l1": 1.0}, 'l1 is 1.0, but trainer is .sgd.: l1 is for "lbfgs"'),
        ({"step": 0}, "step is 0: it must be above 0, or None"),
        ({"batch_size": 0}, "batch_size is 0: it must be a whole number of 1 or more"),
        ({"burn_in": -1}, "burn_in is -1"),
        ({"margin": -1}, "margin is -1: it must be 0 or more"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    crf = LinearCRF(**arguments)
    with pytest.raises(ValueError, match=message):
        crf.fit(X, Y)
    assert not hasattr(crf, "model_")


def test_rounds_are_not_for_it():
    crf = LinearCRF(max_iter=3).fit(X, Y)
    with pytest.raises(ValueError, match="a LinearCRF is not built in rounds"):
        crf.predict(X, n_rounds=2)


WORDS = [
    [{"word": "the", "title": True}, {"word": "cat"}, {"word": "sat"}],
    [{"word": "a"}, {"word": "dog"}, {"word": "sat"}],
    [{"word": "cat"}],
]
TAGS = [["D", "N", "V"], ["D", "N", "V"], ["N"]]


def test_dicts_are_features(tmp_path):
    crf = LinearCRF(l2=0.1).fit(WORDS, TAGS)
    assert crf.score(WORDS, TAGS) == 1
    assert crf.n_features_in_ == 6
    assert list(crf.feature_names_in_)[:3] == ["word:the", "title", "word:cat"]
    assert [list(tags) for tags in crf.predict([[{"word": "the"}, {"word": "unseen"}]])] == [
        ["D", "N"]
    ]
    crf.save(tmp_path / "m.crfx")
    other = load(tmp_path / "m.crfx")
    np.testing.assert_array_equal(marginals(other, WORDS), marginals(crf, WORDS))
    assert list(other.feature_names_in_) == list(crf.feature_names_in_)


def test_a_generator_of_instances_is_read_once():
    crf = LinearCRF(l2=0.1).fit((x for x in WORDS), TAGS)
    assert crf.score(WORDS, TAGS) == 1
    assert len(crf.predict(x for x in WORDS)) == 3


def test_words_are_not_for_models_of_numbers():
    with pytest.raises(ValueError, match="the model was fitted on numbers"):
        LinearCRF(max_iter=1).fit(X, Y).predict(WORDS)


def test_trees_read_dicts_too():
    crf = GBCRF(3, min_child_weight=0.0, random_state=0).fit(WORDS * 5, TAGS * 5)
    assert crf.score(WORDS, TAGS) > 0.8


def test_coef_are_the_weights_behind_the_scores():
    X = [[{"w": "a", "n": 2.0}, {"w": "b"}], [{"w": "b"}]]
    crf = LinearCRF(edges=None).fit(X, [["A", "B"], ["B"]])
    assert crf.coef_.shape == (2, 3)
    assert crf.coef_[0, crf.feature_names_in_.tolist().index("w:b")] == 0
    # Without edges a marginal is the softmax of the scores: their difference is its logit.
    found = crf.predict_marginals([[{"n": 1.5}]])[0][0]
    scores = crf.coef_.toarray()[:, crf.feature_names_in_.tolist().index("n")] * 1.5
    np.testing.assert_allclose(np.log(found[0] / found[1]), scores[0] - scores[1], rtol=1e-5)
    dense = LinearCRF().fit([np.eye(2)], [["A", "B"]])
    assert isinstance(dense.coef_, np.ndarray)
    assert dense.coef_.shape == (2, 2)
    assert dense.coef_[0, 0] > 0 > dense.coef_[1, 0]
