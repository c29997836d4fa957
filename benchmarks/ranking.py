"""How much faster than NumPy are sums over all permutations of a query, and for which sizes?

Yardstick: the permutations of six documents listed once (720 x 6), then for every query and
objective matrix products and exponentials over them, as one would write it in NumPy; one query at a
time, one thread. Ours: the core in every instruction set of the processor, many queries in one
call, one thread. Random scores and relevance.

    python benchmarks/ranking.py                       # two minutes
    python benchmarks/ranking.py --sets avx2 --quick   # a first look

Writes reports/results/ranking.json and from it reports/ranking.md.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when NumPy is loaded

from collections.abc import Sequence
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
from instruction_sets import (
    NAMES,
    Target,
    answers,
    host_lines,
    in_child,
    in_turns,
    measured,
    parser_of,
    peers_of,
    report,
    run_child,
)
from measuring import RESULTS, ROOT, fastest

from crfx.objectives.ranking import OBJECTIVES, RankingObjective
from crfx.structures.ranking import rank_weights

TARGET = RESULTS / "ranking.json"
PAGE = ROOT / "reports" / "ranking.md"
TARGETS = (
    Target(
        "all_objectives",
        "value and gradient of all five objectives, times faster than NumPy",
        {"avx512": 50},
        at_least=True,
        digits=0,
    ),
)
DOCUMENTS = 6
QUERIES, LISTED_QUERIES, PASSES, REPEATS = 4000, 100, 5, 12
SIZES = (4, 6, 8, 10, 12, 14, 16)
SAMPLED_SIZES, SPREADS, N_SAMPLES = (20, 40, 80, 160), (1.0, 3.0, 10.0), 1000
TEMPERATURE = 0.05

ALPHA = rank_weights(DOCUMENTS)
ORDERS = ALPHA[np.array(list(permutations(range(DOCUMENTS))))]  # (720, 6)
BACK = np.ascontiguousarray(ORDERS.T)


def objective(name: str) -> RankingObjective:
    """Return the objective that both sides compute."""
    return RankingObjective(name, temperature=TEMPERATURE)


def queries(m: int, n: int, spread: float = 1.0) -> tuple[Any, Any, Any]:
    """Scores, gains and offsets."""
    random = np.random.default_rng(m)
    gains = random.integers(3, size=m * n).astype(float)
    gains[::m], gains[1::m] = 0.0, 3.0  # an order can be told
    return spread * random.normal(size=m * n), gains, np.arange(0, m * n + 1, m)


def by_listing(name: str, scores: Any, gains: Any) -> tuple[float, Any]:
    """Value and gradient of one query in NumPy, over the orders listed beforehand."""
    loss = 1.0 - ORDERS @ (gains / (np.sort(gains)[::-1] @ ALPHA))
    score = ORDERS @ scores
    if name == "expected_loss":
        _, p = normalised(score)
        value = p @ loss
        return value, BACK @ (p * (loss - value))
    if name == "kl":
        log_q, q = normalised(-loss / TEMPERATURE)
        log_z, p = normalised(score)
        return q @ (-loss / TEMPERATURE - score) - log_q + log_z, BACK @ (p - q)
    truth = np.abs(loss) < 1e-12
    truth = truth / truth.sum()
    if name == "loss_scaled":
        log_z, p = normalised(loss * (1.0 + score - truth @ score))
        pulled = p * loss
        return log_z, BACK @ (pulled - pulled.sum() * truth)
    log_z, p = normalised(score + loss if name == "loss_augmented" else score)
    return log_z - truth @ score, BACK @ (p - truth)


def normalised(logs: Any) -> tuple[float, Any]:
    """Log of the sum of exponentials, and their shares."""
    top = logs.max()
    weights = np.exp(logs - top)
    total = weights.sum()
    return top + np.log(total), weights / total


def check(name: str) -> float:
    """Return the largest difference between both sides, over some queries."""
    scores, gains, offsets = queries(DOCUMENTS, LISTED_QUERIES)
    evaluation = objective(name).evaluate(scores, gains, offsets)
    worst = 0.0
    for k in range(LISTED_QUERIES):
        rows = slice(offsets[k], offsets[k + 1])
        value, gradient = by_listing(name, scores[rows], gains[rows])
        difference = np.abs(evaluation.gradient[rows] - gradient).max()
        worst = max(worst, abs(evaluation.value[k] - value), difference)
    return float(worst)


def core(repeats: str) -> dict[str, Any]:
    """Measure the core in the instruction set of this process: seconds per query."""
    data = queries(DOCUMENTS, QUERIES)
    speed, difference = {}, {}
    for name in OBJECTIVES:
        evaluate = partial(objective(name).evaluate, *data, n_jobs=1)
        tasks = {"gradient": evaluate, "curvature": partial(evaluate, curvature=True)}
        seconds = fastest(tasks, int(repeats))
        speed[name] = {task: each / QUERIES for task, each in seconds.items()}
        difference[name] = check(name)
    return {"speed": speed, "difference": difference, "sizes": sizes()}


def sizes() -> dict[str, dict[str, float]]:
    """Measure exact sums by number of documents: seconds per query."""
    seconds = {}
    for m in SIZES:
        n = max(8, min(2000, 2**18 // 2**m))
        evaluate = partial(objective("kl").evaluate, *queries(m, n), n_jobs=1)
        tasks = {"gradient": evaluate, "curvature": partial(evaluate, curvature=True)}
        seconds[str(m)] = {task: each / n for task, each in fastest(tasks, 3).items()}
    return seconds


def listing(repeats: str) -> dict[str, float]:
    """Measure NumPy: seconds per query."""
    scores, gains, _ = queries(DOCUMENTS, QUERIES)
    rows = [slice(DOCUMENTS * k, DOCUMENTS * (k + 1)) for k in range(LISTED_QUERIES)]

    def task(name: str) -> None:
        for query in rows:
            by_listing(name, scores[query], gains[query])

    tasks = {name: partial(task, name) for name in OBJECTIVES}
    seconds = fastest(tasks, int(repeats))
    return {name: each / LISTED_QUERIES for name, each in seconds.items()}


def samples() -> list[dict[str, Any]]:
    """Effective samples by size and by the spread of scores."""
    rows = []
    for name in ("likelihood", "loss_scaled"):
        sampled = RankingObjective(name, n_samples=N_SAMPLES)
        for spread in SPREADS:
            effective = [
                float(np.median(sampled.evaluate(*queries(m, 20, spread)).effective))
                for m in SAMPLED_SIZES
            ]
            rows.append({"objective": name, "spread": spread, "effective": effective})
    return rows


def figure(key: str, ours: dict[str, Any], peers: dict[str, Any]) -> float:
    """Return how many times faster than NumPy all objectives are together."""
    return sum(peers.values()) / sum(each["gradient"] for each in ours["speed"].values())


def measure(sets: Sequence[str], *, quick: bool) -> dict[str, Any]:
    """Measure everything."""
    passes, repeats = (1, 3) if quick else (PASSES, REPEATS)
    result = in_turns(sets, passes, "core", repeats, peers="listing")
    return {**result, "samples": in_child("samples")}


def page(result: dict[str, Any]) -> str:
    """Return the report, rendered from what was measured."""
    lines = [
        "# Ranking: sums over all permutations",
        "",
        *answers([(result, TARGETS)]),
        "",
        "## Six documents",
        "",
        "Value and gradient of one query of six documents (720 permutations), one thread. NumPy "
        "lists the permutations once and takes a query at a time; the core sums over subsets of "
        "documents (for loss-scaled energies it lists, too), several queries in vector lanes.",
        "",
        "| objective | instruction set | core | with curvature | NumPy | ratio | "
        "largest difference |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in OBJECTIVES:
        for isa, figures in result["sets"].items():
            seconds, theirs = figures["speed"][name], peers_of(result, isa)[name]
            cells = [name, NAMES[isa], *(_time(seconds[task]) for task in seconds), _time(theirs)]
            cells += [f"{theirs / seconds['gradient']:.0f}", f"{figures['difference'][name]:.0e}"]
            lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "## Larger queries",
        "",
        "Exact sums (KL), time per query:",
        "",
        "| documents | | " + " | ".join(map(str, SIZES)) + " |",
        "|---" * (len(SIZES) + 2) + "|",
    ]
    for task, words in (("gradient", "gradient"), ("curvature", "and curvature")):
        for isa, figures in result["sets"].items():
            cells = [_time(figures["sizes"][str(m)][task]) for m in SIZES]
            lines.append("| " + " | ".join([words, NAMES[isa], *cells]) + " |")
    lines += [
        "",
        f"Queries beyond that are sampled. Effective samples of {N_SAMPLES} (median of 20 "
        "queries), by documents and by the standard deviation of their scores:",
        "",
        "| objective | scores | " + " | ".join(map(str, SAMPLED_SIZES)) + " |",
        "|---" * (len(SAMPLED_SIZES) + 2) + "|",
    ]
    for row in result["samples"]:
        cells = " | ".join(f"{each:.0f}" for each in row["effective"])
        lines.append(f"| {row['objective']} | {row['spread']:g} | {cells} |")
    lines += [
        "",
        "Rendered by `benchmarks/ranking.py` from [results/ranking.json](results/ranking.json).",
        "",
        *host_lines(result, ("crfx", "numpy")),
    ]
    return "\n".join([*lines, ""])


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    return f"{seconds * 1e3:.3g} ms"


CHILDREN = {"core": core, "listing": listing, "samples": samples}


def main() -> None:
    """Measure, print, write."""
    if run_child(CHILDREN):
        return
    arguments = parser_of(__doc__.splitlines()[0]).parse_args()

    def measure_all(sets: list[str], recorded: dict[str, Any]) -> dict[str, Any]:
        run = partial(measure, sets, quick=arguments.quick)
        return measured(sets, run, recorded, TARGETS, figure)

    report(arguments, TARGET, measure_all, PAGE, page)


if __name__ == "__main__":
    main()
