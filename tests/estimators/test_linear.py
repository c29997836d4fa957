"""LinearCRF: what it learns, which weights it has, kinds of features, bases, partial_fit."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from crfx import GBCRF, LinearCRF, load
from crfx.testing import make_task
from crfx.trainers import epochs
from tests.pairwise import pairwise

X, Y = make_task()
X_DEV, Y_DEV = make_task(1, 12)
SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 0.8, 0, x)) for x in X]
CONVERGED = 1e-3
"""Probabilities of two runs that end near the same minimum."""


def marginals(crf, X=X, **structure):
    return np.concatenate(crf.predict_marginals(X, **structure))


def test_without_edges_it_is_logistic_regression():
    ones = [np.column_stack([x, np.ones(len(x), np.float32)]) for x in X]
    crf = LinearCRF(l2=0.5, edges=None, tol=1e-9).fit(ones, Y)
    peer = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8, max_iter=1000)
    peer.fit(np.concatenate(ones), np.concatenate(Y))
    expected = peer.predict_proba(np.concatenate(ones))
    np.testing.assert_allclose(marginals(crf, ones), expected, atol=CONVERGED)


def test_objective_falls_and_is_likelihood_and_penalties():
    crf = LinearCRF(l1=0.2, l2=0.3).fit(X, Y)
    objective = crf.history_["objective"]
    assert (np.diff(objective) <= 0).all()
    assert len(objective) == len(crf.history_["seconds"]) == crf.n_iter_
    assert crf.score(X, Y) > 0.85
    tables = [crf.model_.node.weights, crf.transitions_, *crf.model_.ends.tables.values()]
    weights = np.concatenate([np.ravel(table) for table in tables])
    expected = -crf.log_likelihood(X, Y).sum()
    expected += 0.2 * np.abs(weights).sum() + 0.3 * (weights**2).sum()
    assert objective[-1] == pytest.approx(expected, rel=1e-5)


def test_l1_makes_weights_zero():
    dense, lasso = (LinearCRF(l1=l1, l2=0.0, max_iter=200).fit(X, Y) for l1 in (0.0, 3.0))
    counts = [np.count_nonzero(crf.model_.node.weights) for crf in (dense, lasso)]
    assert counts[1] < counts[0] == 12


@pytest.mark.parametrize(
    ("features", "edges"),
    [("observed", "table"), ("observed", "linear"), ("all", "linear"), ("all", None)],
)
def test_sparse_and_dense_input_agree(features, edges):
    """Zeros count as absent entries, with all weights or only the observed ones."""
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


def test_sgd_approaches_minimum_of_lbfgs():
    lowest = LinearCRF(l2=0.5, tol=1e-9).fit(X, Y).history_["objective"][-1]
    crf = LinearCRF("sgd", l2=0.5, sweeps=100, random_state=0).fit(X, Y)
    assert lowest <= crf.history_["objective"][-1] < 1.02 * lowest


def test_seed_makes_a_run_repeatable():
    for trainer in SWEEPING:
        runs = [LinearCRF(trainer, sweeps=3, random_state=seed).fit(X, Y) for seed in (1, 1, 2)]
        first, again, other = map(marginals, runs)
        np.testing.assert_array_equal(first, again)
        assert np.abs(first - other).max() > 0


def test_large_margin_separates_easy_data():
    """The perceptron stops at the first separation, the large margin goes on."""
    easy = [8 * np.eye(4, dtype=np.float32)[[int(label[1]) for label in labels]] for labels in Y]
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


def test_early_stopping_restores_the_best_weights():
    crf = LinearCRF(l2=0.0, early_stopping_rounds=3, tol=0.0, eval_metric="token_accuracy")
    crf.fit(X, Y, eval_set=(X_DEV, Y_DEV))
    metric = crf.history_["eval_metric"]
    assert crf.best_iteration_ == int(np.argmax(metric))
    assert len(metric) == crf.best_iteration_ + 4
    assert crf.score(X_DEV, Y_DEV) == max(metric)


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
    assert crf.predict([[{"word": "the"}, {"word": "unseen"}]])[0].tolist() == ["D", "N"]


def test_generators_are_read_once():
    crf = LinearCRF(l2=0.1).fit((x for x in WORDS), (y for y in TAGS))
    assert crf.score(WORDS, TAGS) == 1
    assert len(crf.predict(x for x in WORDS)) == 3


def test_coef_explain_scores():
    X = [[{"w": "a", "n": 2.0}, {"w": "b"}], [{"w": "b"}]]
    crf = LinearCRF(edges=None).fit(X, [["A", "B"], ["B"]])
    assert crf.coef_.shape == (2, 3)
    assert crf.coef_[0, crf.feature_names_in_.tolist().index("w:b")] == 0
    # Without edges a marginal is the softmax of the scores: their difference is its logit.
    marginals = crf.predict_marginals([[{"n": 1.5}]])[0][0]
    scores = crf.coef_.toarray()[:, crf.feature_names_in_.tolist().index("n")] * 1.5
    np.testing.assert_allclose(
        np.log(marginals[0] / marginals[1]), scores[0] - scores[1], rtol=1e-5
    )
    dense = LinearCRF().fit([np.eye(2)], [["A", "B"]])
    assert isinstance(dense.coef_, np.ndarray)
    assert dense.coef_.shape == (2, 2)
    assert dense.coef_[0, 0] > 0 > dense.coef_[1, 0]


# Bases that grow, partial_fit, and odd instances and features.

TEXTS, TEXT_TAGS = [[["a"], ["b"], ["c"]], [["a"], ["c"]]], [["D", "N", "V"], ["D", "V"]]
TYPES = [np.arange(len(x)) % 2 for x in X]


def test_base_ignores_unknown_words():
    base = LinearCRF(edges=None, max_iter=5).fit(TEXTS, TEXT_TAGS)
    above = LinearCRF(max_iter=5).fit(TEXTS, TEXT_TAGS, init_model=base)
    many = [[[f"new{k}"] for k in range(2000)]]
    with pytest.warns(UserWarning, match="none of the 2000 features"):
        more = LinearCRF(max_iter=5).fit(many, [["D"] * 2000], init_model=above)
    assert more.n_features_in_ == 3
    assert more.model_.base is base.model_
    sweeping = LinearCRF("perceptron").fit(TEXTS, TEXT_TAGS, init_model=base)
    with pytest.warns(UserWarning, match="none of the 2000 features"):
        assert sweeping.partial_fit(many, [["D"] * 2000]).n_features_in_ == 3
    before, rows = sweeping.model_.base.n_labels, sweeping._input(TEXTS, None, None, None, None)
    sweeping.partial_fit(TEXTS, [["D", "N", "Q"], ["D", "Q"]], classes=["Q"])
    assert sweeping.model_.base.n_labels == before + 1
    assert base.model_.n_labels == before
    now, then = (
        model.problem(rows.batch).scores.node for model in (sweeping.model_.base, base.model_)
    )
    np.testing.assert_allclose(now[:, [0, 1, 3]], then, rtol=1e-6)


def test_constant_feature_of_edges_stays_the_constant():
    old = LinearCRF("perceptron", edges="linear", features="all", random_state=0)
    for _ in range(3):
        old.partial_fit(TEXTS, TEXT_TAGS)
    more = LinearCRF("perceptron", edges="linear", features="all", sweeps=0)
    more.fit([[["a"], ["NEW"]]], [["D", "N"]], init_model=old)
    np.testing.assert_allclose(marginals(more, TEXTS), marginals(old, TEXTS), atol=1e-6)


def test_partial_fit_continues_fit():
    crf = LinearCRF("perceptron", random_state=0)
    crf.partial_fit(X[:1], Y[:1], classes=["L0", "L1", "L2"])
    crf.set_params(sweeps=10).fit(X, Y)
    fitted = LinearCRF("perceptron", sweeps=10, random_state=0).fit(X, Y)
    crf.partial_fit(X[:1], Y[:1])
    fitted.partial_fit(X[:1], Y[:1])
    np.testing.assert_array_equal(marginals(crf), marginals(fitted))


def test_partial_fit_takes_a_new_step():
    crf = LinearCRF("perceptron", step=0.1, random_state=0).partial_fit(X, Y)
    before = crf._partial.parameters.values.copy()
    crf.set_params(step=1e-9).partial_fit(X, Y)
    assert np.abs(before).max() > 0.1
    np.testing.assert_allclose(crf._partial.parameters.values, before, atol=1e-6)


def test_first_step_is_searched_once(monkeypatch):
    sought, find = [], epochs.with_good_step
    monkeypatch.setattr(epochs, "with_good_step", lambda *args: sought.append(1) or find(*args))
    crf = LinearCRF("sgd", random_state=0)
    for _ in range(3):
        crf.partial_fit(X, Y)
    assert len(sought) == 1


def test_chunks_without_edges_or_known_labels(tmp_path):
    crf = LinearCRF("perceptron", edges="linear").partial_fit(TEXTS, TEXT_TAGS)
    crf.partial_fit([[["a"]]], [["D"]])
    crf.partial_fit(TEXTS, [[None] * 3, [None] * 2])
    assert len(crf.predict(TEXTS)) == 2
    short = LinearCRF(edges="linear").fit([[["a"]], [["b"]]], [["D"], ["N"]])
    short.save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx")
    np.testing.assert_array_equal(marginals(again, [[["a"]]]), marginals(short, [[["a"]]]))


def test_features_that_are_all_zero():
    nothing = [x * 0 for x in X]
    for edges in ("table", "linear", None):
        crf = LinearCRF(features="observed", edges=edges).fit(nothing, Y)
        assert np.isfinite(marginals(crf, nothing)).all()


@pytest.mark.parametrize("trainer", ["lbfgs", "sgd"])
def test_missing_values_count_as_zero_for_every_trainer(trainer):
    holes = [x.copy() for x in SPARSE]
    holes[0].data[0] = np.nan
    filled = [x.copy() for x in holes]
    filled[0].data[0] = 0.0
    arguments = {"max_iter": 3, "sweeps": 2, "random_state": 0}
    one, other = (LinearCRF(trainer, **arguments).fit(data, Y) for data in (holes, filled))
    np.testing.assert_array_equal(marginals(one, filled), marginals(other, filled))


@pytest.mark.parametrize(
    ("trainer", "edges"), [("sgd", "table"), ("perceptron", "linear"), ("large_margin", None)]
)
def test_empty_instances_one_at_a_time(trainer, edges):
    crf = LinearCRF(trainer, edges=edges, batch_size=1, sweeps=1, step=0.1)
    crf.fit([X[0], X[0][:0]], [Y[0], []])
    assert [len(labels) for labels in crf.predict([X[0][:0], X[0]])] == [0, len(X[0])]


@pytest.mark.parametrize("trainer", ["lbfgs", "sgd"])
@pytest.mark.parametrize(
    ("below", "above", "structure"),
    [
        ("table", "linear", {}),
        ("table", "linear", {"edge_types": TYPES}),
        ("linear", "table", {}),
    ],
)
def test_bases_whose_edges_are_shared_otherwise(trainer, below, above, structure):
    base = LinearCRF(edges=below, max_iter=5).fit(X, Y, **structure)
    crf = LinearCRF(trainer, edges=above, sweeps=0, max_iter=0)
    crf.fit(X, Y, **structure, init_model=base)
    np.testing.assert_allclose(marginals(crf, **structure), marginals(base, **structure), atol=1e-6)
    LinearCRF(trainer, edges=above, sweeps=1, max_iter=2).fit(X, Y, **structure, init_model=base)


def test_base_may_have_more_edge_types_than_data():
    base = GBCRF(1, random_state=0).fit(X, Y, edge_types=TYPES)
    one_type = [types * 0 for types in TYPES]
    crf = LinearCRF(max_iter=2).fit(X, Y, edge_types=one_type, init_model=base)
    assert crf.transitions_.shape == (2, 3, 3)


def test_edge_types_need_a_base_with_types():
    base = LinearCRF(edges="linear", max_iter=5).fit(X, Y, edge_types=TYPES)
    with pytest.raises(ValueError, match="tables per edge type cannot stand on a base"):
        LinearCRF(max_iter=0).fit(X, Y, edge_types=TYPES, init_model=base)


def test_init_model_decides_whether_warm_start_is_possible():
    """The arguments of its estimator, which may have been changed, do not decide."""
    fitted = LinearCRF(max_iter=5).fit(X, Y).set_params(edges="linear")
    crf = LinearCRF(edges="linear", max_iter=5).fit(X, Y, init_model=fitted)
    assert crf.model_.edge_family == "linear"


def test_partial_fit_takes_classes_as_array(tmp_path):
    numbers = [[int(label[1:]) for label in labels] for labels in Y]
    crf = LinearCRF("perceptron").partial_fit(X, numbers, classes=np.array([0, 1, 2, 3]))
    assert crf.classes_.tolist() == [0, 1, 2, 3]
    crf.save(tmp_path / "m.crfx")
    assert load(tmp_path / "m.crfx").classes_.tolist() == [0, 1, 2, 3]


def test_empty_positions_are_read_as_words():
    crf = LinearCRF().fit(TEXTS, TEXT_TAGS)
    assert [len(labels) for labels in crf.predict([[]])] == [0]
    assert [len(predicted) for predicted in crf.predict([[[], []]])] == [2]
    as_list, as_generator = [[[]], [["a"]]], (x for x in [[[]], [["a"]]])
    np.testing.assert_array_equal(
        np.concatenate(crf.predict(as_list)), np.concatenate(crf.predict(as_generator))
    )


def test_features_of_any_size_are_learned_from():
    """One step for all weights is slow where features are large, but it does not diverge."""
    pixels = [255 * x for x in X]
    assert LinearCRF().fit(pixels, Y).score(pixels, Y) > 0.8
    crf = LinearCRF("sgd", sweeps=20, random_state=0).fit(pixels, Y)
    assert crf.history_["objective"][-1] < 0.9 * sum(map(len, Y)) * np.log(3)


def test_tiny_features_beside_transitions_warn():
    with pytest.warns(ConvergenceWarning, match="than 0.0.* one step .*: scale the features"):
        LinearCRF("sgd", sweeps=1, random_state=0).fit([0.005 * x for x in X], Y)
