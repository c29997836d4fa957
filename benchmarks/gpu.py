"""What does a round of GBCRF cost if trees grow on a GPU, and what remains on the host?

A round of GBCRF and one of XGBoost's own `multi:softprob` on the same rows with the same settings,
each on the GPU and on all cores; short runs take turns in one process, and each figure is the mean
round of the fastest run (a GPU may still work when a round returns, so single rounds say less). One
more run of GBCRF is timed part by part. OCR letters come from $CRFX_DATA, the rest is simulated.

    python benchmarks/gpu.py
    python benchmarks/gpu.py --device cpu --small --output /tmp/gpu.json    # without a GPU, to try

Writes reports/results/gpu.json after every row, and at the end reports/gpu.md; --resume keeps the
rows that are there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from boosting import xgboost_settings
from measuring import RESULTS, ROOT, machine, verdict, write_json, write_whole

from crfx import GBCRF
from crfx.datasets import load_ocr
from crfx.potentials.xgboost_learner import XGBoostLearner
from crfx.threads import thread_count
from crfx.trainers.boosting import Boosting, WorkingScores

MOST_RATIO = 2.0
TARGET, PAGE = RESULTS / "gpu.json", ROOT / "reports" / "gpu.md"
PARTS = {
    "inference": "inference and gradients (host)",
    "set-up": "a booster, and its first scores",
    "copying": "gradients to the device, and what every round costs there",
    "growing": "trees",
    "fetching": "trees and scores to the host",
    "update": "adding to the scores (host)",
    "rest": "rest (host)",
}
"""What a round consists of; ``copying`` is measured by growing trees of one constant column."""
MOVED = ("set-up", "copying", "fetching")
"""Parts that mostly move arrays between host and device."""


@dataclass(frozen=True)
class Task:
    """Instances, stacked."""

    X: np.ndarray
    y: np.ndarray
    lengths: np.ndarray


@dataclass(frozen=True)
class Case:
    """A row: the task, the rounds of a run, and the number of runs.

    Without a shape (positions, features) it is OCR; ``small`` is the shape with --small.
    """

    name: str
    shape: tuple[int, int] | None
    small: tuple[int, int]
    rounds: int
    turns: int
    cpu_turns: int
    depth: int = 6

    def task(self, small: bool) -> Task:
        """Return the instances."""
        if small or self.shape is not None:
            return simulated(*(self.small if small else self.shape))
        letters = load_ocr()
        lengths = np.array([len(word) for word in letters.X])
        return Task(np.concatenate(letters.X), np.concatenate(letters.y), lengths)


CASES = {
    "ocr": Case(
        "OCR, 52,152 × 128, 26 labels", None, (2_000, 128), rounds=20, turns=4, cpu_turns=3
    ),
    "conll": Case(
        "CoNLL size, 203,616 × 300, 9 labels",
        (203_616, 300),
        (4_000, 30),
        rounds=12,
        turns=4,
        cpu_turns=3,
    ),
    "large": Case(
        "3 million × 100, 9 labels", (3_000_000, 100), (20_000, 10), rounds=6, turns=2, cpu_turns=1
    ),
}


def simulated(n_rows: int, n_features: int, n_labels: int = 9) -> Task:
    """Labels of a Markov chain, seen through features of which a tenth tell of them."""
    random = np.random.default_rng(0)
    lengths = random.integers(1, 29, 1 + n_rows // 14)
    ends = np.cumsum(lengths)
    lengths = lengths[: np.searchsorted(ends, n_rows) + 1]
    lengths[-1] -= lengths.sum() - n_rows
    moves = random.random(n_rows) < 0.4
    steps = np.where(moves, random.integers(1, n_labels, n_rows), 0)
    y = np.cumsum(steps) % n_labels
    means = random.standard_normal((n_labels, n_features), dtype=np.float32)
    means[:, random.random(n_features) < 0.9] = 0.0
    X = random.standard_normal((n_rows, n_features), dtype=np.float32)
    for begin in range(0, n_rows, 2**18):
        X[begin : begin + 2**18] += means[y[begin : begin + 2**18]]
    return Task(X, y, lengths)


def ours(case: Case, task: Task, device: str) -> float:
    """Seconds of the mean round of a run, but the first, which prepares."""
    crf = GBCRF(case.rounds, max_depth=case.depth, random_state=0, device=device)
    crf.fit(task.X, task.y, lengths=task.lengths)
    return float(np.mean(crf.history_["seconds"][1:]))


def theirs(case: Case, data: Any, n_labels: int, device: str) -> float:
    """Measure XGBoost's softmax in the same way."""
    import xgboost

    settings = xgboost_settings(n_labels, case.depth) | {"device": device}
    booster = xgboost.Booster(settings, [data])
    one_row = xgboost.DMatrix(np.zeros((1, data.num_col()), np.float32), nthread=1)
    booster.update(data, 0)
    begin = time.perf_counter()
    for number in range(1, case.rounds):
        booster.update(data, number)
    booster.predict(one_row)  # waits until the last round is done
    return (time.perf_counter() - begin) / (case.rounds - 1)


