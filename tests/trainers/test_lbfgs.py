"""L-BFGS and OWL-QN on problems whose solutions are known."""

import warnings
from collections import deque

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from crfx.trainers.lbfgs import PERIOD, Course, descend, is_flat
from crfx.trainers.parametric import Rounded

SOLVED = {"rtol": 1e-5, "atol": 1e-6}
MANY = 500


def quadratic(seed=0, n=12):
    """1/2 |A w - b|^2 as a function with gradient."""
    random = np.random.default_rng(seed)
    A, b = random.normal(size=(30, n)), random.normal(size=30)

    def function(w):
        rest = A @ w - b
        return 0.5 * float(rest @ rest), A.T @ rest

    return A, b, function


A, B, LEAST_SQUARES = quadratic()
ZERO = np.zeros(12)


def never(weights, value):
    return False


def wrong(w):
    """Return a gradient that points the wrong way."""
    value, gradient = LEAST_SQUARES(w)
    return value, -gradient


def minimise(rounded, start, stops=never, **settings):
    """Run `descend` until ``stops`` (parameters, value) is true; return the last parameters."""
    steps = descend(rounded, start, **{"max_iter": MANY, "tol": 1e-5} | settings)
    while True:
        try:
            weights, value = next(steps)
        except StopIteration as end:
            return end.value
        if stops(weights, value):
            steps.close()
            return weights


