"""One epoch of stochastic gradient descent over mini-batches of whole instances, averaged.

With the loss of the perceptron and mini-batches of one instance it is the averaged perceptron.
Workers that train together pass over instances of their own, and meet in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.scores import IntArray
from crfx.workers import ALONE, Workers, current

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
PARAMETERS_AT_ONCE = 1 << 22
"""Averages and sums of single precision are formed in float64, so many at a time."""
MEETINGS = 10
"""Of workers, in an epoch: with fewer they learn worse than one alone, with more hardly better."""


class AveragedParameters:
    """Parameters that shrink a little in every step, and their average over steps.

    Both are caught up with where a mini-batch reads: a step costs no more than what it touches.
    Between steps s and t an untouched w becomes w P_t / P_s, with P the product of all shrinkages,
    and adds w (S_t - S_s) / P_s to the sum over steps, with S the sum of P over the steps that
    count.  Every parameter remembers P_s and S_s; ``n_clocks``: or so many groups of them do.
    """

    def __init__(self, values: npt.NDArray[Any], n_clocks: int | None = None) -> None:
        self.values = values.copy()
        self._sum = np.zeros(len(values))
        n_clocks = len(values) if n_clocks is None else n_clocks
        self._product_then, self._steps_then = np.ones(n_clocks), np.zeros(n_clocks)
        self._product, self._steps, self._n_counted = 1.0, 0.0, 0

    def read(self, at: Positions) -> Array64:
        """Return what they are now, caught up."""
        values, then = self.values[at], self._product_then[at]
        self._sum[at] += values * ((self._steps - self._steps_then[at]) / then)
        self.values[at] = values * (self._product / then)
        self._product_then[at] = self._product
        self._steps_then[at] = self._steps
        return self.values[at]

    def catch_up(self) -> None:
        """Bring all parameters, and their sums, up to the last step."""
        self.read(slice(None))

    def step(self, at: Positions, change: Array64, shrinkage: float, counts: bool) -> None:
        """Shrink all, and add a change where they were read; whether the step is averaged over."""
        self.values[at] += change / shrinkage
        self._product *= shrinkage
        if counts:
            self._steps += self._product
            self._n_counted += 1
        if self._product < SMALLEST_SHRINKAGE:
            self.catch_up()
            self._product_then[:] = self._product = 1.0
            self._steps_then[:] = self._steps = 0.0

    def run(self, take_steps: Callable[..., tuple[float, float, int]]) -> None:
        """Let the core take steps: it changes the arrays, and returns what is counted."""
        self._product, self._steps, self._n_counted = take_steps(
            n_counted=self._n_counted, **self._arrays
        )

    @property
    def _arrays(self) -> dict[str, Any]:
        return {
            "values": self.values,
            "sum": self._sum,
            "product_then": self._product_then,
            "steps_then": self._steps_then,
            "product": self._product,
            "steps": self._steps,
        }

    def grown(self, origin: IntArray) -> AveragedParameters:
        """Return the same in another order with new ones, 0 so far, where ``origin`` is -1."""
        self.catch_up()
        kept = origin >= 0
        larger = AveragedParameters(np.zeros(len(origin)))
        larger.values[kept], larger._sum[kept] = self.values[origin[kept]], self._sum[origin[kept]]
        larger._product_then[:] = larger._product = self._product
        larger._steps_then[:] = larger._steps = self._steps
        larger._n_counted = self._n_counted
        return larger

    def state(self) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]]]:
        """Return numbers and arrays by name, from which training can resume.

        The array ``sum`` is the average times the number ``n_counted``.
        """
        self.catch_up()
        numbers = {
            "product": self._product,
            "steps": self._steps,
            "n_counted": float(self._n_counted),
        }
        return numbers, {"values": self.values, "sum": self._sum}

    def restore(self, numbers: dict[str, float], arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Resume where `state` was taken."""
        self.values = arrays["values"].astype(self.values.dtype)
        self._sum = arrays["sum"].copy()
        self._product, self._steps = numbers["product"], numbers["steps"]
        self._n_counted = int(numbers["n_counted"])
        self._product_then[:], self._steps_then[:] = self._product, self._steps

    def average(self) -> npt.NDArray[Any]:
        """Return the mean over the steps that count; what they are now if none does."""
        self.catch_up()
        if not self._n_counted:
            return self.values.copy()
        mean = np.empty_like(self.values)
        for part in slices(len(mean)):
            mean[part] = self._sum[part] / self._n_counted
        return mean


