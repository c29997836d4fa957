"""Parameters of workers that sweep on their own: their mean, by how many instances each has."""

import numpy as np

from crfx.distributed.together import together
from crfx.trainers.averaging import averaged
from crfx.trainers.communicator import ALONE
from crfx.trainers.sgd import AveragedParameters

EXACT = {"rtol": 1e-12}


def moved(steps):
    """Parameters after steps of 1, all but the first of which count, each of which shrinks them."""
    found = AveragedParameters(np.zeros(2))
    for number in range(steps):
        found.read(slice(None))
        found.step(slice(None), np.array([1.0, -2.0]), 0.9, counts=number > 0)
    return found


def test_they_meet_at_their_mean():
    steps, weights = [3, 6, 2], [2.0, 1.0, 0.0]

    def work(workers):
        own = moved(steps[workers.rank])
        averaged(own, weights[workers.rank], workers)
        return own

    for own in together(3, work):
        expected = [(2 * first + second) / 3 for first, second in zip(*both(steps), strict=True)]
        np.testing.assert_allclose(own.values, expected[0], **EXACT)
        np.testing.assert_allclose(own.average(), expected[1], **EXACT)
        assert own.state()[0]["n_counted"] == 3  # of 2 and 5 steps that count


def both(steps):
    """Values and averages of the two workers that have instances."""
    return [(own.state()[1]["values"], own.average()) for own in map(moved, steps[:2])]


def test_before_steps_count_there_is_nothing_to_average():
    def work(workers):
        own = moved(1)
        averaged(own, 1.0, workers)
        return own

    for own in together(2, work):
        np.testing.assert_allclose(own.average(), moved(1).average(), **EXACT)
        assert own.state()[0]["n_counted"] == 0


def test_one_alone_keeps_its_own():
    own, before = moved(4), moved(4)
    averaged(own, 5.0, ALONE)
    np.testing.assert_array_equal(own.average(), before.average())
    assert own.state()[0] == before.state()[0]