@pytest.fixture
def strict():
    """Make warnings errors, those that other tests ignore too."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_a_least_squares_problem_is_solved():
    minimum = minimise(Rounded(LEAST_SQUARES), ZERO, tol=1e-12)
    np.testing.assert_allclose(minimum, np.linalg.lstsq(A, B)[0], **SOLVED)


@pytest.mark.parametrize("l1", [0.5, 3.0, 10.0])
def test_the_lasso_is_solved(l1):
    """At the minimum the slope is -l1 sign(w) where w is not 0, and at most l1 elsewhere."""
    minimum = minimise(Rounded(LEAST_SQUARES), ZERO, tol=1e-14, l1=l1)
    slope = LEAST_SQUARES(minimum)[1]
    moved = minimum != 0
    np.testing.assert_allclose(slope[moved], -l1 * np.sign(minimum[moved]), atol=1e-4)
    assert (np.abs(slope[~moved]) <= l1 + 1e-4).all()
    assert moved.sum() > 0
    if l1 >= 3:
        assert moved.sum() < 12  # some weights are exactly 0


def test_a_penalty_that_is_too_high_leaves_nothing():
    assert not minimise(Rounded(LEAST_SQUARES), ZERO, l1=1e4).any()


@pytest.mark.parametrize("l1", [0.0, 0.5])
def test_values_fall_and_a_callback_may_stop(l1):
    seen = []

    def watch(weights, value):
        assert value == pytest.approx(LEAST_SQUARES(weights)[0] + l1 * np.abs(weights).sum())
        seen.append((weights.copy(), value))
        return len(seen) == 5

    minimum = minimise(Rounded(LEAST_SQUARES), ZERO, watch, max_iter=100, tol=0.0, l1=l1)
    assert len(seen) == 5
    np.testing.assert_array_equal(minimum, seen[-1][0])
    assert (np.diff([value for _, value in seen]) < 0).all()


@pytest.mark.parametrize("l1", [0.0, 0.5])
def test_max_iter_0_returns_the_start(l1):
    start = np.arange(12.0)
    assert minimise(Rounded(LEAST_SQUARES), start, max_iter=0, l1=l1) is start


def test_convergence_looks_back_over_a_period():
    falling = [100.0 * 0.99**k for k in range(30)]
    values = falling + [falling[-1]] * (PERIOD + 1)
    flat = [is_flat(deque(values[:k], PERIOD + 1), 0.01) for k in range(1, len(values) + 1)]
    assert flat.index(True) == len(falling) + PERIOD - 1


def test_a_run_that_is_cut_short_warns():
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=3, before it converged"):
        minimise(Rounded(LEAST_SQUARES), ZERO, max_iter=3)


def test_a_run_that_ends_otherwise_does_not_warn(strict):
    minimise(Rounded(LEAST_SQUARES), ZERO)
    minimise(Rounded(LEAST_SQUARES), ZERO, tol=0.0)
    minimise(Rounded(LEAST_SQUARES), ZERO, max_iter=3, is_last=False)
    minimise(Rounded(LEAST_SQUARES), ZERO, max_iter=0)
    minimise(Rounded(LEAST_SQUARES), ZERO, lambda w, value: True, max_iter=1)


def test_a_run_that_learns_nothing_warns():
    """No step lowers a function whose gradient points the wrong way."""
    with pytest.warns(ConvergenceWarning, match="nothing was learned"):
        minimise(Rounded(wrong), ZERO, max_iter=5)


def test_moves_below_the_resolution_are_not_tried():
    """Near the minimum of a rough function halving goes on in vain, unless it is told how rough."""
    random = np.random.default_rng(0)
    curve = random.uniform(0.1, 10.0, 30)

    def evaluations(resolution):
        count = 0

        def rough(w):
            nonlocal count
            count += 1
            value = 100 + float(curve @ (w - 1) ** 2)
            return value * (1 + 1e-7 * np.sin(1e9 * value)), 2 * curve * (w - 1)

        minimum = minimise(Rounded(rough, resolution), np.zeros(30), max_iter=200, tol=0.0)
        np.testing.assert_allclose(minimum, 1.0, atol=0.02)
        return count

    assert evaluations(1e-6) < 0.5 * evaluations(0.0)


def rounded_and_exact(n=30):
    """A function that is known to 7 digits, the same to all, and its minimum."""
    random = np.random.default_rng(0)
    curve, lowest = 10.0 ** random.uniform(-3, 1, n), random.normal(size=n)

    def exact(w):
        return 100 + float(curve @ (w - lowest) ** 2), 2 * curve * (w - lowest)

    def rounded(w):
        value, gradient = exact(w)
        return float(np.float32(value)), gradient.astype(np.float32).astype(np.float64)

    return Rounded(rounded, 1e-8), Rounded(exact, 1e-15), lowest


START = np.zeros(30)


def test_lbfgs_switches_to_finer_function():
    rounded, exact, lowest = rounded_and_exact()
    rough = minimise(rounded, START, tol=1e-14)
    fine = minimise(rounded, START, tol=1e-14, finer=exact)
    assert np.abs(rough - lowest).max() > 1e-2
    np.testing.assert_allclose(fine, lowest, atol=2e-4)


def test_the_finer_function_is_not_called_without_need():
    rounded, _, _ = rounded_and_exact()

    def refused(w):
        raise AssertionError("it is called")

    never_called = Rounded(refused)
    for tol in (1e-5, 1e-8):
        minimise(rounded, START, tol=tol, finer=never_called)
    # Nor where who watches has seen enough, or iterations are spent.
    minimise(rounded, START, lambda *_: True, tol=0.0, finer=never_called)
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=3"):
        minimise(rounded, START, max_iter=3, tol=0.0, finer=never_called)


def course_seen(stop_after=None, course=None, **asked):
    """Return what a run sees: parameters, and whether the finer function is in use."""
    rounded, exact, _ = rounded_and_exact()
    course, seen = course or Course(), []

    def watch(w, value):
        seen.append((w.copy(), course.is_fine))
        return len(seen) == stop_after

    minimise(rounded, START, watch, finer=exact, course=course, **{"tol": 1e-13} | asked)
    return seen, course


@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_an_interrupted_run_resumes_in_either_function(l1):
    whole, _ = course_seen(l1=l1)
    change = [is_fine for _, is_fine in whole].index(True)
    assert 3 < change < len(whole) - 3
    for cut in (2, change, change + 1, change + 3):
        first, course = course_seen(cut, l1=l1)
        then, _ = course_seen(course=course, l1=l1)
        assert len(first) + len(then) == len(whole)
        np.testing.assert_array_equal(then[-1][0], whole[-1][0])


def test_max_iter_counts_steps_of_both_functions():
    whole, _ = course_seen(tol=0.0)
    change = [is_fine for _, is_fine in whole].index(True)
    for max_iter in (change - 1, change, change + 1, change + 2, change + 6):
        with pytest.warns(ConvergenceWarning, match=f"stopped at max_iter={max_iter}"):
            seen, _ = course_seen(tol=0.0, max_iter=max_iter)
        assert len(seen) == max_iter
        np.testing.assert_array_equal(seen[-1][0], whole[max_iter - 1][0])


def test_a_converged_run_continues_with_a_lower_tolerance():
    _, course = course_seen(tol=1e-3)
    assert course.converged
    assert course_seen(tol=1e-3, course=course)[0] == []
    seen, course = course_seen(tol=1e-13, course=course)
    assert seen
    assert course.is_fine
    assert course.converged
    assert course_seen(tol=1e-13, course=course)[0] == []
    # One that single precision had brought to its end, where that was all there was.
    course.is_fine = False
    assert course_seen(tol=1e-13, course=course)[0]


def test_a_course_can_continue_with_another_function():
    """It begins at a higher value, which is no sign that nothing improves."""
    matrix, target, other = quadratic(seed=1)
    course = Course()
    minimise(Rounded(LEAST_SQUARES), ZERO, tol=1e-9, course=course)
    assert course.converged
    minimum = minimise(Rounded(other), ZERO, tol=1e-12, course=course)
    np.testing.assert_allclose(minimum, np.linalg.lstsq(matrix, target)[0], **SOLVED)


def test_lbfgs_warns_once_if_nothing_was_learned():
    rounded, options = Rounded(wrong, 1e-8), {"max_iter": 50, "tol": 0.0}
    with pytest.warns(ConvergenceWarning, match="nothing was learned") as caught:
        minimise(rounded, ZERO, finer=Rounded(wrong), **options)
    assert len(caught) == 1
    assert minimise(rounded, ZERO, finer=Rounded(LEAST_SQUARES, 1e-15), **options).any()
