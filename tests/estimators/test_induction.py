"""LinearCRF with feature induction: what it learns, keeps, saves and refuses."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from crfx import GBCRF, Checkpoint, FeatureInduction, LinearCRF, load
from crfx.features import Template
from crfx.testing import make_task

NAMES = ("a", "b", "c", "d")
INDUCTION = FeatureInduction(rounds=3, per_round=2, iterations=10, min_gain=0.01)
CONVERGED = 1e-2
"""Probabilities of two runs that end near the same minimum."""
ROUNDING = 1e-5
"""Scores of float32, summed in another order."""


def make_xor(seed=0, n_instances=40):
    """Texts of a, b, c, d and "one", and whether a xor b: nothing that a linear model can say."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for length in random.integers(1, 9, n_instances):
        bits = random.integers(2, size=(length, 4))
        bits[0] |= not X  # the first position numbers all names
        X.append([[*(n for n, bit in zip(NAMES, row, strict=True) if bit), "one"] for row in bits])
        y.append(["odd" if row[0] ^ row[1] else "even" for row in bits])
    return X, y


X, Y = make_xor()
X_NEW, Y_NEW = make_xor(1)
DICTS = [[dict.fromkeys(position, True) for position in instance] for instance in X]
CSR = [
    sparse.csr_matrix([[float(n in position) for n in (*NAMES, "one")] for position in instance])
    for instance in X
]
COLUMNS = [[tuple("01"[n in position] for n in NAMES) for position in instance] for instance in X]
TEMPLATE = Template("\n".join(f"{name}[0]" for name in NAMES), NAMES)


def marginals(crf, X=X, **structure):
    return np.concatenate(crf.predict_marginals(X, **structure))


@pytest.fixture(scope="module")
def induced():
    return LinearCRF(l2=0.1, feature_induction=INDUCTION).fit(X, Y)


def test_it_learns_what_a_linear_model_cannot(induced):
    assert LinearCRF(l2=0.1).fit(X, Y).score(X_NEW, Y_NEW) < 0.65
    assert induced.score(X, Y) == induced.score(X_NEW, Y_NEW) == 1
    assert induced.induced_features_[0] == ("a", "b")
    assert 4 < len(induced.induced_features_) <= 6
    assert max(map(len, induced.induced_features_)) > 2
    assert sorted(induced.feature_names_in_) == ["a", "b", "c", "d", "one"]
    assert induced.n_features_in_ == 5


def test_coefficients_of_conjunctions_come_last(induced):
    coef = induced.coef_.toarray()
    assert coef.shape == (2, 5 + len(induced.induced_features_))
    even = coef[list(induced.classes_).index("even")]
    assert even[:2].max() < 0 < 1 < even[5]  # a and b alone; a & b


def test_the_objective_never_rises(induced):
    objective = induced.history_["objective"]
    assert (np.diff(objective) <= 0).all()
    plain = LinearCRF(l2=0.1).fit(X, Y)
    assert objective[-1] < 0.5 * plain.history_["objective"][-1]
    assert len(objective) == induced.n_iter_ > 2 * INDUCTION.iterations


def test_more_rounds_never_end_higher():
    ends = [
        LinearCRF(l2=0.1, tol=1e-8, feature_induction=FeatureInduction(rounds, 1, min_gain=0.1))
        .fit(X, Y)
        .history_["objective"][-1]
        for rounds in range(4)
    ]
    assert ends == sorted(ends, reverse=True)
    assert ends[3] < ends[0]


def test_the_objective_is_the_sum_that_it_says(induced):
    weights = [induced.model_.node.weights, induced.transitions_.ravel()]
    weights = np.concatenate([*weights, *induced.model_.ends.tables.values()])
    expected = -induced.log_likelihood(X, Y).sum() + 0.1 * (weights**2).sum()
    assert induced.history_["objective"][-1] == pytest.approx(expected, rel=ROUNDING)


def test_it_equals_training_on_the_conjunctions_as_columns(induced):
    """The conjunctions as features of their own give the same model."""
    wide = [
        [
            [*own, *("&".join(c) for c in induced.induced_features_ if set(c) <= set(own))]
            for own in instance
        ]
        for instance in X
    ]
    plain = LinearCRF(l2=0.1, tol=1e-9).fit(wide, Y)
    found = LinearCRF(l2=0.1, tol=1e-9, feature_induction=INDUCTION).fit(X, Y)
    np.testing.assert_allclose(marginals(found), marginals(plain, wide), atol=CONVERGED)


