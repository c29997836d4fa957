"""Seconds and bytes of a round, by rows and workers; time and memory of the largest run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.clusters.agreement import told_bytes
from benchmarks.clusters.processes import MemoryWatch, workers
from benchmarks.clusters.tasks import noise

ROWS, WORKERS = (100_000, 400_000), (1, 2, 3)
FEATURES, LABELS, ROUNDS = 20, 9, 10
LARGE, LARGE_WORKERS, MOST_BYTES = 10_000_000, 2, 20e9


def _made() -> dict[str, Callable[[], Any]]:
    from crfx import GBCRF, LinearCRF

    return {
        "GBCRF": lambda: GBCRF(ROUNDS, random_state=0),
        "LinearCRF": lambda: LinearCRF(max_iter=ROUNDS, tol=0.0),
    }


def measure() -> dict[str, Any]:
    """Median seconds of a round for every size and number of workers."""
    from crfx.distributed import cluster

    rows = []
    for number in WORKERS:
        with workers(number) as client:
            for n_rows in ROWS:
                task = noise(n_rows, FEATURES, LABELS)
                for name, make in _made().items():
                    with cluster(client) as place:
                        crf = make().fit(**task)
                    rows.append(
                        {
                            "name": name,
                            "workers": number,
                            "rows": n_rows,
                            "seconds": float(np.median(crf.history_["seconds"])),
                            **told_bytes(place.last_run.bytes_by_round),
                        }
                    )
                    print(rows[-1], flush=True)
    return {"rows": rows, "features": FEATURES, "labels": LABELS}


def measure_large() -> dict[str, Any]:
    """Train from shards on disk with two workers; return time and peak memory of all processes."""
    import crfx
    from crfx.distributed import cluster

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(10):
            part = noise(LARGE // 10, FEATURES, LABELS, seed=number)
            crfx.write_shards(f"{folder}/{number}", **part, positions=LARGE // 10)
            del part
        for name, make in _made().items():
            shards = crfx.Shards(sorted(_files(folder)))
            with workers(LARGE_WORKERS) as client, cluster(client), MemoryWatch() as memory:
                begin = time.perf_counter()
                crf = make().fit(shards.X, shards.y)
                seconds = time.perf_counter() - begin
            rows.append(
                {
                    "name": name,
                    "workers": LARGE_WORKERS,
                    "rows": LARGE,
                    "seconds": seconds,
                    "round": float(np.median(crf.history_["seconds"])),
                    "rounds": len(crf.history_["seconds"]),
                    "peak": memory.peak,
                }
            )
            print(rows[-1], flush=True)
    return {"rows": rows, "features": FEATURES, "labels": LABELS}


def _files(folder: str) -> list[str]:
    from pathlib import Path

    return [str(path) for path in Path(folder).glob("*/*.npz")]
