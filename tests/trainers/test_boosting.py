"""Boosting lowers the objective in every round, whatever curvature, structure and step."""

import numpy as np
import pytest

from crfx import GBCRF
from crfx.potentials.xgboost_learner import XGBoostLearner
from tests.pairwise import pairwise

ONE = {"random_state": 0, "n_jobs": 1}
CURVATURES = ["mixing", "dobrushin", "exact", "length", "diagonal", 0.3, None]


def random_task(seed, n_labels=3, shape="chain", n_instances=25):
    """Return instances with some signal and some noise; parents of forests, or types of edges."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 9, n_instances)
    y = [list(random.integers(n_labels, size=length)) for length in lengths]
    X = [
        random.normal(size=(n, 4)) + np.array(labels)[:, None]
        for n, labels in zip(lengths, y, strict=True)
    ]
    structure = {}
    if shape == "forest":
        structure["parents"] = [
            np.array([-1, *(random.integers(t) for t in range(1, n))], dtype=np.int64)
            for n in lengths
        ]
    elif shape == "typed":
        structure["edge_types"] = [random.integers(2, size=n) for n in lengths]
    return X, y, structure


def assert_same_marginals(one, other, X):
    for ours, theirs in zip(one.predict_marginals(X), other.predict_marginals(X), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def assert_falls(history):
    assert (np.diff(history["objective"]) <= 0).all()


@pytest.mark.parametrize(
    ("shape", "curvature", "learning_rate"),
    pairwise(["chain", "forest", "typed"], CURVATURES, [0.3, 1.0]),
)
def test_the_objective_never_rises(shape, curvature, learning_rate):
    X, y, structure = random_task(0, shape=shape)
    settings = {"max_depth": 4, "curvature": curvature, "min_child_weight": 0.0}
    crf = GBCRF(8, learning_rate, **settings, **ONE).fit(X, y, **structure)
    assert_falls(crf.history_)
    if curvature in ("mixing", "dobrushin", "exact", "length") and learning_rate == 0.3:
        assert sum(crf.history_["halvings"]) == 0


@pytest.mark.parametrize("edges", ["table", "linear", "trees", None])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_every_family_and_order(edges, order):
    X, y, _ = random_task(1)
    crf = GBCRF(6, 0.5, max_depth=3, edges=edges, order=order, **ONE).fit(X, y)
    assert_falls(crf.history_)
    assert crf.history_["objective"][-1] < 0.8 * sum(map(len, y)) * np.log(3)


def test_steps_without_a_bound_are_halved():
    """The companion: with far too little curvature the safeguard has work to do."""
    X, y, _ = random_task(2)
    crf = GBCRF(8, 1.0, curvature=0.05, min_child_weight=0.0, reg_lambda=0.0, **ONE)
    crf.fit(X, y)
    assert sum(crf.history_["halvings"]) > 0
    assert_falls(crf.history_)


STEEP = {"learning_rate": 1.0, "curvature": 0.05, "min_child_weight": 0.0, "reg_lambda": 0.0}
"""Far too little curvature: steps are halved."""


@pytest.mark.parametrize("edges", ["table", "linear", "trees"])
def test_followed_scores_take_the_halved_step(edges):
    """Metrics see the scores of the model, not of the proposed steps."""
    X, y, _ = random_task(2)
    X_dev, y_dev, _ = random_task(3)
    n_rows = sum(map(len, y_dev))
    halvings = []
    for n_rounds in (1, 2, 4):
        crf = GBCRF(n_rounds, edges=edges, **ONE, **STEEP)
        crf.fit(X, y, eval_set=(X_dev, y_dev))
        loss = -crf.log_likelihood(X_dev, y_dev).sum() / n_rows
        np.testing.assert_allclose(crf.history_["eval_metric"][-1], loss, rtol=1e-4)
        halvings = crf.history_["halvings"]
    assert sum(halvings) > 0


@pytest.mark.parametrize("edges", ["table", "linear"])
def test_a_step_that_lowers_the_penalty_is_taken(edges):
    """Though the likelihood alone becomes worse."""
    X, y, _ = random_task(1)
    free = GBCRF(20, edges=edges, edge_l2=0.0, **ONE).fit(X, y)
    settings = {"reg_lambda": 1e9, "learning_rate": 1.0, "edge_l2": 1e4}
    bound = GBCRF(1, edges=edges, **ONE, **settings).fit(X, y, init_model=free)
    assert bound.history_["halvings"][-1] == 0
    for old, new in zip(
        [*free.model_.edge.tables.values(), *free.model_.ends.tables.values()],
        [*bound.model_.edge.tables.values(), *bound.model_.ends.tables.values()],
        strict=True,
    ):
        assert np.abs(new).max() < 0.01 * np.abs(old).max()
    assert bound.log_likelihood(X, y).sum() < free.log_likelihood(X, y).sum()


@pytest.mark.parametrize(
    ("edges", "edge_l2"), [("table", 1.0), ("linear", 3.0), ("table", 10.0), ("linear", 30.0)]
)
def test_a_step_that_raises_the_penalty_too_much_is_halved(edges, edge_l2):
    """Though the likelihood alone becomes better."""
    X, y, _ = random_task(1)
    settings = {"curvature": 0.001, "learning_rate": 1.0, "reg_lambda": 1e9, "edge_l2": edge_l2}
    crf = GBCRF(6, edges=edges, **ONE, **settings).fit(X, y)
    assert_falls(crf.history_)


def test_every_round_samples_instances_anew_for_nodes_and_edges(monkeypatch):
    calls, grow = [], XGBoostLearner.grow

    def recording(self, matrix, gradient, curvature, number):
        calls.append((number, np.array(curvature)))
        return grow(self, matrix, gradient, curvature, number)

    monkeypatch.setattr(XGBoostLearner, "grow", recording)
    X, y, _ = random_task(4, n_instances=40)
    GBCRF(4, subsample=0.5, edges="trees", **ONE).fit(X, y)
    lengths = list(map(len, y))
    starts = np.cumsum([0, *lengths[:-1]])
    ends_an_edge = np.ones(sum(lengths), dtype=bool)
    ends_an_edge[starts] = False
    looked_at = {}
    for number, curvature in calls:
        rows = (curvature != 0).any(axis=1)
        if len(rows) == len(ends_an_edge):
            looked_at[number] = rows
            np.testing.assert_array_equal(rows, np.repeat(rows[starts], lengths))
            assert 0.2 < rows[starts].mean() < 0.8
        else:
            np.testing.assert_array_equal(rows, looked_at[number][ends_an_edge])
    assert len(calls) == 8
    assert len({rows.tobytes() for rows in looked_at.values()}) == 4


@pytest.mark.parametrize("edges", ["table", "linear"])
def test_a_number_is_the_curvature_of_edges_too(edges):
    """Twice the curvature, half the step."""
    X, y, _ = random_task(1)
    still = {"reg_lambda": 1e12, "edge_l2": 0.0} | ONE
    once, twice = (
        GBCRF(1, 0.1, curvature=gamma, edges=edges, **still).fit(X, y).model_ for gamma in (4, 8)
    )
    for tables, halves in ((once.edge, twice.edge), (once.ends, twice.ends)):
        for name, table in tables.tables.items():
            assert np.abs(table).max() > 0.01
            np.testing.assert_allclose(halves.tables[name], table / 2, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("edges", ["table", "linear", "trees"])
def test_first_order_steps_have_no_penalties(edges):
    X, y, _ = random_task(1)
    settings = {"curvature": None, "edges": edges} | ONE
    bare, asked = (
        GBCRF(3, edge_l2=penalty, reg_lambda=penalty, **settings).fit(X, y)
        for penalty in (0.0, 100.0)
    )
    assert bare.history_["objective"] == asked.history_["objective"]
    assert_same_marginals(bare, asked, X)


def test_an_interrupted_round_leaves_nothing_behind(monkeypatch):
    """Its node trees are kept already when its edge trees are grown."""
    X, y, _ = random_task(1)
    settings = {"edges": "trees"} | ONE
    three = GBCRF(3, **settings).fit(X, y)
    grow = XGBoostLearner.grow

    def interrupted(self, matrix, gradient, curvature, number):
        if number == 3 and gradient.shape[1] == 9:
            raise KeyboardInterrupt
        return grow(self, matrix, gradient, curvature, number)

    monkeypatch.setattr(XGBoostLearner, "grow", interrupted)
    crf = GBCRF(9, **settings)
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X, y)
    assert crf.n_rounds_ == 3
    assert [function.n_rounds for function in crf.model_.growing] == [3, 3]
    assert {len(entries) for entries in crf.history_.values()} == {3}
    assert_same_marginals(crf, three, X)
