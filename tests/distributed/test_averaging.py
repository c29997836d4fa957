"""Parameters of workers that sweep on their own: their mean, by how many instances each has."""

import numpy as np

from crfx.distributed.collective import together
from crfx.trainers.sgd import AveragedParameters, AveragingWorkers, Descent, averaged
from crfx.workers import ALONE

EXACT = {"rtol": 1e-12}


def moved(steps):
    """Parameters after steps of 1, all but the first of which count, each of which shrinks them."""
    parameters = AveragedParameters(np.zeros(2))
    for number in range(steps):
        parameters.read(slice(None))
        parameters.step(slice(None), np.array([1.0, -2.0]), 0.9, counts=number > 0)
    return parameters


def test_averaged_takes_weighted_mean():
    steps, weights = [3, 6, 2], [2.0, 1.0, 0.0]

    def work(workers):
        parameters = moved(steps[workers.rank])
        averaged(parameters, weights[workers.rank], workers)
        return parameters

    for mean in together(3, work):
        expected = [(2 * first + second) / 3 for first, second in zip(*both(steps), strict=True)]
        np.testing.assert_allclose(mean.values, expected[0], **EXACT)
        np.testing.assert_allclose(mean.average(), expected[1], **EXACT)
        assert mean.state()[0]["n_counted"] == 3  # of 2 and 5 steps that count


def both(steps):
    """Values and averages of the two workers that have instances."""
    return [(each.state()[1]["values"], each.average()) for each in map(moved, steps[:2])]


def test_averaged_before_counted_steps():
    def work(workers):
        parameters = moved(1)
        averaged(parameters, 1.0, workers)
        return parameters

    for mean in together(2, work):
        np.testing.assert_allclose(mean.average(), moved(1).average(), **EXACT)
        assert mean.state()[0]["n_counted"] == 0


def test_averaged_of_one_worker_changes_nothing():
    parameters, before = moved(4), moved(4)
    averaged(parameters, 5.0, ALONE)
    np.testing.assert_array_equal(parameters.average(), before.average())
    assert parameters.state()[0] == before.state()[0]


class Slope:
    """Mini-batches whose loss falls by 1 with every parameter, per instance."""

    def __call__(self, instances, number):
        return slice(None), lambda values: (0.0, np.full_like(values, -float(len(instances))))


def swept(counts, n_sweeps):
    """Return the parameters after each epoch of workers with these numbers of instances."""

    def work(workers):
        n_own = counts[workers.rank]
        descent = Descent(n_own, 2, step=1.0, period=None, l2=0.0, burn_in=0, seed=0)
        sweepers, parameters = AveragingWorkers.of_all(n_own), AveragedParameters(np.zeros(2))
        result = []
        for number in range(n_sweeps):
            sweepers.sweep(descent, number, parameters, Slope())
            result.append(parameters.read(slice(None)).copy())
        return sweepers.share, np.array(result)

    return together(len(counts), work)


def test_workers_progress_per_epoch_as_one_worker():
    """Once the momentum is there: what each of them learns counts in full."""
    counts = [40, 20, 0, 60]
    results = swept(counts, 8)
    assert [share for share, _ in results] == [n / 120 for n in counts]
    for _, path in results:
        np.testing.assert_array_equal(path, results[0][1])
    squares = sum((n / 120) ** 2 for n in counts)
    # A worker moves by its own number of instances: the mean by the sum of squares.
    np.testing.assert_allclose(np.diff(path, axis=0)[-1], 120 * squares / squares, rtol=1e-3)


def test_fewer_instances_than_meetings():
    for _, path in swept([3, 1], 30):
        np.testing.assert_allclose(np.diff(path, axis=0)[-1], 4.0, rtol=1e-2)


def test_step_search_result_is_sent_to_all_workers():
    def work(workers):
        return AveragingWorkers.of_all([0, 5, 7][workers.rank]).of_first(
            lambda: 10.0 * workers.rank
        )

    assert together(3, work) == [10.0, 10.0, 10.0]
