"""How fast is inference, against pytorch-crf and against one plain matrix product?

Workload: chains of the lengths of the OCR set (Taskar et al. 2003), random scores, float32. Each
figure is the fastest of several runs, all tasks of a row taking turns in one process. The unit is
one product (rows x K)(K x K) by single-threaded BLAS: what this machine needs for the arithmetic
of one message pass, done by the best code there is.

    make bench                                        # peers included
    python benchmarks/inference.py --no-peers         # without pytorch-crf

Writes reports/results/inference.json and from it reports/inference.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from measuring import (
    RESULTS,
    ROOT,
    command_line,
    fastest,
    machine,
    peak_memory,
    verdict,
    write_json,
    write_whole,
)
from threadpoolctl import threadpool_limits

from crfx.inference import max_product, sum_product

# Words of each length in the OCR set: 6,877 words, 52,152 letters.
WORDS_OF_LENGTH = {
    3: 1283, 5: 568, 6: 768, 7: 695, 8: 750, 9: 1047, 10: 584, 11: 304, 12: 298, 13: 313, 14: 267,
}  # fmt: skip
LABELS = (3, 9, 26)
MOST_PRODUCTS = {3: 20, 9: 10, 26: 8}  # the targets, one thread
LEAST_SPEED_UP = 1.7  # two threads over one
SEED = 0
PEER_BATCHES = (256, 1024, 8192)  # sizes of padded batches; the best one counts
PASSES = 8
GROWTH = (10_000, 100_000, 1_000_000)  # positions
PAGE = ROOT / "reports" / "inference.md"
Task = Callable[[], object]


def workload(n_labels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Node scores, edge scores and offsets."""
    rng = np.random.default_rng(SEED)
    lengths = np.repeat(list(WORDS_OF_LENGTH), list(WORDS_OF_LENGTH.values()))
    offsets = np.concatenate([[0], np.cumsum(rng.permutation(lengths))])
    node = rng.normal(size=(offsets[-1], n_labels)).astype(np.float32)
    edge = rng.normal(size=(n_labels, n_labels)).astype(np.float32)
    return node, edge, offsets


def our_tasks(n_labels: int) -> dict[str, Task]:
    """The core on one thread and on two."""
    node, edge, offsets = workload(n_labels)
    tasks: dict[str, Task] = {}
    for jobs in (1, 2):
        tasks[f"statistics_{jobs}"] = lambda jobs=jobs: sum_product(
            node, edge, offsets, curvature="mixing", n_jobs=jobs
        )
        tasks[f"viterbi_{jobs}"] = lambda jobs=jobs: max_product(node, edge, offsets, n_jobs=jobs)
    return tasks


def product_task(n_labels: int) -> Task:
    """The yardstick."""
    node, edge, _ = workload(n_labels)
    out = np.empty_like(node)
    return lambda: np.matmul(node, edge, out=out)


def peer_tasks(n_labels: int) -> dict[str, Task]:
    """pytorch-crf: log-likelihood forward and backward (which gives the marginals), and decoding.

    Batches of chains of similar length, the longest first: little padding, the best case for it.
    """
    import torch
    from torchcrf import CRF

    node, edge, offsets = workload(n_labels)
    crf = CRF(n_labels, batch_first=True)
    with torch.no_grad():
        crf.transitions.copy_(torch.from_numpy(edge))
        crf.start_transitions.zero_()
        crf.end_transitions.zero_()

    def padded(size: int) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        by_length = np.argsort(-np.diff(offsets), kind="stable")
        batches = []
        for begin in range(0, len(by_length), size):
            chosen = by_length[begin : begin + size]
            lengths = np.diff(offsets)[chosen]
            mask = np.arange(lengths[0]) < lengths[:, None]
            scores = np.zeros((*mask.shape, n_labels), np.float32)
            scores[mask] = np.concatenate([node[offsets[i] : offsets[i + 1]] for i in chosen])
            batches.append(
                (
                    torch.from_numpy(scores).requires_grad_(),
                    torch.zeros(mask.shape, dtype=torch.long),
                    torch.from_numpy(mask),
                )
            )
        return batches

    def forward_backward(batches: list) -> None:
        crf.zero_grad()
        for scores, tags, mask in batches:
            scores.grad = None
            crf(scores, tags, mask=mask, reduction="sum").backward()

    def decode(batches: list) -> None:
        with torch.no_grad():
            for scores, _, mask in batches:
                crf.decode(scores, mask=mask)

    tasks: dict[str, Task] = {}
    for jobs in (1, 2):
        for size in PEER_BATCHES:
            batches = padded(size)
            for name, work in (("statistics", forward_backward), ("viterbi", decode)):
                tasks[f"peer_{name}_{jobs}_{size}"] = _with_torch_threads(jobs, work, batches)
    return tasks


