"""Training tasks: real data if there is a data set, and noise to measure size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Task:
    """Instances to train on, and others to label; ``fit`` arguments by name."""

    train: dict[str, Any]
    test: dict[str, Any]


def ocr(n_words: int | None = None) -> Task:
    """Handwritten words, all but those of fold 0; and these."""
    from crfx.datasets import load_ocr

    data = load_ocr()
    train, test = data.fold(0)
    words = train[:n_words]
    return Task(
        {"X": [data.X[k] for k in words], "y": [data.y[k] for k in words]},
        {"X": [data.X[k] for k in test]},
    )


def ranking() -> Task:
    """Queries of MQ2008, fold 1."""
    from crfx.datasets import load_mq2008

    fold = load_mq2008().fold(1)
    train, test = fold.train, fold.test
    return Task(
        {"X": train.X, "relevance": train.relevance, "group": train.group},
        {"X": test.X, "group": test.group},
    )


def noise(
    n_rows: int, n_features: int, n_labels: int, seed: int = 0, length: int = 20
) -> dict[str, Any]:
    """Chains of labels that tend to stay, seen through noise: stacked rows with their lengths."""
    random = np.random.default_rng(seed)
    n_instances = n_rows // length
    stays = random.random((n_instances, length)) < 0.7
    drawn = random.integers(n_labels, size=(n_instances, length))
    labels = drawn
    for position in range(1, length):
        labels[:, position] = np.where(
            stays[:, position], labels[:, position - 1], drawn[:, position]
        )
    y = labels.reshape(-1)
    centres = np.random.default_rng(1).normal(size=(n_labels, n_features)).astype(np.float32)
    X: npt.NDArray[np.float32] = random.standard_normal((len(y), n_features), dtype=np.float32)
    X *= 2.0
    X += centres[y]
    return {"X": X, "y": y, "lengths": np.full(n_instances, length)}


def as_lists(task: dict[str, Any]) -> dict[str, Any]:
    """Return the task with lists of instances."""
    ends = np.cumsum(task["lengths"])[:-1]
    return {name: np.split(task[name], ends) for name in ("X", "y")}
