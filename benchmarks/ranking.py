"""How much faster than NumPy are sums over all orders of a query, and how far do they reach?

Yardstick: the orders of six documents listed once (720 x 6), then for every query and objective
matrix products and exponentials over them, as one would write it in NumPy; one query at a time, one
thread. Ours: the core, many queries in one call, one thread. Random scores and relevance.

    python benchmarks/ranking.py            # a minute
    python benchmarks/ranking.py --render   # only write the page anew

Writes reports/results/ranking.json and from it reports/ranking.md.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when NumPy is loaded

import argparse
import json
import time
from itertools import permutations
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

from crfx.objectives.ranking import OBJECTIVES, RankingObjective
from crfx.structures.ranking import rank_weights

TARGET = RESULTS / "ranking.json"
PAGE = ROOT / "reports" / "ranking.md"
LEAST_RATIO = 50
DOCUMENTS = 6
QUERIES, LISTED_QUERIES, REPEATS = 4000, 100, 60
SIZES = (4, 6, 8, 10, 12, 14, 16)
SAMPLED_SIZES, SPREADS, N_SAMPLES = (20, 40, 80, 160), (1.0, 3.0, 10.0), 1000
TEMPERATURE = 0.05

ALPHA = rank_weights(DOCUMENTS)
ORDERS = ALPHA[np.array(list(permutations(range(DOCUMENTS))))]  # (720, 6)
BACK = np.ascontiguousarray(ORDERS.T)


def objective(name: str) -> RankingObjective:
    """As both sides compute it."""
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
    """The largest difference between both sides, over some queries."""
    scores, gains, offsets = queries(DOCUMENTS, LISTED_QUERIES)
    found = objective(name).evaluate(scores, gains, offsets)
    worst = 0.0
    for k in range(LISTED_QUERIES):
        rows = slice(offsets[k], offsets[k + 1])
        value, gradient = by_listing(name, scores[rows], gains[rows])
        difference = np.abs(found.gradient[rows] - gradient).max()
        worst = max(worst, abs(found.value[k] - value), difference)
    return float(worst)


def measure_speed() -> list[dict[str, Any]]:
    """Seconds per query of every objective."""
    scores, gains, offsets = queries(DOCUMENTS, QUERIES)
    rows = [slice(DOCUMENTS * k, DOCUMENTS * (k + 1)) for k in range(LISTED_QUERIES)]
    found = []
    for name in OBJECTIVES:
        own = objective(name)
        seconds = fastest(
            {
                "core": lambda own=own: own.evaluate(scores, gains, offsets, n_jobs=1),
                "curvature": lambda own=own: own.evaluate(
                    scores, gains, offsets, n_jobs=1, curvature=True
                ),
                "numpy": lambda name=name: [by_listing(name, scores[r], gains[r]) for r in rows],
            },
            REPEATS,
        )
        counts = {"core": QUERIES, "curvature": QUERIES, "numpy": LISTED_QUERIES}
        per_query = {task: seconds[task] / counts[task] for task in counts}
        found.append({"objective": name, "seconds": per_query, "difference": check(name)})
    return found


def measure_sizes() -> list[dict[str, Any]]:
    """Seconds per query of exact sums, by number of documents."""
    found = []
    for m in SIZES:
        n = max(8, min(2000, 2**18 // 2**m))
        data = queries(m, n)
        own = objective("kl")
        seconds = fastest(
            {
                "gradient": lambda own=own, data=data: own.evaluate(*data, n_jobs=1),
                "curvature": lambda own=own, data=data: own.evaluate(
                    *data, n_jobs=1, curvature=True
                ),
            },
            3,
        )
        found.append({"documents": m} | {task: each / n for task, each in seconds.items()})
    return found


def measure_samples() -> list[dict[str, Any]]:
    """Effective samples by size and by the spread of scores."""
    found = []
    for name in ("likelihood", "loss_scaled"):
        own = RankingObjective(name, n_samples=N_SAMPLES)
        for spread in SPREADS:
            effective = [
                float(np.median(own.evaluate(*queries(m, 20, spread)).effective))
                for m in SAMPLED_SIZES
            ]
            found.append({"objective": name, "spread": spread, "effective": effective})
    return found


def measure() -> dict[str, Any]:
    """Everything."""
    begin = time.perf_counter()
    result = {
        "command": command_line(),
        "machine": machine(),
        "speed": measure_speed(),
        "sizes": measure_sizes(),
        "samples": measure_samples(),
    }
    return result | {"took": time.perf_counter() - begin}


def page(result: dict[str, Any]) -> str:
    """The report, rendered from what was measured."""
    lines = [
        "# Ranking: sums over all orders",
        "",
        "Rendered by `benchmarks/ranking.py` from [results/ranking.json](results/ranking.json).",
        "",
        host_line(result, ("crfx", "numpy")),
        "",
        "Value and gradient of one query of six documents (720 orders), one thread. NumPy lists "
        "the orders once and takes a query at a time; the core sums over subsets of documents (for "
        "loss-scaled energies it lists, too), eight queries in vector lanes.",
        "",
        "| objective | core | with curvature | NumPy | ratio | largest difference |",
        "|---|---|---|---|---|---|",
    ]
    total = {"core": 0.0, "curvature": 0.0, "numpy": 0.0}
    for row in result["speed"]:
        seconds = row["seconds"]
        total = {name: total[name] + seconds[name] for name in total}
        lines.append(
            f"| {row['objective']} | {_time(seconds['core'])} | {_time(seconds['curvature'])} | "
            f"{_time(seconds['numpy'])} | {seconds['numpy'] / seconds['core']:.0f} | "
            f"{row['difference']:.0e} |"
        )
    ratio = total["numpy"] / total["core"]
    lines += [
        f"| all five | {_time(total['core'])} | {_time(total['curvature'])} | "
        f"{_time(total['numpy'])} | {ratio:.0f} (≥ {LEAST_RATIO}): "
        f"{verdict(ratio >= LEAST_RATIO)} | |",
        "",
        "Exact sums of larger queries (KL), time per query:",
        "",
        "| documents | " + " | ".join(str(row["documents"]) for row in result["sizes"]) + " |",
        "|---" * (len(result["sizes"]) + 1) + "|",
    ]
    for task, words in (("gradient", "gradient"), ("curvature", "and curvature")):
        lines.append(f"| {words} | " + " | ".join(_time(r[task]) for r in result["sizes"]) + " |")
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
    return "\n".join([*lines, ""])


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    return f"{seconds * 1e3:.3g} ms"


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
