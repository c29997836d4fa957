"""Stochastic gradient descent over mini-batches of whole instances, averaged.

With the loss of the perceptron and mini-batches of one instance it is the averaged perceptron.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from crfx.messages import warn
from crfx.scores import IntArray
from crfx.trainers.base import VELOCITY, TrainingState

Array64 = npt.NDArray[np.float64]
Positions = IntArray | slice
"""Which parameters a mini-batch reads and moves."""
MiniBatch = Callable[
    [IntArray, int | None], tuple[Positions, Callable[[Array64], tuple[float, Array64]]]
]
"""Instances and the number of the step, if it is one, in; the parameters they touch, and the loss
as a function of those, out."""

SECONDS_AT_ONCE = 0.1
"""The core takes steps for about so long before a user may interrupt."""
SMALLEST_SHRINKAGE = 1e-3
"""Of all steps together, then counting begins anew: sums of much smaller numbers would be lost."""
TRIAL_INSTANCES = 500
"""On so many a first step is sought; on all where there are fewer."""
SMALLEST_STEP, LARGEST_STEP = 1e-12, 1e12
"""Beyond them no better step is sought."""
SMALL_FEATURES = 0.05
SCALE = "scale the features to about -1 to 1"
TRIAL_STEPS = tuple(4.0**power for power in range(1, -7, -1))


class AveragedParameters:
    """Parameters that shrink a little in every step, and their average over steps.

    Both are caught up with where a mini-batch reads: a step costs no more than what it touches.
    Between steps s and t an untouched w becomes w P_t / P_s, with P the product of all shrinkages,
    and adds w (S_t - S_s) / P_s to the sum over steps, with S the sum of P over the steps that
    count.
    """

    def __init__(self, values: Array64) -> None:
        self.values = values.copy()
        self._sum = np.zeros_like(values)
        self._product_then = np.ones_like(values)
        self._steps_then = np.zeros_like(values)
        self._product, self._steps, self._n_counted = 1.0, 0.0, 0

    def read(self, at: Positions) -> Array64:
        """What they are now, caught up."""
        own, then = self.values[at], self._product_then[at]
        self._sum[at] += own * ((self._steps - self._steps_then[at]) / then)
        self.values[at] = own * (self._product / then)
        self._product_then[at] = self._product
        self._steps_then[at] = self._steps
        return self.values[at]

    def step(self, at: Positions, change: Array64, shrinkage: float, counts: bool) -> None:
        """Shrink all, and add a change where they were read; whether the step is averaged over."""
        self.values[at] += change / shrinkage
        self._product *= shrinkage
        if counts:
            self._steps += self._product
            self._n_counted += 1
        if self._product < SMALLEST_SHRINKAGE:
            self.read(slice(None))
            self._product_then[:] = self._product = 1.0
            self._steps_then[:] = self._steps = 0.0

    def grown(self, origin: IntArray) -> AveragedParameters:
        """The same in another order and with new ones, 0 so far: ``origin`` is -1 for these."""
        self.read(slice(None))
        kept = origin >= 0
        found = AveragedParameters(np.zeros(len(origin)))
        found.values[kept], found._sum[kept] = self.values[origin[kept]], self._sum[origin[kept]]
        found._product_then[:] = found._product = self._product
        found._steps_then[:] = found._steps = self._steps
        found._n_counted = self._n_counted
        return found

    def taken_through(self, run: Callable[..., tuple[float, float, int]]) -> None:
        """Let others take steps: they change the arrays, and return what is counted."""
        self._product, self._steps, self._n_counted = run(
            values=self.values,
            sum=self._sum,
            product_then=self._product_then,
            steps_then=self._steps_then,
            product=self._product,
            steps=self._steps,
            n_counted=self._n_counted,
        )

    def state(self) -> tuple[dict[str, float], dict[str, Array64]]:
        """What it takes to go on: numbers and arrays by name."""
        self.read(slice(None))
        numbers = {
            "product": self._product,
            "steps": self._steps,
            "n_counted": float(self._n_counted),
        }
        return numbers, {"values": self.values, "sum": self._sum}

    def restore(self, numbers: dict[str, float], arrays: dict[str, Array64]) -> None:
        """Go on where `state` was taken."""
        self.values, self._sum = arrays["values"].astype(np.float64), arrays["sum"].copy()
        self._product, self._steps = numbers["product"], numbers["steps"]
        self._n_counted = int(numbers["n_counted"])
        self._product_then[:], self._steps_then[:] = self._product, self._steps

    def average(self) -> Array64:
        """The mean over the steps that count; what they are now if none does."""
        now = self.read(slice(None))
        return now.copy() if not self._n_counted else self._sum / self._n_counted


def sweeps_state(
    trainer: str,
    n_done: int,
    parameters: Any,
    step: float,
    velocity: npt.NDArray[Any] | None = None,
) -> TrainingState:
    """Return the state of a training by sweeps, from `AveragedParameters` or other parameters with
    a method ``state``; ``velocity`` is that of several workers (`Sweepers`).
    """
    numbers, arrays = parameters.state()
    if velocity is not None:
        arrays = {**arrays, VELOCITY: velocity}
    return TrainingState(trainer, n_done, {**numbers, "step": step}, arrays)


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of one sweep, a mini-batch of the instances in ``order`` each.

    Step t, counted from ``first``, has size ``step / (1 + t / period)``, or ``step`` throughout
    where ``period`` is None; ``penalty`` is 2 l2 per instance.  ``counts``: they are averaged over,
    or with ``by_sweep`` the last of them is.  ``rates`` (parameters,) multiply the step.
    """

    order: IntArray
    batch_size: int
    first: int
    step: float
    period: float | None
    penalty: float
    counts: bool
    by_sweep: bool = False
    rates: Array64 | None = None

    def take(self, parameters: AveragedParameters, mini_batch: MiniBatch) -> None:
        """Take them one after the other."""
        for number, begin in enumerate(range(0, len(self.order), self.batch_size), self.first):
            chosen = self.order[begin : begin + self.batch_size]
            size = self.size(number)
            at, loss = mini_batch(chosen, number)
            _, gradient = loss(parameters.read(at))
            if self.rates is not None:
                gradient *= self.rates[at]
            # Implicit: 1 / (1 + x), near 1 - x, stays above 0 for any step.
            shrinkage = 1 / (1 + self.penalty * size * len(chosen))
            last = begin + self.batch_size >= len(self.order)
            counts = self.counts and (last or not self.by_sweep)
            parameters.step(at, -size * gradient, shrinkage, counts)

    def parts(self, most: int) -> Iterator[Steps]:
        """Yield the same steps in parts, between which a user may interrupt.

        A part has one step at first, and more, up to ``most``, while parts are quick.
        """
        begin, size = 0, 1
        while begin < self.n_steps:
            start, end = time.perf_counter(), begin + min(size, most)
            yield self.between(begin, end)
            begin = end
            is_quick = time.perf_counter() - start < SECONDS_AT_ONCE
            size = 2 * size if is_quick else max(1, size // 2)

    @property
    def n_steps(self) -> int:
        """How many there are."""
        return -(-len(self.order) // self.batch_size)

    def between(self, begin: int, end: int) -> Steps:
        """Those from ``begin`` to ``end``, counted from 0."""
        return replace(
            self,
            order=self.order[begin * self.batch_size : end * self.batch_size],
            first=self.first + begin,
            counts=self.counts and (end >= self.n_steps or not self.by_sweep),
        )

    def size(self, number: int) -> float:
        """Of a step, counted over all sweeps from 0."""
        return self.step if self.period is None else self.step / (1 + number / self.period)


@dataclass(eq=False)
class Descent:
    """How to descend: sweeps over shuffled instances in mini-batches, see `Steps`.

    ``l2`` |w|^2 is part of the objective, shared out over the instances.  Steps count for the
    average from sweep ``burn_in`` on, all or with ``by_sweep`` the last of each sweep.  ``ends``
    (groups + 1,) say where groups of instances begin, and the last ends, that are swept over one
    after the other, in another order every time; None: all are one group.
    """

    n_instances: int
    batch_size: int
    step: float
    period: float | None
    l2: float
    burn_in: int
    seed: int
    by_sweep: bool = False
    rates: Array64 | None = None
    ends: IntArray | None = None

    def sweep(
        self,
        number: int,
        parameters: Any,
        mini_batch: MiniBatch,
        among: IntArray | None = None,
    ) -> None:
        """One pass over all instances, or over those ``among`` them.

        Mini-batches that have a method ``take_steps(steps, parameters)`` take them themselves, and
        may have one, ``release()``, that is called in the end.
        """
        for steps in self._by_group(number, among):
            _take(steps, parameters, mini_batch)
        _release(mini_batch)

    def sweep_in_parts(
        self, number: int, n_parts: int, parameters: Any, mini_batch: MiniBatch
    ) -> Iterator[None]:
        """The same in so many parts, some of which may have no steps; who goes through them may
        change the parameters in between.
        """
        groups = self._by_group(number) if self.n_instances else []
        begins = np.cumsum([0, *(steps.n_steps for steps in groups)]).tolist()
        for part in range(n_parts):
            # The last one has steps where there are any: by sweep, its last one counts.
            begin, end = (begins[-1] * place // n_parts for place in (part, part + 1))
            for offset, steps in zip(begins, groups, strict=False):
                piece = steps.between(max(begin - offset, 0), max(end - offset, 0))
                if len(piece.order):
                    _take(piece, parameters, mini_batch)
            yield
        _release(mini_batch)

    def _by_group(self, number: int, among: IntArray | None = None) -> list[Steps]:
        orders = self._orders(np.random.default_rng([self.seed, number]))
        first, found = number * sum(map(self._n_steps, orders)), []
        for place, order in enumerate(orders, 1):
            found.append(
                Steps(
                    order=order if among is None else among[order],
                    batch_size=self.batch_size,
                    first=first,
                    step=self.step,
                    period=self.period,
                    penalty=2 * self.l2 / self.n_instances,
                    counts=number >= self.burn_in and (place == len(orders) or not self.by_sweep),
                    by_sweep=self.by_sweep,
                    rates=self.rates,
                )
            )
            first += self._n_steps(order)
        return found

    def _orders(self, random: np.random.Generator) -> list[IntArray]:
        """The instances of every group, shuffled, in a random order of groups.

        Of one group these are the numbers that were drawn before there were groups.
        """
        if self.ends is None:
            return [random.permutation(self.n_instances)]
        groups = [
            (int(begin), int(end)) for begin, end in pairwise(self.ends.tolist()) if end > begin
        ]
        chosen = [groups[number] for number in random.permutation(len(groups))]
        return [begin + random.permutation(end - begin) for begin, end in chosen]

    def _n_steps(self, order: IntArray) -> int:
        return -(-len(order) // self.batch_size)


def _take(steps: Steps, parameters: Any, mini_batch: MiniBatch) -> None:
    take = getattr(mini_batch, "take_steps", None)
    if take is None:
        steps.take(parameters, mini_batch)
    else:
        take(steps, parameters)


def _release(mini_batch: MiniBatch) -> None:
    release = getattr(mini_batch, "release", None)
    if release is not None:
        release()


def with_good_step(descent: Descent, mini_batch: MiniBatch, start: Array64) -> Descent:
    """The descent with the step whose sweep over a part of the instances ends lowest."""
    random = np.random.default_rng([descent.seed, TRIAL_INSTANCES])
    chosen = random.permutation(descent.n_instances)[:TRIAL_INSTANCES]

    def after_a_sweep(step: float) -> float:
        l2 = descent.l2 * len(chosen) / descent.n_instances
        trial = replace(descent, n_instances=len(chosen), step=step, l2=l2, burn_in=0)
        parameters = AveragedParameters(start)
        with np.errstate(over="ignore", invalid="ignore"):
            trial.sweep(0, parameters, mini_batch, chosen)
            at, loss = mini_batch(chosen, None)
            values = parameters.read(at)
            if not np.isfinite(values).all():
                return np.inf
            value = loss(values)[0] + l2 * float(values @ values)
            return value if np.isfinite(value) else np.inf

    return replace(descent, step=best_step(after_a_sweep))


def warn_of_small_features(X: Any) -> None:
    """Tell where features are so small that a step which suits them suits no other parameter."""
    values = X.data if sparse.issparse(X) else X
    largest = float(np.abs(values).max(initial=0.0))
    if 0 < largest < SMALL_FEATURES:
        warn(
            f"no feature is larger than {largest:.2g}, and descent has one step for their weights "
            f"and for those of transitions: {SCALE}, or little is learned from them",
            ConvergenceWarning,
        )


def best_step(trial: Callable[[float], float]) -> float:
    """The step for which ``trial`` gives the least.

    All of ``TRIAL_STEPS`` are tried, smaller ones as long as the smallest is better than all
    others or none is finite, larger ones as long as the largest is better than all others, then
    the half and the double of the best.  Features of size s want steps of about 1 / s^2.
    """
    tried = {step: trial(step) for step in TRIAL_STEPS}

    def best() -> float:
        return min(tried, key=lambda step: (tried[step], step))

    def is_ahead() -> bool:
        ahead = sorted(tried.values())[:2]
        return ahead[0] < ahead[1]

    def none_is_finite() -> bool:
        return tried[best()] == np.inf

    while min(tried) > SMALLEST_STEP and best() == min(tried) and (is_ahead() or none_is_finite()):
        tried[min(tried) / 4] = trial(min(tried) / 4)
    while max(tried) < LARGEST_STEP and best() == max(tried) and is_ahead():
        tried[max(tried) * 4] = trial(max(tried) * 4)
    if none_is_finite():
        raise ValueError(f"no step leads to scores that are finite: {SCALE}, or pass a step")
    if max(tried) >= LARGEST_STEP and best() == max(tried):
        warn(f"even a step of {best():.0e} is too small: {SCALE}", ConvergenceWarning)
    for step in (best() / 2, best() * 2):
        tried[step] = trial(step)
    return best()
