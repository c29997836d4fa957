"""What do objectives that know the loss cost, beside the likelihood?

OCR: 6,877 words, 52,152 letters, 26 labels, one table of transitions; scores as those of a model
half way, noise with the truth raised. Value and gradient of all parts, without curvature and with
it, as L-BFGS and boosting ask for them; two threads. Loss-scaled sums by the length of words.

    python benchmarks/objectives.py            # some minutes
    python benchmarks/objectives.py --render   # only write the page anew

Writes reports/results/objectives-speed.json and from it reports/objectives-speed.md.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from measuring import (
    RESULTS,
    ROOT,
    command_line,
    fastest,
    host_line,
    machine,
    verdict,
    write_json,
    write_whole,
)

from crfx.datasets import load_ocr
from crfx.inference.problem import Problem, prepare
from crfx.objectives.base import PartName
from crfx.objectives.curvature import parse
from crfx.objectives.options import OPTIONS
from crfx.objectives.task_loss import Hamming
from crfx.objectives.truth import Truth

TARGET = RESULTS / "objectives-speed.json"
PAGE = ROOT / "reports" / "objectives-speed.md"
THREADS, REPEATS = 2, 30
NOISE, LEAD = 2.0, 4.0  # of node scores, and of the true label's
PARTS: tuple[PartName, ...] = ("node", "edge", "ends")
MOST = {"loss_augmented": 1.1, "kl": 1.1, "expected_loss": 2.0}
COMPARED = ("likelihood", "loss_augmented", "kl", "expected_loss", "labelwise_likelihood")
LENGTHS = (2, 4, 8, 16, 32)


def problem_of(lengths: Any, codes: Any, n_labels: int) -> tuple[Problem, Truth]:
    """Scores, and the truth they come near."""
    random = np.random.default_rng(0)
    node = NOISE * random.normal(size=(len(codes), n_labels))
    node[np.arange(len(codes)), codes] += LEAD
    edge, ends = random.normal(size=(n_labels, n_labels)), np.zeros(n_labels)
    offsets = np.append(0, np.cumsum(lengths))
    problem = prepare(node.astype(np.float32), edge, offsets, start=ends, end=ends)
    return problem, Truth(problem.batch, problem.structure, codes, None, np.arange(n_labels))


def measure() -> dict[str, Any]:
    """All figures."""
    begin = time.perf_counter()
    data = load_ocr()
    _, codes = np.unique(np.concatenate(data.y), return_inverse=True)
    problem, truth = problem_of([len(word) for word in data.y], codes, 26)
    made = {name: OPTIONS[name]().bind(truth, Hamming(), THREADS) for name in COMPARED}
    seconds = {
        how: fastest(
            {
                name: lambda own=own, curvature=curvature: own.evaluate(problem, PARTS, curvature)
                for name, own in made.items()
            },
            REPEATS,
        )
        for how, curvature in (("gradient", None), ("curvature", parse("auto")))
    }
    scaled = [by_length(length) for length in LENGTHS]
    return {
        "command": command_line(),
        "machine": machine(),
        "took": time.perf_counter() - begin,
        "threads": THREADS,
        "seconds": seconds,
        "loss_scaled": scaled,
    }


def by_length(length: int) -> dict[str, float]:
    """Seconds of a word, of the likelihood and of loss-scaled sums."""
    n = max(2, 2000 // length**2)
    codes = np.random.default_rng(length).integers(26, size=n * length)
    problem, truth = problem_of([length] * n, codes, 26)
    made = {name: OPTIONS[name]() for name in ("likelihood", "loss_scaled")}
    made["loss_scaled"] = type(made["loss_scaled"])(longest=length)
    bound = {name: own.bind(truth, Hamming(), 1) for name, own in made.items()}
    seconds = fastest(
        {name: lambda own=own: own.evaluate(problem, PARTS) for name, own in bound.items()}, 5
    )
    return {"length": length} | {name: each / n for name, each in seconds.items()}


def page(found: dict[str, Any]) -> str:
    """The report in Markdown."""
    lines = [
        "# What objectives that know the loss cost",
        "",
        "Value and gradient in nodes, transitions and ends of OCR's 52,152 letters, against the",
        "likelihood in the same run, minimum of several; without curvature, as L-BFGS and SGD ask,",
        "and with it, as boosting does (expected loss and label-wise likelihood borrow that of the",
        "likelihood).",
        "",
        "| objective | gradient, ms | × likelihood | to reach | and curvature, ms | × likelihood |",
        "|---|---|---|---|---|---|",
    ]
    plain, curved = found["seconds"]["gradient"], found["seconds"]["curvature"]
    for name in COMPARED:
        ratio = plain[name] / plain["likelihood"]
        limit = MOST.get(name)
        asked = "" if limit is None else f"≤ {limit}: {verdict(ratio <= limit)}"
        lines.append(
            f"| {name} | {1e3 * plain[name]:.1f} | {ratio:.2f} | {asked} | "
            f"{1e3 * curved[name]:.1f} | {curved[name] / curved['likelihood']:.2f} |"
        )
    lines += [
        "",
        "Loss-scaled sums are exact by counting errors, at a cost cubic in the length; beyond",
        "`longest` positions, 20 unless set, they are sampled. One word of 26 labels, one thread:",
        "",
        "| length | loss-scaled, ms | likelihood, ms | ratio |",
        "|---|---|---|---|",
    ]
    for row in found["loss_scaled"]:
        ratio = row["loss_scaled"] / row["likelihood"]
        lines.append(
            f"| {row['length']} | {1e3 * row['loss_scaled']:.2f} | {1e3 * row['likelihood']:.4f} | "
            f"{ratio:.0f} |"
        )
    return "\n".join([*lines, "", host_line(found, ("crfx", "numpy")), ""])


def main() -> None:
    """Measure, unless asked only to write the page; then write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--render", action="store_true", help="write the page anew")
    if not parser.parse_args().render:
        write_json(TARGET, measure())
    write_whole(PAGE, page(json.loads(TARGET.read_text())))


if __name__ == "__main__":
    main()