def _with_torch_threads(jobs: int, work: Callable[[list], None], batches: list) -> Task:
    import torch

    def task() -> None:
        torch.set_num_threads(jobs)
        work(batches)

    return task


def measure_speed(*, peers: bool, repeats: int) -> list[dict[str, object]]:
    """Rows of the table: seconds of everything for each number of labels.

    In several passes with new arrays, so that neither a slow stretch of the machine nor an unlucky
    placement of memory decides a row. The peers run after all of ours: their idle threads spin on
    for a while and would disturb us.
    """
    rows: dict[int, dict[str, float]] = {n_labels: {} for n_labels in LABELS}
    with threadpool_limits(1, user_api="blas"):
        for _ in range(PASSES):
            for n_labels, row in rows.items():
                tasks = {"product": product_task(n_labels), **our_tasks(n_labels)}
                for name, seconds in fastest(tasks, max(1, repeats // PASSES)).items():
                    row[name] = min(seconds, row.get(name, seconds))
        for n_labels in LABELS if peers else ():
            times = fastest(peer_tasks(n_labels), max(2, repeats // 20))
            rows[n_labels] |= best_batches(times)
    return [{"labels": n_labels, "seconds": seconds} for n_labels, seconds in rows.items()]


def best_batches(times: dict[str, float]) -> dict[str, float]:
    """Drop the batch size from the names of the peer's tasks, keeping the fastest of each."""
    best: dict[str, float] = {}
    for name, seconds in times.items():
        short = name.rpartition("_")[0]
        best[short] = min(seconds, best.get(short, seconds))
    return best


def measure_growth(n_positions: int, shape: str) -> dict[str, object]:
    """Time and memory of full statistics at 26 labels, in a process of its own."""
    asked = [sys.executable, __file__, "--one-growth", shape, str(n_positions)]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def one_growth(shape: str, n_positions: int) -> dict[str, object]:
    """Measure in this process: peak memory is a property of a process."""
    n_labels, step = 26, 8
    rng = np.random.default_rng(SEED)
    node = rng.standard_normal((n_positions, n_labels), dtype=np.float32)
    edge = rng.standard_normal((n_labels, n_labels), dtype=np.float32)
    ends = [n_positions] if shape == "one chain" else range(step, n_positions + 1, step)
    offsets = np.array([0, *ends])
    before = peak_memory()
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        sum_product(node, edge, offsets, curvature="mixing", n_jobs=1)
        best = min(best, time.perf_counter() - begin)
    return {
        "shape": shape,
        "positions": n_positions,
        "seconds": best,
        "bytes": peak_memory() - before,
    }


def speed_table(rows: list[dict]) -> list[str]:
    """Markdown of the main table."""
    lines = [
        "| K | task | 1 thread | products | target | 2 threads | speed-up | pytorch-crf, 1 thread "
        "| times faster | pytorch-crf, 2 threads | times faster |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        labels, seconds = row["labels"], row["seconds"]
        for task, title in (("statistics", "full statistics"), ("viterbi", "Viterbi")):
            one, two = seconds[f"{task}_1"], seconds[f"{task}_2"]
            products, target = one / seconds["product"], "–"
            if task == "statistics":
                most = MOST_PRODUCTS[labels]
                target = f"≤ {most}: {verdict(products <= most)}"
            cells = [str(labels), title, _ms(one), f"{products:.1f}", target, _ms(two)]
            cells.append(f"{one / two:.2f}×")
            for jobs, ours in ((1, one), (2, two)):
                peer = seconds.get(f"peer_{task}_{jobs}")
                cells += [_ms(peer), f"{peer / ours:.0f}×"] if peer else ["–", "–"]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def growth_table(rows: list[dict]) -> list[str]:
    """Markdown of time and memory against positions."""
    lines = ["| shape | positions | ns per position | bytes per position |", "|---|---|---|---|"]
    for row in rows:
        n = row["positions"]
        each = f"{row['seconds'] / n * 1e9:.0f} | {row['bytes'] / n:.0f}"
        lines.append(f"| {row['shape']} | {n:,} | {each} |")
    return lines


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def page(result: dict) -> str:
    """The report, rendered from what was measured."""
    host, speed = result["machine"], result["speed"]
    ratios = [
        row["seconds"]["statistics_1"] / row["seconds"]["statistics_2"] for row in result["speed"]
    ]
    versions = ", ".join(f"{name} {v}" for name, v in host["versions"].items() if v)
    products = ", ".join(f"K = {row['labels']}: {_ms(row['seconds']['product'])}" for row in speed)
    lines = [
        "# Inference: speed",
        "",
        "Rendered by `benchmarks/inference.py` from [results/inference.json]"
        f"(results/inference.json); command: `{result['command']}`.",
        "",
        f"Machine: {host['processor']}, {host['cores']} cores, {host['instruction_set']}; "
        f"{host['system']}, Python {host['python']}; {versions}; commit {host['commit']}, "
        f"{host['date']}.",
        "",
        "Workload: 6,877 chains of the lengths of the OCR set, 52,152 positions, random float32 "
        "scores. *Full statistics* are log Z, node marginals, summed edge marginals and the mixing "
        "multipliers γ of nodes and edges; for pytorch-crf forward and backward of the likelihood, "
        "which gives less (no γ). A *product* is (52152 × K)(K × K) in float32 by single-threaded "
        f"BLAS ({products}). Each figure is the fastest of {result['repeats']} runs, taking turns; "
        "pytorch-crf runs on padded batches sorted by length, the best of the batch sizes "
        f"{', '.join(map(str, result['peer_batches']))}.",
        "",
        *speed_table(speed),
        "",
        f"Two threads, full statistics: {min(ratios):.2f} to {max(ratios):.2f} times faster than "
        f"one (target {LEAST_SPEED_UP}: {verdict(min(ratios) >= LEAST_SPEED_UP)}).",
        "",
        "## Growth",
        "",
        "Full statistics, K = 26, one thread, each row in a process of its own; memory is the "
        "growth of the process's peak, results included (node marginals alone are 104 bytes a "
        "position). A single chain cannot fill the lanes with its neighbours and keeps messages of "
        "all its positions: slower per position, and linear all the same.",
        "",
        *growth_table(result["growth"]),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-peers", action="store_true", help="leave out pytorch-crf")
    parser.add_argument("--repeats", type=int, default=160, help="runs of each task (%(default)s)")
    parser.add_argument("--render", action="store_true", help="only write the page anew")
    parser.add_argument("--one-growth", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one_growth:
        shape, n_positions = arguments.one_growth
        print(json.dumps(one_growth(shape, int(n_positions))))
        return
    target = RESULTS / "inference.json"
    if not arguments.render:
        result = {
            "command": command_line(),
            "machine": machine(),
            "seed": SEED,
            "repeats": arguments.repeats,
            "peer_batches": PEER_BATCHES,
            "speed": measure_speed(peers=not arguments.no_peers, repeats=arguments.repeats),
            "growth": [
                measure_growth(n, shape) for shape in ("one chain", "chains of 8") for n in GROWTH
            ],
        }
        write_json(target, result)
    text = page(json.loads(target.read_text(encoding="utf-8")))
    write_whole(PAGE, text)
    print(text)


if __name__ == "__main__":
    main()