def one_case(key: str, device: str, small: bool) -> dict[str, Any]:
    """Measure all figures of a row in this process."""
    import xgboost

    case = CASES[key]
    begin = time.perf_counter()
    task = case.task(small)
    classes, codes = np.unique(task.y, return_inverse=True)
    data = xgboost.QuantileDMatrix(task.X, codes, max_bin=256)
    devices = dict.fromkeys((device, "cpu"))
    runs: dict[str, list[float]] = {f"{who} {d}": [] for who in ("ours", "theirs") for d in devices}
    for turn in range(case.turns):
        for where in devices:
            if where == "cpu" and turn >= case.cpu_turns:
                continue
            runs[f"theirs {where}"].append(theirs(case, data, len(classes), where))
            runs[f"ours {where}"].append(ours(case, task, where))
    return {
        "case": key,
        "positions": len(task.X),
        "features": task.X.shape[1],
        "labels": len(classes),
        "instances": len(task.lengths),
        "depth": case.depth,
        "rounds": case.rounds,
        "runs": runs,
        "split": split(case, task, len(classes), device),
        "took": time.perf_counter() - begin,
    }


def split(case: Case, task: Task, n_labels: int, device: str) -> dict[str, float]:
    """Seconds of the parts of a mean round but the first, by name in `PARTS`; and of all."""
    parts, begun, ended = Counter[str](), 0.0, 0.0

    def watch(progress: Any) -> None:
        nonlocal begun, ended
        ended = time.perf_counter()
        if progress.n_rounds == 1:
            parts.clear()
            begun = ended

    crf = GBCRF(case.rounds, max_depth=case.depth, random_state=0, device=device)
    with timers(parts):
        crf.fit(task.X, task.y, lengths=task.lengths, callbacks=[watch])
    result = {name: seconds / (case.rounds - 1) for name, seconds in parts.items()}
    result["round"] = (ended - begun) / (case.rounds - 1)
    copying = min(result["boost"], constant_round(len(task.X), n_labels, device, case.depth))
    result |= {"copying": copying, "growing": result.pop("boost") - copying}
    result["rest"] = result["round"] - sum(result[name] for name in PARTS if name in result)
    return {name: result[name] for name in (*PARTS, "round")}


@contextmanager
def timers(parts: Counter[str]) -> Iterator[None]:
    """Add the seconds that training spends in its steps to ``parts``; no step has another in it."""
    import xgboost

    with ExitStack() as stack:
        for owner, name, part in (
            (Boosting, "_evaluate", "inference"),
            (WorkingScores, "add", "update"),
            (xgboost.Booster, "__init__", "set-up"),
            (xgboost.Booster, "predict", "set-up"),
            (xgboost.Booster, "boost", "boost"),
            (xgboost.Booster, "save_raw", "fetching"),
        ):
            stack.enter_context(timed(parts, owner, name, part))
        yield


@contextmanager
def timed(parts: Counter[str], owner: type, name: str, part: str) -> Iterator[None]:
    """Count a method's seconds; what a booster predicts once it has grown is fetched."""
    method = getattr(owner, name)

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        begin = time.perf_counter()
        try:
            return method(self, *args, **kwargs)
        finally:
            is_fetched = name == "predict" and self.num_boosted_rounds() > 0
            parts["fetching" if is_fetched else part] += time.perf_counter() - begin

    setattr(owner, name, counted)
    try:
        yield
    finally:
        setattr(owner, name, method)


def constant_round(n_rows: int, n_labels: int, device: str, depth: int) -> float:
    """Seconds of a round of trees on one constant column, which cannot be split: what it takes to
    hand over gradients, and to begin and end a tree of every label.
    """
    random = np.random.default_rng(0)
    gradient = random.standard_normal((n_rows, n_labels), dtype=np.float32)
    curvature = np.ones_like(gradient)
    settings = {"max_depth": depth, "min_child_weight": 1.0}
    learner = XGBoostLearner(settings, n_jobs=thread_count(None), device=device)
    matrix = learner.training_matrix(np.zeros((n_rows, 1), np.float32))
    parts = Counter[str]()
    seconds = []
    with timers(parts):
        for number in range(6):
            parts.clear()
            learner.grow(matrix, gradient, curvature, number)
            seconds.append(parts["boost"])
    return min(seconds[1:])


def gpu_name() -> str | None:
    """Return the names of the GPU and its driver, or None."""
    asked = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    name, driver = done.stdout.splitlines()[0].split(", ")
    return f"{name}, driver {driver}"


def in_new_process(*arguments: str) -> dict[str, Any]:
    asked = [sys.executable, __file__, *arguments]
    return json.loads(subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True).stdout)