def slices(n_parameters: int) -> Iterator[slice]:
    """Yield parts of a flat vector, ``PARAMETERS_AT_ONCE`` each."""
    for begin in range(0, n_parameters, PARAMETERS_AT_ONCE):
        yield slice(begin, begin + PARAMETERS_AT_ONCE)


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of one epoch, a mini-batch of the instances in ``order`` each.

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
        """The number of steps."""
        return -(-len(self.order) // self.batch_size)

    def between(self, begin: int, end: int) -> Steps:
        """Return the steps from ``begin`` to ``end``, counted from 0."""
        return replace(
            self,
            order=self.order[begin * self.batch_size : end * self.batch_size],
            first=self.first + begin,
            counts=self.counts and (end >= self.n_steps or not self.by_sweep),
        )

    def size(self, number: int) -> float:
        """Return the size of a step, counted over all epochs from 0."""
        return self.step if self.period is None else self.step / (1 + number / self.period)


@dataclass(eq=False)
class Descent:
    """A descent: epochs over shuffled instances in mini-batches, see `Steps`.

    ``l2`` |w|^2 is part of the objective, shared out over the instances.  Steps count for the
    average from epoch ``burn_in`` on, all or with ``by_sweep`` the last of each epoch.  ``ends``
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
        """Pass once over all instances, or over those ``among`` them.

        Mini-batches that have a method ``take_steps(steps, parameters)`` take them themselves, and
        may have one, ``release()``, that is called in the end.
        """
        for _ in self.sweep_in_parts(number, 1, parameters, mini_batch, among):
            pass

    def sweep_in_parts(
        self,
        number: int,
        n_parts: int,
        parameters: Any,
        mini_batch: MiniBatch,
        among: IntArray | None = None,
    ) -> Iterator[None]:
        """Do the same in so many parts, some of which may have no steps; who goes through them may
        change the parameters in between.
        """
        take = getattr(mini_batch, "take_steps", lambda steps, own: steps.take(own, mini_batch))
        groups = self._by_group(number, among) if self.n_instances else []
        begins = np.cumsum([0, *(steps.n_steps for steps in groups)]).tolist()
        for part in range(n_parts):
            # The last one has steps where there are any: by sweep, its last one counts.
            begin, end = (begins[-1] * place // n_parts for place in (part, part + 1))
            for offset, steps in zip(begins, groups, strict=False):
                piece = steps.between(max(begin - offset, 0), max(end - offset, 0))
                if len(piece.order):
                    take(piece, parameters)
            yield
        getattr(mini_batch, "release", lambda: None)()

    def _by_group(self, number: int, among: IntArray | None = None) -> list[Steps]:
        orders = self._orders(np.random.default_rng([self.seed, number]))
        first, groups = number * sum(map(self._n_steps, orders)), []
        for place, order in enumerate(orders, 1):
            groups.append(
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
        return groups

    def _orders(self, random: np.random.Generator) -> list[IntArray]:
        """Return the instances of every group, shuffled, in a random order of groups.

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


# Workers -----------------------------------------------------------------------------------------


def averaged(parameters: AveragedParameters, weight: float, communicator: Workers) -> None:
    """Give all workers the mean of their parameters, and of what these were on average.

    A worker counts by its ``weight``, the number of its instances; one without any has weight 0.
    How many steps the average is over is a mean too, since workers may have taken more or fewer: so
    all of them continue from the same state, which a checkpoint of any of them holds.  One message,
    16 bytes per parameter.
    """
    if communicator.size == 1:
        return
    numbers, arrays = parameters.state()
    values, n_counted = arrays["values"], numbers["n_counted"]
    mean = arrays["sum"] / max(n_counted, 1.0)
    message = np.concatenate([values, mean, [n_counted, 1.0]], dtype=np.float64)
    message = communicator.sum(weight * message)
    message /= message[-1]
    common = float(round(message[-2]))
    values, mean = np.split(message[:-2], 2)
    # Shrinkages that are caught up with, as they are in a state, may be counted anew.
    parameters.restore(
        {"product": 1.0, "steps": 0.0, "n_counted": common},
        {"values": values, "sum": mean * common},
    )


@dataclass(eq=False)
class AveragingWorkers:
    """Workers that pass over instances of their own, and meet ``MEETINGS`` times in an epoch.

    They continue from the mean of their parameters, and a part of the way on which it has moved
    from meeting to meeting: what each has learned would count for a W-th among W workers, and
    with momentum 1 - 1 / W it counts in full (Chen and Huo 2016, "Scalable training of deep
    learning machines by incremental block training with intra-block parallel optimization and
    blockwise model-update filtering").  Where shares differ, W is the inverse of the sum of their
    squares.

    ``counts`` are the numbers of instances by worker; ``velocity`` (parameters,) is how the mean
    moved when they last met, None before.  16 bytes per parameter and meeting on the wire, and 16 a
    parameter in memory.
    """

    counts: Sequence[int]
    communicator: Workers = ALONE
    velocity: npt.NDArray[Any] | None = None

    @classmethod
    def of_all(cls, n_own: int, velocity: npt.NDArray[Any] | None = None) -> AveragingWorkers:
        """Return all workers that train together; this one has ``n_own`` instances."""
        return cls(current().gather(n_own), current(), velocity)

    @property
    def share(self) -> float:
        """The share of all instances that this worker has, and so its share of penalties."""
        return self.counts[self.communicator.rank] / max(sum(self.counts), 1)

    def own_seed(self, seed: int) -> int:
        """Return a seed for draws that differ by worker; the first worker has ``seed``."""
        return (seed + self.communicator.rank) % (2**31 - 1)

    def of_first(self, compute: Callable[[], float]) -> float:
        """Return what the first worker that has instances computes."""
        first = next((rank for rank, n in enumerate(self.counts) if n), 0)
        computed = compute() if self.communicator.rank == first else None
        result: float = self.communicator.gather(computed)[first]
        return result

    def sweep(
        self, descent: Descent, number: int, parameters: AveragedParameters, mini_batch: Any
    ) -> None:
        """Pass once over the instances; all workers then have the same parameters."""
        if self.communicator.size == 1:
            descent.sweep(number, parameters, mini_batch)
            return
        before = _values(parameters)
        for _ in descent.sweep_in_parts(number, MEETINGS, parameters, mini_batch):
            before = self._meet(parameters, before)

    def agree_on(self, arrays: Sequence[npt.NDArray[np.float32]]) -> None:
        """Replace the arrays of all workers by their mean, in one message."""
        if self.communicator.size == 1:
            return
        values = np.concatenate([array.reshape(-1) for array in arrays]).astype(np.float64)
        mean = self.communicator.sum(self.share * values)
        borders = np.cumsum([array.size for array in arrays])[:-1]
        for array, part in zip(arrays, np.split(mean, borders), strict=True):
            array[...] = part.reshape(array.shape)

    def _meet(self, parameters: AveragedParameters, before: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Continue from the mean, and beyond; return the parameters there."""
        averaged(parameters, self.counts[self.communicator.rank], self.communicator)
        numbers, arrays = parameters.state()
        values = arrays["values"]
        if self.velocity is not None:
            values = values + self._momentum * self.velocity
            parameters.restore(numbers, {**arrays, "values": values})
            values = _values(parameters)  # as they are kept
        self.velocity = values - before
        return values.copy()

    @property
    def _momentum(self) -> float:
        n_all = max(sum(self.counts), 1)
        return 1 - sum((n / n_all) ** 2 for n in self.counts)


def _values(parameters: AveragedParameters) -> npt.NDArray[Any]:
    return parameters.state()[1]["values"].copy()
