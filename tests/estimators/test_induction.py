"""LinearCRF with feature induction: what it learns, keeps, saves and rejects."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from crfx import GBCRF, FeatureInduction, LinearCRF, load
from crfx.features import Template
from crfx.testing import make_task

NAMES = ("a", "b", "c", "d")
INDUCTION = FeatureInduction(rounds=3, per_round=2, iterations=10, min_gain=0.01)
CONVERGED = 1e-2
"""Probabilities of two runs that end near the same minimum."""
ROUNDING = 1e-5
"""Scores of float32, summed in another order."""


def make_xor(seed=0, n_instances=40):
    """Return texts of a, b, c, d and "one", and whether a xor b, which no linear model can say."""
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


def test_conjunctions_learn_nonlinear_labels(induced):
    plain = LinearCRF(l2=0.1).fit(X, Y)
    assert plain.score(X_NEW, Y_NEW) < 0.65
    assert induced.score(X, Y) == induced.score(X_NEW, Y_NEW) == 1
    assert induced.induced_features_[0] == ("a", "b")
    assert 4 < len(induced.induced_features_) <= 6
    assert max(map(len, induced.induced_features_)) > 2
    assert sorted(induced.feature_names_in_) == ["a", "b", "c", "d", "one"]
    assert induced.n_features_in_ == 5
    objective = induced.history_["objective"]
    assert (np.diff(objective) <= 0).all()
    assert objective[-1] < 0.5 * plain.history_["objective"][-1]
    assert len(objective) == induced.n_iter_ > 2 * INDUCTION.iterations


def test_coefficients_of_conjunctions_come_last(induced):
    coef = induced.coef_.toarray()
    assert coef.shape == (2, 5 + len(induced.induced_features_))
    even = coef[list(induced.classes_).index("even")]
    assert even[:2].max() < 0 < 1 < even[5]  # a and b alone; a & b


def test_conjunctions_equal_explicit_features(induced):
    """The conjunctions as features of their own give the same model."""
    wide = [
        [
            [*names, *("&".join(c) for c in induced.induced_features_ if set(c) <= set(names))]
            for names in instance
        ]
        for instance in X
    ]
    plain = LinearCRF(l2=0.1, tol=1e-9).fit(wide, Y)
    crf = LinearCRF(l2=0.1, tol=1e-9, feature_induction=INDUCTION).fit(X, Y)
    np.testing.assert_allclose(marginals(crf), marginals(plain, wide), atol=CONVERGED)


@pytest.mark.parametrize(
    ("data", "first"),
    [(DICTS, {"a", "b"}), (CSR, {0, 1}), (TEMPLATE(COLUMNS), {"a[0]=1", "b[0]=1"})],
    ids=["dicts", "csr", "template"],
)
def test_induction_takes_every_sparse_input(data, first):
    crf = LinearCRF(l2=0.1, feature_induction=INDUCTION).fit(data, Y)
    assert crf.score(data, Y) == 1
    names = {str(name)[0] for name in crf.induced_features_[0]}
    assert names == {str(name)[0] for name in first}
    assert all(
        isinstance(n, type(next(iter(first))))
        for conjunction in crf.induced_features_
        for n in conjunction
    )


def test_stacked_and_dense_rows_are_predicted_alike():
    stacked, lengths = sparse.vstack(CSR, format="csr"), [x.shape[0] for x in CSR]
    crf = LinearCRF(l2=0.1, feature_induction=2).fit(stacked, np.concatenate(Y), lengths=lengths)
    expected = crf.predict_marginals(stacked, lengths=lengths)
    np.testing.assert_allclose(marginals(crf, CSR), expected, atol=ROUNDING)
    dense = [x.toarray() for x in CSR]
    np.testing.assert_allclose(marginals(crf, dense), expected, atol=ROUNDING)
    assert crf.predict([]) == []


def test_hashed_names_are_column_numbers():
    """This holds for forests as well."""
    parents = [np.arange(len(x)) - 1 for x in X]
    crf = LinearCRF(l2=0.1, n_hashed=1000, feature_induction=INDUCTION)
    assert crf.fit(X, Y, parents=parents).score(X, Y, parents=parents) == 1
    assert all(isinstance(column, int) for column in crf.induced_features_[0])


def test_induction_uses_feature_values():
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
    [{"edges": None}, {"features": "all", "edges": "linear"}, {"order": 2}, {"l1": 0.1}],
    ids=str,
)
def test_induction_with_other_arguments(tmp_path, arguments):
    crf = LinearCRF(l2=0.1, feature_induction=INDUCTION, **arguments).fit(X, Y)
    assert crf.score(X, Y) == 1
    assert ("a", "b") in crf.induced_features_
    assert (np.diff(crf.history_["objective"]) <= 0).all()
    crf.save(tmp_path / "m.crfx")
    np.testing.assert_array_equal(marginals(load(tmp_path / "m.crfx")), marginals(crf))


def test_induction_keeps_all_weights_if_features_all():
    """a & b occurs with one label only."""
    coef = [LinearCRF(features=f, feature_induction=1).fit(X, Y).coef_ for f in ("all", "auto")]
    assert (coef[0][:, 5] != 0).all()
    assert np.count_nonzero(coef[1].toarray()[:, 5]) == 1


def test_induction_gains_include_penalties():
    for penalty in ({"l2": 1e6}, {"l1": 50.0}):
        crf = LinearCRF(**penalty, feature_induction=INDUCTION).fit(X, Y)
        assert crf.induced_features_ == []


def test_induction_ignores_unknown_labels():
    hidden = [[None if t % 3 == 1 else label for t, label in enumerate(tags)] for tags in Y]
    crf = LinearCRF(l2=0.1, feature_induction=INDUCTION).fit(X, hidden)
    assert crf.induced_features_[0] == ("a", "b")
    assert crf.score(X, Y) == 1
    assert (np.diff(crf.history_["objective"]) <= 0).all()
    alone = LinearCRF(l2=0.1, edges=None, feature_induction=INDUCTION)
    known = [[x for t, x in enumerate(instance) if t % 3 != 1] for instance in X]
    labels = [[label for label in tags if label] for tags in hidden]
    partly = clone(alone).fit(X, hidden).induced_features_
    assert partly == clone(alone).fit(known, labels).induced_features_


def test_induction_is_equal_for_any_thread_count(induced):
    for n_jobs in (1, 2):
        again = LinearCRF(l2=0.1, feature_induction=INDUCTION, n_jobs=n_jobs).fit(X, Y)
        assert again.induced_features_ == induced.induced_features_
        np.testing.assert_array_equal(marginals(again), marginals(induced))


@pytest.mark.parametrize("induction", [None, 0, 2, INDUCTION])
def test_saved_model_is_the_same(tmp_path, induction):
    crf = LinearCRF(l2=0.1, feature_induction=induction).fit(X, Y)
    assert bool(crf.induced_features_) == bool(induction)
    crf.save(tmp_path / "m.crfx")
    for other in (load(tmp_path / "m.crfx"), pickle.loads(pickle.dumps(crf))):
        np.testing.assert_array_equal(marginals(other, X_NEW), marginals(crf, X_NEW))
        assert other.induced_features_ == crf.induced_features_
        assert other.get_params() == crf.get_params()


def test_warm_start_keeps_the_conjunctions(induced):
    """The weights too, on new names as well, and further rounds add to them."""
    same = LinearCRF(l2=0.1, max_iter=0).fit(X, Y, init_model=induced)
    np.testing.assert_array_equal(marginals(same), marginals(induced))
    more = [[[*names, "new"] for names in instance] for instance in X]
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


def test_base_of_boosting_and_conjunctions_on_a_base(induced):
    above = GBCRF(1, random_state=0).fit(X, Y, init_model=induced)
    assert above.score(X, Y) == 1
    base = LinearCRF(edges=None, l2=0.1, feature_induction=1).fit(X, Y)
    higher = LinearCRF(l2=0.1, feature_induction=1).fit(X, Y, init_model=base)
    assert higher.score(X, Y) == 1


def test_early_stopping_restores_the_best_weights():
    """An earlier round is the best, since random labels of training teach nothing useful."""
    random = np.random.default_rng(0)
    wrong = [random.choice(["odd", "even"], len(labels)) for labels in Y]
    settings = FeatureInduction(6, 1, min_gain=0, iterations=3)
    crf = LinearCRF(l2=0.0, early_stopping_rounds=12, feature_induction=settings)
    crf.fit(X, wrong, eval_set=(X_NEW, Y_NEW))
    metric = crf.history_["eval_metric"]
    assert crf.best_iteration_ == int(np.argmin(metric)) < crf.n_iter_ - 1
    assert crf.best_iteration_ < 3 * (len(crf.induced_features_) - 1)
    loss = -crf.log_likelihood(X_NEW, Y_NEW).sum() / sum(map(len, Y_NEW))
    assert loss == pytest.approx(min(metric), rel=ROUNDING)


def test_fit_rejects_settings():
    """Those at the border; `tests/bad_inputs` has others."""
    settings = {"per_round": 0, "candidates": 0, "min_gain": -1, "min_count": -1}
    for name, value in (settings | {"confidence": 0, "iterations": -1, "rounds": -1}).items():
        with pytest.raises(ValueError, match=f"feature_induction: {name} is {value}: it must"):
            LinearCRF(feature_induction=FeatureInduction(**{name: value})).fit(X, Y)


def test_dense_features_and_partial_fit_raise():
    crf = LinearCRF(feature_induction=2)
    with pytest.raises(ValueError, match=r"feature_induction needs sparse features .* X is dense"):
        crf.fit(*make_task())
    assert not hasattr(crf, "model_")
    for trainer in ("lbfgs", "perceptron"):
        with pytest.raises(ValueError, match=r"partial_fit needs a trainer|is for trainer"):
            LinearCRF(trainer, feature_induction=1).partial_fit(X, Y)


@pytest.fixture(scope="module")
def one_conjunction():
    return LinearCRF(l2=0.1, feature_induction=FeatureInduction(1, 1)).fit(X, Y)


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
def test_load_rejects_broken_conjunctions(
    one_conjunction, tmp_path, monkeypatch, starts, columns, message
):
    crf, path = one_conjunction, tmp_path / "m.crfx"
    crf.save(path)
    assert len(load(path).induced_features_) == 1
    broken = type(crf.model_.node.conjunctions)(np.array(starts), np.array(columns))
    monkeypatch.setattr(crf.model_.node, "conjunctions", broken)
    crf.save(path)
    with pytest.raises(ValueError, match=message):
        load(path)
