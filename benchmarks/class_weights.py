"""What do weights of labels do to rare labels, and what to all?

CB513 with eight classes, of which two are rare; proteins of fold 0 are left alone, a fifth of the
others is judged on, the rest is learned from. Beside ``class_weight`` stand the two other meanings
that were considered (docs/decisions/0017): weights of whole sequences, the mean weight of their
labels, and the loss-augmented likelihood whose mistakes cost the log of the weight. The best
labelling and the best label of each position are judged.

    python benchmarks/class_weights.py

Needs CB513 in $CRFX_DATA. Writes reports/results/class-weights.json.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from measuring import RESULTS, command_line, machine, write_json

from crfx import GBCRF, LinearCRF
from crfx.datasets import load_cb513
from crfx.features import windowed
from crfx.objectives import Hamming

TARGET = RESULTS / "class-weights.json"
WINDOW = 3
SEED = 0
POWERS = (0.5, 1.0)
"""Of balanced weights: the root is milder."""
MODELS: dict[str, Any] = {
    "linear": LinearCRF(features="all", max_iter=100),
    "boosted": GBCRF(30, max_depth=4, random_state=SEED),
}


def parts() -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """X and y to learn from, X and y to judge on."""
    data = load_cb513()
    lengths = [len(x) for x in data.X]
    stacked = windowed(np.concatenate(data.X), lengths, WINDOW, WINDOW)
    X = np.split(np.nan_to_num(stacked), np.cumsum(lengths)[:-1])
    chosen = [i for i in data.fold(0)[0] if data.q8[i][0] is not None]
    order = np.random.default_rng(SEED).permutation(chosen)
    judged, learned = order[: len(order) // 5], order[len(order) // 5 :]
    return (
        [X[i] for i in learned],
        [data.q8[i] for i in learned],
        [X[i] for i in judged],
        [data.q8[i] for i in judged],
    )


def balanced(y: list[Any]) -> dict[str, float]:
    """n / (labels * count)."""
    labels, counts = np.unique(np.concatenate(y), return_counts=True)
    return dict(zip(labels.tolist(), (counts.sum() / (len(labels) * counts)).tolist(), strict=True))


def figures(crf: Any, X: list[Any], y: list[Any], seconds: float) -> dict[str, Any]:
    """Accuracy, recall by label and its mean, in percent."""
    true, told = np.concatenate(y), {}
    for decode in ("viterbi", "marginal"):
        found = np.concatenate(crf.set_params(decode=decode).predict(X))
        labels = np.unique(true).tolist()
        recall = {own: 100 * float(np.mean(found[true == own] == own)) for own in labels}
        told[decode] = {
            "accuracy": 100 * float(np.mean(found == true)),
            "mean_recall": float(np.mean(list(recall.values()))),
            "recall": recall,
        }
    return {**told, "seconds": seconds}


def ways(weights: dict[str, float], y: list[Any]) -> dict[str, tuple[dict[str, Any], Any]]:
    """Arguments of the estimator and of fit, by what is tried."""
    found: dict[str, tuple[dict[str, Any], Any]] = {"none": ({}, None)}
    for power in POWERS:
        own = {label: weight**power for label, weight in weights.items()}
        found[f"class_weight, power {power:g}"] = ({"class_weight": own}, None)
    found["class_weight, labelwise"] = (
        {"class_weight": "balanced", "objective": "labelwise_likelihood"},
        None,
    )
    found["of sequences"] = ({}, [np.mean([weights[label] for label in own]) for own in y])
    least = min(weights.values())
    costs = {label: float(np.log(weight / least)) for label, weight in weights.items()}
    found["augmented by logs"] = (
        {"objective": "loss_augmented", "task_loss": Hamming(weights=costs)},
        None,
    )
    return found


def main() -> None:
    """Measure and write."""
    measured_on = machine()  # as it is now: files may change while this runs
    X, y, X_judged, y_judged = parts()
    weights = balanced(y)
    rows: dict[str, Any] = {}
    for name, model in MODELS.items():
        for way, (arguments, sample_weight) in ways(weights, y).items():
            crf = type(model)(**{**model.get_params(), **arguments})
            begin = time.perf_counter()
            crf.fit(X, y, sample_weight=sample_weight)
            row = figures(crf, X_judged, y_judged, time.perf_counter() - begin)
            rows[f"{name}, {way}"] = row
            for decode in ("viterbi", "marginal"):
                own = row[decode]
                print(f"{name:8} {way:24} {decode:8}", end=" ")
                print(f"{own['accuracy']:6.2f} {own['mean_recall']:6.2f}", end=" ")
                print({label: round(value) for label, value in own["recall"].items()}, flush=True)
    write_json(
        TARGET,
        {
            "command": command_line(),
            "machine": measured_on,
            "instances": {"learned": len(X), "judged": len(X_judged)},
            "weights": weights,
            "rows": rows,
        },
    )


if __name__ == "__main__":
    main()
