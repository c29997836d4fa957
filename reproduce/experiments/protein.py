"""Table 3 of Chen et al. (2015): secondary structure of proteins, on other profiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from crfx.features import windowed
from reproduce.datasets import CB513, JPred4, load_cb513, load_jpred4
from reproduce.experiments.task import Outcome, Task
from reproduce.experiments.training import Part, accuracy, effort, fit
from reproduce.experiments.words import split

_BLIND = 0  # JPred4's fold that is kept for the end
N_FOLDS = 10


@dataclass(frozen=True, slots=True)
class Options:
    """`source`: "jpred4" (its one unit is "blind") or "cb513" (ten folds); `classes`: 3 or 8.

    Features are the profiles within `window` positions, missing beyond the ends. `validation` is
    the share of the training proteins held out for early stopping. Without `tested` nothing is
    measured on the test proteins: for choosing settings by what the validation part says. `train`
    and `test` limit the number of proteins.
    """

    source: str = "jpred4"
    classes: int = 8
    window: int = 3
    validation: float = 0.0
    tested: bool = True
    train: int | None = None
    test: int | None = None


def run(task: Task) -> Outcome:
    """Share of residues with the right class, in percent."""
    options = task.options(Options)
    train, test = _parts(task, options)
    train, validation = train.limited(options.train).hold_out(options.validation)
    estimator = fit(task, train, validation)
    figures = effort(estimator, train, validation)
    if validation is not None:
        figures["validation_accuracy"] = accuracy(estimator, validation)
    if options.tested:
        figures["accuracy"] = accuracy(estimator, test.limited(options.test))
    return Outcome(figures)


_jpred4 = cache(load_jpred4)
_cb513 = cache(load_cb513)


def _parts(task: Task, options: Options) -> tuple[Part, Part]:
    data: JPred4 | CB513
    if options.source == "jpred4":
        task.only_unit("blind")
        data, fold = _jpred4(), _BLIND
    elif options.source == "cb513":
        data, fold = _cb513(n_folds=N_FOLDS), task.fold(N_FOLDS)
    else:
        raise ValueError(f"source is {options.source!r}: choose 'jpred4' or 'cb513'")
    if options.classes not in (3, 8):
        raise ValueError(f"classes is {options.classes!r}: choose 3 or 8")
    lengths = [len(profile) for profile in data.X]
    X = split(windowed(np.concatenate(data.X), lengths, options.window, options.window), lengths)
    whole = Part(X, list(data.q3 if options.classes == 3 else data.q8))
    return _known(whole, data.fold(fold)[0]), _known(whole, data.fold(fold)[1])


def _known(whole: Part, instances: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Part:
    """Return the part without proteins of unknown classes, from which nothing can be learned."""
    return whole.take(np.array([i for i in instances if whole.y[i][0] is not None]))
