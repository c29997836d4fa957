"""LinearCRF: what it learns, which weights it has, stopping, kinds of features."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from crfx import GBCRF, Checkpoint, LinearCRF, load
from crfx.testing import make_task
from tests.pairwise import pairwise

X, Y = make_task()
X_DEV, Y_DEV = make_task(1, 12)
SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 0.8, 0, x)) for x in X]
CONVERGED = 1e-3
"""Probabilities of two runs that end near the same minimum."""


def marginals(crf, X=X, **structure):
    return np.concatenate(crf.predict_marginals(X, **structure))


def test_objective_falls_while_it_learns():
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


def test_objective_is_likelihood_and_penalties():
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


@pytest.mark.parametrize(
    ("features", "edges"),
    [("observed", "table"), ("observed", "linear"), ("all", "linear"), ("all", None)],
)
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


def test_feature_of_one_label_has_one_weight():
    words = sparse.csr_matrix(np.eye(4, dtype=np.float32))
    crf = LinearCRF(start_end=False).fit([words], [["a", "b", "c", "d"] * 1])
    weights = crf.model_.node.pattern.matrix(crf.model_.node.weights).toarray()
    np.testing.assert_array_equal(weights != 0, np.eye(4, dtype=bool))


SWEEPING = ("sgd", "perceptron", "large_margin")


@pytest.mark.parametrize(
    ("trainer", "edges", "data"),
    pairwise(list(SWEEPING), ["table", "linear", None], ["dense", "sparse"]),
)
def test_epochs_learn(trainer, edges, data):
    data = X if data == "dense" else SPARSE
    crf = LinearCRF(trainer, edges=edges, sweeps=15, random_state=0).fit(data, Y)
    assert crf.score(data, Y) > LinearCRF(edges=edges).fit(data, Y).score(data, Y) - 0.1
    assert crf.n_iter_ == len(crf.history_["objective"]) == 15
    assert crf.history_["objective"][-1] < crf.history_["objective"][0]


def test_sgd_comes_close_to_the_minimum_of_lbfgs():
    lowest = LinearCRF(l2=0.5, tol=1e-9).fit(X, Y).history_["objective"][-1]
    found = LinearCRF("sgd", l2=0.5, sweeps=100, random_state=0).fit(X, Y)
    assert lowest <= found.history_["objective"][-1] < 1.02 * lowest


def test_seed_makes_a_run_repeatable():
    for trainer in SWEEPING:
        runs = [LinearCRF(trainer, sweeps=3, random_state=seed).fit(X, Y) for seed in (1, 1, 2)]
        first, again, other = map(marginals, runs)
        np.testing.assert_array_equal(first, again)
        assert np.abs(first - other).max() > 0


@pytest.mark.parametrize("trainer", SWEEPING)
def test_epochs_over_forests_with_types_on_a_base(trainer):
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


def test_large_margin_is_kept_where_it_can_be():
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


@pytest.mark.parametrize(("order", "edges"), [(2, "table"), (2, "linear"), (3, "linear")])
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


def test_base_of_boosting_and_boosting_as_base():
    linear = LinearCRF(max_iter=5).fit(X, Y)
    boosted = GBCRF(3, random_state=0).fit(X, Y, init_model=linear)
    assert boosted.model_.base is linear.model_
    assert boosted.log_likelihood(X, Y).sum() > linear.log_likelihood(X, Y).sum()
    above = LinearCRF(max_iter=5).fit(X, Y, init_model=boosted)
    assert above.log_likelihood(X, Y).sum() > boosted.log_likelihood(X, Y).sum()


def test_threads_give_the_same_model():
    one, two = (LinearCRF(n_jobs=n_jobs).fit(SPARSE, Y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(marginals(one, SPARSE), marginals(two, SPARSE))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": 0}, "order is 0: it must be a whole number of 1 or more"),
        ({"min_count": 0}, "min_count is 0: it must be a whole number of 1 or more"),
        ({"n_hashed": 0}, "n_hashed is 0: it must be a whole number of 1 or more, or None"),
        ({"batch_size": 0}, "batch_size is 0: it must be a whole number of 1 or more, or None"),
        ({"step": 0}, "step is 0: it must be above 0, or None"),
        ({"max_iter": -1}, "max_iter is -1: it must be a whole number of 0 or more"),
        ({"l1": -1e-9}, "l1 is -1e-09: it must be 0 or more"),
        ({"edges": "trees"}, "edges is 'trees': choose one of 'table', 'linear', None"),
        ({"features": "seen"}, "features is 'seen': choose one of 'auto', 'observed', 'all'"),
    ],
)
def test_fit_rejects_arguments(arguments, message):
    """Those at the border; `tests/bad_inputs` has the others."""
    with pytest.raises(ValueError, match=message):
        LinearCRF(**arguments).fit(X, Y)


WORDS = [
    [{"word": "the", "title": True}, {"word": "cat"}, {"word": "sat"}],
    [{"word": "a"}, {"word": "dog"}, {"word": "sat"}],
    [{"word": "cat"}],
]
TAGS = [["D", "N", "V"], ["D", "N", "V"], ["N"]]


def test_dicts_are_features():
    crf = LinearCRF(l2=0.1).fit(WORDS, TAGS)
    assert crf.score(WORDS, TAGS) == 1
    assert crf.n_features_in_ == 6
    assert list(crf.feature_names_in_)[:3] == ["word:the", "title", "word:cat"]
    assert [list(tags) for tags in crf.predict([[{"word": "the"}, {"word": "unseen"}]])] == [
        ["D", "N"]
    ]


def test_generators_are_read_once():
    crf = LinearCRF(l2=0.1).fit((x for x in WORDS), (y for y in TAGS))
    assert crf.score(WORDS, TAGS) == 1
    assert len(crf.predict(x for x in WORDS)) == 3


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
