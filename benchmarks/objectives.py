"""What do loss-sensitive objectives cost, compared with the likelihood?

OCR: 6,877 words, 52,152 letters, 26 labels, one table of transitions; scores as those of a model
half way, noise with the truth raised. Value and gradient of all parts, without curvature and with
it, as L-BFGS and boosting ask for them; two threads. Loss-scaled sums by the length of words. All
in every instruction set of the processor.

    python benchmarks/objectives.py                       # a minute
    python benchmarks/objectives.py --sets avx2 --quick   # a first look

Writes reports/results/objectives-speed.json and from it reports/objectives-speed.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from instruction_sets import (
    NAMES,
    Target,
    answers,
    everywhere,
    host_lines,
    in_turns,
    measured,
    parser_of,
    report,
    run_child,
)
from measuring import RESULTS, ROOT, fastest

from crfx.datasets import load_ocr
from crfx.inference.problem import Problem, prepare
from crfx.objectives.base import PartName
from crfx.objectives.curvature import parse
from crfx.objectives.registry import OBJECTIVES
from crfx.objectives.task_loss import Hamming
from crfx.objectives.truth import Truth

TARGET = RESULTS / "objectives-speed.json"
PAGE = ROOT / "reports" / "objectives-speed.md"
THREADS, PASSES, REPEATS = 2, 4, 10
NOISE, LEAD = 2.0, 4.0  # of node scores, and of the true label's
PARTS: tuple[PartName, ...] = ("node", "edge", "ends")
TARGETS = tuple(
    Target(name, f"gradient of {title}, gradients of the likelihood", everywhere(most))
    for name, title, most in (
        ("loss_augmented", "the loss-augmented objective", 1.1),
        ("kl", "KL", 1.1),
        ("expected_loss", "expected loss", 2.0),
    )
)
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


def core(repeats: str) -> dict[str, Any]:
    """Measure all figures in the instruction set of this process."""
    data = load_ocr()
    _, codes = np.unique(np.concatenate(data.y), return_inverse=True)
    problem, truth = problem_of([len(word) for word in data.y], codes, 26)
    made = {name: OBJECTIVES[name].bind(truth, Hamming(), THREADS) for name in COMPARED}
    result: dict[str, Any] = {
        how: fastest(
            {
                name: partial(objective.evaluate, problem, PARTS, curvature)
                for name, objective in made.items()
            },
            int(repeats),
        )
        for how, curvature in (("gradient", None), ("curvature", parse("auto")))
    }
    return result | {"loss_scaled": {str(length): by_length(length) for length in LENGTHS}}


def figure(key: str, ours: dict[str, Any], peers: dict[str, Any]) -> float:
    """Return the time of a gradient over that of the likelihood."""
    return ours["gradient"][key] / ours["gradient"]["likelihood"]


def measure(sets: Sequence[str], *, quick: bool) -> dict[str, Any]:
    """Measure every instruction set."""
    passes, repeats = (1, 3) if quick else (PASSES, REPEATS)
    result = in_turns(sets, passes, "core", repeats)
    return {"threads": THREADS, "repeats": passes * repeats, **result}


def by_length(length: int) -> dict[str, float]:
    """Seconds of a word, of the likelihood and of loss-scaled sums."""
    n = max(2, 2000 // length**2)
    codes = np.random.default_rng(length).integers(26, size=n * length)
    problem, truth = problem_of([length] * n, codes, 26)
    made = {name: OBJECTIVES[name] for name in ("likelihood", "loss_scaled")}
    made["loss_scaled"] = type(made["loss_scaled"])(longest=length)
    bound = {name: objective.bind(truth, Hamming(), 1) for name, objective in made.items()}
    seconds = fastest(
        {name: partial(objective.evaluate, problem, PARTS) for name, objective in bound.items()}, 5
    )
    return {name: each / n for name, each in seconds.items()}


def page(result: dict[str, Any]) -> str:
    """Return the report in Markdown."""
    lines = [
        "# What objectives that know the loss cost",
        "",
        *answers([(result, TARGETS)]),
        "",
        "Value and gradient in nodes, transitions and ends of OCR's 52,152 letters, in gradients "
        "of the likelihood in the same process.",
        "",
        "## All objectives",
        "",
        f"On {result['threads']} threads, the fastest of {result['repeats']} runs; without "
        "curvature, as L-BFGS and SGD ask, and with it, as boosting does (expected loss and "
        "label-wise likelihood borrow that of the likelihood).",
        "",
        "| objective | instruction set | gradient, ms | × likelihood | and curvature, ms "
        "| × likelihood |",
        "|---|---|---|---|---|---|",
    ]
    for name in COMPARED:
        for isa, figures in result["sets"].items():
            cells = [name, NAMES[isa]]
            for how in ("gradient", "curvature"):
                seconds = figures[how]
                cells += [f"{1e3 * seconds[name]:.1f}"]
                cells += [f"{seconds[name] / seconds['likelihood']:.2f}"]
            lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "## Loss-scaled sums",
        "",
        "They are exact by counting errors, at a cost cubic in the length; beyond `longest` "
        "positions, 20 unless set, they are sampled. One word of 26 labels, one thread:",
        "",
        "| length | instruction set | loss-scaled, ms | likelihood, ms | ratio |",
        "|---|---|---|---|---|",
    ]
    for length in map(str, LENGTHS):
        for isa, figures in result["sets"].items():
            scaled, plain = (
                figures["loss_scaled"][length][n] for n in ("loss_scaled", "likelihood")
            )
            lines.append(
                f"| {length} | {NAMES[isa]} | {1e3 * scaled:.2f} | {1e3 * plain:.4f} | "
                f"{scaled / plain:.0f} |"
            )
    lines += [
        "",
        "Rendered by `benchmarks/objectives.py` from "
        "[results/objectives-speed.json](results/objectives-speed.json).",
        "",
        *host_lines(result, ("crfx", "numpy")),
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure, print, write."""
    if run_child({"core": core}):
        return
    arguments = parser_of(__doc__.splitlines()[0]).parse_args()

    def measure_all(sets: list[str], recorded: dict[str, Any]) -> dict[str, Any]:
        run = partial(measure, sets, quick=arguments.quick)
        return measured(sets, run, recorded, TARGETS, figure)

    report(arguments, TARGET, measure_all, PAGE, page)


if __name__ == "__main__":
    main()
