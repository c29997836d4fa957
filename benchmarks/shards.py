"""How much memory and time do training and tagging from shards take?

2 million positions of 100 features, 5 labels, in chains of 50: 800 MB of float32 in shards of
100 000 positions, 40 MB each. The same training runs once with all of it in memory and once from
the shards, every run in a process of its own, whose anonymous memory (RssAnon, which page caches
are no part of) is looked at a hundred times a second.

    python benchmarks/shards.py
    python benchmarks/shards.py --render   # only write the page anew

Writes reports/results/shards.json and from it reports/shards.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from measuring import (
    RESULTS,
    ROOT,
    command_line,
    host_line,
    machine,
    watched,
    write_json,
    write_whole,
)

TARGET = RESULTS / "shards.json"
PAGE = ROOT / "reports" / "shards.md"
POSITIONS, FEATURES, LABELS, LENGTH = 2_000_000, 100, 5, 50
SHARD = 100_000
SEED = 0
WAYS = ("memory", "shards")
TASKS = {
    "sgd": '`LinearCRF("sgd", step=0.1, sweeps=1)`',
    "lbfgs": "`LinearCRF(max_iter=5)`",
    "hidden": "`HiddenUnitCRF(10, step=0.1, sweeps=1)`",
    "predict": "`predict` of a `LinearCRF`",
}


def write(folder: Path) -> None:
    """Shards, made one after the other: the format is plain arrays."""
    slopes = np.random.default_rng(SEED).normal(size=(FEATURES, LABELS)).astype(np.float32)
    for number in range(POSITIONS // SHARD):
        random = np.random.default_rng([SEED, number])
        X = random.standard_normal((SHARD, FEATURES), np.float32) / 10
        noise = random.gumbel(size=(SHARD, LABELS))
        y = (X @ slopes + noise).argmax(axis=1)
        lengths = np.full(SHARD // LENGTH, LENGTH)
        np.savez(folder / f"{number:05d}.npz", X=X, y=y, lengths=lengths)


def in_memory(shards: Any) -> dict[str, Any]:
    """Return the contents of shards, in arrays that are filled in place, without copies."""
    X = np.empty((shards.n_rows, FEATURES), np.float32)
    for rows, chunk in shards.matrix().chunks():
        X[rows] = chunk
    return {"X": X, "y": np.array(shards.labels()), "lengths": shards.lengths}


def work(task: str, way: str, folder: Path) -> dict[str, Any]:
    """Run once in this process."""
    from crfx import HiddenUnitCRF, LinearCRF, Shards

    models = {
        "sgd": LinearCRF("sgd", step=0.1, sweeps=1, random_state=SEED),
        "lbfgs": LinearCRF(max_iter=5),
        "hidden": HiddenUnitCRF(10, step=0.1, sweeps=1, random_state=SEED),
        "predict": LinearCRF(max_iter=1),
    }
    crf, shards = models.get(task), Shards(folder)
    if crf is None:
        return {"rows": shards.n_rows}
    if task == "predict":
        first = shards[:1]
        crf.fit(first.X, first.y)
    arguments = in_memory(shards) if way == "memory" else {"X": shards.X, "y": shards.y}
    if task == "predict":
        del arguments["y"]
    begin = time.perf_counter()
    if task == "predict":
        outcome = float(np.mean(crf.predict(**arguments) == 0))
    else:
        outcome = crf.fit(**arguments).history_["objective"][-1]
    return {"seconds": time.perf_counter() - begin, "found": outcome}


def measure() -> dict[str, Any]:
    """Measure all tasks in both ways."""
    measured_on, first = machine(), time.perf_counter()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        idle = watched(__file__, "nothing", "shards", folder)["bytes"]
        for task in TASKS:
            row = {way: watched(__file__, task, way, folder) for way in WAYS}
            rows.append({"task": task, **row})
            print(f"{task}: {row}", file=sys.stderr, flush=True)
    return {
        "command": command_line(),
        "machine": measured_on,
        "took": time.perf_counter() - first,
        "sizes": {
            "positions": POSITIONS,
            "features": FEATURES,
            "labels": LABELS,
            "length": LENGTH,
            "shard": SHARD,
        },
        "idle": idle,
        "rows": rows,
    }


def page(result: dict[str, Any]) -> str:
    """Return the report, rendered from the measurements."""
    sizes = result["sizes"]
    size, shard = (4e-6 * sizes["features"] * sizes[name] for name in ("positions", "shard"))
    lines = [
        "# Shards: memory and time",
        "",
        "Rendered by `benchmarks/shards.py` from [results/shards.json](results/shards.json).",
        "",
        host_line(result, ("crfx", "numpy")),
        "",
        f"{sizes['positions'] / 1e6:g} million positions of {sizes['features']} features, "
        f"{sizes['labels']} labels, in chains of {sizes['length']}: {size:.0f} MB of features in "
        f"shards of {shard:.0f} MB. Every run is a process of its own; its most anonymous memory, "
        "looked at a hundred times a second, and the seconds of the call, in which shards are "
        "read. In memory, the features are there before the call begins. A process that has "
        f"imported crfx and looked at the shards has {result['idle'] / 1e6:.0f} MB.",
        "",
        "| | in memory, MB | from shards, MB | in memory, s | from shards, s | ended at |",
        "|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        memory, shards = (row[way] for way in WAYS)
        lines.append(
            f"| {TASKS[row['task']]} | {memory['bytes'] / 1e6:.0f} | {shards['bytes'] / 1e6:.0f} | "
            f"{memory['seconds']:.1f} | {shards['seconds']:.1f} | "
            f"{memory['found']:.6g} and {shards['found']:.6g} |"
        )
    lines += [
        "",
        "The last column is the objective, or the share of the first label among those predicted. "
        "Epochs over shards use another order than those in memory. What stays in memory is "
        "described in [shards](../docs/shards.md#what-stays-in-memory).",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--render", action="store_true", help="only write the page anew")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        print(json.dumps(work(asked.work[0], asked.work[1], Path(asked.work[2]))))
        return
    if not asked.render:
        write_json(TARGET, measure())
    text = page(json.loads(TARGET.read_text(encoding="utf-8")))
    write_whole(PAGE, text)
    print(text)


if __name__ == "__main__":
    main()
