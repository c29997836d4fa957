"""Second-order boosting (Chen et al. 2015, Algorithm 1), with a safeguard.

Blocks take turns: nodes; edges with start and end scores.  Each step is settled by the evaluation
that the next step needs anyway: had the objective risen, the step is halved until it falls.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from crfx.batch import Batch
from crfx.inference.problem import Problem
from crfx.objectives.base import Evaluation, Objective, PartName
from crfx.objectives.curvature import Curvature
from crfx.scores import FloatArray, Scores, Sharing
from crfx.structures import Chain, Forest
from crfx.trainers.blocks import Block, Changes, Proposal
from crfx.trainers.callbacks import Callback, History, Progress, any_stops

MOST_HALVINGS = 12
"""Then a step is given up: by now it is 1/4096 of what the curvature suggested."""


@dataclass(eq=False)
class WorkingScores:
    """Scores of a batch that grow during training; arrays are changed in place."""

    batch: Batch
    structure: Chain | Forest
    sharing: Sharing
    arrays: dict[str, FloatArray]

    def problem(self) -> Problem:
        """The scores as they are now, ready for inference."""
        return Problem(self.batch, Scores(**self.arrays), self.structure, self.sharing)

    def add(self, changes: Changes, step: float) -> None:
        """Add ``step`` times the changes."""
        for name, change in changes.items():
            self.arrays[name] += np.float32(step) * change


@dataclass(eq=False)
class _Pending:
    """A step that is taken but not settled."""

    block: Block
    proposal: Proposal
    step: float
    before: float
    halvings: int = 0


@dataclass(eq=False)
class Boosting:
    """Moves ``blocks`` in turn to lower ``objective`` plus the blocks' penalties.

    ``metric`` (scores of the followed batches) -> the number recorded as ``eval_metric``.
    """

    objective: Objective
    curvature: Curvature
    blocks: Sequence[Block]
    scores: WorkingScores
    learning_rate: float
    followed: Sequence[WorkingScores] = ()
    metric: Callable[[], float] | None = None
    callbacks: Sequence[Callback] = ()
    save: Callable[[str | os.PathLike[str]], None] | None = None
    first_round: int = 0
    history: History = field(default_factory=dict)
    _pending: _Pending | None = None
    _halvings: int = 0

    def run(self, n_rounds: int) -> int:
        """Train up to ``n_rounds`` rounds, first ones included; return how many there are."""
        begin, number = time.perf_counter(), self.first_round
        while number < n_rounds:
            gamma = None
            for index, block in enumerate(self.blocks):
                evaluation = self._settled(block.parts)
                if index == 0 and number > self.first_round:
                    stop = self._finish(number, evaluation.value, begin)
                    if stop:
                        return number
                    begin = time.perf_counter()
                if evaluation.mean_gamma is not None:
                    gamma = evaluation.mean_gamma
                self._take(block, evaluation, number)
            if gamma is not None:
                self.history.setdefault("gamma", []).append(gamma)
            number += 1
        if number > self.first_round:
            self._finish(number, self._settled(()).value, begin)
        return number

    def _take(self, block: Block, evaluation: Evaluation, number: int) -> None:
        before = evaluation.value + self._penalties()
        proposal = block.propose(evaluation, number)
        self.scores.add(proposal.changes, self.learning_rate)
        self._pending = _Pending(block, proposal, self.learning_rate, before)

    def _settled(self, parts: Sequence[PartName]) -> Evaluation:
        """Evaluate for the next step; if the last one raised the objective, halve it first."""
        evaluation = self._evaluate(parts)
        pending = self._pending
        if pending is None:
            return evaluation
        while not self._total(evaluation, pending) <= pending.before:
            self._halve(pending)
            evaluation = self._evaluate(parts)
            if pending.step == 0.0:
                break
        for scores, changes in zip(self.followed, pending.proposal.followed, strict=True):
            scores.add(changes, pending.step)
        pending.proposal.accept(pending.step)
        self._halvings += pending.halvings
        self._pending = None
        return evaluation

    def _evaluate(self, parts: Sequence[PartName]) -> Evaluation:
        return self.objective.evaluate(self.scores.problem(), parts, self.curvature)

    def _halve(self, pending: _Pending) -> None:
        pending.halvings += 1
        smaller = pending.step / 2 if pending.halvings < MOST_HALVINGS else 0.0
        self.scores.add(pending.proposal.changes, smaller - pending.step)
        pending.step = smaller

    def _penalties(self, skip: Block | None = None) -> float:
        return sum(block.penalty() for block in self.blocks if block is not skip)

    def _total(self, evaluation: Evaluation, pending: _Pending) -> float:
        rest = self._penalties(skip=pending.block)
        return evaluation.value + rest + pending.proposal.penalty(pending.step)

    def _finish(self, n_rounds: int, value: float, begin: float) -> bool:
        """Record a round that is settled; whether to stop."""
        record = {
            "objective": value + self._penalties(),
            "halvings": self._halvings,
            "seconds": time.perf_counter() - begin,
        }
        self._halvings = 0
        if self.metric is not None:
            record["eval_metric"] = self.metric()
        for name, entry in record.items():
            self.history.setdefault(name, []).append(entry)
        progress = Progress(n_rounds, self.history, self.save)
        return any_stops(self.callbacks, progress)
