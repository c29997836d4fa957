"""How fast is inference, against pytorch-crf and against one plain matrix product?

Workload: chains of the lengths of the OCR set (Taskar et al. 2003), random scores, float32. Every
instruction set of the processor is measured. Each figure is the fastest of several runs, all tasks
taking turns. The unit is one product (rows x K)(K x K) by single-threaded BLAS: what this machine
needs for the arithmetic of one message pass, done by the best code there is.

    python benchmarks/inference.py                       # three minutes; peers included
    python benchmarks/inference.py --sets avx2 --quick   # a first look

Writes reports/results/inference.json and from it reports/inference.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from instruction_sets import (
    NAMES,
    Target,
    answers,
    everywhere,
    host_lines,
    in_child,
    in_turns,
    measured,
    parser_of,
    peers_of,
    report,
    run_child,
)
from measuring import RESULTS, ROOT, fastest, peak_memory, say
from threadpoolctl import threadpool_limits

from crfx.inference import max_product, sum_product

# Words of each length in the OCR set: 6,877 words, 52,152 letters.
WORDS_OF_LENGTH = {
    3: 1283, 5: 568, 6: 768, 7: 695, 8: 750, 9: 1047, 10: 584, 11: 304, 12: 298, 13: 313, 14: 267,
}  # fmt: skip
LABELS = (3, 9, 26)
TARGETS = (
    Target(
        "statistics_26",
        "full statistics, K = 26, products",
        {"avx512": 5.8, "avx2": 9, "baseline": 22},
        digits=1,
    ),
    Target(
        "statistics_9",
        "full statistics, K = 9, products",
        {"avx512": 6.4, "avx2": 14, "baseline": 24},
        digits=1,
    ),
    Target(
        "statistics_3",
        "full statistics, K = 3, products",
        {"avx512": 12.8, "avx2": 18, "baseline": 24},
        digits=1,
    ),
    Target(
        "viterbi_26",
        "best labelling (Viterbi), K = 26, products",
        {"avx512": 3, "avx2": 5, "baseline": 12},
        digits=1,
    ),
    Target(
        "two_threads",
        "full statistics on two threads, times faster",
        everywhere(1.7),
        at_least=True,
    ),
)
SEED = 0
PEER_BATCHES = (256, 1024, 8192)  # sizes of padded batches; the best one counts
PASSES, REPEATS, PEER_REPEATS = 6, 25, 8
GROWTH = (10_000, 100_000, 1_000_000)  # positions
TARGET = RESULTS / "inference.json"
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
    """Return the tasks of the core on one thread and on two."""
    node, edge, offsets = workload(n_labels)
    tasks: dict[str, Task] = {}
    for jobs in (1, 2):
        tasks[f"statistics_{jobs}"] = lambda jobs=jobs: sum_product(
            node, edge, offsets, curvature="mixing", n_jobs=jobs
        )
        tasks[f"viterbi_{jobs}"] = lambda jobs=jobs: max_product(node, edge, offsets, n_jobs=jobs)
    return tasks


def product_task(n_labels: int) -> Task:
    """Return the task of one matrix product, the unit of comparison."""
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


def core(repeats: int | str) -> dict[str, dict[str, float]]:
    """Measure the core in the instruction set of this process, and the yardstick beside it.

    Seconds by labels and task. The product takes turns with ours, so that both find the caches as
    they are in the middle of work.
    """
    with threadpool_limits(1, user_api="blas"):
        return {
            str(n_labels): fastest(
                {"product": product_task(n_labels), **our_tasks(n_labels)}, int(repeats)
            )
            for n_labels in LABELS
        }


def peer(repeats: int | str) -> dict[str, dict[str, float]]:
    """Measure pytorch-crf: alone, since its idle threads spin for a while and would disturb us."""
    return {
        str(n_labels): best_batches(fastest(peer_tasks(n_labels), int(repeats)))
        for n_labels in LABELS
    }


def best_batches(times: dict[str, float]) -> dict[str, float]:
    """Drop the batch size from the names of the peer's tasks, keeping the fastest of each."""
    best: dict[str, float] = {}
    for name, seconds in times.items():
        short = name.rpartition("_")[0]
        best[short] = min(seconds, best.get(short, seconds))
    return best


def growth(shape: str, positions: int | str) -> dict[str, object]:
    """Measure time and memory of full statistics at 26 labels, in this process: it has one peak."""
    n_labels, step, n_positions = 26, 8, int(positions)
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


def figure(key: str, ours: dict[str, Any], peers: dict[str, Any]) -> float:
    """Return a figure that has a target."""
    if key == "two_threads":
        return min(row["statistics_1"] / row["statistics_2"] for row in ours["seconds"].values())
    task, _, labels = key.partition("_")
    seconds = ours["seconds"][labels]
    return seconds[f"{task}_1"] / seconds["product"]


