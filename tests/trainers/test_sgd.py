"""Descent: lazy shrinking and averaging against the plain thing, steps, mini-batches."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from crfx.trainers import sgd
from crfx.trainers.sgd import AveragedParameters, Descent, Steps
from crfx.trainers.step_search import TRIAL_STEPS, best_step, with_good_step
from tests.pairwise import pairwise

EXACT = {"rtol": 1e-10, "atol": 1e-12}


def plain(values, steps):
    """Do what `AveragedParameters` does, for every parameter in every step."""
    values, total, count = values.copy(), np.zeros_like(values), 0
    for at, change, shrinkage, counts in steps:
        values *= shrinkage
        values[at] += change
        if counts:
            total += values
            count += 1
    return values, total / count if count else values


@pytest.mark.parametrize(("smallest", "burn_in"), [(1e-3, 0), (0.5, 13), (1e-3, 60)])
def test_lazy_shrinking_and_averaging_are_exact(monkeypatch, burn_in, smallest):
    """This holds even if the product of shrinkages is restarted on the way."""
    monkeypatch.setattr(sgd, "SMALLEST_SHRINKAGE", smallest)
    random = np.random.default_rng(0)
    start = random.normal(size=20)
    lazy, steps = AveragedParameters(start), []
    for number in range(50):
        at = np.sort(random.permutation(20)[: random.integers(1, 6)])
        change = random.normal(size=len(at))
        shrinkage = random.uniform(0.8, 1.0)
        expected_now, _ = plain(start, steps)
        np.testing.assert_allclose(lazy.read(at), expected_now[at], **EXACT)
        lazy.step(at, change, shrinkage, number >= burn_in)
        steps.append((at, change, shrinkage, number >= burn_in))
    values, average = plain(start, steps)
    np.testing.assert_allclose(lazy.average(), average, **EXACT)
    np.testing.assert_allclose(lazy.read(slice(None)), values, **EXACT)


def test_strong_shrinking_over_many_steps_loses_nothing():
    lazy, at = AveragedParameters(np.array([2.0, 1.0])), np.array([0])
    for _ in range(200):
        lazy.read(at)
        lazy.step(at, np.array([1.0]), 0.5, True)  # the first is always 2
    np.testing.assert_allclose(lazy.average(), [2.0, (1 - 0.5**200) / 200], **EXACT)


def descent(**changes):
    usual = {"n_instances": 40, "batch_size": 4, "step": 0.1, "period": None, "l2": 0.0}
    return Descent(**{**usual, "burn_in": 0, "seed": 0, **changes})


def squares(targets, scale=1.0):
    """Return the loss 1/2 sum_i (scale w - target_i)^2 of mini-batches, of one parameter w."""

    def mini_batch(instances, step):
        def loss(w):
            rest = scale * w - targets[instances]
            return 0.5 * float(rest @ rest), np.array([scale * rest.sum()])

        return slice(None), loss

    return mini_batch


def test_an_epoch_visits_every_instance_once():
    met = []

    def mini_batch(instances, step):
        met.append(instances)
        return slice(None), lambda w: (0.0, np.zeros(1))

    descent(n_instances=10).sweep(0, AveragedParameters(np.zeros(1)), mini_batch)
    assert [len(epoch) for epoch in met] == [4, 4, 2]
    assert sorted(np.concatenate(met)) == list(range(10))


class Taking:
    """Mini-batches that note the steps they are asked for."""

    def __init__(self):
        self.asked = []

    def take_steps(self, steps, parameters):
        self.asked.append(steps)

    def steps(self):
        """Return (instances, number, whether it counts) of every step."""
        single = (part for steps in self.asked for part in steps.parts(1))
        return [(part.order.tolist(), part.first, part.counts) for part in single]


def test_groups_are_visited_one_after_the_other():
    ends = np.array([0, 4, 4, 9, 12])
    grouped = descent(n_instances=12, batch_size=3, ends=ends, burn_in=1)
    sweeps = []
    for number in range(4):
        taking = Taking()
        grouped.sweep(number, None, taking)
        sweeps.append(taking.asked)
    for number, asked in enumerate(sweeps):
        groups = [sorted(steps.order.tolist()) for steps in asked]
        assert sorted(groups) == [[0, 1, 2, 3], [4, 5, 6, 7, 8], [9, 10, 11]]
        n_steps = np.cumsum([0, *(-(-len(steps.order) // 3) for steps in asked)])
        assert [steps.first - 5 * number for steps in asked] == n_steps[:-1].tolist()
        assert [steps.counts for steps in asked] == [number >= 1] * 3
    orders = {tuple(steps.order[0] // 4 for steps in asked) for asked in sweeps}
    assert len(orders) > 1  # of groups
    assert len({tuple(np.concatenate([s.order for s in asked])) for asked in sweeps}) == 4


def test_one_group_equals_no_groups():
    alone, grouped = Taking(), Taking()
    descent(n_instances=9).sweep(2, None, alone)
    descent(n_instances=9, ends=np.array([0, 0, 9])).sweep(2, None, grouped)
    (ours,), (theirs,) = grouped.asked, alone.asked
    assert ours.order.tolist() == theirs.order.tolist()
    assert ours.first == theirs.first


def test_average_by_epoch_counts_each_epoch_once():
    taking = Taking()
    descent(n_instances=9, ends=np.array([0, 3, 6, 9]), by_sweep=True).sweep(0, None, taking)
    assert [steps.counts for steps in taking.asked] == [False, False, True]


def test_steps_become_smaller_with_a_period():
    steps = Steps(np.arange(4), 2, 0, step=0.5, period=10.0, penalty=0.0, counts=True)
    np.testing.assert_allclose([steps.size(t) for t in (0, 10, 30)], [0.5, 0.25, 0.125])
    assert replace(steps, period=None).size(1000) == 0.5


@pytest.mark.parametrize("l2", [0.0, 5.0])
def test_descent_finds_the_minimum(l2):
    """The objective is 1/2 sum_i (w - target_i)^2 + l2 w^2."""
    targets = np.random.default_rng(1).normal(3.0, 1.0, 40)
    run = descent(step=0.02, period=50.0, l2=l2, burn_in=20)
    parameters = AveragedParameters(np.zeros(1))
    for number in range(40):
        run.sweep(number, parameters, squares(targets))
    expected = targets.sum() / (40 + 2 * l2)
    assert parameters.average()[0] == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0, 100.0, 1e4])
@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_a_good_step_is_found_for_features_of_any_size(scale, l2):
    """Weights of features of size s are 1 / s of what they were, and steps 1 / s^2.

    Also far below the steps that are tried first, and where all of these diverge: steps of
    2 / batch_size and more make the parameter swing ever wider.
    """
    targets = np.random.default_rng(1).normal(3.0, 1.0, 40)
    run = descent(step=100.0, l2=l2 * scale)
    result = with_good_step(run, squares(targets, scale), np.zeros(1))
    assert 0.01 < result.step * scale**2 < 0.5


def test_equal_losses_do_not_choose_ever_smaller_steps():
    """A share of wrong labels may be the same for all: the smallest would learn nothing."""
    assert best_step(lambda step: 0.5) >= min(TRIAL_STEPS) / 2
    assert best_step(lambda step: abs(np.log(step / 1e-7))) == pytest.approx(1e-7, rel=1)


def test_larger_steps_are_tried_while_the_largest_wins():
    assert best_step(lambda step: abs(np.log(step / 3e6))) == pytest.approx(3e6, rel=1)
    assert best_step(lambda step: 0.0 if step >= 4 else 1.0) == 4.0  # alike: no larger ones


def test_growing_steps_warn_and_divergence_raises():
    with pytest.warns(ConvergenceWarning, match="step of 1e.12 is too small: scale the features"):
        assert best_step(lambda step: -step) >= 1e12
    with pytest.raises(ValueError, match="no step leads to scores that are finite: scale the feat"):
        best_step(lambda step: np.inf)


@pytest.mark.parametrize(
    ("n_parts", "by_sweep", "ends"),
    pairwise([1, 4, 10, 40], [False, True], [None, [0, 4, 4, 11, 23]]),
)
def test_an_epoch_in_parts_is_the_epoch(ends, by_sweep, n_parts):
    ends = None if ends is None else np.array(ends)
    run = Descent(23, 2, 0.1, 5.0, 1.0, 0, seed=3, by_sweep=by_sweep, ends=ends)
    whole, parts = Taking(), Taking()
    run.sweep(2, None, whole)
    assert sum(1 for _ in run.sweep_in_parts(2, n_parts, None, parts)) == n_parts
    assert parts.steps() == whole.steps()
    n_counted = sum(counts for _, _, counts in parts.steps())
    assert n_counted == (1 if by_sweep else len(parts.steps()))


def test_a_worker_without_instances_takes_no_steps():
    descent = Descent(0, 2, 0.1, 5.0, 1.0, 0, seed=3)
    assert sum(1 for _ in descent.sweep_in_parts(0, 4, None, None)) == 4