@pytest.mark.parametrize(
    ("data", "first"),
    [
        (DICTS, {"a", "b"}),
        (CSR, {0, 1}),
        (TEMPLATE(COLUMNS), {"a[0]=1", "b[0]=1"}),
    ],
    ids=["dicts", "csr", "template"],
)
def test_every_sparse_input_will_do(data, first):
    crf = LinearCRF(l2=0.1, feature_induction=INDUCTION).fit(data, Y)
    assert crf.score(data, Y) == 1
    names = {str(name)[0] for name in crf.induced_features_[0]}
    assert names == {str(name)[0] for name in first}
    assert all(isinstance(n, type(next(iter(first)))) for own in crf.induced_features_ for n in own)


def test_stacked_and_dense_rows_are_predicted_alike():
    stacked, lengths = sparse.vstack(CSR, format="csr"), [x.shape[0] for x in CSR]
    crf = LinearCRF(l2=0.1, feature_induction=2).fit(stacked, np.concatenate(Y), lengths=lengths)
    expected = crf.predict_marginals(stacked, lengths=lengths)
    np.testing.assert_allclose(marginals(crf, CSR), expected, atol=ROUNDING)
    dense = [x.toarray() for x in CSR]
    np.testing.assert_allclose(marginals(crf, dense), expected, atol=ROUNDING)
    assert crf.predict([]) == []


def test_hashed_names_are_column_numbers():
    crf = LinearCRF(l2=0.1, n_hashed=1000, feature_induction=INDUCTION).fit(X, Y)
    assert crf.score(X, Y) == 1
    assert all(isinstance(column, int) for column in crf.induced_features_[0])


def test_values_count():
    """The sign of a product of numbers is what no linear model sees."""
    random = np.random.default_rng(0)
    numbers = [sparse.csr_matrix(random.normal(size=(5, 3))) for _ in range(40)]
    labels = [["+" if row[0] * row[1] > 0 else "-" for row in x.toarray()] for x in numbers]
    plain, crf = (
        LinearCRF(l2=0.01, feature_induction=rounds).fit(numbers, labels) for rounds in (0, 2)
    )
    assert plain.score(numbers, labels) < 0.7
    assert crf.induced_features_[0] == (0, 1)
    assert crf.score(numbers, labels) > 0.95


@pytest.mark.parametrize(
    "arguments",
    [
        {"edges": None},
        {"edges": "linear"},
        {"features": "all"},
        {"order": 2},
        {"l1": 0.1},
        {"features": "all", "edges": "linear"},
    ],
    ids=str,
)
def test_it_goes_with_the_other_arguments(tmp_path, arguments):
    crf = LinearCRF(l2=0.1, feature_induction=INDUCTION, **arguments).fit(X, Y)
    assert crf.score(X, Y) == 1
    assert ("a", "b") in crf.induced_features_
    assert (np.diff(crf.history_["objective"]) <= 0).all()
    crf.save(tmp_path / "m.crfx")
    np.testing.assert_array_equal(marginals(load(tmp_path / "m.crfx")), marginals(crf))


def test_all_weights_are_there_where_all_are_asked_for():
    """a & b occurs with one label only."""
    coef = [LinearCRF(features=f, feature_induction=1).fit(X, Y).coef_ for f in ("all", "auto")]
    assert (coef[0][:, 5] != 0).all()
    assert np.count_nonzero(coef[1].toarray()[:, 5]) == 1


@pytest.mark.parametrize("penalty", [{"l2": 1e6}, {"l1": 50.0}], ids=str)
def test_penalties_count_in_gains(penalty):
    crf = LinearCRF(**penalty, feature_induction=INDUCTION).fit(X, Y)
    assert crf.induced_features_ == []


def test_forests():
    parents = [np.arange(len(x)) - 1 for x in X]
    crf = LinearCRF(l2=0.1, feature_induction=INDUCTION).fit(X, Y, parents=parents)
    assert crf.score(X, Y, parents=parents) == 1


def test_weights_count_as_copies():
    heavy = LinearCRF(tol=1e-9, feature_induction=FeatureInduction(2, 1))
    heavy.fit(X, Y, sample_weight=np.full(len(X), 2.0))
    twice = LinearCRF(tol=1e-9, feature_induction=FeatureInduction(2, 1)).fit(X + X, Y + Y)
    assert heavy.induced_features_ == twice.induced_features_
    np.testing.assert_allclose(marginals(heavy), marginals(twice), atol=CONVERGED)


def test_instances_without_weight_say_nothing():
    """Half of the instances have wrong labels, and no weight."""
    wrong = [["even" if label == "odd" else "odd" for label in own] for own in Y]
    weights = np.repeat([1.0, 0.0], len(X))
    crf = LinearCRF(l2=0.1, feature_induction=INDUCTION).fit(
        X + X, Y + wrong, sample_weight=weights
    )
    assert crf.induced_features_[0] == ("a", "b")
    assert crf.score(X, Y) == 1


