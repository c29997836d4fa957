"""CRFsuite (Okazaki 2007; python-crfsuite), for comparisons; no other file imports it.

Its training and tagging are timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

LOSS, TRIALS, SIZE = "Loss: ", "Line search trials: ", "Number of features: "


@dataclass
class Trace:
    """One training run: seconds and objective after every iteration, from the call that trains."""

    reading: float = 0.0
    seconds: list[float] = field(default_factory=list)
    objectives: list[float] = field(default_factory=list)
    trials: list[int] = field(default_factory=list)
    n_weights: int = 0

    def note(self, seconds: float, objective: float) -> None:
        """Record the end of an iteration."""
        self.seconds.append(seconds)
        self.objectives.append(objective)

    def first_below(self, value: float) -> int | None:
        """Return the first iteration, from 0, that reached a value, or None."""
        reached = (number for number, objective in enumerate(self.objectives) if objective <= value)
        return next(reached, None)


def _library() -> Any:
    try:
        import pycrfsuite
    except ImportError:
        raise ImportError("this needs python-crfsuite: pip install 'crfx[bench]'") from None
    return pycrfsuite


def _new_trainer(trace: Trace, tell: Callable[[str], None] | None) -> Any:
    """Return a trainer that records its messages in ``trace`` and can print them."""

    class Watched(_library().BaseTrainer):  # type: ignore[misc]
        begin = 0.0

        def message(self, text: str) -> None:
            if text.startswith(LOSS):
                trace.note(time.perf_counter() - self.begin, float(text[len(LOSS) :]))
            elif text.startswith(TRIALS):
                trace.trials.append(int(text[len(TRIALS) :]))
            elif text.startswith(SIZE):
                trace.n_weights = int(text[len(SIZE) :])
            if tell is not None and text.startswith((LOSS, TRIALS, SIZE)):
                tell(text.strip())

    return Watched()


def settings(l2: float, max_iter: int, tol: float) -> dict[str, object]:
    """Return CRFsuite's parameters for l2, max_iter and tol of `LinearCRF`.

    L-BFGS without an L1 penalty; weights for the pairs and transitions that occur, as is its
    default.  ``epsilon``, a second reason to stop, is so small that it is never the one.
    """
    return {
        "c1": 0.0,
        "c2": l2,
        "max_iterations": max_iter,
        "period": 10,
        "delta": tol,
        "epsilon": min(tol, 1e-7),
        "feature.minfreq": 0,
        "feature.possible_states": 0,
        "feature.possible_transitions": 0,
    }


def train(
    X: Iterable[Any],
    y: Iterable[Sequence[str]],
    params: dict[str, object],
    model: str = "",
    tell: Callable[[str], None] | None = None,
) -> Trace:
    """Train on instances and write ``model``, where it has a name; what happened when."""
    trace = Trace()
    trainer = _new_trainer(trace, tell)
    trainer.set_params(params)
    begin = time.perf_counter()
    for features, labels in zip(X, y, strict=True):
        trainer.append(features, labels)
    trace.reading = time.perf_counter() - begin
    trainer.begin = time.perf_counter()
    trainer.train(model)
    return trace


def open_tagger(model: str) -> Any:
    """Return a tagger for a model file."""
    tagger = _library().Tagger()
    tagger.open(model)
    return tagger


def prepared(X: Iterable[Any]) -> list[Any]:
    """Instances in CRFsuite's own form: names and values, which it looks up while it tags."""
    library = _library()
    return [library.ItemSequence(features) for features in X]


def tag_prepared(tagger: Any, items: Sequence[Any]) -> list[list[str]]:
    """Return the tags of prepared instances."""
    tags = []
    for item in items:
        tagger.set(item)
        tags.append(tagger.tag())
    return tags


def tag(tagger: Any, X: Iterable[Any]) -> list[list[str]]:
    """Return the tags of dicts or texts."""
    return [tagger.tag(features) for features in X]