def measure(sets: list[str], *, quick: bool, peers: bool) -> dict[str, Any]:
    """Measure everything."""
    passes, repeats = (1, 5) if quick else (PASSES, REPEATS)
    result = in_turns(sets, passes, "core", repeats)
    result["sets"] = {isa: {"seconds": seconds} for isa, seconds in result["sets"].items()}
    if peers and not quick:
        say("pytorch-crf")
        result["peers"] = in_child("peer", PEER_REPEATS)
    shapes = [
        (shape, n) for shape in ("one chain", "chains of 8") for n in GROWTH[: 2 if quick else None]
    ]
    say("growth")
    return {
        "seed": SEED,
        "repeats": passes * repeats,
        "peer_batches": PEER_BATCHES,
        **result,
        "growth": [in_child("growth", shape, n, isa=sets[0]) for shape, n in shapes],
        "growth_set": sets[0],
    }


def speed_table(result: dict[str, Any]) -> list[str]:
    """Return the rows of all tasks in Markdown."""
    lines = [
        "| K | task | instruction set | 1 thread | products | 2 threads | speed-up | "
        "pytorch-crf, 1 thread | times faster | pytorch-crf, 2 threads | times faster |",
        "|---" * 11 + "|",
    ]
    for labels in map(str, LABELS):
        for task, title in (("statistics", "full statistics"), ("viterbi", "Viterbi")):
            for isa, figures in result["sets"].items():
                seconds, peers = figures["seconds"][labels], peers_of(result, isa).get(labels, {})
                one, two = seconds[f"{task}_1"], seconds[f"{task}_2"]
                cells = [labels, title, NAMES[isa], _ms(one), f"{one / seconds['product']:.1f}"]
                cells += [_ms(two), f"{one / two:.2f}×"]
                for jobs, ours in ((1, one), (2, two)):
                    theirs = peers.get(f"peer_{task}_{jobs}")
                    cells += [_ms(theirs), f"{theirs / ours:.0f}×"] if theirs else ["–", "–"]
                lines.append("| " + " | ".join(cells) + " |")
    return lines


def growth_table(rows: list[dict]) -> list[str]:
    """Return time and memory against positions in Markdown."""
    lines = ["| shape | positions | ns per position | bytes per position |", "|---|---|---|---|"]
    for row in rows:
        n = row["positions"]
        each = f"{row['seconds'] / n * 1e9:.0f} | {row['bytes'] / n:.0f}"
        lines.append(f"| {row['shape']} | {n:,} | {each} |")
    return lines


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def page(result: dict[str, Any]) -> str:
    """Return the report, rendered from what was measured."""
    first = next(iter(result["sets"].values()))["seconds"]
    units = ", ".join(f"K = {labels}: {_ms(row['product'])}" for labels, row in first.items())
    lines = [
        "# Inference: speed",
        "",
        *answers([(result, TARGETS)]),
        "",
        "A *product* is (52152 × K)(K × K) in float32 by single-threaded BLAS "
        f"({units}); ours run on one thread. The last row is the smallest ratio of all K.",
        "",
        "## All tasks",
        "",
        "Workload: 6,877 chains of the lengths of the OCR set, 52,152 positions, random float32 "
        "scores. *Full statistics* are log Z, node marginals, summed edge marginals and the mixing "
        "multipliers γ of nodes and edges; for pytorch-crf forward and backward of the likelihood, "
        f"which gives less (no γ). Each figure is the fastest of {result['repeats']} runs; "
        "instruction sets take turns, and so does BLAS in each of them. pytorch-crf runs on padded "
        "batches sorted by length, the best of the batch sizes "
        f"{', '.join(map(str, result['peer_batches']))}.",
        "",
        *speed_table(result),
        "",
        "## Growth",
        "",
        f"Full statistics, K = 26, one thread, {NAMES[result['growth_set']]}, each row in a "
        "process of its own; memory is the growth of the process's peak, results included (node "
        "marginals alone are 104 bytes a position). A single chain cannot fill the lanes with its "
        "neighbours and keeps messages of all its positions: slower per position, and linear all "
        "the same.",
        "",
        *growth_table(result["growth"]),
        "",
        "Rendered by `benchmarks/inference.py` from "
        "[results/inference.json](results/inference.json).",
        "",
        *host_lines(result, ("crfx", "numpy", "torch", "pytorch-crf")),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write."""
    if run_child({"core": core, "peer": peer, "growth": growth}):
        return
    parser = parser_of(__doc__.splitlines()[0])
    parser.add_argument("--no-peers", action="store_true", help="leave out pytorch-crf")
    arguments = parser.parse_args()

    def measure_all(sets: list[str], recorded: dict[str, Any]) -> dict[str, Any]:
        run = partial(measure, sets, quick=arguments.quick, peers=not arguments.no_peers)
        return measured(sets, run, recorded, TARGETS, figure)

    report(arguments, TARGET, measure_all, PAGE, page)


if __name__ == "__main__":
    main()
