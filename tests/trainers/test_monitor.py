"""Monitor: the history, early stopping, callbacks, and earlier runs."""

import copy

import numpy as np
import pytest

from crfx.trainers.monitor import Metric, Monitor


def monitor(values=(), history=None, *, larger_is_better=False, **settings):
    """A monitor whose metric measures these values, one after the other."""
    measured = iter(values)
    metric = Metric(lambda: next(measured), larger_is_better) if values else None
    return Monitor({} if history is None else history, metric, **settings)


def run(watch, n_rounds, first=0, mark=lambda: None):
    """Note rounds until the monitor stops; return the number of the last one."""
    for number in range(first + 1, first + n_rounds + 1):
        watch.record(watch.measured({"objective": -float(number)}), number)
        if watch.ask(number, mark):
            return number
    return number


def test_every_name_has_one_entry_per_round():
    watch = monitor()
    watch.record({"objective": 3.0, "gamma": 0.5}, 1)
    watch.record({"objective": 2.0, "samples": 7.0}, 2)
    assert watch.history["objective"] == [3.0, 2.0]
    np.testing.assert_array_equal(watch.history["gamma"], [0.5, np.nan])
    np.testing.assert_array_equal(watch.history["samples"], [np.nan, 7.0])


@pytest.mark.parametrize("larger_is_better", [False, True])
def test_early_stopping_ends_after_rounds_without_improvement(larger_is_better):
    sign = -1 if larger_is_better else 1
    values = [sign * value for value in (3.0, 1.0, 2.0, 2.0, 2.0)]
    marked = []
    watch = monitor(values, larger_is_better=larger_is_better, patience=2)
    assert run(watch, 5, mark=lambda: marked.append(len(watch.history["objective"]))) == 4
    assert marked == [1, 2]
    assert watch.best_round(4) == 2


def test_without_early_stopping_the_last_round_is_kept():
    watch = monitor([3.0, 1.0, 2.0])
    assert run(watch, 3) == 3
    assert not watch.stops_early
    assert watch.best_round(3) == 3


def test_the_best_round_is_marked_before_callbacks_are_called():
    events = []
    watch = monitor([1.0], patience=5, callbacks=[lambda progress: events.append("callback")])
    run(watch, 1, mark=lambda: events.append("mark"))
    assert events == ["mark", "callback"]


def test_all_callbacks_are_called_and_any_may_stop():
    seen = []

    def stop_at_two(progress):
        return progress.n_rounds == 2

    watch = monitor(callbacks=[stop_at_two, lambda progress: seen.append(progress.n_rounds)])
    assert run(watch, 9) == 2
    assert seen == [1, 2]


EARLIER = {"objective": [3.0, 2.0, 1.0], "eval_metric": [5.0, 4.0, 4.5]}


def test_an_earlier_run_on_the_same_eval_set_is_replayed():
    watch = monitor([4.5, 4.4], copy.deepcopy(EARLIER), patience=2)
    assert not watch.take_over(3, can_restore=True)
    assert not watch.is_over
    assert run(watch, 1, first=3) == 4
    assert watch.best_round(4) == 2
    over = monitor([4.5], copy.deepcopy(EARLIER), patience=1)
    over.take_over(3, can_restore=True)
    assert over.is_over


def test_warm_start_without_best_round_uses_current_model():
    watch = monitor([4.5], copy.deepcopy(EARLIER), patience=1)
    assert watch.take_over(3, can_restore=False)
    assert watch.best_round(3) == 3
    assert not watch.is_over
    assert watch.history["eval_metric"] == EARLIER["eval_metric"]


def test_the_metric_of_another_eval_set_is_dropped():
    watch = monitor([7.0, 6.0], copy.deepcopy(EARLIER), patience=1)
    assert watch.take_over(3, can_restore=True)
    assert "eval_metric" not in watch.history
    run(watch, 1, first=3)
    np.testing.assert_array_equal(watch.history["eval_metric"], [np.nan] * 3 + [6.0])


def test_unmeasured_run_keeps_history():
    history = {"objective": [3.0, 2.0], "eval_metric": [5.0, np.nan]}
    watch = monitor([7.0], history, patience=1)
    assert watch.take_over(2, can_restore=True)
    np.testing.assert_array_equal(watch.history["eval_metric"], [5.0, np.nan])


def test_take_over_without_an_earlier_run_measures_nothing():
    watch = monitor([1.0], patience=1)
    assert not watch.take_over(0, can_restore=True)
    assert run(watch, 1) == 1
