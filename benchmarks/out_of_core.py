"""Does GBCRF train on features larger than memory, and how much slower than in memory?

Wide data: 300 float32 features, 5 labels, in chains of 50, in shards of 39 MB. The same 10 rounds
run once from the shards and once with all features in memory, each in a process of its own, whose
anonymous memory is looked at a hundred times a second; what the system keeps of files may be let
go at any time and does not count. From shards, the features must be 4 times the most memory there
was, the model the same, and the time at most 3 times that in memory. Some 200 MB do not depend on
the number of positions (deeper trees need more), so that few positions cannot reach it.

    python benchmarks/out_of_core.py
    python benchmarks/out_of_core.py --render   # only print the tables again

Writes reports/results/out-of-core.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from measuring import (
    RESULTS,
    command_line,
    host_line,
    machine,
    verdict,
    watched,
    write_json,
)

TARGET = RESULTS / "out-of-core.json"
POSITIONS, FEATURES, LABELS, LENGTH = 2_112_500, 300, 5, 50
SHARD = 32_500
ROUNDS, DEPTH = 10, 4
SEED = 0
WAYS = ("shards", "memory")
LEAST_SHARE, MOST_TIME = 4.0, 3.0


def write(folder: Path, positions: int) -> None:
    """Shards, made one after the other: the format is plain arrays."""
    slopes = np.random.default_rng(SEED).normal(size=(FEATURES, LABELS)).astype(np.float32)
    for number in range(positions // SHARD):
        random = np.random.default_rng([SEED, number])
        X = random.standard_normal((SHARD, FEATURES), np.float32)
        y = (X @ slopes / 4 + random.gumbel(size=(SHARD, LABELS))).argmax(axis=1)
        lengths = np.full(SHARD // LENGTH, LENGTH)
        np.savez(folder / f"{number:05d}.npz", X=X, y=y, lengths=lengths)


def work(way: str, folder: str, rounds: int, depth: int) -> dict[str, Any]:
    """Train once in this process."""
    from crfx import GBCRF, Shards

    shards = Shards(folder)
    result: dict[str, Any] = {"rows": shards.n_rows}
    if way == "nothing":
        return result
    arguments: dict[str, Any] = {"X": shards.X, "y": shards.y}
    if way == "memory":
        X = np.empty((shards.n_rows, FEATURES), np.float32)
        for rows, chunk in shards.matrix().chunks():
            X[rows] = chunk
        arguments = {"X": X, "y": np.array(shards.labels()), "lengths": shards.lengths}
    begin = time.perf_counter()
    crf = GBCRF(rounds, max_depth=depth, n_jobs=1, random_state=SEED).fit(**arguments)
    seconds = time.perf_counter() - begin
    labels = crf.predict(shards.X)
    return result | {
        "seconds": seconds,
        "round": float(np.median(crf.history_["seconds"])),
        "objective": crf.history_["objective"][-1],
        "predictions": hashlib.sha256(labels.astype(np.int64).tobytes()).hexdigest(),
    }


def measure(positions: int, rounds: int, depth: int) -> dict[str, Any]:
    """Both ways, one after the other."""
    measured_on, first = machine(), time.perf_counter()
    runs: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), positions)
        for way in ("nothing", *WAYS):
            runs[way] = watched(__file__, way, folder, str(rounds), str(depth))
            print(f"{way}: {runs[way]}", file=sys.stderr, flush=True)
    return {
        "command": command_line(),
        "machine": measured_on,
        "took": time.perf_counter() - first,
        "sizes": {"features": FEATURES, "labels": LABELS, "length": LENGTH, "shard": SHARD},
        "rounds": rounds,
        "depth": depth,
        **runs,
    }


def tables(result: dict[str, Any]) -> str:
    """Return the measurements and the targets."""
    sizes, rows = result["sizes"], result["shards"]["rows"]
    size = 4 * rows * sizes["features"]
    share = size / result["shards"]["bytes"]
    slower = result["shards"]["seconds"] / result["memory"]["seconds"]
    same = result["shards"]["predictions"] == result["memory"]["predictions"]
    lines = [
        host_line(result, ("crfx", "numpy", "xgboost")),
        "",
        f"`GBCRF({result['rounds']}, max_depth={result['depth']}, n_jobs=1)` on "
        f"{rows / 1e6:.3g} million positions of {sizes['features']} features, {sizes['labels']} "
        f"labels, in chains of {sizes['length']}: {size / 1e9:.2f} GB "
        "of features. Every run is a process of its own; its most anonymous memory, looked at a "
        "hundred times a second, and the seconds of `fit`, in which shards are read. In memory, "
        "the features are there before it begins. A process that has imported crfx and looked at "
        f"the shards has {result['nothing']['bytes'] / 1e6:.0f} MB.",
        "",
        "| features | most memory, MB | features / memory | `fit`, s | a round, s | objective |",
        "|---|---|---|---|---|---|",
    ]
    for way in WAYS:
        run = result[way]
        lines.append(
            f"| {'on disk' if way == 'shards' else 'in memory'} | {run['bytes'] / 1e6:.0f} | "
            f"{size / run['bytes']:.2f} | {run['seconds']:.0f} | {run['round']:.1f} | "
            f"{run['objective']:.10g} |"
        )
    lines += [
        "",
        "| to reach | found | |",
        "|---|---|---|",
        f"| features of {LEAST_SHARE:g} times the memory | {share:.2f} | "
        f"{verdict(share >= LEAST_SHARE)} |",
        f"| at most {MOST_TIME:g} times the time in memory | {slower:.2f} | "
        f"{verdict(slower <= MOST_TIME)} |",
        f"| the same predictions | {'yes' if same else 'no'} | {verdict(same)} |",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--render", action="store_true", help="only print the tables again")
    parser.add_argument("--positions", type=int, default=POSITIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--depth", type=int, default=DEPTH)
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        way, folder, rounds, depth = asked.work
        print(json.dumps(work(way, folder, int(rounds), int(depth))))
        return
    if not asked.render:
        write_json(TARGET, measure(asked.positions, asked.rounds, asked.depth))
    print(tables(json.loads(TARGET.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
