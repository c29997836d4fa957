"""What do weights of labels do to rare labels, and what to all?

CB513 with eight classes, of which two are rare; proteins of fold 0 are left alone, a fifth of the
others is judged on, the rest is learned from. Beside ``class_weight`` stand the two other meanings
that were considered (docs/decisions/0017): weights of whole sequences, the mean weight of their
labels, and the loss-augmented likelihood whose mistakes cost the log of the weight. The best
labelling and the best label of each position are judged.

    python benchmarks/class_weights.py
    python benchmarks/class_weights.py --render   # only write the page anew

Needs CB513 in $CRFX_DATA. Writes reports/results/class-weights.json and from it
reports/class-weights.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np
from measuring import (
    RESULTS,
    ROOT,
    command_line,
    host_line,
    machine,
    write_json,
    write_whole,
)

from crfx import GBCRF, LinearCRF
from crfx.features import windowed
from crfx.objectives import Hamming
from reproduce.datasets import load_cb513

TARGET = RESULTS / "class-weights.json"
PAGE = ROOT / "reports" / "class-weights.md"
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
    true, scores = np.concatenate(y), {}
    for decode in ("viterbi", "marginal"):
        predicted = np.concatenate(crf.set_params(decode=decode).predict(X))
        labels = np.unique(true).tolist()
        recall = {
            label: 100 * float(np.mean(predicted[true == label] == label)) for label in labels
        }
        scores[decode] = {
            "accuracy": 100 * float(np.mean(predicted == true)),
            "mean_recall": float(np.mean(list(recall.values()))),
            "recall": recall,
        }
    return {**scores, "seconds": seconds}


def ways(weights: dict[str, float], y: list[Any]) -> dict[str, tuple[dict[str, Any], Any]]:
    """Arguments of the estimator and of fit, by what is tried."""
    arguments: dict[str, tuple[dict[str, Any], Any]] = {"none": ({}, None)}
    for power in POWERS:
        powers = {label: weight**power for label, weight in weights.items()}
        arguments[f"balanced, to the power {power:g}"] = ({"class_weight": powers}, None)
    arguments["balanced, label-wise likelihood"] = (
        {"class_weight": "balanced", "objective": "labelwise_likelihood"},
        None,
    )
    arguments["of whole sequences"] = (
        {},
        [np.mean([weights[label] for label in sequence]) for sequence in y],
    )
    least = min(weights.values())
    costs = {label: float(np.log(weight / least)) for label, weight in weights.items()}
    arguments["loss-augmented by logs"] = (
        {"objective": "loss_augmented", "task_loss": Hamming(weights=costs)},
        None,
    )
    return arguments


def measure() -> dict[str, Any]:
    """Measure all models in all ways."""
    measured_on, first = machine(), time.perf_counter()  # files may change while this runs
    X, y, X_judged, y_judged = parts()
    weights = balanced(y)
    rows: list[dict[str, Any]] = []
    for name, model in MODELS.items():
        for way, (arguments, sample_weight) in ways(weights, y).items():
            crf = type(model)(**{**model.get_params(), **arguments})
            begin = time.perf_counter()
            crf.fit(X, y, sample_weight=sample_weight)
            row = figures(crf, X_judged, y_judged, time.perf_counter() - begin)
            rows.append({"model": name, "way": way, **row})
            print(f"{name}, {way}: {row['seconds']:.0f} s", file=sys.stderr, flush=True)
    return {
        "command": command_line(),
        "machine": measured_on,
        "took": time.perf_counter() - first,
        "proteins": {"learned": len(X), "judged": len(X_judged)},
        "weights": weights,
        "rows": rows,
    }


def page(result: dict[str, Any]) -> str:
    """Return the report, rendered from the measurements."""
    labels = list(result["rows"][0]["viterbi"]["recall"])
    counts, weights = result["proteins"], result["weights"]
    values = ", ".join(f"{label} {weights[label]:.3g}" for label in weights)
    lines = [
        "# Weights of labels: their effect on rare labels and on all labels",
        "",
        "Rendered by `benchmarks/class_weights.py` from "
        "[results/class-weights.json](results/class-weights.json).",
        "",
        host_line(result, ("crfx", "numpy", "xgboost")),
        "",
        f"CB513, eight classes, windows of {2 * WINDOW + 1} positions; {counts['learned']} "
        f"proteins for training, {counts['judged']} others for evaluation, fold 0 not used. "
        f"Balanced weights: {values}. Accuracy, mean of the recalls, and the recall of each class "
        "that the judged proteins have, in percent. The rows are described in "
        "[decision 0017](../docs/decisions/0017-class-weights.md).",
    ]
    for decode, words in (
        ("viterbi", "The best labelling"),
        ("marginal", "The best label of each"),
    ):
        lines += [
            "",
            f'## {words} (`decode="{decode}"`)',
            "",
            f"| model | weights | accuracy | mean recall | {' | '.join(labels)} |",
            "|---" * (4 + len(labels)) + "|",
        ]
        for row in result["rows"]:
            scores = row[decode]
            cells = " | ".join(f"{scores['recall'][label]:.0f}" for label in labels)
            lines.append(
                f"| {row['model']} | {row['way']} | {scores['accuracy']:.1f} | "
                f"{scores['mean_recall']:.1f} | {cells} |"
            )
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--render", action="store_true", help="only write the page anew")
    if not parser.parse_args().render:
        write_json(TARGET, measure())
    text = page(json.loads(TARGET.read_text(encoding="utf-8")))
    write_whole(PAGE, text)
    print(text)


if __name__ == "__main__":
    main()
