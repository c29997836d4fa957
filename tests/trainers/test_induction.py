"""Gains of new features: against the objective itself where positions are independent."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar

from crfx.features.conjunctions import Conjunctions
from crfx.trainers import induction
from crfx.trainers.induction import FeatureInduction, Positions, best_weights, choose, gains

RANDOM = np.random.default_rng(1)
ROWS, LABELS = 80, 3
SCORES = RANDOM.normal(size=(ROWS, LABELS)) * 2
TRUTH = RANDOM.integers(LABELS, size=ROWS)
WEIGHTS = RANDOM.uniform(0.2, 3.0, ROWS)
BINARY = (RANDOM.random((ROWS, 5)) < 0.3).astype(np.float32)
VALUED = BINARY * RANDOM.normal(size=BINARY.shape).astype(np.float32) * 3
EXACT = 1e-6
"""Gains by Newton's method and by SciPy's search."""


def loss(scores):
    """sum_t -w_t log p_t(y_t), positions independent."""
    log_z = np.log(np.exp(scores).sum(axis=1))
    return float(WEIGHTS @ (log_z - scores[np.arange(ROWS), TRUTH]))


def positions(l1=0.0, l2=0.0, **more):
    p = np.exp(SCORES)
    return Positions(p / p.sum(axis=1, keepdims=True), TRUTH, WEIGHTS, l1, l2, **more)


def brute_force(column, label, l1, l2):
    """Return how much one weight can lower the objective, according to SciPy, and the weight."""

    def objective(mu):
        scores = SCORES.copy()
        scores[:, label] += mu * column
        return loss(scores) + l1 * abs(mu) + l2 * mu**2

    result = [
        minimize_scalar(objective, bounds=bounds, method="bounded", options={"xatol": 1e-9})
        for bounds in ((-15, 0), (0, 15))
    ]
    best = min(result, key=lambda each: each.fun)
    return loss(SCORES) - best.fun, best.x


def check_gains(columns, at, l1, l2):
    candidates, labels = np.divmod(np.arange(5 * LABELS), LABELS)
    mu, gain = best_weights(sparse.csc_matrix(columns), candidates, labels, at)
    expected = [
        brute_force(columns[:, c], y, l1, l2) for c, y in zip(candidates, labels, strict=True)
    ]
    np.testing.assert_allclose(gain, [max(each[0], 0) for each in expected], atol=EXACT)
    return mu, np.array([each[1] for each in expected])


@pytest.mark.parametrize(
    ("columns", "l1", "l2"),
    [(BINARY, 0.0, 0.3), (VALUED, 0.5, 0.1), (BINARY, 0.5, 0.1), (VALUED, 0.0, 2.0)],
)
def test_the_gain_is_that_of_the_objective(columns, l1, l2):
    mu, expected = check_gains(columns, positions(l1, l2), l1, l2)
    np.testing.assert_allclose(mu, expected, atol=1e-3)
    assert np.abs(mu).max() > 0.2


def test_another_gain_is_seen():
    """The companion of the test above."""
    for wrong in ({"l2": 0.31}, {"l1": 0.01}):
        with pytest.raises(AssertionError):
            check_gains(BINARY, positions(**{"l2": 0.3, **wrong}), 0.0, 0.3)


def test_chunks_do_not_matter(monkeypatch):
    candidates, labels = np.divmod(np.arange(5 * LABELS), LABELS)
    whole = best_weights(sparse.csc_matrix(VALUED), candidates, labels, positions(l2=0.1))
    monkeypatch.setattr(induction, "MOST_ENTRIES", 7)
    parts = best_weights(sparse.csc_matrix(VALUED), candidates, labels, positions(l2=0.1))
    np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-12)


def test_a_penalty_may_leave_nothing_to_gain():
    assert (gains(sparse.csc_matrix(BINARY), positions(l1=1e3)) == 0).all()


def test_a_weight_without_a_maximum_stays_finite():
    """A feature that occurs with one label only, and no penalty."""
    column = (TRUTH == 1).astype(np.float32)[:, None]
    for size in (1.0, 1e-6, 1e6):
        mu, gain = best_weights(
            sparse.csc_matrix(column * np.float32(size)), np.array([0]), np.array([1]), positions()
        )
        assert np.isfinite(mu).all()
        assert gain[0] == pytest.approx(WEIGHTS[TRUTH == 1] @ -np.log(positions().p[TRUTH == 1, 1]))


def test_gains_are_finite_where_positions_are_certain():
    for certain in (0.0, 1.0):
        p = np.column_stack([np.full(ROWS, certain), np.full(ROWS, 1 - certain)])
        at = Positions(p, TRUTH % 2, WEIGHTS, 0.0, 0.1, observed=False)
        assert np.isfinite(gains(sparse.csc_matrix(VALUED), at)).all()


def test_labels_unseen_with_a_column_have_zero_weight():
    column = sparse.csc_matrix((TRUTH == 1).astype(np.float32)[:, None])
    result = gains(column, positions(l2=0.1))[0]
    assert result == pytest.approx(brute_force(column.toarray()[:, 0], 1, 0, 0.1)[0], abs=EXACT)
    mostly_0 = np.tile([0.8, 0.1, 0.1], (ROWS, 1))  # to lower label 0 helps most, if it may be
    column = sparse.csc_matrix((TRUTH != 0).astype(np.float32)[:, None])
    seen, every = (
        gains(column, Positions(mostly_0, TRUTH, WEIGHTS, 0.0, 0.1, observed))[0]
        for observed in (True, False)
    )
    assert every > 1.2 * seen > 0


EASY = FeatureInduction(min_count=1, min_gain=0.0, confidence=1.0)
NONE = Conjunctions.of([])


def xor(n=40):
    """Columns a, b, a copy of b, noise, a column that holds everywhere; the truth is a xor b."""
    a, b, noise = np.random.default_rng(0).integers(2, size=(3, n))
    X = np.column_stack([a, b, b, noise, np.ones(n)]).astype(np.float32)
    at = Positions(np.full((n, 2), 0.5), a ^ b, np.ones(n), 0.0, 0.1)
    return sparse.csr_matrix(X), at


def test_the_conjunction_that_explains_is_chosen_first():
    X, at = xor()
    conjunctions, gain = choose(X, NONE, at, EASY)
    assert conjunctions.sets()[0] == (0, 1)
    assert (np.diff(gain) <= 0).all()
    assert gain[0] > 1.5 * gain[1]


def test_existing_columns_are_not_added():
    """A copy of b makes a & b a duplicate; the constant makes every column a duplicate."""
    X, at = xor()
    result = choose(X, NONE, at, EASY)[0].sets()
    values = [tuple(X.toarray()[:, columns].prod(axis=1)) for columns in map(list, result)]
    assert len(set(values)) == len(values)
    assert not any(4 in columns or columns == (1, 2) for columns in result)
    again = choose(X, Conjunctions.of(result), at, EASY)[0].sets()
    assert not set(again) & set(result)


def test_known_conjunctions_are_no_candidates():
    X, at = xor()
    X = X[:, [0, 1, 3]]
    one = replace(EASY, candidates=1)
    first = choose(X, NONE, at, one)[0]
    second = choose(X, first, at, one)[0]
    assert first.sets() == [(0, 1)]
    assert len(second) == 1


def test_any_label_may_propose():
    """Columns 0 and 1 meet with one label only."""
    X, _ = xor()
    both = (X.toarray()[:, :2] == 1).all(axis=1)
    for label in range(3):
        labels = np.where(both, label, (label + 1 + np.arange(40) % 2) % 3)
        at = Positions(np.full((40, 3), 1 / 3), labels, np.ones(40), 0.0, 0.1)
        assert choose(X, NONE, at, EASY)[0].sets()[0] == (0, 1)


def test_conjunctions_grow():
    X, at = xor()
    result = choose(X, Conjunctions.of([(0, 1)]), at, EASY)[0].sets()
    assert (0, 1, 3) in result
    assert (0, 1) not in result


def test_settings_limit_the_choice():
    X, at = xor()
    plain = len(choose(X, NONE, at, EASY)[0])
    for setting, expected in (
        ({"per_round": 2}, 2),
        ({"candidates": 1}, 1),
        ({"min_count": 41}, 0),
        ({"min_gain": 1e3}, 0),
        ({"confidence": 0.4}, 0),
    ):
        few = choose(X, NONE, at, replace(EASY, **setting))[0]
        assert len(few) == expected < plain, setting


def test_only_unsure_positions_propose():
    """Noise and a meet where the model is sure: they are no candidate."""
    X, at = xor()
    sure = (X.toarray()[:, [0, 3]] == 1).all(axis=1)
    at.p[sure] = np.where(np.arange(2) == at.labels[sure, None], 0.99, 0.01)
    result = choose(X, NONE, at, replace(EASY, confidence=0.95))[0].sets()
    assert (0, 3) not in result
    assert (0, 3) in choose(X, NONE, at, EASY)[0].sets()


def test_weights_count_as_copies():
    X, at = xor()
    settings = FeatureInduction(min_count=12, min_gain=0.0)
    heavy = Positions(at.p, at.labels, np.full(40, 2.0), 0.0, 0.1)
    double = Positions(np.tile(at.p, (2, 1)), np.tile(at.labels, 2), np.ones(80), 0.0, 0.1)
    one = choose(X, NONE, heavy, settings)
    two = choose(sparse.vstack([X, X], format="csr"), NONE, double, settings)
    assert set(one[0].sets()) == set(two[0].sets())  # some gain the same, up to rounding
    np.testing.assert_allclose(one[1], two[1], rtol=1e-6)
    assert len(choose(X, NONE, at, settings)[0]) < len(one[0])
