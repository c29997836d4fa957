"""The likelihood against loss-sensitive objectives, with the same potentials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfx.datasets.folds import held_out
from crfx.metrics import spans
from crfx.objectives import registry
from reproduce.experiments import conll2003
from reproduce.experiments.hidden_units import FOLDED, N_FOLDS, describe
from reproduce.experiments.task import Outcome, Task
from reproduce.experiments.training import Part, effort, fit, predict

_HELD_OUT = 0.25  # of the training instances, to choose settings by
_RESAMPLED = 1000
_CONFIDENCE = (2.5, 97.5)

Loss = Callable[[Any, Any], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Options:
    """`source`: "ocr", trained on one fold and tested on the nine others; "cb513", the other way
    round; "conll2003".

    `grid` lists settings of which the best on a held-out part of the training instances is used, by
    `judge`, "error" or "f1". With `start` those settings are trained first, and the row's own from
    there. `train` and `test` limit the number of instances.
    """

    source: str = "ocr"
    grid: list[dict[str, Any]] = field(default_factory=list)
    judge: str = "error"
    start: dict[str, Any] | None = None
    train: int | None = None
    test: int | None = None


def run(task: Task) -> Outcome:
    """Error per position, in percent, and F1 of spans where there are any, with intervals that hold
    95 of 100 resamplings of the test instances.
    """
    options = task.options(Options)
    train, test = _parts(task, options)
    chosen = _best(task, options, train)
    estimator = _fitted(_with(task, options.grid[chosen] if options.grid else {}), options, train)
    predicted = predict(estimator, test)
    figures = _judged("error", test.y, predicted)
    if options.source == "conll2003":
        figures |= _judged("f1", test.y, predicted)
    else:
        best = predict(estimator.set_params(decode="viterbi"), test)
        figures["error_viterbi"] = _judged("error", test.y, best)["error"]
    for name in ("sampled_instances", "effective_sample_size"):
        if name in estimator.history_:
            figures[name] = float(estimator.history_[name][-1])
    return Outcome({**figures, "chosen": chosen, **effort(estimator, train)})


def _parts(task: Task, options: Options) -> tuple[Part, Part]:
    if options.source == "conll2003":
        task.only_unit("test")
        data = conll2003.load()
        train, test = _sentences(data.train), _sentences(data.testb)
    elif options.source in ("ocr", "cb513"):
        whole, folds = FOLDED[options.source]()
        many, few = (whole.take(part) for part in held_out(folds, task.fold(N_FOLDS)))
        train, test = (few, many) if options.source == "ocr" else (many, few)
    else:
        raise ValueError(f"source is {options.source!r}: choose 'ocr', 'cb513' or 'conll2003'")
    return train.limited(options.train), test.limited(options.test)


def _sentences(split: Any) -> Part:
    words = [[token.word for token in sentence] for sentence in split.X]
    return Part(
        [describe(sentence) for sentence in words], [conll2003.bio2(tags) for tags in split.y]
    )


def _best(task: Task, options: Options, train: Part) -> int:
    """Return the number of the best grid point on the held-out part."""
    if len(options.grid) < 2:
        return 0
    rest, judged = train.hold_out(_HELD_OUT)
    assert judged is not None
    loss = _LOSSES[options.judge]
    shares = []
    for settings in options.grid:
        predicted = predict(_fitted(_with(task, settings), options, rest), judged)
        counts = np.array([loss(a, b) for a, b in zip(judged.y, predicted, strict=True)])
        wrong, total = counts.sum(axis=0)
        shares.append(wrong / total)
    return int(np.argmin(shares))


def _fitted(task: Task, options: Options, train: Part) -> Any:
    start = None
    if options.start is not None:
        first = {"objective": "likelihood", "task_loss": None, **options.start}
        start = fit(_with(task, first), train)
    return fit(task, train, init_model=start)


def _with(task: Task, settings: dict[str, Any]) -> Task:
    """Return the task with other settings; an objective is a table of its name and settings."""
    merged = {**task.settings, **settings}
    merged["objective"] = registry.from_plain(merged.get("objective", "likelihood"))
    return replace(task, settings=merged)


def _error(true: Any, predicted: Any) -> tuple[float, float]:
    """Return (wrong, all) positions of an instance."""
    return float(np.sum(np.asarray(true) != np.asarray(predicted))), float(len(true))


def _f1(true: Any, predicted: Any) -> tuple[float, float]:
    """Return (spans in only one of both labellings, spans in both together) of an instance."""
    true_spans, predicted_spans = spans(true), spans(predicted)
    return float(len(true_spans ^ predicted_spans)), float(len(true_spans) + len(predicted_spans))


_LOSSES: dict[str, Loss] = {"error": _error, "f1": _f1}
"""Parts of a share: of errors, and of 1 - F1."""


def _judged(name: str, true: list[Any], predicted: list[Any]) -> dict[str, float]:
    """Return a figure in percent, with a bootstrap interval over instances."""
    counts = np.array([_LOSSES[name](a, b) for a, b in zip(true, predicted, strict=True)])

    def percent(of: NDArray[np.float64]) -> float:
        wrong, total = of.sum(axis=0)
        share = wrong / total if total else 0.0
        return float(100 * (share if name == "error" else 1 - share))

    random = np.random.default_rng(0)
    drawn = [
        percent(counts[random.integers(len(counts), size=len(counts))]) for _ in range(_RESAMPLED)
    ]
    low, high = np.percentile(drawn, _CONFIDENCE)
    return {name: percent(counts), f"{name}_low": float(low), f"{name}_high": float(high)}
