"""Second-order boosting (Chen et al. 2015, Algorithm 1), with a safeguard.

Blocks take turns: nodes; edges with start and end scores.  Each step is settled by the evaluation
that the next step needs anyway: had the objective risen, the step is halved until it falls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from crfx.batch import Batch
from crfx.inference.problem import Problem
from crfx.model.model import Model
from crfx.objectives.base import Evaluation, Objective, PartName
from crfx.objectives.curvature import Curvature
from crfx.scores import FloatArray, Scores, Sharing
from crfx.structures import Chain, Forest
from crfx.trainers.base import Record, Rounds, Trainer
from crfx.trainers.blocks import Adder, Block, Changes, Proposal
from crfx.trainers.shared_evaluation import notes_of_all, of_all
from crfx.workers import Workers, count, current

MOST_HALVINGS = 12
"""Then a step is given up: by now it is 1/4096 of what the curvature suggested."""
RESOLUTION = float(np.finfo(np.float32).eps)
"""What the objective may be off by, per row: scores are float32."""


@dataclass(eq=False)
class WorkingScores:
    """Scores of a batch that grow during training, and those before the last step.

    A step is always counted from where it began: after halving, the scores are those that a model
    with the smaller step gives, bit by bit.  A change that comes as a function is one of the
    largest arrays there are, so its scores before the step are not kept until a step had to be
    halved: then ``rebuild`` gives them again, from the model, to the bit.
    """

    batch: Batch
    structure: Chain | Forest
    sharing: Sharing
    arrays: dict[str, FloatArray]
    rebuild: Callable[[], dict[str, FloatArray]] | None = None
    _before: dict[str, FloatArray] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model, batch: Batch) -> WorkingScores:
        """Score a batch by a model as it is before training."""
        structure = model.structure(batch)

        def arrays() -> dict[str, FloatArray]:
            if model.base is None or not model.can_be_cut:
                return _arrays(model.scores(batch, structure))
            # Round by round on top of what lies underneath, as training adds them.
            scores = _arrays(model.scores(batch, structure, 0))
            free = replace(batch, allowed=None)
            for one_round in model.rounds_alone():
                for name, change in _arrays(one_round.scores(free, structure)).items():
                    scores[name] += change
            return scores

        return cls(batch, structure, model.sharing, arrays(), rebuild=arrays)

    def problem(self) -> Problem:
        """Return the scores as they are now, ready for inference."""
        return Problem(self.batch, Scores(**self.arrays), self.structure, self.sharing)

    def add(self, changes: Changes, step: float) -> None:
        """Add ``step`` times the changes."""
        for name, change in changes.items():
            moved = self._before.get(name)  # of a step that is settled: memory that is free now
            if moved is None and callable(change) and self.rebuild is not None:
                change(self.arrays[name], step)
                continue
            moved = np.empty_like(self.arrays[name]) if moved is None else moved
            self._before[name], self.arrays[name] = self.arrays[name], moved
            self._move(name, change, step)

    def settle(self, changes: Changes) -> None:
        """Let go what was kept in case that these changes had to be made smaller."""
        for name, change in changes.items():
            if not callable(change):
                del self._before[name]

    def add_instead(self, changes: Changes, step: float) -> None:
        """Add ``step`` times the changes to what was there before they were last added."""
        if self.rebuild is not None and not set(changes) <= set(self._before):
            rebuilt = self.rebuild()
            self._before |= {name: rebuilt[name] for name in changes if name not in self._before}
        for name, change in changes.items():
            self._move(name, change, step)

    def _move(self, name: str, change: FloatArray | Adder, step: float) -> None:
        if callable(change):
            np.copyto(self.arrays[name], self._before[name])
            change(self.arrays[name], step)
        else:
            np.multiply(change, np.float32(step), out=self.arrays[name])
            self.arrays[name] += self._before[name]


def _arrays(scores: Scores) -> dict[str, FloatArray]:
    return {
        name: np.array(array, dtype=np.float32)
        for name in ("node", "edge", "start", "end", "pairs")
        if (array := getattr(scores, name)) is not None
    }


@dataclass(eq=False)
class _Pending:
    """A step that is taken but not settled."""

    block: Block
    proposal: Proposal
    step: float
    before: float
    halvings: int = 0


@dataclass(eq=False)
class Boosting(Trainer):
    """Moves ``blocks`` in turn to lower ``objective`` plus the blocks' penalties.

    Rounds are numbered from ``first_round`` to ``n_rounds``, those of an earlier run included.  The
    rounds before ``easier[1]`` lower ``easier[0]`` in place of the objective.  ``can_restore``:
    the model keeps its rounds apart, so that early stopping can return to any.  Workers that train
    together have scores of their own each, and one objective.
    """

    objective: Objective
    curvature: Curvature
    blocks: Sequence[Block]
    scores: WorkingScores
    learning_rate: float
    n_rounds: int
    first_round: int = 0
    followed: Sequence[WorkingScores] = ()
    easier: tuple[Objective, int] | None = None
    can_restore: bool = True
    communicator: Workers = field(default_factory=current)
    _n_done: int = 0
    _pending: _Pending | None = None
    _halvings: int = 0
    _gamma: float | None = None

    def __post_init__(self) -> None:
        # Now: a cached property is locked while it waits for others, who may be threads beside.
        self._n_rows = count(self.communicator, self.scores.batch.n_rows)
        self._n_done = self.first_round

    def followed_problem(self) -> Problem:
        """Return the first followed batch with its scores as they are now."""
        return self.followed[0].problem()

    def rounds(self) -> Rounds:
        """Yield the record of every round, once the evaluation of the next has settled it."""
        if self.easier is not None:
            easier, last = self.easier
            yield from self._rounds_of(easier, min(last, self.n_rounds))
        yield from self._rounds_of(self.objective, self.n_rounds)

    def mark(self) -> None:
        """Let the blocks remember the last settled round as the best."""
        for block in self.blocks:
            block.mark(self._n_done)

    def keep_best(self, n_done: int) -> None:
        """Drop the rounds after the first ``n_done``."""
        for block in self.blocks:
            block.keep(n_done)

    def abandon(self, n_done: int) -> None:
        """Drop what an interrupted round has left after the first ``n_done``."""
        for block in self.blocks:
            with suppress(ValueError):  # tables too large to be kept by round stay as they are
                block.keep(n_done)

    def release(self) -> None:
        """Let go of the training data."""
        for block in self.blocks:
            block.release()

    def _rounds_of(self, objective: Objective, n_rounds: int) -> Rounds:
        """Yield the records of the rounds up to ``n_rounds`` that lower one objective."""
        begin, first = time.perf_counter(), self._n_done
        for number in range(first, n_rounds):
            for index, block in enumerate(self.blocks):
                evaluation = self._settled(objective, block.parts)
                if index == 0 and number > first:
                    yield self._record(objective, evaluation.value, begin)
                    begin = time.perf_counter()
                if evaluation.mean_gamma is not None:
                    self._gamma = evaluation.mean_gamma
                self._take(block, evaluation, number)
                del evaluation  # its arrays are the largest there are; free before the next
        if n_rounds > first:
            yield self._record(objective, self._settled(objective, ()).value, begin)

    def _take(self, block: Block, evaluation: Evaluation, number: int) -> None:
        before = evaluation.value + self._penalties()
        proposal = block.propose(evaluation, number)
        self.scores.add(proposal.changes, self.learning_rate)
        self._pending = _Pending(block, proposal, self.learning_rate, before)

    def _settled(self, objective: Objective, parts: Sequence[PartName]) -> Evaluation:
        """Evaluate for the next step; if the last one raised the objective, halve it first."""
        evaluation = self._evaluate(objective, parts)
        pending = self._pending
        if pending is None:
            return evaluation
        small_rises = 0
        while not (rise := self._total(evaluation, pending) - pending.before) <= 0.0:
            small_rises += rise <= RESOLUTION * self._n_rows
            del evaluation  # its arrays are large, and the scores may have to be built anew
            # Twice no more than rounding: there is nothing left to gain.
            self._halve(pending, give_up=small_rises == 2)
            evaluation = self._evaluate(objective, parts)
            if pending.step == 0.0:
                break
        for scores, changes in zip(self.followed, pending.proposal.followed, strict=True):
            scores.add(changes, pending.step)
            scores.settle(changes)
        self.scores.settle(pending.proposal.changes)
        pending.proposal.accept(pending.step)
        self._halvings += pending.halvings
        self._pending = None
        return evaluation

    def _evaluate(self, objective: Objective, parts: Sequence[PartName]) -> Evaluation:
        evaluation = objective.evaluate(self.scores.problem(), parts, self.curvature)
        return of_all(self.communicator, evaluation, parts, self.scores.batch.n_rows)

    def _halve(self, pending: _Pending, *, give_up: bool) -> None:
        pending.halvings += 1
        give_up = give_up or pending.halvings == MOST_HALVINGS
        pending.step = 0.0 if give_up else pending.step / 2
        self.scores.add_instead(pending.proposal.changes, pending.step)

    def _penalties(self, skip: Block | None = None) -> float:
        return sum(block.penalty() for block in self.blocks if block is not skip)

    def _total(self, evaluation: Evaluation, pending: _Pending) -> float:
        rest = self._penalties(skip=pending.block)
        return evaluation.value + rest + pending.proposal.penalty(pending.step)

    def _record(self, objective: Objective, value: float, begin: float) -> Record:
        """Return the record of a round that is settled."""
        record = {
            "objective": value + self._penalties(),
            "halvings": self._halvings,
            "seconds": time.perf_counter() - begin,
        }
        self._halvings = 0
        self._n_done += 1
        if self._gamma is not None:
            record["gamma"] = self._gamma
        return record | notes_of_all(self.communicator, objective)