def test_unknown_labels_say_nothing():
    hidden = [[None if t % 3 == 1 else label for t, label in enumerate(own)] for own in Y]
    crf = LinearCRF(l2=0.1, feature_induction=INDUCTION).fit(X, hidden)
    assert crf.induced_features_[0] == ("a", "b")
    assert crf.score(X, Y) == 1
    assert (np.diff(crf.history_["objective"]) <= 0).all()
    alone = LinearCRF(l2=0.1, edges=None, feature_induction=INDUCTION)
    known = [
        [x for x, label in zip(*own, strict=True) if label] for own in zip(X, hidden, strict=True)
    ]
    labels = [[label for label in own if label] for own in hidden]
    one = clone(alone).fit(X, hidden).induced_features_
    assert one == clone(alone).fit(known, labels).induced_features_


def test_runs_and_threads_agree(induced):
    for n_jobs in (1, 2):
        again = LinearCRF(l2=0.1, feature_induction=INDUCTION, n_jobs=n_jobs).fit(X, Y)
        assert again.induced_features_ == induced.induced_features_
        np.testing.assert_array_equal(marginals(again), marginals(induced))


@pytest.mark.parametrize("induction", [2, INDUCTION], ids=["number", "settings"])
def test_a_saved_model_is_the_same(tmp_path, induction):
    crf = LinearCRF(l2=0.1, feature_induction=induction).fit(X, Y)
    crf.save(tmp_path / "m.crfx")
    for other in (load(tmp_path / "m.crfx"), pickle.loads(pickle.dumps(crf))):
        np.testing.assert_array_equal(marginals(other, X_NEW), marginals(crf, X_NEW))
        assert [list(own) for own in other.predict(X_NEW)] == [
            list(own) for own in crf.predict(X_NEW)
        ]
        assert other.induced_features_ == crf.induced_features_
        assert other.get_params() == crf.get_params()


def test_models_without_conjunctions_say_so(tmp_path):
    crf = LinearCRF().fit(X, Y)
    assert crf.induced_features_ == []
    assert LinearCRF(feature_induction=0).fit(X, Y).induced_features_ == []
    crf.save(tmp_path / "m.crfx")
    assert load(tmp_path / "m.crfx").induced_features_ == []


def test_scikit_learn_handles_it():
    crf = LinearCRF(l2=0.1, feature_induction=INDUCTION)
    assert clone(crf).get_params() == crf.get_params()
    grid = {"feature_induction": [None, 1, INDUCTION]}
    search = GridSearchCV(LinearCRF(l2=0.1), grid, cv=3).fit(X, Y)
    assert search.best_params_["feature_induction"] is not None
    assert search.best_score_ > 0.95
    pipeline = make_pipeline(FunctionTransformer(lambda X: [list(x) for x in X]), crf).fit(X, Y)
    assert pipeline.score(X_NEW, Y_NEW) == 1


def test_weights_go_on_with_the_conjunctions(induced):
    """From where they were, on new names too, and with rounds of its own."""
    same = LinearCRF(l2=0.1, max_iter=0).fit(X, Y, init_model=induced)
    np.testing.assert_array_equal(marginals(same), marginals(induced))
    more = [[[*own, "new"] for own in instance] for instance in X]
    grown = LinearCRF(l2=0.1, max_iter=0).fit(more, Y, init_model=induced)
    assert grown.n_features_in_ == 6
    assert grown.induced_features_ == induced.induced_features_
    np.testing.assert_allclose(marginals(grown, more), marginals(induced), atol=ROUNDING)
    further = LinearCRF(l2=0.1, feature_induction=FeatureInduction(1, 1, min_gain=0.01))
    further.fit(more, Y, init_model=induced)
    n_before = len(induced.induced_features_)
    assert further.induced_features_[:n_before] == induced.induced_features_
    assert len(further.induced_features_) == n_before + 1
    swept = LinearCRF("sgd", l2=0.1, sweeps=2, random_state=0).fit(X, Y, init_model=induced)
    assert swept.induced_features_ == induced.induced_features_
    assert swept.score(X, Y) == 1


def test_it_is_a_base_and_stands_on_one(induced):
    above = GBCRF(1, random_state=0).fit(X, Y, init_model=induced)
    assert above.score(X, Y) == 1
    base = LinearCRF(edges=None, l2=0.1, feature_induction=1).fit(X, Y)
    higher = LinearCRF(l2=0.1, feature_induction=1).fit(X, Y, init_model=base)
    assert higher.score(X, Y) == 1


