"""LinearCRF where things meet: bases that grow, empty instances, odd features, partial_fit."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from crfx import GBCRF, LinearCRF, load
from crfx.testing import make_task
from crfx.trainers import epochs

X, Y = make_task()
SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 0.8, 0, x)) for x in X]
WORDS = [[["a"], ["b"], ["c"]], [["a"], ["c"]]]
TAGS = [["D", "N", "V"], ["D", "V"]]
SWEEPING = ("sgd", "perceptron", "large_margin")
TYPES = [np.arange(len(x)) % 2 for x in X]


def marginals(crf, X=X, **structure):
    return np.concatenate(crf.predict_marginals(X, **structure))


def test_new_words_are_left_out_where_a_base_does_not_know_them():
    base = LinearCRF(edges=None, max_iter=5).fit(WORDS, TAGS)
    above = LinearCRF(max_iter=5).fit(WORDS, TAGS, init_model=base)
    many = [[[f"new{k}"] for k in range(2000)]]
    with pytest.warns(UserWarning, match="none of the 2000 features"):
        more = LinearCRF(max_iter=5).fit(many, [["D"] * 2000], init_model=above)
    assert more.n_features_in_ == 3
    assert more.model_.base is base.model_
    sweeping = LinearCRF("perceptron").fit(WORDS, TAGS, init_model=base)
    with pytest.warns(UserWarning, match="none of the 2000 features"):
        assert sweeping.partial_fit(many, [["D"] * 2000]).n_features_in_ == 3
    before, rows = sweeping.model_.base.n_labels, sweeping._input(WORDS, None, None, None, None)
    sweeping.partial_fit(WORDS, [["D", "N", "Q"], ["D", "Q"]], classes=["Q"])
    assert sweeping.model_.base.n_labels == before + 1
    assert base.model_.n_labels == before
    now, then = (own.problem(rows.batch).scores.node for own in (sweeping.model_.base, base.model_))
    np.testing.assert_allclose(now[:, [0, 1, 3]], then, rtol=1e-6)


def test_the_constant_feature_of_edges_stays_the_constant():
    old = LinearCRF("perceptron", edges="linear", features="all", random_state=0)
    for _ in range(3):
        old.partial_fit(WORDS, TAGS)
    more = LinearCRF("perceptron", edges="linear", features="all", sweeps=0)
    more.fit([[["a"], ["NEW"]]], [["D", "N"]], init_model=old)
    np.testing.assert_allclose(marginals(more, WORDS), marginals(old, WORDS), atol=1e-6)


def test_partial_fit_goes_on_from_the_fit_before_it():
    crf = LinearCRF("perceptron", random_state=0)
    crf.partial_fit(X[:1], Y[:1], classes=["L0", "L1", "L2"])
    crf.set_params(sweeps=10).fit(X, Y)
    fitted = LinearCRF("perceptron", sweeps=10, random_state=0).fit(X, Y)
    crf.partial_fit(X[:1], Y[:1])
    fitted.partial_fit(X[:1], Y[:1])
    np.testing.assert_array_equal(marginals(crf), marginals(fitted))


def test_a_step_that_is_given_counts():
    crf = LinearCRF("perceptron", step=0.1, random_state=0).partial_fit(X, Y)
    before = crf._training.parameters.values.copy()
    crf.set_params(step=1e-9).partial_fit(X, Y)
    assert np.abs(before).max() > 0.1
    np.testing.assert_allclose(crf._training.parameters.values, before, atol=1e-6)


def test_a_first_step_is_sought_once(monkeypatch):
    sought = []

    def spy(*arguments):
        sought.append(arguments)
        return found(*arguments)

    found = epochs.with_good_step
    monkeypatch.setattr(epochs, "with_good_step", spy)
    crf = LinearCRF("sgd", random_state=0)
    for _ in range(3):
        crf.partial_fit(X, Y)
    assert len(sought) == 1


def test_chunks_without_edges_or_known_labels(tmp_path):
    crf = LinearCRF("perceptron", edges="linear").partial_fit(WORDS, TAGS)
    crf.partial_fit([[["a"]]], [["D"]])
    crf.partial_fit(WORDS, [[None] * 3, [None] * 2])
    assert len(crf.predict(WORDS)) == 2
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
    assert [len(own) for own in crf.predict([X[0][:0], X[0]])] == [0, len(X[0])]


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


def test_a_base_with_more_edge_types_than_the_data():
    base = GBCRF(1, random_state=0).fit(X, Y, edge_types=TYPES)
    one_type = [own * 0 for own in TYPES]
    crf = LinearCRF(max_iter=2).fit(X, Y, edge_types=one_type, init_model=base)
    assert crf.transitions_.shape == (2, 3, 3)


def test_edge_types_need_a_base_with_types():
    base = LinearCRF(edges="linear", max_iter=5).fit(X, Y, edge_types=TYPES)
    with pytest.raises(ValueError, match="tables per edge type cannot stand on a base"):
        LinearCRF(max_iter=0).fit(X, Y, edge_types=TYPES, init_model=base)


def test_model_decides_whether_it_is_trained_further():
    """Not the arguments of its estimator, which may have been changed."""
    fitted = LinearCRF(max_iter=5).fit(X, Y).set_params(edges="linear")
    crf = LinearCRF(edges="linear", max_iter=5).fit(X, Y, init_model=fitted)
    assert crf.model_.edge_family == "linear"


def test_labels_to_come_may_be_an_array(tmp_path):
    numbers = [[int(label[1:]) for label in own] for own in Y]
    crf = LinearCRF("perceptron").partial_fit(X, numbers, classes=np.array([0, 1, 2, 3]))
    assert crf.classes_.tolist() == [0, 1, 2, 3]
    crf.save(tmp_path / "m.crfx")
    assert load(tmp_path / "m.crfx").classes_.tolist() == [0, 1, 2, 3]


def test_positions_without_features_are_read_as_words():
    crf = LinearCRF().fit(WORDS, TAGS)
    assert [len(own) for own in crf.predict([[]])] == [0]
    assert [len(own) for own in crf.predict([[[], []]])] == [2]
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


def test_descent_learns_from_features_of_any_size():
    """Where nothing else shares the step, and no penalty stands in the way."""
    settings = {"edges": None, "l2": 0.0, "sweeps": 30, "random_state": 0}
    at = {}
    for scale in (0.01, 1.0, 100.0):
        crf = LinearCRF("sgd", **settings).fit([scale * x for x in X], Y)
        at[scale] = crf.history_["objective"][-1]
    assert (at[0.01], at[100.0]) == pytest.approx((at[1.0], at[1.0]), rel=0.02)


def test_tiny_features_beside_transitions_are_told_of():
    with pytest.warns(ConvergenceWarning, match="than 0.0.* one step .*: scale the features"):
        LinearCRF("sgd", sweeps=1, random_state=0).fit([0.005 * x for x in X], Y)
