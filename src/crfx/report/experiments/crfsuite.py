"""CRFsuite (Okazaki 2007), trained on the same features as a peer to measure against."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from crfx.report.experiments.task import Task
from crfx.report.experiments.training import Part

_HOW_TO_GET = "this row needs python-crfsuite: pip install 'crfx[bench]'"


def tagged(task: Task, train: Part, test: Part) -> tuple[list[list[str]], dict[str, float]]:
    """Its tags of the test instances, and what the training took.

    Settings but `estimator` are its own parameters.
    """
    try:
        import pycrfsuite
    except ImportError:
        raise ImportError(_HOW_TO_GET) from None

    settings = {name: value for name, value in task.settings.items() if name != "estimator"}
    trainer: Any = pycrfsuite.Trainer(params=settings, verbose=bool(task.verbose))
    for X, y in zip(train.X, train.y, strict=True):
        trainer.append(X, list(y))
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "model")
        begin = time.perf_counter()
        trainer.train(model)
        seconds = time.perf_counter() - begin
        rounds = len(trainer.logparser.iterations)
        with pycrfsuite.Tagger().open(model) as tagger:
            found = [tagger.tag(X) for X in test.X]
    return found, {
        "rounds": float(rounds),
        "seconds_per_round": seconds / max(1, rounds),
        "train_instances": float(len(train.y)),
        "train_positions": float(sum(map(len, train.y))),
    }
