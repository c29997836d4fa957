"""Tables of shared scores: their Newton steps, their penalty, and going back to a round."""

import numpy as np
import pytest

from crfx.potentials.transitions import Tables

EXACT32 = {"rtol": 1e-6, "atol": 0}
SHAPES = {"edge": (3, 3), "start": (3,)}
STEPS = (1.0, 0.3, 0.125, 0.7, 0.05)


def arrays(seed, low=-1.0, high=1.0):
    random = np.random.default_rng(seed)
    return {
        name: random.uniform(low, high, size=shape).astype(np.float32)
        for name, shape in SHAPES.items()
    }


def trained(steps=STEPS, l2=0.5):
    """Tables after some rounds, and copies of them after each, the start included."""
    tables = Tables(arrays(0), l2)
    seen = [copied(tables.tables)]
    for number, step in enumerate(steps):
        tables.accept(arrays(10 + number), step)
        seen.append(copied(tables.tables))
    return tables, seen


def copied(tables):
    return {name: table.copy() for name, table in tables.items()}


def assert_equal(actual, expected):
    assert actual.keys() == expected.keys()
    for name, table in expected.items():
        assert actual[name].dtype == np.float32
        np.testing.assert_array_equal(actual[name], table)


@pytest.mark.parametrize("l2", [0.0, 0.5, 3.0])
def test_propose_takes_the_newton_step(l2):
    """The minimum of G d + H d^2 / 2 and the penalty, as `penalty` counts it."""
    start, gradient, curvature = arrays(0), arrays(1), arrays(2, low=0.1)
    tables = Tables(start, l2)
    delta = tables.propose(gradient, curvature)
    for name in SHAPES:
        expected = -(gradient[name] + l2 * start[name]) / (curvature[name] + l2)
        np.testing.assert_allclose(delta[name], expected, **EXACT32)
        assert delta[name].dtype == np.float32

    def model(step):
        linear = sum(np.vdot(gradient[name], delta[name]) for name in SHAPES)
        square = sum(np.sum(curvature[name] * delta[name] ** 2) for name in SHAPES)
        return step * linear + step**2 * square / 2 + tables.penalty(delta, step)

    assert model(1.0) < min(model(0.99), model(1.01), model(0.0))


def test_propose_moves_entries_without_curvature_by_penalty():
    """An event that never occurs has neither slope nor curvature."""
    start, gradient, curvature = arrays(0), arrays(1), arrays(2, low=0.1)
    gradient["edge"][0, 1] = curvature["edge"][0, 1] = 0
    curvature["start"][:] = 0
    shrunk = Tables(start, 0.5).propose(gradient, curvature)
    np.testing.assert_allclose(shrunk["edge"][0, 1], -start["edge"][0, 1], **EXACT32)
    free = Tables(start, 0.0).propose(gradient, curvature)
    assert free["edge"][0, 1] == 0
    assert (free["edge"].ravel()[[0, 2, 3]] != 0).all()
    np.testing.assert_array_equal(free["start"], 0)  # no division by zero
    assert np.isfinite(free["edge"]).all()
    assert_equal(start, arrays(0))  # what was passed stays as it is


def test_penalty_includes_pending_step():
    tables, delta = Tables(arrays(0), 0.5), arrays(1)
    squares = sum(np.sum(table.astype(np.float64) ** 2) for table in arrays(0).values())
    np.testing.assert_allclose(tables.penalty(), 0.25 * squares, rtol=1e-12)
    assert Tables(arrays(0), 0.0).penalty() == 0
    pending = tables.penalty(delta, 0.3)
    assert_equal(tables.tables, arrays(0))
    assert tables.penalty(delta, 0.0) == tables.penalty() != pending
    tables.accept(delta, 0.3)
    np.testing.assert_allclose(pending, tables.penalty(), rtol=1e-6)


def test_rounds_can_be_seen_again_and_restored():
    """Bit by bit, so that a saved model goes on as the one that stayed in memory."""
    tables, seen = trained()
    rounds = tables.rounds()
    again = Tables.from_rounds(rounds, tables.l2)
    assert again.l2 == tables.l2
    for number, expected in enumerate(seen):
        assert_equal(tables.at_round(number), expected)
        assert_equal(again.at_round(number), expected)
    assert_equal(tables.at_round(None), seen[-1])
    assert_equal(tables.tables, seen[-1])
    assert_equal(again.rounds(), rounds)
    assert any(not np.array_equal(seen[2][name], seen[3][name]) for name in SHAPES)
    unmoved = Tables(arrays(0), 1.0)
    assert_equal(Tables.from_rounds(unmoved.rounds(), 1.0).tables, arrays(0))


def test_keep_drops_later_rounds_and_their_marks():
    for n_rounds in range(len(STEPS) + 1):
        tables, seen = trained()
        tables.keep(n_rounds)
        assert_equal(tables.tables, seen[n_rounds])
        assert len(tables.rounds()["edge"]) == n_rounds + 1
        tables.accept(arrays(99), 0.5)
        other = {name: seen[n_rounds][name] + np.float32(0.5) * arrays(99)[name] for name in SHAPES}
        assert_equal(tables.tables, other)
        assert_equal(tables.at_round(n_rounds), seen[n_rounds])
    # Else training that goes on from an earlier round could end up with the tables of old.
    tables, seen = trained()
    tables.mark(len(STEPS))
    tables.keep(2)
    for number in range(2, len(STEPS)):
        tables.accept(arrays(50 + number), 1.0)
    expected = copied(tables.tables)
    tables.keep(len(STEPS))
    assert_equal(tables.tables, expected)


@pytest.fixture
def keeps_three(monkeypatch):
    """Tables that keep three rounds and no more."""
    size = sum(int(np.prod(shape)) for shape in SHAPES.values())
    monkeypatch.setattr(Tables, "MOST_KEPT", 3 * size)


@pytest.mark.usefixtures("keeps_three")
def test_large_tables_are_not_kept_every_round():
    tables, seen = trained(STEPS[:3])
    assert_equal(tables.at_round(1), seen[1])
    tables.keep(1)  # rounds that were dropped do not count
    for seed in (1, 2):
        tables.accept(arrays(seed), 1.0)
    assert tables.rounds() is not None
    tables.accept(arrays(3), 1.0)
    assert tables.rounds() is None
    tables, seen = trained(STEPS[:4])
    assert tables.rounds() is None
    assert_equal(tables.at_round(None), seen[-1])
    assert_equal(tables.at_round(4), seen[-1])
    for ask in (tables.at_round, tables.keep):
        with pytest.raises(ValueError, match="too large to be kept for every round"):
            ask(2)
    tables = Tables.from_sum(arrays(0), 0.5, 10)  # its rounds are lost
    assert tables.rounds() is None
    assert_equal(tables.at_round(10), arrays(0))
    with pytest.raises(ValueError, match="too large to be kept"):
        tables.at_round(9)
    tables.accept(arrays(1), 1.0)
    with pytest.raises(ValueError, match="too large to be kept"):
        tables.at_round(10)


@pytest.mark.usefixtures("keeps_three")
def test_marked_round_can_be_kept_at_any_time():
    """Early stopping: the best round may lie before the one that was too much."""
    for best in range(1, len(STEPS) + 1):
        tables, seen = Tables(arrays(0), 0.5), trained()[1]
        for number, step in enumerate(STEPS):
            tables.accept(arrays(10 + number), step)
            if number + 1 == best:
                tables.mark(best)
        tables.keep(best)
        assert_equal(tables.tables, seen[best])
        assert_equal(tables.at_round(best), seen[best])