def page(result: dict[str, Any]) -> str:
    """Return the report, rendered from the measurements."""
    host, device = result["machine"], result["device"]
    versions = ", ".join(f"{name} {v}" for name, v in host["versions"].items() if v)
    lines = [
        "# GPU: what a round costs",
        "",
        "Rendered by `benchmarks/gpu.py` from [results/gpu.json](results/gpu.json); command: "
        f"`{result['command']}`.",
        "",
        f"Machine: {host['gpu'] or 'no GPU'}; {host['processor']}, {host['cores']} cores, "
        f"{host['instruction_set']}; {host['system']}, Python {host['python']}; {versions}; commit "
        f"{host['commit']}, {host['date']}.",
        "",
        f'One round of GBCRF, with `device="{device}"` and on all cores, beside one of XGBoost\'s '
        "`multi:softprob` on the same rows with the same settings (depth 6, 256 bins). Short runs "
        "take turns; each figure is the mean round of the fastest run, without its first round.",
        "",
        f"| case | GBCRF, GPU | XGBoost, GPU | ratio (≤ {MOST_RATIO:g}) | GBCRF, {host['cores']} "
        f"cores | XGBoost, {host['cores']} cores | ratio | GPU against cores |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        best = {name: min(seconds) for name, seconds in row["runs"].items()}
        there, native = best[f"ours {device}"], best[f"theirs {device}"]
        here, native_here = best["ours cpu"], best["theirs cpu"]
        ratio = there / native
        lines.append(
            f"| {CASES[row['case']].name} | {there * 1e3:.1f} ms | {native * 1e3:.1f} ms | "
            f"{ratio:.2f}: {verdict(ratio <= MOST_RATIO)} | {here * 1e3:.0f} ms | "
            f"{native_here * 1e3:.0f} ms | {here / native_here:.2f} | {here / there:.1f}× |"
        )
    lines += ["", *split_table(result["rows"])]
    return "\n".join(lines)


def split_table(rows: list[dict[str, Any]]) -> list[str]:
    """Return a table of the parts of a round of GBCRF on the GPU."""
    names = [CASES[row["case"]].name.split(",")[0].split(" ×")[0] for row in rows]
    lines = [
        "## Where the time goes",
        "",
        "A round of GBCRF on the GPU, part by part, in a run of its own with timers. Gradients go "
        "to the device inside the call that grows the trees; what that takes is measured with "
        "trees of one constant column, which cannot be split.",
        "",
        f"| part | {' | '.join(names)} |",
        f"|---|{'---|' * len(rows)}",
    ]
    for part, description in PARTS.items():
        cells = [
            f"{row['split'][part] * 1e3:.1f} ms ({row['split'][part] / row['split']['round']:.0%})"
            for row in rows
        ]
        lines.append(f"| {description} | {' | '.join(cells)} |")
    whole = " | ".join(f"{row['split']['round'] * 1e3:.1f} ms" for row in rows)
    lines += [f"| **a round** | {whole} |", ""]
    last = rows[-1]
    moved = sum(last["split"][part] for part in MOVED) / last["split"]["round"]
    inference = last["split"]["inference"] / last["split"]["round"]
    lines += [
        f"Of {last['positions']:,} positions inference on the host is {inference:.0%} of a round, "
        f"and moving gradients, scores and trees between host and device (with the set-up of a "
        f"booster) {moved:.0%}.",
        "",
    ]
    return lines


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N, or cpu (%(default)s)")
    parser.add_argument("--small", action="store_true", help="few rows, to try this script")
    parser.add_argument("--only", choices=CASES, nargs="+", default=list(CASES))
    parser.add_argument("--resume", action="store_true", help="keep the rows that are there")
    parser.add_argument("--output", type=Path, default=TARGET, help="JSON; the page lies beside")
    parser.add_argument("--commit", help="what is measured, where git cannot say")
    parser.add_argument("--render", action="store_true", help="only write the page anew")
    parser.add_argument("--one-case", choices=CASES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one_case is not None:
        print(json.dumps(one_case(arguments.one_case, arguments.device, arguments.small)))
        return
    if not arguments.render:
        measure(arguments)
    text = page(json.loads(arguments.output.read_text(encoding="utf-8")))
    is_ours = arguments.output == TARGET
    write_whole(PAGE if is_ours else arguments.output.with_suffix(".md"), text)
    print(text)


def measure(arguments: argparse.Namespace) -> None:
    """Measure row by row; each is written at once."""
    more = [] if arguments.device == "cuda" else ["--device", arguments.device]
    more += ["--small"] if arguments.small else []
    result: dict[str, Any] = {
        "command": " ".join(["python benchmarks/gpu.py", *more]),  # however it was cut up
        "machine": machine() | {"gpu": gpu_name()},
        "device": arguments.device,
        "rows": [],
    }
    if arguments.commit:
        result["machine"]["commit"] = arguments.commit
    if arguments.resume and arguments.output.is_file():
        result["rows"] = json.loads(arguments.output.read_text(encoding="utf-8"))["rows"]
    there = {row["case"] for row in result["rows"]}
    for key in CASES:
        if key in arguments.only and key not in there:
            result["rows"].append(in_new_process("--one-case", key, *more))
            result["rows"].sort(key=lambda row: list(CASES).index(row["case"]))
            write_json(arguments.output, result)
            print(f"{key}: {result['rows'][-1]['took']:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
