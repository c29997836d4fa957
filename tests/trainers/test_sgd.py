"""Descent: lazy shrinking and averaging against the plain thing, steps, mini-batches."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from crfx.trainers import sgd
from crfx.trainers.sgd import AveragedParameters, Descent, Steps
from crfx.trainers.step_search import TRIAL_STEPS, best_step, with_good_step

EXACT = {"rtol": 1e-10, "atol": 1e-12}


def plain(values, steps):
    """What `AveragedParameters` does, every parameter in every step."""
    values, total, count = values.copy(), np.zeros_like(values), 0
    for at, change, shrinkage, counts in steps:
        values *= shrinkage
        values[at] += change
        if counts:
            total += values
            count += 1
    return values, total / count if count else values


@pytest.mark.parametrize("smallest", [1e-3, 0.5])
@pytest.mark.parametrize("burn_in", [0, 13, 60])
def test_lazy_shrinking_and_averaging_are_exact(monkeypatch, burn_in, smallest):
    """Also where the product of shrinkages is begun anew on the way."""
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


def squares(targets):
    """The loss 1/2 sum_i (w - target_i)^2 of some instances, of a single parameter."""

    def mini_batch(instances, step):
        def loss(w):
            rest = w - targets[instances]
            return 0.5 * float(rest @ rest), np.array([rest.sum()])

        return slice(None), loss

    return mini_batch


def test_a_sweep_meets_every_instance_once():
    met = []

    def mini_batch(instances, step):
        met.append(instances)
        return slice(None), lambda w: (0.0, np.zeros(1))

    descent(n_instances=10).sweep(0, AveragedParameters(np.zeros(1)), mini_batch)
    assert [len(own) for own in met] == [4, 4, 2]
    assert sorted(np.concatenate(met)) == list(range(10))


class Taking:
    """Mini-batches that note the steps they are asked for."""

    def __init__(self):
        self.asked = []

    def take_steps(self, steps, parameters):
        self.asked.append(steps)


def test_groups_are_swept_over_one_after_the_other():
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


def test_one_group_is_no_group():
    alone, grouped = Taking(), Taking()
    descent(n_instances=9).sweep(2, None, alone)
    descent(n_instances=9, ends=np.array([0, 0, 9])).sweep(2, None, grouped)
    (ours,), (theirs,) = grouped.asked, alone.asked
    assert ours.order.tolist() == theirs.order.tolist()
    assert ours.first == theirs.first


def test_a_sweep_counts_once_where_it_counts_by_sweep():
    taking = Taking()
    descent(n_instances=9, ends=np.array([0, 3, 6, 9]), by_sweep=True).sweep(0, None, taking)
    assert [steps.counts for steps in taking.asked] == [False, False, True]


def test_steps_become_smaller_where_asked():
    steps = Steps(np.arange(4), 2, 0, step=0.5, period=10.0, penalty=0.0, counts=True)
    np.testing.assert_allclose([steps.size(t) for t in (0, 10, 30)], [0.5, 0.25, 0.125])
    assert replace(steps, period=None).size(1000) == 0.5


@pytest.mark.parametrize("l2", [0.0, 5.0])
def test_descent_finds_the_minimum(l2):
    """Of 1/2 sum_i (w - target_i)^2 + l2 w^2."""
    targets = np.random.default_rng(1).normal(3.0, 1.0, 40)
    run = descent(step=0.02, period=50.0, l2=l2, burn_in=20)
    parameters = AveragedParameters(np.zeros(1))
    for number in range(40):
        run.sweep(number, parameters, squares(targets))
    expected = targets.sum() / (40 + 2 * l2)
    assert parameters.average()[0] == pytest.approx(expected, rel=0.01)


def test_a_good_step_is_found():
    """Steps of 2 / batch_size and more make the parameter swing ever wider."""
    targets = np.random.default_rng(1).normal(3.0, 1.0, 40)
    found = with_good_step(descent(step=100.0), squares(targets), np.zeros(1))
    assert 0.01 < found.step < 0.5


@pytest.mark.parametrize("scale", [30.0, 1e4])
def test_a_good_step_is_found_for_large_numbers(scale):
    """Also far below those that are tried first, and where all of these diverge."""
    targets = np.random.default_rng(1).normal(3.0, 1.0, 40)

    def mini_batch(instances, step):
        at, loss = squares(targets)(instances, step)

        def scaled(w):
            value, gradient = loss(scale * w)
            return value, scale * gradient

        return at, scaled

    found = with_good_step(descent(l2=1.0), mini_batch, np.zeros(1))
    assert 0.01 < found.step * scale**2 < 0.5


def test_steps_that_are_alike_do_not_become_ever_smaller():
    """A share of wrong labels may be the same for all: the smallest would learn nothing."""
    assert best_step(lambda step: 0.5) >= min(TRIAL_STEPS) / 2
    assert best_step(lambda step: abs(np.log(step / 1e-7))) == pytest.approx(1e-7, rel=1)


def test_larger_steps_are_tried_while_the_largest_wins():
    assert best_step(lambda step: abs(np.log(step / 3e6))) == pytest.approx(3e6, rel=1)
    assert best_step(lambda step: 0.0 if step >= 4 else 1.0) == 4.0  # alike: no larger ones


def test_steps_that_run_away_or_lead_nowhere_are_told_of():
    with pytest.warns(ConvergenceWarning, match="step of 1e.12 is too small: scale the features"):
        assert best_step(lambda step: -step) >= 1e12
    with pytest.raises(ValueError, match="no step leads to scores that are finite: scale the feat"):
        best_step(lambda step: np.inf)


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_a_good_step_is_found_for_features_of_any_size(scale):
    """Weights of features of size s are 1 / s of what they were, and steps 1 / s^2."""
    targets = np.random.default_rng(1).normal(3.0, 1.0, 40)

    def mini_batch(instances, step):
        at, loss = squares(targets)(instances, step)

        def scaled(w):
            value, gradient = loss(scale * w)
            return value, scale * gradient

        return at, scaled

    found = with_good_step(descent(), mini_batch, np.zeros(1))
    assert 0.01 < found.step * scale**2 < 0.5


@pytest.mark.parametrize("n_parts", [1, 4, 10, 40])
@pytest.mark.parametrize("by_sweep", [False, True])
@pytest.mark.parametrize("ends", [None, np.array([0, 4, 4, 11, 23])], ids=["one", "groups"])
def test_a_sweep_in_parts_is_the_sweep(ends, by_sweep, n_parts):
    taken = {"whole": [], "parts": []}

    def note(name):
        class Batches:
            def take_steps(self, steps, parameters):
                for part in steps.parts(1):
                    taken[name].append((part.order.tolist(), part.first, part.counts))

        return Batches()

    descent = Descent(23, 2, 0.1, 5.0, 1.0, 0, seed=3, by_sweep=by_sweep, ends=ends)
    descent.sweep(2, None, note("whole"))
    assert sum(1 for _ in descent.sweep_in_parts(2, n_parts, None, note("parts"))) == n_parts
    assert taken["parts"] == taken["whole"]
    assert sum(counts for _, _, counts in taken["parts"]) == (
        1 if by_sweep else len(taken["whole"])
    )


def test_who_has_no_instances_takes_no_steps():
    descent = Descent(0, 2, 0.1, 5.0, 1.0, 0, seed=3)
    assert sum(1 for _ in descent.sweep_in_parts(0, 4, None, None)) == 4