def test_early_stopping_restores_the_best_weights():
    """Of an earlier round: labels are drawn at random, and what is learned from them is wrong."""
    random = np.random.default_rng(0)
    wrong = [random.choice(["odd", "even"], len(own)) for own in Y]
    crf = LinearCRF(
        l2=0.0,
        early_stopping_rounds=12,
        feature_induction=FeatureInduction(6, 1, min_gain=0, iterations=3),
    )
    crf.fit(X, wrong, eval_set=(X_NEW, Y_NEW))
    metric = crf.history_["eval_metric"]
    assert crf.best_iteration_ == int(np.argmin(metric)) < crf.n_iter_ - 1
    assert crf.best_iteration_ < 3 * (len(crf.induced_features_) - 1)
    n_rows = sum(map(len, Y_NEW))
    assert -crf.log_likelihood(X_NEW, Y_NEW).sum() / n_rows == pytest.approx(
        min(metric), rel=ROUNDING
    )


def test_callbacks_stop_and_save_between_rounds(tmp_path):
    path = tmp_path / "m.crfx"
    callbacks = [Checkpoint(path, every=1), lambda progress: progress.n_rounds == 15]
    crf = LinearCRF(l2=0.1, feature_induction=INDUCTION).fit(X, Y, callbacks=callbacks)
    assert crf.n_iter_ == 15
    assert 0 < len(crf.induced_features_) <= 2
    np.testing.assert_array_equal(marginals(load(path)), marginals(crf))


DENSE, LABELS = make_task()


@pytest.mark.parametrize(
    ("arguments", "data", "message"),
    [
        ({}, (DENSE, LABELS), "feature_induction needs sparse features .* X is dense"),
        ({"trainer": "sgd"}, (X, Y), "feature_induction is for trainer .lbfgs., not 'sgd'"),
        ({"feature_induction": -1}, (X, Y), "feature_induction is -1: it must be a whole number"),
        ({"feature_induction": True}, (X, Y), "feature_induction is True"),
        ({"feature_induction": "yes"}, (X, Y), "feature_induction is 'yes'"),
        ({"feature_induction": FeatureInduction(1.5)}, (X, Y), "rounds is 1.5: it must be a whole"),
        ({"feature_induction": FeatureInduction(per_round=0)}, (X, Y), "per_round is 0"),
        ({"feature_induction": FeatureInduction(candidates=0)}, (X, Y), "candidates is 0"),
        ({"feature_induction": FeatureInduction(min_gain=-1)}, (X, Y), "min_gain is -1"),
        ({"feature_induction": FeatureInduction(min_count=-1)}, (X, Y), "min_count is -1"),
        ({"feature_induction": FeatureInduction(confidence=0)}, (X, Y), "confidence is 0: it must"),
        ({"feature_induction": FeatureInduction(iterations=-1)}, (X, Y), "iterations is -1"),
    ],
)
def test_what_cannot_be_is_refused(arguments, data, message):
    crf = LinearCRF(**{"feature_induction": 2, **arguments})
    with pytest.raises(ValueError, match=message):
        crf.fit(*data)
    assert not hasattr(crf, "model_")


@pytest.mark.parametrize("trainer", ["lbfgs", "perceptron"])
def test_partial_fit_is_refused(trainer):
    with pytest.raises(ValueError, match=r"partial_fit needs a trainer|is for trainer"):
        LinearCRF(trainer, feature_induction=1).partial_fit(X, Y)


@pytest.mark.parametrize(
    ("starts", "columns", "message"),
    [
        ([0, 2], [0, 5], "not of two or more columns"),
        ([0, 2], [-1, 1], "not of two or more columns"),
        ([0, 1, 2], [0, 1], "not of two or more columns"),
        ([0, 2], [0, 1, 2], "begin and end in wrong places"),
        ([0, 2], [1, 0], "not in order"),
        ([0, 2, 4], [0, 1, 2, 3], "weights node are not those of 7 features"),
        ([0.0, 2.0], [0, 1], "of another type"),
    ],
)
def test_broken_conjunctions_are_not_loaded(tmp_path, monkeypatch, starts, columns, message):
    crf = LinearCRF(l2=0.1, feature_induction=FeatureInduction(1, 1)).fit(X, Y)
    found = crf.model_.node.conjunctions
    crf.save(tmp_path / "good.crfx")
    assert len(load(tmp_path / "good.crfx").induced_features_) == 1
    broken = type(found)(np.array(starts), np.array(columns))
    monkeypatch.setattr(crf.model_.node, "conjunctions", broken)
    crf.save(tmp_path / "bad.crfx")
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "bad.crfx")
